"""Is one method better than another? Paired differences of every metric, their intervals, tests, and one family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.difference_intervals import DifferenceInterval, checked_interval, difference_interval
from survexec.statistics.effects import checked_margins, equivalence_row, ratio_rows
from survexec.statistics.estimands import METRICS
from survexec.statistics.families import checked_adjustment, judged_together
from survexec.statistics.metric_tests import (
    DEFAULTS,
    Runs,
    Wanted,
    is_clustered,
    overall_tests,
    run_tests,
    tests_frame,
    wanted_tests,
)
from survexec.statistics.multiplicity import adjusted
from survexec.statistics.pairing import Pair, checked_design, differences, paired
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level
from survexec.statistics.tally import count
from survexec.statistics.tested import Tested


@dataclass(frozen=True, eq=False)
class Compared:
    """A pair with its replicates and tests.

    Parameters
    ----------
    pair : Pair
    sample : Replicates
        Of the differences of all metrics, one cell.
    tests : dict of str to list of Tested
        Of each metric; the first is the primary one.
    """

    pair: Pair
    sample: Replicates
    tests: dict[str, list[Tested]]

    def replicates(self, name: str) -> Replicates:
        """Of one metric's difference."""
        at = list(METRICS).index(name)
        return self.sample.only(slice(at, at + 1))

    def interval(self, name: str, wanted: str | None = None) -> DifferenceInterval:
        """The interval of one metric's difference."""
        return difference_interval(self.pair, self.replicates(name), METRICS[name], wanted)


@dataclass(frozen=True, eq=False)
class Tests(Result):
    """Every test of a comparison: of the pairs, and of all methods at once.

    The frame has the columns of a place, then ``metric, a, b, role, test, statistic, df, p_value, standard_error`` (of
    a Monte Carlo p), ``p_adjusted, n_pairs, left_out``. Role "primary" is the family of the comparison; "overall" (a =
    "all") is a family of its own, adjusted by Holm; "further" tests look at the same hypotheses again and are not
    adjusted.
    """

    kind: ClassVar[str] = "tests"


@dataclass(frozen=True, eq=False)
class Ratios(Result):
    """Relative risks and odds ratios, a over b, of erring, success, recovery and success of clean rollouts.

    The frame has the columns of a place, then ``metric, event, a, b, measure, risk_a, risk_b, ratio, lower, upper,
    interval, n_pairs, reason``.
    """

    kind: ClassVar[str] = "ratios"


@dataclass(frozen=True, eq=False)
class Equivalence(Result):
    """Two one-sided tests of each difference against a margin.

    The frame has the columns of a place, then ``metric, a, b, difference, lower, upper`` (at level 1 - 2 alpha),
    ``margin, p_non_inferior, p_equivalent, conclusion, interval, n_pairs``.
    """

    kind: ClassVar[str] = "equivalence"


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Paired differences of every metric.

    The frame has the columns shared by a pair, then ``metric, a, b, estimate_a, estimate_b, difference`` (a minus b),
    ``lower, upper, p_value, p_adjusted, test, interval, n_pairs, denominator_a, denominator_b, simultaneous_lower,
    simultaneous_upper``. The last two hold for the whole family of tests at once, as `p_adjusted` does.

    Parameters
    ----------
    pairs : tuple of Compared
        With their replicates, so that another level or method needs no new draws.
    overall : tuple of dict
        Tests of all methods of a place at once.
    refused, told : tuple of str
        The notes that hold at any level: pairs without common tasks, and what the ledger tells.
    """

    pairs: tuple[Compared, ...] = field(repr=False)
    overall: tuple[dict[str, Any], ...] = field(repr=False)
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
        return _filled(self, {**self.made, "level": level, "interval": checked_interval(interval)})

    def with_adjustment(self, adjust: str) -> Comparison:
        """The same tests, adjusted for their number in another way.

        Parameters
        ----------
        adjust : {"holm", "hochberg", "bh", "by", "romano_wolf", "none"}

        Returns
        -------
        Comparison
        """
        return _filled(self, {**self.made, "adjust": checked_adjustment(adjust)})

    @property
    def tests(self) -> Tests:
        """Every test, those further asked for and those of all methods at once too."""
        rows = []
        for (compared, name), p in zip(self._numbers(), self.frame["p_adjusted"], strict=True):
            place = {**compared.pair.within, "metric": name, "a": compared.pair.a, "b": compared.pair.b}
            tested = compared.tests.get(name, [])
            roles = ["primary", *["further"] * (len(tested) - 1)]
            rows += [
                {**place, "role": role, "tested": one, "p_adjusted": p if role == "primary" else np.nan}
                for role, one in zip(roles, tested, strict=False)
            ]
        together = adjusted(np.array([row["tested"].p_value for row in self.overall]), "holm")
        rows += [
            {**row, "a": "all", "b": "", "role": "overall", "p_adjusted": p}
            for row, p in zip(self.overall, together, strict=True)
        ]
        return Tests(tests_frame(rows, self.by), self.by, self.notes, self.made, self.ledger)

    @property
    def ratios(self) -> Ratios:
        """Relative risks and odds ratios beside the differences."""
        rows = [
            {**compared.pair.within, **row}
            for compared in self.pairs
            for row in ratio_rows(compared.pair, self.made["metrics"], self.made["level"])
        ]
        notes = tuple(f"{row['a']} / {row['b']}: {row['event']}: {row['reason']}" for row in rows if row["reason"])
        return Ratios(pd.DataFrame(rows), self.by, tuple(dict.fromkeys(notes)), self.made, self.ledger)

    def equivalence(self, margin: float | Mapping[str, float]) -> Equivalence:
        """Is a equivalent to b, or at least not inferior, by a margin? Two one-sided tests at alpha = 1 - level.

        Parameters
        ----------
        margin : float or mapping of metric to float
            The largest difference that does not matter, stated before the data were seen. One number serves the
            shares; means in calls need their own.

        Returns
        -------
        Equivalence
            Its p-values invert the intervals of the comparison; they are not adjusted for their number.

        References
        ----------
        Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15:657-680.

        Examples
        --------
        >>> import survexec as sx
        >>> runs = sx.datasets.load_tau_retail_methods()
        >>> result = sx.compare(runs, baseline="tool_calling", metrics=["ter"], resamples=200)
        >>> result.equivalence(margin=0.5).frame["conclusion"].tolist()
        ['equivalent', 'equivalent', 'equivalent']
        """
        margins, level = checked_margins(margin, self.made["metrics"]), self.made["level"]
        if level <= 0.5:
            raise InputError(f"level = {level}; one-sided tests at alpha = 1 - level need a level above 0.5")
        rows, notes = [], list[str]()
        for compared in self.pairs:
            for name, widest in margins.items():
                interval = compared.interval(name, self.made["interval"])
                row = equivalence_row(compared.pair, METRICS[name], interval, widest, level)
                rows.append({**compared.pair.within, **row})
                notes += interval.notes
        made = {**self.made, "margin": margins, "level": 1 - 2 * (1 - level), "alpha": 1 - level}
        return Equivalence(pd.DataFrame(rows), self.by, tuple(dict.fromkeys(notes)), made, self.ledger)

    def _numbers(self) -> list[tuple[Compared, str]]:
        """Pair and metric of each row of the frame."""
        return [(compared, name) for compared in self.pairs for name in self.made["metrics"]]


def compare(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    baseline: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    tests: Wanted = None,
    adjust: str = "holm",
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
    tests : str, sequence of str, or mapping of metric to either, optional
        "mcnemar_midp", "mcnemar_exact", "mcnemar_asymptotic" (TER, success); "sign_flip", "wilcoxon", "paired_t" (of
        task means; also mean FED, AUC-PEC, mean length); "prentice_wilcoxon", "log_rank_by_task" (mean FED);
        "bootstrap" (any metric, 100 tasks or more). The first that applies to a metric is its primary test, which
        enters the family; others are listed in `Comparison.tests`. None: the defaults below; (): no tests.
    adjust : {"holm", "hochberg", "bh", "by", "romano_wolf", "none"}
        For the number of tests, over the whole call. "romano_wolf" uses how the differences depend on each other.
    level : float
    interval : str, optional
        "percentile", "expanded_percentile", "bca", "jackknife_t", "mover", "newcombe" or "tango", where it applies.
        None: the expanded percentile of the paired bootstrap over tasks; MOVER for a conditional share (RR, s, success
        after error) that rests on few: from Wilson limits where a denominator is below 20 on a side, from Jeffreys
        limits where only its hits or misses are below 5; Newcombe's for TER and success of single trials where the two
        sides differ on fewer than 5 tasks, or on all alike.
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
    Default tests: McNemar mid-p for TER and success (the sign-flip test of task means where a task has several
    rollouts); sign-flip for mean FED and AUC-PEC. With three or more methods, Cochran's Q and Friedman's test of all at
    once stand in `Comparison.tests`.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> frame = sx.compare(runs, baseline="tool_calling", metrics=["ter"], resamples=200).frame
    >>> frame[["a", "b", "n_pairs"]].values.tolist()[0]
    ['tool_calling_preconditions', 'tool_calling', 100]
    """
    names = checked_metrics(metrics)
    between, within = checked_design(between, within)
    level, seed, wanted = checked_level(level), as_seed(rng), wanted_tests(tests, names)
    made = {
        "between": between, "within": within, "baseline": baseline, "metrics": names, "tests": wanted,
        "adjust": checked_adjustment(adjust), "level": level, "interval": checked_interval(interval),
        "resamples": resamples, "seed": seed, "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    tally, runs = count(rollouts, (*within, between)), Runs.of(rollouts, (*within, between))
    pairs, refused = paired(tally, between, within, baseline)
    samples = differences(tally, pairs, list(METRICS.values()), resamples, seed)
    tested = run_tests(pairs, samples, runs, wanted, seed)
    compared = tuple(Compared(*one) for one in zip(pairs, samples, tested, strict=True))
    overall, told = ([], []) if not any(wanted.values()) else overall_tests(tally, between, within, runs, names)
    notes = (*refused, *told, *_replaced(pairs, wanted))
    empty = Comparison(
        pd.DataFrame(), within, (), made, rollouts.ledger, compared, tuple(overall), notes, rollouts.notes
    )
    return _filled(empty, made)


def checked_metrics(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Known metric names, all by default.

    Raises
    ------
    InputError
    """
    names = tuple(METRICS) if metrics is None else ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    for name in names:
        if name not in METRICS:
            raise InputError(f"metric {name!r} is unknown; there are: {', '.join(METRICS)}")
    return names


def _replaced(pairs: Sequence[Pair], wanted: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Where McNemar's test was asked for by name of tasks with several rollouts."""
    asked = any(test.startswith("mcnemar") and DEFAULTS[m] != test for m, tests in wanted.items() for test in tests)
    clustered = [pair.name for pair in pairs if is_clustered(pair.tally)] if asked else []
    if not clustered:
        return []
    return [
        f"{'; '.join(clustered)}: McNemar's test needs one rollout a task; the sign-flip test of task means instead"
    ]


def _filled(result: Comparison, made: dict[str, Any]) -> Comparison:
    """Fill the frame and the notes of a comparison from its pairs."""
    numbers = result._numbers()
    intervals = [compared.interval(name, made["interval"]) for compared, name in numbers]
    rows = [_row(*number, interval, made["level"]) for number, interval in zip(numbers, intervals, strict=True)]
    frame = pd.DataFrame(rows)
    samples = [compared.replicates(name) for compared, name in numbers]
    p, bounds, family = judged_together(frame, samples, intervals, made)
    frame.insert(frame.columns.get_loc("p_value") + 1, "p_adjusted", p)
    frame["simultaneous_lower"], frame["simultaneous_upper"] = bounds
    if made["adjust"] == "romano_wolf" and len({compared.pair.common.tobytes() for compared in result.pairs}) > 1:
        family.append("pairs on different tasks were resampled apart; Romano-Wolf takes them as they fell")
    notes = [note for compared in result.pairs for note in compared.pair.notes]
    notes += dict.fromkeys(note for interval in intervals for note in interval.notes)
    return replace(result, frame=frame, notes=(*result.refused, *notes, *family, *result.told), made=made)


def _row(compared: Compared, name: str, interval: DifferenceInterval, level: float) -> dict[str, Any]:
    """One difference with its interval and primary test."""
    pair, metric, tests = compared.pair, METRICS[name], compared.tests.get(name)
    estimate, denominator = metric(pair.tally.total), metric.denominator(pair.tally.total)
    lower, upper = interval.bounds(level)
    return {
        **pair.within, "metric": name, "a": pair.a, "b": pair.b, "estimate_a": estimate[0], "estimate_b": estimate[1],
        "difference": estimate[0] - estimate[1], "lower": lower, "upper": upper,
        "p_value": tests[0].p_value if tests else np.nan, "test": tests[0].test if tests else "",
        "interval": interval.name, "n_pairs": tests[0].n_pairs if tests else len(pair.tally.tasks),
        "denominator_a": int(denominator[0]), "denominator_b": int(denominator[1]),
    }  # fmt: skip
