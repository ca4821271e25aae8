"""Ranks with ties, sums with random signs, resamples beyond zero: what the paired tests stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from survexec.errors import InputError

DRAWS: Final = 99_999
# Sums that the exact distribution lists for half of the tasks, or steps in which it fills the lattice of them: what
# some milliseconds do, so that all pairs of many methods take no longer than their bootstrap.
_LISTED: Final = 2**16
WORK: Final = 2**23


def finite(values: np.ndarray) -> np.ndarray:
    """Values as floats, none of them missing.

    Parameters
    ----------
    values : numpy.ndarray

    Returns
    -------
    numpy.ndarray of float

    Raises
    ------
    InputError
        If one is NaN or infinite.
    """
    given = np.asarray(values, float)
    wrong = given[~np.isfinite(given)]
    if len(wrong):
        raise InputError(f"a value is {wrong[0]}; leave out the tasks that lack a value")
    return given


def tolerance(values: np.ndarray) -> np.ndarray:
    """Up to which difference the values of a row (the last axis) are ties: rounding must not decide.

    Parameters
    ----------
    values : numpy.ndarray

    Returns
    -------
    numpy.ndarray
        Last axis of length one: 0 for whole numbers; for floats 1e-9 of the largest size, at least 1e-12.

    Examples
    --------
    >>> import numpy as np
    >>> tolerance(np.array([2, -3])).tolist(), tolerance(np.array([0.5, -2.0])).tolist()
    ([0.0], [2e-09])
    """
    largest = np.abs(values).max(axis=-1, initial=0, keepdims=True)
    return np.zeros(largest.shape) if values.dtype.kind in "iu" else np.maximum(1e-9 * largest, 1e-12)


def doubled_ranks(values: np.ndarray) -> np.ndarray:
    """Twice the average ranks within each row, which are whole numbers.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (row, value).

    Returns
    -------
    numpy.ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> doubled_ranks(np.array([[5, 2, 5, 1]])).tolist()
    [[7, 4, 7, 2]]
    """
    order = np.argsort(values, axis=1, kind="stable")
    starts = np.ones(values.shape, bool)
    starts[:, 1:] = np.diff(np.take_along_axis(values, order, axis=1), axis=1) > tolerance(values)
    # groups of ties, numbered through all rows; none straddles two, since each row starts one
    group = np.cumsum(starts.ravel()) - 1
    before = np.flatnonzero(starts) % max(values.shape[1], 1)
    doubled = 2 * before + 1 + np.bincount(group, minlength=len(before))
    ranks = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, doubled[group].reshape(values.shape), axis=1)
    return ranks


def signed_ranks(differences: np.ndarray, zeros: str) -> np.ndarray:
    """Doubled ranks of the sizes of differences, with their signs.

    Parameters
    ----------
    differences : numpy.ndarray
        Shape (task,).
    zeros : str
        Differences of zero get 0, and are ranked with the others ("pratt") or not ("dropped").

    Returns
    -------
    numpy.ndarray of int

    Raises
    ------
    InputError
        If a difference is missing, or `zeros` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> signed_ranks(np.array([0, -1, 4]), "pratt").tolist(), signed_ranks(np.array([0, -1, 4]), "dropped").tolist()
    ([0, -4, 6], [0, -2, 4])
    """
    if zeros not in ("pratt", "dropped"):
        raise InputError(f"zeros = {zeros!r}; it must be 'pratt' or 'dropped'")
    finite(differences)
    sizes = np.abs(differences)
    some = sizes > tolerance(differences)
    ranked = some | (zeros == "pratt")
    ranks = np.zeros(len(differences), dtype=np.int64)
    ranks[ranked] = doubled_ranks(sizes[ranked][None])[0]
    return np.where(some, ranks * np.sign(differences).astype(np.int64), 0)


def exact_flips(differences: np.ndarray, most: int = WORK) -> float | None:
    """Probability that differences with random signs add to a sum at least as large as theirs.

    Parameters
    ----------
    differences : numpy.ndarray of int
    most : int
        Steps of the convolution that are worth an exact value.

    Returns
    -------
    float or None
        None where there are too many distinct sums.

    References
    ----------
    Pagano and Tritchler (1983), JASA 78:435-440.

    Examples
    --------
    >>> import numpy as np
    >>> exact_flips(np.array([1, 2, 3, 0]))
    0.25
    """
    sizes = np.sort(np.abs(differences[differences != 0]).astype(np.int64))
    observed = abs(int(differences.sum()))
    left, right = (_signed_sums(sizes[start::2], most) for start in (0, 1))
    if left is None or right is None:
        return None
    if observed == 0:
        return 1.0
    # both tails are alike; the lower one adds small numbers only, so that a tiny p keeps its digits
    below = np.concatenate([[0.0], np.cumsum(right[1])])[np.searchsorted(right[0], -observed - left[0], side="right")]
    return float(min(1.0, 2 * (left[1] * below).sum()))


def _signed_sums(sizes: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """All sums of +-sizes in ascending order with their probabilities; None where there are too many."""
    unit = max(int(np.gcd.reduce(sizes)), 1)
    reach = int(sizes.sum()) // unit
    if reach < 2 ** len(sizes) and reach * len(sizes) <= most:
        # the lattice of sums of the positive ones, on which each size in turn is taken or not
        chance = np.zeros(reach + 1)
        chance[0], top = 1.0, 1
        for size in (sizes // unit).tolist():
            half = chance[:top] / 2
            chance[:top] = half
            chance[size : size + top] += half
            top += size
        hit = np.flatnonzero(chance)
        return (2 * hit - reach) * unit, chance[hit]
    if 2 ** len(sizes) > _LISTED:
        return None
    sums = np.zeros(1, dtype=np.int64)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return np.sort(sums), np.full(len(sums), 1 / len(sums))


def drawn_flips(many: Sequence[np.ndarray], seed: int) -> Iterator[float]:
    """The same probability by Monte Carlo, for several sets of differences that share their drawn signs.

    Parameters
    ----------
    many : sequence of numpy.ndarray of float
    seed : int

    Yields
    ------
    float
        (hits + 1) / 100,000, the observed signs counted with 99,999 drawn ones; what it would be for the set alone.
        Sums as large as the observed one but for 1e-9 of the largest possible sum are hits.
    """
    # padded to whole bytes: one random byte draws the signs of eight tasks
    sizes = np.zeros((len(many), -(-max(map(len, many), default=0) // 8) * 8))
    for row, given in zip(sizes, many, strict=True):
        row[: len(given)] = np.abs(given)
    rng, positive = np.random.default_rng(seed), np.zeros((len(many), DRAWS))
    for start in range(0, sizes.shape[1], 8):
        # the sum of the positive ones for each of 256 patterns of signs, then that of each draw
        table = np.zeros((len(many), 1))
        for size in sizes[:, start : start + 8].T:
            table = np.concatenate([table, table + size[:, None]], axis=1)
        drawn = rng.integers(0, 256, DRAWS, dtype=np.uint8).astype(np.intp)
        for sums, one in zip(positive, table, strict=True):
            sums += one[drawn]
    for given, row, sums in zip(many, sizes, positive, strict=True):
        # the signed sum is twice the sum of those drawn positive, less the total
        total = row.sum()
        hits = np.count_nonzero(np.abs(2 * sums - total) >= abs(given.sum()) - 1e-9 * total)
        yield (hits + 1) / (DRAWS + 1)


def beyond_zero(values: np.ndarray) -> float:
    """The smaller of the probabilities at which a quantile of replicates, or of their negatives, reaches zero.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (resample,), none missing.

    Returns
    -------
    float
        From 1 / (resamples + 1) to 1; NaN where there is no replicate, or all are the same and not zero.

    Notes
    -----
    At (n + 1) p of n replicates, linear between neighbours, as the intervals read their quantiles: type 6 of Hyndman
    and Fan (1996), The American Statistician 50:361-365. A replicate is zero up to 1e-12 of the largest size.

    Examples
    --------
    >>> import numpy as np
    >>> beyond_zero(np.array([-1.0, 1.0, 2.0, 3.0]))
    0.3
    """
    size = np.abs(values).max(initial=0)
    close = 1e-12 * size
    if not len(values) or np.ptp(values) <= close < size:
        return np.nan
    ordered = np.sort(values)
    return float(min(_reached(ordered, close), _reached(-ordered[::-1], close)))


def _reached(ordered: np.ndarray, close: float) -> float:
    """The largest probability at which a quantile of ordered replicates is zero or less."""
    below = int(np.searchsorted(ordered, close, side="right"))
    if below == len(ordered):
        return 1.0
    part = 0.0
    if below and ordered[below - 1] < -close:
        part = -ordered[below - 1] / (ordered[below] - ordered[below - 1])
    return max(below + part, 1.0) / (len(ordered) + 1)
