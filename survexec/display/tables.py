"""Results -> tables in Markdown, LaTeX and HTML: one core that rounds and names, three small writers."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from survexec.checks import CLASSES
from survexec.display import (
    attribution_tables,
    comparison_tables,
    curve_tables,
    heterogeneity_tables,
    planning_tables,
    reconstruction_tables,
    survival_tables,
    trial_tables,
)
from survexec.display.markup import Cell, Grid, Row, html_table, latex, markdown
from survexec.display.wording import (
    AT_RISK,
    COLUMNS,
    IN_CALLS,
    INTERVALS,
    UNDEFINED,
    caption,
    dash,
    digits_of,
    estimate,
    groups,
    methods_of,
    split_by,
    title,
)
from survexec.errors import InputError
from survexec.statistics.estimands import METRICS


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
    foot = f"Intervals: {methods_of(frame, 'interval', lambda name: INTERVALS.get(name, name))}{drawn}."
    header = [name.capitalize() for name in varying] + [COLUMNS[name] for name in columns]
    return Grid(
        tuple(header), tuple(rows), len(varying), caption("Execution and success", result, shared), "tab:summary",
        foot + dash(rows, UNDEFINED), stacked=True,
    )  # fmt: skip


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
    **attribution_tables.GRIDS,
    "summary": _summary,
    "first_errors": _first_errors,
    **comparison_tables.GRIDS,
    **curve_tables.GRIDS,
    **heterogeneity_tables.GRIDS,
    **planning_tables.GRIDS,
    **reconstruction_tables.GRIDS,
    **survival_tables.GRIDS,
    **trial_tables.GRIDS,
}
