"""Curves over depth with intervals and bands: PEC, Kaplan-Meier, hazard, cumulative incidence, the state stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import ErrorClass
from survexec.rollouts import Rollouts
from survexec.statistics import intervals, proportions
from survexec.statistics.curve_intervals import Precision, hazard_limits, pointwise, precision
from survexec.statistics.estimands import CURVES, STATES, Curve, incidence
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import cell_names, checked_level
from survexec.statistics.tally import CELL, Counts, Tally, checked_by, count

KINDS: Final = (*CURVES, "cif", "states", "at_risk")
INTERVALS: Final = ("wilson", "plain", "log", "loglog")
BANDS: Final = ("wilson", "sup_t")
# What tells the curves of one kind apart, as a column of the frame.
_PARTS: Final = {"states": "state", "cif": "cause"}


@dataclass(frozen=True, eq=False)
class Curves(Result):
    """A curve a cell.

    The frame has the columns of the cell (and ``state``, or ``cause`` for "cif"), then ``k, estimate, lower, upper,
    band_lower, band_upper, at_risk, events, finished, censored, denominator``.

    Parameters
    ----------
    tally : Tally
    parts : dict of str to Curve
        The curves of the kind.
    sample : Replicates or None
        The shared replicates, one curve after another; None where the kind has no band.
    """

    tally: Tally = field(repr=False)
    parts: dict[str, Curve] = field(repr=False)
    sample: Replicates | None = field(repr=False)

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Which curve, such as "pec", "km", "cif" or "states"."""
        return str(self.made["kind"])

    def with_interval(self, level: float | None = None, interval: str | None = None, band: str | None = None) -> Curves:
        """The same curves with other intervals, from the same replicates.

        Parameters
        ----------
        level : float, optional
        interval : {"wilson", "plain", "log", "loglog"}, optional
            None: the default of the kind.
        band : {"wilson", "sup_t"}, optional

        Returns
        -------
        Curves
        """
        made = {
            **self.made, "level": self.made["level"] if level is None else checked_level(level),
            "interval": _checked(interval, INTERVALS, "interval"),
            "band": _checked(band, BANDS, "band") or self.made["band"],
        }  # fmt: skip
        return replace(self, frame=_frame(self.tally, self.parts, self.sample, made), made=made)


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
    by_class: bool = False,
    max_depth: int | None = None,
    level: float = 0.95,
    interval: str | None = None,
    band: str = "wilson",
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> Curves:
    """A number at each depth k = 0..K in each cell, with pointwise intervals and simultaneous bands.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.
    kind : str
        "pec": share of all rollouts with FED > k. "pec_elig": the same among rollouts with at least k calls.
        "km": Kaplan-Meier, endings censored. "na": Nelson-Aalen. "hazard": first errors at k among those at risk.
        "cif": cumulative incidence of erring and of finishing clean, truncation censored (Aalen-Johansen, exact at
        ties). "states": errored, finished clean, running clean after k calls; they add to one. "at_risk": counts.
    by_class : bool
        For "cif": erring split by the class of the first error.
    max_depth : int, optional
        Largest k; the longest rollout by default.
    level : float
    interval : {"wilson", "plain", "log", "loglog"}, optional
        None: "wilson" for shares of rollouts and states, "loglog" for "km" and "cif", "log" for "na". Standard errors
        are the infinitesimal jackknife over tasks, which for one trial a task is Greenwood's.
    band : {"wilson", "sup_t"}
        Wilson limits on the effective number at the sup-t critical value of the shared replicates, or the plain sup-t.
    resamples : int
    rng : int or numpy.random.Generator

    Returns
    -------
    Curves

    Notes
    -----
    PEC mixes erring with finishing: an agent that needs fewer calls scores lower at deep k. Show the state stack or
    the eligible curve beside it. ``at_risk`` at k are the rollouts about to make call k without an earlier error;
    rollouts without a call finish at depth 0. Where nobody is left at risk while some may still err, it is NaN.

    Examples
    --------
    >>> import survexec as sx
    >>> frame = sx.curves(sx.datasets.load_tau_retail_methods(), by="method", kind="km", resamples=200).frame
    >>> bool((frame[frame["k"] == 0]["estimate"] == 1).all())
    True
    """
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}; it must be one of {', '.join(KINDS)}")
    by, level, seed = checked_by(by), checked_level(level), as_seed(rng)
    if rollouts.frame.empty:
        raise InputError("there are no rollouts")
    if max_depth is not None and max_depth < 0:
        raise InputError(f"max_depth = {max_depth}; it must be 0 or more")
    depth = int(rollouts.frame["length"].max()) if max_depth is None else max_depth
    tally = count(rollouts, by, depth=depth, by_class=by_class)
    parts = parts_of(kind, tally, by_class)
    sample = None if kind in ("states", "at_risk") else replicate(tally, list(parts.values()), resamples, seed)
    made = {
        "by": by, "kind": kind, "by_class": by_class, "level": level,
        "interval": _checked(interval, INTERVALS, "interval"), "band": _checked(band, BANDS, "band"),
        "resamples": resamples, "seed": seed, "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    frame = _frame(tally, parts, sample, made)
    return Curves(frame, by, _notes(tally, frame) + rollouts.notes, made, rollouts.ledger, tally, parts, sample)


def parts_of(kind: str, tally: Tally, by_class: bool = False) -> dict[str, Curve]:
    """The curves of a kind by name.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    tally : Tally
    by_class : bool

    Returns
    -------
    dict of str to Curve
    """
    if kind == "states":
        return dict(STATES)
    if kind == "at_risk":
        return {kind: Curve("at_risk", "At risk", lambda c: c["at_risk"], "rollouts about to make call k")}
    if kind != "cif":
        return {kind: CURVES[kind]}
    errors = {"error": incidence("errors", "error")}
    if by_class:
        found = {str(c): f"errors:{c}" for c in ErrorClass}
        errors = {c: incidence(name, c) for c, name in found.items() if tally[name].any()}
    return {**errors, "finish": incidence("finished", "clean finish")}


def _checked(given: str | None, known: Sequence[str], name: str) -> str | None:
    if given is not None and given not in known:
        raise InputError(f"{name} = {given!r}; it must be one of {', '.join(known)}")
    return given


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


def curve_bounds(
    curve: Curve, known: Precision, values: np.ndarray | None, n_tasks: np.ndarray, made: dict[str, Any]
) -> list[np.ndarray]:
    """Pointwise limits and band of one curve, four arrays of shape (cell, depth)."""
    none = np.full(known.estimate.shape, np.nan)
    if curve.name == "at_risk":
        return [none] * 4
    level = made["level"]
    default = "wilson" if curve.share is not None or values is None else "loglog"
    name = made["interval"] or default
    z = proportions.normal_quantile(level)
    limits = hazard_limits(known, z) if curve.name == "na" else pointwise(known, name, z)
    band = none, none
    if values is not None:
        critical = intervals.sup_t(values, known.estimate, known.error, known.usable, n_tasks, level)[:, None]
        scale, wide = "plain" if made["band"] == "sup_t" else "wilson", replace(known, size=known.band_size)
        band = hazard_limits(known, critical) if curve.name == "na" else pointwise(wide, scale, critical)
        # a band is never inside the pointwise interval, whatever scales the two are made on
        band = np.fmin(band[0], limits[0]), np.fmax(band[1], limits[1])
    bounds = [*limits, *band]
    if curve.name != "cif:finished":
        for bound in bounds:
            # no call has been made at depth 0: all but who finishes there is so by definition
            bound[:, 0] = np.where(np.isnan(bound[:, 0]), np.nan, known.estimate[:, 0])
    return [np.where(known.defined, bound, np.nan) for bound in bounds]


def _frame(tally: Tally, parts: dict[str, Curve], sample: Replicates | None, made: dict) -> pd.DataFrame:
    """The tidy frame of a kind, cell by cell (and part by part within it)."""
    total = tally.total
    shape = total["alive"].shape
    column = _PARTS.get(made["kind"])
    counts = {name: total[feature].astype("int64") for name, feature in _COUNTED.items()}
    frames = []
    for at, (name, curve) in enumerate(parts.items()):
        known = precision(curve, tally)
        values = None if sample is None else sample.values[:, at * shape[1] : (at + 1) * shape[1]]
        columns = {} if column is None else {column: np.full(shape, name, object)}
        columns |= {"k": np.broadcast_to(np.arange(shape[1]), shape)}
        columns |= {"estimate": np.where(known.defined, known.estimate, np.nan)}
        bounds = curve_bounds(curve, known, values, tally.present.sum(axis=0), made)
        columns |= dict(zip(("lower", "upper", "band_lower", "band_upper"), bounds, strict=True))
        denominator = _denominator(curve, total)
        frames.append(_stacked(tally, columns | counts | {"denominator": denominator.astype("int64")}))
    cell = np.tile(np.repeat(np.arange(shape[0]), shape[1]), len(frames))
    return pd.concat(frames, ignore_index=True).iloc[np.argsort(cell, kind="stable")].reset_index(drop=True)


_COUNTED: Final = {"at_risk": "at_risk", "events": "errors", "finished": "finished", "censored": "censored"}


def _denominator(curve: Curve, total: Counts) -> np.ndarray:
    """What is printed beside a number: the rollouts it is a share of, or those at risk."""
    if curve.share is not None:
        return np.broadcast_arrays(*curve.share(total))[1]
    return (
        total["at_risk"]
        if curve.name in ("km", "na")
        else np.broadcast_to(total["rollouts"][:, None], total["alive"].shape)
    )


def _stacked(tally: Tally, columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """Arrays of shape (cell, depth) as rows, cell by cell."""
    cells, depths = next(iter(columns.values())).shape
    repeated = tally.cells.iloc[np.repeat(np.arange(cells), depths)].reset_index(drop=True)
    return repeated.assign(**{name: values.ravel() for name, values in columns.items()})


def _notes(tally: Tally, frame: pd.DataFrame) -> tuple[str, ...]:
    """What a reader must know beside the curves."""
    zero, n = tally.total["zero_calls"], tally.total["rollouts"]
    notes = [
        f"{name}: {int(zero[c])} of {int(n[c])} rollouts made no call; they finish at depth 0"
        for c, name in enumerate(cell_names(tally))
        if zero[c]
    ]
    if frame["estimate"].isna().any():
        notes.append("where nobody is left at risk and some may still err, the curve has no value")
    return tuple(notes)
