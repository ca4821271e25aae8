"""What a published table is: rows of printed, rounded numbers, each standing for an interval of real values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import UNKNOWN
from survexec.statistics.printed_text import printed_cells
from survexec.statistics.tally import CELL

LABELS: Final = {
    "n": "n", "ter": "TER", "mean_fed": "mean FED", "auc_pec": "AUC-PEC", "rr_eligible": "RR-eligible", "rr": "RR",
    "s": "s", "success": "success", "success_after_error": "success after error",
}  # fmt: skip
# Headings as they are printed, without case, signs or spaces; the first that is there wins.
_HEADINGS: Final = {
    "n": ("n", "rollouts", "nrollouts", "runs", "tasks", "ntasks", "size"),
    "ter": ("ter", "taskexecutabilityrate", "fullyexecutable", "trajectoryexecutabilityrate"),
    "mean_fed": ("meanfed", "fed", "avgfed", "averagefed"),
    "auc_pec": ("aucpec", "pecauc", "auc"),
    "rr_eligible": ("rreligible", "rrelig", "eligible", "neligible", "rrn"),
    "rr": ("rr", "recoveryrate", "recovery"),
    "s": ("s", "cleansuccess"),
    "success": ("success", "finalsuccess", "successrate", "finalsuccessrate", "sr", "passrate"),
    "success_after_error": ("successaftererror",),
    "benchmark": ("benchmark", "dataset", "environment"),
    "model": ("model", "llm", "backbone"),
    "method": ("method", "strategy", "agent", "approach"),
}
_PEC: Final = re.compile(r"pec(\d+)")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NOTHING: Final = ("", "-", "–", "—", "na", "n/a", "nan", "none", "null", "<na>")
_MOST_DECIMALS: Final = 8
_MOST_ROLLOUTS: Final = 1_000_000
_FINER: Final = 100  # steps of a unit in which the distance of a contradiction is told


@dataclass(frozen=True)
class Printed:
    """One printed number: the real values that print so, as the closed interval [lower, upper] / unit.

    Parameters
    ----------
    quantity : str
        A name of `LABELS`, or "pec_3" for PEC at depth 3.
    text : str
        As it was printed.
    lower, upper, unit : int
        Half a last digit to either side, in whole numbers; a count has no width. Values on the edge are in it: 0.725
        prints as 0.73 when halves go up and as 0.72 when they go to even; 0.355 as 0.35 when it is kept in binary.
    digit : int
        One step of the last digit, in the same unit.
    """

    quantity: str
    text: str
    lower: int
    upper: int
    unit: int
    digit: int

    @property
    def value(self) -> float:
        """The number as printed."""
        return (self.lower + self.upper) / (2 * self.unit)

    def allows(self, value: Fraction) -> bool:
        """Whether a real value prints so, exactly."""
        return self.lower <= value * self.unit <= self.upper

    @property
    def label(self) -> str:
        """Its name for people."""
        return label_of(self.quantity)


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table.

    Parameters
    ----------
    row : int
        Its number, from 1.
    cell : tuple of str
        Benchmark, model and method.
    n : int
        Number of rollouts.
    printed : dict of str to Printed
        What was printed of it, without n.
    """

    row: int
    cell: tuple[str, ...]
    n: int
    printed: dict[str, Printed]

    @property
    def depths(self) -> dict[int, Printed]:
        """Printed PEC by depth, shallow first."""
        found = {int(name[4:]): cell for name, cell in self.printed.items() if name.startswith("pec_")}
        return dict(sorted(found.items()))

    def inside(self, name: str) -> PublishedRow:
        """The same row without the edges of one interval, where conventions of rounding differ."""
        cell = self.printed[name]
        inner = replace(cell, lower=cell.lower + 1, upper=cell.upper - 1) if cell.digit > 1 else cell
        return replace(self, printed={**self.printed, name: inner})

    @property
    def name(self) -> str:
        """The row for a message."""
        known = [label for label in self.cell if label != UNKNOWN]
        return f"row {self.row}" + (f" ({' / '.join(known)})" if known else "")

    def identity(self) -> dict[str, Any]:
        """The columns that name the row in a frame."""
        return {"row": self.row, **dict(zip(CELL, self.cell, strict=True))}


@dataclass(frozen=True)
class Published:
    """A published table.

    Parameters
    ----------
    rows : tuple of PublishedRow
    source : str
    notes : tuple of str
        How its columns were understood.
    """

    rows: tuple[PublishedRow, ...]
    source: str
    notes: tuple[str, ...]


def label_of(quantity: str) -> str:
    """The name of a quantity for people.

    Examples
    --------
    >>> label_of("pec_3"), label_of("mean_fed")
    ('PEC(3)', 'mean FED')
    """
    return f"PEC({quantity[4:]})" if quantity.startswith("pec_") else LABELS[quantity]


def read_published(
    table: Any, columns: Mapping[str, str] | None = None, decimals: int | Mapping[str, int] | None = None
) -> Published:
    r"""Read a published table: which column is what, and which real values each printed number stands for.

    Parameters
    ----------
    table : str, Path or pandas.DataFrame
        A file or its text (CSV, Markdown, LaTeX), or a frame.
    columns : mapping of str to str, optional
        survexec's name -> the table's heading, where the heading is not understood; for ``n`` a whole number does too.
    decimals : int or mapping of str to int, optional
        Printed decimals. By default those of the column's longest number, since frames and spreadsheets drop zeros.

    Returns
    -------
    Published

    Raises
    ------
    InputError
        No column is understood, n is not known, or a value is impossible.

    Examples
    --------
    >>> table = read_published("method,n,TER,Success\nplan,200,0.47,0.94\n")
    >>> ter = table.rows[0].printed["ter"]
    >>> ter.lower / ter.unit, ter.upper / ter.unit
    (0.465, 0.475)
    """
    if isinstance(table, pd.DataFrame):
        frame, source = table.reset_index(drop=True), "frame"
    elif isinstance(table, str | Path):
        frame, source = printed_cells(table)
    else:
        raise InputError(f"table is a {type(table).__name__}; it must be a path, the text of a table, or a data frame")
    frame = frame.rename(columns=str)
    if frame.empty:
        raise InputError(f"{source}: the table has no rows")
    columns = {str(ours): str(theirs) for ours, theirs in (columns or {}).items()}
    found = _columns(frame, columns, source)
    text = {ours: [_text(value) for value in frame[theirs]] for ours, theirs in found.items()}
    if "n" not in found:
        text["n"] = [columns["n"]] * len(frame)
    cells = {ours: _printed(ours, found.get(ours, "n"), text[ours], decimals) for ours in text if ours not in CELL}
    names = {label: _carried(text[label]) if label in text else [UNKNOWN] * len(frame) for label in CELL}
    rows = []
    for at in range(len(frame)):
        printed = {name: column[at] for name, column in cells.items() if column[at] is not None}
        n = printed.pop("n", None)
        if n is None or not 1 <= n.lower <= _MOST_ROLLOUTS:
            raise InputError(
                f"row {at + 1}: n = {text['n'][at]!r}; it must be a number of rollouts, 1 to {_MOST_ROLLOUTS}"
            )
        cell = tuple(names[label][at] for label in CELL)
        rows.append(PublishedRow(at + 1, cell, n.lower, {k: v for k, v in printed.items() if v is not None}))
    left = [name for name in frame.columns if name not in found.values()]
    notes = [f"{source}: columns not used: {', '.join(left)}"] if left else []
    return Published(tuple(rows), source, tuple(notes))


def _columns(frame: pd.DataFrame, given: dict[str, str], source: str) -> dict[str, str]:
    """Survexec's name -> the heading of the table."""
    there = ", ".join(frame.columns)
    known = [*_HEADINGS, "pec_1", "pec_2", "..."]
    found = {}
    for ours, theirs in given.items():
        if ours not in _HEADINGS and not re.fullmatch(r"pec_\d+", ours):
            raise InputError(f"columns: {ours!r} is no quantity of a published table; there are: {', '.join(known)}")
        if theirs in frame.columns:
            found[ours] = theirs
        elif not (ours == "n" and theirs.isdecimal()):
            close = difflib.get_close_matches(theirs, frame.columns, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{source}: no column {theirs!r} for {ours}{hint} The columns are: {there}")
    free = [name for name in frame.columns if name not in found.values()]
    plain = {name: re.sub(r"[^a-z0-9]", "", re.sub(r"\\[A-Za-z]+", "", name).lower()) for name in free}
    for ours, headings in _HEADINGS.items():
        match = [name for heading in headings for name in free if plain[name] == heading]
        if ours not in given and match:
            found[ours] = match[0]
    for name in free:
        depth = _PEC.fullmatch(plain[name].replace("at", ""))
        if depth and int(depth.group(1)) > 0:
            found.setdefault(f"pec_{int(depth.group(1))}", name)
    if not set(found) - {*CELL, "n"}:
        raise InputError(
            f"{source}: no column of published numbers is understood; the columns are: {there}. Name them, such as "
            f"columns={{'ter': {frame.columns[-1]!r}}}; quantities are: {', '.join(LABELS)}, pec_1, pec_2, ..."
        )
    if "n" not in found and "n" not in given:
        raise InputError(
            f"{source}: no column with the number of rollouts; name it, or give it: columns={{'n': '200'}}. "
            f"The columns are: {there}"
        )
    return found


def _text(value: Any) -> str:
    """A cell as text: empty where nothing was printed."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    text = str(value).strip().replace("−", "-")
    return "" if text.lower() in _NOTHING else text


def _carried(names: list[str]) -> list[str]:
    """Names with empty cells filled from above, as a table prints them once."""
    out, last = [], UNKNOWN
    for name in names:
        last = name or last
        out.append(last)
    return out


def _printed(
    name: str, heading: str, texts: list[str], decimals: int | Mapping[str, int] | None
) -> list[Printed | None]:
    """The printed numbers of a column."""
    found = [_NUMBER.search(text.replace(",", "") if name in ("n", "rr_eligible") else text) for text in texts]
    for at, (text, match) in enumerate(zip(texts, found, strict=True), 1):
        if text and match is None:
            raise InputError(f"row {at}: {heading} = {text!r}; it must be a number, or empty where none was printed")
    numbers = [None if match is None else Decimal(match.group()) for match in found]
    values = [value for value in numbers if value is not None]
    if name in ("n", "rr_eligible"):
        for at, value in enumerate(numbers, 1):
            if value is not None and (value != int(value) or value < 0):
                raise InputError(f"row {at}: {heading} = {texts[at - 1]!r}; it must be a count")
        return [None if v is None else Printed(name, str(int(v)), int(v), int(v), 1, 1) for v in numbers]
    share = name != "mean_fed"
    percent = share and (any("%" in text for text in [heading, *texts]) or median(values or [Decimal(0)]) > 1)
    given = decimals.get(name) if isinstance(decimals, Mapping) else decimals
    if given is not None and not 0 <= given <= _MOST_DECIMALS:
        raise InputError(f"decimals = {given!r}; it must be a whole number from 0 to {_MOST_DECIMALS}")
    shown = max((-int(value.normalize().as_tuple().exponent) for value in values), default=0)
    shown = max([shown, *(len(m.group().partition(".")[2]) for m in found if m and "e" not in m.group().lower())])
    places = min(given if given is not None else max(shown, 0), _MOST_DECIMALS - (2 if percent else 0))
    out: list[Printed | None] = []
    for at, value in enumerate(numbers, 1):
        if value is None:
            out.append(None)
            continue
        if value < 0 or (share and value > (100 if percent else 1)) or (not share and value < 1):
            wish = "between 0 and " + ("100%" if percent else "1") if share else "1 or more"
            raise InputError(f"row {at}: {heading} = {texts[at - 1]!r}; {LABELS.get(name, name)} is {wish}")
        out.append(_rounded(name, texts[at - 1], value, places, percent))
    return out


def _rounded(name: str, text: str, value: Decimal, places: int, percent: bool) -> Printed:
    """The interval of real values that print as a number with this many decimals."""
    middle = int((value * 10**places).to_integral_value()) * 2 * _FINER
    unit = 2 * _FINER * 10 ** (places + (2 if percent else 0))
    return Printed(name, text, middle - _FINER, middle + _FINER, unit, 2 * _FINER)
