"""Tables of clean depths, survival tests and hazard regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import (
    DASH,
    caption,
    dash,
    estimate,
    groups,
    limits,
    number,
    p_value,
    pair_name,
    ratio,
    split_by,
)
from survexec.statistics.survival_tests import TESTS

_MODELS: Final = {"discrete": "discrete time", "gee": "discrete time, GEE", "cox": "Cox", "fine_gray": "Fine-Gray"}
_DEPTH: Final = "Kaplan-Meier, endings without an error censored. Standard errors over tasks; t limits"


def _depths(result: Any) -> Grid:
    """One group of rows a quantity, one row a cell; with one cell, a row a quantity."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    rows = [
        Row(
            (
                *(Cell(str(getattr(row, name))) for name in varying or ["quantity"]), _depth(row),
                Cell(number(row.standard_error, 3)), Cell(str(row.n_tasks)),
            ),
            row.quantity if varying else "",
        )
        for _, part in groups(frame, ["quantity"])
        for row in part.itertuples()
    ]  # fmt: skip
    names = [name.capitalize() for name in varying] or ["Quantity"]
    foot = f"{_DEPTH}, of a quantile those of the curve. {DASH}: the curve does not fall so far, or has no such number."
    return Grid(
        (*names, "Estimate", "Standard error", "Tasks"), tuple(rows), len(names),
        caption("Clean depth, had every rollout gone on", result, shared), "tab:depths", foot, group="Quantity",
    )  # fmt: skip


def _depth(row: Any) -> Cell:
    """A clean depth with its limits; a quantile is a depth as such, and may lack one of them."""
    if not row.quantity.startswith("FED quantile"):
        return estimate(row, 2)
    at, low, high = (DASH if np.isnan(value) else f"{value:g}" for value in (row.estimate, row.lower, row.upper))
    return Cell(at, "" if low == high == DASH else f"[{low}, {high}]")


def _depth_differences(result: Any) -> Grid:
    """One group of rows a pair, one row a quantity."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    rows = []
    for key, pair in groups(frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            sides = [Cell(number(row.estimate_a, 2)), Cell(number(row.estimate_b, 2))]
            tested = [Cell(number(row.standard_error, 3)), Cell(p_value(row.p_value))]
            cells = (Cell(row.quantity), *sides, estimate(row, 2, "difference"), *tested)
            rows.append(Row(cells, pair_name(key, f"{row.n_pairs} pairs")))
    return Grid(
        ("Quantity", "a", "b", "a − b", "Standard error", "p"), tuple(rows), 1,
        caption("Paired differences of clean depth", result, shared), "tab:depth_differences",
        f"{_DEPTH} and p, not adjusted." + dash(rows, "no spread over the pairs"), group="Pair",
    )  # fmt: skip


def _tests(result: Any) -> Grid:
    """One group of rows a pair, one row a test."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    rows, among = [], {}
    for key, pair in groups(frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            name = TESTS[row.test]
            who, _, counts = row.basis.partition(", ")
            among[name] = who
            texts = [
                number(row.statistic, 2), number(row.df, 0), p_value(row.p_value), p_value(row.p_adjusted),
                str(row.events), counts.replace(" at depth 1", ""),
            ]  # fmt: skip
            cells = (Cell(name if row.test != "gray" else f"{name}, {row.cause}"), *map(Cell, texts))
            rows.append(Row(cells, pair_name(key, f"{row.n_tasks} tasks")))
    bases = "; ".join(f"{who}, in {name}" for name, who in among.items())
    weights = f" Weights: rho = {result.made['rho']:g}." if result.made["rho"] else ""
    foot = f"Statistic: chi-square with df, or z without. At risk, counted at call 1: {bases}.{weights}"
    return Grid(
        ("Test", "Statistic", "df", "p", "adj. p", "Events", "At risk"), tuple(rows), 1,
        caption("Survival tests of the depth of the first error", result, shared), "tab:survival_tests", foot,
        group="Pair",
    )  # fmt: skip


def _model(result: Any) -> Grid:
    """One row a coefficient; what it is held against stands in the foot."""
    made, rows = result.made, []
    for row in result.frame.itertuples():
        at, low, high = map(ratio, (row.ratio, row.lower, row.upper))
        coefficient, error = number(row.coefficient, 3), number(row.standard_error, 3)
        cells = (
            Cell(_term(row, made["references"])), Cell(coefficient, "" if error == DASH else f"({error})"),
            Cell(at, limits(low, high)),
            Cell(number(row.statistic, 2)), Cell(p_value(row.p_value)),
        )  # fmt: skip
        rows.append(Row(cells))
    t = bool(np.isfinite(result.frame["df"]).all())
    event = f"a first error of class {made['cause']}" if made["cause"] else "a first error"
    link = f", {made['link']} link" if "link" in made else ""
    what = f"{made['ratio'].capitalize()}s of {event} by {made['formula']}; {_MODELS[made['model']]}{link}"
    return Grid(
        ("Term", "Coefficient", made["ratio"].capitalize(), "t" if t else "z", "p"), tuple(rows), 1,
        caption(what, result), "tab:hazard_model", _fitted(result, t) + dash(rows, "not estimable; the notes say why"),
    )  # fmt: skip


def _term(row: Any, references: dict[str, str]) -> str:
    """What a coefficient is of, without the level that all of its column are held against."""
    against = [f" vs {level}" for level in references.values() if row.label.endswith(f" vs {level}")]
    return row.label if row.nuisance or not against else row.label.removesuffix(max(against, key=len))


def _fitted(result: Any, t: bool) -> str:
    """On what a regression rests, and how its errors were made."""
    made = result.made
    errors = "clustered by task" if made["cluster"] else "of independent rollouts"
    against = f"t with {result.frame['df'].iloc[0]:.0f} degrees of freedom" if t else "the normal distribution"
    strata = f" Strata: {made['strata']}." if made["strata"] else ""
    references = ", ".join(f"{name} {level}" for name, level in made["references"].items())
    return (
        f"{f'Against {references}. ' if references else ''}{made['rollouts']} rollouts of {made['tasks']} tasks, "
        f"{made['events']} first errors, {made['person_depths']} person-depths.{strata} "
        f"In parentheses: standard errors, {errors}; {against}."
    )


GRIDS: Final[dict[str, Callable[..., Grid]]] = {
    "depths": _depths,
    "depth_differences": _depth_differences,
    "survival_tests": _tests,
    "hazard_model": _model,
}
