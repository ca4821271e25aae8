"""How well a paired difference is known: its interval at any level, and the p-values that inverting it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from survexec.errors import InputError
from survexec.rollouts import counted
from survexec.statistics import proportions
from survexec.statistics.estimands import Metric
from survexec.statistics.intervals import expanded_tail, without_spread
from survexec.statistics.metric_tests import hits, is_clustered, known_everywhere
from survexec.statistics.pairing import Pair, undefined
from survexec.statistics.resampling import Replicates
from survexec.statistics.summary import BOOTSTRAP, proportion_bounds
from survexec.statistics.tally import Counts

# Below this denominator the bootstrap of a conditional share covers 92%, MOVER 95.5 to 96%; with fewer hits or misses
# than FEW_HITS it covers 80 to 94%, MOVER from Jeffreys limits 94 to 97% (from Wilson limits up to 98.7%).
SMALL_DENOMINATOR: Final = 20
FEW_HITS: Final = 5
# Where the sides differ on fewer tasks than this, the bootstrap of a difference covers as little as 86% with 20 tasks
# and 93% with 50, Newcombe's paired interval 95% and more (exact, by enumeration).
FEW_APART: Final = 5
_ZERO: Final = 1e-9
INTERVALS: Final = (*BOOTSTRAP, "mover", "newcombe", "tango")
IN_WORDS: Final = {"mover": "MOVER from Wilson limits", "mover_jeffreys": "MOVER from Jeffreys limits"}


@dataclass(frozen=True, eq=False)
class DifferenceInterval:
    """The interval of one metric's difference between the two sides of a pair.

    Parameters
    ----------
    name : str
        Its method; empty where the difference is undefined.
    bounds : callable
        Level -> (lower, upper).
    notes : tuple of str
        Why this method, or why none.
    finest : float
        The smallest tail that it can show: a bootstrap reaches no further than its resamples.
    """

    name: str
    bounds: Callable[[float], tuple[float, float]]
    notes: tuple[str, ...]
    finest: float = 1e-6


def difference_interval(
    pair: Pair, sample: Replicates, metric: Metric, wanted: str | None = None
) -> DifferenceInterval:
    """The interval of a metric's difference.

    Parameters
    ----------
    pair : Pair
    sample : Replicates
        Of the metric's difference: one cell, one statistic.
    metric : Metric
    wanted : str, optional
        One of `INTERVALS`, where it applies. None: the expanded percentile of the paired bootstrap; MOVER for a share
        that rests on few, as `of_few` says; Newcombe's for a share of tasks, where the sides differ on fewer than 5 of
        them or on all alike.

    Returns
    -------
    DifferenceInterval
    """
    if why := undefined(metric, pair.tally.total, (pair.a, pair.b)):
        return DifferenceInterval("", lambda _: (np.nan, np.nan), (f"{pair.name}: {metric.label} is {why}",))
    flat = bool(without_spread(sample).all())
    name, notes = _chosen(pair, metric, wanted, flat)
    if name not in BOOTSTRAP:
        return DifferenceInterval(name, lambda level: closed_form(pair, metric, level, name), tuple(notes))
    if flat:
        return DifferenceInterval(name, lambda _: (np.nan, np.nan), tuple(notes))
    lost = int(np.isnan(sample.values).sum())
    if lost:
        notes.append(f"{pair.name}: {metric.label} is undefined in {lost} resamples, which are left out")

    def resampled(level: float) -> tuple[float, float]:
        lower, upper = BOOTSTRAP[name](sample, level)
        return lower.item(), upper.item()

    finest = DifferenceInterval.finest
    if name != "jackknife_t":
        finest = 1 / (sample.values.shape[-1] + 1)
    if name == "expanded_percentile":
        finest = expanded_tail(sample.n_tasks.item(), finest).item()
    return DifferenceInterval(name, resampled, tuple(notes), finest)


def _chosen(pair: Pair, metric: Metric, wanted: str | None, flat: bool) -> tuple[str, list[str]]:
    """Which method applies, and what must be said of it; `flat` where no task moves the difference."""
    label, known = f"{pair.name}: {metric.label}", known_everywhere(pair.tally, metric)
    single = metric.proportion and not metric.conditional and not is_clustered(pair.tally)
    whole = single and bool(known.all())  # what Newcombe's and Tango's tables of tasks need
    name, notes = wanted or "expanded_percentile", []
    if (name in ("newcombe", "tango") and not whole) or (name == "mover" and not metric.proportion):
        name = "expanded_percentile"
    if metric.conditional:
        few, rarer = of_few(metric, pair.tally.total)
        if few and wanted is None:
            name, (a, b) = few, metric.denominator(pair.tally.total).astype(int)
            how = f"its interval is {IN_WORDS[few]}, which takes the two sides as independent"
            notes.append(f"{label} rests on {a} and {b}{rarer}; {how}")
    elif not known.all():
        both = f"on both sides of {known.sum()} of {counted(len(known), 'tasks')}"
        notes.append(f"{label} is known {both}, which its test takes alone; the difference takes all that is known")
    differ = apart(pair, metric)
    if name in BOOTSTRAP and (flat or (differ < FEW_APART and not metric.conditional)):
        which = "resampling gives no interval" if flat else "so few make its interval too narrow"
        if (single and flat) or (whole and wanted is None):
            name, which = "newcombe", "its interval is Newcombe's"
        few = f"{label} differs on {counted(differ, 'tasks')} alone"
        same = f"{pair.name}: the difference in {metric.label} is the same on every task"
        notes.append(f"{same if flat else few}; {which}")
    return name, notes


def apart(pair: Pair, metric: Metric) -> int:
    """On how many tasks the two sides differ, of those where both have the metric.

    Parameters
    ----------
    pair : Pair
    metric : Metric

    Returns
    -------
    int
    """
    known = known_everywhere(pair.tally, metric)
    value = metric.numerator(pair.tally.counts)[known] / metric.denominator(pair.tally.counts)[known]
    return int((np.abs(value[:, 0] - value[:, 1]) > _ZERO).sum())


def of_few(metric: Metric, total: Counts) -> tuple[str, str]:
    """Which interval a share of outcomes needs where it rests on few on a side.

    Parameters
    ----------
    metric : Metric
        A conditional share.
    total : Counts
        Of the two sides.

    Returns
    -------
    name, rarer : str
        "mover" where a denominator is below 20, "mover_jeffreys" where only hits or misses are below 5, and these in
        words; empty where neither is, or a side has no denominator.

    References
    ----------
    Zou and Donner (2008), Statistics in Medicine 27:1693-1702; Laud (2017), Pharmaceutical Statistics 16:334-348 (MOVER
    from Jeffreys limits, which are not as wide as Wilson's where hits are rare).
    """
    hit, denominator = metric.numerator(total), metric.denominator(total)
    rarer = np.minimum(hit, denominator - hit).min()
    if denominator.min() < SMALL_DENOMINATOR:
        return ("mover" if denominator.min() > 0 else ""), ""
    return ("mover_jeffreys", f", with {int(rarer)} on the rarer side") if rarer < FEW_HITS else ("", "")


def checked_interval(interval: str | None) -> str | None:
    """A name of `INTERVALS`, or None for the defaults.

    Raises
    ------
    InputError
    """
    if interval is not None and interval not in INTERVALS:
        raise InputError(f"interval = {interval!r}; it must be one of {', '.join(INTERVALS)}")
    return interval


def closed_form(pair: Pair, metric: Metric, level: float, name: str) -> tuple[float, float]:
    """Newcombe's or Tango's interval of a difference of paired shares, or MOVER from Wilson or Jeffreys limits.

    Parameters
    ----------
    pair : Pair
    metric : Metric
        A proportion.
    level : float
    name : {"newcombe", "tango", "mover", "mover_jeffreys"}

    Returns
    -------
    lower, upper : float
    """
    z = proportions.normal_quantile(level)
    if name in IN_WORDS:
        limits = proportions.wilson if name == "mover" else proportions.jeffreys
        low, high, _ = proportion_bounds(metric, pair.tally, z, limits)
        p = metric(pair.tally.total)
        lower, upper = proportions.mover(p[0], (low[0], high[0]), p[1], (low[1], high[1]))
        return float(lower), float(upper)
    both, b, c, neither = table(pair, metric)
    if name == "tango":
        return proportions.tango(b, c, both + b + c + neither, z)
    lower, upper = proportions.newcombe_paired(both, b, c, neither, z)
    return float(lower), float(upper)


def mean_weight(pair: Pair, metric: Metric, z: float) -> tuple[float, tuple[float, float]]:
    """The share of the labelled rollouts that a metric is of, averaged over the two sides, with Wilson limits.

    Parameters
    ----------
    pair : Pair
    metric : Metric
        RR or s.
    z : float
        Critical value.

    Returns
    -------
    weight : float
    (lower, upper) : tuple of float
        On the effective number of rollouts, where the rollouts of a task on both sides are one cluster.
    """
    of, labelled = metric.denominator(pair.tally.counts), pair.tally.counts["labelled"]
    # as if both sides had the same number of rollouts, so that the pooled share is the mean of theirs
    scale = labelled.sum() / labelled.sum(axis=0) / 2
    x, n = (of * scale).sum(axis=1), (labelled * scale).sum(axis=1)
    weight, size = x.sum() / n.sum(), proportions.effective_n(x, n)
    low, high = proportions.wilson(weight * size, size, z)
    return float(weight), (float(low), float(high))


def table(pair: Pair, metric: Metric) -> tuple[int, int, int, int]:
    """Tasks where both sides hit, only the first, only the second, neither."""
    first, second = hits(pair.tally, metric).T
    counts = [first & second, first & ~second, ~first & second, ~first & ~second]
    return tuple(int(count.sum()) for count in counts)  # type: ignore[return-value]


def one_sided(interval: DifferenceInterval, at: float) -> tuple[float, float]:
    """P-values that the difference is at most, and at least, a value: where the interval's end just reaches it.

    Parameters
    ----------
    interval : DifferenceInterval
    at : float

    Returns
    -------
    at_most, at_least : float
        For the hypotheses "difference <= at" and "difference >= at"; NaN where there is no interval, and never below
        what the interval can show. The two-sided interval at level 1 - 2 alpha lies above `at` exactly where the first
        is below alpha.

    References
    ----------
    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15:657-680 (two one-sided tests).
    """
    if np.isnan(interval.bounds(0.9)).any():
        return np.nan, np.nan

    def p(outside: Callable[[float], bool]) -> float:
        # the tail alpha at which the end of the interval at 1 - 2 alpha crosses the value; above 1/2 by symmetry
        low, high = interval.finest, 0.5 - 1e-9
        if outside(low):
            return low
        if not outside(high):
            return np.nan
        while high - low > 1e-7:
            middle = (low * high) ** 0.5 if low < 1e-3 else (low + high) / 2
            low, high = (low, middle) if outside(middle) else (middle, high)
        return high

    above = p(lambda tail: interval.bounds(1 - 2 * tail)[0] > at)
    below = p(lambda tail: interval.bounds(1 - 2 * tail)[1] < at)
    if np.isnan(above) and np.isnan(below):
        return 0.5, 0.5
    return (1 - below if np.isnan(above) else above), (1 - above if np.isnan(below) else below)
