"""What earlier rollouts tell of the spread of a difference, and new studies drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import special

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.difference_intervals import difference_interval
from survexec.statistics.estimands import Metric, ratio
from survexec.statistics.metric_tests import Runs, run_tests, wanted_tests
from survexec.statistics.pairing import Pair, checked_design, paired
from survexec.statistics.power import Shape
from survexec.statistics.resampling import replicate
from survexec.statistics.tally import count

# Studies that are simulated at a time: they share their drawn signs.
_TOGETHER: Final = 200
_RESAMPLES: Final = 1000
# Values this close are equal up to rounding.
_SAME: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Pilot:
    """Two sides of earlier rollouts on their common tasks, and what they say of one metric.

    Parameters
    ----------
    rollouts : Rollouts
        Of both sides, on the common tasks.
    metric : Metric
    between : str
    pair : Pair
    tasks : int
        Tasks on which the metric is known on both sides.
    single : Shape
        Of the difference of single trials, one a side, over tasks.
    discordance : float
        How often such a difference is not zero: of a binary metric, that exactly one side hits.
    noise : float or None
        Share of its variance that lies between trials of a task; None where no task has two on a side.
    """

    rollouts: Rollouts
    metric: Metric
    between: str
    pair: Pair
    tasks: int
    single: Shape
    discordance: float
    noise: float | None

    @property
    def rates(self) -> np.ndarray:
        """The metric of a and of b."""
        return self.metric(self.pair.tally.total)

    @property
    def rate(self) -> float:
        """The metric of b."""
        return float(self.rates[1])

    @property
    def difference(self) -> float:
        """Of the metric, a minus b."""
        return float(self.rates[0] - self.rates[1])

    @property
    def eligible(self) -> tuple[float, float]:
        """Share of the rollouts of a and of b that stand in the metric's denominator."""
        total = self.pair.tally.total
        first, second = (self.metric.denominator(total) / total["rollouts"]).tolist()
        return first, second

    @property
    def trials(self) -> np.ndarray:
        """Rollouts of each task on each side, shape (task, 2)."""
        return self.pair.tally["rollouts"]

    def chances(self, shape: Shape) -> np.ndarray:
        """Chances to draw each task with which a study is expected to be as planned.

        Parameters
        ----------
        shape : Shape

        Returns
        -------
        numpy.ndarray
            Shape (task,): tilted exponentially from equal ones until b is as in the pilot and a as planned, and so is
            the spread of the difference; of a share of some rollouts, how many these are is as in the pilot.

        Raises
        ------
        InputError
            If no chances of these tasks do that.

        References
        ----------
        Efron (1981), Canadian Journal of Statistics 9:139-158.
        """
        from scipy import optimize  # takes time to load

        counts = self.pair.tally.counts
        numerator, denominator = self.metric.numerator(counts), self.metric.denominator(counts)
        beside = denominator
        if not self.metric.conditional:
            means = np.nan_to_num(ratio(numerator, denominator))
            beside = (means[:, [0]] - means[:, [1]]) ** 2 - (shape.sd**2 + shape.mean**2)
        beyond = numerator - (self.rate + np.array([shape.mean, 0])) * denominator
        moved = np.hstack([beyond, beside - beside.mean(axis=0) * self.metric.conditional])
        moved /= np.maximum(moved.std(axis=0), 1e-12)
        found = optimize.root(lambda by: special.softmax(moved @ by) @ moved, np.zeros(moved.shape[1]))
        chances = special.softmax(moved @ found.x)
        if not np.abs(chances @ moved).max() < 1e-6:
            raise InputError(
                f"the pilot's tasks, however drawn, cannot give a difference of {shape.mean:.3g} in "
                f"{self.metric.label} with a standard deviation of {shape.sd:.3g}"
            )
        return chances

    def simulate(self, tasks: int, shape: Shape, alpha: float, runs: int, seed: int) -> float:
        """Share of studies drawn from the pilot's tasks whose default test or interval shows a difference.

        Parameters
        ----------
        tasks : int
            Of each study, drawn with replacement, each with all its rollouts.
        shape : Shape
            Of a task's difference.
        alpha : float
        runs, seed : int

        Returns
        -------
        float
        """
        rng, chances, shown = np.random.default_rng(seed), self.chances(shape), 0
        for start in range(0, runs, _TOGETHER):
            size = (min(_TOGETHER, runs - start), tasks)
            studies = [self._study(drawn) for drawn in rng.choice(len(chances), size, p=chances)]
            shown += self._shown(studies, alpha, int(rng.integers(2**32)))
        return shown / runs

    def _study(self, tasks: np.ndarray) -> Pair:
        """The pair on some of its tasks."""
        return replace(self.pair, cells=(0, 1), tally=self.pair.tally.take(tasks), left_out=[])

    def _shown(self, studies: Sequence[Pair], alpha: float, seed: int) -> int:
        """In how many studies a difference is shown; none is where it is undefined, such as RR without an error."""
        name, wanted = self.metric.name, wanted_tests(None, [self.metric.name])
        resamples = 1 if wanted[name] else _RESAMPLES
        samples = [
            replicate(study.tally, [self.metric], resamples, seed + at).difference(0, 1)
            for at, study in enumerate(studies)
        ]
        if wanted[name]:
            lengths = Runs.of(self.rollouts, (self.between,))
            tested = run_tests(studies, samples, lengths, wanted, seed)
            return sum(outcome[name][0].p_value <= alpha for outcome in tested if name in outcome)
        pairs = zip(studies, samples, strict=True)
        bounds = [difference_interval(*pair, self.metric).bounds(1 - alpha) for pair in pairs]
        return sum(lower > 0 or upper < 0 for lower, upper in bounds)


def pilot_of(rollouts: Rollouts, metric: Metric, between: str, a: str | None, b: str | None) -> Pilot:
    """A pair of a pilot, with the spread of one metric's difference split into what several trials can take down.

    Parameters
    ----------
    rollouts : Rollouts
    metric : Metric
    between : str
    a, b : str or None
        May be left out where there is one pair.

    Returns
    -------
    Pilot

    Raises
    ------
    InputError
        If the pair is not clear, has fewer than two common tasks, or lacks the metric.

    Notes
    -----
    The one-way split of the variance: what the trials of a task differ by, and what remains of the variance of the
    task's difference. A ratio is linearised, so that each rollout counts by how much it moves the ratio.

    References
    ----------
    Searle, Casella and McCulloch (1992), Variance Components, chapter 3. Cochran (1977), Sampling Techniques, 6.3.
    """
    pair = _pair(rollouts, between, a, b)
    total = pair.tally.total
    for at, name in enumerate((pair.a, pair.b)):
        if metric.denominator(total)[at] == 0:
            raise InputError(
                f"in the pilot {metric.label} of {name} is undefined (0/0): {metric.reason(total, at)}; plan from "
                "assumptions, without a pilot"
            )
    known = pair.tally.tasks["task_id"].tolist()
    sides = rollouts.select(**pair.within, **{between: [pair.a, pair.b]}, task_id=known)
    values = _values(sides, metric, (between, "trial"), pair)
    both = np.logical_and(*(~np.isnan(side).all(axis=1) for side in values))
    if both.sum() < 2:
        raise InputError(f"the pilot has {both.sum()} tasks of both {pair.a} and {pair.b}; a spread needs 2 or more")
    told = single_trials(*(side[both] for side in values))
    return Pilot(sides, metric, between, pair, int(both.sum()), *told)


def _values(sides: Rollouts, metric: Metric, by: tuple[str, str], pair: Pair) -> list[np.ndarray]:
    """What each rollout makes of the metric of its side, shape (task, trial) for each side; NaN where there is none."""
    trials, rates = count(sides, by), metric(pair.tally.total)
    numerator, denominator = metric.numerator(trials.counts), metric.denominator(trials.counts)
    # a rollout without a label says nothing of success; one without an error is in RR's sample all the same
    present = trials.present if metric.conditional else denominator > 0
    values = []
    for name, rate in zip((pair.a, pair.b), rates, strict=True):
        own = (trials.cells[by[0]] == name).to_numpy()
        each = denominator[:, own].sum() / present[:, own].sum()
        linear = rate + (numerator[:, own] - rate * denominator[:, own]) / each
        values.append(np.where(present[:, own], linear, np.nan))
    return values


def single_trials(a: np.ndarray, b: np.ndarray) -> tuple[Shape, float, float | None]:
    """What the differences of single trials, one a side, are like over tasks, told from all trials of each task.

    Parameters
    ----------
    a, b : numpy.ndarray
        Shape (task, trial), NaN where there is none; each task has one on both sides.

    Returns
    -------
    single : Shape
        Of a difference of single trials; the standard deviation is 0 where none differs from another.
    discordance : float
        How often such a difference is not zero.
    noise : float or None
        Share of its variance that lies within tasks; None where no task has two trials on a side.

    References
    ----------
    Searle, Casella and McCulloch (1992), Variance Components, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> single_trials(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 0.0]]))[1:]
    (0.5, 1.0)
    """
    # trials of the two sides are independent given their task, so that each of one meets each of the other
    gaps = a[:, :, None] - b[:, None, :]
    n, mean = len(a), float(np.nanmean(gaps, axis=(1, 2)).mean())
    apart = np.where(np.isnan(gaps), np.nan, np.abs(gaps) > _SAME)
    discordance = float(np.nanmean(apart, axis=(1, 2)).mean())
    gaps -= mean
    square, cube, fourth = (float(np.nanmean(gaps**power, axis=(1, 2)).mean()) for power in (2, 3, 4))
    if square <= _SAME**2:
        return Shape(mean, 0.0), discordance, None
    variance = square * n / (n - 1)
    repeated = [side[(~np.isnan(side)).sum(axis=1) > 1] for side in (a, b)]
    within = sum(np.nanvar(side, axis=1, ddof=1).mean() for side in repeated if len(side))
    noise = float(min(within / variance, 1.0)) if all(map(len, repeated)) else None
    return Shape(mean, variance**0.5, cube / square**1.5, fourth / square**2), discordance, noise


def _pair(rollouts: Rollouts, between: str, a: str | None, b: str | None) -> Pair:
    """The one pair that is meant."""
    if a is not None and b is None:
        raise InputError(f"a = {a!r} without b; name both, or b alone where it has one partner")
    between, within = checked_design(between, None)
    pairs, _ = paired(count(rollouts, (*within, between)), between, within, b)
    meant = [pair for pair in pairs if a in (None, pair.a)]
    if len(meant) != 1:
        names = "; ".join(pair.name for pair in pairs)
        raise InputError(
            f"the pilot has {len(meant)} pairs of {between} that fit; there are: {names}. Choose by a= and b=, and "
            "where several models or benchmarks share them, give a pilot.select(...) of one"
        )
    return meant[0]
