"""A difference of two published cells whose pairing by task was not published: what its error can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from survexec.statistics.estimands import ratio


@dataclass(frozen=True)
class Side:
    """What is known of one side: a number in every rollout, by its sum and its sum of squares.

    Parameters
    ----------
    n : int
    total, squares : tuple of float
        Least and greatest.
    binary : bool
        Whether the number is 0 or 1, so that its sum of squares is its sum.
    """

    n: int
    total: tuple[float, float]
    squares: tuple[float, float]
    binary: bool

    @property
    def mean(self) -> tuple[float, float]:
        """Least and greatest mean."""
        return self.total[0] / self.n, self.total[1] / self.n

    @property
    def deviation(self) -> tuple[float, float]:
        """Least and greatest standard deviation, with n - 1; of means and squares taken apart, hence outer bounds."""
        low, high = self.mean
        n = self.n
        if self.binary:
            spread = [p * (1 - p) for p in (low, high)]
            most = 0.25 if low < 0.5 < high else max(spread)
            least = min(spread)
        else:
            most = self.squares[1] / n - low**2
            least = self.squares[0] / n - high**2
        scale = float(ratio(np.array(float(n)), np.array(n - 1.0)))
        return float(np.sqrt(max(least, 0.0) * scale)), float(np.sqrt(max(most, 0.0) * scale))


def unpaired(a: Side, b: Side, level: float) -> dict[str, float]:
    """The difference of two means with bounds of its standard error over every pairing of their tasks.

    Parameters
    ----------
    a, b : Side
    level : float

    Returns
    -------
    dict of str to float
        ``difference_lower, difference_upper``: what rounding leaves open. ``se_lower, se_upper``: over pairings and
        cohorts; ``se_independent``: as if the sides were independent. ``lower, upper``: an interval that holds whatever
        the pairing; ``lower_independent, upper_independent``.

    Notes
    -----
    Of 0s and 1s over the same n tasks, the number of tasks on which the sides differ is between |x - y| and
    min(x + y, 2n - x - y) (Frechet), which gives the error exactly. Of other numbers the error of a difference is
    between the difference and the sum of the two errors, whatever their correlation.

    Examples
    --------
    >>> a, b = (Side(100, (x, x), (x, x), True) for x in (60, 50))
    >>> found = unpaired(a, b, 0.95)
    >>> [round(found[name], 4) for name in ("se_lower", "se_independent", "se_upper")]
    [0.0302, 0.0704, 0.0948]
    """
    t = float(special.stdtrit(min(a.n, b.n) - 1, (1 + level) / 2)) if min(a.n, b.n) > 1 else np.nan
    low, high = a.mean[0] - b.mean[1], a.mean[1] - b.mean[0]
    error_a, error_b = ([deviation / np.sqrt(side.n) for deviation in side.deviation] for side in (a, b))
    independent = float(np.hypot(error_a[1], error_b[1]))
    if a.binary and b.binary and a.n == b.n:
        found = _matched(a, b, t)
    else:
        least = max(error_a[0] - error_b[1], error_b[0] - error_a[1], 0.0)
        most = error_a[1] + error_b[1]
        found = {"se_lower": least, "se_upper": most, "lower": low - t * most, "upper": high + t * most}
    return {
        "difference_lower": low, "difference_upper": high, "se_lower": found["se_lower"],
        "se_independent": independent, "se_upper": found["se_upper"], "lower": found["lower"],
        "upper": found["upper"], "lower_independent": low - t * independent,
        "upper_independent": high + t * independent,
    }  # fmt: skip


def _matched(a: Side, b: Side, t: float) -> dict[str, float]:
    """Of 0s and 1s on the same tasks: over every pair of counts and every overlap."""
    n = a.n
    x, y = (np.arange(side.total[0], side.total[1] + 1) for side in (a, b))
    x, y = (grid.ravel() for grid in np.meshgrid(x, y))
    difference = (x - y) / n
    fewest, most = np.abs(x - y), np.minimum(x + y, 2 * n - x - y)
    low, high = (np.sqrt(ratio(np.maximum(d / n - difference**2, 0.0), np.array(n - 1.0))) for d in (fewest, most))
    return {
        "se_lower": float(low.min()), "se_upper": float(high.max()),
        "lower": max(float((difference - t * high).min()), -1.0),
        "upper": min(float((difference + t * high).max()), 1.0),
    }  # fmt: skip
