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
    """One number a depth k = 0..K, a smooth function of counts by depth.

    Parameters
    ----------
    name, label : str
    function : callable
        Counts -> array (..., K+1); also at complex counts, from which `influence` has its derivatives.
    meaning : str
    share : callable or None
        Counts -> (numerator, denominator) where the curve is a plain proportion of rollouts.
    """

    name: str
    label: str
    function: Callable[[Counts], np.ndarray]
    meaning: str
    share: Callable[[Counts], tuple[np.ndarray, np.ndarray]] | None = None

    def __call__(self, counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        """The curve at these counts."""
        if self.share is not None:
            return ratio(*self.share(counts), out)
        if out is None:
            return self.function(counts)
        np.copyto(out, self.function(counts))
        return out


def _share(numerator: str, denominator: str | None = None) -> dict[str, Callable]:
    """Numerator and denominator by feature; all rollouts are the denominator by default."""

    def share(c: Counts) -> tuple[np.ndarray, np.ndarray]:
        return c[numerator], c["rollouts"][..., None] if denominator is None else c[denominator]

    return {"function": lambda c: ratio(*share(c)), "share": share}


def _rate(counts: Counts, feature: str) -> np.ndarray:
    """Share of those at risk who leave in one way; 0 where nobody is at risk, so that curves carry on."""
    # nobody at risk means nobody leaves: dividing by 1 there gives the 0 without a mask
    return counts.once(f"rate of {feature}", lambda c: c[feature] / np.maximum(c["at_risk"], 1))


def staying(counts: Counts, *features: str) -> np.ndarray:
    """Chance not to leave up to k: the product over depths of the share of those at risk that stays.

    Parameters
    ----------
    counts : Counts
    *features : str
        Ways of leaving, such as "errors" and "finished"; all others are censoring.

    Returns
    -------
    numpy.ndarray
        Shape (..., K+1).
    """
    return counts.once(
        f"staying from {features}", lambda c: np.cumprod(1 - sum(_rate(c, name) for name in features), axis=-1)
    )


def _incidence(counts: Counts, feature: str) -> np.ndarray:
    """Aalen-Johansen: chance to be still running before k times the share that leaves for this cause at k, summed."""
    running = counts.once("running before", lambda c: before(staying(c, "errors", "finished"), 1))
    return np.cumsum(running * _rate(counts, feature), axis=-1)


def before(curve: np.ndarray, start: int) -> np.ndarray:
    """A curve at k - 1, with its value before depth 0."""
    return np.concatenate([np.full_like(curve[..., :1], start), curve[..., :-1]], axis=-1)


def incidence(feature: str, label: str) -> Curve:
    """Cumulative incidence of a cause: a feature by depth such as "errors", "finished" or "errors:schema".

    Parameters
    ----------
    feature, label : str

    Returns
    -------
    Curve
    """
    return Curve(
        f"cif:{feature}", label, lambda c: _incidence(c, feature), f"chance to leave for {label} at or before k"
    )


# Kaplan and Meier (1958), JASA 53:457-481; Nelson (1972), Technometrics 14:945-966; Aalen and Johansen (1978),
# Scandinavian Journal of Statistics 5:141-150. Depths are discrete and tied: all who leave at k were at risk at k.
CURVES: Final = {
    curve.name: curve
    for curve in (
        Curve("pec", "PEC(k)", meaning="share of all rollouts with FED > k", **_share("alive")),
        Curve(
            "pec_elig", "PEC_elig(k)", meaning="share with FED > k among rollouts with at least k calls",
            **_share("alive", "reached"),
        ),
        Curve(
            "km", "Kaplan-Meier", lambda c: staying(c, "errors"),
            "chance of no error up to k had the rollout gone on; endings are censored",
        ),
        Curve(
            "na", "Nelson-Aalen", lambda c: np.cumsum(_rate(c, "errors"), axis=-1),
            "cumulative hazard of a first error up to k; endings are censored",
        ),
        Curve(
            "hazard", "Hazard", meaning="share of first errors at k among rollouts about to make call k",
            **_share("errors", "at_risk"),
        ),
    )
}  # fmt: skip


def _errored(counts: Counts) -> np.ndarray:
    return _incidence(counts, "errors")


def _finished(counts: Counts) -> np.ndarray:
    """Those who finish at k have made k calls: they are gone from k + 1 on."""
    return before(_incidence(counts, "finished"), 0)


# The state stack: after k calls a rollout is in one of these, so that they add to one. Truncation is censoring.
STATES: Final = {
    state.name: state
    for state in (
        Curve("errored", "Errored", _errored, "first error at or before k"),
        Curve("finished", "Finished clean", _finished, "stopped by itself before call k"),
        Curve("running", "Running clean", lambda c: 1 - _errored(c) - _finished(c), "made k calls, all executable"),
    )
}


def restricted_mean(tau: int) -> Curve:
    """Mean number of calls made before the first error, of the first tau, had the rollout gone on: the area under KM.

    Parameters
    ----------
    tau : int
        At least 1.

    Returns
    -------
    Curve
        With one value.
    """
    return Curve(
        "restricted_mean", f"Mean clean depth of {tau}",
        lambda c: staying(c, "errors")[..., :tau].sum(axis=-1, keepdims=True),
        f"area under the Kaplan-Meier curve up to {tau}",
    )  # fmt: skip


def conditional_survival(k: int, further: int) -> Curve:
    """Chance of no error up to k + further among those without an error up to k: KM(k + further) / KM(k)."""
    return Curve(
        "conditional", f"Clean to {k + further} if clean to {k}",
        lambda c: _ratio_of_km(c, k, k + further), f"KM({k + further}) / KM({k})",
    )  # fmt: skip


def residual_depth(k: int, tau: int) -> Curve:
    """Mean number of further clean calls up to tau of those without an error up to k."""
    return Curve(
        "residual", f"Mean further clean depth from {k}",
        lambda c: _residual(c, k, tau), f"area under KM from {k} to {tau}, over KM({k})",
    )  # fmt: skip


def _ratio_of_km(counts: Counts, k: int, later: int) -> np.ndarray:
    km = staying(counts, "errors")
    return ratio(km[..., later : later + 1], km[..., k : k + 1])


def _residual(counts: Counts, k: int, tau: int) -> np.ndarray:
    km = staying(counts, "errors")
    return ratio(km[..., k:tau].sum(axis=-1, keepdims=True), km[..., k : k + 1])
