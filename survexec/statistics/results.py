"""What every analysis returns: a frozen result with a tidy frame, its notes and how it was made."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import pandas as pd


def _display(module: str) -> ModuleType:
    """A module of the display wing, found by name when something is shown: statistics never depend on it."""
    return importlib.import_module(f"survexec.display.{module}")


@dataclass(frozen=True, eq=False)
class Result:
    """A tidy table of numbers with everything needed to explain them.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a number.
    by : tuple of str
        The columns of `frame` that make a cell.
    notes : tuple of str
        Reasons, counts, and what was left out: everything a reader must know beside the numbers.
    made : dict
        How it was made: level, resamples, seed, rule and so on.
    ledger : pandas.DataFrame
        The ledger of the rollouts behind it.
    """

    frame: pd.DataFrame
    by: tuple[str, ...]
    notes: tuple[str, ...]
    made: dict[str, Any]
    ledger: pd.DataFrame = field(repr=False)
    kind: ClassVar[str] = ""

    def plot(self, ax: Any = None) -> Any:
        """Draw the result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, for figures of one panel.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure
        """
        return _display("figures").plot(self, ax=ax)

    def to_markdown(self) -> str:
        """The table in Markdown, rounded as a paper would."""
        return _display("tables").to_markdown(self)

    def to_latex(self) -> str:
        """The table in LaTeX (booktabs), rounded as a paper would."""
        return _display("tables").to_latex(self)

    def to_html(self) -> str:
        """The table in HTML, rounded as a paper would."""
        return _display("tables").to_html(self)

    def to_csv(self) -> str:
        """The tidy frame in CSV with full precision."""
        return self.frame.to_csv(index=False)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_markdown()
