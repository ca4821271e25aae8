"""Task weights -> replicates. Cells with the same tasks share their weights: the sharing is the pairing."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pandas as pd
from threadpoolctl import ThreadpoolController

from survexec.errors import InputError
from survexec.statistics.tally import Counts, Tally

BLOCK: Final = 1000
RESAMPLES: Final = 10_000
_STEP: Final = 1e-100


class Estimator(Protocol):
    """A function of counts (..., column): an array (...) or, for a curve, (..., depth), put into ``out`` if given."""

    def __call__(self, counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        """Evaluate at these counts."""


@dataclass(frozen=True)
class Replicates:
    """Estimates of some statistics in some cells, with their bootstrap and jackknife replicates.

    Parameters
    ----------
    estimate : numpy.ndarray
        Shape (cell, statistic).
    values : numpy.ndarray
        Bootstrap replicates, shape (cell, statistic, resample).
    jackknife : numpy.ndarray
        Estimates without one task, shape (task, cell, statistic); NaN where the cell lacks the task.
    n_tasks : numpy.ndarray
        Tasks of each cell, shape (cell,).
    strata : numpy.ndarray
        Code of the stratum of each task, shape (task,).
    """

    estimate: np.ndarray
    values: np.ndarray
    jackknife: np.ndarray
    n_tasks: np.ndarray
    strata: np.ndarray

    def only(self, statistics: slice) -> Replicates:
        """Some of the statistics."""
        return Replicates(
            self.estimate[:, statistics], self.values[:, statistics], self.jackknife[:, :, statistics],
            self.n_tasks, self.strata,
        )  # fmt: skip

    def difference(self, a: int, b: int) -> Replicates:
        """Replicates of cell a minus cell b, as one cell; both must have the same tasks."""
        return Replicates(
            self.estimate[[a]] - self.estimate[[b]],
            self.values[[a]] - self.values[[b]],
            self.jackknife[:, [a]] - self.jackknife[:, [b]],
            self.n_tasks[[a]],
            self.strata,
        )


def as_seed(rng: int | np.random.Generator) -> int:
    """The seed of a call: given, or drawn from a Generator.

    Examples
    --------
    >>> as_seed(7)
    7
    """
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, int | np.integer) and rng >= 0:
        return int(rng)
    raise InputError(f"rng = {rng!r}; it must be a whole number from 0 or a numpy.random.Generator")


def strata_of(tally: Tally) -> np.ndarray:
    """Code of the stratum of each task; strata of a single task, which have no spread of their own, are pooled.

    Parameters
    ----------
    tally : Tally

    Returns
    -------
    numpy.ndarray of int
    """
    codes = pd.factorize(tally.tasks["stratum"].fillna(""))[0]
    size = np.bincount(codes, minlength=1)
    alone = size[codes] == 1
    if alone.sum() == 1 and len(size) > 1:
        alone |= codes == np.argmin(np.where(size > 1, size, size.max() + 1))
    return np.where(alone, -1, codes)


def task_weights(strata: np.ndarray, resamples: int, seed: int, block: int = BLOCK) -> Iterator[np.ndarray]:
    """How often each task stands in each resample: tasks drawn with replacement within their stratum.

    Parameters
    ----------
    strata : numpy.ndarray
        Code of the stratum of each task, shape (task,).
    resamples : int
    seed : int
        The same seed gives the same weights for any ``block``.
    block : int
        Resamples a block.

    Yields
    ------
    numpy.ndarray
        Counts of shape (at most block, task); each row sums to the number of tasks.

    Notes
    -----
    Uniform draws are counted, which is the multinomial (Efron 1979) at a fraction of its cost.

    Examples
    --------
    >>> import numpy as np
    >>> [w.sum(axis=1).tolist() for w in task_weights(np.zeros(3, int), 2, seed=0)]
    [[3, 3]]
    """
    members = [np.flatnonzero(strata == s) for s in np.unique(strata)]
    # one stream a stratum, so that no draw depends on how the resamples are cut into blocks
    streams = np.random.default_rng(seed).spawn(len(members))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        if len(members) == 1:
            yield _counted(streams[0], rows, len(strata))
            continue
        weights = np.empty((rows, len(strata)), dtype=np.int64)
        for inside, stream in zip(members, streams, strict=True):
            weights[:, inside] = _counted(stream, rows, len(inside))
        yield weights


def _counted(stream: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """Rows of n uniform draws among n tasks, counted by task."""
    drawn = stream.integers(0, n, (rows, n))
    drawn += np.arange(0, rows * n, n)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)


@functools.cache
def _threads() -> ThreadpoolController:
    """The thread pools of this process; finding them takes milliseconds, so once."""
    return ThreadpoolController()


def replicate(tally: Tally, estimators: Sequence[Estimator], resamples: int = RESAMPLES, seed: int = 0) -> Replicates:
    """Bootstrap and jackknife functions of counts over tasks, in every cell at once.

    Parameters
    ----------
    tally : Tally
    estimators : sequence of callable
        Each maps Counts (..., column) to an array (...) or, for a curve, (..., depth); their values are put after one
        another along the axis of statistics.
    resamples : int
    seed : int
        Cells with the same number of tasks and the same strata get the same weights, whatever else is there.

    Returns
    -------
    Replicates

    References
    ----------
    Efron (1979), Annals of Statistics 7:1-26. Field and Welsh (2007), JRSS B 69:369-390 (resampling clusters).
    """
    strata = strata_of(tally)
    tally = tally.select(_features_of(estimators, tally.total))
    estimate = _together(estimators, tally.total)
    values = np.empty((*estimate.shape, resamples))
    jackknife = np.full((len(tally.tasks), *estimate.shape), np.nan)
    for tasks, cells in tally.groups():
        part = tally.take(tasks, cells)
        # the usual case, all cells on the same tasks, is written in place
        inside = values if len(cells) == len(values) else np.empty((len(cells), *values.shape[1:]))
        evaluate(part, estimators, task_weights(strata[tasks], resamples, seed), inside)
        if inside is not values:
            values[cells] = inside
        without = Counts(part.total.values - part.counts.values, part.counts.columns)
        jackknife[np.ix_(tasks, np.array(cells))] = _together(estimators, without)
    return Replicates(estimate, values, jackknife, tally.present.sum(axis=0), strata)


def evaluate(tally: Tally, estimators: Sequence[Estimator], blocks: Iterable[np.ndarray], out: np.ndarray) -> None:
    """The estimators at given task weights, written into an array.

    Parameters
    ----------
    tally : Tally
    estimators : sequence of callable
    blocks : iterable of numpy.ndarray
        Weights of shape (resample, task), such as `task_weights` or resample counts from elsewhere.
    out : numpy.ndarray
        Shape (cell, statistic, resample).
    """
    n, cells, columns = tally.counts.values.shape
    digits = _Digits(tally.counts.values.reshape(n, cells * columns))
    shapes = [estimator(tally.total).shape[1:] for estimator in estimators]
    ends = np.cumsum([shape[0] if shape else 1 for shape in shapes])
    start = 0
    with _threads().limit(limits=1, user_api="blas"):
        for weights in blocks:
            sums = digits.sums(weights).reshape(cells, columns, len(weights))
            # resamples last in memory, first in shape: estimators see (resample, cell, column)
            counts = Counts(np.moveaxis(sums, -1, 0), tally.counts.columns)
            target = np.moveaxis(out[..., start : start + len(weights)], -1, 0)
            for estimator, shape, end in zip(estimators, shapes, ends, strict=True):
                estimator(counts, target[..., end - shape[0] : end] if shape else target[..., end - 1])
            start += len(weights)


def _last_axis(found: np.ndarray, counts: Counts) -> np.ndarray:
    """A scalar statistic gets an axis of length one, so that it stands beside curves."""
    return found[..., None] if found.ndim < counts.values.ndim else found


def _together(estimators: Sequence[Estimator], counts: Counts) -> np.ndarray:
    """All statistics along one last axis."""
    return np.concatenate([_last_axis(estimator(counts), counts) for estimator in estimators], axis=-1)


def influence(tally: Tally, estimators: Sequence[Estimator]) -> np.ndarray:
    """How much each task moves each statistic: derivatives with respect to the task's weight.

    Parameters
    ----------
    tally : Tally
    estimators : sequence of callable

    Returns
    -------
    numpy.ndarray
        Shape (task, cell, statistic). The sum of squares over tasks is the infinitesimal-jackknife variance, clustered
        by task; for a Kaplan-Meier curve of one trial a task it is Greenwood's.

    Notes
    -----
    A complex step gives the derivative to the last digit without a formula for each estimator.

    References
    ----------
    Jaeckel (1972), Bell Laboratories memorandum MM 72-1215-11. Squire and Trapp (1998), SIAM Review 40:110-112.

    Examples
    --------
    >>> import pandas as pd
    >>> from survexec.rollouts import Rollouts
    >>> from survexec.statistics.estimands import METRICS
    >>> from survexec.statistics.tally import count
    >>> runs = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "length": [3, 2], "fed": [1, 3]}))
    >>> influence(count(runs), [METRICS["ter"]]).ravel().tolist()
    [-0.25, 0.25]
    """
    tally = tally.select(_features_of(estimators, tally.total))
    moved = tally.total.values + _STEP * 1j * tally.counts.values
    return _together(estimators, Counts(moved, tally.counts.columns)).imag / _STEP


class _Watched(Counts):
    """Counts that remember which features were read."""

    def __init__(self, counts: Counts) -> None:
        super().__init__(counts.values, counts.columns)
        object.__setattr__(self, "seen", {})

    def __getitem__(self, feature: str) -> np.ndarray:
        self.seen[feature] = None  # type: ignore[attr-defined]
        return super().__getitem__(feature)


def _features_of(estimators: Sequence[Estimator], counts: Counts) -> list[str]:
    """The features that the estimators read: no others need be multiplied."""
    watched = _Watched(counts)
    _together(estimators, watched)
    return list(watched.seen) + ["rollouts"] * ("rollouts" not in watched.seen)  # type: ignore[attr-defined]


class _Digits:
    """A matrix of counts cut into whole digits that a float product adds without rounding.

    A single-precision product of whole numbers is exact below 2**24, in any order of summation: the result does not
    depend on block size, threads or BLAS. Real-valued columns (the area) are cut down to a quantum of at most 2**-40,
    so their sums are exact to about 1e-12. Too many tasks for single precision use double.

    Parameters
    ----------
    counts : numpy.ndarray
        Shape (task, column), all >= 0.
    """

    def __init__(self, counts: np.ndarray) -> None:
        # the weights of a resample add to the number of tasks, which bounds every sum of digits
        growth = 1 + int(np.ceil(np.log2(max(len(counts), 2))))
        dtype, bits = (np.float32, 24 - growth) if growth <= 16 else (np.float64, 53 - growth)
        whole_digits = max(int(np.ceil(np.log2(counts.max(initial=1.0) + 1) / bits)), 1)
        quantum, rest = 2.0 ** (bits * whole_digits), counts.copy()
        blocks, self.digits = [], []
        while quantum > 2.0**-40 and (quantum > 1 or rest.any()):
            quantum *= 2.0**-bits
            columns = np.arange(counts.shape[1]) if quantum >= 1 else np.flatnonzero(rest.any(axis=0))
            blocks.append(np.floor(rest[:, columns] / quantum))
            rest[:, columns] -= blocks[-1] * quantum
            self.digits.append((columns, quantum))
        self.matrix = np.ascontiguousarray(np.concatenate(blocks, axis=1).T, dtype=dtype)
        self._made_for(0)

    def _made_for(self, resamples: int) -> None:
        """Work arrays, made once a size: fresh memory at each block would cost more than the product."""
        rows, tasks = self.matrix.shape
        self.weights = np.empty((resamples, tasks), self.matrix.dtype)
        self.product = np.empty((rows, resamples), self.matrix.dtype)
        self.out = np.empty((len(self.digits[0][0]), resamples))

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Weighted sums of the original columns, shape (column, resample); valid until the next call."""
        if len(weights) != self.out.shape[1]:
            self._made_for(len(weights))
        np.copyto(self.weights, weights)
        np.matmul(self.matrix, self.weights.T, out=self.product)
        start = 0
        for columns, scale in self.digits:
            digit = self.product[start : start + len(columns)]
            if start == 0:
                np.copyto(self.out, digit)
                self.out *= scale
            else:
                self.out[columns] += digit * scale
            start += len(columns)
        return self.out
