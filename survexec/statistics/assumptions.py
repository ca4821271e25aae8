"""What a plan is asked, and what its power rests on: numbers that are assumed, or read from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from survexec.errors import InputError
from survexec.statistics.difference_intervals import FEW_HITS, SMALL_DENOMINATOR
from survexec.statistics.estimands import Metric
from survexec.statistics.metric_tests import DEFAULTS
from survexec.statistics.pilots import Pilot
from survexec.statistics.power import (
    EXACT,
    Power,
    Shape,
    few_power,
    mcnemar_power,
    paired_t_power,
    sign_flip_power,
    smallest,
)

# No plan asks for more tasks than this.
MOST: Final = 10_000_000


class Question(NamedTuple):
    """What is asked: the one of difference, tasks and power that is missing, or the split of a budget."""

    difference: float | None
    tasks: int | None
    trials: int
    budget: int | None
    power: float
    max_tasks: int | None
    task_cost: float

    @property
    def solved(self) -> str:
        """What is asked for: "tasks", "difference", "power" or "split"."""
        if self.budget is not None:
            return "split"
        return "tasks" if self.tasks is None else "difference" if self.difference is None else "power"

    def checked(self, pilot: Pilot | None, alpha: float) -> Question:
        """The question, with the difference of the pilot where nothing is given, if it can be asked like that.

        Parameters
        ----------
        pilot : Pilot or None
        alpha : float

        Returns
        -------
        Question

        Raises
        ------
        InputError
        """
        for name in ("tasks", "trials", "budget", "max_tasks"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        if not alpha < self.power < 1:
            raise InputError(f"power = {self.power}; it must lie between the size of the test, {alpha:.3g}, and 1")
        if self.budget is None and (self.max_tasks is not None or self.task_cost):
            raise InputError("max_tasks and task_cost say how a budget is spent; give the budget too")
        if self.budget is not None and (self.tasks is not None or self.trials != 1):
            raise InputError("a budget decides on tasks and trials; leave those out")
        if not 0 <= self.task_cost < np.inf:
            raise InputError(f"task_cost = {self.task_cost}; it must be a number of rollouts from 0")
        difference = self.difference
        if self.solved == "tasks" and difference is None:
            if pilot is None:
                raise InputError("give a difference to show, a number of tasks, or a budget of rollouts")
            difference = pilot.difference
        if difference is not None and not np.isfinite(difference):
            raise InputError(f"difference = {difference}; it must be a number")
        if self.solved == "tasks" and abs(difference) < 1e-12:  # type: ignore[arg-type]
            own = ", which is the pilot's own" if self.difference is None else ""
            raise InputError(f"no number of tasks shows a difference of 0{own}; give another, or a number of tasks")
        return self._replace(difference=difference)


def whole(name: str, value: int) -> int:
    """A whole number from 1.

    Raises
    ------
    InputError
    """
    if not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} = {value!r}; it must be a whole number from 1")
    return int(value)


@dataclass(frozen=True, slots=True)
class Basis:
    """What the power of a comparison rests on.

    Parameters
    ----------
    test : {"McNemar mid-p", "sign-flip", "interval"}
        How a comparison decides where a task has one trial a side; McNemar's gives way to the sign-flip test of task
        means where it has several. "interval": that of the difference leaves out zero.
    alpha : float
    discordance : float
        Share of tasks that single trials, one a side, tell apart; for McNemar's test, that exactly one side hits.
    spread : Shape, optional
        Of the difference of single trials over tasks, its mean aside; McNemar's follows from the discordance.
    rate : float, optional
        Share of b, which bounds the differences there can be.
    eligible : (float, float), optional
        Of a share of some rollouts: how many of all these are on each side. Without `spread`, they are independent.
    noise : float, optional
        Share of the variance of that difference which lies between trials of the same task.
    unit : float
        What a single trial's value is a whole multiple of; 0 where ties between sums are rare.
    """

    test: str
    alpha: float
    discordance: float = 1.0
    spread: Shape | None = None
    rate: float | None = None
    eligible: tuple[float, float] | None = None
    noise: float | None = None
    unit: float = 0.0

    @property
    def hits(self) -> bool:
        """Whether the metric counts hits, so that the discordance says all."""
        return self.test == "McNemar mid-p"

    def most(self, sign: int) -> float:
        """The largest size that a difference of this sign can have."""
        share = np.inf if self.rate is None else (1 - self.rate if sign > 0 else self.rate)
        return min(share, self.discordance if self.hits else np.inf if self.spread is None else 1e6 * self.spread.sd)

    def discordances(self, difference: float) -> tuple[float, float]:
        """The least and the largest share of discordant tasks that a difference can have."""
        both = 1.0 if self.rate is None else 2 * self.rate + difference
        return abs(difference), min(both, 2 - both)

    def fault(self, difference: float) -> str:
        """Why there can be no such difference; empty where there can."""
        close = 1e-9
        if self.rate is not None and not -close <= self.rate + difference <= 1 + close:
            return f"a difference of {difference:g} from {self.rate:g} leaves the range of shares, 0 to 1"
        low, high = self.discordances(difference)
        if not self.hits or low - close <= self.discordance <= high + close:
            return ""
        against = "" if self.rate is None else f" from {self.rate:g}"
        return (
            f"discordance = {self.discordance:g}; with a difference of {difference:g}{against} it must lie between "
            f"{low:.3g} and {high:.3g}"
        )

    def single(self, difference: float) -> Shape:
        """What the difference of single trials is like over tasks."""
        if self.hits:
            # it is 1, 0 or -1
            return Shape.of(difference, self.discordance, difference, self.discordance)
        if self.eligible is None:
            return self.spread._replace(mean=difference)  # type: ignore[union-attr]
        shape = self._independent(difference)
        if self.spread is None:
            return shape
        # a pilot says how far its spread is from that of independent rollouts, which goes with the shares
        return shape._replace(sd=shape.sd * self.spread.sd / self._independent(self.spread.mean).sd)

    def _independent(self, difference: float) -> Shape:
        """What it is like for a share of some rollouts that are independent, also of those of the other side."""
        shares, eligible = self.sides(difference)
        spread = shares * (1 - shares)
        square, cube = spread / eligible, spread * (1 - 2 * shares) / eligible**2 * [1, -1]
        fourth = (spread * (1 - 3 * spread) / eligible**3).sum() + 6 * square.prod()
        centred = Shape.of(0.0, float(square.sum()), float(cube.sum()), float(fourth))
        return centred._replace(mean=difference)

    def sides(self, difference: float) -> tuple[np.ndarray, np.ndarray]:
        """Of a share of some rollouts: the share on each side, and how many are eligible."""
        rate = self.rate or 0.0
        return np.clip([rate + difference, rate], 0, 1), np.array(self.eligible)

    def shape(self, difference: float, trials: int) -> Shape:
        """What the difference of task means over trials is like over tasks."""
        return self.single(difference).averaged(self.remaining(trials))

    def remaining(self, trials: int) -> float:
        """What is left of the variance of one trial with several."""
        return 1.0 if trials == 1 else 1 - self.known_noise * (1 - 1 / trials)

    @property
    def known_noise(self) -> float:
        """The noise, which plans of several trials cannot do without."""
        if self.noise is None:
            raise InputError(
                "what several trials of a task add is not known: give noise, from 0 (trials of a task all agree) to 1 "
                "(they are as good as further tasks), or a pilot with two or more trials of a task on both sides"
            )
        return self.noise

    def power(self, tasks: np.ndarray | int, trials: int, difference: float) -> np.ndarray:
        """Power at these numbers of tasks."""
        if self.hits and trials == 1:
            return mcnemar_power(tasks, difference, self.discordance, self.alpha)
        shape = self.shape(difference, trials)
        if self.test == "interval":
            many = paired_t_power(tasks, shape, self.alpha, self.thin(difference) / trials, percentile=True)
            return many if self.eligible is None else self._mixed(many, np.atleast_1d(tasks), trials, difference)
        return sign_flip_power(tasks, shape, self.alpha, self.differing(trials), self.unit / trials)

    def _mixed(self, many: np.ndarray, tasks: np.ndarray, trials: int, difference: float) -> np.ndarray:
        """Power of an interval that is MOVER's where a share rests on few rollouts, each by how often it decides."""
        few, chance = np.transpose([self.few(int(n), trials, difference) for n in tasks])
        return np.where(tasks > 1, chance * few + (1 - chance) * many, 0.0)

    def few(self, tasks: int, trials: int, difference: float) -> tuple[float, float]:
        """Power of MOVER's interval of a share of some rollouts, and how often these are so few that it decides."""
        shares, eligible = self.sides(difference)
        alike = trials * self.remaining(trials)
        limits = SMALL_DENOMINATOR / alike, FEW_HITS / alike
        known = np.ones(2) if trials == 1 else self._known(eligible, tasks, trials, alike)
        return few_power(tasks * trials / alike, shares, eligible, self.alpha, limits, known)

    def _known(self, eligible: np.ndarray, tasks: int, trials: int, alike: float) -> np.ndarray:
        """What part of the rollouts that they are worth Wilson's limits count on, where a task has several.

        `effective_n` tells it from the spread over tasks, which costs about one of them, and takes at most all of them,
        so that chance in that spread, which lies in pairs of trials, lowers it.
        """
        there = np.maximum(tasks * (1 - (1 - eligible) ** (1 + self.known_noise * (trials - 1))), 2)
        mean = alike * there / (there - 1)
        spread = mean * (2 * (1 - 1 / trials) / tasks) ** 0.5
        above = (mean - 1) / spread
        # the mean of a normal number, or of 1 where that is larger
        taken = 1 + spread * (np.exp(-(above**2) / 2) / (2 * np.pi) ** 0.5 + above * special.ndtr(above))
        return alike / taken

    def thin(self, difference: float) -> float:
        """How far chance in the number of eligible rollouts raises the variance, times rollouts; 0 where all are."""
        if self.eligible is None:
            return 0.0
        shares, eligible = self.sides(difference)
        return float(np.average((1 - eligible) / eligible, weights=(shares * (1 - shares) + 1e-9) / eligible))

    def differing(self, trials: int) -> float:
        """Share of tasks whose means over trials differ; as with variance, only noise makes them differ more often."""
        return 1 - (1 - self.discordance) ** (1 if trials == 1 else 1 + self.known_noise * (trials - 1))

    def method(self, tasks: int, trials: int) -> str:
        """The test, and how its power was had."""
        if self.hits and trials == 1:
            return f"McNemar mid-p, {'exact' if tasks * self.discordance <= EXACT else 'normal limit'}"
        test = "sign-flip" if self.hits else self.test
        return f"{test}, as paired t" if self.eligible is None else f"{test}, MOVER's where few, else as paired t"

    def tasks(self, difference: float, trials: int, target: float) -> float:
        """Tasks from which on the power stays at the target or above; NaN where `MOST` are too few."""
        return tasks_needed(lambda tasks: self.power(tasks, trials, difference), target)

    def difference(self, tasks: int, trials: int, target: float) -> float:
        """The smallest difference shown with the target power, above 0 if there can be one; NaN where none is."""
        both = (self._smallest(sign, tasks, trials, target) for sign in (1, -1))
        return next((found for found in both if not np.isnan(found) and not self.fault(found)), np.nan)

    def _smallest(self, sign: int, tasks: int, trials: int, target: float) -> float:
        """The smallest of one sign."""

        def shown(size: float) -> bool:
            return bool(self.power(tasks, trials, sign * size)[0] >= target)

        most = self.most(sign)
        return sign * smallest(shown, 0.0, most) if shown(most) else np.nan


def basis_of(
    metric: Metric, alpha: float, given: Mapping[str, Any], pilot: Pilot | None, difference: float | None
) -> Basis:
    """What the power of a metric's comparison rests on: the numbers given, else those of a pilot.

    Parameters
    ----------
    metric : Metric
    alpha : float
    given : mapping of str to float or None
        ``rate, discordance, eligible, sd, noise``.
    pilot : Pilot or None
    difference : float or None
        The planned one, where there is one.

    Returns
    -------
    Basis

    Raises
    ------
    InputError
        If a number is missing, impossible, or none of this metric's.
    """
    test = "sign-flip" if metric.name in DEFAULTS else "interval"
    needed, taken = ["sd"], ["sd", "discordance", "noise"]
    if metric.proportion and not metric.conditional:
        test, needed, taken = "McNemar mid-p", ["discordance"], ["rate", "discordance", "noise"]
    elif metric.conditional:
        needed, taken = ["rate", "eligible"], ["rate", "eligible", "noise"]
    values = {name: value for name, value in given.items() if value is not None}
    _check(values, [name for name in taken if pilot is None or name not in ("rate", "eligible")], metric, pilot)
    if pilot is not None:
        values = {name: getattr(pilot, name) for name in taken if name != "sd"} | values
    elif missing := [name for name in needed if name not in values]:
        hint = _discordance(values.get("rate"), difference) if "discordance" in missing else ""
        raise InputError(f"{metric.label} is planned from {' and '.join(needed)}: give {', '.join(missing)}{hint}")
    if "eligible" in values:
        values["eligible"] = tuple(np.broadcast_to(values["eligible"], 2).tolist())
    told, sd = None if pilot is None else pilot.single, values.pop("sd", None)
    if sd is not None:
        told = Shape(0.0, sd) if told is None else told._replace(sd=sd)
    # hits and calls are whole numbers
    basis = Basis(test, alpha, spread=told, **values, unit=0.0 if metric.name == "auc_pec" else 1.0)
    if not (basis.discordance if basis.hits else told is None or told.sd):
        raise InputError(
            f"the pilot's difference in {metric.label} is the same on all its tasks, which says nothing of its spread; "
            + ("plan from rate and eligible, without a pilot" if metric.conditional else f"give {needed[0]}")
        )
    if difference is not None and (fault := basis.fault(difference)):
        raise InputError(fault)
    return basis


def _check(values: Mapping[str, Any], taken: Sequence[str], metric: Metric, pilot: Pilot | None) -> None:
    """Whether numbers are this metric's, and possible as such."""
    for name, value in values.items():
        if name not in taken:
            where = "without a pilot" if pilot is None else "with a pilot"
            raise InputError(f"{name} is nothing to give for {metric.label} {where}; there are: {', '.join(taken)}")
        low, high = np.min(value), np.max(value)
        if not (low > 0 or (low == 0 and name in ("rate", "noise"))) or (high > 1 and name != "sd") or high == np.inf:
            bounds = "a number above 0" if name == "sd" else "a share between 0 and 1"
            raise InputError(f"{name} = {value}; it must be {bounds}")


def _discordance(rate: float | None, difference: float | None) -> str:
    """What to say where the discordance is missing."""
    hint = ", the share of tasks that exactly one of the two sides hits"
    if difference is None:
        return hint
    low, high = Basis("", 0.05, rate=rate).discordances(difference)
    hint += f"; for a difference of {difference:g} it lies between {low:.3g} and {high:.3g}"
    if rate is None:
        return hint
    apart = rate * (1 - rate - difference) + (rate + difference) * (1 - rate)
    return f"{hint}, {apart:.3g} if the sides were independent; tasks that are hard for both make it smaller"


def tasks_needed(power: Power, target: float) -> float:
    """The smallest number of tasks from which on the power stays at least at the target.

    Parameters
    ----------
    power : callable
        Array of numbers of tasks -> array of power.
    target : float

    Returns
    -------
    float
        A whole number; NaN where `MOST` tasks are too few.

    Notes
    -----
    The power of a test on counts rises like a saw, so that more tasks can have less power. A number is taken only where
    no larger one, within several teeth, falls below the target again.

    Examples
    --------
    >>> tasks_needed(lambda n: paired_t_power(n, Shape(0.5, 1.0), 0.05), 0.8)
    34.0
    """
    enough = 1
    while power(np.array([enough]))[0] < target:
        enough *= 2
        if enough > MOST:
            return np.nan
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if power(np.array([middle]))[0] >= target else (middle, enough)
    while True:
        ahead = np.arange(enough, enough + int(4 * enough**0.5) + 20)
        below = ahead[power(ahead) < target]
        if not len(below):
            return float(enough)
        enough = int(below[-1]) + 1
