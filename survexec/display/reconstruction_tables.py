"""Tables of audits of published tables, of reconstructed cohorts and of what published numbers leave open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import DASH, dash, interval, number, split_by
from survexec.statistics.published import LABELS, label_of

# What an audit shows of each row: counts, then shares.
_COUNTS: Final = {"clean": "Clean", "recovered": "Recovered", "successes": "Successes"}
_SHARES: Final = {"s": "s", "success_after_error": "Success after error"}
_NAMES: Final = {
    **LABELS, "clean": "clean rollouts", "recovered": "recovered", "clean_success": "clean successes",
    "successes": "successes", "mean_length": "mean length", "pec": "PEC", "pec_elig": "PEC_elig", "hazard": "hazard",
    "km": "Kaplan-Meier",
}  # fmt: skip
_IN_COUNTS: Final = ("clean", "rr_eligible", "recovered", "clean_success", "successes")
_MADE: Final = "Reconstructed from published aggregates; no such rollout was observed"


def span(low: float, high: float, digits: int) -> str:
    """A range as text: one number where both ends print the same, rounded outwards so that it never claims too much.

    Parameters
    ----------
    low, high : float
    digits : int

    Returns
    -------
    str

    Examples
    --------
    >>> span(138, 139, 0), span(0.9324, 0.9456, 3), span(0.5, 0.5, 2)
    ('138 to 139', '0.932 to 0.946', '0.50')
    """
    if np.isnan(low):
        return DASH
    step = 10.0**digits
    ends = [
        number(float(np.floor(low * step + 1e-6) / step), digits),
        number(float(np.ceil(high * step - 1e-6) / step), digits),
    ]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _labels(frame: pd.DataFrame, by: tuple[str, ...]) -> tuple[list[str], str]:
    """Columns that name a row, its number first, and what all rows share."""
    varying, shared = split_by(frame, by)
    return ["row", *varying], f": {shared}" if shared else ""


def _named(row: Any, names: list[str]) -> list[Cell]:
    return [Cell(str(getattr(row, name))) for name in names]


def _audit(result: Any) -> Grid:
    """One row a published row: whether it can be, and which counts it leaves open."""
    names, shared = _labels(result.verdicts, result.by)
    values = {key: part.set_index("quantity") for key, part in result.frame.groupby("row")}
    rows = []
    for row in result.verdicts.itertuples():
        here = values[row.row]
        spans = [(name, 0) for name in _COUNTS] + [(name, 3) for name in _SHARES]
        texts = [span(here["lower"][name], here["upper"][name], digits) for name, digits in spans]
        wrong = ", ".join(map(label_of, row.culprit.split(", "))) if row.culprit else ""
        beyond = "" if row.consistent or np.isnan(row.gap) else f"(by {row.gap:.3g})"
        verdict = Cell("yes") if row.consistent else Cell(f"no: {wrong}", beyond)
        rows.append(Row((*_named(row, names), verdict, *map(Cell, texts))))
    header = (*(name.capitalize() for name in names), "Consistent", *_COUNTS.values(), *_SHARES.values())
    foot = (
        "Ranges: every cohort that prints the row, halves rounded up or to even; in a row that contradicts itself, "
        "without the column named."
    )
    return Grid(
        header, tuple(rows), len(names) + 1, f"Audit of published numbers{shared}.", "tab:audit",
        foot + dash(rows, "undefined (0/0)"),
    )  # fmt: skip


def _reconstruction(result: Any) -> Grid:
    """One row a published row: its cohort in counts."""
    names, shared = _labels(result.frame, result.by)
    counts = {
        "n": "Rollouts", "clean": "Clean", "rr_eligible": "RR-eligible", "recovered": "Recovered",
        "clean_success": "Clean successes",
    }  # fmt: skip
    means = {"mean_fed": "Mean FED", "auc_pec": "AUC-PEC", "mean_length": "Mean length"}
    rows = []
    for row in result.frame.itertuples():
        texts = [number(getattr(row, name), 0) for name in counts] + [number(getattr(row, name), 3) for name in means]
        rows.append(Row((*_named(row, names), *map(Cell, texts), Cell("yes" if row.met else "no"))))
    header = (*(name.capitalize() for name in names), *counts.values(), *means.values(), "Prints the row")
    which = "a random cohort" if result.made["draw"] else "the cohort of greatest entropy"
    return Grid(
        header, tuple(rows), len(names), f"Cohorts that print a published table{shared} (reconstructed).",
        "tab:reconstruction", f"{_MADE}: {which} of each row." + dash(rows, "no cohort, or nothing printed on success"),
    )  # fmt: skip


def _bounds(result: Any) -> Grid:
    """One row a published row: least and greatest value."""
    names, shared = _labels(result.frame, result.by)
    quantity, k = result.made["quantity"], result.made["k"]
    digits = 0 if quantity in _IN_COUNTS else 3
    rows = []
    for row in result.frame.itertuples():
        ends = span(row.lower, row.upper, digits)
        texts = [ends, DASH if np.isnan(row.published) else f"{row.published:g}", "sharp" if row.sharp else "outer"]
        rows.append(Row((*_named(row, names), *map(Cell, texts))))
    name = _NAMES[quantity] + ("" if k is None else f"({k})")
    return Grid(
        (*(label.capitalize() for label in names), "Bounds", "Published", "Kind"), tuple(rows), len(names),
        f"What published numbers leave open of {name}{shared} (reconstructed).", "tab:reconstruction_bounds",
        "Over every cohort that prints the row, ends rounded outwards." + dash(rows, "not published, or undefined"),
    )  # fmt: skip


def _difference_bounds(result: Any) -> Grid:
    """One row a pair: the difference, its error over pairings, and two intervals."""
    names, shared = split_by(result.frame, (*result.by, "a", "b"))
    rows = []
    for row in result.frame.itertuples():
        texts = [
            span(row.difference_lower, row.difference_upper, 3), span(row.se_lower, row.se_upper, 3),
            interval(row.lower, row.upper, 3),
            interval(row.lower_independent, row.upper_independent, 3),
        ]  # fmt: skip
        rows.append(Row((*_named(row, names), *map(Cell, texts))))
    where = f": {shared}" if shared else ""
    header = (*(name.capitalize() for name in names), "a − b", "Standard error", "Any pairing", "Independent")
    level = f"{100 * result.made['level']:g}% intervals"
    return Grid(
        header, tuple(rows), max(len(names), 1), f"Differences of {_NAMES[result.made['metric']]} without their pairing"
        f"{where} (reconstructed, {level}).", "tab:difference_bounds",
        "Which tasks two methods share was not published: errors over every pairing, and the interval of the worst.",
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {
    "audit": _audit,
    "reconstruction": _reconstruction,
    "reconstruction_bounds": _bounds,
    "difference_bounds": _difference_bounds,
}
