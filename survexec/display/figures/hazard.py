"""The share of first errors at each call among those about to make it, with its counts."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("k", "estimate", "lower", "upper", "band_lower", "band_upper", "at_risk", "events")
# Limits, their look, and their name; the later lie on the earlier.
_WHISKERS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("band_lower", "band_upper", {"color": "#B9D3E6", "linewidth": 2.4}, "simultaneous band"),
    ("lower", "upper", {"color": style.stroke(0).color, "linewidth": 1.0}, "pointwise interval"),
)


@style.styled
def hazard_by_depth(curves: Any, figure: Figure | None = None) -> Figure:
    """Draw the hazard of a first error at each depth of each cell, with the two counts it comes of.

    Reading: the point at k is the share of first errors among the rollouts about to make call k without an
    earlier one; the two numbers under a tick are that fraction. Thin whisker: interval at that depth. Pale
    whisker: band over all depths at once. Level points say that each further call is as risky as the one
    before; a high point at k = 1 that the first call is the hard one. Depths that fewer than five reached are
    left out: their whiskers span the panel.

    Parameters
    ----------
    curves : Curves or DataFrame
        Kind "hazard": cell columns, ``k``, ``estimate``, ``lower``, ``upper``, ``band_lower``, ``band_upper``,
        ``at_risk``, ``events``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a cell, two side by side, with the same scales.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [1, 2], "estimate": [0.3, 0.1], "lower": [0.1, 0.0], "upper": [0.6, 0.5],
    ...     "band_lower": [0.1, 0.0], "band_upper": [0.7, 0.6], "at_risk": [10, 6], "events": [3, 1],
    ... })
    >>> [text.get_text() for text in hazard_by_depth(frame).axes[0].texts]
    ['3', '1', 'Errors', '10', '6', 'At risk']
    """
    frame, by = panels.tidy(curves, COLUMNS)
    frame = frame[frame["k"] > 0]
    cells = panels.cut(frame, by)
    drawn = frame[frame["at_risk"] >= panels.FEWEST]
    figure, axes = panels.grid(figure, len(cells), 1.75, across=2, sharey=True)
    if not len(drawn):
        for ax in axes:
            panels.say(ax, f"No depth that {panels.FEWEST} or more rollouts reached")
        return figure
    first, last = panels.span(drawn)
    top = drawn[["estimate", "upper", "band_upper"]].astype(float).max().max()
    for ax, (name, rows) in zip(axes, cells, strict=True):
        panels.head(ax, name)
        _points(ax, rows[rows["at_risk"] >= panels.FEWEST])
        _fractions(ax, rows, panels.depth_axis(ax, first, last, frame["at_risk"]))
        ax.set_ylim(0, 1.04 * top if top > 0 else 1)
        ax.yaxis.set_major_locator(MaxNLocator(nbins=5))
        ax.set_ylabel("Hazard at call k" if panels.leftmost(ax) else "")
    panels.legend(figure, _key(curves, drawn), cells.shared)
    return figure


def _points(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the points and whiskers of one panel."""
    for low, high, look, _ in _WHISKERS:
        known = rows[rows[high].notna()]
        ax.vlines(known["k"], known[low], known[high], **look)
    ax.plot(rows["k"], rows["estimate"], **_marker())


def _fractions(ax: Axes, rows: pd.DataFrame, ticks: list[int]) -> None:
    """Write errors over those at risk under each tick."""
    for row, (column, label) in enumerate((("events", "Errors"), ("at_risk", "At risk"))):
        panels.at_risk_row(ax, ticks, panels.first_of(rows, column), row, label=label if panels.leftmost(ax) else "")


def _marker() -> dict[str, Any]:
    return {"color": style.stroke(0).color, "marker": "o", "markersize": 3.4, "linestyle": "none", "clip_on": False}


def _key(data: Any, frame: pd.DataFrame) -> list[Line2D]:
    """Explain points and whiskers, where there are any."""
    level = panels.level_of(data)
    least = f"errors / at risk, if {panels.FEWEST} or more"
    handles = [Line2D([], [], label=least, **_marker())]
    return handles + [
        Line2D([], [], label=f"{level}{name}", **look)
        for _, high, look, name in reversed(_WHISKERS)
        if frame[high].notna().any()
    ]
