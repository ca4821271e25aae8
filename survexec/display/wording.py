"""How tables and figures write numbers, cells and captions: rounded and named as a paper would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pandas as pd

from survexec.display.markup import Cell, Row
from survexec.protocol.trajectory import UNKNOWN
from survexec.statistics.difference_intervals import IN_WORDS

DASH: Final = "–"
AT_RISK: Final = "At risk: about to make call k without an earlier error."
UNDEFINED: Final = "undefined (0/0); the notes say why"
# Columns of a summary, in reading order; the rest of the labels are those of the estimands.
COLUMNS: Final = {
    "ter": "TER", "mean_fed": "Mean FED", "auc_pec": "AUC-PEC", "rr_eligible": "RR-eligible", "rr": "RR",
    "success": "Success", "clean_success": "s", "success_after_error": "Success after error",
    "mean_length": "Mean length", "rollouts": "Rollouts", "tasks": "Tasks", "zero_calls": "No call",
}  # fmt: skip
IN_CALLS: Final = ("mean_fed", "mean_length")
_MARKS: Final = ("", "†", "‡", "§", "¶")
INTERVALS: Final = {
    "wilson": "Wilson",
    "wilson_effective_n": "Wilson on the effective number of rollouts",
    "bca": "BCa bootstrap over tasks",
    "percentile": "percentile bootstrap over tasks",
    "expanded_percentile": "expanded percentile bootstrap over tasks",
    "jackknife_t": "jackknife over tasks with Student's t",
    **IN_WORDS,
    "newcombe": "Newcombe, paired",
    "tango": "Tango, paired",
}
# Where half of the intervals are narrower than this, two decimals are too few.
_NARROW: Final = 0.05


def number(value: float, digits: int) -> str:
    """A number at fixed digits with a true minus sign, which zero never has; a dash where it is undefined.

    Parameters
    ----------
    value : float
    digits : int
        After the point.

    Returns
    -------
    str

    Examples
    --------
    >>> [number(value, 2) for value in (-0.254, -0.001, float("nan"))]
    ['−0.25', '0.00', '–']
    """
    return DASH if pd.isna(value) else f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def brief(value: float) -> str:
    """A number to three figures, with a true minus sign; a dash where it is undefined."""
    return DASH if pd.isna(value) else f"{value:.3g}".replace("-", "−")


def decimals(metric: str) -> int:
    """How many decimals a table gives a metric: two to calls, three to shares."""
    return 2 if metric in IN_CALLS else 3


def p_value(value: float) -> str:
    """A p-value as a paper prints it."""
    return "<0.001" if value < 0.001 else number(value, 3)


def ratio(value: float) -> str:
    """A ratio of hazards or odds to about two figures; one beyond 1000 to either side is only bounded.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> [ratio(value) for value in (0.0001, 0.078, 1.1687, 28.48, 411.0, float("inf"))]
    ['<0.001', '0.078', '1.17', '28.5', '411', '>1000']
    """
    if value < 0.001 or value > 1000:
        return "<0.001" if value < 0.001 else ">1000"
    return number(value, 3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0)


def limits(lower: str, upper: str) -> str:
    """An interval in brackets; nothing where an end of it is undefined."""
    return "" if DASH in (lower, upper) else f"[{lower}, {upper}]"


def interval(lower: float, upper: float, digits: int) -> str:
    """An interval of two numbers at fixed digits, in brackets."""
    return limits(number(lower, digits), number(upper, digits))


def estimate(row: Any, digits: int, name: str = "estimate") -> Cell:
    """A number with its interval, where it has one."""
    return Cell(number(getattr(row, name), digits), interval(row.lower, row.upper, digits))


def marks(kinds: pd.Series) -> dict[str, str]:
    """A mark for each kind of interval, such as a column of them names; the commonest has none."""
    return dict(zip([kind for kind in kinds.value_counts().index if kind], _MARKS, strict=False))


def bounded(marks: dict[str, str]) -> str:
    """How numbers were bounded: each kind of interval behind its mark."""
    return "; ".join(f"{mark + ': ' if mark else ''}{INTERVALS.get(kind, kind)}" for kind, mark in marks.items())


def sides(row: Any, name: str, digits: int) -> tuple[Cell, Cell]:
    """A number of both sides, each with its denominator."""
    a, b = (Cell(number(getattr(row, f"{name}_{s}"), digits), f"({getattr(row, f'denominator_{s}')})") for s in "ab")
    return a, b


def split_by(frame: pd.DataFrame, by: Sequence[str]) -> tuple[list[str], str]:
    """Cell columns that vary, and the values all cells share, in words; what nobody knows is left out."""
    varying = [name for name in by if frame[name].nunique() > 1]
    shared = [str(frame[name].iloc[0]) for name in by if name not in varying and len(frame)]
    return varying, ", ".join(value for value in shared if value != UNKNOWN)


def groups(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Rows of each cell, in order of appearance."""
    return iter(frame.groupby(list(by), sort=False)) if by else iter([((), frame)])


def pair_name(key: Sequence[Any], counted: str = "") -> str:
    """Values of the columns a pair shares, then its two sides; no b: all sides at once."""
    *place, a, b = map(str, key)
    sides = [f"a = {a}", f"b = {b}"] if b else ["all at once"]
    return ", ".join([*place, *sides]) + (f" ({counted})" if counted else "")


def title(varying: Sequence[str]) -> str:
    """Cell columns as one heading."""
    return " / ".join(name.capitalize() for name in varying)


def digits_of(frame: pd.DataFrame) -> int:
    """Decimals of shares: two, or three where the intervals are too narrow for two."""
    width = frame["upper"] - frame["lower"]
    return 3 if width[width > 0].median() < _NARROW else 2


def caption(what: str, result: Any, shared: str = "", bounded: bool = True) -> str:
    """What a table shows, where, under which rule, and the level of its intervals where it has any."""
    rule = f"{result.made['rule']} rule"
    level = f"{100 * result.made['level']:g}% intervals" if bounded and "level" in result.made else ""
    return f"{what}{': ' + shared if shared else ''} ({', '.join(filter(None, [rule, level]))})."


def dash(rows: Sequence[Row], meaning: str) -> str:
    """A word on the dash, where there is one."""
    return f" {DASH}: {meaning}." if any(cell.text == DASH for row in rows for cell in row.cells) else ""


def methods_of(frame: pd.DataFrame, column: str, names: Callable[[str], str]) -> str:
    """Which method stands behind which metric: "Wilson (TER, RR); BCa (Mean FED)"."""
    used = frame[frame[column].astype(str) != ""].drop_duplicates([column, "metric"])
    listed = [
        f"{names(str(method))} ({', '.join(COLUMNS[m] for m in COLUMNS if m in set(rows['metric']))})"
        for method, rows in used.groupby(column, sort=False)
    ]
    return "; ".join(listed)
