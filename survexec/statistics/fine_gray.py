"""Fine and Gray's proportional subdistribution hazards: what moves the cumulative incidence of an error."""

from __future__ import annotations

import numpy as np

from survexec.statistics.cox import RiskRows, maximum, separate
from survexec.statistics.design import Estimate, embed


def weigh(time: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """How much each rollout is at risk of the subdistribution at each depth.

    Parameters
    ----------
    time, state : numpy.ndarray of int
        As for `fit_fine_gray`.

    Returns
    -------
    weight : numpy.ndarray
        Shape (rollout, depth 0..K).
    censoring : tuple of numpy.ndarray
        How many are censored at each depth, and of how many.

    Examples
    --------
    >>> import numpy as np
    >>> weigh(np.array([1, 1, 2]), np.array([2, 0, 1]))[0].round(3).tolist()
    [[1.0, 1.0, 0.667], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depths = np.arange(time.max(initial=0) + 1)
    censored = np.bincount(time[state == 0], minlength=len(depths))
    under = (time[:, None] >= depths).sum(axis=0)
    before = np.append(1.0, np.cumprod(1 - censored / under)[:-1])
    ended = np.where((state == 2)[:, None], before / before[time][:, None], 0)
    return np.where(time[:, None] >= depths, 1.0, ended), (censored, under)


def risk_rows(weight: np.ndarray, time: np.ndarray, state: np.ndarray, pattern: np.ndarray, x: np.ndarray) -> RiskRows:
    """The weights added by depth and pattern.

    Parameters
    ----------
    weight : numpy.ndarray
        From `weigh`.
    time, state, pattern, x : numpy.ndarray
        As for `fit_fine_gray`.

    Returns
    -------
    RiskRows
    """
    n, d = np.zeros((2, len(x), weight.shape[1]))
    np.add.at(n, pattern, weight)
    np.add.at(d, (pattern[state == 1], time[state == 1]), 1)
    which, depth = (axis.ravel() for axis in np.indices(n.shape))
    return RiskRows.of(depth, which, np.zeros_like(which), n.ravel(), d.ravel(), x)


def fit_fine_gray(
    time: np.ndarray, state: np.ndarray, pattern: np.ndarray, x: np.ndarray, cluster: np.ndarray
) -> Estimate:
    """Fine and Gray's proportional subdistribution hazards, censoring weighted by its Kaplan-Meier estimate.

    Parameters
    ----------
    time : numpy.ndarray of int
        Depth at which a rollout erred or ended, 0 where it made no call.
    state : numpy.ndarray of int
        0 censored, 1 error, 2 another end.
    pattern : numpy.ndarray
    x : numpy.ndarray
        Shape (pattern, coefficient).
    cluster : numpy.ndarray
        Codes of what varies independently: tasks, or rollouts.

    Returns
    -------
    Estimate

    Notes
    -----
    Fine & Gray (1999, JASA 94): a rollout that ended otherwise stays at risk with weight G(t-)/G(T-), G the
    Kaplan-Meier estimate of not being censored; Breslow's ties; the sandwich has their term for the estimated G.
    Its parts are added within clusters first (Zhou et al. 2012, Biostatistics 13), without a small-sample factor.
    """
    weight, censoring = weigh(time, state)
    rows = risk_rows(weight, time, state, pattern, x)
    part, stays = separate(rows, "breslow")
    _, beta, at_beta, null, converged = maximum(rows, part, stays, "breslow")
    kept = np.zeros((len(x), weight.shape[1]))
    event_depths = np.unique(time[state == 1])
    kept[rows.pattern[stays], event_depths[rows.risk[stays]]] = 1
    influence = _influence(time, state, (x @ part.basis)[pattern], weight * kept[pattern], beta, censoring)
    scores = np.zeros((cluster.max() + 1, len(beta)))
    np.add.at(scores, cluster, influence)
    bread = np.linalg.inv(at_beta[2])
    left_out = float(rows.at_risk[~stays].sum())
    return embed(part, beta, bread @ scores.T @ scores @ bread, at_beta[0], left_out, converged, null)


def _influence(
    time: np.ndarray, state: np.ndarray, x: np.ndarray, weight: np.ndarray, beta: np.ndarray,
    censoring: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:  # fmt: skip
    """What each rollout adds to the score, with what its censoring adds through the estimate of G."""
    censored, under = censoring
    depths = np.arange(weight.shape[1])
    risk = weight * np.exp(x @ beta)[:, None]
    total, erred = risk.sum(axis=0), np.bincount(time[state == 1], minlength=len(depths))
    known = total > 0
    mean = np.divide(risk.T @ x, total[:, None], out=np.zeros((len(depths), x.shape[1])), where=known[:, None])
    excess = -risk * np.divide(erred, total, out=np.zeros(len(depths)), where=known)
    excess[state == 1, time[state == 1]] += 1
    own = x * excess.sum(axis=1)[:, None] - excess @ mean
    # q(u): what those who ended otherwise before u still add from u on, where their weight leans on G
    otherwise = state == 2
    added = np.zeros((len(depths), len(depths), x.shape[1]))
    for column in range(x.shape[1]):
        terms = excess[otherwise] * (x[otherwise, column, None] - mean[:, column])
        np.add.at(added[:, :, column], time[otherwise], terms)
    until = np.cumsum(added, axis=0) - added
    q = -np.stack([until[u, u:].sum(axis=0) for u in depths])
    share = q / under[:, None]
    drift = np.cumsum(share * (censored / under)[:, None], axis=0)
    return own + np.where((state == 0)[:, None], share[time], 0) - drift[time]
