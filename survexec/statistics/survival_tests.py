"""Do methods err at different depths? Survival tests between methods, paired by task, with Holm's p."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.checks import CLASSES
from survexec.errors import InputError, PairingError, SurvexecWarning
from survexec.protocol.trajectory import Ending, ErrorClass
from survexec.rollouts import Rollouts
from survexec.statistics.metric_tests import Runs
from survexec.statistics.multiplicity import adjusted
from survexec.statistics.pairing import checked_design, left_out, named, places, strangers, wanted_pairs
from survexec.statistics.rank_tests import gray, log_rank, paired_prentice_wilcoxon
from survexec.statistics.results import Result
from survexec.statistics.tally import Tally, count

TESTS: Final = {
    "prentice_wilcoxon": "paired Prentice-Wilcoxon",
    "log_rank_by_task": "log-rank stratified by task",
    "log_rank": "log-rank",
    "gray": "Gray",
}
UNPAIRED: Final = ("log_rank", "gray")
_AMONG: Final = {"prentice_wilcoxon": " (sides pooled)", "log_rank_by_task": " (within each task)"}
_IGNORED: Final = (
    "{}: the pairing by task is ignored, and the measured size is about 0.4% at a nominal 5%, so that differences are "
    "missed; use prentice_wilcoxon, the paired test"
)
# Fewer events than this make the normal and chi-square approximations rough.
_FEW: Final = 5


@dataclass(frozen=True, eq=False)
class SurvivalTests(Result):
    """Survival tests between methods.

    The frame has the columns shared by a pair, then ``test, a, b, cause, statistic, df, p_value, p_adjusted, n_tasks,
    n_rollouts, events, basis``. A test of all methods at once has a = "all" and an empty b.
    """

    kind: ClassVar[str] = "survival_tests"


def survival_tests(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    baseline: str | None = None,
    *,
    tests: Sequence[str] | str = ("prentice_wilcoxon",),
    rho: float = 0.0,
    by_class: bool = False,
) -> SurvivalTests:
    """Whether methods (or models) err at different depths, endings without an error taken as such.

    Parameters
    ----------
    rollouts : Rollouts
    between : str
        The column whose values are compared.
    within : sequence of str, optional
        Columns that a pair must share; by default the others of ``benchmark, model, method``.
    baseline : str, optional
        Compare each value with this one only. None: all pairs.
    tests : sequence of str
        "prentice_wilcoxon" (paired: the one to report), "log_rank_by_task" (stratified by task), "log_rank" and "gray"
        (error against finishing; both unpaired). All but the first have a row for all values at once where there are
        three or more.
    rho : float
        Weight of early against late events in "log_rank", "log_rank_by_task" and "gray"; 0 weighs all the same.
    by_class : bool
        Gray's test of each first-error class instead of all errors.

    Returns
    -------
    SurvivalTests
        p is adjusted by Holm over all rows.

    Raises
    ------
    PairingError
        If no row can be made for want of common tasks.
    InputError
        If there is nothing to compare, or a name is unknown.

    Warns
    -----
    SurvexecWarning
        If an unpaired test is asked of sides that share tasks: it ignores the pairing, and its measured size is about
        0.4% at a nominal 5%.

    Notes
    -----
    A row rests on the tasks that all its sides have. An unpaired test of sides without a common task takes all their
    rollouts; a paired one is refused. The time of a rollout is min(FED, T); one that made no call is never at risk.
    Endings without an error are censored, but in Gray's test finishing competes and only truncation is censored.

    Examples
    --------
    >>> import survexec as sx
    >>> frame = sx.survival_tests(sx.datasets.load_tau_retail_methods(), baseline="tool_calling").frame
    >>> frame[["a", "test", "n_tasks"]].values.tolist()[0]
    ['tool_calling_preconditions', 'prentice_wilcoxon', 100]
    """
    tests = _checked_tests(tests, rho, by_class)
    between, within = checked_design(between, within)
    tally, runs = count(rollouts, (*within, between)), _runs(rollouts, (*within, between), by_class)
    contests = [
        contest
        for contest in _contests(tally, between, within, baseline)
        if contest.b or tests != ("prentice_wilcoxon",)
    ]
    seen = set(runs["cause"])
    causes = (*([name for name in CLASSES if name in seen] or ["error"]), "finish")
    rows, notes = [], [note for contest in contests for note in contest.notes]
    for contest, test in itertools.product(contests, tests):
        if (test in UNPAIRED or contest.common.any()) and (test != "prentice_wilcoxon" or len(contest.cells) == 2):
            inside = runs[runs["cell"].isin(contest.cells) & contest.tasks[runs["task"]]]
            for cause in causes if test == "gray" else ("error",):
                row, told = _row(contest, test, cause, inside, rho)
                rows.append(row)
                notes += told
    if not rows:
        raise PairingError("no pair can be made: " + "; ".join(notes))
    frame = pd.DataFrame(rows)
    frame.insert(frame.columns.get_loc("p_value") + 1, "p_adjusted", adjusted(frame["p_value"].to_numpy()))
    notes += _cautions(frame, tests, bool(tally["rollouts"].max() > 1))
    unpaired = [TESTS[test] for test in tests if test in UNPAIRED]
    if unpaired and any(contest.paired for contest in contests):
        notes.append(_IGNORED.format(" and ".join(unpaired)))
        warnings.warn(notes[-1], SurvexecWarning, stacklevel=2)
    made = {
        "between": between, "within": within, "baseline": baseline, "tests": tests, "rho": rho, "by_class": by_class,
        "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    return SurvivalTests(frame, within, tuple(notes) + rollouts.notes, made, rollouts.ledger)


def _cautions(frame: pd.DataFrame, tests: tuple[str, ...], clustered: bool) -> list[str]:
    """What must be said of all rows together: clusters, few events, and the family of the adjustment."""
    notes = []
    unpaired = [TESTS[test] for test in tests if test in UNPAIRED]
    if unpaired and clustered:
        notes.append(f"{' and '.join(unpaired)}: the several rollouts of a task are taken as independent")
    tested = frame[frame["p_value"].notna()]
    few = int((tested["events"] < _FEW).sum())
    if few:
        notes.append(f"{few} of {len(tested)} tests rest on fewer than {_FEW} events; their p is a rough approximation")
    if len(tested):
        names = ", ".join(TESTS[test] for test in tested["test"].unique())
        notes.append(f"p adjusted by Holm over a family of {len(tested)} tests: {names}")
    return notes


@dataclass(frozen=True, eq=False)
class _Contest:
    """Cells that are tested against each other: a pair (a, b), or all of a place.

    `common` are the tasks of all of them, `tasks` those that an unpaired test takes; `paired` is whether any two share
    a task.
    """

    place: dict[str, Any]
    a: str
    b: str
    cells: tuple[int, ...]
    common: np.ndarray
    tasks: np.ndarray
    paired: bool
    notes: list[str]

    @property
    def name(self) -> str:
        """The sides in words."""
        return named(f"{self.a} - {self.b}" if self.b else self.a, self.place)


def _checked_tests(tests: Sequence[str] | str, rho: float, by_class: bool) -> tuple[str, ...]:
    """Known names of tests, and options that fit them."""
    names = (tests,) if isinstance(tests, str) else tuple(dict.fromkeys(tests))
    for name in names:
        if name not in TESTS:
            raise InputError(f"test {name!r} is unknown; there are: {', '.join(TESTS)}")
    if not names:
        raise InputError(f"tests is empty; there are: {', '.join(TESTS)}")
    if not (np.isfinite(rho) and rho >= 0):
        raise InputError(f"rho = {rho!r}; it must be 0 or more")
    if by_class and "gray" not in names:
        raise InputError("by_class is for the test 'gray', which is not among the tests")
    return names


def _runs(rollouts: Rollouts, by: tuple[str, ...], by_class: bool) -> pd.DataFrame:
    """What the tests need of each rollout: cell, task, depth, whether it erred, and what ended it ("" is a limit)."""
    frame, runs = rollouts.frame, Runs.of(rollouts, by)
    classes = frame["error_class"].astype(object).where(frame["error_class"].notna(), str(ErrorClass.UNCLASSIFIED))
    finished = (frame["ending"] == str(Ending.COMPLETED)).to_numpy()
    return pd.DataFrame(
        {
            "cell": runs.cell,
            "task": runs.task,
            "depth": runs.depth,
            "erred": runs.erred,
            "cause": np.where(runs.erred, classes if by_class else "error", np.where(finished, "finish", "")),
        }
    )


def _contests(tally: Tally, between: str, within: tuple[str, ...], baseline: str | None) -> list[_Contest]:
    """Of each place: all its cells where there are three or more, then its pairs."""
    cells, present = tally.cells, tally.present
    pairs, contests = wanted_pairs(tally, between, within, baseline), []
    groups = [group for _, group in places(tally, within)]
    place = {cell: at for at, group in enumerate(groups) for cell in group}
    wholes = [tuple(group) for group in groups if len(group) > 2]
    for group in sorted([*wholes, *pairs], key=lambda group: place[group[0]]):
        a, b = ("all", "") if len(group) > 2 else map(str, cells[between].iloc[list(group)])
        sides = present[:, list(group)].sum(axis=1)
        common, anywhere = sides == len(group), sides > 0
        contest = _Contest(
            dict(cells.loc[group[0], list(within)]), a, b, group, common, common if common.any() else anywhere,
            bool((sides > 1).any()), [],
        )  # fmt: skip
        if common.any():
            contest.notes.extend(left_out(contest.name, tally.tasks["task_id"][anywhere & ~common].tolist()))
        else:
            contest.notes.append(
                f"{contest.name} have no task in common" + (f" {strangers(tally, group)}" if b else "")
            )
        contests.append(contest)
    return contests


def _row(contest: _Contest, test: str, cause: str, runs: pd.DataFrame, rho: float) -> tuple[dict[str, Any], list[str]]:
    """One test, and what must be said of it."""
    depth, erred, task = (runs[name].to_numpy() for name in ("depth", "erred", "task"))
    side = pd.Index(contest.cells).get_indexer(runs["cell"])
    hit = (runs["cause"] == cause).to_numpy() if test == "gray" else erred
    if test == "gray":
        tested = gray(depth, np.where(hit, 1, np.where(runs["cause"] == "", 0, 2)), side, rho=rho)
    elif test == "prentice_wilcoxon":
        tested = paired_prentice_wilcoxon(depth, erred, side, task)
    else:
        tested = log_rank(depth, erred, side, task if test == "log_rank_by_task" else None, rho)
    events = int(hit.sum())
    row = {
        **contest.place, "test": test, "a": contest.a, "b": contest.b, "cause": cause, "statistic": tested.statistic,
        "df": tested.df, "p_value": tested.p_value, "n_tasks": len(np.unique(task)), "n_rollouts": len(runs),
        "events": events, "basis": _basis(test, depth, side),
    }  # fmt: skip
    about = f"{contest.name}: {TESTS[test]}" + (f" of {cause}" if test == "gray" else "")
    return row, [f"{about}: {tested.reason}"] if tested.reason else []


def _basis(test: str, depth: np.ndarray, side: np.ndarray) -> str:
    """Who is at risk of call k, in words, with the numbers at call 1."""
    called, none = (np.bincount(side, who).astype(int) for who in (depth > 0, depth == 0))
    basis = f"rollouts about to make call k{_AMONG.get(test, '')}, {' + '.join(map(str, called))} at depth 1"
    return f"{basis}; {' + '.join(map(str, none))} made no call" if none.any() else basis
