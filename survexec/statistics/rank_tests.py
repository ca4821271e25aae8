"""Tests on times to an event, equal to R at ties: log-rank, paired Prentice-Wilcoxon and Gray's test, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy import special

from survexec.errors import InputError

# Differences and variances below this are rounding.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False, slots=True)
class SurvivalTested:
    """A survival test's outcome.

    Parameters
    ----------
    test : str
    statistic : float
        Chi-square; z for the paired Prentice-Wilcoxon test.
    df : float
        Rank of the variance; NaN for z.
    p_value : float
        Two-sided.
    groups : tuple
        Names of the groups in ascending order.
    observed, expected, variance : numpy.ndarray or None
        Weighted events of each group, those expected under the null, and the variance of their difference; None for
        the paired Prentice-Wilcoxon test.
    reason : str
        Why the statistic is NaN or has no degree of freedom; empty otherwise.
    """

    test: str
    statistic: float
    df: float
    p_value: float
    groups: tuple[Any, ...]
    observed: np.ndarray | None = None
    expected: np.ndarray | None = None
    variance: np.ndarray | None = None
    reason: str = ""


def log_rank(
    durations: np.ndarray,
    events: np.ndarray,
    groups: np.ndarray,
    strata: np.ndarray | None = None,
    rho: float = 0.0,
) -> SurvivalTested:
    """K-sample log-rank test with Fleming-Harrington weights, stratified where strata are given.

    Parameters
    ----------
    durations : numpy.ndarray
        min(FED, T).
    events : numpy.ndarray of bool
        Whether the rollout erred.
    groups : numpy.ndarray
    strata : numpy.ndarray, optional
        Observed, expected and variance are summed over them.
    rho : float
        Events at t weigh S(t-)^rho, S the Kaplan-Meier estimate of all groups of the stratum together.

    Returns
    -------
    SurvivalTested

    Notes
    -----
    The variance is hypergeometric, so ties are exact. Equal to ``survdiff`` of R's survival.

    References
    ----------
    Harrington and Fleming (1982), Biometrika 69:553-566.

    Examples
    --------
    >>> import numpy as np
    >>> got = log_rank(np.array([1, 1, 2, 3]), np.array([1, 1, 0, 0]) == 1, np.array(["a", "a", "b", "b"]))
    >>> got.observed.tolist(), got.expected.tolist(), round(got.statistic, 10)
    ([2.0, 0.0], [1.0, 1.0], 3.0)
    """
    names, at_risk, (errors,) = _tabulate(durations, groups, strata, [events])
    n, d = at_risk.sum(axis=2), errors.sum(axis=2)
    weight = _before(np.cumprod(_ratio(n - d, n, 1.0), axis=1), 1.0) ** rho
    observed = np.einsum("st,stg->g", weight, errors)
    expected = np.einsum("st,stg->g", weight * _ratio(d, n), at_risk)
    spread = weight**2 * _ratio(d * (n - d), n * (n - 1))
    variance = np.diag(np.einsum("st,stg->g", spread, at_risk))
    variance = variance - np.einsum("st,stg,sth->gh", _ratio(spread, n), at_risk, at_risk)
    return _outcome("log-rank", names, observed, expected, variance)


def paired_prentice_wilcoxon(
    durations: np.ndarray, events: np.ndarray, groups: np.ndarray, tasks: np.ndarray
) -> SurvivalTested:
    """Paired Prentice-Wilcoxon test: whether two methods err at different depths on the same tasks.

    Parameters
    ----------
    durations : numpy.ndarray
        min(FED, T).
    events : numpy.ndarray of bool
        Whether the rollout erred.
    groups : numpy.ndarray
        Two distinct values.
    tasks : numpy.ndarray
        What pairs rollouts; tasks of one group only are left out.

    Returns
    -------
    SurvivalTested
        z is positive where the first group errs later.

    Raises
    ------
    InputError
        If there are more than two groups.

    Notes
    -----
    Every rollout gets the Prentice score of its depth in the pooled sample: 1 - 2 S(t) for an error at t, 1 - S(t)
    for leaving without one, S the product of (n - d + 1) / (n + 1) over the depths up to t. A task's difference is
    that of the mean scores of either group's trials (means, so that unequal numbers of trials do not shift it); z is
    the sum of the differences over the root of the sum of their squares.

    References
    ----------
    O'Brien and Fleming (1987), Biometrics 43:169-180.

    Examples
    --------
    >>> import numpy as np
    >>> depth, erred = np.array([1, 1, 2, 3, 3, 3]), np.array([1, 1, 1, 0, 0, 0]) == 1
    >>> got = paired_prentice_wilcoxon(depth, erred, np.repeat(["a", "b"], 3), np.tile([1, 2, 3], 2))
    >>> round(got.statistic, 3), round(got.p_value, 3)
    (-1.706, 0.088)
    """
    names, group = np.unique(groups, return_inverse=True)
    if len(names) > 2:
        raise InputError(f"a paired test is of two groups, not of {len(names)}: {', '.join(map(str, names))}")
    task = _codes(tasks)
    cell, size = task * 2 + group.ravel(), 2 * (task.max(initial=-1) + 1)
    trials = np.bincount(cell, minlength=size).reshape(-1, 2)
    both = trials.min(axis=1) > 0
    inside = both[task]
    depth, erred = _codes(durations[inside]), np.asarray(events, bool)[inside]
    n, d = np.bincount(depth)[::-1].cumsum()[::-1], np.bincount(depth, erred)
    staying = np.cumprod((n - d + 1) / (n + 1))[depth]
    scores = np.bincount(cell[inside], 1 - np.where(erred, 2, 1) * staying, minlength=size).reshape(-1, 2)
    means = scores[both] / trials[both]
    difference = means[:, 0] - means[:, 1]
    difference[np.abs(difference) < _ROUNDING] = 0
    if not erred.any():
        z, reason = np.nan, "no events"
    elif not difference.any():
        z, reason = 0.0, "no event tells the sides apart"
    else:
        z, reason = float(difference.sum() / np.sqrt((difference**2).sum())), ""
    p = float(2 * special.ndtr(-abs(z)))
    return SurvivalTested("paired Prentice-Wilcoxon", z, np.nan, p, tuple(names.tolist()), reason=reason)


def gray(
    durations: np.ndarray,
    causes: np.ndarray,
    groups: np.ndarray,
    cause: int = 1,
    rho: float = 0.0,
    strata: np.ndarray | None = None,
) -> SurvivalTested:
    """Gray's k-sample test that all groups have the same cumulative incidence of a cause.

    Parameters
    ----------
    durations : numpy.ndarray
        min(FED, T); 0 for a rollout that finished without a call.
    causes : numpy.ndarray of int
        What ended the rollout there, 0 for censoring.
    groups : numpy.ndarray
    cause : int
        The cause tested; every other one but 0 competes with it.
    rho : float
        Events at t weigh (1 - F(t-))^rho, F the pooled cumulative incidence.
    strata : numpy.ndarray, optional
        Observed, expected and variance are summed over them.

    Returns
    -------
    SurvivalTested

    Notes
    -----
    Equal to ``cuminc`` of R's cmprsk, ties included. Where the variance is singular R gives up (-1, p = 1); here the
    test is of the rank that is left. A negative variance, or a pooled incidence past 1 with several groups still at
    risk, gives NaN and the reason. Without competing causes observed and expected are those of the log-rank test, and
    the variance too as long as the groups' curves agree.

    References
    ----------
    Gray (1988), Annals of Statistics 16:1141-1154.

    Examples
    --------
    >>> import numpy as np
    >>> got = gray(np.array([1, 1, 2, 3]), np.array([1, 1, 2, 2]), np.array(["a", "a", "b", "b"]))
    >>> got.observed.tolist(), got.expected.tolist(), round(got.statistic, 10)
    ([2.0, 0.0], [1.0, 1.0], 3.0)
    """
    causes = np.asarray(causes)
    hits = [causes == cause, (causes != cause) & (causes != 0)]
    names, at_risk, (events, others) = _tabulate(durations, groups, strata, hits)
    staying = np.cumprod(_ratio(at_risk - events - others, at_risk, 1.0), axis=1)
    before = _before(staying, 1.0)
    incidence = _before(np.cumsum(before * _ratio(events, at_risk), axis=1), 0.0)
    # had no other end taken anyone out: n / S stands for the whole group, n (1 - F) / S for those still at risk
    whole = _ratio(at_risk, before)
    still = whole * (1 - incidence)
    d = events.sum(axis=2)
    rate = _ratio(d, whole.sum(axis=2))
    pooled = np.cumsum(rate, axis=1)
    # the pooled estimate can pass 1 after one group ran out; that matters only where two others are still at risk
    left = np.maximum(1 - _before(pooled, 0.0), 0.0)
    weight = left**rho
    observed = np.einsum("st,stg->g", weight, events)
    expected = np.einsum("st,stg->g", weight * _ratio(d, still.sum(axis=2)), still)
    share = _ratio(whole, whole.sum(axis=2)[..., None])
    now = (weight[..., None] * whole)[..., None] * (np.eye(len(names)) - share[..., None, :])
    hazard = np.divide(rate, left, out=np.full(rate.shape, np.nan), where=left > _ROUNDING)[..., None, None]
    step = np.where((now == 0) | (d == 0)[..., None, None], 0.0, now * hazard)
    later = step.sum(axis=1, keepdims=True) - np.cumsum(step, axis=1)
    variance = _gray_variance(at_risk, events, others, staying, pooled, now, later)
    return _outcome("Gray", names, observed, expected, variance)


def _gray_variance(
    at_risk: np.ndarray,
    events: np.ndarray,
    others: np.ndarray,
    staying: np.ndarray,
    pooled: np.ndarray,
    now: np.ndarray,
    later: np.ndarray,
) -> np.ndarray:
    """Variance of Gray's scores: each group's events, of either kind, move a score now and through all that is later.

    `now` and `later` have the shape (stratum, depth, score, group whose events move it).
    """
    before = _before(staying, 1.0)
    d, size = events.sum(axis=2, keepdims=True), _ratio(at_risk, before).sum(axis=2, keepdims=True)
    surplus = _ratio(1 - pooled[..., None], staying)
    own = now + (1 - surplus)[..., None, :] * later
    ties = 1 - _ratio(np.maximum(d - 1, 0), size * before - 1)
    by_events = ties * before * _ratio(d, size) * _ratio(1.0, at_risk)
    competing = surplus[..., None, :] * later
    ties = 1 - _ratio(np.maximum(others - 1, 0), at_risk - 1)
    by_others = ties * others * _ratio(before, at_risk) ** 2
    terms = np.einsum("stik,stjk,stk->ij", own, own, by_events)
    return terms + np.einsum("stik,stjk,stk->ij", competing, competing, by_others)


def _tabulate(
    durations: np.ndarray, groups: np.ndarray, strata: np.ndarray | None, hits: Sequence[np.ndarray]
) -> tuple[tuple[Any, ...], np.ndarray, list[np.ndarray]]:
    """Names of the groups, and numbers at risk and hit by (stratum, distinct duration, group)."""
    names = np.unique(groups)
    codes = (_codes(np.zeros(len(durations)) if strata is None else strata), _codes(durations), _codes(groups))
    shape = tuple(int(code.max(initial=-1)) + 1 for code in codes)
    flat = np.ravel_multi_index(codes, shape)
    counts = [
        np.bincount(flat, None if hit is None else np.asarray(hit, float), minlength=int(np.prod(shape))).reshape(shape)
        for hit in (None, *hits)
    ]
    at_risk = counts[0][:, ::-1].cumsum(axis=1)[:, ::-1].astype(float)
    return tuple(names.tolist()), at_risk, counts[1:]


def _codes(values: np.ndarray) -> np.ndarray:
    """Place of each value among the distinct ones in ascending order."""
    return np.unique(values, return_inverse=True)[1].ravel()


def _ratio(top: Any, bottom: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """Quotient, and a stated value where nobody is there."""
    out = np.full(np.broadcast_shapes(np.shape(top), bottom.shape), otherwise)
    return np.divide(top, bottom, out=out, where=bottom > 0)


def _before(curve: np.ndarray, start: float) -> np.ndarray:
    """A step curve just before each depth (axis 1)."""
    return np.concatenate([np.full_like(curve[:, :1], start), curve[:, :-1]], axis=1)


def _outcome(
    test: str, names: tuple[Any, ...], observed: np.ndarray, expected: np.ndarray, variance: np.ndarray
) -> SurvivalTested:
    """Chi-square of observed less expected on the rank of the variance."""
    reason = ""
    if not observed.any():
        reason = "no events"
    elif np.isnan(variance).any():
        reason = "the pooled cumulative incidence passes 1 while several groups are at risk"
    sizes, directions = np.linalg.eigh(np.nan_to_num(variance))
    rounding = max(_ROUNDING, 1e-10 * float(np.abs(sizes).max(initial=0)))
    if not reason and sizes[0] < -rounding:
        reason = "the estimated variance is negative: too few rollouts with too many ties"
    if reason:
        return SurvivalTested(test, np.nan, np.nan, np.nan, names, observed, expected, variance, reason)
    keep = sizes > rounding
    statistic = float((((observed - expected) @ directions)[keep] ** 2 / sizes[keep]).sum())
    df = int(keep.sum())
    p = float(special.chdtrc(df, statistic)) if df else 1.0
    reason = "" if df else "no event tells the sides apart"
    return SurvivalTested(test, statistic, df, p, names, observed, expected, variance, reason)
