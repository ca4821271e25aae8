"""Is one method better than another? Paired differences of every metric, their intervals, and tests with Holm's p."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import proportions
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.paired_tests import Tested, holm, mcnemar_midp, sign_flip, sign_flip_real
from survexec.statistics.pairing import Pair, checked_design, differences, paired
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed
from survexec.statistics.results import Result
from survexec.statistics.summary import BOOTSTRAP, checked_level, proportion_bounds, resampled_bounds
from survexec.statistics.tally import Tally, count

# Below this denominator the bootstrap of a conditional share covers 92%, MOVER 95.5 to 96%.
SMALL_DENOMINATOR: Final = 20
INTERVALS: Final = (*BOOTSTRAP, "mover", "newcombe", "tango")
# Areas scaled to whole numbers must survive double precision.
_LARGEST_SCALE: Final = 2**40


@dataclass(frozen=True, eq=False)
class Compared:
    """A pair with its replicates and tests.

    Parameters
    ----------
    pair : Pair
    sample : Replicates
        Of the differences of all metrics, one cell.
    tests : dict
        The default test of each metric that has one.
    """

    pair: Pair
    sample: Replicates
    tests: dict[str, Tested]


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Paired differences of every metric.

    The frame has the columns shared by a pair, then ``metric, a, b, estimate_a, estimate_b, difference`` (a minus b),
    ``lower, upper, p_value, p_adjusted, test, interval, n_pairs, denominator_a, denominator_b``.

    Parameters
    ----------
    pairs : tuple of Compared
        With their replicates, so that another level or method needs no new draws.
    refused, told : tuple of str
        The notes that hold at any level: pairs without common tasks, and what the ledger tells.
    """

    pairs: tuple[Compared, ...] = field(repr=False)
    refused: tuple[str, ...] = field(repr=False)
    told: tuple[str, ...] = field(repr=False)
    kind: ClassVar[str] = "comparison"

    def with_interval(self, level: float | None = None, interval: str | None = None) -> Comparison:
        """The same differences with other intervals, from the same replicates; the tests stay as they are.

        Parameters
        ----------
        level : float, optional
        interval : str, optional
            One of `INTERVALS`, for every metric it applies to; None for each metric's default.

        Returns
        -------
        Comparison
        """
        level = self.made["level"] if level is None else checked_level(level)
        return _compared(self, level, interval)


def compare(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    baseline: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
    interval: str | None = None,
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> Comparison:
    """Differences of every metric between methods (or models), paired by task, with intervals and tests.

    Parameters
    ----------
    rollouts : Rollouts
    between : str
        The column whose values are compared.
    within : sequence of str, optional
        Columns that a pair must share; by default the others of ``benchmark, model, method``.
    baseline : str, optional
        Compare each value with this one only; differences are value minus baseline. None: all pairs.
    metrics : sequence of str, optional
        All by default; fewer metrics make a smaller family of tests.
    level : float
    interval : str, optional
        One of `INTERVALS`. None: the expanded percentile of the paired bootstrap over tasks; MOVER from Wilson
        limits for a share whose denominator is below 20 on a side.
    resamples : int
    rng : int or numpy.random.Generator

    Returns
    -------
    Comparison

    Raises
    ------
    PairingError
        If no pair has a task in common.
    InputError
        If there is nothing to compare, or a name is unknown.

    Notes
    -----
    Tests: McNemar mid-p for TER and success (the sign-flip test of task means where a task has several rollouts);
    sign-flip for mean FED and AUC-PEC. p is adjusted by Holm over all tests of the call.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> frame = sx.compare(runs, baseline="tool_calling", metrics=["ter"], resamples=200).frame
    >>> frame[["a", "b", "n_pairs"]].values.tolist()[0]
    ['tool_calling_preconditions', 'tool_calling', 100]
    """
    names = _checked_metrics(metrics)
    between, within = checked_design(between, within)
    level, seed = checked_level(level), as_seed(rng)
    tally = count(rollouts, (*within, between))
    pairs, refused = paired(tally, between, within, baseline)
    samples = differences(tally, pairs, list(METRICS.values()), resamples, seed)
    compared = tuple(
        Compared(pair, sample, _tests(pair.tally, _area_scale(rollouts, tally.cells, pair.cells), seed))
        for pair, sample in zip(pairs, samples, strict=True)
    )
    made = {
        "between": between, "within": within, "baseline": baseline, "metrics": names, "level": level,
        "interval": interval, "resamples": resamples, "seed": seed, "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    empty = Comparison(pd.DataFrame(), within, (), made, rollouts.ledger, compared, refused, rollouts.notes)
    return _compared(empty, level, interval)


def _checked_metrics(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Known metric names, all by default."""
    names = tuple(METRICS) if metrics is None else ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    for name in names:
        if name not in METRICS:
            raise InputError(f"metric {name!r} is unknown; there are: {', '.join(METRICS)}")
    return names


def _area_scale(rollouts: Rollouts, cells: pd.DataFrame, pair: tuple[int, int]) -> int:
    """Least common multiple of T over the pair's rollouts with an error: their areas times it are whole numbers."""
    frame = rollouts.frame[rollouts.events.to_numpy()]
    inside = frame.merge(cells.iloc[list(pair)], on=list(cells.columns))
    return math.lcm(*inside["length"].unique().tolist()) if len(inside) else 1


def _compared(result: Comparison, level: float, interval: str | None) -> Comparison:
    """Fill the frame and the notes of a comparison from its pairs."""
    if interval is not None and interval not in INTERVALS:
        raise InputError(f"interval = {interval!r}; it must be one of {', '.join(INTERVALS)}")
    rows, notes = [], list(result.refused)
    for compared in result.pairs:
        notes += compared.pair.notes
        for name in result.made["metrics"]:
            row, told = _row(compared, METRICS[name], level, interval)
            rows.append({**compared.pair.within, **row})
            notes += told
    frame = pd.DataFrame(rows)
    frame.insert(frame.columns.get_loc("p_value") + 1, "p_adjusted", holm(frame["p_value"].to_numpy()))
    tested = frame[frame["p_value"].notna()]
    if len(tested):
        names = ", ".join(METRICS[name].label for name in tested["metric"].unique())
        notes.append(
            f"p adjusted by Holm over a family of {len(tested)} tests: {names}; {len(result.pairs)} "
            f"pair{'s' if len(result.pairs) != 1 else ''}"
        )
    made = {**result.made, "level": level, "interval": interval}
    return replace(result, frame=frame, notes=tuple(notes) + result.told, made=made)


def _row(compared: Compared, metric: Metric, level: float, interval: str | None) -> tuple[dict[str, Any], list[str]]:
    """One difference with its interval and test, and what must be said of it."""
    pair, total = compared.pair, compared.pair.tally.total
    estimate, denominator = metric(total), metric.denominator(total)
    lower, upper, name, notes = _interval(compared, metric, level, interval)
    tested = compared.tests.get(metric.name)
    row = {
        "metric": metric.name, "a": pair.a, "b": pair.b, "estimate_a": estimate[0], "estimate_b": estimate[1],
        "difference": estimate[0] - estimate[1], "lower": lower, "upper": upper,
        "p_value": np.nan if tested is None else tested.p_value, "test": "" if tested is None else tested.test,
        "interval": name, "n_pairs": len(pair.tally.tasks) if tested is None else tested.n_pairs,
        "denominator_a": int(denominator[0]), "denominator_b": int(denominator[1]),
    }  # fmt: skip
    return row, notes


def _interval(
    compared: Compared, metric: Metric, level: float, wanted: str | None
) -> tuple[float, float, str, list[str]]:
    """Bounds of a difference, the name of their method, and notes."""
    pair, sample = compared.pair, compared.sample
    denominator = metric.denominator(pair.tally.total)
    if (denominator == 0).any():
        at = 0 if denominator[0] == 0 else 1
        reason = metric.reason(pair.tally.total, at)
        text = f"{pair.name}: {metric.label} is undefined in {(pair.a, pair.b)[at]}: {reason} (0/0)"
        return np.nan, np.nan, "", [text]
    name, notes = wanted or "expanded_percentile", []
    binary = metric.proportion and not metric.conditional and not _clustered(pair.tally)
    if name in ("newcombe", "tango") and not binary:
        name = "expanded_percentile"
    if name == "mover" and not metric.proportion:
        name = "expanded_percentile"
    if wanted is None and metric.conditional and denominator.min() < SMALL_DENOMINATOR:
        name = "mover"
        notes.append(
            f"{pair.name}: {metric.label} rests on {int(denominator[0])} and {int(denominator[1])}; its interval is "
            "MOVER from Wilson limits, which takes the two sides as independent"
        )
    at = list(METRICS).index(metric.name)
    if name in BOOTSTRAP:
        lower, upper = (float(bound[0, at]) for bound in resampled_bounds(sample, name, level))
        undefined = int(np.isnan(sample.values[0, at]).sum())
        if undefined:
            notes.append(f"{pair.name}: {metric.label} is undefined in {undefined} resamples, which are left out")
        if np.isnan(lower) and binary:
            name = "newcombe"
            notes.append(
                f"{pair.name}: the difference in {metric.label} is the same on every task; its interval is Newcombe's"
            )
        elif np.isnan(lower):
            notes.append(
                f"{pair.name}: the difference in {metric.label} is the same on every task; resampling gives no interval"
            )
    if name not in BOOTSTRAP:
        lower, upper = _closed_form(pair, metric, level, name)
    return lower, upper, name, notes


def _closed_form(pair: Pair, metric: Metric, level: float, name: str) -> tuple[float, float]:
    """Newcombe, Tango or MOVER."""
    z = proportions.normal_quantile(level)
    if name == "mover":
        low, high, _ = proportion_bounds(metric, pair.tally, z)
        p = metric(pair.tally.total)
        lower, upper = proportions.mover(p[0], (low[0], high[0]), p[1], (low[1], high[1]))
        return float(lower), float(upper)
    first, second = _hits(pair.tally, metric)
    b, c = int((first & ~second).sum()), int((~first & second).sum())
    if name == "tango":
        return proportions.tango(b, c, len(first), z)
    both = int((first & second).sum())
    lower, upper = proportions.newcombe_paired(both, b, c, len(first) - both - b - c, z)
    return float(lower), float(upper)


def _clustered(tally: Tally) -> bool:
    """Whether a task has several rollouts on a side."""
    return bool(tally["rollouts"].max() > 1)


def _hits(tally: Tally, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """Whether each side hit, on the tasks where both are known."""
    known = (metric.denominator(tally.counts) > 0).all(axis=1)
    hits = metric.numerator(tally.counts)[known] > 0
    return hits[:, 0], hits[:, 1]


def _tests(tally: Tally, area_scale: int, seed: int) -> dict[str, Tested]:
    """The default test of TER, success, mean FED and AUC-PEC on the common tasks."""
    tests = {}
    for metric in (METRICS[name] for name in ("ter", "success", "mean_fed", "auc_pec")):
        if (metric.denominator(tally.total) == 0).any():
            continue
        if metric.proportion and not _clustered(tally):
            tests[metric.name] = mcnemar_midp(*_hits(tally, metric))
        else:
            tests[metric.name] = _sign_flip(tally, metric, area_scale if metric.name == "auc_pec" else 1, seed)
    return tests


def _sign_flip(tally: Tally, metric: Metric, scale: int, seed: int) -> Tested:
    """Sign-flip test of the differences of task means, as whole numbers so that ties between their sums are exact."""
    n = metric.denominator(tally.counts)
    known = (n > 0).all(axis=1)
    means = metric.numerator(tally.counts)[known] / n[known]
    scale *= math.lcm(*np.unique(n[known]).astype(int).tolist())
    if scale > _LARGEST_SCALE:
        return sign_flip_real(means[:, 0] - means[:, 1], seed)
    whole = np.round(means * scale).astype(np.int64)
    return sign_flip(whole[:, 0] - whole[:, 1], seed)
