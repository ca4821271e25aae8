"""How well each point of a curve is known: standard errors over tasks, effective sizes, pointwise limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from survexec.statistics import proportions
from survexec.statistics.estimands import Curve, before, staying
from survexec.statistics.resampling import influence
from survexec.statistics.tally import Tally

# With fewer at risk the standardised replicates are wild, and would widen the band at all other depths.
BAND_MINIMUM: Final = 5


@dataclass(frozen=True)
class Precision:
    """How well each point of a curve is known.

    Parameters
    ----------
    estimate, error, size : numpy.ndarray
        Shape (cell, depth): the curve, its standard error over tasks, and the size of a simple random sample that
        would know a share as well.
    band_size : numpy.ndarray
        The size that a band takes. In the tail of a Kaplan-Meier curve Greenwood's error is too small for a whole
        curve; Peto's size, those at risk over the curve, is taken where it is less.
    at_risk : numpy.ndarray
        Rollouts at risk.
    defined : numpy.ndarray of bool
        Where the curve exists.

    References
    ----------
    Peto et al. (1977), British Journal of Cancer 35:1-39, statistical note 6.
    """

    estimate: np.ndarray
    error: np.ndarray
    size: np.ndarray
    band_size: np.ndarray
    at_risk: np.ndarray
    defined: np.ndarray

    @property
    def usable(self) -> np.ndarray:
        """Depths that enter the critical value of a band: those with spread, and enough at risk to know it by."""
        return self.defined & (self.error > 0) & (self.at_risk >= BAND_MINIMUM)


def precision(curve: Curve, tally: Tally) -> Precision:
    """The curve in each cell with its standard error and effective size.

    Parameters
    ----------
    curve : Curve
    tally : Tally

    Returns
    -------
    Precision
    """
    total = tally.total
    estimate = curve(total)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((influence(tally, [curve]) ** 2).sum(axis=0))
        if curve.name == "na":
            # Aalen (1978), Annals of Statistics 6:701-726: a depth at which all at risk err still adds to it
            error = np.maximum(
                error, np.sqrt(np.cumsum(total["errors"] / np.maximum(total["at_risk"], 1) ** 2, axis=1))
            )
        size = estimate * (1 - estimate) / error**2
    if curve.share is not None:
        size = proportions.effective_n(*np.broadcast_arrays(*curve.share(tally.counts)))
        return Precision(estimate, error, size, size, total["at_risk"], size > 0)
    # without spread the tasks whose fate is known stand for the sample: those at risk, or all not yet cut
    net = curve.name in ("km", "na")
    known = tally["at_risk"] if net else tally["rollouts"][..., None] - before(np.cumsum(tally["censored"], axis=-1), 0)
    tasks = (known > 0).sum(axis=0)
    last = np.maximum.accumulate(np.where(tasks > 0, np.arange(tasks.shape[1]), 0), axis=1)
    tasks = np.take_along_axis(tasks, last, axis=1)
    size = np.where(error > 0, np.clip(size, 1, total["rollouts"][:, None]), tasks)
    # where nobody is at risk but some who were cut might still have left, the curve ends
    ways = ("errors",) if net else ("errors", "finished")
    defined = (total["at_risk"] > 0) | (before(staying(total, *ways), 1) <= 1e-12)
    peto = np.divide(total["at_risk"], estimate, out=size.astype(float), where=estimate > 0)
    band_size = np.clip(np.minimum(size, peto), 1, None) if curve.name == "km" else size
    return Precision(estimate, error, size, band_size, total["at_risk"], defined)


def pointwise(known: Precision, name: str, critical: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits of a curve at a critical value.

    Parameters
    ----------
    known : Precision
    name : {"wilson", "plain", "log", "loglog"}
    critical : float or numpy.ndarray of shape (cell, 1)

    Returns
    -------
    lower, upper : numpy.ndarray

    Notes
    -----
    "log" and "loglog" are the transformations of Kalbfleisch and Prentice (2002), section 1.4. Where a curve is still 0
    or 1 they do not exist, and Wilson's limits on the tasks at risk are given instead.
    """
    p, error = known.estimate, known.error
    wilson = proportions.wilson(np.nan_to_num(p) * known.size, known.size, critical)
    if name == "wilson":
        return wilson
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if name == "plain":
            return np.clip(p - critical * error, 0, 1), np.clip(p + critical * error, 0, 1)
        if name == "log":
            factor = np.exp(critical * error / p)
            bounds = p / factor, np.minimum(p * factor, 1)
        else:
            factor = np.exp(critical * error / (p * np.log(p)))
            sides = p**factor, p ** (1 / factor)
            bounds = np.minimum(*sides), np.maximum(*sides)
    edge = (p <= 0) | (p >= 1) | (error == 0)
    return np.where(edge, wilson[0], bounds[0]), np.where(edge, wilson[1], bounds[1])


def hazard_limits(known: Precision, critical: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits of a cumulative hazard on the log scale; NaN where it has no standard error."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.where(known.error > 0, np.exp(critical * known.error / known.estimate), np.nan)
    return known.estimate / factor, known.estimate * factor
