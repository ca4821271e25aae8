"""Tests of two methods on the same tasks, one small function each, and the adjustment for many tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

# Sums that the exact test lists for half of the tasks, or the lattice of them that it fills; beyond both it draws.
_LISTED: Final = 2**20
_LATTICE: Final = 2**22
_DRAWS: Final = 99_999


@dataclass(frozen=True, slots=True)
class Tested:
    """A test's outcome.

    Parameters
    ----------
    test : str
        Name of the test, and how its p-value was had.
    statistic : float
    p_value : float
        Two-sided.
    n_pairs : int
        Tasks that entered.
    """

    test: str
    statistic: float
    p_value: float
    n_pairs: int


def mcnemar_midp(first: np.ndarray, second: np.ndarray) -> Tested:
    """McNemar's test with the mid-p value: whether two methods hit equally often on the same tasks.

    Parameters
    ----------
    first, second : numpy.ndarray of bool
        Whether each method hit, one value a task.

    Returns
    -------
    Tested
        The statistic is b - c, the tasks that only the first hit less those that only the second hit. Where no task
        tells the two apart, p is 1.

    References
    ----------
    Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13:91.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.array([1, 1, 1, 1, 1, 0]) == 1
    >>> round(mcnemar_midp(a, np.zeros(6, bool)).p_value, 5)
    0.03125
    """
    b, c = int((first & ~second).sum()), int((~first & second).sum())
    n, k = b + c, min(b, c)
    # twice the tail less half of its last step: P(X <= k) + P(X < k)
    p = 1.0 if n == 0 else min(1.0, special.bdtr(k, n, 0.5) + (special.bdtr(k - 1, n, 0.5) if k else 0.0))
    return Tested("McNemar mid-p", b - c, float(p), len(first))


def sign_flip(differences: np.ndarray, seed: int = 0) -> Tested:
    """Sign-flip permutation test that paired differences are symmetric about zero.

    Parameters
    ----------
    differences : numpy.ndarray of int
        One difference a task. Whole numbers, so that ties between sums are exact.
    seed : int
        Used only where there are too many distinct sums to list.

    Returns
    -------
    Tested
        The statistic is the sum. Exact while the sums of half the tasks can be listed; else Monte Carlo on 99,999
        drawn sign patterns, with the observed one counted.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Pagano and Tritchler (1983), JASA 78:435-440.

    Examples
    --------
    >>> import numpy as np
    >>> sign_flip(np.array([1, 2, 3, 0])).p_value
    0.25
    """
    observed = abs(int(differences.sum()))
    sizes = np.sort(np.abs(differences[differences != 0]).astype(np.int64))
    halves = [_signed_sums(sizes[start::2]) for start in (0, 1)]
    if None in halves:
        return sign_flip_real(differences.astype(float), seed)
    (left, p_left), (right, p_right) = halves  # type: ignore[misc]
    # P(S <= s) of the right half with a leading 0, so that sums on either side of the observed one are counted apart
    cumulative = np.concatenate([[0.0], np.cumsum(p_right)])
    above = 1 - cumulative[np.searchsorted(right, observed - left, side="left")]
    below = cumulative[np.searchsorted(right, -observed - left, side="right")]
    p = 1.0 if observed == 0 else float(min(1.0, (p_left * (above + below)).sum()))
    return Tested("sign-flip, exact", int(differences.sum()), p, len(differences))


def sign_flip_real(differences: np.ndarray, seed: int = 0) -> Tested:
    """The sign-flip test on differences that have no common denominator of manageable size, by Monte Carlo.

    Parameters
    ----------
    differences : numpy.ndarray of float
    seed : int

    Returns
    -------
    Tested
        Sums within 1e-9 of the observed one count as ties.
    """
    total = float(differences.sum())
    p = _drawn_flips(np.abs(differences[np.abs(differences) > 1e-12]), abs(total), seed)
    return Tested("sign-flip, Monte Carlo", total, p, len(differences))


def _signed_sums(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """All sums of +-sizes in ascending order with their probabilities; None where there are too many."""
    if 2 ** len(sizes) <= _LISTED:
        sums = np.zeros(1, dtype=np.int64)
        for size in sizes:
            sums = np.concatenate([sums - size, sums + size])
        return np.sort(sums), np.full(len(sums), 1 / len(sums))
    unit = int(np.gcd.reduce(sizes))
    reach = int(sizes.sum()) // unit
    if 2 * reach + 1 > _LATTICE:
        return None
    # the lattice of sums, convolved with one pair of signs at a time
    probability = np.zeros(2 * reach + 1)
    probability[reach] = 1.0
    for size in sizes // unit:
        convolved = np.zeros_like(probability)
        convolved[size:] += probability[:-size] / 2
        convolved[:-size] += probability[size:] / 2
        probability = convolved
    hit = np.flatnonzero(probability)
    return (hit - reach) * unit, probability[hit]


def _drawn_flips(sizes: np.ndarray, observed: float, seed: int) -> float:
    """Share of drawn sign patterns whose sum is at least as large as the observed one."""
    rng = np.random.default_rng(seed)
    total, hits, left = sizes.sum(), 0, _DRAWS
    while left:
        rows = min(left, 10_000)
        # the sum with drawn signs is twice the sum of those drawn positive, less the total
        sums = np.abs(2 * (rng.random((rows, len(sizes))) < 0.5) @ sizes - total)
        hits += int((sums >= observed * (1 - 1e-9) - 1e-9).sum())
        left -= rows
    return (hits + 1) / (_DRAWS + 1)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment; NaN is no test and does not count.

    Parameters
    ----------
    p_values : numpy.ndarray

    Returns
    -------
    numpy.ndarray
        Adjusted p-values, NaN where there was no test.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6:65-70.

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    p = np.asarray(p_values, float)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    out = np.full(len(p), np.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1) if len(order) else steps
    return out
