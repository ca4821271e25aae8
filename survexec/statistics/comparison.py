"""Is one method better than another? Paired differences of every metric, their intervals, and tests with Holm's p."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError, PairingError
from survexec.protocol.trajectory import UNKNOWN
from survexec.rollouts import Rollouts
from survexec.statistics import proportions
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.paired_tests import Tested, holm, mcnemar_midp, sign_flip, sign_flip_real
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import BOOTSTRAP, checked_level, proportion_bounds, resampled_bounds
from survexec.statistics.tally import CELL, Tally, checked_by, count

# Below this denominator the bootstrap of a conditional share covers 92%, MOVER 95.5 to 96%.
SMALL_DENOMINATOR: Final = 20
INTERVALS: Final = (*BOOTSTRAP, "mover", "newcombe", "tango")
# Areas scaled to whole numbers must survive double precision.
_LARGEST_SCALE: Final = 2**40


@dataclass(frozen=True, eq=False)
class Pair:
    """Two cells on the tasks that both have.

    Parameters
    ----------
    within : dict
        What the two share.
    a, b : str
        The values of the compared column; differences are a minus b.
    tally : Tally
        The common tasks, cells a and b.
    sample : Replicates
        Of the difference, one cell.
    left_out : list of str
        Tasks that only one side has.
    tests : dict
        The default test of each metric that has one.
    """

    within: dict[str, Any]
    a: str
    b: str
    tally: Tally
    sample: Replicates
    left_out: list[str]
    tests: dict[str, Tested]

    @property
    def name(self) -> str:
        """The pair in words."""
        place = " / ".join(str(value) for value in self.within.values() if value != UNKNOWN)
        return f"{self.a} - {self.b}" + (f" in {place}" if place else "")


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Paired differences of every metric.

    The frame has the columns shared by a pair, then ``metric, a, b, estimate_a, estimate_b, difference`` (a minus b),
    ``lower, upper, p_value, p_adjusted, test, interval, n_pairs, denominator_a, denominator_b``.

    Parameters
    ----------
    pairs : tuple of Pair
        With their replicates, so that another level or method needs no new draws.
    """

    pairs: tuple[Pair, ...] = field(repr=False)
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
    (between,) = checked_by(between)
    within = tuple(name for name in CELL if name != between) if within is None else checked_by(within)
    if between in within:
        raise InputError(f"between = {between!r} cannot also be in within")
    level, seed = checked_level(level), as_seed(rng)
    tally = count(rollouts, (*within, between))
    pairs, refused = _paired(tally, rollouts, between, within, baseline, resamples, seed)
    made = {
        "between": between, "within": within, "baseline": baseline, "metrics": names, "level": level,
        "interval": interval, "resamples": resamples, "seed": seed, "rule": str(rollouts.rule), "unit": "task",
        "refused": refused, "told": rollouts.notes,
    }  # fmt: skip
    empty = Comparison(pd.DataFrame(), within, (), made, rollouts.ledger, tuple(pairs))
    return _compared(empty, level, interval)


def _checked_metrics(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Known metric names, all by default."""
    names = tuple(METRICS) if metrics is None else ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    for name in names:
        if name not in METRICS:
            raise InputError(f"metric {name!r} is unknown; there are: {', '.join(METRICS)}")
    return names


def _paired(
    tally: Tally,
    rollouts: Rollouts,
    between: str,
    within: tuple[str, ...],
    baseline: str | None,
    resamples: int,
    seed: int,
) -> tuple[list[Pair], tuple[str, ...]]:
    """Every pair with common tasks and its replicates; and what was refused."""
    wanted = list(_wanted(tally, between, within, baseline))
    if not wanted:
        values = ", ".join(map(repr, tally.cells[between].unique()))
        raise InputError(f"nothing to compare: {between} has one value only within each {' x '.join(within)}: {values}")
    present = tally.present
    common = {(a, b): present[:, a] & present[:, b] for a, b in wanted}
    refused = tuple(
        f"{tally.cells[between][a]} and {tally.cells[between][b]} have no task in common"
        f"{_examples(tally, present[:, a], present[:, b])}"
        for (a, b), both in common.items()
        if not both.any()
    )
    if len(refused) == len(wanted):
        raise PairingError("no pair can be made: " + "; ".join(refused))
    pairs: dict[tuple[int, int], Pair] = {}
    for both in {both.tobytes(): both for both in common.values() if both.any()}.values():
        inside = [pair for pair in wanted if (common[pair] == both).all()]
        cells = sorted({cell for pair in inside for cell in pair})
        # cells of one pattern share their weights, and those weights cover exactly the common tasks
        part = tally.take(both, cells)
        sample = replicate(part, list(METRICS.values()), resamples, seed)
        for a, b in inside:
            at = [cells.index(a), cells.index(b)]
            either = present[:, a] | present[:, b]
            two = part.take(cells=at)
            pairs[a, b] = Pair(
                dict(tally.cells.loc[a, list(within)]), str(tally.cells[between][a]), str(tally.cells[between][b]),
                two, sample.difference(*at), tally.tasks["task_id"][either & ~both].tolist(),
                _tests(two, _area_scale(rollouts, tally.cells, (a, b)), seed),
            )  # fmt: skip
    return [pairs[pair] for pair in wanted if pair in pairs], refused


def _wanted(tally: Tally, between: str, within: tuple[str, ...], baseline: str | None) -> Iterator[tuple[int, int]]:
    """Pairs of cells (a, b) to compare, b the baseline where there is one."""
    cells = tally.cells
    if baseline is not None and baseline not in set(cells[between]):
        raise InputError(
            f"baseline {baseline!r} is no {between}; there are: {', '.join(map(str, cells[between].unique()))}"
        )
    groups = cells.groupby(list(within), sort=False).indices.values() if within else [np.arange(len(cells))]
    for group in groups:
        if baseline is None:
            yield from itertools.combinations(sorted(map(int, group)), 2)
        else:
            base = [int(c) for c in group if cells[between][c] == baseline]
            yield from ((int(c), b) for b in base for c in sorted(group) if c != b)


def _examples(tally: Tally, first: np.ndarray, second: np.ndarray) -> str:
    """Some task names of either side, which show why they do not match."""
    sides = [", ".join(map(repr, tally.tasks["task_id"][side].head(3))) for side in (first, second)]
    return f" (tasks such as {sides[0]} against {sides[1]})"


def _area_scale(rollouts: Rollouts, cells: pd.DataFrame, pair: tuple[int, int]) -> int:
    """Least common multiple of T over the pair's rollouts with an error: their areas times it are whole numbers."""
    frame = rollouts.frame[rollouts.events.to_numpy()]
    inside = frame.merge(cells.iloc[list(pair)], on=list(cells.columns))
    return math.lcm(*inside["length"].unique().tolist()) if len(inside) else 1


def _compared(result: Comparison, level: float, interval: str | None) -> Comparison:
    """Fill the frame and the notes of a comparison from its pairs."""
    if interval is not None and interval not in INTERVALS:
        raise InputError(f"interval = {interval!r}; it must be one of {', '.join(INTERVALS)}")
    rows, notes = [], list(result.made["refused"])
    for pair in result.pairs:
        if pair.left_out:
            some = ", ".join(pair.left_out[:10]) + (", ..." if len(pair.left_out) > 10 else "")
            notes.append(
                f"{pair.name}: {len(pair.left_out)} of the tasks are on one side only and are left out: {some}"
            )
        for name in result.made["metrics"]:
            row, told = _row(pair, METRICS[name], level, interval)
            rows.append({**pair.within, **row})
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
    return replace(result, frame=frame, notes=tuple(notes) + result.made["told"], made=made)


def _row(pair: Pair, metric: Metric, level: float, interval: str | None) -> tuple[dict[str, Any], list[str]]:
    """One difference with its interval and test, and what must be said of it."""
    total = pair.tally.total
    estimate, denominator = metric(total), metric.denominator(total)
    lower, upper, name, notes = _interval(pair, metric, level, interval)
    tested = pair.tests.get(metric.name)
    row = {
        "metric": metric.name, "a": pair.a, "b": pair.b, "estimate_a": estimate[0], "estimate_b": estimate[1],
        "difference": estimate[0] - estimate[1], "lower": lower, "upper": upper,
        "p_value": np.nan if tested is None else tested.p_value, "test": "" if tested is None else tested.test,
        "interval": name, "n_pairs": len(pair.tally.tasks) if tested is None else tested.n_pairs,
        "denominator_a": int(denominator[0]), "denominator_b": int(denominator[1]),
    }  # fmt: skip
    return row, notes


def _interval(pair: Pair, metric: Metric, level: float, wanted: str | None) -> tuple[float, float, str, list[str]]:
    """Bounds of a difference, the name of their method, and notes."""
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
        lower, upper = (float(bound[0, at]) for bound in resampled_bounds(pair.sample, name, level))
        undefined = int(np.isnan(pair.sample.values[0, at]).sum())
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
