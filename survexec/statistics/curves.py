"""Curves over depth: PEC, PEC among the eligible, the state stack, and first errors by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics import intervals, proportions
from survexec.statistics.estimands import CURVES, STATES, Curve
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import cell_names, checked_level
from survexec.statistics.tally import CELL, Tally, checked_by, count

KINDS = (*CURVES, "states")


@dataclass(frozen=True, eq=False)
class Curves(Result):
    """A curve a cell.

    The frame has the columns of the cell (and ``state``), then ``k, estimate, lower, upper, band_lower, band_upper,
    at_risk, events, finished, censored, denominator``.

    Parameters
    ----------
    tally : Tally
    sample : Replicates or None
        The shared replicates; None for the state stack, whose shares need none.
    """

    tally: Tally = field(repr=False)
    sample: Replicates | None = field(repr=False)

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Which curve: "pec", "pec_elig" or "states"."""
        return str(self.made["kind"])

    def with_interval(self, level: float) -> Curves:
        """The same curves with intervals of another level, from the same replicates.

        Parameters
        ----------
        level : float

        Returns
        -------
        Curves
        """
        level = checked_level(level)
        return replace(
            self, frame=_frame(self.kind, self.tally, self.sample, level), made={**self.made, "level": level}
        )


@dataclass(frozen=True, eq=False)
class FirstErrors(Result):
    """First errors by depth and class: columns of the cell, then ``k, error_class, events, at_risk``.

    Every depth from 1 has a row; one without errors has no class and 0 events.
    """

    kind: ClassVar[str] = "first_errors"


def curves(
    rollouts: Rollouts,
    by: Sequence[str] | str = CELL,
    *,
    kind: str = "pec",
    max_depth: int | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> Curves:
    """A number at each depth k = 0..K in each cell, with pointwise intervals and simultaneous bands.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.
    kind : {"pec", "pec_elig", "states"}
        "pec": share of all rollouts with FED > k. "pec_elig": the same among rollouts with at least k calls.
        "states": errored, finished clean, cut by a limit, running clean after k calls; they add to one.
    max_depth : int, optional
        Largest k; the longest rollout by default.
    level : float
    resamples : int
    rng : int or numpy.random.Generator

    Returns
    -------
    Curves

    Notes
    -----
    PEC mixes erring with finishing: an agent that needs fewer calls scores lower at deep k. Show the state stack or
    the eligible curve beside it. ``at_risk`` at k are the rollouts about to make call k without an earlier error.
    Pointwise intervals are Wilson's (on the effective number of rollouts where a task has several); the band inverts
    Wilson's interval at the sup-t critical value of the shared replicates.

    Examples
    --------
    >>> import survexec as sx
    >>> frame = sx.curves(sx.datasets.load_tau_retail_methods(), by="method", resamples=200).frame
    >>> bool((frame[frame["k"] == 0]["estimate"] == 1).all())
    True
    """
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}; it must be one of {', '.join(KINDS)}")
    by, level, seed = checked_by(by), checked_level(level), as_seed(rng)
    if rollouts.frame.empty:
        raise InputError("there are no rollouts")
    longest = int(rollouts.frame["length"].max())
    if max_depth is not None and max_depth < 0:
        raise InputError(f"max_depth = {max_depth}; it must be 0 or more")
    tally = count(rollouts, by, depth=longest if max_depth is None else max_depth)
    sample = replicate(tally, [CURVES[kind]], resamples, seed) if kind in CURVES else None
    made = {
        "by": by, "kind": kind, "level": level, "resamples": resamples, "seed": seed, "rule": str(rollouts.rule),
        "unit": "task",
    }  # fmt: skip
    frame = _frame(kind, tally, sample, level)
    return Curves(frame, by, _notes(tally) + rollouts.notes, made, rollouts.ledger, tally, sample)


def first_errors(rollouts: Rollouts, by: Sequence[str] | str = CELL) -> FirstErrors:
    """How many first errors there are at each depth, by class, beside those at risk.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.

    Returns
    -------
    FirstErrors

    Examples
    --------
    >>> import survexec as sx
    >>> errors = sx.first_errors(sx.datasets.load_tau_retail_methods(), by="method").frame
    >>> int(errors.groupby("method")["events"].sum()["tool_calling"])
    23
    """
    by = checked_by(by)
    tally = count(rollouts, by, depth=int(rollouts.frame["length"].max()) if len(rollouts) else 0)
    at_risk = tally.total["at_risk"].astype("int64")
    frame = _stacked(tally, {"k": np.broadcast_to(np.arange(at_risk.shape[1]), at_risk.shape), "at_risk": at_risk})
    events = rollouts.frame[rollouts.events.to_numpy()].rename(columns={"fed": "k"})
    counted = events.groupby([*by, "k", "error_class"], sort=True).size().rename("events").reset_index()
    frame = frame[frame["k"] > 0].merge(counted, on=[*by, "k"], how="left")
    frame = frame.assign(events=frame["events"].fillna(0).astype("int64"))
    frame["error_class"] = frame["error_class"].astype(object).where(frame["error_class"].notna(), None)
    made = {"by": by, "rule": str(rollouts.rule), "unit": "rollout"}
    frame = frame[[*by, "k", "error_class", "events", "at_risk"]]
    return FirstErrors(frame, by, rollouts.notes, made, rollouts.ledger)


def curve_bounds(curve: Curve, tally: Tally, sample: Replicates, level: float) -> tuple[np.ndarray, ...]:
    """Pointwise Wilson limits and the simultaneous band of a curve.

    Parameters
    ----------
    curve : Curve
    tally : Tally
    sample : Replicates
        Of the curve, shape (cell, depth).
    level : float

    Returns
    -------
    lower, upper, band_lower, band_upper : numpy.ndarray
        Shape (cell, depth). At depth 0 PEC is 1 by definition, without uncertainty.
    """
    size = proportions.effective_n(curve.numerator(tally.counts), curve.denominator(tally.counts))
    estimate = sample.estimate
    hits = np.nan_to_num(estimate) * size
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(estimate * (1 - estimate) / size)
    total = tally.total
    inside, outside = curve.numerator(total), curve.denominator(total) - curve.numerator(total)
    usable = (inside >= intervals.BAND_MINIMUM) & (outside >= intervals.BAND_MINIMUM) & (error > 0)
    critical = intervals.sup_t(sample.values, estimate, error, usable, level)[:, None]
    pointwise = proportions.wilson(hits, size, proportions.normal_quantile(level))
    bounds = np.stack([*pointwise, *proportions.wilson(hits, size, critical)])
    bounds[..., 0] = np.where(size[..., 0] > 0, estimate[..., 0], np.nan)
    return tuple(bounds)


def _frame(kind: str, tally: Tally, sample: Replicates | None, level: float) -> pd.DataFrame:
    """The tidy frame of a kind, cell by cell (and state by state within it)."""
    total = tally.total
    shape = total["alive"].shape
    counts = {
        "at_risk": total["at_risk"], "events": total["errors"], "finished": total["finished"],
        "censored": total["censored"],
    }  # fmt: skip
    frames = []
    for curve in STATES.values() if sample is None else [CURVES[kind]]:
        bounds = _state_bounds(curve, tally, level) if sample is None else curve_bounds(curve, tally, sample, level)
        columns = {"state": np.full(shape, curve.name, object)} if sample is None else {}
        columns |= {"k": np.broadcast_to(np.arange(shape[1]), shape), "estimate": curve(total)}
        columns |= dict(zip(("lower", "upper", "band_lower", "band_upper"), bounds, strict=True))
        columns |= {name: n.astype("int64") for name, n in counts.items()}
        frames.append(_stacked(tally, columns | {"denominator": curve.denominator(total).astype("int64")}))
    cell = np.tile(np.repeat(np.arange(shape[0]), shape[1]), len(frames))
    return pd.concat(frames, ignore_index=True).iloc[np.argsort(cell, kind="stable")].reset_index(drop=True)


def _state_bounds(curve: Curve, tally: Tally, level: float) -> tuple[np.ndarray, ...]:
    """Pointwise Wilson limits of a share of the state stack; it has no band."""
    size = proportions.effective_n(curve.numerator(tally.counts), curve.denominator(tally.counts))
    lower, upper = proportions.wilson(curve(tally.total) * size, size, proportions.normal_quantile(level))
    lower[:, 0] = upper[:, 0] = curve(tally.total)[:, 0]
    none = np.full(lower.shape, np.nan)
    return lower, upper, none, none


def _stacked(tally: Tally, columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """Arrays of shape (cell, depth) as rows, cell by cell."""
    cells, depths = next(iter(columns.values())).shape
    repeated = tally.cells.iloc[np.repeat(np.arange(cells), depths)].reset_index(drop=True)
    return repeated.assign(**{name: values.ravel() for name, values in columns.items()})


def _notes(tally: Tally) -> tuple[str, ...]:
    """What a reader must know beside the curves."""
    zero, n = tally.total["zero_calls"], tally.total["rollouts"]
    return tuple(
        f"{name}: {int(zero[c])} of {int(n[c])} rollouts made no call; they finish at depth 0"
        for c, name in enumerate(cell_names(tally))
        if zero[c]
    )
