"""Discrete-time hazards: binomial regression of whether the next call errs, errors clustered by task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import xlog1py, xlogy
from statsmodels.genmod import cov_struct
from statsmodels.genmod.families import Binomial, links
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.genmod.generalized_linear_model import GLM

from survexec.errors import InputError
from survexec.statistics.design import DEPTH, Estimate, Factor, Finite, embed, finite_part

LINKS: Final = {"logit": links.Logit, "cloglog": links.CLogLog}
SMOOTH_KNOTS: Final = 4
CORRELATIONS: Final = {"independence": cov_struct.Independence, "exchangeable": cov_struct.Exchangeable}


@dataclass(frozen=True)
class Exposure:
    """Person-depths: at risk at a depth, and whether it erred there; like ones of a task counted together.

    Parameters
    ----------
    task, stratum, pattern, depth : numpy.ndarray of int
    at_risk, events : numpy.ndarray
    """

    task: np.ndarray
    stratum: np.ndarray
    pattern: np.ndarray
    depth: np.ndarray
    at_risk: np.ndarray
    events: np.ndarray


def expose(time: np.ndarray, event: np.ndarray, task: np.ndarray, stratum: np.ndarray, pattern: np.ndarray) -> Exposure:
    """One person-depth for each k = 1..time of a rollout, y = 1 where it errs, counted by task, pattern and depth.

    Parameters
    ----------
    time : numpy.ndarray of int
    event : numpy.ndarray of bool
    task, stratum, pattern : numpy.ndarray of int

    Returns
    -------
    Exposure

    Examples
    --------
    >>> import numpy as np
    >>> zero = np.zeros(2, int)
    >>> seen = expose(np.array([1, 2]), np.array([True, False]), zero, zero, zero)
    >>> seen.at_risk.tolist(), seen.events.tolist()
    ([2.0, 1.0], [1.0, 0.0])
    """
    who = np.repeat(np.arange(len(time)), time)
    depth = np.arange(len(who)) - np.repeat(np.cumsum(time) - time, time) + 1
    erred = event[who] & (depth == time[who])
    keys = (np.unique(task[who], return_inverse=True)[1], stratum[who], pattern[who], depth)
    shape = tuple(int(key.max(initial=0)) + 1 for key in keys)
    unique, row = np.unique(np.ravel_multi_index(keys, shape), return_inverse=True)
    at_risk = np.bincount(row, minlength=len(unique)).astype(float)
    events = np.bincount(row, erred, minlength=len(unique))
    task, stratum, pattern, depth = np.unravel_index(unique, shape)
    return Exposure(task, stratum, pattern, depth, at_risk, events)


def depth_scale(seen: Exposure, depth: str, max_depth: int | None) -> tuple[Factor, np.ndarray, list[str]]:
    """Depth as a factor of a design.

    Parameters
    ----------
    seen : Exposure
    depth : {"factor", "smooth"}
        One level a depth that has an error, or a natural cubic spline whose coefficients are its values at the knots.
    max_depth : int or None
        Depths from here on are one level of the factor.

    Returns
    -------
    scale : Factor
        Its basis by depth 0..K.
    kept : numpy.ndarray of bool
        The person-depths at depths that have an error: the others say nothing.
    notes : list of str
    """
    depths = np.arange(int(seen.depth.max(initial=0)) + 1)
    events = np.bincount(seen.depth, seen.events, len(depths))
    everything = np.ones(len(seen.depth), bool)
    if depth == "smooth" and events.any():
        last = int(np.flatnonzero(events)[-1])
        inner = np.quantile(
            np.repeat(depths, events.astype(int)), np.arange(1, SMOOTH_KNOTS - 1) / (SMOOTH_KNOTS - 1),
            method="inverted_cdf",
        )  # fmt: skip
        knots = np.unique([1, *inner.astype(int), last])
        basis = np.ones((len(depths), 1))
        if len(knots) > 1:
            basis = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")(np.clip(depths, 1, last))
        notes = [f"depth is a natural cubic spline with knots at {', '.join(map(str, knots))}"]
        if last < depths[-1]:
            notes.append(f"no error after depth {last}: deeper calls are taken as at depth {last}")
        return Factor(DEPTH, tuple(map(str, knots)), basis), everything, notes
    cap = len(depths) if max_depth is None else max_depth
    shown = np.minimum(depths, cap)
    erring = np.bincount(shown, events) > 0
    if not erring.any():
        erring[1:] = True
    levels = np.flatnonzero(erring)
    silent = np.flatnonzero(~erring[1:]) + 1
    kept = erring[shown[seen.depth]]
    notes = []
    if len(silent):
        notes.append(
            f"no error at depth {', '.join(map(str, silent))}: the hazard there is 0 in every group, which tells "
            f"nothing between them; {int(seen.at_risk[~kept].sum())} person-depths are left out"
        )
    pooled = depths[-1] > cap
    if pooled:
        notes.append(f"depths from {cap} on are pooled")
    names = tuple(f"{k}+" if pooled and k == cap else str(k) for k in levels)
    return Factor(DEPTH, names, (shown[:, None] == levels).astype(float)), kept, notes


def _bounded(seen: Exposure, cell: np.ndarray, x: np.ndarray) -> tuple[Finite, np.ndarray]:
    """Which coefficients the counts of the cells bound, and which cells stay in the limit of the others."""
    erred = np.bincount(cell, seen.events, len(x)) > 0
    spared = np.bincount(cell, seen.at_risk - seen.events, len(x)) > 0
    part = finite_part(np.concatenate([x[erred], -x[spared]]))
    stays = erred | spared
    stays[np.flatnonzero(erred)[part.decided[: erred.sum()]]] = False
    stays[np.flatnonzero(spared)[part.decided[erred.sum() :]]] = False
    return part, stays


def fit_glm(seen: Exposure, cell: np.ndarray, x: np.ndarray, link: str, clusters: int | None) -> Estimate:
    """Binomial regression on counts.

    Parameters
    ----------
    seen : Exposure
    cell : numpy.ndarray of int
        The row of `x` that each entry of `seen` has.
    x : numpy.ndarray
        Shape (cell, coefficient).
    link : {"logit", "cloglog"}
    clusters : int or None
        How many tasks there are; None: inverse information.

    Returns
    -------
    Estimate

    Notes
    -----
    Clustered errors are A S'S A G/(G-1): S the tasks' sums of scores, A the inverse of the *expected* information, as
    in R's sandwich (vcovCL, HC0 with cadjust; Zeileis et al. 2020, JSS 95). statsmodels' own clustered errors take the
    observed information, which is the same for the logit and differs in the third digit for the cloglog.
    """
    part, stays = _bounded(seen, cell, x)
    z = x @ part.basis
    n, d = (np.bincount(cell, of, len(x)) for of in (seen.at_risk, seen.events))
    left_out = float(n[~stays].sum())
    if not stays.any() or not z.shape[1]:
        return embed(part, np.zeros(z.shape[1]), np.eye(z.shape[1]), 0.0, left_out, True)
    function = LINKS[link]()
    counts = np.column_stack([d, n - d])[stays]
    # convergence is judged by the score below; statsmodels also warns where a count is fitted perfectly
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = GLM(counts, z[stays], family=Binomial(function)).fit(tol=1e-14, maxiter=200)
    eta = z[stays] @ fitted.params
    mu, slope = np.full((2, len(x)), 0.5)
    mu[stays], slope[stays] = function.inverse(eta), function.inverse_deriv(eta)
    pull = np.where(stays, slope / (mu * (1 - mu)), 0)
    bread = np.linalg.inv(z.T @ (z * (n * pull * slope)[:, None]))
    rows = ((seen.events - seen.at_risk * mu[cell]) * pull[cell])[:, None] * z[cell]
    score = rows.sum(axis=0)
    covariance = bread
    if clusters is not None:
        scores = np.zeros((clusters, z.shape[1]))
        np.add.at(scores, seen.task, rows)
        covariance = bread @ scores.T @ scores @ bread * clusters / max(clusters - 1, 1)
    likelihood = float((xlogy(d, mu) + xlog1py(n - d, -mu))[stays].sum())
    return embed(part, fitted.params, covariance, likelihood, left_out, bool(score @ bread @ score < 1e-10))


def fit_gee(seen: Exposure, cell: np.ndarray, x: np.ndarray, link: str, correlation: str) -> Estimate:
    """Generalised estimating equations over the person-depths of a task, robust errors.

    Parameters
    ----------
    seen, cell, x, link
        As for `fit_glm`.
    correlation : {"independence", "exchangeable"}
        Working correlation within a task.

    Returns
    -------
    Estimate

    Notes
    -----
    Liang & Zeger (1986, Biometrika 73). The moments of the exchangeable correlation are divided by the number of
    residuals and of pairs, as in R's geepack; statsmodels' default subtracts the number of coefficients.
    """
    part, stays = _bounded(seen, cell, x)
    z = x @ part.basis
    inside = stays[cell]
    left_out = float(seen.at_risk[~inside].sum())
    if not inside.any() or not z.shape[1]:
        return embed(part, np.zeros(z.shape[1]), np.eye(z.shape[1]), np.nan, left_out, True)
    if correlation == "exchangeable" and np.bincount(seen.task[inside], seen.at_risk[inside]).max() < 2:
        raise InputError("correlation = 'exchangeable' needs a task with two person-depths or more")
    row = np.repeat(np.flatnonzero(inside), seen.at_risk[inside].astype(int))
    place = np.arange(len(row)) - np.searchsorted(row, row)
    erred = (place < seen.events[row]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GEE(
            erred, z[cell[row]], seen.task[row], family=Binomial(LINKS[link]()), cov_struct=CORRELATIONS[correlation]()
        )
        fitted = model.fit(ctol=1e-10, maxiter=200, ddof_scale=0)
    alpha = float(fitted.cov_struct.dep_params) if correlation == "exchangeable" else np.nan
    return embed(part, fitted.params, fitted.cov_robust, np.nan, left_out, bool(fitted.converged), correlation=alpha)
