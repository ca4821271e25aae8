"""Grids of a comparison: differences, tests, ratios, equivalence."""

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
    methods_of,
    number,
    p_value,
    pair_name,
    ratio,
    sides,
    split_by,
)
from survexec.statistics.estimands import METRICS
from survexec.statistics.families import ADJUSTMENTS

_MEASURES: Final = {"risk_ratio": "risk ratio", "odds_ratio": "odds ratio"}


def _comparison(result: Any) -> Grid:
    """One group of rows a pair, one row a metric."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    kinds, pairs = marks(frame["interval"]), [*varying, "a", "b"]
    counted = bool(frame.groupby(pairs)["n_pairs"].nunique().gt(1).any())
    rows = []
    for key, pair in groups(frame, pairs):
        group = pair_name(key, "" if counted else f"{pair['n_pairs'].iloc[0]} pairs")
        for row in pair.itertuples():
            both = sides(row, "estimate", decimals(row.metric))
            tested = [Cell(p_value(row.p_value)), Cell(p_value(row.p_adjusted)), *[Cell(str(row.n_pairs))] * counted]
            rows.append(Row((Cell(METRICS[row.metric].label), *both, _change(row, kinds), *tested), group))
    return Grid(
        ("Metric", "a", "b", "a − b", "p", "adj. p", *["Pairs"] * counted), tuple(rows), 1,
        caption("Paired differences", result, shared), "tab:comparison",
        _tested(result, kinds) + dash(rows, "undefined, or no test for this metric"),
        group="Pair",
    )  # fmt: skip


def _change(row: Any, kinds: dict[str, str]) -> Cell:
    """A difference with its interval, marked by its kind."""
    return replace(estimate(row, decimals(row.metric), "difference"), mark=kinds.get(row.interval, ""))


def _tested(result: Any, kinds: dict[str, str]) -> str:
    """How the differences were bounded and tested."""
    frame = result.frame
    foot = f"In parentheses: denominators. Intervals of a − b: {bounded(kinds) or 'none'}."
    tests = int(frame["p_value"].notna().sum())
    if tests:
        adjust = result.made.get("adjust", "holm")
        how = "not adjusted" if adjust == "none" else f"adjusted by {ADJUSTMENTS[adjust]} over these {tests} tests"
        foot += f" p: {methods_of(frame, 'test', str)}; {how}."
    return foot


def _tests(result: Any) -> Grid:
    """One group of rows a pair, one row a metric and test."""
    varying, shared = split_by(result.frame, result.by)
    rows = []
    for key, pair in groups(result.frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            drawn = f"± {number(row.standard_error, 4)}" if row.standard_error > 0 else ""
            texts = [Cell(METRICS[row.metric].label), Cell(row.test), Cell(number(row.statistic, 3)),
                     Cell("" if pd.isna(row.df) else f"{row.df:g}"), Cell(p_value(row.p_value), drawn),
                     Cell(p_value(row.p_adjusted)), Cell(str(row.n_pairs)), Cell(row.left_out)]  # fmt: skip
            rows.append(Row(tuple(texts), pair_name(key)))
    return Grid(
        ("Metric", "Test", "Statistic", "df", "p", "adj. p", "Tasks", "Left out"), tuple(rows), 2,
        caption("Tests", result, shared, bounded=False), "tab:tests",
        "±: standard error of a Monte Carlo p." + dash(rows, "undefined, or a further test that is not adjusted"),
        group="Pair",
    )  # fmt: skip


def _ratios(result: Any) -> Grid:
    """One group of rows a pair, one row an event and measure."""
    varying, shared = split_by(result.frame, result.by)
    rows = []
    for key, pair in groups(result.frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            found = Cell(ratio(row.ratio), limits(ratio(row.lower), ratio(row.upper)))
            risks = [Cell(number(row.risk_a, 3)), Cell(number(row.risk_b, 3))]
            texts = (Cell(row.event.capitalize()), Cell(_MEASURES[row.measure]), *risks, found)
            rows.append(Row(texts, pair_name(key, f"{row.n_pairs} pairs")))
    return Grid(
        ("Event", "Measure", "a", "b", "a / b"), tuple(rows), 2, caption("Ratios", result, shared), "tab:ratios",
        "Intervals: MOVER from Wilson limits, with the correlation over tasks." + dash(rows, UNDEFINED), group="Pair",
    )  # fmt: skip


def _equivalence(result: Any) -> Grid:
    """One group of rows a pair, one row a metric."""
    varying, shared = split_by(result.frame, result.by)
    kinds, rows = marks(result.frame["interval"]), []
    for key, pair in groups(result.frame, [*varying, "a", "b"]):
        for row in pair.itertuples():
            p = [Cell(p_value(row.p_non_inferior)), Cell(p_value(row.p_equivalent))]
            held = (Cell(f"{row.margin:g}"), *p, Cell(row.conclusion))
            texts = (Cell(METRICS[row.metric].label), _change(row, kinds), *held)
            rows.append(Row(texts, pair_name(key, f"{row.n_pairs} pairs")))
    return Grid(
        ("Metric", "a − b", "Margin", "p not inferior", "p equivalent", f"At alpha = {result.made['alpha']:.3g}"),
        tuple(rows), 1, caption("Equivalence within a margin", result, shared), "tab:equivalence",
        f"Intervals of a − b: {bounded(kinds) or 'none'}. p of two one-sided tests, by inverting the interval; "
        "not adjusted." + dash(rows, UNDEFINED),
        group="Pair",
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {
    "comparison": _comparison,
    "tests": _tests,
    "ratios": _ratios,
    "equivalence": _equivalence,
}
