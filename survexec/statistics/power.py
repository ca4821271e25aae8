"""Power of the tests and intervals that comparisons rest on. Numbers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from survexec.statistics.proportions import jeffreys, normal_quantile, wilson

# Beyond this many tasks that tell the sides apart, power given their number and its limit in large samples agree to
# 0.001 (0.004 for McNemar's where all do, and its teeth are not smoothed): of McNemar's and of the sign-flip test.
EXACT, _SMOOTH = 10_000, 1000
_BLOCK: Final = 2_000_000
# Numbers so many standard deviations from their mean, or so unlikely, are not summed over.
_WIDE, _RARE = 5, 1e-6
# Pairs of outcomes that are compared at a time: what fits a processor's cache.
_PAIRS: Final = 8000
# More skewness than this is beyond what the delta method describes.
_LEAN: Final = 0.75
Power = Callable[[np.ndarray], np.ndarray]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def mcnemar_power(tasks: np.ndarray | int, difference: float, discordance: float, alpha: float) -> np.ndarray:
    """Power of McNemar's mid-p test, one rollout a task and side.

    Parameters
    ----------
    tasks : int or array of int
    difference : float
        Of the two shares of hits.
    discordance : float
        Share of tasks that exactly one side hits, at least the size of the difference.
    alpha : float
        The test rejects where its mid-p value is at most this.

    Returns
    -------
    numpy.ndarray
        Of the shape of `tasks`, or (1,).

    Notes
    -----
    Exact up to `EXACT` expected discordant tasks: their number is binomial, and given it so is the number that the
    first side hits; both are summed over. Beyond, the normal limit of the same two steps.

    References
    ----------
    Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13:91 (the test). Miettinen (1968),
    Biometrics 24:339-352, and Connor (1987), Biometrics 43:207-211 (its power in large samples).

    Examples
    --------
    >>> float(mcnemar_power(5, 1.0, 1.0, 0.05)[0]), float(mcnemar_power(4, 1.0, 1.0, 0.05)[0])
    (1.0, 0.0)
    >>> float(mcnemar_power(100, 0.15, 0.28, 0.05)[0].round(4))
    0.8268
    """
    share = min(max(0.5 + difference / discordance / 2, 0.0), 1.0) if discordance else 0.5
    return _over_differing(
        tasks, discordance, lambda k: _midp_power(k, share, alpha),
        lambda many: _normal_power(many, difference, discordance, alpha), EXACT,
    )  # fmt: skip


def _over_differing(tasks: np.ndarray | int, share: float, conditional: Power, limit: Power, most: int) -> np.ndarray:
    """Power where each task tells the sides apart with some chance: the mean over how many do, each with its power."""
    tasks = np.atleast_1d(np.asarray(tasks, dtype=np.int64))
    power = np.empty(tasks.shape)
    large = tasks * share > most
    power[large] = limit(tasks[large])
    if not large.all():
        few = tasks[~large]
        k = np.arange(_likely(few.min(), share)[0], _likely(few.max(), share)[1] + 1)
        given, rows = conditional(k), max(_BLOCK // len(k), 1)
        blocks = [few[start : start + rows] for start in range(0, len(few), rows)]
        power[~large] = np.concatenate([_binomial(k, block[:, None], share) @ given for block in blocks])
    return power


def _likely(tasks: int, share: float) -> tuple[int, int]:
    """Numbers of tasks that differ, outside of which less than 1e-15 lies."""
    middle, spread = tasks * share, 9 * (tasks * share * (1 - share)) ** 0.5 + 30
    return max(int(middle - spread), 0), min(int(middle + spread) + 1, int(tasks))


def _binomial(k: np.ndarray, n: np.ndarray, p: float) -> np.ndarray:
    """Binomial probabilities, 0 where k is over n."""
    rest = np.maximum(n - k, 0)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(rest + 1)
    return np.where(k <= n, np.exp(ways + special.xlogy(k, p) + special.xlog1py(rest, -p)), 0.0)


def _midp_power(k: np.ndarray, share: float, alpha: float) -> np.ndarray:
    """Chance of rejection with k discordant tasks, each hit by the first side with the given chance."""
    most = _critical(k, alpha)
    return _at_most(most, k, share) + _at_most(most, k, 1 - share)


def _critical(k: np.ndarray, alpha: float) -> np.ndarray:
    """The most hits of the rarer side, of k discordant tasks, at which the test rejects; -1 where it never does."""

    def rejects(most: np.ndarray) -> np.ndarray:
        return _at_most(most, k, 0.5) + _at_most(most - 1, k, 0.5) <= alpha

    # the mid-p value is nearly normal, so that few steps lead from there to the exact one
    most = np.maximum(np.floor((k - normal_quantile(1 - alpha) * np.sqrt(k)) / 2), -1).astype(np.int64)
    while (wrong := ~rejects(most)).any():
        most -= wrong
    while (more := (2 * most + 2 < k) & rejects(most + 1)).any():
        most += more
    return most


def _at_most(hits: np.ndarray, k: np.ndarray, share: float) -> np.ndarray:
    """Binomial distribution function, 0 below 0."""
    return np.where(hits < 0, 0.0, special.bdtr(np.maximum(hits, 0), k, share))


def _normal_power(tasks: np.ndarray, difference: float, discordance: float, alpha: float) -> np.ndarray:
    """Power of McNemar's test in large samples: the variance is the discordance if there is no difference."""
    gap, z = np.sqrt(tasks) * abs(difference), normal_quantile(1 - alpha) * discordance**0.5
    spread = max(discordance - difference**2, 0.0) ** 0.5
    if spread == 0:
        return (gap > z).astype(float)
    return special.ndtr((gap - z) / spread) + special.ndtr((-gap - z) / spread)


class Shape(NamedTuple):
    """What a difference is like over tasks: mean, standard deviation, skewness and kurtosis (3 of the normal)."""

    mean: float
    sd: float
    skewness: float = 0.0
    kurtosis: float = 3.0

    @classmethod
    def of(cls, *raw: float) -> Shape:
        """From the means of its first four powers.

        Examples
        --------
        >>> Shape.of(0.0, 0.25, 0.0, 0.25)
        Shape(mean=0.0, sd=0.5, skewness=0.0, kurtosis=4.0)
        """
        m1, m2, m3, m4 = raw
        # no spread at all is certainty, short of a division by zero
        variance = max(m2 - m1**2, 1e-12)
        skewness = (m3 - 3 * m1 * m2 + 2 * m1**3) / variance**1.5
        return cls(m1, variance**0.5, skewness, (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / variance**2)

    @property
    def raw(self) -> tuple[float, float, float, float]:
        """The means of its first four powers."""
        m, s, g, k = self
        cube, square = g * s**3, s**2
        fourth = k * s**4 + 4 * m * cube + 6 * m**2 * square + m**4
        return m, square + m**2, cube + 3 * m * square + m**3, fourth

    def averaged(self, remaining: float) -> Shape:
        """Of the mean of several trials, from what is left of the variance of one.

        Skewness and excess kurtosis go down as they do where all variance is noise, or where none is.
        """
        excess = (self.kurtosis - 3) * remaining
        return Shape(self.mean, self.sd * remaining**0.5, self.skewness * remaining**0.5, 3 + excess)


def sign_flip_power(
    tasks: np.ndarray | int, shape: Shape, alpha: float, differing: float = 1.0, step: float = 0.0
) -> np.ndarray:
    """Power of the sign-flip test of task means.

    Parameters
    ----------
    tasks : int or array of int
    shape : Shape
        Of the difference of a task.
    alpha : float
    differing : float
        Share of tasks with any difference at all; the others say nothing to the test.
    step : float
        What task means are whole multiples of, such as 1 / trials; 0 where ties between sums of them are rare.

    Returns
    -------
    numpy.ndarray
        Of the shape of `tasks`, or (1,).

    Notes
    -----
    Given how many tasks differ, the test asks for a t that follows from the kurtosis of a sum with random signs, at the
    size that so few signs can attain; on multiples of a step the exact test asks for half a step of the sum more, a
    continuity correction.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21 (the test). Box and Andersen (1955), JRSS B 17:1-34 (its
    distribution by the kurtosis).

    Examples
    --------
    >>> float(sign_flip_power(34, Shape(0.5, 1.0), 0.05)[0].round(2))
    0.81
    """

    def power(k: np.ndarray, of: Shape) -> np.ndarray:
        size, n = attainable(alpha, k), np.maximum(k, 2)
        z = -special.ndtri(np.where(size > 0, size, 0.5) / 2)
        z = z - (z**3 - 3 * z) * of.raw[3] / of.raw[1] ** 2 / (12 * n)
        limit = z * np.sqrt((n - 1) / np.maximum(n - z**2, 1e-3))
        return np.where(size > 0, _t_power(k, of, limit, step), 0.0)

    own = Shape.of(*(moment / differing for moment in shape.raw))
    return _over_differing(tasks, differing, lambda k: power(k, own), lambda many: power(many, shape), _SMOOTH)


def paired_t_power(
    tasks: np.ndarray | int, shape: Shape, alpha: float, thin: float = 0.0, percentile: bool = False
) -> np.ndarray:
    """Power of the paired t test, which is that of a t interval that leaves out zero.

    Parameters
    ----------
    tasks : int or array of int
    shape : Shape
        Of the difference of a task.
    alpha : float
    thin : float
        Of a ratio, whose denominator varies: by how much this raises its variance with one task; 1/n of it with n.
    percentile : bool
        Whether the interval is the expanded percentile of the bootstrap, whose limits lean with the skewness.

    Returns
    -------
    numpy.ndarray
        Of the shape of `tasks`, or (1,); 0 for one task, which has no spread.

    Notes
    -----
    Of normal differences exactly the noncentral t distribution, as a mean of normal ones over the estimated spread by
    Gauss-Legendre quadrature: unlike the usual series it does not underflow where the difference is many standard
    errors. The kurtosis makes the spread more or less uncertain. Under skewness g the estimated difference and its
    standard error move together: the variance of the first less t of the second is 1 - t g / sqrt(n) times that of the
    first alone (delta method). It moves both limits of the percentile interval by g (t^2 - 1) / (6 sqrt(n)) standard
    errors (Cornish and Fisher).

    Examples
    --------
    >>> float(paired_t_power(34, Shape(0.5, 1.0), 0.05)[0].round(4))
    0.8078
    """
    tasks = np.atleast_1d(np.asarray(tasks, dtype=np.int64))
    limit = special.stdtrit(np.maximum(tasks - 1, 1), 1 - alpha / 2)
    moved = shape.skewness * (limit**2 - 1) / (6 * np.sqrt(tasks)) if percentile else np.zeros(len(tasks))
    return _t_power(tasks, shape, limit, thin=thin, moved=np.clip(moved, -_LEAN, _LEAN))


def _t_power(
    tasks: np.ndarray, shape: Shape, limit: np.ndarray, more: float = 0.0, thin: float = 0.0,
    moved: np.ndarray | float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Chance that t is beyond its limit on either side, the sum over tasks by so much more; both limits are moved."""
    n, limit = np.maximum(tasks, 2).astype(float)[:, None], limit[:, None]
    df = 2 * (n - 1) / max(shape.kurtosis - 1, 0.1)
    low, high = (np.sqrt(2 / df * f(df / 2, 1e-16)) for f in (special.gammaincinv, special.gammainccinv))
    spread = low + (high - low) * (_NODES + 1) / 2
    density = (df - 1) * np.log(spread) - df * (spread**2 - 1) / 2
    weight = np.exp(density - density.max(axis=1, keepdims=True)) * _WEIGHTS
    shift, wider = np.sqrt(n / (1 + thin / n)) * shape.mean / shape.sd, limit * spread + more / (np.sqrt(n) * shape.sd)
    lean = np.clip(limit * shape.skewness / np.sqrt(n), -_LEAN, _LEAN)
    turned = np.reshape(moved, (-1, 1)) * spread
    sides = sum(special.ndtr((side * (shift + turned) - wider) / np.sqrt(1 - side * lean)) for side in (1, -1))
    return np.where(tasks > 1, (sides * weight).sum(axis=1) / weight.sum(axis=1), 0.0)


def few_power(
    rollouts: float, shares: np.ndarray, eligible: np.ndarray, alpha: float, few: tuple[float, float], known: np.ndarray
) -> tuple[float, float]:
    """Power of the intervals of a difference of two independent shares that rest on few rollouts.

    Parameters
    ----------
    rollouts : float
        Of each side, independent; need not be whole.
    shares, eligible : numpy.ndarray
        Of each side: the share, and how many of all rollouts it is of.
    alpha : float
    few : (float, float)
        Below so many eligible rollouts on a side MOVER from Wilson limits decides; else from Jeffreys limits, which are
        wanted below so many of the rarer outcome.
    known : numpy.ndarray
        Of each side: the part of the eligible rollouts that the limits count on.

    Returns
    -------
    power, chance : float
        That 0 is left out, and that a side rests on few; both are 0 where the latter is as good as impossible.

    Notes
    -----
    A sum over eligible rollouts and hits of both sides, which are binomial. Large numbers are summed over in steps of
    half a standard deviation (eligible) or a quarter (hits), which is within about 0.001 of the whole sum.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17:873-890, method 10. Zou and Donner (2008), ibid. 27:1693-1702.

    Examples
    --------
    >>> one = np.ones(2)
    >>> [round(found, 4) for found in few_power(8, np.array([0.9, 0.1]), one, 0.05, (20, 5), one)]
    [0.983, 1.0]
    """
    expected = rollouts * eligible
    rarer = expected * np.minimum(shares, 1 - shares)
    if all((mean - 4 * mean**0.5 > most).all() for mean, most in zip((expected, rarer), few, strict=True)):
        return 0.0, 0.0
    z, usual = normal_quantile(1 - alpha), 1.0
    wide: list[np.ndarray] = []
    narrow: list[np.ndarray] = []
    thin: list[np.ndarray] = []
    for at in (0, 1):
        n, x, chance, step = _outcomes(rollouts, eligible[at], shares[at])
        p, size, rare = x / n, n * known[at], np.minimum(x, n - x) < few[1]
        limits = np.stack(wilson(p * size, size, z))
        wide.append(np.stack([p, *(limits - p) ** 2, chance]))
        thin.append(n < few[0])
        # where hits are not rare both limits are nearly the same
        some = rare & ~thin[at]
        limits[:, some] = jeffreys((p * size)[some], size[some], z)
        narrow.append(np.stack([p, *(limits - p) ** 2, chance])[:, ~thin[at]])
        # a number stands for those within half a step
        usual *= (chance * ~rare) @ np.clip((n + 0.5 - few[0]) / step + 0.5, 0, 1)
    power = _left_out(wide[0][:, thin[0]], wide[1]) + _left_out(wide[0][:, ~thin[0]], wide[1][:, thin[1]])
    return power + _left_out(*narrow), 1 - float(usual)


def _left_out(first: np.ndarray, second: np.ndarray) -> float:
    """Chance that MOVER leaves out 0, from rows of each side: share, squared distances of its limits, chance."""
    total, rows = 0.0, max(_PAIRS // max(second.shape[1], 1), 1)
    b, below_b, above_b, chance_b = second
    for start in range(0, first.shape[1], rows):
        a, below_a, above_a, chance_a = first[:, start : start + rows, None]
        gap = a - b
        shown = gap * gap > np.where(gap > 0, below_a + above_b, above_a + below_b)
        total += float(np.where(shown, chance_b, 0.0).sum(axis=1) @ chance_a[:, 0])
    return total


def _outcomes(rollouts: float, eligible: float, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Eligible rollouts, from 1, and hits among them, with their chance, and the step between the former."""

    def numbers(n: np.ndarray, p: float, steps: int) -> np.ndarray:
        mean, spread = n * p, (n * p * (1 - p)) ** 0.5
        low, high = max(int((mean - _WIDE * spread).min()) - 2, 0), int((mean + _WIDE * spread).max()) + 3
        return np.arange(low, high, max(int(spread.mean() / steps), 1))

    n = numbers(np.array([rollouts]), eligible, 2)
    whole = np.array([int(rollouts), int(rollouts) + 1])
    # a number between two whole ones is either, with the chances that make it their mean
    of_n = (1 - np.abs(rollouts - whole)) @ _binomial(n, whole[:, None], eligible)
    x = numbers(n, share, 4)
    of_x = _binomial(x, n[:, None], share)
    both = of_x * (of_n / of_n.sum() / np.maximum(of_x.sum(axis=1), 1e-300))[:, None]
    row, column = np.nonzero((both > _RARE) & (n[:, None] > 0))
    return n[row], x[column], both[row, column], int(n[1] - n[0])


def attainable(alpha: float, tasks: np.ndarray | int) -> np.ndarray:
    """The size that a sign-flip test can have at most: its p-values are multiples of 2 / 2^n.

    Examples
    --------
    >>> attainable(0.05, [5, 6, 60]).tolist()
    [0.0, 0.03125, 0.05]
    """
    steps = 2.0 ** np.minimum(np.atleast_1d(tasks) - 1, 50)
    # beyond that many steps a multiple of one is the number itself
    return np.where(np.atleast_1d(tasks) > 50, alpha, np.floor(alpha * steps * (1 + 1e-12)) / steps)


def smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number, to ten digits, at which a condition holds that holds at the upper end.

    Examples
    --------
    >>> round(smallest(lambda x: x * x >= 2, 0.0, 2.0), 9)
    1.414213562
    """
    while high - low > 1e-10 * max(abs(low), abs(high)):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
