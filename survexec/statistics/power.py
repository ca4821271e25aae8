"""Power of the tests that comparisons rest on, and its inverses: tasks needed, smallest difference. Numbers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from survexec.statistics.proportions import normal_quantile

# Beyond this many tasks that tell the sides apart, power given their number and its limit in large samples agree to
# 0.001 (0.004 for McNemar's where all do, and its teeth are not smoothed): of McNemar's and of the sign-flip test.
EXACT, _SMOOTH = 10_000, 1000
# No plan asks for more tasks than this.
MOST: Final = 10_000_000
_BLOCK: Final = 2_000_000
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


def paired_t_power(tasks: np.ndarray | int, shape: Shape, alpha: float, thin: float = 0.0) -> np.ndarray:
    """Power of the paired t test, which is that of a t interval that leaves out zero.

    Parameters
    ----------
    tasks : int or array of int
    shape : Shape
        Of the difference of a task.
    alpha : float
    thin : float
        Of a ratio, whose denominator varies: by how much this raises its variance with one task; 1/n of it with n.

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
    first alone (delta method).

    Examples
    --------
    >>> float(paired_t_power(34, Shape(0.5, 1.0), 0.05)[0].round(4))
    0.8078
    """
    tasks = np.atleast_1d(np.asarray(tasks, dtype=np.int64))
    return _t_power(tasks, shape, special.stdtrit(np.maximum(tasks - 1, 1), 1 - alpha / 2), thin=thin)


def _t_power(tasks: np.ndarray, shape: Shape, limit: np.ndarray, more: float = 0.0, thin: float = 0.0) -> np.ndarray:
    """Chance that t is beyond its limit on either side, the sum over tasks by so much more."""
    n, limit = np.maximum(tasks, 2).astype(float)[:, None], limit[:, None]
    df = 2 * (n - 1) / max(shape.kurtosis - 1, 0.1)
    low, high = (np.sqrt(2 / df * f(df / 2, 1e-16)) for f in (special.gammaincinv, special.gammainccinv))
    spread = low + (high - low) * (_NODES + 1) / 2
    density = (df - 1) * np.log(spread) - df * (spread**2 - 1) / 2
    weight = np.exp(density - density.max(axis=1, keepdims=True)) * _WEIGHTS
    shift, wider = np.sqrt(n / (1 + thin / n)) * shape.mean / shape.sd, limit * spread + more / (np.sqrt(n) * shape.sd)
    lean = np.clip(limit * shape.skewness / np.sqrt(n), -_LEAN, _LEAN)
    sides = sum(special.ndtr((side * shift - wider) / np.sqrt(1 - side * lean)) for side in (1, -1))
    return np.where(tasks > 1, (sides * weight).sum(axis=1) / weight.sum(axis=1), 0.0)


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


def tasks_needed(power: Power, target: float) -> float:
    """The smallest number of tasks from which on the power stays at least at the target.

    Parameters
    ----------
    power : callable
        Array of numbers of tasks -> array of power.
    target : float

    Returns
    -------
    float
        A whole number; NaN where `MOST` tasks are too few.

    Notes
    -----
    The power of a test on counts rises like a saw, so that more tasks can have less power. A number is taken only where
    no larger one, within several teeth, falls below the target again.

    Examples
    --------
    >>> tasks_needed(lambda n: paired_t_power(n, Shape(0.5, 1.0), 0.05), 0.8)
    34.0
    """
    enough = 1
    while power(np.array([enough]))[0] < target:
        enough *= 2
        if enough > MOST:
            return np.nan
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if power(np.array([middle]))[0] >= target else (middle, enough)
    while True:
        ahead = np.arange(enough, enough + int(4 * enough**0.5) + 20)
        below = ahead[power(ahead) < target]
        if not len(below):
            return float(enough)
        enough = int(below[-1]) + 1


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
