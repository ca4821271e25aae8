"""Every metric of every cell, with its interval and its denominator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import UNKNOWN
from survexec.rollouts import Rollouts
from survexec.statistics import intervals, proportions
from survexec.statistics.estimands import METRICS, Metric, ratio
from survexec.statistics.resampling import RESAMPLES, Replicates, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.tally import CELL, Tally, checked_by, count

BOOTSTRAP: Final = {
    "percentile": intervals.percentile,
    "expanded_percentile": intervals.expanded_percentile,
    "bca": intervals.bca,
    "jackknife_t": intervals.jackknife_t,
}


@dataclass(frozen=True, eq=False)
class Summary(Result):
    """The metrics of each cell: columns of the cell and ``metric, estimate, lower, upper, denominator, interval``.

    Parameters
    ----------
    tally : Tally
    sample : Replicates
        The shared replicates, kept so that another level or method needs no new draws.

    Examples
    --------
    >>> import survexec as sx
    >>> summary = sx.summarize(sx.datasets.load_tau_retail_methods(), by="method", resamples=200)
    >>> wider = summary.with_interval(level=0.99)
    >>> bool((wider.frame["lower"].dropna() <= summary.frame["lower"].dropna() + 1e-12).all())
    True
    """

    tally: Tally = field(repr=False)
    sample: Replicates = field(repr=False)
    kind: ClassVar[str] = "summary"

    def with_interval(self, level: float | None = None, interval: str | None = None) -> Summary:
        """The same numbers with other intervals, from the same replicates.

        Parameters
        ----------
        level : float, optional
        interval : {"wilson", "percentile", "expanded_percentile", "bca", "jackknife_t"}, optional
            For every metric it applies to; None for each metric's default.

        Returns
        -------
        Summary
        """
        level = self.made["level"] if level is None else checked_level(level)
        frame = _frame(self.tally, self.sample, level, interval)
        return replace(self, frame=frame, made={**self.made, "level": level, "interval": interval})

    @property
    def decomposition(self) -> pd.DataFrame:
        """Success split exactly: "clean" (TER x s) and "recovered" ((1-TER) x RR); they add to success."""
        total = self.tally.total
        parts = {"clean": total["clean_success"], "recovered": total.recovered}
        frames = [self.tally.cells.assign(part=part, estimate=ratio(n, total["labelled"])) for part, n in parts.items()]
        return pd.concat(frames, ignore_index=True)


def summarize(
    rollouts: Rollouts,
    by: Sequence[str] | str = CELL,
    *,
    level: float = 0.95,
    interval: str | None = None,
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> Summary:
    """TER, mean FED, AUC-PEC, RR, success and their relatives in each cell, with intervals and denominators.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.
    level : float
        Confidence level in (0, 1).
    interval : {"wilson", "percentile", "expanded_percentile", "bca", "jackknife_t"}, optional
        None: Wilson for proportions (on the effective number of rollouts where a task has several), BCa for means.
    resamples : int
        Bootstrap resamples of tasks.
    rng : int or numpy.random.Generator
        The same seed gives the same result.

    Returns
    -------
    Summary

    Notes
    -----
    The unit of analysis is the task: resampling, the jackknife and the effective number of rollouts go over tasks.
    Estimands are those of "Prefix Executability" (arXiv 2610.40444); intervals cite their sources in
    `survexec.statistics.intervals`.

    Examples
    --------
    >>> import survexec as sx
    >>> frame = sx.summarize(sx.datasets.load_tau_retail_methods(), by="method", resamples=200).frame
    >>> ter = frame[(frame["method"] == "tool_calling") & (frame["metric"] == "ter")]
    >>> float(ter["estimate"].item()), int(ter["denominator"].item())
    (0.77, 100)
    """
    by = checked_by(by)
    level = checked_level(level)
    checked_resamples(resamples)
    seed = as_seed(rng)
    tally = count(rollouts, by)
    sample = replicate(tally, list(METRICS.values()), resamples, seed)
    made = {
        "by": by, "level": level, "interval": interval, "resamples": resamples, "seed": seed,
        "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    frame = _frame(tally, sample, level, interval)
    return Summary(frame, by, summary_notes(tally, sample) + rollouts.notes, made, rollouts.ledger, tally, sample)


def checked_level(level: float) -> float:
    """A confidence level, between 0 and 1.

    Raises
    ------
    InputError
    """
    if not 0 < level < 1:
        raise InputError(f"level = {level!r}; it must be between 0 and 1, such as 0.95")
    return float(level)


def checked_resamples(resamples: int) -> int:
    """A number of resamples that intervals can be read from.

    Raises
    ------
    InputError
    """
    if resamples < 100:
        raise InputError(f"resamples = {resamples}; an interval needs at least 100")
    return resamples


def resampled_bounds(sample: Replicates, name: str, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds by a method of `BOOTSTRAP`; NaN where no task moves the estimate, since a zero width would be a lie.

    Parameters
    ----------
    sample : Replicates
    name : str
    level : float

    Returns
    -------
    lower, upper : numpy.ndarray
    """
    flat = intervals.without_spread(sample)
    lower, upper = BOOTSTRAP[name](sample, level)
    return np.where(flat, np.nan, lower), np.where(flat, np.nan, upper)


def proportion_bounds(
    metric: Metric,
    tally: Tally,
    z: float,
    limits: Callable[[np.ndarray, np.ndarray, float], proportions.Bounds] = proportions.wilson,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Limits of a proportion in each cell and whether they stand on an effective number of rollouts.

    Parameters
    ----------
    metric : Metric
        A proportion.
    tally : Tally
    z : float
        Critical value.
    limits : callable
        `proportions.wilson` or `proportions.jeffreys`.

    Returns
    -------
    lower, upper, clustered : numpy.ndarray
        Shape (cell,).
    """
    x, n = metric.numerator(tally.counts), metric.denominator(tally.counts)
    size = proportions.effective_n(x, n)
    lower, upper = limits(metric(tally.total) * size, size, z)
    return lower, upper, n.max(axis=0, initial=0) > 1


def _frame(tally: Tally, sample: Replicates, level: float, interval: str | None) -> pd.DataFrame:
    """One row a cell and metric, then the plain counts, cell by cell."""
    if interval is not None and interval not in (*BOOTSTRAP, "wilson"):
        raise InputError(f"interval = {interval!r}; it must be one of wilson, {', '.join(BOOTSTRAP)}")
    total = tally.total
    rows: list[dict[str, Any]] = []
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for at, metric in enumerate(METRICS.values()):
        name = interval or ("wilson" if metric.proportion else "bca")
        if name == "wilson" and not metric.proportion:
            name = "bca"
        if name == "wilson":
            lower, upper, clustered = proportion_bounds(metric, tally, proportions.normal_quantile(level))
            names = np.where(clustered, "wilson_effective_n", "wilson")
        else:
            if name not in drawn:
                drawn[name] = resampled_bounds(sample, name, level)
            lower, upper = (bound[:, at] for bound in drawn[name])
            names = np.full(len(lower), name)
        estimate, denominator = metric(total), metric.denominator(total)
        unknown = np.isnan(estimate)
        rows += [
            {
                "cell": c, "metric": metric.name, "estimate": estimate[c],
                "lower": np.nan if unknown[c] else lower[c], "upper": np.nan if unknown[c] else upper[c],
                "denominator": int(denominator[c]), "interval": str(names[c]),
            }
            for c in range(len(tally.cells))
        ]  # fmt: skip
    n = total["rollouts"]
    plain = {
        "rollouts": n,
        "tasks": tally.present.sum(axis=0),
        "rr_eligible": total.errors,
        "zero_calls": total["zero_calls"],
    }
    for name, values in plain.items():
        rows += [
            {"cell": c, "metric": name, "estimate": float(values[c]), "lower": np.nan, "upper": np.nan,
             "denominator": int(n[c]), "interval": ""}
            for c in range(len(tally.cells))
        ]  # fmt: skip
    numbers = pd.DataFrame(rows).sort_values("cell", kind="stable")
    cells = tally.cells.iloc[numbers["cell"]].reset_index(drop=True)
    return pd.concat([cells, numbers.drop(columns="cell").reset_index(drop=True)], axis=1)


def cell_names(tally: Tally) -> list[str]:
    """A name for each cell: the values of the columns that vary, or of those that say anything."""
    cells = tally.cells
    varying = [name for name in cells.columns if cells[name].nunique() > 1]
    telling = varying or [name for name in cells.columns if (cells[name] != UNKNOWN).any()]
    if not telling:
        return ["all rollouts"] * len(cells)
    return [" / ".join(map(str, row)) for row in cells[telling].itertuples(index=False)]


def summary_notes(tally: Tally, sample: Replicates) -> tuple[str, ...]:
    """What a reader must know beside the numbers of each cell: undefined values, empty rollouts, clustering."""
    total, notes = tally.total, []
    flat = intervals.without_spread(sample)
    for c, name in enumerate(cell_names(tally)):
        n, zero = int(total["rollouts"][c]), int(total["zero_calls"][c])
        if zero:
            notes.append(
                f"{name}: {zero} of {n} rollouts made no call (T = 0): FED = 1 = T + 1, no error; TER counts them as "
                "executable, AUC-PEC takes 1, PEC(k) counts them as gone for k >= 1"
            )
        unlabelled = int(n - total["labelled"][c])
        if unlabelled:
            notes.append(
                f"{name}: {unlabelled} of {n} rollouts have no recorded success and do not enter success, RR and s"
            )
        notes += [
            f"{name}: {metric.label} is undefined: {metric.reason(total, c)} (0/0)"
            for metric in METRICS.values()
            if metric.denominator(total)[c] == 0
        ]
        tasks = int(tally.present[:, c].sum())
        notes += [
            f"{name}: {metric.label} is the same in all {tasks} tasks; resampling gives it no interval"
            for at, metric in enumerate(METRICS.values())
            if flat[c, at] and tasks > 1 and not metric.proportion
        ]
        if tasks == 1:
            notes.append(f"{name}: one task, so nothing is known of the spread over tasks; means have no interval")
        elif tasks < n:
            notes.append(
                f"{name}: {n} rollouts of {tasks} tasks; intervals of proportions are Wilson's on the effective number "
                "of rollouts, all resampling is over tasks"
            )
    return tuple(notes)
