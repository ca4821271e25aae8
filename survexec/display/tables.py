"""Results -> tables in Markdown, LaTeX and HTML: one core that rounds and names, three small writers."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from survexec.checks import CLASSES
from survexec.display import curve_tables, survival_tables
from survexec.display.markup import Cell, Grid, Row, html_table, latex, markdown
from survexec.display.wording import (
    AT_RISK,
    UNDEFINED,
    caption,
    dash,
    digits_of,
    estimate,
    groups,
    number,
    p_value,
    pair_name,
    split_by,
    title,
)
from survexec.errors import InputError
from survexec.statistics.estimands import METRICS

# Columns of a summary, in reading order; the rest of the labels are those of the estimands.
COLUMNS: Final = {
    "ter": "TER", "mean_fed": "Mean FED", "auc_pec": "AUC-PEC", "rr_eligible": "RR-eligible", "rr": "RR",
    "success": "Success", "clean_success": "s", "success_after_error": "Success after error",
    "mean_length": "Mean length", "rollouts": "Rollouts", "tasks": "Tasks", "zero_calls": "No call",
}  # fmt: skip
IN_CALLS: Final = ("mean_fed", "mean_length")
INTERVALS: Final = {
    "wilson": "Wilson",
    "wilson_effective_n": "Wilson on the effective number of rollouts",
    "bca": "BCa bootstrap over tasks",
    "percentile": "percentile bootstrap over tasks",
    "expanded_percentile": "expanded percentile bootstrap over tasks",
    "jackknife_t": "jackknife over tasks with Student's t",
    "mover": "MOVER from Wilson limits",
    "newcombe": "Newcombe, paired",
    "tango": "Tango, paired",
}
_MARKS: Final = ("", "†", "‡", "§", "¶")


def to_markdown(result: Any) -> str:
    """Write a result as a Markdown table with its caption and notes.

    Parameters
    ----------
    result : Result

    Returns
    -------
    str

    Examples
    --------
    >>> import survexec as sx
    >>> summary = sx.summarize(sx.datasets.load_tau_retail_methods(), by="method", resamples=200)
    >>> print(to_markdown(summary).splitlines()[2][:35])
    | Method | TER | Mean FED | AUC-PEC
    """
    return markdown(grid(result))


def to_latex(result: Any, caption: str | None = None, label: str | None = None) -> str:
    """Write a result as a LaTeX table that needs the package booktabs alone; the notes are comments.

    Parameters
    ----------
    result : Result
    caption, label : str, optional
        Plain text; by default they name the result.

    Returns
    -------
    str

    Examples
    --------
    >>> import survexec as sx
    >>> summary = sx.summarize(sx.datasets.load_tau_retail_methods(), by="method", resamples=200)
    >>> "toprule" in to_latex(summary, label="tab:main")
    True
    """
    made = grid(result)
    return latex(replace(made, caption=caption or made.caption, label=label or made.label))


def to_html(result: Any) -> str:
    """Write a result as an HTML table with its caption and notes; everything in it is escaped.

    Parameters
    ----------
    result : Result

    Returns
    -------
    str

    Examples
    --------
    >>> import survexec as sx
    >>> errors = sx.first_errors(sx.datasets.load_tau_retail_methods(), by="method")
    >>> to_html(errors).startswith("<table")
    True
    """
    made = grid(result)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in made.notes)
    foot = f"<p><small>{html.escape(made.foot)}</small></p>" if made.foot else ""
    return html_table(made) + foot + (f"<ul>{notes}</ul>" if notes else "")


def grid(result: Any) -> Grid:
    """Round and name the numbers of a result: the table before any markup.

    Parameters
    ----------
    result : Result

    Returns
    -------
    Grid

    Raises
    ------
    InputError
        No table is known for this kind.
    """
    if result.kind not in _GRIDS:
        raise InputError(f"no table for results of kind {result.kind!r}; there is one for: {', '.join(_GRIDS)}")
    return replace(_GRIDS[result.kind](result), notes=tuple(result.notes))


def _methods(frame: pd.DataFrame, column: str, names: Callable[[str], str]) -> str:
    """Which method stands behind which metric: "Wilson (TER, RR); BCa (Mean FED)"."""
    used = frame[frame[column].astype(str) != ""].drop_duplicates([column, "metric"])
    listed = [
        f"{names(str(method))} ({', '.join(COLUMNS[m] for m in COLUMNS if m in set(rows['metric']))})"
        for method, rows in used.groupby(column, sort=False)
    ]
    return "; ".join(listed)


def _summary(result: Any) -> Grid:
    """One row a cell, one column a metric."""
    frame = result.frame
    columns = [name for name in COLUMNS if name in set(frame["metric"])]
    varying, shared = split_by(frame, result.by)
    shares = frame[~frame["metric"].isin(IN_CALLS)]
    digits, rows = digits_of(shares), []
    for key, cell in groups(frame, varying):
        values = {row.metric: row for row in cell.itertuples()}
        cells = [Cell(str(value)) for value in key]
        for name in columns:
            decimals = (2 if name in IN_CALLS else digits) if name in METRICS else 0
            cells.append(estimate(values[name], decimals))
        rows.append(Row(tuple(cells)))
    drawn = f", {result.made['resamples']} resamples" if "resamples" in result.made else ""
    foot = f"Intervals: {_methods(frame, 'interval', lambda name: INTERVALS.get(name, name))}{drawn}."
    header = [name.capitalize() for name in varying] + [COLUMNS[name] for name in columns]
    return Grid(
        tuple(header), tuple(rows), len(varying), caption("Execution and success", result, shared), "tab:summary",
        foot + dash(rows, UNDEFINED), stacked=True,
    )  # fmt: skip


def _comparison(result: Any) -> Grid:
    """One group of rows a pair, one row a metric."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    methods = [name for name in frame["interval"].value_counts(sort=True).index if name]
    marks = dict(zip(methods, _MARKS, strict=False))
    pairs = [*varying, "a", "b"]
    counted = bool(frame.groupby(pairs)["n_pairs"].nunique().gt(1).any())
    rows = []
    for key, pair in groups(frame, pairs):
        group = pair_name(key, "" if counted else f"{pair['n_pairs'].iloc[0]} pairs")
        for row in pair.itertuples():
            decimals = 2 if row.metric in IN_CALLS else 3
            sides = [
                Cell(number(getattr(row, f"estimate_{side}"), decimals), f"({getattr(row, f'denominator_{side}')})")
                for side in "ab"
            ]
            change = replace(estimate(row, decimals, "difference"), mark=marks.get(row.interval, ""))
            tested = [Cell(p_value(row.p_value)), Cell(p_value(row.p_adjusted)), *[Cell(str(row.n_pairs))] * counted]
            rows.append(Row((Cell(METRICS[row.metric].label), *sides, change, *tested), group))
    return Grid(
        ("Metric", "a", "b", "a − b", "p", "adj. p", *["Pairs"] * counted), tuple(rows), 1,
        caption("Paired differences", result, shared), "tab:comparison",
        _tested(frame, marks) + dash(rows, "undefined, or no test for this metric"),
        group="Pair",
    )  # fmt: skip


def _tested(frame: pd.DataFrame, marks: dict[str, str]) -> str:
    """How the differences were bounded and tested."""
    bounds = [f"{mark + ': ' if mark else ''}{INTERVALS.get(name, name)}" for name, mark in marks.items()]
    foot = f"In parentheses: denominators. Intervals of a − b: {'; '.join(bounds) or 'none'}."
    tests = int(frame["p_value"].notna().sum())
    if tests:
        foot += f" p: {_methods(frame, 'test', str)}; adjusted by Holm over these {tests} tests."
    return foot


def _first_errors(result: Any) -> Grid:
    """One group of rows a cell, one row a depth, one column a class."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    classes = [name for name in CLASSES if name in set(frame["error_class"])]
    rows = []
    for key, cell in groups(frame, varying):
        for k, depth in cell.groupby("k"):
            events = depth.groupby("error_class")["events"].sum()
            counts = [int(events.get(name, 0)) for name in classes]
            texts = [k, *counts, sum(counts), depth["at_risk"].iloc[0]]
            rows.append(Row(tuple(Cell(str(text)) for text in texts), " / ".join(map(str, key))))
    header = ("k", *(name.capitalize() for name in classes), "All", "At risk")
    return Grid(
        header, tuple(rows), 1, caption("First errors at call k by class", result, shared), "tab:first_errors",
        AT_RISK, group=title(varying),
    )  # fmt: skip


_GRIDS: Final[dict[str, Callable[..., Grid]]] = {
    "summary": _summary,
    "comparison": _comparison,
    "first_errors": _first_errors,
    **curve_tables.GRIDS,
    **survival_tables.GRIDS,
}
