"""Tables of several trials of a task: the variance between and within tasks, pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import (
    DASH,
    caption,
    dash,
    decimals,
    digits_of,
    estimate,
    groups,
    interval,
    number,
    split_by,
)
from survexec.statistics.trials import MEASURES

_NEVER: Final = "never"


def _variance(result: Any) -> Grid:
    """One group of rows a metric, one row a cell; with one cell, a row a metric."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    rows = [
        Row(
            (*(Cell(str(getattr(row, name))) for name in varying), *_named(row, not varying), *_parts(row)),
            MEASURES[row.metric].label if varying else "",
        )
        for _, part in groups(frame, ["metric"])
        for row in part.itertuples()
    ]
    names = [name.capitalize() for name in varying] or ["Metric"]
    foot = (
        "Between, within: variance between tasks and between trials of a task. ICC: share between, with its jackknife "
        "interval. % trials: of the squared standard error. Enough: from so many trials a task on, twice as many would "
        f"lower the standard error by less than {result.made['saving']:.0%}."
    )
    if np.isinf(frame["enough"]).any():
        foot += f" {_NEVER.capitalize()}: tasks do not differ, so trials help as much as tasks do."
    header = (
        *names, "Estimate", "Standard error", "Between", "Within", "ICC", "% trials", "Enough", "Trials a task",
        "Tasks", "Rollouts",
    )  # fmt: skip
    return Grid(
        header, tuple(rows), len(names), caption("Variance between tasks and between trials", result, shared),
        "tab:trial_variance", foot + dash(rows, "cannot be told; the notes say why"), group="Metric",
    )  # fmt: skip


def _named(row: Any, alone: bool) -> tuple[Cell, ...]:
    return (Cell(MEASURES[row.metric].label),) if alone else ()


def _parts(row: Any) -> tuple[Cell, ...]:
    """The numbers of one split."""
    digits = decimals(row.metric)
    enough = _NEVER if np.isinf(row.enough) else number(row.enough, 0)
    return (
        Cell(number(row.estimate, digits)), Cell(number(row.standard_error, 3)), Cell(number(row.between, digits)),
        Cell(number(row.within, digits)),
        Cell(number(row.icc, 2), interval(row.icc_lower, row.icc_upper, 2)),
        Cell(number(100 * row.trial_share, 0)), Cell(enough),
        Cell(DASH if np.isnan(row.trials) else f"{round(row.trials, 1):g}"), Cell(str(row.n_tasks)),
        Cell(str(row.n_rollouts)),
    )  # fmt: skip


def _pass_at(result: Any) -> Grid:
    """One group of rows an outcome, two rows a cell, one column a k."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    digits, ks = digits_of(frame), result.made["k"]
    rows = []
    for (outcome,), part in groups(frame, ["outcome"]):
        for key, line in groups(part, [*varying, "convention"]):
            at = {row.k: row for row in line.itertuples()}
            tasks = f"{line['n_tasks'].min()} to {line['n_tasks'].max()}"
            cells = (
                *(Cell(str(value)) for value in key), *(estimate(at[k], digits) for k in ks),
                Cell(str(line["n_tasks"].iloc[0]) if line["n_tasks"].nunique() == 1 else tasks),
            )  # fmt: skip
            rows.append(Row(cells, MEASURES[outcome].label))
    names = [name.capitalize() for name in varying] + ["Convention"]
    foot = (
        "pass@k: at least one of k trials of a task; pass^k: all k. Means over the tasks with k or more trials of "
        f"known outcome. Intervals: BCa bootstrap over tasks, {result.made['resamples']} resamples."
    )
    return Grid(
        (*names, *(f"k = {k}" for k in ks), "Tasks"), tuple(rows), len(names),
        caption("Success of any and of all of k trials", result, shared), "tab:pass_at",
        foot + dash(rows, "no task has so many trials"), group="Outcome", stacked=True,
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {"trial_variance": _variance, "pass_at": _pass_at}
