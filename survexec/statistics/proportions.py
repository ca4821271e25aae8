"""Counts -> intervals of proportions and of their differences, in closed form."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from scipy import special

Array = np.ndarray | float
Bounds = tuple[np.ndarray, np.ndarray]


def normal_quantile(level: float) -> float:
    """Two-sided critical value of the normal distribution.

    Examples
    --------
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return float(special.ndtri(0.5 + level / 2))


def wilson(x: Array, n: Array, z: Array) -> Bounds:
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


def jeffreys(x: Array, n: Array, z: Array) -> Bounds:
    """Equal-tailed Jeffreys interval of a proportion, which knows rare hits better than Wilson's.

    Parameters
    ----------
    x, n : array
        Hits and trials; n may be an effective, fractional number.
    z : float or array
        Critical value.

    Returns
    -------
    lower, upper : arrays in [0, 1]
        Quantiles of Beta(x + 1/2, n - x + 1/2), but 0 and 1 at the ends, and never beyond the estimate, as they would
        be at low levels; NaN where n is 0.

    References
    ----------
    Brown, Cai and DasGupta (2001), Statistical Science 16:101-133.

    Examples
    --------
    >>> low, high = jeffreys(1, 30, normal_quantile(0.95))
    >>> round(float(low), 4), round(float(high), 4)
    (0.0036, 0.1454)
    """
    x, n = np.asarray(x, float), np.asarray(n, float)
    tail = special.ndtr(-np.asarray(z, float))
    with np.errstate(invalid="ignore"):
        p = x / n
    a, b = x + 0.5, n - x + 0.5
    lower, upper = np.minimum(special.betaincinv(a, b, tail), p), np.maximum(special.betaincinv(a, b, 1 - tail), p)
    return np.where(x == 0, p, lower), np.where(x == n, p, upper)


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


def newcombe_paired(both: Array, first: Array, second: Array, neither: Array, z: float) -> Bounds:
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


def mover(p1: Array, bounds1: Bounds, p2: Array, bounds2: Bounds, correlation: Array = 0.0) -> Bounds:
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


def mover_product(
    p1: float, bounds1: tuple[Array, Array], p2: float, bounds2: tuple[Array, Array]
) -> tuple[float, float]:
    """Interval of a product of two independent quantities of any sign from the intervals of its two parts.

    Parameters
    ----------
    p1, p2 : float
        Estimates.
    bounds1, bounds2 : tuple of float
        Their lower and upper limits.

    Returns
    -------
    lower, upper : float
        NaN where one of the numbers is. A factor that is known leaves the other's interval, scaled; beside a factor
        whose interval is above 0, the product's interval leaves out 0 where that of the other one does.

    Notes
    -----
    Of all pairs of limits at the critical values z cos t and z sin t, the pair of the least product and that of the
    largest. The distance of a limit at z cos t is recovered as cos t of that at z, which for a sum is MOVER.

    References
    ----------
    Newcombe (2011), Communications in Statistics: Theory and Methods 40:3154-3180.

    Examples
    --------
    >>> [round(limit, 4) for limit in mover_product(0.2, (0.1, 0.35), 0.5, (0.3, 0.6))]
    [0.0454, 0.1822]
    """
    ends1, ends2 = ([float(end) for end in bounds] for bounds in (bounds1, bounds2))
    if np.isnan([p1, *ends1, p2, *ends2]).any():
        return np.nan, np.nan
    found: list[float] = [p1 * p2]
    for end1, end2 in itertools.product(ends1, ends2):
        d1, d2 = end1 - p1, end2 - p2
        # where the slope of (p1 + d1 sin t) (p2 + d2 cos t) is 0, in tan(t / 2)
        turns = np.roots([d1 * (d2 - p2), -2 * p1 * d2, -6 * d1 * d2, -2 * p1 * d2, d1 * (p2 + d2)])
        half = np.append(np.clip(turns.real, 0, 1), [0, 1])
        sine, cosine = 2 * half / (1 + half**2), (1 - half**2) / (1 + half**2)
        found += ((p1 + d1 * sine) * (p2 + d2 * cosine)).tolist()
    return min(found), max(found)


def mover_ratio(
    p1: float, bounds1: tuple[float, float], p2: float, bounds2: tuple[float, float], correlation: float = 0.0
) -> tuple[float, float, float]:
    """Ratio of two non-negative quantities with its interval from the intervals of its two parts.

    Parameters
    ----------
    p1, p2 : float
        Estimates, >= 0.
    bounds1, bounds2 : tuple of float
        Their lower and upper limits.
    correlation : float
        Of the two estimates.

    Returns
    -------
    ratio, lower, upper : float
        The ratio is infinite, and so is its upper limit, where p2 is 0; all three are NaN where both are 0.

    Notes
    -----
    A limit is the ratio r at which MOVER's interval of p1 - r p2 just reaches 0.

    References
    ----------
    Donner and Zou (2012), Statistical Methods in Medical Research 21:347-359. Fagerland, Lydersen and Laake (2014),
    Statistics in Medicine 33:2850-2875 recommend it with Wilson limits for paired proportions.

    Examples
    --------
    >>> z = normal_quantile(0.95)
    >>> one, two = wilson(65, 161, z), wilson(75, 161, z)
    >>> [round(v, 3) for v in mover_ratio(65 / 161, one, 75 / 161, two, 0.72)]
    [0.867, 0.758, 0.989]
    """
    if np.isnan(p1 + p2) or p1 == p2 == 0:
        return np.nan, np.nan, np.nan
    (l1, u1), (l2, u2) = bounds1, bounds2

    def root(a: float, b: float, c: float, plus: bool) -> float:
        """A root of a r^2 - 2 b r + c, in the form that does not cancel."""
        spread = max(b * b - a * c, 0.0) ** 0.5
        if plus:
            return (b + spread) / a if a > 0 else np.inf
        return c / (b + spread) if c > 0 else 0.0

    lower = root(u2 * (2 * p2 - u2), p1 * p2 - correlation * (p1 - l1) * (u2 - p2), l1 * (2 * p1 - l1), plus=False)
    upper = root(l2 * (2 * p2 - l2), p1 * p2 - correlation * (u1 - p1) * (p2 - l2), u1 * (2 * p1 - u1), plus=True)
    return (p1 / p2 if p2 > 0 else np.inf), float(lower), float(upper)


def mover_odds(
    p1: float, bounds1: tuple[float, float], p2: float, bounds2: tuple[float, float], correlation: float = 0.0
) -> tuple[float, float, float]:
    """Ratio of the odds of two proportions with its interval, by `mover_ratio` of the odds.

    Parameters
    ----------
    p1, p2 : float
        Proportions.
    bounds1, bounds2 : tuple of float
        Their lower and upper limits.
    correlation : float
        Of the two estimates.

    Returns
    -------
    ratio, lower, upper : float
        NaN where the ratio is 0/0 or one proportion is 0 and the other 1.

    Examples
    --------
    >>> z = normal_quantile(0.95)
    >>> mover_odds(0.5, wilson(10, 20, z), 0.5, wilson(10, 20, z))[0]
    1.0
    """
    if max(p1, p2) == 1:
        # the odds against, the other way round
        turned1, turned2 = ((1 - p, (1 - bounds[1], 1 - bounds[0])) for p, bounds in ((p1, bounds1), (p2, bounds2)))
        (p1, bounds1), (p2, bounds2) = turned2, turned1
    if np.isnan(p1 + p2) or max(p1, p2) == 1:
        return np.nan, np.nan, np.nan
    (o1, l1, u1), (o2, l2, u2) = ((v / (1 - v) for v in (p, *bounds)) for p, bounds in ((p1, bounds1), (p2, bounds2)))
    return mover_ratio(o1, (l1, u1), o2, (l2, u2), correlation)


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
    (0.0611, 0.3447)
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
        if variance > 0:
            return gap / variance**0.5
        return np.copysign(np.inf, gap) if gap else 0.0

    low = _root(lambda d: score(d) > z, -1.0, observed)
    high = _root(lambda d: score(d) > -z, observed, 1.0)
    return low, high


def _root(holds: Callable[[float], bool], left: float, right: float) -> float:
    """Where a condition that holds on the left stops holding, by bisection down to neighbouring numbers."""
    if not holds(left):
        return left
    if holds(right):
        return right
    while left < (middle := (left + right) / 2) < right:
        left, right = (middle, right) if holds(middle) else (left, middle)
    return left
