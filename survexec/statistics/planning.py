"""How many tasks and trials a difference needs, which one a number of tasks can show, how best to spend a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import LEDGER_COLUMNS, Rollouts, counted
from survexec.statistics.assumptions import MOST, Basis, Question, basis_of, whole
from survexec.statistics.difference_intervals import FEW_HITS, SMALL_DENOMINATOR
from survexec.statistics.estimands import METRICS
from survexec.statistics.pilots import Pilot, pilot_of
from survexec.statistics.proportions import normal_quantile, wilson
from survexec.statistics.resampling import as_seed
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level

COLUMNS: Final = (
    "metric", "point", "tasks", "trials", "rollouts", "difference", "sd", "power", "level", "method",
)  # fmt: skip
# Differences shown beside the planned one: what if it is smaller, or larger?
_BESIDE: Final = (0.75, 1.25)
_GRID: Final = 60
# What is rarer than this in studies is not told.
_RARELY: Final = 0.05


class Simulated(NamedTuple):
    """Share of simulated studies that showed a difference, its Monte Carlo error, and the power that was planned."""

    power: float
    standard_error: float
    planned: float
    runs: int


class Point(NamedTuple):
    """One row of a plan before its power is known; `point` is "answer", "alternative" or "curve"."""

    point: str
    tasks: int
    trials: int
    difference: float


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """Tasks, trials and the difference they show, with the power around them.

    The frame has the columns ``metric, point, tasks, trials, rollouts`` (of each method), ``difference, sd`` (over
    tasks, of the difference of a task's means), ``power, level, method``. ``point`` is "answer", "alternative" (rows to
    hold beside it) or "curve" (for the figure). The first note is the answer in words.

    Parameters
    ----------
    basis : Basis
        What the power rests on.
    pilot : Pilot or None
    """

    basis: Basis = field(repr=False)
    pilot: Pilot | None = field(repr=False)
    kind: ClassVar[str] = "plan"

    @property
    def answer(self) -> pd.Series:
        """The row of the frame that answers the question."""
        return self.frame[self.frame["point"] == "answer"].iloc[0]

    def simulate(self, runs: int = 1000, rng: int | np.random.Generator = 0) -> Simulated:
        """Check the answer: draw studies from the tasks of the pilot and let `compare` decide on each.

        Parameters
        ----------
        runs : int
        rng : int or numpy.random.Generator

        Returns
        -------
        Simulated

        Raises
        ------
        InputError
            Without a pilot, or where a task of it has not as many trials on both sides as are planned.

        Notes
        -----
        Tasks are drawn with replacement, each with all its rollouts. Where difference and spread are not the pilot's
        own, tasks are drawn more often that bring them nearer to the planned ones (exponential tilting).

        Examples
        --------
        >>> import survexec as sx
        >>> runs = sx.datasets.load_tau_retail_methods()
        >>> plan(runs, a="tool_calling_preconditions", b="tool_calling", tasks=100, difference=0.1).simulate(20).runs
        20
        """
        answer, seed = self.answer, as_seed(rng)
        if self.pilot is None or (self.pilot.trials != answer["trials"]).any():
            raise InputError(
                f"simulating needs a pilot with {answer['trials']} trials of each task on both sides, as planned"
            )
        if np.isnan(answer["difference"]):
            raise InputError("these tasks show no difference with the power asked for; give more tasks to simulate")
        shape = self.basis.shape(answer["difference"], int(answer["trials"]))
        share = self.pilot.simulate(int(answer["tasks"]), shape, self.basis.alpha, runs, seed)
        return Simulated(share, math.sqrt(share * (1 - share) / runs), float(answer["power"]), runs)


def plan(
    pilot: Rollouts | None = None,
    *,
    metric: str = "ter",
    difference: float | None = None,
    tasks: int | None = None,
    trials: int = 1,
    budget: int | None = None,
    power: float = 0.8,
    level: float = 0.95,
    comparisons: int = 1,
    rate: float | None = None,
    discordance: float | None = None,
    eligible: float | tuple[float, float] | None = None,
    sd: float | None = None,
    noise: float | None = None,
    between: str = "method",
    a: str | None = None,
    b: str | None = None,
    max_tasks: int | None = None,
    task_cost: float = 0.0,
) -> Plan:
    """Tasks needed to show a difference, the difference that tasks can show, or the best use of a budget.

    Parameters
    ----------
    pilot : Rollouts, optional
        Earlier rollouts of both sides, from which the assumptions are read; those given replace what it says.
    metric : str
        Binary: "ter", "success". Means: "auc_pec", "mean_fed", "mean_length". Shares of some rollouts: "rr",
        "clean_success", "success_after_error".
    difference : float, optional
        Of the metric, a minus b. Alone, the tasks needed are found; with `tasks`, the power. Without either, that of
        the pilot is taken.
    tasks : int, optional
        Alone, the smallest difference that they show is found.
    trials : int
        Of each task on each side.
    budget : int, optional
        Rollouts of each method: the best numbers of tasks and trials are found.
    power : float
        To reach.
    level : float
        A difference is shown at alpha = 1 - level, two-sided.
    comparisons : int
        Size of the family of tests: alpha is divided by it. Holm, which `compare` uses, shows at least as much.
    rate : float, optional
        Metric of b, if it is a share; a has `rate` + `difference`.
    discordance : float, optional
        Binary metric: share of tasks that exactly one of two single trials hits, one a side.
    eligible : float or (float, float), optional
        Share of some rollouts: how many of all these are (of a, of b); for RR 1 - TER.
    sd : float, optional
        Mean: standard deviation over tasks of the difference of single trials, one a side.
    noise : float, optional
        How much of the variance of that difference, 0 to 1, lies between trials of the same task. Further trials take
        down this part alone.
    between, a, b : str, optional
        The pair of the pilot; a and b may be left out where it has one.
    max_tasks : int, optional
        With a budget: how many tasks there are.
    task_cost : float
        With a budget: what a further task costs beside its trials, in rollouts of each method.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If an assumption is missing, impossible, or none of this metric's.

    Notes
    -----
    Power is that of the default tests of `compare`. Binary, one trial: McNemar's mid-p, exact. Means and several
    trials: the sign-flip test, whose power is that of the paired t test at the size it can attain. Metrics without a
    test: the interval leaves out zero, as a t interval on the spread of the tasks' influence, or on two independent
    samples of eligible rollouts; where these are few, MOVER's does, summed over the numbers there can be. With noise w
    and a cost c of a task, trials near sqrt(c w / (1 - w)) are best.

    Examples
    --------
    >>> import survexec as sx
    >>> int(plan(difference=0.15, discordance=0.28).answer["tasks"])
    94
    >>> print(plan(tasks=100, metric="auc_pec", sd=0.3).notes[0])
    100 tasks with 1 trial (100 rollouts a method) show a difference of 0.0849 in AUC-PEC with power 0.80
    """
    if metric not in METRICS:
        raise InputError(f"metric {metric!r} is unknown; there are: {', '.join(METRICS)}")
    alpha = (1 - checked_level(level)) / whole("comparisons", comparisons)
    read = None if pilot is None else pilot_of(pilot, METRICS[metric], between, a, b)
    asked = Question(difference, tasks, trials, budget, power, max_tasks, task_cost).checked(read, alpha)
    given = {"rate": rate, "discordance": discordance, "eligible": eligible, "sd": sd, "noise": noise}
    basis = basis_of(METRICS[metric], alpha, given, read, asked.difference)
    points = _split(basis, asked) if budget is not None else _answers(basis, asked)
    frame = _frame(metric, basis, [*points, *_curves(points)], level)
    made = {
        "metric": metric, "solved": asked.solved, **asked._asdict(), "level": level, "comparisons": comparisons,
        "assumed": {name: value for name, value in given.items() if value is not None}, "between": between,
        "a": read.pair.a if read else None, "b": read.pair.b if read else None,
        "rule": str(pilot.rule) if pilot else None, "unit": "task",
    }  # fmt: skip
    ledger = pd.DataFrame(columns=list(LEDGER_COLUMNS)) if pilot is None else pilot.ledger
    found = Plan(frame, (), (), made, ledger, basis, read)
    return replace(found, notes=tuple(_notes(found, difference)))


def _answers(basis: Basis, asked: Question) -> list[Point]:
    """The answer and rows to hold beside it, of a plan without a budget."""
    d, tasks, trials, target = asked.difference or 0.0, asked.tasks, asked.trials, asked.power
    if tasks is None:
        wanted = [d * by for by in (1.0, *_BESIDE) if by == 1 or not basis.fault(d * by)]
        found = [(basis.tasks(each, trials, target), each) for each in wanted]
        if np.isnan(found[0][0]):
            raise InputError(f"more than {MOST} tasks are needed to show a difference of {d:g}")
    elif asked.difference is None:
        found = [(n, basis.difference(n, trials, target)) for n in (tasks, tasks // 2, 2 * tasks) if n]
    else:
        found = [(tasks, d), (tasks, basis.difference(tasks, trials, target))]
        found += [(basis.tasks(d, trials, target), d)] if d else []
    (first, shown), *rest = found
    others = [Point("alternative", int(n), trials, each) for n, each in rest if n == n and each == each]
    return sorted([Point("answer", int(first), trials, shown), *others], key=lambda point: point.tasks)


def _split(basis: Basis, asked: Question) -> list[Point]:
    """The best numbers of tasks and trials that a budget pays for, and others beside them."""
    budget, cost, d = asked.budget or 0, asked.task_cost, asked.difference
    # where tasks are free and unlimited one trial is best, whatever the noise
    free = asked.max_tasks is None and not cost
    tried = np.array([1]) if free and basis.noise is None else _trials(basis, budget, asked.max_tasks or MOST, cost)
    tasks = np.minimum(budget // (tried + cost), asked.max_tasks or MOST).astype(int)
    pairs = [(n, m) for n, m in zip(tasks.tolist(), tried.tolist(), strict=True) if n > 1]
    if not pairs:
        raise InputError(f"budget = {budget}; it must pay for 2 tasks or more, each for {1 + cost:g} rollouts")
    best, before = pairs[0], None
    while best != before:
        # without a difference, the one that the best so far just shows: what shows it more often shows a smaller one
        before, probe = best, basis.difference(*best, asked.power) if d is None else d
        powers = [basis.power(*pair, basis.most(1) if np.isnan(probe) else probe)[0] for pair in pairs]
        best = pairs[int(np.argmax(powers))]
    if np.isnan(probe):
        return [Point("answer", *best, np.nan)]
    shown = {1, 2, 4, 8, best[1], 2 * best[1]}
    return [Point("answer" if pair == best else "alternative", *pair, probe) for pair in pairs if pair[1] in shown]


def _trials(basis: Basis, budget: int, most: int, cost: float) -> np.ndarray:
    """Numbers of trials to try: a grid, the optimum of the variance, and where the tasks run out."""
    noise = basis.known_noise
    best = math.sqrt(cost * noise / (1 - noise)) if noise < 1 else budget
    turns = np.array([best, budget / most - cost])
    tried = np.concatenate([np.arange(1, 11), np.geomspace(1, budget, 50), np.floor(turns), np.ceil(turns)])
    return np.unique(tried[(tried >= 1) & (tried <= budget)].astype(int))


def _curves(points: list[Point]) -> list[Point]:
    """Points along the power of each difference and number of trials among the answers."""
    kinds = dict.fromkeys((p.trials, p.difference) for p in points if p.difference == p.difference)
    top = max(max(p.tasks for p in points) * 1.1, 20)
    grid = np.unique(np.linspace(2, top, _GRID).round().astype(int)).tolist()
    return [Point("curve", n, *kind) for kind in kinds for n in grid]


def _frame(metric: str, basis: Basis, points: list[Point], level: float) -> pd.DataFrame:
    """The tidy frame of all points."""
    frame = pd.DataFrame(points).assign(metric=metric, level=level)
    frame["rollouts"] = frame["tasks"] * frame["trials"]
    for (trials, d), at in frame.groupby(["trials", "difference"], dropna=False).indices.items():
        known, tasks = d == d, frame["tasks"].to_numpy()[at]
        frame.loc[at, "power"] = basis.power(tasks, trials, d) if known else np.nan
        frame.loc[at, "sd"] = basis.shape(d, trials).sd if known else np.nan
        frame.loc[at, "method"] = [basis.method(n, trials) for n in tasks]
    return frame[list(COLUMNS)]


def _notes(found: Plan, given: float | None) -> list[str]:
    """The answer in words, then what it rests on."""
    made, basis, pilot, answer = found.made, found.basis, found.pilot, found.answer
    notes = [_sentence(found), _how(found)]
    if basis.hits and answer["trials"] == 1 and made["solved"] == "tasks":
        notes.append("power on counts rises like a saw: from this number of tasks on it stays at or above the target")
    if made["comparisons"] > 1:
        notes.append(f"alpha is {1 - made['level']:.3g} / {made['comparisons']} comparisons (Bonferroni)")
    if basis.noise is not None and (answer["trials"] > 1 or made["solved"] == "split"):
        notes.append(
            f"noise {basis.noise:.2f}: the share of the variance of a difference of single trials that lies between "
            "trials of the same task, and that alone falls with their number"
        )
    if made["solved"] == "split" and made["max_tasks"] is None and not made["task_cost"]:
        notes.append("where tasks are free and unlimited, more tasks always beat more trials of each")
    if basis.eligible is not None and not np.isnan(answer["difference"]):
        notes += _few(basis, answer)
    if pilot is not None:
        notes.append(f"pilot: {pilot.pair.name}, {pilot.tasks} tasks, difference {pilot.difference:.3g}")
        if made["solved"] == "tasks" and given is None:
            notes.append("the planned difference is the pilot's own, and as uncertain; plan for the least that matters")
        notes += _uncertain(found) + pilot.pair.notes
    return notes


def _sentence(found: Plan) -> str:
    """The answer in words."""
    made, answer = found.made, found.answer
    label = METRICS[made["metric"]].label
    size = (
        f"{counted(answer['tasks'], 'tasks')} with {counted(answer['trials'], 'trials')} "
        f"({counted(answer['rollouts'], 'rollouts')} a method)"
    )
    if made["budget"] is not None:
        size = f"best of a budget of {made['budget']}: {size}"
    if np.isnan(answer["difference"]):
        return f"{size} show no difference in {label} with power {made['power']:g}, however large"
    return f"{size} show a difference of {answer['difference']:.3g} in {label} with power {answer['power']:.2f}"


def _how(found: Plan) -> str:
    """Which test decides, and on which spread its power rests."""
    basis, answer = found.basis, found.answer
    at = f"at alpha {basis.alpha:.3g}, two-sided"
    if basis.hits and answer["trials"] == 1:
        return f"decided by McNemar's mid-p test {at}, on a discordance of {basis.discordance:.3g}"
    spread = f"a standard deviation of {answer['sd']:.3g} over tasks"
    if basis.test != "interval":
        return f"decided by the sign-flip test of task means {at}, with the power of a paired t test on {spread}"
    text = f"shown where the interval of the difference leaves out 0, {at}, with {spread}"
    if basis.eligible is not None:
        text += f"; eligible are {basis.eligible[0]:.3g} and {basis.eligible[1]:.3g} of the rollouts"
    return text + (", two independent samples" if basis.spread is None else "")


def _few(basis: Basis, answer: pd.Series) -> list[str]:
    """How often a share of some rollouts will rest on so few that its interval is the one for few."""
    chance = basis.few(int(answer["tasks"]), int(answer["trials"]), answer["difference"])[1]
    if chance < _RARELY:
        return []
    shares, eligible = basis.sides(answer["difference"])
    among = eligible * answer["rollouts"]
    few, rarer = among.min(), (np.minimum(shares, 1 - shares) * among).min()
    return [
        f"a side is expected to have {few:.1f} eligible rollouts, {rarer:.1f} of them of the rarer outcome; below "
        f"{SMALL_DENOMINATOR} or {FEW_HITS}, here in {100 * chance:.0f}% of studies, the interval is MOVER's, which "
        "takes the two sides as independent; so does its part of the power"
    ]


def _uncertain(found: Plan) -> list[str]:
    """What a pilot of single trials leaves open about the discordance of hits."""
    basis, pilot, answer = found.basis, found.pilot, found.answer
    if pilot is None or not basis.hits or basis.discordance != pilot.discordance:
        return []
    if pilot.trials.max() > 1 or answer["trials"] > 1:
        return []
    known, share = pilot.tasks, pilot.discordance
    low, high = (float(bound) for bound in wilson(known * share, known, normal_quantile(found.made["level"])))
    text = f"discordance of the pilot {share:.3g} [{low:.3g}, {high:.3g}]"
    if found.made["solved"] == "tasks":
        most = replace(basis, discordance=high).tasks(answer["difference"], 1, found.made["power"])
        text += f"; at its upper limit {most:.0f} tasks are needed"
    return [text]
