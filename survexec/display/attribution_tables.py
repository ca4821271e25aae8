"""Tables of what a success difference is made of, and of ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import (
    UNDEFINED,
    bounded,
    caption,
    dash,
    decimals,
    estimate,
    groups,
    limits,
    marks,
    number,
    pair_name,
    sides,
    split_by,
)
from survexec.statistics.estimands import METRICS

# Parts of a split by strata: the name of a stratum's row, that of the sum, and what of a side stands beside it.
_SPLITS: Final = {
    "stratum_mix": ("Share of {}", "Mix of strata", "share"),
    "stratum_rates": ("Success in {}", "Success within strata", "rate"),
    "stratum_alone": ("On one side only: {}", "Strata of one side", "share"),
    "total": ("", "Success", "rate"),
}


def _attribution(result: Any) -> Grid:
    """One group of rows a pair, one row a factor; then, where asked for, one a pair by strata."""
    frame = result.frame if len(result.frame) else result.strata
    varying, shared = split_by(frame, result.by)
    kinds = marks(pd.Series([*result.frame["interval"], *result.strata["interval"]], dtype=object))
    rows = []
    for key, pair in groups(result.frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            name = METRICS["success" if row.part == "total" else row.part].label
            group = pair_name(key, f"{row.n_pairs} pairs")
            rows.append(Row((Cell(name), *sides(row, "estimate", 3), _part(row, kinds)), group))
    for key, pair in groups(result.strata, [*varying, "a", "b"]):
        for row in pair.itertuples():
            one, whole, beside = _SPLITS[row.part]
            known = row.stratum or row.part == "total"
            both = sides(row, beside, 3) if known else (Cell(""), Cell(""))
            name = one.format(row.stratum) if row.stratum else whole
            rows.append(Row((Cell(name), *both, _part(row, kinds)), pair_name(key, "all tasks of each, by stratum")))
    foot = (
        "The parts add to the difference in success. In parentheses: rollouts. Intervals: "
        f"{bounded(kinds) or 'none'}; {result.made['resamples']} resamples."
    )
    return Grid(
        ("Factor", "a", "b", "Part of a − b"), tuple(rows), 1,
        caption("What a difference in success is made of", result, shared), "tab:attribution",
        foot + dash(rows, UNDEFINED), group="Pair",
    )  # fmt: skip


def _part(row: Any, kinds: dict[str, str]) -> Cell:
    """A part with its interval, marked by its kind."""
    return replace(estimate(row, 3), mark=kinds.get(row.interval, ""))


def _ranks(result: Any) -> Grid:
    """One group of rows a metric, one row a method, the best first."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    rows = []
    for key, metric in groups(frame, [*varying, "metric"]):
        *place, name = map(str, key)
        group = ", ".join([*place, METRICS[name].label]) + f" ({metric['n_tasks'].iloc[0]} tasks)"
        for row in metric.sort_values("rank", kind="stable").itertuples():
            rank, low, high = (number(value, int(value % 1 != 0)) for value in (row.rank, row.lower, row.upper))
            value = Cell(number(row.estimate, decimals(name)), f"({row.denominator})")
            rows.append(
                Row(
                    (
                        Cell(row.value), value, Cell(rank, limits(low, high)),
                        Cell(number(row.first, 2)),
                    ),
                    group,
                )
            )  # fmt: skip
    foot = (
        "On the tasks that all share; tied values share the mean of their ranks. In parentheses: denominators. "
        f"Intervals of ranks: percentiles, {result.made['resamples']} resamples of tasks. P(first): the share of them "
        "in which a value is first, which is too sure of a lead where values are nearly tied."
    )
    return Grid(
        (result.made["between"].capitalize(), "Value", "Rank", "P(first)"), tuple(rows), 1,
        caption("Ranks by metric", result, shared), "tab:ranks", foot + dash(rows, UNDEFINED), group="Metric",
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {"attribution": _attribution, "ranks": _ranks}
