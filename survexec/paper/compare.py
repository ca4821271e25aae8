"""The last step: every printed cell against what was published."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from survexec.datasets import load_published
from survexec.errors import SurvexecError
from survexec.paper import cost, main_table, pec_at_k, tau3_transfer
from survexec.paper.cohort import NAMES, place
from survexec.statistics.printed_text import printed_cells

# Piece -> the published table, and which of its columns stands under which heading.
CHECKED: Final = {
    "main_table": ("main", {head: name for head, (name, _) in main_table.COLUMNS.items()}),
    "pec_at_k": ("pec_at_k", {f"PEC@{k}": f"pec_{k}" for k in pec_at_k.DEPTHS}),
    "tau3_transfer": ("tau3", tau3_transfer.COLUMNS),
    "cost": ("cost", cost.COLUMNS),
}


@dataclass(frozen=True)
class Comparison:
    """Printed cells beside published ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a published cell: ``table, row, column, ours, published, agrees``.
    """

    frame: pd.DataFrame

    def __str__(self) -> str:
        counts = self.frame.groupby("table", sort=False)["agrees"].agg(["sum", "size"])
        each = " + ".join(f"{row.sum} ({name})" for name, row in zip(counts.index, counts.itertuples(), strict=True))
        return f"{int(self.frame['agrees'].sum())} of {len(self.frame)} published cells matched: {each}"

    def demand(self) -> None:
        """Insist that all agree.

        Raises
        ------
        SurvexecError
            Names each cell that does not: table, row, column, ours, published.
        """
        wrong = self.frame[~self.frame["agrees"]]
        if len(wrong):
            lines = [
                f"  - {row.table}, {row.row}, {row.column}: ours {row.ours or 'nothing'}, published {row.published}"
                for row in wrong.itertuples()
            ]
            raise SurvexecError("\n".join([f"{len(wrong)} of {len(self.frame)} cells differ:", *lines]))


def compare(out: Path, names: Iterable[str] = tuple(CHECKED)) -> Comparison:
    """Compare the Markdown tables of a folder with the published ones, as texts: to the last printed digit.

    Parameters
    ----------
    out : Path
    names : iterable of str
        Which of the checked tables.

    Returns
    -------
    Comparison
    """
    rows = []
    for name in names:
        source, columns = CHECKED[name]
        shown = printed((out / f"{name}.md").read_text(encoding="utf-8"), columns)
        for cell in load_published(source, printed=True).to_dict("records"):
            row = _row_name(cell)
            for head, column in columns.items():
                if cell[column]:
                    ours = shown.get((row, head), "")
                    rows.append((name, row, head, ours, cell[column], ours == cell[column]))
    return Comparison(pd.DataFrame(rows, columns=["table", "row", "column", "ours", "published", "agrees"]))


def printed(text: str, columns: Iterable[str]) -> dict[tuple[str, str], str]:
    r"""The numbers of a Markdown table by the name of their row and their heading.

    Parameters
    ----------
    text : str
    columns : iterable of str
        Headings of numbers; the other columns name the row.

    Returns
    -------
    dict

    Examples
    --------
    >>> printed("| Method | TER |\n|:--|--:|\n| ReAct | −0.69† [0.6, 0.7] |", ["TER"])
    {('ReAct', 'TER'): '-0.69'}
    """
    found = {}
    for row in printed_cells(text)[0].to_dict("records"):
        name = ", ".join(value for head, value in row.items() if head not in columns)
        for head in columns:
            number = re.match(r"[+-]?\d+(\.\d+)?", row[head].replace("−", "-"))
            found[name, head] = number[0] if number else ""
    return found


def _row_name(cell: dict[str, str]) -> str:
    """How our tables name a published row."""
    if "method" not in cell:
        return NAMES[cell["model"]]
    return f"{place(cell['benchmark'], cell['model'])}, {NAMES[cell['method']]}"
