"""Replicates -> intervals and simultaneous bands. Arrays in, arrays out; no tables, no drawing."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import stats

from survexec.statistics.proportions import Bounds, normal_quantile
from survexec.statistics.resampling import Replicates

# Below this many on either side of a depth, replicates say little about its spread.
BAND_MINIMUM: Final = 5


def _ordered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replicates sorted, undefined ones last, and how many are defined."""
    ordered = np.sort(values, axis=-1)
    defined = np.full(ordered.shape[:-1], ordered.shape[-1])
    some = np.isnan(ordered[..., -1])
    defined[some] = (~np.isnan(ordered[some])).sum(axis=-1)
    return ordered, defined


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
    return np.broadcast_to(n[:, None], sample.estimate.shape)


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
        lower, upper = (stats.norm.cdf(bias + (bias + side) / (1 - acceleration * (bias + side))) for side in (-z, z))
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
