"""Replicates or counts -> intervals and simultaneous bands. Arrays in, arrays out; no tables, no drawing."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import stats

from survexec.statistics.resampling import Replicates

Bounds = tuple[np.ndarray, np.ndarray]
# Below this many on either side of a depth, replicates say little about its spread.
BAND_MINIMUM: Final = 5


def normal_quantile(level: float) -> float:
    """Two-sided critical value of the normal distribution.

    Examples
    --------
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return float(stats.norm.ppf(0.5 + level / 2))


def wilson(x: np.ndarray, n: np.ndarray, z: float | np.ndarray) -> Bounds:
    """Wilson score interval of a proportion.

    Parameters
    ----------
    x, n : array
        Hits and trials; n may be an effective, fractional number.
    z : float or array
        Critical value.

    Returns
    -------
    lower, upper : arrays in [0, 1]
        NaN where n is 0.

    References
    ----------
    Wilson (1927), JASA 22:209-212.

    Examples
    --------
    >>> low, high = wilson(8, 10, normal_quantile(0.95))
    >>> round(float(low), 4), round(float(high), 4)
    (0.4902, 0.9433)
    """
    x, n = np.asarray(x, float), np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = x / n
        middle = p + z**2 / (2 * n)
        half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        lower, upper = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    # exact at the ends, where rounding would leave 1e-17
    return np.where(x == 0, np.where(n > 0, 0.0, np.nan), lower), np.where(x == n, np.where(n > 0, 1.0, np.nan), upper)


def effective_n(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Size of a simple random sample that would know a clustered proportion as well.

    Parameters
    ----------
    x, n : numpy.ndarray
        Hits and trials of each task, shape (task, ...).

    Returns
    -------
    numpy.ndarray
        Shape (...). The number of trials where no task has more than one; else p(1-p) / v with v the variance of the
        ratio linearised over tasks, between 1 and the number of trials. Where all trials agree (p = 0 or 1) the
        clustering cannot be estimated and the number of tasks is taken.

    References
    ----------
    Korn and Graubard (1998), Survey Methodology 24:193-201; variance of a ratio over clusters as in Cochran (1977).

    Examples
    --------
    >>> import numpy as np
    >>> float(effective_n(np.array([4.0, 0.0, 4.0, 0.0]), np.array([4.0, 4.0, 4.0, 4.0])))
    3.0
    """
    total, tasks = n.sum(axis=0), (n > 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = x.sum(axis=0) / total
        spread = ((x - p * n) ** 2).sum(axis=0) * tasks / (tasks - 1) / total**2
        size = np.clip(p * (1 - p) / spread, 1, total)
    size = np.where((p == 0) | (p == 1), tasks, np.where(spread == 0, total, size))
    return np.where(n.max(axis=0, initial=0) <= 1, total, np.where(tasks <= 1, np.minimum(total, 1), size))


def _ordered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replicates sorted, undefined ones last, and how many are defined."""
    return np.sort(values, axis=-1), (~np.isnan(values)).sum(axis=-1)


def _quantiles(ordered: np.ndarray, defined: np.ndarray, p: np.ndarray | float) -> np.ndarray:
    """Quantiles of sorted replicates at (defined + 1) p, the definition "weibull" (Hyndman and Fan 1996, type 6)."""
    at = np.clip(np.asarray(p) * (defined + 1) - 1, 0, np.maximum(defined - 1, 0))
    at = np.where(np.isnan(at), 0, at)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    low = np.take_along_axis(ordered, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, above[..., None], axis=-1)[..., 0]
    part = at - below
    between = np.where(part == 0, low, low * (1 - part) + high * part)
    return np.where((defined == 0) | np.isnan(p), np.nan, between)


def percentile(sample: Replicates, level: float) -> Bounds:
    """Percentile interval.

    Parameters
    ----------
    sample : Replicates
    level : float

    Returns
    -------
    lower, upper : arrays of the shape of the estimate

    References
    ----------
    Efron (1981), Canadian Journal of Statistics 9:139-158.
    """
    ordered, defined = _ordered(sample.values)
    tail = (1 - level) / 2
    return _quantiles(ordered, defined, tail), _quantiles(ordered, defined, 1 - tail)


def expanded_percentile(sample: Replicates, level: float) -> Bounds:
    """Percentile interval with its tails widened to those of t, which a small sample needs.

    Parameters
    ----------
    sample : Replicates
    level : float

    Returns
    -------
    lower, upper : arrays of the shape of the estimate
        NaN in a cell of one task.

    References
    ----------
    Hesterberg (2015), The American Statistician 69:371-386, section 3.3.
    """
    n = _tasks(sample)
    tail = stats.norm.cdf(-_expansion(n, level))
    ordered, defined = _ordered(sample.values)
    return _quantiles(ordered, defined, tail), _quantiles(ordered, defined, 1 - tail)


def _expansion(n: np.ndarray, level: float) -> np.ndarray:
    """Critical value sqrt(n/(n-1)) t_(n-1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 1, np.sqrt(n / (n - 1)) * stats.t.ppf(0.5 + level / 2, np.maximum(n - 1, 1)), np.nan)


def _tasks(sample: Replicates) -> np.ndarray:
    """The number of tasks of each cell, broadcast to the shape of the estimate."""
    n = sample.n_tasks.astype(float)
    return np.broadcast_to(n.reshape(-1, *[1] * (sample.estimate.ndim - 1)), sample.estimate.shape)


def influence(sample: Replicates) -> np.ndarray:
    """Centred jackknife values within strata: how much each task moves the estimate, shape (task, cell, ...)."""
    values = sample.jackknife
    out = np.full(values.shape, np.nan)
    for stratum in np.unique(sample.strata):
        inside = values[sample.strata == stratum]
        known = ~np.isnan(inside)
        mean = np.where(known, inside, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        out[sample.strata == stratum] = mean - inside
    return out


def without_spread(sample: Replicates) -> np.ndarray:
    """Where no task moves the estimate, so that resampling says nothing of its uncertainty; shape of the estimate."""
    moved = influence(sample)
    with np.errstate(invalid="ignore"):
        return (np.abs(np.nan_to_num(moved)) <= 1e-12).all(axis=0)


def bca_levels(sample: Replicates, level: float) -> Bounds:
    """The two probabilities at which BCa reads the replicates.

    Parameters
    ----------
    sample : Replicates
    level : float

    Returns
    -------
    lower, upper : arrays of the shape of the estimate

    Notes
    -----
    Bias correction counts replicates equal to the estimate by half, as discrete statistics need.
    """
    defined = (~np.isnan(sample.values)).sum(axis=-1)
    gap = sample.values - sample.estimate[..., None]
    # equal up to the rounding of the last digit counts as equal
    close = 1e-9 * np.maximum(np.abs(sample.estimate), 1e-3)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        below = (gap < -close).sum(axis=-1) + (np.abs(gap) <= close).sum(axis=-1) / 2
        share = np.clip(below / defined, 0.5 / np.maximum(defined, 1), 1 - 0.5 / np.maximum(defined, 1))
        bias = stats.norm.ppf(share)
        moved = np.nan_to_num(influence(sample))
        acceleration = (moved**3).sum(axis=0) / (6 * (moved**2).sum(axis=0) ** 1.5)
        acceleration = np.nan_to_num(acceleration)
        z = normal_quantile(level)
        lower, upper = (
            stats.norm.cdf(bias + (bias + side) / (1 - acceleration * (bias + side))) for side in (-z, z)
        )
    return lower, upper


def bca(sample: Replicates, level: float) -> Bounds:
    """Bias-corrected and accelerated interval.

    Parameters
    ----------
    sample : Replicates
    level : float

    Returns
    -------
    lower, upper : arrays of the shape of the estimate
        NaN in a cell of one task.

    References
    ----------
    Efron (1987), JASA 82:171-185; acceleration from the jackknife, centred within strata.
    """
    low, high = bca_levels(sample, level)
    single = _tasks(sample) < 2
    ordered, defined = _ordered(sample.values)
    return tuple(np.where(single, np.nan, _quantiles(ordered, defined, p)) for p in (low, high))  # type: ignore[return-value]


def jackknife_t(sample: Replicates, level: float) -> Bounds:
    """Estimate +- t_(n-1) times the jackknife standard error over tasks.

    Parameters
    ----------
    sample : Replicates
    level : float

    Returns
    -------
    lower, upper : arrays of the shape of the estimate

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 11.5.
    """
    n = _tasks(sample)
    moved = influence(sample)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.nansum(moved**2, axis=0) * (n - 1) / n)
        half = stats.t.ppf(0.5 + level / 2, np.maximum(n - 1, 1)) * error
    half = np.where((n < 2) | np.isnan(moved).all(axis=0), np.nan, half)
    return sample.estimate - half, sample.estimate + half


def newcombe_paired(both: np.ndarray, first: np.ndarray, second: np.ndarray, neither: np.ndarray, z: float) -> Bounds:
    """Interval of a difference of paired proportions: Wilson limits joined with the correlation of the pairs.

    Parameters
    ----------
    both, first, second, neither : array
        Tasks where both hit, only the first, only the second, neither.
    z : float or array
        Critical value.

    Returns
    -------
    lower, upper : arrays in [-1, 1]

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17:2635-2650, method 10.

    Examples
    --------
    >>> low, high = newcombe_paired(20, 12, 2, 16, normal_quantile(0.95))
    >>> round(float(low), 4), round(float(high), 4)
    (0.0562, 0.3292)
    """
    a, b, c, d = (np.asarray(v, float) for v in (both, first, second, neither))
    n = a + b + c + d
    with np.errstate(divide="ignore", invalid="ignore"):
        p1, p2 = (a + b) / n, (a + c) / n
        product = (a + b) * (c + d) * (a + c) * (b + d)
        cross = a * d - b * c
        # the continuity correction applies to a positive association only
        cross = np.where(cross > n / 2, cross - n / 2, np.minimum(cross, 0))
        phi = np.where(product > 0, cross / np.sqrt(product), 0)
    return mover(p1, wilson(a + b, n, z), p2, wilson(a + c, n, z), phi)


def mover(p1: np.ndarray, bounds1: Bounds, p2: np.ndarray, bounds2: Bounds, correlation: np.ndarray | float = 0.0) -> Bounds:
    """Interval of a difference from the intervals of its two parts (method of variance estimates recovery).

    Parameters
    ----------
    p1, p2 : array
        Estimates.
    bounds1, bounds2 : tuple of array
        Their lower and upper limits.
    correlation : array or float
        Of the two estimates; 0 for different denominators.

    Returns
    -------
    lower, upper : arrays

    References
    ----------
    Zou and Donner (2008), Statistics in Medicine 27:1693-1702. With Wilson limits and correlation 0 it is Newcombe
    (1998), Statistics in Medicine 17:873-890, method 10.
    """
    (l1, u1), (l2, u2) = bounds1, bounds2
    down = (p1 - l1) ** 2 - 2 * correlation * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2
    up = (u1 - p1) ** 2 - 2 * correlation * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2
    return p1 - p2 - np.sqrt(np.maximum(down, 0)), p1 - p2 + np.sqrt(np.maximum(up, 0))


def tango(first: int, second: int, n: int, z: float) -> tuple[float, float]:
    """Score interval of a difference of paired proportions.

    Parameters
    ----------
    first, second : int
        Tasks where only the first, only the second hit.
    n : int
        Tasks.
    z : float
        Critical value.

    Returns
    -------
    lower, upper : float in [-1, 1]

    References
    ----------
    Tango (1998), Statistics in Medicine 17:891-908; the limits are roots of the score statistic.

    Examples
    --------
    >>> tuple(round(v, 4) for v in tango(12, 2, 50, normal_quantile(0.95)))
    (0.0569, 0.3404)
    """
    if n == 0:
        return np.nan, np.nan
    observed = (first - second) / n

    def score(difference: float) -> float:
        linear = (2 * n - first + second) * difference - first - second
        root = max(linear**2 + 8 * n * second * difference * (1 - difference), 0.0) ** 0.5
        q = (root - linear) / (4 * n)
        variance = n * (2 * q + difference * (1 - difference))
        gap = first - second - n * difference
        return gap / variance**0.5 if variance > 0 else np.sign(gap) * np.inf

    low = _root(lambda d: score(d) > z, -1.0, observed)
    high = _root(lambda d: score(d) > -z, observed, 1.0)
    return low, high


def _root(holds, left: float, right: float) -> float:  # type: ignore[no-untyped-def]
    """Where a condition that holds on the left stops holding, by bisection down to neighbouring numbers."""
    if not holds(left):
        return left
    if holds(right):
        return right
    while left < (middle := (left + right) / 2) < right:
        left, right = (middle, right) if holds(middle) else (left, middle)
    return left


def sup_t(values: np.ndarray, estimate: np.ndarray, error: np.ndarray, usable: np.ndarray, level: float) -> np.ndarray:
    """Critical value of a simultaneous band: quantile of the largest standardised deviation over the last axis.

    Parameters
    ----------
    values : numpy.ndarray
        Replicates, shape (cell, depth, resample).
    estimate, error : numpy.ndarray
        Estimates and their standard errors, shape (cell, depth).
    usable : numpy.ndarray of bool
        Depths that enter, shape (cell, depth).
    level : float

    Returns
    -------
    numpy.ndarray
        Shape (cell,). At least the pointwise value; where no depth is usable, Bonferroni over the depths.

    References
    ----------
    Montiel Olea and Plagborg-Moller (2019), Journal of Applied Econometrics 34:1-17.
    """
    z = normal_quantile(level)
    critical = np.empty(len(values))
    for cell, use in enumerate(usable):
        if use.any():
            scaled = np.abs(values[cell, use] - estimate[cell, use, None]) / error[cell, use, None]
            largest = np.sort(np.nan_to_num(scaled).max(axis=0))
            critical[cell] = max(float(_quantiles(largest, np.array(len(largest)), level)), z)
        else:
            depths = max(int((error[cell] >= 0).sum()), 1)
            critical[cell] = normal_quantile(1 - (1 - level) / depths)
    return critical
