"""The table of a comparison by group: each group, what is pooled over them, and the interaction test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import (
    DASH,
    caption,
    dash,
    decimals,
    estimate,
    groups,
    number,
    p_value,
    pair_name,
    split_by,
)
from survexec.statistics.estimands import METRICS

_POOLED: Final = {
    "fixed effect": "Fixed effect",
    "random effects (DL)": "Random (DL)",
    "random effects (HK)": "Random (HK)",
}
_HOW: Final = (
    "SE: jackknife over tasks; t limits. Fixed effect: inverse variance; Random: DerSimonian-Laird (DL) and "
    "Hartung-Knapp (HK). p: of a pooled difference, that it is 0; of the interaction, Cochran's Q(df), that all groups "
    "differ by the same"
)


def _heterogeneity(result: Any) -> Grid:
    """One group of rows a pair and metric: a row a group, a row a pooled estimate, and the interaction test."""
    varying, shared = split_by(result.frame, result.by)
    keys = [*varying, "a", "b", "metric"]
    tests = {key: next(part.itertuples()) for key, part in groups(result.tests, keys)}
    rows = []
    for key, part in groups(result.frame, keys):
        metric, digits = key[-1], decimals(key[-1])
        name = pair_name(key[:-1], METRICS[metric].label)
        rows += [Row(_row(row, digits), name) for row in part.itertuples()]
        rows.append(Row(_interaction(tests[key], digits), name))
    tested = int(result.tests["p_value"].notna().sum())
    family = f", adjusted by Holm over {tested} interaction tests" if tested else ""
    over = result.made["over"].capitalize()
    return Grid(
        (over, "a − b", "SE", "Weight, %", "p", "adj. p", "Pairs"), tuple(rows), 1,
        caption(f"Paired differences by {result.made['over']}", result, shared), "tab:heterogeneity",
        f"{_HOW}{family}. Weights: fixed (random)." + dash(rows, "cannot be weighed, or pooled; the notes say why"),
        group="Pair",
    )  # fmt: skip


def _row(row: Any, digits: int) -> tuple[Cell, ...]:
    """A group or a pooled difference; neither has all the numbers."""
    pooled = row.role == "pooled"
    name = _POOLED[row.group] if pooled else str(row.group)
    fixed, random = (number(100 * weight, 1) for weight in (row.weight_fixed, row.weight_random))
    weight = Cell("") if pooled else Cell(fixed, "" if fixed == DASH else f"({random})")
    texts = (p_value(row.p_value) if pooled else "", "", str(row.n_pairs))
    error = Cell(number(row.standard_error, 3))
    return (Cell(name), estimate(row, digits, "difference"), error, weight, *map(Cell, texts))


def _interaction(row: Any, digits: int) -> tuple[Cell, ...]:
    """An interaction test under the columns that come nearest."""
    texts = (DASH, "", "", DASH, DASH)
    if row.df > 0:
        texts = (
            f"Q({row.df:.0f}) = {number(row.q, 2)}", f"tau2 {number(row.tau2, digits + 1)}",
            f"I2 {number(100 * row.i2, 1)}%", p_value(row.p_value), p_value(row.p_adjusted),
        )  # fmt: skip
    return tuple(map(Cell, ("Interaction", *texts, "")))


GRIDS: Final[dict[str, Callable[..., Grid]]] = {"heterogeneity": _heterogeneity}
