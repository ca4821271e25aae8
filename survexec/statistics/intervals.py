"""Replicates -> intervals and simultaneous bands. Arrays in, arrays out; no tables, no drawing."""

from __future__ import annotations

import numpy as np
from scipy import special

from survexec.statistics.proportions import Bounds, normal_quantile
from survexec.statistics.resampling import Replicates


def quantiles(values: np.ndarray, *levels: np.ndarray | float) -> tuple[np.ndarray, ...]:
    """Quantiles of replicates over their last axis, undefined ones left out.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (cell, ..., resample).
    *levels : float or numpy.ndarray of shape (cell, ...)
        Probabilities; NaN gives NaN.

    Returns
    -------
    tuple of numpy.ndarray
        Shape (cell, ...) for each level.

    Notes
    -----
    At (n + 1) p of the n defined replicates, linear between neighbours: the definition "weibull", type 6 of Hyndman
    and Fan (1996), The American Statistician 50:361-365.

    Examples
    --------
    >>> import numpy as np
    >>> quantiles(np.array([[3.0, np.nan, 1.0, 2.0]]), 0.25, 0.5)
    (array([1.]), array([2.]))
    """
    shape = values.shape[:-1]
    found = tuple(np.empty(shape) for _ in levels)
    wanted = [np.broadcast_to(np.asarray(level, float), shape) for level in levels]
    # cell by cell in one buffer: fresh memory for all replicates at once would cost as much as sorting them
    ordered: np.ndarray = np.empty(values.shape[1:])
    for cell in range(len(values)):
        np.copyto(ordered, values[cell])
        ordered.sort(axis=-1)
        defined = np.full(ordered.shape[:-1], ordered.shape[-1])
        some = np.isnan(ordered[..., -1])
        defined[some] = (~np.isnan(ordered[some])).sum(axis=-1)
        for out, level in zip(found, wanted, strict=True):
            out[cell] = _read(ordered, defined, level[cell])
    return found


def _read(ordered: np.ndarray, defined: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Quantiles of sorted replicates, undefined ones last."""
    last = np.maximum(defined - 1, 0)
    at = np.nan_to_num(np.clip(p * (defined + 1) - 1, 0, last))
    below = np.floor(at).astype(np.int64)
    low = np.take_along_axis(ordered, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, np.minimum(below + 1, last)[..., None], axis=-1)[..., 0]
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
    tail = (1 - level) / 2
    lower, upper = quantiles(sample.values, tail, 1 - tail)
    return lower, upper


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
    tail = special.ndtr(-expanded_quantile(n, level))
    lower, upper = quantiles(sample.values, tail, 1 - tail)
    return lower, upper


def expanded_quantile(n: np.ndarray | float, level: float) -> np.ndarray:
    """Two-sided critical value sqrt(n/(n-1)) t_(n-1), which a small number of tasks needs in place of the normal one.

    Parameters
    ----------
    n : numpy.ndarray or float
        Tasks; fewer than two give NaN.
    level : float

    Returns
    -------
    numpy.ndarray

    References
    ----------
    Hesterberg (2015), The American Statistician 69:371-386, section 3.3.

    Examples
    --------
    >>> round(expanded_quantile(50, 0.95).item(), 3)
    2.03
    """
    n = np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 1, np.sqrt(n / (n - 1)) * special.stdtrit(np.maximum(n - 1, 1), 0.5 + level / 2), np.nan)


def expanded_tail(n: int, tail: np.ndarray | float) -> np.ndarray:
    """The nominal tail at which an expanded percentile reads its replicates at this one: `expanded_quantile` undone.

    Parameters
    ----------
    n : int
        Tasks, two or more.
    tail : numpy.ndarray or float
        Share of the replicates beyond the end of the interval.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> round(1 - 2 * expanded_tail(50, special.ndtr(-expanded_quantile(50, 0.95))).item(), 12)
    0.95
    """
    return np.asarray(special.stdtr(n - 1, special.ndtri(tail) * np.sqrt((n - 1) / n)))


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
        bias = special.ndtri(share)
        moved = np.nan_to_num(influence(sample))
        acceleration = (moved**3).sum(axis=0) / (6 * (moved**2).sum(axis=0) ** 1.5)
        acceleration = np.nan_to_num(acceleration)
        z = normal_quantile(level)
        lower, upper = (special.ndtr(bias + (bias + side) / (1 - acceleration * (bias + side))) for side in (-z, z))
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
    lower, upper = quantiles(sample.values, low, high)
    return np.where(single, np.nan, lower), np.where(single, np.nan, upper)


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
    half = special.stdtrit(np.maximum(_tasks(sample) - 1, 1), 0.5 + level / 2) * jackknife_error(sample)
    return sample.estimate - half, sample.estimate + half


def jackknife_error(sample: Replicates) -> np.ndarray:
    """Jackknife standard error over tasks.

    Parameters
    ----------
    sample : Replicates

    Returns
    -------
    numpy.ndarray
        Of the shape of the estimate; NaN in a cell of one task.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 11.5.
    """
    n = _tasks(sample)
    moved = influence(sample)
    error = np.sqrt(np.nansum(moved**2, axis=0) * (n - 1) / n)
    return np.where((n < 2) | np.isnan(moved).all(axis=0), np.nan, error)


def sup_t(
    values: np.ndarray, estimate: np.ndarray, error: np.ndarray, usable: np.ndarray, n_tasks: np.ndarray, level: float
) -> np.ndarray:
    """Critical value of a simultaneous band: quantile of the largest standardised deviation over the last axis.

    Parameters
    ----------
    values : numpy.ndarray
        Replicates, shape (cell, depth, resample).
    estimate, error : numpy.ndarray
        Estimates and their standard errors, shape (cell, depth).
    usable : numpy.ndarray of bool
        Depths that enter, shape (cell, depth).
    n_tasks : numpy.ndarray
        Tasks of each cell, shape (cell,): as with the expanded percentile, a small sample widens the band.
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
            largest = np.nan_to_num(scaled).max(axis=0)
            critical[cell] = max(quantiles(largest[None], level)[0].item(), z)
        else:
            depths = max(int((error[cell] >= 0).sum()), 1)
            critical[cell] = normal_quantile(1 - (1 - level) / depths)
    return critical * np.nan_to_num(expanded_quantile(n_tasks, level) / z, nan=1.0)
