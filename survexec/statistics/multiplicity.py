"""Many tests at once: adjusted p-values, step-down max-T from shared replicates, the level of matching intervals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from survexec.errors import InputError

METHODS: Final = ("holm", "hochberg", "bh", "by", "romano_wolf", "none")
# Equal up to rounding counts as equal: discrete differences have replicates that sit right on the observed value.
_EQUAL: Final = 1 + 1e-9


def adjusted(p_values: np.ndarray, method: str = "holm") -> np.ndarray:
    """Adjusted p-values of a family of tests; NaN is no test and does not count.

    Parameters
    ----------
    p_values : numpy.ndarray
    method : str
        "holm" and "hochberg" bound the probability of any false rejection (Hochberg's needs tests that are independent
        or positively dependent, Holm's nothing); "bh" and "by" bound the expected share of false ones among the
        rejections ("bh" under independence or positive dependence, "by" always); "none" leaves p as it is.

    Returns
    -------
    numpy.ndarray
        NaN where there was no test.

    Raises
    ------
    InputError
        If a p-value is outside 0 to 1, or the method is unknown or needs replicates.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6:65-70. Hochberg (1988), Biometrika 75:800-802. Benjamini and
    Hochberg (1995), JRSS B 57:289-300. Benjamini and Yekutieli (2001), Annals of Statistics 29:1165-1188.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    p = np.asarray(p_values, float)
    wrong = p[(p < 0) | (p > 1)]
    if len(wrong):
        raise InputError(f"p = {wrong[0]}; it must be from 0 to 1, or NaN where there was no test")
    if _checked(method) == "none":
        return p.copy()
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    m, rank = len(order), np.arange(1, len(order) + 1)
    out = np.full(len(p), np.nan)
    if method == "holm":
        stepped = np.maximum.accumulate(p[order] * (m + 1 - rank))
    else:
        factor = m + 1 - rank if method == "hochberg" else _harmonic(method, m) * m / rank
        stepped = np.minimum.accumulate((p[order] * factor)[::-1])[::-1]
    out[order] = np.minimum(stepped, 1)
    return out


def romano_wolf(
    estimate: np.ndarray, error: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, Callable[[float], float]]:
    """Step-down max-T: p-values adjusted with the dependence of the tests, as their shared replicates show it.

    Parameters
    ----------
    estimate, error : numpy.ndarray
        Estimates that are zero under the null and their standard errors, shape (hypothesis,).
    values : numpy.ndarray
        Bootstrap replicates of the estimates from the same resamples, shape (hypothesis, resample).

    Returns
    -------
    p_adjusted : numpy.ndarray
        Two-sided, shape (hypothesis,); (hits + 1) / (resamples + 1), so never below what the resamples can show. NaN
        where the error is 0 or NaN, which is no test.
    critical : callable
        Level -> the critical value c with which the intervals estimate -+ c error hold all at once, from the same
        replicates. Infinite where there are too few resamples for the level; NaN where there is no test.

    Raises
    ------
    InputError
        If the shapes do not fit; by `critical`, if the level is not between 0 and 1.

    Notes
    -----
    |estimate| / error is compared with the largest |replicate - estimate| / error over the hypotheses that have not
    been rejected before it. A hypothesis without a value in a resample takes no part in the maximum of that one;
    resamples in which none of those left has a value do not count.

    The critical value is of a single step, with the maximum over all hypotheses: an interval leaves zero out exactly
    where the single-step max-T p is at most 1 - level. The step-down p is never larger, so it may reject where the
    interval still reaches zero.

    References
    ----------
    Romano and Wolf (2005), Econometrica 73:1237-1282; (2016), Statistics and Probability Letters 113:38-40.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(2, 999))
    >>> p, critical = romano_wolf(np.array([3.4, 0.2]), np.ones(2), noise + [[3.4], [0.2]])
    >>> p.round(3).tolist(), round(critical(0.95), 2)
    ([0.003, 0.858], 2.25)
    """
    estimate, error, values = (np.asarray(given, float) for given in (estimate, error, values))
    if values.ndim != 2 or not estimate.shape == error.shape == values.shape[:1]:
        raise InputError(
            f"estimate, error and values have the shapes {estimate.shape}, {error.shape} and {values.shape}; "
            "they must be (hypothesis,), (hypothesis,) and (hypothesis, resample)"
        )
    # an error that is rounding of the estimate is none
    usable = np.flatnonzero(np.isfinite(estimate) & np.isfinite(error) & (error > 1e-12 * np.abs(estimate)))
    t = np.abs(estimate[usable]) / error[usable]
    order = np.argsort(t, kind="stable")
    largest, row = np.full(values.shape[1], -np.inf), np.empty(values.shape[1])
    stepped = np.empty(len(usable))
    # from the smallest |t| up, so that one running maximum serves the hypotheses left at every step
    for step, which in enumerate(order):
        at = usable[which]
        np.abs(np.subtract(values[at], estimate[at], out=row), out=row)
        np.fmax(largest, np.multiply(row, _EQUAL / error[at], out=row), out=largest)
        stepped[step] = (np.count_nonzero(largest >= t[which]) + 1) / (np.count_nonzero(largest >= 0) + 1)
    p = np.full(len(estimate), np.nan)
    p[usable[order]] = np.maximum.accumulate(stepped[::-1])[::-1]
    return p, functools.partial(_critical, np.sort(largest[largest >= 0])[::-1])


def simultaneous_level(method: str, level: float, p_adjusted: np.ndarray) -> float:
    """The level of each interval of a family, so that together they match the adjusted decisions.

    Parameters
    ----------
    method : str
        One of `METHODS` but "romano_wolf", whose intervals are those of `romano_wolf`.
    level : float
        Of the family: tests with an adjusted p of at most 1 - level are rejected.
    p_adjusted : numpy.ndarray
        By that method; NaN is no test and does not count.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the method is unknown or needs replicates.

    Notes
    -----
    Of m tests R are rejected, and an interval is taken as the dual of its test: it leaves zero out exactly where the
    raw p is at most one less the interval's level.

    - "none": each interval at the level given; nothing holds of the family.
    - "holm", "hochberg": Bonferroni, 1 - (1 - level) / m. All intervals hold at once with probability `level` or more.
      An interval that leaves zero out belongs to a rejected test; the reverse can fail, since these methods step: after
      the first rejection they test with fewer than m, and may reject although the interval reaches zero.
    - "bh": 1 - R (1 - level) / m. Intervals leave zero out exactly where the test is rejected, and among the R reported
      the expected share that misses is at most 1 - level (false coverage rate).
    - "by": the same with m (1 + 1/2 + ... + 1/m) for m, whatever the dependence.
    - R = 0: as for R = 1, so that no interval leaves zero out where no test is rejected. For "bh" that is Bonferroni.

    References
    ----------
    Benjamini and Yekutieli (2005), JASA 100:71-81.

    Examples
    --------
    >>> import numpy as np
    >>> round(simultaneous_level("holm", 0.95, np.array([0.01, 0.2])), 6)
    0.975
    >>> round(simultaneous_level("bh", 0.95, np.array([0.01, 0.02, 0.2, np.nan])), 6)
    0.966667
    """
    p = np.asarray(p_adjusted, float)
    m = int((~np.isnan(p)).sum())
    if _checked(method) == "none" or m == 0:
        return level
    # the last digit of 1 - level must not decide
    rejected = 1 if method in ("holm", "hochberg") else max(int((p <= 1 - level + 1e-12).sum()), 1)
    return 1 - rejected * (1 - level) / (m * _harmonic(method, m))


def _checked(method: str) -> str:
    """A method that needs p-values only."""
    if method == "romano_wolf":
        raise InputError("method 'romano_wolf' needs replicates, not p-values; use the function romano_wolf")
    if method not in METHODS:
        raise InputError(f"method {method!r} is unknown; there are: {', '.join(METHODS)}")
    return method


def _harmonic(method: str, m: int) -> float:
    """What any dependence among m tests costs: 1 + 1/2 + ... + 1/m for "by", else 1."""
    return float((1 / np.arange(1, m + 1)).sum()) if method == "by" else 1.0


def _critical(largest: np.ndarray, level: float) -> float:
    """Critical value at a level, from the maxima of the resamples in descending order."""
    if not 0 < level < 1:
        raise InputError(f"level = {level!r}; it must be between 0 and 1")
    # (hits + 1) / (resamples + 1) <= 1 - level holds for fewer hits than this; 1e-9 undoes the rounding of 1 - level
    reach = int((1 - level) * (len(largest) + 1) + 1e-9)
    if not len(largest):
        return np.nan
    return float(largest[reach - 1]) if reach else np.inf
