"""Counts -> numbers. Each estimand is a ratio of counts, written once for points, replicates and jackknife alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from survexec.statistics.tally import Counts


def ratio(numerator: np.ndarray, denominator: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Quotient of counts; 0/0 is NaN.

    Parameters
    ----------
    numerator, denominator : numpy.ndarray
    out : numpy.ndarray, optional
        Where to put it.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import numpy as np
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(numerator, denominator, out=out)


@dataclass(frozen=True)
class Metric:
    """One number of a cell: a ratio of two sums over its rollouts.

    Parameters
    ----------
    name, label : str
        For code and for people.
    numerator, denominator : callable
        Counts -> array. The denominator is what is printed beside the number.
    proportion : bool
        True where the numerator counts a part of the denominator.
    conditional : bool
        True where the denominator is itself an outcome (errors, successes), so that it can be small or zero.
    undefined : str
        Why the number does not exist where the denominator is zero.
    meaning : str
        The estimand in words.
    """

    name: str
    label: str
    numerator: Callable[[Counts], np.ndarray]
    denominator: Callable[[Counts], np.ndarray]
    proportion: bool
    conditional: bool
    undefined: str
    meaning: str

    def __call__(self, counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        """The number at these counts, NaN where the denominator is 0."""
        return ratio(self.numerator(counts), self.denominator(counts), out)

    def reason(self, counts: Counts, cell: int) -> str:
        """Why the number does not exist in a cell whose denominator is 0."""
        hidden = {"rr": counts.errors, "clean_success": counts["clean"], "success_after_error": counts["rollouts"]}
        if self.name in hidden and hidden[self.name][cell] > 0 and counts["labelled"][cell] == 0:
            return _UNLABELLED
        return self.undefined


def _feature(name: str) -> Callable[[Counts], np.ndarray]:
    return lambda counts: counts[name]


_ROLLOUTS = _feature("rollouts")
_NONE = "there are no rollouts"
_UNLABELLED = "no rollout has a recorded success"

# Definitions: DESIGN section 1 of the paper "Prefix Executability" (arXiv 2610.40444).
METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "ter", "TER", _feature("clean"), _ROLLOUTS, True, False, _NONE,
            "share of rollouts in which every call could be executed",
        ),
        Metric(
            "mean_fed", "Mean FED", _feature("fed"), _ROLLOUTS, False, False, _NONE,
            "mean depth of the first call that could not be executed, T + 1 where there is none",
        ),
        Metric(
            "auc_pec", "AUC-PEC", _feature("area"), _ROLLOUTS, False, False, _NONE,
            "mean share of a rollout's calls before its first error, 1 where it made no call",
        ),
        Metric(
            "rr", "RR", lambda c: c.recovered, lambda c: c.errors_labelled, True, True, "no rollout erred",
            "share of successes among rollouts that erred",
        ),
        Metric(
            "success", "Success", _feature("success"), _feature("labelled"), True, False, _UNLABELLED,
            "share of successes",
        ),
        Metric(
            "clean_success", "Success if clean (s)", _feature("clean_success"), _feature("clean_labelled"), True, True,
            "every rollout erred", "share of successes among rollouts that never erred",
        ),
        Metric(
            "success_after_error", "Success after error", lambda c: c.recovered, _feature("success"), True, True,
            "no rollout succeeded", "share of successes that followed an error",
        ),
        Metric(
            "mean_length", "Mean length (T)", _feature("length"), _ROLLOUTS, False, False, _NONE,
            "mean number of calls",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """One number a depth k = 0..K: a ratio of counts by depth.

    Parameters
    ----------
    name, label : str
    numerator, denominator : callable
        Counts -> array (..., K+1).
    meaning : str
    """

    name: str
    label: str
    numerator: Callable[[Counts], np.ndarray]
    denominator: Callable[[Counts], np.ndarray]
    meaning: str

    def __call__(self, counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        """The number at these counts, NaN where the denominator is 0."""
        return ratio(self.numerator(counts), self.denominator(counts), out)


def _of_all(counts: Counts) -> np.ndarray:
    return np.broadcast_to(counts["rollouts"][..., None], counts["alive"].shape)


def _before(at_depth: np.ndarray) -> np.ndarray:
    """How many left at a depth before k, from how many left at k."""
    return np.cumsum(at_depth, axis=-1) - at_depth


CURVES: Final = {
    curve.name: curve
    for curve in (
        Curve("pec", "PEC(k)", _feature("alive"), _of_all, "share of all rollouts with FED > k"),
        Curve(
            "pec_elig", "PEC_elig(k)", _feature("alive"), _feature("reached"),
            "share with FED > k among rollouts with at least k calls",
        ),
    )
}  # fmt: skip

# The state stack: after k calls every rollout is in one of these, so that the shares add to one.
STATES: Final = {
    state.name: state
    for state in (
        Curve("errored", "Errored", lambda c: np.cumsum(c["errors"], axis=-1), _of_all, "first error at or before k"),
        Curve(
            "finished", "Finished clean", lambda c: _before(c["finished"]), _of_all, "stopped by itself before call k"
        ),
        Curve(
            "truncated", "Cut by a limit", lambda c: _before(c["censored"]), _of_all, "cut before call k, no error yet"
        ),
        Curve("running", "Running clean", _feature("alive"), _of_all, "made k calls, all executable"),
    )
}
