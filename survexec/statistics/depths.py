"""Numbers read off the Kaplan-Meier curve: restricted mean, quantiles, conditional and residual clean depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special

from survexec.errors import InputError
from survexec.rollouts import Rollouts
from survexec.statistics.curve_intervals import pointwise, precision
from survexec.statistics.estimands import CURVES, Curve, conditional_survival, residual_depth, restricted_mean
from survexec.statistics.pairing import checked_design, paired
from survexec.statistics.proportions import normal_quantile
from survexec.statistics.resampling import influence
from survexec.statistics.results import Result
from survexec.statistics.summary import cell_names, checked_level
from survexec.statistics.tally import CELL, Tally, checked_by, count


@dataclass(frozen=True, eq=False)
class Depths(Result):
    """Clean depths of each cell.

    The frame has the columns of the cell, then ``quantity, estimate, standard_error, lower, upper, n_tasks``. Standard
    errors are the infinitesimal jackknife over tasks; limits use t with tasks - 1 degrees of freedom. Quantiles have
    the limits that invert the log-log ones of the curve (Brookmeyer and Crowley 1982, Biometrics 38:29-41).
    """

    kind: ClassVar[str] = "depths"


@dataclass(frozen=True, eq=False)
class DepthDifferences(Result):
    """Differences of restricted mean clean depths, a minus b on the common tasks.

    The frame has the columns shared by a pair, then ``a, b, quantity, estimate_a, estimate_b, difference,
    standard_error, lower, upper, p_value, n_pairs``.
    """

    kind: ClassVar[str] = "depth_differences"


def clean_depths(
    rollouts: Rollouts,
    by: Sequence[str] | str = CELL,
    *,
    tau: int | None = None,
    start: int = 0,
    further: int = 1,
    quantiles: Sequence[float] = (0.25, 0.5, 0.75),
    level: float = 0.95,
) -> Depths:
    """How deep rollouts get without an error, had they gone on: numbers read off the Kaplan-Meier curve.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.
    tau : int, optional
        Horizon of the restricted mean, the area under the curve up to it; by default the largest depth at which every
        cell still has rollouts at risk.
    start : int
        Depth k of the conditional numbers: those clean to k.
    further : int
        Depths beyond k: the chance to be clean to k + further.
    quantiles : sequence of float
        Of the first-error depth: 0.5 is the depth by which half would have erred.
    level : float

    Returns
    -------
    Depths

    References
    ----------
    Irwin (1949), Journal of Hygiene 47:188-189 (restricted mean).

    Examples
    --------
    >>> import survexec as sx
    >>> frame = sx.clean_depths(sx.datasets.load_tau_retail_methods(), by="method", tau=5).frame
    >>> round(float(frame.loc[0, "estimate"]), 4)
    4.5293
    """
    by, level = checked_by(by), checked_level(level)
    tally = count(rollouts, by, depth=int(rollouts.frame["length"].max()) if len(rollouts) else 0)
    tau = _horizon(tally) if tau is None else tau
    deepest = tally.total["at_risk"].shape[1] - 1
    if not 1 <= tau <= max(deepest, 1) or start < 0 or further < 1:
        raise InputError(
            f"tau = {tau}, start = {start}, further = {further}; tau must be between 1 and the longest rollout "
            f"({deepest}), start from 0 and further from 1"
        )
    asked = [restricted_mean(tau)]
    if start + further <= deepest:
        asked.append(conditional_survival(start, further))
    if start < tau:
        asked.append(residual_depth(start, tau))
    rows = [row for curve in asked for row in _rows(curve, tally, level)] + _quantile_rows(tally, quantiles, level)
    frame = pd.DataFrame(rows).sort_values("cell", kind="stable")
    cells = tally.cells.iloc[frame["cell"]].reset_index(drop=True)
    frame = pd.concat([cells, frame.drop(columns="cell").reset_index(drop=True)], axis=1)
    made = {"by": by, "tau": tau, "level": level, "rule": str(rollouts.rule), "unit": "task"}
    return Depths(frame, by, _notes(tally, tau) + rollouts.notes, made, rollouts.ledger)


def depth_differences(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    baseline: str | None = None,
    *,
    tau: int | None = None,
    level: float = 0.95,
) -> DepthDifferences:
    """Differences of restricted mean clean depth, paired by task.

    Parameters
    ----------
    rollouts : Rollouts
    between, within, baseline
        As in `compare`.
    tau : int, optional
        Horizon; by default the largest depth at which every cell still has rollouts at risk.
    level : float

    Returns
    -------
    DepthDifferences

    Notes
    -----
    The standard error is that of the differences of the tasks' influences, so the pairing is in it; t with tasks - 1
    degrees of freedom.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> sx.depth_differences(runs, baseline="tool_calling", tau=5).frame["n_pairs"].tolist()
    [100, 66, 95]
    """
    between, within = checked_design(between, within)
    level = checked_level(level)
    tally = count(rollouts, (*within, between), depth=int(rollouts.frame["length"].max()) if len(rollouts) else 0)
    tau = _horizon(tally) if tau is None else tau
    curve = restricted_mean(tau)
    pairs, refused = paired(tally, between, within, baseline)
    rows = []
    for pair in pairs:
        n, estimate = len(pair.tally.tasks), curve(pair.tally.total)[:, 0]
        moved = influence(pair.tally, [curve])[..., 0]
        difference, error = estimate[0] - estimate[1], float(np.sqrt(((moved[:, 0] - moved[:, 1]) ** 2).sum()))
        lower, upper = _t_limits(difference, error, n, level)
        p = 2 * special.stdtr(n - 1, -abs(difference) / error) if error > 0 and n > 1 else np.nan
        rows.append(
            {
                **pair.within, "a": pair.a, "b": pair.b, "quantity": curve.label, "estimate_a": estimate[0],
                "estimate_b": estimate[1], "difference": difference, "standard_error": error, "lower": lower,
                "upper": upper, "p_value": p, "n_pairs": n,
            }
        )  # fmt: skip
    made = {
        "between": between,
        "within": within,
        "tau": tau,
        "level": level,
        "rule": str(rollouts.rule),
        "unit": "task",
    }
    notes = (*refused, *(note for pair in pairs for note in pair.notes), *_notes(tally, tau), *rollouts.notes)
    return DepthDifferences(pd.DataFrame(rows), within, notes, made, rollouts.ledger)


def _horizon(tally: Tally) -> int:
    """The largest depth at which every cell still has rollouts at risk, at least 1."""
    return max(int((tally.total["at_risk"] > 0).sum(axis=1).min()) - 1, 1)


def _t_limits(estimate: float, error: float, n: int, level: float) -> tuple[float, float]:
    """Estimate +- t times its standard error; NaN without spread."""
    if n < 2 or not error > 0:
        return np.nan, np.nan
    half = special.stdtrit(n - 1, 0.5 + level / 2) * error
    return float(estimate - half), float(estimate + half)


def _rows(curve: Curve, tally: Tally, level: float) -> list[dict[str, Any]]:
    """One number of each cell with its standard error."""
    estimate = curve(tally.total)[:, 0]
    error = np.sqrt((influence(tally, [curve])[..., 0] ** 2).sum(axis=0))
    n = tally.present.sum(axis=0)
    rows = []
    for c in range(len(tally.cells)):
        lower, upper = _t_limits(estimate[c], error[c], int(n[c]), level)
        rows.append(
            {
                "cell": c, "quantity": curve.label, "estimate": estimate[c], "standard_error": error[c],
                "lower": lower, "upper": upper, "n_tasks": int(n[c]),
            }
        )  # fmt: skip
    return rows


def _quantile_rows(tally: Tally, quantiles: Sequence[float], level: float) -> list[dict[str, Any]]:
    """Quantiles of the first-error depth with limits from those of the curve."""
    for q in quantiles:
        if not 0 < q < 1:
            raise InputError(f"quantile {q!r}; it must be between 0 and 1")
    known = precision(CURVES["km"], tally)
    lower, upper = pointwise(known, "loglog", normal_quantile(level))
    # no call has been made at depth 0
    lower[:, 0] = upper[:, 0] = 1.0
    n, errors = tally.present.sum(axis=0), tally.total["errors"]
    return [
        {
            "cell": c, "quantity": f"FED quantile {q:g}", "standard_error": np.nan,
            "estimate": crossing(known.estimate[c], 1 - q, errors[c]), "lower": _first_below(lower[c], 1 - q),
            "upper": _first_below(upper[c], 1 - q), "n_tasks": int(n[c]),
        }
        for c in range(len(tally.cells))
        for q in quantiles
    ]  # fmt: skip


def crossing(curve: np.ndarray, height: float, events: np.ndarray) -> float:
    """The depth at which a survival curve falls to a height; NaN where it never does.

    Parameters
    ----------
    curve : numpy.ndarray
        Values at k = 0..K.
    height : float
    events : numpy.ndarray
        First errors at each depth.

    Returns
    -------
    float
        Where the curve stands exactly at the height for a while, the middle of that stretch, as R's survfit has it.

    Examples
    --------
    >>> import numpy as np
    >>> crossing(np.array([1.0, 0.5, 0.5, 0.25]), 0.5, np.array([0, 2, 0, 1]))
    2.0
    """
    first = _first_below(curve, height + 1e-12)
    if np.isnan(first) or abs(curve[int(first)] - height) > 1e-12:
        return first
    later = np.flatnonzero(events[int(first) + 1 :])
    return first if not len(later) else float(2 * first + 1 + later[0]) / 2


def _first_below(curve: np.ndarray, height: float) -> float:
    """The first depth at which a curve is at or below a height; NaN where none is."""
    below = np.flatnonzero(curve <= height)
    return float(below[0]) if len(below) else np.nan


def _notes(tally: Tally, tau: int) -> tuple[str, ...]:
    """Cells whose curve ends before the horizon."""
    at_risk = tally.total["at_risk"][:, min(tau, tally.total["at_risk"].shape[1] - 1)]
    return tuple(
        f"{name}: nobody is at risk at depth {tau}; the area up to it carries the curve's last value on"
        for c, name in enumerate(cell_names(tally))
        if at_risk[c] == 0
    )
