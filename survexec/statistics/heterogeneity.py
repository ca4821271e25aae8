"""Is a difference the same everywhere? Paired differences in each group, pooled, with the interaction test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from scipy import special

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.comparison import checked_metrics
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.intervals import influence, without_spread
from survexec.statistics.multiplicity import adjusted
from survexec.statistics.pairing import checked_design, named, paired, undefined
from survexec.statistics.pooling import POOLED, Pooled, pool
from survexec.statistics.resampling import replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level
from survexec.statistics.tally import Tally, count

# What is known of a rollout before it starts; groups of an outcome would select on it.
OVER: Final = ("stratum", "benchmark", "model", "method")
# Below this the simulated size of the interaction test is above 6.5% at a nominal 5%.
_FEW_TASKS: Final = 30
# A standard error that rests on so few tasks can make a weight too large by chance: 95% intervals cover 91 to 93%.
_FEW_APART: Final = 10
_FEW_EVENTS: Final = 5


@dataclass(frozen=True, eq=False)
class Heterogeneity(Result):
    """Paired differences of every metric in each group, and pooled over the groups.

    The frame has the columns shared by a pair, then ``metric, a, b, level_of`` (the column of the groups), ``group,
    role`` ("group" or "pooled"), ``difference`` (a minus b), ``standard_error, lower, upper, p_value`` (of pooled rows:
    that the difference is 0), ``weight_fixed, weight_random`` (of groups; NaN where left out of the pooling),
    ``n_pairs`` (tasks). Pooled rows are "fixed effect", "random effects (DL)" and "random effects (HK)".

    Parameters
    ----------
    tests : pandas.DataFrame
        Whether the difference is the same in all groups: the columns shared by a pair, then ``metric, a, b, q, df,
        p_value, p_adjusted`` (Holm over all tests of the call), ``i2, tau2, groups`` (that were pooled).
    """

    tests: pd.DataFrame = field(repr=False)
    kind: ClassVar[str] = "heterogeneity"


def heterogeneity(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    over: str = "stratum",
    baseline: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
) -> Heterogeneity:
    """Whether the differences between methods (or models) are the same in all groups, and what they are on the whole.

    Parameters
    ----------
    rollouts : Rollouts
    between : str
        The column whose values are compared.
    within : sequence of str, optional
        Columns that a pair must share; by default those of ``benchmark, model, method`` but `between` and `over`.
    over : {"stratum", "benchmark", "model", "method"}
        The column whose values are the groups. Tasks without a stratum are left out.
    baseline : str, optional
        Compare each value with this one only; differences are value minus baseline. None: all pairs.
    metrics : sequence of str, optional
        All by default; fewer metrics make a smaller family of tests.
    level : float

    Returns
    -------
    Heterogeneity

    Raises
    ------
    PairingError
        If no pair has a task in common.
    InputError
        If there is nothing to compare, no task has a stratum, or a name is unknown.

    Notes
    -----
    In a group of n tasks the standard error is the jackknife over tasks, sqrt((n - 1) / n times the squared
    influences), and the interval is t with n - 1 degrees of freedom: those of ``compare(interval="jackknife_t")``.
    Groups without such an error (one task, no spread, 0/0) are left out of the pooling. The fixed effect and
    DerSimonian-Laird use the normal distribution, Hartung-Knapp t with groups - 1.

    Groups that share tasks, as models do, are correlated: their covariance over the shared tasks is in the weights, in
    Q and in tau2, which are then those of generalised least squares, and weights can be negative.

    The interaction test rejects, at a nominal 5% and in simulation, 5 to 6.5% with 30 tasks a group and 7 to 8% with 10
    to 20; for four models on the same tasks 9% with 40 tasks and 6.5% with 100. Smaller counts are told in the notes.

    References
    ----------
    Cochran (1954), Biometrics 10:101-129; DerSimonian and Laird (1986), Controlled Clinical Trials 7:177-188; Hartung
    and Knapp (2001), Statistics in Medicine 20:3875-3889; more at `survexec.statistics.pooling.pool`.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> half = runs.frame["task_id"].astype(int).lt(50).map({True: "first half", False: "second half"})
    >>> runs = sx.Rollouts(runs.frame.assign(stratum=half))
    >>> result = heterogeneity(runs, baseline="tool_calling", metrics=["ter"])
    >>> result.frame[["group", "difference", "n_pairs"]].round(3).values.tolist()[:3]
    [['first half', 0.06, 50], ['second half', 0.0, 50], ['fixed effect', 0.032, 100]]
    >>> result.tests[["q", "df", "p_value"]].round(3).values.tolist()[0]
    [0.595, 1.0, 0.44]
    """
    between, within = _checked_design(between, within, over)
    names, level = checked_metrics(metrics), checked_level(level)
    blocks, notes = _blocks(rollouts, between, within, over, baseline, names)
    rows, tests, told = [], [], _Told()
    for block in blocks:
        for at, name in enumerate(names):
            shared = {**block.within, "metric": name, "a": block.a, "b": block.b}
            pooled = block.pooled(at)
            rows += [{**shared, "level_of": over, **row} for row in _rows(block, at, pooled, level)]
            tests.append({**shared, **_test(pooled)})
            _tell(block, at, pooled, level, told)
    table = pd.DataFrame(tests)
    table.insert(table.columns.get_loc("p_value") + 1, "p_adjusted", adjusted(table["p_value"].to_numpy(), "holm"))
    made = {
        "between": between, "within": within, "over": over, "baseline": baseline, "metrics": names, "level": level,
        "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    every = (*notes, *told.notes, *_family(table), *rollouts.notes)
    return Heterogeneity(pd.DataFrame(rows), within, every, made, rollouts.ledger, table)


def _checked_design(between: str, within: Sequence[str] | str | None, over: str) -> tuple[str, tuple[str, ...]]:
    """The compared column and those a pair must share, neither of which is the column of the groups."""
    if over not in OVER:
        raise InputError(f"over = {over!r}; it must be one of {', '.join(OVER)}")
    between, shared = checked_design(between, within)
    if within is None:
        shared = tuple(name for name in shared if name != over)
    for given, names in (("between", (between,)), ("within", shared)):
        if over in names:
            raise InputError(f"over = {over!r} cannot also be in {given}: its values are the groups")
    return between, shared


@dataclass(frozen=True, eq=False)
class _Block:
    """One pair (a, b) in all of its groups.

    `moved` is how much each task moves the difference in each group, shape (task, group, metric), scaled so that its
    squares add to the jackknife variance, 0 where a group lacks the task. `estimate` has shape (group, metric);
    `reasons` says of each of them why it has no standard error, or nothing. `here`: which tasks a group has.
    """

    within: dict[str, Any]
    a: str
    b: str
    parts: dict[str, Tally]
    metrics: list[Metric]
    moved: np.ndarray
    estimate: np.ndarray
    reasons: np.ndarray
    here: np.ndarray

    @property
    def name(self) -> str:
        """The pair in words."""
        return named(f"{self.a} - {self.b}", self.within)

    def usable(self, at: int) -> np.ndarray:
        """Which groups can be weighed for a metric."""
        return self.reasons[:, at] == ""

    def pooled(self, at: int) -> Pooled:
        """A metric pooled over those groups; tasks that several of them share make their covariance."""
        use = self.usable(at)
        moved = self.moved[:, use, at]
        return pool(self.estimate[use, at], moved.T @ moved)


def _blocks(
    rollouts: Rollouts, between: str, within: tuple[str, ...], over: str, baseline: str | None, names: tuple[str, ...]
) -> tuple[list[_Block], list[str]]:
    """Each pair with its groups, and what was left out of them."""
    cells = within if over == "stratum" else (*within, over)
    tally = count(rollouts, (*cells, between))
    pairs, refused = paired(tally, between, cells, baseline)
    notes = [*refused, *(note for pair in pairs for note in pair.notes)]
    first = {value: place for place, value in enumerate(tally.cells[between].astype(str).unique())}
    gathered: dict[tuple[Any, ...], dict[str, Tally]] = {}
    for pair in pairs:
        # cells stand in order of appearance, which may differ from group to group
        turned = baseline is None and first[pair.a] > first[pair.b]
        a, b, both = (pair.b, pair.a, pair.tally.take(cells=[1, 0])) if turned else (pair.a, pair.b, pair.tally)
        parts = {pair.within[over]: both} if over != "stratum" else _strata(both)
        unknown = len(both.tasks) - sum(len(part.tasks) for part in parts.values())
        if unknown:
            notes.append(f"{pair.name}: {unknown} of {len(both.tasks)} tasks have no stratum and are left out")
        if parts:
            gathered.setdefault((*(pair.within[name] for name in within), a, b), {}).update(parts)
    if not gathered:
        raise InputError("no task has a stratum; fill the column stratum, or give another column as over")
    metrics = [METRICS[name] for name in names]
    return [
        _block(dict(zip(within, place, strict=True)), a, b, parts, metrics)
        for (*place, a, b), parts in gathered.items()
    ], notes


def _strata(tally: Tally) -> dict[str, Tally]:
    """A tally cut by the known strata of its tasks."""
    strata = tally.tasks["stratum"].to_numpy()
    return {str(value): tally.take(strata == value) for value in np.unique(strata) if value != ""}


def _block(within: dict[str, Any], a: str, b: str, parts: dict[str, Tally], metrics: list[Metric]) -> _Block:
    """The differences of a pair in each group, and how much each task moves them."""
    named_tasks = [pd.MultiIndex.from_frame(part.tasks[["benchmark", "task_id"]]) for part in parts.values()]
    tasks = named_tasks[0].append(named_tasks[1:]).unique()
    moved = np.zeros((len(tasks), len(parts), len(metrics)))
    here = np.zeros((len(tasks), len(parts)), dtype=bool)
    estimate = np.empty((len(parts), len(metrics)))
    reasons = np.empty((len(parts), len(metrics)), dtype=object)
    for group, (part, its) in enumerate(zip(parts.values(), named_tasks, strict=True)):
        n, places = len(its), tasks.get_indexer(its)
        sample = replicate(part, metrics, 0).difference(0, 1)
        estimate[group], here[places, group] = sample.estimate[0], True
        moved[places, group] = influence(sample)[:, 0] * np.sqrt((n - 1) / n)
        lone, still = np.isnan(sample.jackknife[:, 0]).any(axis=0), without_spread(sample)[0]
        reasons[group] = [_reason(part, *each, (a, b)) for each in zip(metrics, lone, still, strict=True)]
    return _Block(within, a, b, parts, metrics, moved, estimate, reasons, here)


def _reason(part: Tally, metric: Metric, lone: bool, still: bool, sides: tuple[str, str]) -> str:
    """Why a difference has no standard error in a group; empty where it has one."""
    if why := undefined(metric, part.total, sides):
        return why
    if len(part.tasks) == 1:
        return "one task, which has no spread"
    if lone:
        return "a side rests on one task alone, which has no spread"
    return "the difference is the same on every task" if still else ""


def _rows(block: _Block, at: int, pooled: Pooled, level: float) -> list[dict[str, Any]]:
    """The rows of one pair and metric: its groups, then what is pooled over them."""
    use, n = block.usable(at), block.here.sum(axis=0)
    error = np.where(use, np.sqrt((block.moved[:, :, at] ** 2).sum(axis=0)), np.nan)
    half = special.stdtrit(np.maximum(n - 1, 1), 0.5 + level / 2) * error
    weights = np.full((2, len(n)), np.nan)
    weights[:, use] = pooled.weight_fixed, pooled.weight_random
    none = np.full(len(POOLED), np.nan)
    tasks = int(block.here[:, use].any(axis=1).sum())
    parts = (
        ("group", block.parts, block.estimate[:, at], error, half, np.full(len(n), np.nan), *weights, n),
        (
            "pooled", POOLED, pooled.estimate, pooled.standard_error, pooled.halves(level), pooled.p_zero, none, none,
            [tasks] * len(POOLED),
        ),
    )  # fmt: skip
    return [
        {
            "group": group, "role": role, "difference": value, "standard_error": spread, "lower": value - reach,
            "upper": value + reach, "p_value": p, "weight_fixed": fixed, "weight_random": random, "n_pairs": int(pairs),
        }
        for role, *columns in parts
        for group, value, spread, reach, p, fixed, random, pairs in zip(*columns, strict=True)
    ]  # fmt: skip


def _test(pooled: Pooled) -> dict[str, float]:
    """The interaction test of one pair and metric."""
    return {
        "q": pooled.q, "df": pooled.df, "p_value": pooled.p_value, "i2": pooled.i2, "tau2": pooled.tau2,
        "groups": pooled.groups,
    }  # fmt: skip


class _Told:
    """Notes that hold for several metrics alike, told once with the metrics they hold for."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[str]] = {}

    def add(self, about: str, metric: Metric, text: str) -> None:
        """Tell something of a metric."""
        self._of.setdefault((about, text), []).append(metric.label)

    @property
    def notes(self) -> list[str]:
        """One sentence for each thing told."""
        return [f"{about}: {', '.join(metrics)}: {text}" for (about, text), metrics in self._of.items()]


def _tell(block: _Block, at: int, pooled: Pooled, level: float, told: _Told) -> None:
    """What must be said of one pair and metric beside its numbers."""
    metric, use = block.metrics[at], block.usable(at)
    for group, reason in zip(block.parts, block.reasons[:, at], strict=True):
        if reason:
            told.add(f"{block.name}, {group}", metric, f"{reason}; left out of the pooling")
    if pooled.reason:
        told.add(block.name, metric, pooled.reason)
        return
    if block.here[:, use].sum(axis=1).max() > 1:
        told.add(block.name, metric, "the groups share tasks; their covariance is in the weights and in Q")
    for text in _rough(block, at):
        told.add(block.name, metric, f"pooling and interaction test are rough, with only {text}")
    _, normal, knapp = pooled.halves(level)
    if np.isnan(knapp):
        told.add(block.name, metric, "all groups have the same difference, so that Hartung-Knapp gives no interval")
    elif knapp < normal:
        told.add(
            block.name, metric,
            "the groups differ less than chance alone would have it, so that Hartung-Knapp's interval is narrower than "
            "DerSimonian-Laird's; rely on the wider one",
        )  # fmt: skip


def _rough(block: _Block, at: int) -> list[str]:
    """The smallest counts behind an interaction test, where they are small."""
    metric, texts = block.metrics[at], []
    parts = [(group, part) for (group, part), use in zip(block.parts.items(), block.usable(at), strict=True) if use]
    tasks = [len(part.tasks) for _, part in parts]
    least = int(np.argmin(tasks))
    if tasks[least] < _FEW_TASKS:
        texts.append(f"{tasks[least]} tasks in {parts[least][0]}")
    if metric.conditional:
        totals = [part.total for _, part in parts]
        hits, of = (np.array([counts(total) for total in totals]) for counts in (metric.numerator, metric.denominator))
        fewer = np.minimum(hits, of - hits)
        least, side = (int(place) for place in np.unravel_index(fewer.argmin(), fewer.shape))
        if fewer[least, side] < _FEW_EVENTS:
            where = f"{parts[least][0]}, {(block.a, block.b)[side]}"
            texts.append(f"{fewer[least, side]:.0f} of {of[least, side]:.0f} on the rarer side of the share ({where})")
    else:
        apart = [int((np.ptp(metric(part.counts), axis=1) > 0).sum()) for _, part in parts]
        least = int(np.argmin(apart))
        if apart[least] < _FEW_APART:
            texts.append(f"{apart[least]} of {tasks[least]} tasks in {parts[least][0]} on which a and b differ")
    return texts


def _family(tests: pd.DataFrame) -> list[str]:
    """Which interaction tests p is adjusted for."""
    tested = tests[tests["p_value"].notna()]
    if not len(tested):
        return []
    names = ", ".join(METRICS[name].label for name in tested["metric"].unique())
    return [f"p of the interaction tests adjusted by Holm over a family of {len(tested)}: {names}"]
