"""Proportional hazards over depth: Cox's partial likelihood with ties, stratified or clustered by task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from survexec.statistics.design import Estimate, Finite, embed, finite_part

TIES: Final = ("efron", "breslow", "exact")
Value = tuple[float, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class RiskRows:
    """Who is at risk of the next error, like ones counted together; sorted by risk set.

    Parameters
    ----------
    risk : numpy.ndarray
        The risk set of a row: a depth within a stratum.
    pattern, task : numpy.ndarray
    at_risk, events : numpy.ndarray
        How many (or their total weight), and how many of them err there.
    x : numpy.ndarray
        Shape (row, coefficient).
    """

    risk: np.ndarray
    pattern: np.ndarray
    task: np.ndarray
    at_risk: np.ndarray
    events: np.ndarray
    x: np.ndarray

    @classmethod
    def of(
        cls, risk: np.ndarray, pattern: np.ndarray, task: np.ndarray, n: np.ndarray, d: np.ndarray, x: np.ndarray
    ) -> RiskRows:
        """Rows of the risk sets that have an event; `x` by pattern.

        Parameters
        ----------
        risk, pattern, task, n, d : numpy.ndarray
            One value a row, in any order.
        x : numpy.ndarray
            Shape (pattern, coefficient).

        Returns
        -------
        RiskRows
        """
        used = np.isin(risk, risk[d > 0]) & (n > 0)
        order = np.flatnonzero(used)[np.argsort(risk[used], kind="stable")]
        _, dense = np.unique(risk[order], return_inverse=True)
        return cls(dense, pattern[order], task[order], n[order], d[order], x[pattern[order]])

    @cached_property
    def starts(self) -> np.ndarray:
        """The first row of each risk set."""
        return np.flatnonzero(np.diff(self.risk, prepend=-1))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Values of rows added within each risk set."""
        return np.add.reduceat(values, self.starts, axis=0)

    def where(self, rows: np.ndarray) -> RiskRows:
        """Some of the rows."""
        risk, pattern, task = self.risk[rows], self.pattern[rows], self.task[rows]
        return RiskRows(risk, pattern, task, self.at_risk[rows], self.events[rows], self.x[rows])


@dataclass(frozen=True)
class _Tied:
    """One entry an event: its risk set, the share of the tied events already gone, and sums over who is left."""

    theta: np.ndarray
    at: np.ndarray
    gone: np.ndarray
    total: np.ndarray
    mean: np.ndarray


def _tied(rows: RiskRows, beta: np.ndarray, ties: str) -> _Tied:
    """Totals and means of the risk set that each of the tied events sees: Efron thins the tied ones, Breslow not."""
    theta = np.exp(rows.x @ beta)
    events = rows.sums(rows.events).astype(int)
    at = np.repeat(np.arange(len(events)), events)
    first = np.cumsum(events) - events
    gone = (np.arange(len(at)) - first[at]) / events[at] * (ties == "efron")
    n, d = rows.at_risk * theta, rows.events * theta
    total = rows.sums(n)[at] - gone * rows.sums(d)[at]
    first_moment = rows.sums(n[:, None] * rows.x)[at] - gone[:, None] * rows.sums(d[:, None] * rows.x)[at]
    return _Tied(theta, at, gone, total, first_moment / total[:, None])


def partial_likelihood(rows: RiskRows, beta: np.ndarray, ties: str) -> Value:
    """Log partial likelihood, its score and its information.

    Parameters
    ----------
    rows : RiskRows
    beta : numpy.ndarray
    ties : {"efron", "breslow", "exact"}

    Returns
    -------
    log_likelihood : float
    score, information : numpy.ndarray

    Notes
    -----
    Efron (1977, JASA 72), Breslow (1974, Biometrics 30); "exact" is Cox's (1972) conditional logistic likelihood for
    discrete time, whose coefficient is a log odds ratio.
    """
    if ties == "exact":
        return _exact(rows, beta)
    seen = _tied(rows, beta, ties)
    squares = rows.x[:, :, None] * rows.x[:, None, :] * seen.theta[:, None, None]
    second = rows.sums(rows.at_risk[:, None, None] * squares)[seen.at]
    second -= seen.gone[:, None, None] * rows.sums(rows.events[:, None, None] * squares)[seen.at]
    spread = second / seen.total[:, None, None] - seen.mean[:, :, None] * seen.mean[:, None, :]
    value = rows.events @ (rows.x @ beta) - np.log(seen.total).sum()
    return float(value), rows.events @ rows.x - seen.mean.sum(axis=0), spread.sum(axis=0)


def _exact(rows: RiskRows, beta: np.ndarray) -> Value:
    """The conditional logistic likelihood, from the distribution of who errs given how many do."""
    value, score, information = 0.0, rows.events @ rows.x, np.zeros((len(beta), len(beta)))
    for start, stop in zip(rows.starts, np.append(rows.starts[1:], len(rows.risk)), strict=True):
        inside = slice(start, stop)
        n, d, x = rows.at_risk[inside], rows.events[inside], rows.x[inside]
        norm, mean, spread = _given_total(n.astype(int), int(d.sum()), x, x @ beta)
        value += float(d @ (x @ beta)) - norm
        score = score - mean
        information += spread
    return value, score, information


def _given_total(n: np.ndarray, total: int, x: np.ndarray, eta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log of the sum over all choices of `total` of those at risk; mean and covariance of the chosen ones' sum of x."""
    if total == n.sum():
        return float(n @ eta), n @ x, np.zeros((x.shape[1], x.shape[1]))
    # any tilt gives the same conditional law; this one keeps the total near its mean, far from underflow
    tilt = np.log(total / (n.sum() - total)) - np.log(n @ np.exp(eta) / n.sum())
    chance = 1 / (1 + np.exp(-eta - tilt))
    lag = np.subtract.outer(np.arange(total + 1), np.arange(total + 1))
    count = np.eye(total + 1)[0]
    first = np.zeros((total + 1, x.shape[1]))
    second = np.zeros((total + 1, x.shape[1], x.shape[1]))
    for size, p, at in zip(n, chance, x, strict=True):
        law = binom.pmf(lag, size, p)
        once, twice = lag * law, lag**2 * law
        cross = np.tensordot(once, first, 1)[:, :, None] * at
        second = (
            np.tensordot(law, second, 1) + cross + cross.transpose(0, 2, 1)
            + (twice @ count)[:, None, None] * np.outer(at, at)
        )  # fmt: skip
        first = law @ first + (once @ count)[:, None] * at
        count = law @ count
    mean = first[total] / count[total]
    norm = np.log(count[total]) + n @ np.log1p(np.exp(eta + tilt)) - tilt * total
    return float(norm), mean, second[total] / count[total] - np.outer(mean, mean)


def score_residuals(rows: RiskRows, beta: np.ndarray, ties: str) -> np.ndarray:
    """What each row adds to the score once the estimated hazard is taken into account; they add to the score.

    Parameters
    ----------
    rows : RiskRows
    beta : numpy.ndarray
    ties : {"efron", "breslow"}

    Returns
    -------
    numpy.ndarray
        Shape (row, coefficient).

    Notes
    -----
    Lin & Wei (1989, JASA 84). With Efron ties the hazard is spread over the tied events: the l-th of d sees each tied
    one with weight 1 - l/d (Therneau & Grambsch 2000, Modeling Survival Data).
    """
    seen = _tied(rows, beta, ties)
    size = len(rows.starts)

    def by_risk(values: np.ndarray) -> np.ndarray:
        out = np.zeros((size, values.shape[1]))
        np.add.at(out, seen.at, values)
        return out[rows.risk]

    hazard = np.column_stack([np.ones(len(seen.at)), seen.mean]) / seen.total[:, None]
    others, tied = by_risk(hazard), by_risk(hazard * (1 - seen.gone)[:, None])
    events = by_risk(np.ones((len(seen.at), 1)))
    observed = rows.events[:, None] * (rows.x - by_risk(seen.mean) / events)
    spared = ((rows.at_risk - rows.events) * seen.theta)[:, None] * (rows.x * others[:, :1] - others[:, 1:])
    erred = (rows.events * seen.theta)[:, None] * (rows.x * tied[:, :1] - tied[:, 1:])
    return observed - spared - erred


def maximise(value: Callable[[np.ndarray], Value], size: int) -> tuple[np.ndarray, Value, bool]:
    """Newton's method with halved steps, from 0.

    Parameters
    ----------
    value : callable
        Log-likelihood, score and information at a point; concave.
    size : int

    Returns
    -------
    beta : numpy.ndarray
    at : tuple
        The value there.
    converged : bool
    """
    beta = np.zeros(size)
    at = value(beta)
    for _ in range(50):
        step = np.linalg.solve(at[2], at[1])
        small = bool((np.abs(step) <= 1e-10 * (1 + np.abs(beta))).all())
        after = value(beta + step)
        for _ in range(50):
            if small or after[0] >= at[0] - 1e-9 * abs(at[0]):
                break
            step = step / 2
            after = value(beta + step)
        beta, at = beta + step, after
        if small:
            return beta, at, True
    return beta, at, False


def separate(rows: RiskRows, ties: str) -> tuple[Finite, np.ndarray]:
    """Which coefficients the risk sets bound, and the rows that stay in the limit of the others.

    Parameters
    ----------
    rows : RiskRows
    ties : {"efron", "breslow", "exact"}

    Returns
    -------
    part : Finite
    stays : numpy.ndarray of bool
    """
    cells = pd.DataFrame({"risk": rows.risk, "pattern": rows.pattern, "n": rows.at_risk, "d": rows.events})
    cells = cells.groupby(["risk", "pattern"], as_index=False).sum()
    others = cells[cells["n"] > cells["d"]] if ties == "exact" else cells
    pairs = cells[cells["d"] > 0].merge(others, on="risk")[["pattern_x", "pattern_y"]].drop_duplicates()
    x = np.zeros((rows.pattern.max(initial=-1) + 1, rows.x.shape[1]))
    x[rows.pattern] = rows.x
    part = finite_part(x[pairs["pattern_x"].to_numpy(int)] - x[pairs["pattern_y"].to_numpy(int)])
    along = rows.x @ part.direction
    compared = rows.at_risk > rows.events if ties == "exact" else np.ones(len(rows.risk), bool)
    top = np.full(rows.risk.max(initial=-1) + 1, -np.inf)
    np.maximum.at(top, rows.risk[compared], along[compared])
    # a decided pair differs by 1 at least along the direction
    below = along < top[rows.risk] - 0.5
    above = (along > top[rows.risk] + 0.5) if ties == "exact" else np.zeros(len(along), bool)
    return part, ~below & ~above


def fit_cox(rows: RiskRows, ties: str, clusters: int | None) -> Estimate:
    """Maximum partial likelihood.

    Parameters
    ----------
    rows : RiskRows
    ties : {"efron", "breslow", "exact"}
    clusters : int or None
        How many tasks there are, for errors from the tasks' sums of score residuals; None: inverse information.

    Returns
    -------
    Estimate

    Notes
    -----
    Errors clustered by task are Lin and Wei's sandwich without a small-sample factor, as in R's survival.
    """
    part, stays = separate(rows, ties)
    inner, beta, at, null, converged = maximum(rows, part, stays, ties)
    covariance = np.linalg.inv(at[2])
    if clusters is not None:
        scores = np.zeros((clusters, len(beta)))
        np.add.at(scores, inner.task, score_residuals(inner, beta, ties))
        covariance = covariance @ scores.T @ scores @ covariance
    left_out = float(rows.at_risk[~stays].sum()) if part.direction.any() else 0.0
    return embed(part, beta, covariance, at[0], left_out, converged, null)


def maximum(
    rows: RiskRows, part: Finite, stays: np.ndarray, ties: str
) -> tuple[RiskRows, np.ndarray, Value, float, bool]:
    """The maximum along the bounded directions, over the rows that stay.

    Parameters
    ----------
    rows : RiskRows
    part, stays
        What `separate` found.
    ties : {"efron", "breslow", "exact"}

    Returns
    -------
    inner : RiskRows
        The rows that stay, their x along the bounded directions.
    beta : numpy.ndarray
    at : tuple
        The value there.
    null : float
        Log-likelihood of all rows at 0.
    converged : bool
    """
    kept = rows.where(stays)
    _, risk = np.unique(kept.risk, return_inverse=True)
    inner = replace(kept, risk=risk, x=kept.x @ part.basis)
    if not len(risk):
        empty = np.zeros(part.basis.shape[1])
        return inner, empty, (0.0, empty, np.eye(len(empty))), 0.0, True
    beta, at, converged = maximise(lambda b: partial_likelihood(inner, b, ties), part.basis.shape[1])
    null = partial_likelihood(rows, np.zeros(rows.x.shape[1]), ties)[0]
    return inner, beta, at, null, converged
