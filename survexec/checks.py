"""The rules of the table of rollouts: its columns, their types and values. Faults name row, column and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pandera.pandas as pa

from survexec.protocol.trajectory import UNKNOWN, Ending, ErrorClass

KEY: Final = ("benchmark", "model", "method", "task_id", "trial")
ENDINGS: Final = [str(e) for e in Ending]
CLASSES: Final = [str(c) for c in ErrorClass]
_NUMBERS: Final = ("tokens", "latency_s", "cost_usd", "overhead_tokens", "overhead_latency_s")
COLUMNS: Final = (
    *KEY, "stratum", "length", "fed", "ending", "success", "error_class", "invalid_calls", *_NUMBERS, "source",
)  # fmt: skip
REQUIRED: Final = ("task_id", "length", "fed")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of one row (or of the whole table: row 0)."""

    row: int
    text: str
    index: int = -1


_SCHEMA: Final = pa.DataFrameSchema(
    {
        "trial": pa.Column("Int64", pa.Check.ge(0, error="a trial is a whole number from 0")),
        "length": pa.Column("Int64", pa.Check.ge(0, error="a length is a number of calls, 0 or more"), nullable=False),
        "fed": pa.Column("Int64", nullable=False),
        "ending": pa.Column(object, pa.Check.isin(ENDINGS, error=f"an ending is one of {', '.join(ENDINGS)}")),
        "error_class": pa.Column(
            object, pa.Check.isin(CLASSES, error=f"a class is one of {', '.join(CLASSES)}"), nullable=True
        ),
    },
    strict=False,
)


def conform(table: pd.DataFrame) -> tuple[pd.DataFrame, list[Fault]]:
    """Bring a table to the columns and types of `Rollouts.frame`; values that cannot be are faults.

    Parameters
    ----------
    table : pandas.DataFrame
        At least ``task_id``, ``length``, ``fed``. A column ``row`` names rows in messages; else they count from 1.

    Returns
    -------
    frame : pandas.DataFrame
        All columns of `COLUMNS`, and ``row``. A value that could not be converted is missing there.
    faults : list of Fault

    Examples
    --------
    >>> import pandas as pd
    >>> frame, faults = conform(pd.DataFrame({"task_id": [7], "length": [3], "fed": ["two"]}))
    >>> faults[0].text
    "row 1: fed = 'two'; it must be a whole number"
    """
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        there = ", ".join(map(str, table.columns)) or "none"
        raise_text = f"no column {', '.join(map(repr, missing))}; the columns are: {there}"
        return pd.DataFrame(columns=[*COLUMNS, "row"]), [Fault(0, raise_text)]
    n, faults = len(table), []
    table = table.reset_index(drop=True)
    row = table["row"].to_numpy("int64") if "row" in table.columns else np.arange(1, n + 1)
    out: dict[str, Any] = {}
    for name in COLUMNS:
        given = table[name] if name in table.columns else None
        if name in ("length", "fed", "trial", "invalid_calls"):
            out[name], bad = _whole(given, n, default=0 if name == "trial" else None)
            faults += _faults(row, name, given, bad, "it must be a whole number")
        elif name == "success":
            out[name], bad = _truth(given, n)
            faults += _faults(row, name, given, bad, "it must be 0 or 1 (graded scores need a success threshold)")
        elif name in _NUMBERS:
            values = pd.Series(np.nan, index=range(n)) if given is None else pd.to_numeric(given, errors="coerce")
            bad = np.zeros(n, bool) if given is None else (values.isna() & given.notna()).to_numpy()
            out[name] = values.astype("float64")
            faults += _faults(row, name, given, bad, "it must be a number")
        else:
            out[name] = _text(name, given, n)
    missing_task = pd.isna(out["task_id"]).to_numpy()
    faults += _faults(row, "task_id", out["task_id"], missing_task, "a rollout needs the identity of its task")
    frame = pd.DataFrame({**out, "row": row})
    return _filled(frame), faults


def faults_in(frame: pd.DataFrame) -> list[Fault]:
    """Every value of a conformed table that breaks a rule, and every repeated key.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `conform` returned.

    Returns
    -------
    list of Fault
        Without those that `conform` has already found.

    Examples
    --------
    >>> import pandas as pd
    >>> frame, _ = conform(pd.DataFrame({"task_id": [7], "length": [3], "fed": [0]}))
    >>> faults_in(frame)[0].text
    'row 1: fed = 0; with length = 3 a first-error depth is between 1 and 4'
    """
    faults: list[Fault] = []
    row = frame["row"].to_numpy()
    try:
        _SCHEMA.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as error:
        cases = error.failure_cases
        for case in cases[cases["index"].notna()].to_dict("records"):
            if pd.isna(case["failure_case"]):
                continue
            at = int(case["index"])
            text = f"row {row[at]}: {case['column']} = {_shown(case['failure_case'])}; {case['check']}"
            faults.append(Fault(int(row[at]), text, at))
    length, fed = frame["length"], frame["fed"]
    outside = ((fed < 1) | (fed > length + 1)) & (length >= 0)
    for at in map(int, np.flatnonzero(outside.fillna(False).to_numpy(bool))):
        text = (
            f"row {row[at]}: fed = {fed.iloc[at]}; with length = {length.iloc[at]} a first-error depth is between "
            f"1 and {length.iloc[at] + 1}"
        )
        faults.append(Fault(int(row[at]), text, at))
    classless = frame["error_class"].notna() & (fed > length).fillna(False).astype(bool)
    for at in map(int, np.flatnonzero(classless.to_numpy(bool))):
        text = (
            f"row {row[at]}: error_class = {_shown(frame['error_class'].iloc[at])} but there is no error "
            f"(fed = {fed.iloc[at]} > length = {length.iloc[at]}); it must be empty"
        )
        faults.append(Fault(int(row[at]), text, at))
    return faults + _repeated(frame)


def _repeated(frame: pd.DataFrame) -> list[Fault]:
    """A fault for each row whose key stands in an earlier row."""
    keys = frame[list(KEY)].astype("string").fillna("")
    codes = keys.groupby(list(KEY), sort=False).ngroup().to_numpy()
    first = pd.Series(np.arange(len(frame))).groupby(codes).transform("first").to_numpy()
    faults = []
    for at in np.flatnonzero(first != np.arange(len(frame))):
        here, there = frame.iloc[at], frame.iloc[first[at]]
        key = ", ".join(f"{name} = {_shown(here[name])}" for name in KEY)
        where = f"row {there['row']}" + (f" of {there['source']}" if there["source"] != here["source"] else "")
        hint = (
            "; if the files are different methods or models, take the name from the path (--from-path '{method}.json')"
            if there["source"] != here["source"]
            else "; number the repetitions of a task in the column trial"
        )
        faults.append(Fault(int(here["row"]), f"row {here['row']}: {key} is already in {where}{hint}", int(at)))
    return faults


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Neutral values where nothing was said, and an error without a class is unclassified."""
    event = (frame["fed"] <= frame["length"]).fillna(False).astype(bool)
    unnamed = event & frame["error_class"].isna()
    frame["error_class"] = frame["error_class"].mask(unnamed, str(ErrorClass.UNCLASSIFIED))
    whole = ("length", "fed", "trial")
    if not frame[list(whole)].isna().to_numpy().any():
        frame = frame.astype(dict.fromkeys(whole, "int64"))
    return frame


def _whole(given: pd.Series | None, n: int, default: int | None) -> tuple[pd.Series, np.ndarray]:
    """Whole numbers (nullable), and which given values are none."""
    if given is None:
        return pd.Series([default] * n, dtype="Int64"), np.zeros(n, bool)
    numbers = pd.to_numeric(given, errors="coerce").astype("Float64")
    whole = (numbers == numbers.round()).fillna(False).to_numpy(bool)
    bad = ~whole if default is None else ~whole & given.notna().to_numpy()
    if given.name == "invalid_calls":
        bad = ~whole & given.notna().to_numpy()
    values = numbers.where(pd.Series(whole), default if default is not None else pd.NA)
    return values.astype("Int64"), bad


_TRUTHS: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def _truth(given: pd.Series | None, n: int) -> tuple[pd.Series, np.ndarray]:
    """Nullable booleans, and which given values are none."""
    if given is None:
        return pd.Series([pd.NA] * n, dtype="boolean"), np.zeros(n, bool)
    known = given.notna().to_numpy() & (given.astype("string").str.strip() != "").fillna(False).to_numpy(bool)
    values = given.astype("string").str.strip().str.lower().map(_TRUTHS)
    bad = known & values.isna().to_numpy()
    return values.astype("boolean"), bad


def _text(name: str, given: pd.Series | None, n: int) -> pd.Series:
    """Text; numbers such as a task's 7 or 7.0 become "7"."""
    defaults = {"benchmark": UNKNOWN, "model": UNKNOWN, "method": UNKNOWN, "ending": "completed", "source": ""}
    if given is None:
        return pd.Series([defaults.get(name)] * n, dtype=object)
    if pd.api.types.is_float_dtype(given.dtype) and (given.dropna() % 1 == 0).all():
        given = given.astype("Int64")
    text = given.astype("string").str.strip()
    text = text.mask(text == "")
    if name in defaults:
        text = text.fillna(defaults[name])
    return text.astype(object).where(text.notna(), None)


def _faults(row: np.ndarray, name: str, given: pd.Series | None, bad: np.ndarray, wish: str) -> list[Fault]:
    """One fault for each bad value of a column."""
    return [
        Fault(int(row[at]), f"row {row[at]}: {name} = {_shown(given.iloc[at])}; {wish}", int(at))
        for at in np.flatnonzero(bad)
        if given is not None
    ]


def _shown(value: Any) -> str:
    """A value for a message: as a person typed it, and short."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "nothing"
    value = value.item() if isinstance(value, np.generic) else value
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
