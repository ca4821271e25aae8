"""Which test belongs to which metric, and running it on pairs and on all methods of a place at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import paired_tests
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.paired_tests import Tested
from survexec.statistics.pairing import Pair, left_out, named, places
from survexec.statistics.rank_tests import log_rank, paired_prentice_wilcoxon
from survexec.statistics.resampling import Replicates
from survexec.statistics.tally import Tally, cells_of

Wanted = Sequence[str] | str | Mapping[str, Sequence[str] | str] | None

# Areas scaled to whole numbers must survive double precision.
_LARGEST_SCALE: Final = 2**40
_SHARES: Final = ("ter", "success")
_MEANS: Final = (*_SHARES, "mean_fed", "auc_pec", "mean_length")
# Test -> the metrics that it can test.
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "mcnemar_midp": _SHARES,
    "mcnemar_exact": _SHARES,
    "mcnemar_asymptotic": _SHARES,
    "sign_flip": _MEANS,
    "wilcoxon": _MEANS,
    "paired_t": _MEANS,
    "prentice_wilcoxon": ("mean_fed",),
    "log_rank_by_task": ("mean_fed",),
    "bootstrap": tuple(METRICS),
}
# Tests of hits, which need one rollout a task on each side.
_OF_HITS: Final = ("mcnemar_midp", "mcnemar_exact", "mcnemar_asymptotic")
DEFAULTS: Final = {"ter": "mcnemar_midp", "success": "mcnemar_midp", "mean_fed": "sign_flip", "auc_pec": "sign_flip"}


@dataclass(frozen=True, eq=False)
class Runs:
    """What the survival tests need of each rollout, and the lengths that make areas whole numbers.

    Parameters
    ----------
    cell, task, depth : numpy.ndarray of int
        Its cell and task in the tally, and min(FED, T).
    erred : numpy.ndarray of bool
    lengths : list of numpy.ndarray
        Of each cell: the T of rollouts with an error.
    """

    cell: np.ndarray
    task: np.ndarray
    depth: np.ndarray
    erred: np.ndarray
    lengths: list[np.ndarray]

    @classmethod
    def of(cls, rollouts: Rollouts, by: tuple[str, ...]) -> Runs:
        """The runs of some rollouts, in cells made by columns.

        Parameters
        ----------
        rollouts : Rollouts
        by : tuple of str

        Returns
        -------
        Runs
        """
        cell, cells = cells_of(rollouts.frame, by)
        erred, length = rollouts.events.to_numpy(), rollouts.frame["length"].to_numpy("int64")
        lengths = [np.unique(length[erred & (cell == c)]) for c in range(len(cells))]
        return cls(cell, rollouts.tasks[0], rollouts.durations.to_numpy("int64"), erred, lengths)

    def area_scale(self, cells: Sequence[int]) -> int:
        """Least common multiple of T over the rollouts with an error: areas times it are whole numbers."""
        return math.lcm(*np.concatenate([self.lengths[c] for c in cells]).tolist())


def wanted_tests(wanted: Wanted, metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tests asked for of each metric, its default where none of them applies to it.

    Parameters
    ----------
    wanted : str, sequence of str, mapping of metric to either, or None
        None: the defaults. Empty: no tests.
    metrics : sequence of str

    Returns
    -------
    dict of str to tuple of str
        The first test of a metric is its primary one.

    Raises
    ------
    InputError
        If a test is unknown, or cannot test the metric that it is asked of.

    Examples
    --------
    >>> wanted_tests("wilcoxon", ["auc_pec", "rr"])
    {'auc_pec': ('wilcoxon',), 'rr': ()}
    """
    if isinstance(wanted, Mapping):
        for metric, tests in wanted.items():
            for test in _checked(tests):
                if metric not in TESTS[test]:
                    raise InputError(f"test {test!r} cannot test {metric!r}; it can: {', '.join(TESTS[test])}")
        return {m: _checked(wanted[m]) if m in wanted else _default(m) for m in metrics}
    if wanted is None:
        return {m: _default(m) for m in metrics}
    names = _checked(wanted)
    return {m: tuple(t for t in names if m in TESTS[t]) or (_default(m) if names else ()) for m in metrics}


def _checked(tests: Sequence[str] | str) -> tuple[str, ...]:
    """Known names of tests."""
    names = (tests,) if isinstance(tests, str) else tuple(dict.fromkeys(tests))
    for name in names:
        if name not in TESTS:
            raise InputError(f"test {name!r} is unknown; there are: {', '.join(TESTS)}")
    return names


def _default(metric: str) -> tuple[str, ...]:
    return (DEFAULTS[metric],) if metric in DEFAULTS else ()


def run_tests(
    pairs: Sequence[Pair], samples: Sequence[Replicates], runs: Runs, tests: Mapping[str, tuple[str, ...]], seed: int
) -> list[dict[str, list[Tested]]]:
    """The tests of each metric on each pair, in the order asked for.

    Parameters
    ----------
    pairs : sequence of Pair
    samples : sequence of Replicates
        Of the differences of `METRICS`, one for each pair.
    runs : Runs
        Of the tally that the pairs were made of.
    tests : mapping of metric to names of tests
    seed : int

    Returns
    -------
    list of dict
        For each pair: metric -> outcomes. A test of hits is replaced by the sign-flip test of task means where a task
        has several rollouts; a metric that is undefined on a side has none.
    """
    found: list[dict[str, list[Any]]] = []
    flips: list[np.ndarray] = []
    for pair, sample in zip(pairs, samples, strict=True):
        outcomes: dict[str, list[Any]] = {}
        for name, wanted in tests.items():
            metric = METRICS[name]
            if (metric.denominator(pair.tally.total) == 0).any():
                continue
            clustered = is_clustered(pair.tally)
            chosen = dict.fromkeys("sign_flip" if clustered and test in _OF_HITS else test for test in wanted)
            for test in chosen:
                if test == "sign_flip":
                    # all sign-flip tests are run together: they share their drawn signs
                    outcomes.setdefault(name, []).append(len(flips))
                    flips.append(_whole_differences(pair, metric, runs))
                else:
                    outcomes.setdefault(name, []).append(_run(test, pair, sample, metric, runs))
        found.append(outcomes)
    flipped = paired_tests.sign_flips(flips, seed)
    return [{n: [flipped[t] if isinstance(t, int) else t for t in ts] for n, ts in one.items()} for one in found]


def is_clustered(tally: Tally) -> bool:
    """Whether a task has several rollouts on a side."""
    return bool(tally["rollouts"].max() > 1)


def known_everywhere(tally: Tally, metric: Metric) -> np.ndarray:
    """On which tasks every cell has the metric, shape (task,)."""
    return np.all(metric.denominator(tally.counts) > 0, axis=1)


def hits(tally: Tally, metric: Metric) -> np.ndarray:
    """Whether each cell hit, on the tasks where all are known, shape (task, cell)."""
    return metric.numerator(tally.counts)[known_everywhere(tally, metric)] > 0


def _run(test: str, pair: Pair, sample: Replicates, metric: Metric, runs: Runs) -> Tested:
    """One test of one metric on one pair."""
    if test in _OF_HITS:
        both = hits(pair.tally, metric)
        return getattr(paired_tests, test)(both[:, 0], both[:, 1])
    if test == "bootstrap":
        return paired_tests.bootstrap_inversion(sample.values[0, list(METRICS).index(metric.name)], len(sample.strata))
    if test in ("prentice_wilcoxon", "log_rank_by_task"):
        return _survival(test, pair, runs)
    return getattr(paired_tests, test)(_whole_differences(pair, metric, runs))


def _survival(test: str, pair: Pair, runs: Runs) -> Tested:
    """A paired survival test: first-error depth, endings without an error censored."""
    inside = np.isin(runs.cell, pair.cells) & pair.common[runs.task]
    depth, erred, task = runs.depth[inside], runs.erred[inside], runs.task[inside]
    side, n = (runs.cell[inside] == pair.cells[1]).astype(int), len(pair.tally.tasks)
    if test == "prentice_wilcoxon":
        found = paired_prentice_wilcoxon(depth, erred, side, task)
        return Tested("paired Prentice-Wilcoxon", found.statistic, np.nan, found.p_value, n, found.reason)
    found = log_rank(depth, erred, side, task)
    return Tested("log-rank stratified by task", found.statistic, found.df, found.p_value, n, found.reason)


def _whole_differences(pair: Pair, metric: Metric, runs: Runs) -> np.ndarray:
    """Differences of task means, as whole numbers where they have a manageable common denominator."""
    means, whole = task_means(pair.tally, metric, runs.area_scale(pair.cells) if metric.name == "auc_pec" else 1)
    return (means[:, 0] - means[:, 1]).astype(np.int64 if whole else float)


def task_means(tally: Tally, metric: Metric, scale: int = 1) -> tuple[np.ndarray, bool]:
    """Mean of each task in each cell, on the tasks where all are known.

    Parameters
    ----------
    tally : Tally
    metric : Metric
    scale : int
        What makes a single rollout's value a whole number.

    Returns
    -------
    means : numpy.ndarray
        Shape (task, cell); times a common denominator, if that is manageable, so that ties are exact.
    whole : bool
        Whether they are.
    """
    n, known = metric.denominator(tally.counts), known_everywhere(tally, metric)
    means = metric.numerator(tally.counts)[known] / n[known]
    scale *= math.lcm(*np.unique(n[known]).astype(int).tolist())
    return (means, False) if scale > _LARGEST_SCALE else (np.round(means * scale), True)


def overall_tests(
    tally: Tally, between: str, within: tuple[str, ...], runs: Runs, metrics: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Cochran's Q or Friedman's test of all methods of each place with three or more, on their common tasks.

    Parameters
    ----------
    tally : Tally
        Counted by ``(*within, between)``.
    between : str
    within : tuple of str
    runs : Runs
    metrics : sequence of str

    Returns
    -------
    rows : list of dict
        Columns of the place, ``metric``, ``tested``.
    notes : list of str

    Notes
    -----
    Which pairs differ is told by the tests of the pairs, adjusted for their number; tests on mean ranks among all
    methods would let a third method decide about two (Benavoli, Corani and Mangili 2016, JMLR 17:1-10).
    """
    rows, notes = [], []
    for place, group in places(tally, within):
        if len(group) < 3:
            continue
        present = tally.present[:, group]
        common = np.asarray(present.all(axis=1))
        name = named(f"all {len(group)} values of {between}", place)
        if not common.any():
            notes.append(f"{name} have no task in common, so there is no test of all at once")
            continue
        notes += left_out(name, tally.tasks["task_id"][present.any(axis=1) & ~common].tolist())
        part = tally.take(common, group)
        for metric in (METRICS[m] for m in metrics if m in DEFAULTS):
            if (metric.denominator(part.total) == 0).any():
                continue
            if metric.proportion and not is_clustered(part):
                tested = paired_tests.cochran_q(hits(part, metric))
            else:
                scale = runs.area_scale(group) if metric.name == "auc_pec" else 1
                tested = paired_tests.friedman(task_means(part, metric, scale)[0])
            rows.append({**place, "metric": metric.name, "tested": tested})
    return rows, notes


def tests_frame(rows: Sequence[Mapping[str, Any]], within: tuple[str, ...]) -> pd.DataFrame:
    """One row a test, in columns that do not depend on what was asked for.

    Parameters
    ----------
    rows : sequence of mapping
        Columns of the place, ``metric, a, b, role, tested, p_adjusted``.
    within : tuple of str

    Returns
    -------
    pandas.DataFrame
        The place, then ``metric, a, b, role, test, statistic, df, p_value, standard_error, p_adjusted, n_pairs,
        left_out``.
    """
    columns = (*within, "metric", "a", "b", "role", "test", "statistic", "df", "p_value", "standard_error",
               "p_adjusted", "n_pairs", "left_out")  # fmt: skip
    made = []
    for row in rows:
        tested = row["tested"]
        own = {name: getattr(tested, name) for name in Tested.__dataclass_fields__}
        made.append({name: value for name, value in row.items() if name != "tested"} | own)
    return pd.DataFrame(made, columns=list(columns))
