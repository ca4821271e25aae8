"""Effects of several groups -> one: fixed effect, random effects, and the test that all are the same. On arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from survexec.statistics.proportions import normal_quantile

POOLED: Final = ("fixed effect", "random effects (DL)", "random effects (HK)")
# Groups whose effects are closer to linear dependence than this have no covariance that can be inverted.
_SINGULAR: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Pooled:
    """Differences pooled over groups; everything is NaN, with the reason, where that cannot be done.

    Parameters
    ----------
    groups : int
    estimate, standard_error : numpy.ndarray
        Fixed effect, random effects (DerSimonian-Laird), random effects (Hartung-Knapp).
    weight_fixed, weight_random : numpy.ndarray
        Of each group; they add to 1.
    q, tau2 : float
        Cochran's Q, and the variance between groups.
    reason : str
        Why nothing could be pooled.
    """

    groups: int
    estimate: np.ndarray
    standard_error: np.ndarray
    weight_fixed: np.ndarray
    weight_random: np.ndarray
    q: float
    tau2: float
    reason: str = ""

    @property
    def df(self) -> float:
        """Degrees of freedom of Q."""
        return np.nan if self.reason else float(self.groups - 1)

    @property
    def p_value(self) -> float:
        """Of the interaction test: that all groups have the same difference."""
        return float(special.chdtrc(self.df, self.q))

    @property
    def i2(self) -> float:
        """Share of the spread between groups that is not chance."""
        return float(np.maximum(self.q - self.df, 0) / self.q) if self.q != 0 else 0.0

    def halves(self, level: float) -> np.ndarray:
        """Half the width of the interval of each estimate: normal, normal, t with groups - 1."""
        z, t = normal_quantile(level), special.stdtrit(self.df, 0.5 + level / 2)
        return np.array([z, z, t]) * self.standard_error

    @property
    def p_zero(self) -> np.ndarray:
        """Two-sided p-value of each estimate: that it is 0."""
        z = -np.abs(self.estimate) / self.standard_error
        return 2 * np.array([*special.ndtr(z[:2]), special.stdtr(self.df, z[2])])


def pool(effect: np.ndarray, covariance: np.ndarray) -> Pooled:
    """Pool the differences of several groups by generalised least squares.

    Parameters
    ----------
    effect : numpy.ndarray
        Shape (group,).
    covariance : numpy.ndarray
        Of the effects, shape (group, group); diagonal where groups are independent, which is inverse variance.

    Returns
    -------
    Pooled
        Hartung-Knapp has no standard error where all effects are equal.

    Notes
    -----
    With precision matrix W and P = W - W11'W / 1'W1, Q = y'Py and tau2 = (Q - df) / trace(P), 0 where that is negative;
    with independent groups these are Cochran's and DerSimonian and Laird's.

    References
    ----------
    Cochran (1954), Biometrics 10:101-129. DerSimonian and Laird (1986), Controlled Clinical Trials 7:177-188. Hartung
    and Knapp (2001), Statistics in Medicine 20:3875-3889. Higgins and Thompson (2002), Statistics in Medicine
    21:1539-1558 (I2). Gleser and Olkin (2009), in Cooper, Hedges and Valentine, The Handbook of Research Synthesis and
    Meta-Analysis, chapter 19 (groups that share units).

    Examples
    --------
    >>> import numpy as np
    >>> found = pool(np.array([0.0, 0.3]), np.diag([0.01, 0.01]))
    >>> round(float(found.estimate[0]), 3), round(found.q, 3), round(found.i2, 3), round(found.tau2, 3)
    (0.15, 4.5, 0.778, 0.035)
    """
    k, nothing = len(effect), np.full(3, np.nan)
    reason = _unpoolable(covariance)
    if reason:
        return Pooled(k, nothing, nothing, np.full(k, np.nan), np.full(k, np.nan), np.nan, np.nan, reason)
    precision = _inverse(covariance)
    fixed, estimate, variance, q = _weighed(effect, precision)
    trace = np.trace(precision) - (precision.sum(axis=0) ** 2).sum() * variance
    tau2 = max(0.0, float((q - (k - 1)) / trace))
    random, center, spread, rest = _weighed(effect, _inverse(covariance + tau2 * np.eye(k)))
    scale = rest / (k - 1)
    knapp = np.sqrt(spread * scale) if scale > 1e-12 else np.nan
    errors = np.array([np.sqrt(variance), np.sqrt(spread), knapp])
    return Pooled(k, np.array([estimate, center, center]), errors, fixed, random, q, tau2)


def _unpoolable(covariance: np.ndarray) -> str:
    """Why effects with this covariance cannot be pooled; empty where they can."""
    if len(covariance) < 2:
        return f"{('no', 'one')[len(covariance)]} group can be weighed; pooling and the interaction test need two"
    error = np.sqrt(np.diag(covariance))
    if np.linalg.eigvalsh(covariance / np.outer(error, error))[0] < _SINGULAR:
        return "the groups share tasks and move together on them, so that they cannot be weighed against each other"
    return ""


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """The inverse by way of the correlations, which is exact where they are 0."""
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    return np.linalg.inv(covariance / scale) / scale


def _weighed(effect: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, float, float, float]:
    """Weights, weighted mean, its variance, and the weighted squares about it."""
    pull = precision.sum(axis=0)
    weight = pull / pull.sum()
    mean = float(weight @ effect)
    return weight, mean, float(1 / pull.sum()), float((effect - mean) @ precision @ (effect - mean))
