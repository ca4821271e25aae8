"""Effects beside the difference: ratios of risks and odds, and tests of equivalence and non-inferiority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from survexec.errors import InputError
from survexec.statistics import proportions
from survexec.statistics.difference_intervals import DifferenceInterval, one_sided
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.intervals import expanded_quantile
from survexec.statistics.pairing import Pair
from survexec.statistics.summary import proportion_bounds

# The event whose risk is compared: its label, and whether it is what the metric does not count.
RISKS: Final = {"ter": ("erring", True), "success": ("success", False), "rr": ("recovery", False),
                "clean_success": ("success of clean rollouts", False)}  # fmt: skip


def ratio_rows(pair: Pair, names: Sequence[str], level: float) -> Iterable[dict[str, Any]]:
    """Ratio of risks and ratio of odds, a over b, of each metric that is a share of an event.

    Parameters
    ----------
    pair : Pair
    names : sequence of str
        Metrics; those not in `RISKS` have no ratio.
    level : float

    Yields
    ------
    dict
        ``metric, event, a, b, measure, risk_a, risk_b, ratio, lower, upper, interval, n_pairs, reason``; NaN with a
        reason where a side has no denominator or the ratio is 0/0.

    Notes
    -----
    Limits by MOVER from Wilson's limits of each side (on the effective number of rollouts where a task has several)
    and the correlation of the two sides over tasks; the critical value is that of the expanded percentile, which holds
    95% where Wilson's own would hold 93.8% (50 tasks).
    """
    tasks = len(pair.tally.tasks)
    z = expanded_quantile(tasks, level).item()
    for name in (name for name in names if name in RISKS):
        metric, (event, turned) = METRICS[name], RISKS[name]
        p, denominator = metric(pair.tally.total), metric.denominator(pair.tally.total)
        if (denominator == 0).any():
            sides = [(np.nan, np.nan, np.nan)] * 2
        else:
            low, high, _ = proportion_bounds(metric, pair.tally, z)
            sides = [(1 - p[c], 1 - high[c], 1 - low[c]) if turned else (p[c], low[c], high[c]) for c in (0, 1)]
        (p1, l1, u1), (p2, l2, u2) = sides
        shared = side_correlation(pair, metric)
        for measure, function in (("risk_ratio", proportions.mover_ratio), ("odds_ratio", proportions.mover_odds)):
            found, lower, upper = function(p1, (l1, u1), p2, (l2, u2), shared)
            reason = "" if np.isfinite(found) else _why(p1, p2, found)
            yield {
                "metric": name, "event": event, "a": pair.a, "b": pair.b, "measure": measure, "risk_a": p1,
                "risk_b": p2, "ratio": found, "lower": lower, "upper": upper, "interval": "mover",
                "n_pairs": tasks, "reason": reason,
            }  # fmt: skip


def _why(first: float, second: float, found: float) -> str:
    """Why a ratio is not a finite number."""
    if np.isnan(first) or np.isnan(second):
        return "a side has no rollout that counts (0/0)"
    return "0/0" if np.isnan(found) else "divided by 0: only the lower limit says something"


def side_correlation(pair: Pair, metric: Metric) -> float:
    """Correlation of the two sides' estimates of a share, from what each task adds to either.

    Parameters
    ----------
    pair : Pair
    metric : Metric
        A proportion.

    Returns
    -------
    float
        In [-1, 1]; phi of the fourfold table where each task has one rollout a side; 0 where a side has no spread.
    """
    x, n = metric.numerator(pair.tally.counts), metric.denominator(pair.tally.counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.nan_to_num(x - metric(pair.tally.total) * n)
    spread = (moved**2).sum(axis=0).prod()
    return float(np.clip((moved[:, 0] * moved[:, 1]).sum() / spread**0.5, -1, 1)) if spread > 0 else 0.0


def checked_margins(margin: float | Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """The margin of each metric that has one.

    Parameters
    ----------
    margin : float or mapping of metric to float
        One number serves the shares (TER, AUC-PEC, success and their kin), whose unit it has; means in calls need a
        margin of their own.
    names : sequence of str
        The metrics of the comparison.

    Returns
    -------
    dict of str to float

    Raises
    ------
    InputError
        If a margin is not positive, or its metric was not compared.
    """
    in_calls = ("mean_fed", "mean_length")
    given = dict(margin) if isinstance(margin, Mapping) else {n: margin for n in names if n not in in_calls}
    for name, value in given.items():
        if name not in names:
            raise InputError(f"margin for {name!r}, which was not compared; there are: {', '.join(names)}")
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"margin = {value!r} for {name}; it must be above 0, in the unit of the metric")
    if not given:
        raise InputError(f"margin: none of {', '.join(names)} has one; give a mapping such as {{'ter': 0.05}}")
    return given


def equivalence_row(pair: Pair, metric: Metric, interval: DifferenceInterval, margin: float, level: float) -> dict:
    """Is a equivalent to b, or at least not worse, by a margin? Two one-sided tests by inverting the interval.

    Parameters
    ----------
    pair : Pair
    metric : Metric
    interval : DifferenceInterval
    margin : float
    level : float
        1 - alpha: each one-sided test has size alpha, so the interval shown has level 1 - 2 alpha.

    Returns
    -------
    dict
        ``metric, a, b, difference, lower, upper, margin, p_non_inferior`` (H0: a is worse by the margin or more),
        ``p_equivalent`` (H0: apart by the margin or more), ``conclusion, interval, n_pairs``.
    """
    estimate = metric(pair.tally.total)
    lower, upper = interval.bounds(1 - 2 * (1 - level))
    worse = one_sided(interval, -margin)[0]
    better = one_sided(interval, margin)[1]
    both = max(worse, better) if not np.isnan([worse, better]).any() else np.nan
    if np.isnan(lower):
        conclusion = "undefined"
    elif lower > -margin:
        conclusion = "equivalent" if upper < margin else "not inferior"
    else:
        conclusion = "not shown"
    return {
        "metric": metric.name, "a": pair.a, "b": pair.b, "difference": estimate[0] - estimate[1], "lower": lower,
        "upper": upper, "margin": margin, "p_non_inferior": worse, "p_equivalent": both, "conclusion": conclusion,
        "interval": interval.name, "n_pairs": len(pair.tally.tasks),
    }  # fmt: skip
