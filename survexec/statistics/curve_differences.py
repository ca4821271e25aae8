"""The difference of two curves over depth, paired by task, with pointwise intervals and a simultaneous band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import intervals, proportions
from survexec.statistics.curve_intervals import BAND_MINIMUM, precision
from survexec.statistics.curves import BANDS
from survexec.statistics.estimands import CURVES, Curve, incidence
from survexec.statistics.pairing import Pair, checked_design, differences, paired
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed, influence
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level
from survexec.statistics.tally import count

KINDS: Final = ("pec", "pec_elig", "km", "cif")


@dataclass(frozen=True, eq=False)
class CurveDifferences(Result):
    """Differences of curves, a minus b on the common tasks.

    The frame has the columns shared by a pair, then ``a, b, k, estimate_a, estimate_b, difference, lower, upper,
    band_lower, band_upper, at_risk_a, at_risk_b, n_pairs``.

    Parameters
    ----------
    pairs : tuple of (Pair, Replicates)
    """

    pairs: tuple[tuple[Pair, Replicates], ...] = field(repr=False)
    kind: ClassVar[str] = "curve_differences"

    def with_interval(self, level: float) -> CurveDifferences:
        """The same differences with intervals of another level, from the same replicates.

        Parameters
        ----------
        level : float

        Returns
        -------
        CurveDifferences
        """
        made = {**self.made, "level": checked_level(level)}
        return replace(self, frame=_frame(self.pairs, made), made=made)


def curve_differences(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    baseline: str | None = None,
    *,
    kind: str = "pec",
    max_depth: int | None = None,
    level: float = 0.95,
    band: str = "wilson",
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> CurveDifferences:
    """How far two methods are apart at each depth, paired by task.

    Parameters
    ----------
    rollouts : Rollouts
    between, within, baseline
        As in `compare`.
    kind : {"pec", "pec_elig", "km", "cif"}
        The curve; "cif" is the cumulative incidence of erring.
    max_depth : int, optional
        Largest k; the longest rollout by default.
    level : float
    band : {"wilson", "sup_t"}
        Newcombe's square-and-add of Wilson limits at the sup-t critical value, or the plain sup-t.
    resamples : int
    rng : int or numpy.random.Generator

    Returns
    -------
    CurveDifferences

    Notes
    -----
    Pointwise limits are Newcombe's paired ones: Wilson limits of the two curves on their effective sizes, joined with
    the correlation of the tasks' influences, which for a plain share of one trial a task is that of the paired 2 x 2
    table. The band is the same at the sup-t critical value of the shared replicates.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17:2635-2650. Zou and Donner (2008), Statistics in Medicine 27:1693-1702.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> frame = sx.curve_differences(runs, baseline="tool_calling", resamples=200).frame
    >>> bool((frame[frame["k"] == 0]["difference"] == 0).all())
    True
    """
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}; it must be one of {', '.join(KINDS)}")
    if band not in BANDS:
        raise InputError(f"band = {band!r}; it must be one of {', '.join(BANDS)}")
    between, within = checked_design(between, within)
    level, seed = checked_level(level), as_seed(rng)
    depth = int(rollouts.frame["length"].max()) if max_depth is None and len(rollouts) else max_depth
    tally = count(rollouts, (*within, between), depth=depth)
    pairs, refused = paired(tally, between, within, baseline)
    curve = _curve(kind)
    samples = differences(tally, pairs, [curve], resamples, seed)
    made = {
        "between": between, "within": within, "baseline": baseline, "kind": kind, "band": band, "level": level,
        "resamples": resamples, "seed": seed, "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    joined = tuple(zip(pairs, samples, strict=True))
    notes = [*refused, *(note for pair in pairs for note in pair.notes), *rollouts.notes]
    return CurveDifferences(_frame(joined, made), within, tuple(notes), made, rollouts.ledger, joined)


def _curve(kind: str) -> Curve:
    return incidence("errors", "error") if kind == "cif" else CURVES[kind]


def _frame(pairs: Sequence[tuple[Pair, Replicates]], made: dict[str, Any]) -> pd.DataFrame:
    """One row a pair and depth."""
    frames = []
    for pair, sample in pairs:
        columns = difference_columns(pair, sample, made)
        frame = pd.DataFrame({"a": pair.a, "b": pair.b, "k": np.arange(len(columns["difference"])), **columns})
        frames.append(pd.DataFrame(pair.within, index=frame.index).join(frame))
    return pd.concat(frames, ignore_index=True)


def difference_columns(pair: Pair, sample: Replicates, made: dict[str, Any]) -> dict[str, np.ndarray]:
    """The numbers of one pair by depth."""
    curve, level, tasks = _curve(made["kind"]), made["level"], len(pair.tally.tasks)
    known = precision(curve, pair.tally)
    defined = known.defined.all(axis=0)
    p = np.where(known.defined, known.estimate, np.nan)
    difference = p[0] - p[1]
    moved = influence(pair.tally, [curve])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (moved[:, 0] * moved[:, 1]).sum(axis=0) / (known.error[0] * known.error[1])
    correlation = np.clip(np.nan_to_num(correlation), -1, 1)
    error = np.sqrt(((moved[:, 0] - moved[:, 1]) ** 2).sum(axis=0))
    usable = defined & (error > 0) & (known.at_risk >= BAND_MINIMUM).all(axis=0)
    n_tasks = np.array([tasks])
    critical = intervals.sup_t(sample.values, sample.estimate, error[None], usable[None], n_tasks, level).item()
    limits = _joined(p, known.size, correlation, proportions.normal_quantile(level))
    band = _joined(p, known.band_size, correlation, critical)
    if made["band"] == "sup_t":
        band = np.fmax(difference - critical * error, -1), np.fmin(difference + critical * error, 1)
    bounds = [*limits, np.fmin(band[0], limits[0]), np.fmax(band[1], limits[1])]
    for bound in bounds:
        bound[0] = difference[0] if made["kind"] != "cif" else 0.0
    names = ("lower", "upper", "band_lower", "band_upper")
    at_risk = pair.tally.total["at_risk"].astype("int64")
    return {
        "estimate_a": p[0], "estimate_b": p[1], "difference": difference,
        **{name: np.where(defined, bound, np.nan) for name, bound in zip(names, bounds, strict=True)},
        "at_risk_a": at_risk[0], "at_risk_b": at_risk[1], "n_pairs": np.full(len(difference), tasks),
    }  # fmt: skip


def _joined(p: np.ndarray, size: np.ndarray, correlation: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson limits of both sides joined with their correlation."""
    lower, upper = proportions.wilson(np.nan_to_num(p) * size, size, z)
    return proportions.mover(p[0], (lower[0], upper[0]), p[1], (lower[1], upper[1]), correlation)
