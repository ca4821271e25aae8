"""Tables with one row a rollout: CSV, Parquet, a frame in memory. `survexec.rollouts` checks the values."""

from __future__ import annotations

import csv
import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from survexec.errors import InputError
from survexec.protocol.readers.documents import Document, Reading, Shape, UnreadableError, one_line
from survexec.protocol.trajectory import Ending

# Columns of a table of rollouts in their order, and what each holds.
COLUMNS = {
    "benchmark": "text",
    "model": "text",
    "method": "text",
    "task_id": "text",
    "trial": "number",
    "stratum": "text",
    "length": "number",
    "fed": "number",
    "ending": "text",
    "success": "truth",
    "error_class": "text",
    "invalid_calls": "number",
    "tokens": "number",
    "latency_s": "number",
    "cost_usd": "number",
    "overhead_tokens": "number",
    "overhead_latency_s": "number",
    "source": "text",
}
REQUIRED = ("task_id", "length", "fed")
OWN_MARK = b"survexec"  # key in the metadata of a Parquet file that survexec wrote itself
_MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None"]
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


@dataclass(frozen=True)
class TableReader:
    """Reads tables with one row a rollout.

    Parameters
    ----------
    columns : mapping of str to str
        survexec's name -> the table's own column; a column that has survexec's name needs no entry.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    name = "table"
    expects = f"a CSV or Parquet table with the columns {', '.join(REQUIRED)}"

    def recognises(self, document: Document) -> bool:
        """Whether it is a table at all; which columns it has is seen on reading."""
        if document.shape is Shape.TEXT:
            return len(_header(document)[0]) > 1
        return document.shape is Shape.PARQUET

    def read(self, document: Document) -> Reading:
        """Read the table."""
        if document.shape is Shape.PARQUET:
            frame = _parquet(document)
            if frame is None:
                return Reading(document.source, "survexec")
        elif document.shape is Shape.TEXT:
            frame = _csv(document, self.columns)
        else:
            raise UnreadableError(f"{document.describe()}; wanted is {self.expects}")
        return _named(frame, self.columns, document.source)


def read_table(frame: Any, *, columns: Mapping[str, str] | None = None, source: str = "frame") -> Reading:
    """Read a table of rollouts from a frame in memory.

    Parameters
    ----------
    frame : pandas, polars, pyarrow or any other frame that narwhals knows
        One row a rollout; needs the columns task_id, length and fed.
    columns : mapping of str to str, optional
        survexec's name -> the frame's own column.
    source : str
        Name of the frame in the ledger.

    Returns
    -------
    Reading
        With `frame` under survexec's names, values unchecked.

    Raises
    ------
    InputError
        The frame lacks a required column, is no frame, or `columns` has a name that survexec does not know.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"task": [1, 2], "T": [4, 6], "FED": [5, 2]})
    >>> reading = read_table(table, columns={"task_id": "task", "length": "T", "fed": "FED"})
    >>> reading.frame[["task_id", "length", "fed", "ending", "row"]]
      task_id  length  fed     ending  row
    0       1       4    5  completed    1
    1       2       6    2  completed    2
    """
    import narwhals as nw  # files need none of it, and loading it takes time

    check_names(columns or {})
    try:
        known = nw.from_native(frame)
    except (TypeError, nw.exceptions.DuplicateError) as error:
        kind = type(frame).__name__
        reason = one_line(str(error), 120)
        raise InputError(f"{source}: {kind} is no frame with distinct columns: {reason}") from None
    eager = known.collect() if isinstance(known, nw.LazyFrame) else known
    return _named(eager.to_pandas(), columns or {}, source)


def check_names(columns: Mapping[str, str]) -> None:
    """Raise `InputError` where a column mapping has a name that survexec does not know."""
    for name in columns:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f": did you mean {near[0]!r}?" if near else f": known are {', '.join(COLUMNS)}"
            raise InputError(f"{name!r} is no column of a table of rollouts{hint}")


def _header(document: Document) -> tuple[list[str], str]:
    """Names in the first line, and what separates them."""
    line = document.head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    separator = max(",;\t", key=line.count)
    return next(csv.reader([line], delimiter=separator)), separator


def _csv(document: Document, columns: Mapping[str, str]) -> pd.DataFrame:
    names, separator = _header(document)
    text = {columns.get(name, name) for name, kind in COLUMNS.items() if kind == "text"} & set(names)
    # In text only an empty cell is missing: a method may well be called "None".
    missing = {name: [""] if name in text else _MISSING for name in names}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would lose cells
            return pd.read_csv(
                BytesIO(document.data),
                sep=separator,
                dtype=dict.fromkeys(text, object),
                keep_default_na=False,
                na_values=missing,
                float_precision="round_trip",
                index_col=False,
                low_memory=False,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        raise UnreadableError(f"no readable CSV table: {one_line(str(error))}") from None


def _parquet(document: Document) -> pd.DataFrame | None:
    """Frame of a Parquet file; None where survexec wrote it itself, which `survexec.rollouts` reads."""
    try:
        with pq.ParquetFile(document.path) as file:
            if OWN_MARK in (file.schema_arrow.metadata or {}):
                return None
            return file.read().to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(f"no readable Parquet file: {one_line(str(error))}") from None


def _named(frame: pd.DataFrame, columns: Mapping[str, str], source: str) -> Reading:
    """Frame under survexec's names, in survexec's order, with what was absent filled in."""
    frame = frame.rename(columns=str)
    wanted = {name: columns.get(name, name) for name in COLUMNS}
    absent = [name for name, own in wanted.items() if own not in frame and (name in columns or name in REQUIRED)]
    if frame.empty:
        raise UnreadableError("the table has no rows")
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UnreadableError(f"the column {one_line(twice, 40)!r} is there more than once: name each once")
    if absent:
        raise UnreadableError("; ".join(_absence(name, wanted[name], list(frame.columns)) for name in absent))
    named = pd.DataFrame(index=pd.RangeIndex(len(frame)))
    for name, kind in COLUMNS.items():
        if wanted[name] in frame:
            named[name] = _CONVERT[kind](frame[wanted[name]].reset_index(drop=True))
        else:
            named[name] = _DEFAULTS.get(name)
    if wanted["source"] not in frame:
        named["source"] = source
    named["row"] = range(1, len(named) + 1)
    unused = [one_line(name, 40) for name in frame.columns if name not in wanted.values()]
    remarks = [f"columns not used: {', '.join(unused)}"] if unused else []
    return Reading(source, TableReader.name, frame=named, remarks=remarks)


def _absence(name: str, own: str, there: list[str]) -> str:
    shown = ", ".join(one_line(column, 40) for column in there[:20]) + (", ..." if len(there) > 20 else "")
    folded = {column.lower(): column for column in reversed(there)}
    near = difflib.get_close_matches(own.lower(), folded, n=1)
    suggested = one_line(folded[near[0]], 40) if near else "its name"
    return (
        f"no column {own!r} (there are: {shown}); say which one holds {name} with "
        f'columns={{"{name}": "{suggested}"}} or --column {name}={suggested}'
    )


def _text(values: pd.Series) -> pd.Series:
    def text(value: Any) -> str:
        # Whole numbers become floats where a frame has a gap: task 3 must not become "3.0".
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    there = values.notna()
    return pd.Series([text(v) if t else None for v, t in zip(values, there, strict=True)], dtype=object)


def _numbers(values: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    unreadable = numbers.isna() & values.notna()
    return numbers.astype(object).where(~unreadable, values) if unreadable.any() else numbers


def _truths(values: pd.Series) -> pd.Series:
    truths = values.astype(object).map(lambda value: _TRUTH.get(str(value).strip().lower(), value))
    known = truths.map(lambda value: isinstance(value, bool)) | truths.isna()
    return truths.astype("boolean") if known.all() else truths


_CONVERT = {"text": _text, "number": _numbers, "truth": _truths}
_DEFAULTS: dict[str, Any] = {"ending": Ending.COMPLETED.value, "trial": 0}
