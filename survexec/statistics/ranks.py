"""Who is first, and does it depend on the metric? Ranks of methods on shared tasks, and how sure they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError, PairingError
from survexec.rollouts import Rollouts
from survexec.statistics.estimands import METRICS, ratio
from survexec.statistics.pairing import checked_design, left_out, named, places, wanted_pairs
from survexec.statistics.resampling import RESAMPLES, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level, checked_resamples
from survexec.statistics.tally import Tally, count

# Metrics of which more is better.
RANKED: Final = ("success", "ter", "auc_pec", "mean_fed", "rr", "clean_success")
# Sums of areas are exact to about 1e-12; estimates closer than this are tied.
_TIE: Final = 1e-10
# Pairs that a note lists.
_LISTED: Final = 6
_FLIPS: Final = (
    "a", "b", "metric_1", "metric_2", "difference_1", "difference_2", "flipped", "probability", "n_tasks",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ranks(Result):
    """Ranks of methods by each metric, 1 the best.

    The frame has the columns shared by a place, then ``value, metric, estimate, rank, lower, upper, first, n_tasks,
    denominator``; `value` is the method (or model), `first` the probability to be first.

    Parameters
    ----------
    flips : pandas.DataFrame
        Whether two metrics order a pair differently. Columns shared by a place, then ``a, b, metric_1, metric_2,
        difference_1, difference_2`` (a minus b), ``flipped, probability, n_tasks``. `flipped` is missing where one of
        the metrics is undefined.
    """

    flips: pd.DataFrame = field(repr=False)
    kind: ClassVar[str] = "ranks"


def rank(
    rollouts: Rollouts,
    between: str = "method",
    within: Sequence[str] | str | None = None,
    *,
    metrics: Sequence[str] = ("success", "ter", "auc_pec", "mean_fed", "rr"),
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> Ranks:
    """Rank methods by several metrics on the tasks they share, and say how sure each rank and each inversion is.

    Parameters
    ----------
    rollouts : Rollouts
    between : str
        The column whose values are ranked.
    within : sequence of str, optional
        Columns that make a place, within which values are ranked; by default the others of ``benchmark, model,
        method``.
    metrics : sequence of str
        Of `RANKED`; of each, more is better.
    level : float
    resamples : int
        Bootstrap resamples of tasks, shared by all values and metrics of a place.
    rng : int or numpy.random.Generator

    Returns
    -------
    Ranks

    Raises
    ------
    PairingError
        If no place has a task that all its values share.
    InputError
        If there is nothing to rank, or a name is unknown.

    Notes
    -----
    Tied values share the mean of their ranks. The limits of a rank are percentiles of its replicates, whole numbers:
    the lower one of the best rank that a tied value could have, the upper one of the worst, so that methods that
    cannot be told apart span all their ranks. `first` is the share of replicates in which a value is first, ties
    divided. A value whose metric is undefined (RR of a method that never erred) has no rank, and the others are
    ranked without it.

    Two metrics order a pair differently where the differences have opposite signs. `probability` is the share of
    replicates in which they do, ties (of either) counted half; 0.5 therefore also stands where nothing is known.

    These are resampling shares, not posterior probabilities. Where methods are truly tied or nearly so, the bootstrap
    of a rank does not settle as tasks are added (Hall and Miller 2009): it repeats the order that this one sample
    happened to show. Measured among equal methods, the one that leads in the sample gets a probability to be first of
    0.77 of 2, 0.58 of 4 and 0.46 of 8 on average (100 tasks; for 4 also 400). Take a narrow interval of ranks as
    support for an order only where the paired interval of the difference excludes zero too.

    Mean FED counts calls, so a method that makes more calls on its clean rollouts ranks higher by it.

    References
    ----------
    Goldstein and Spiegelhalter (1996), JRSS A 159:385-443. Hall and Miller (2009), Annals of Statistics 37:3929-3959.

    Examples
    --------
    >>> import survexec as sx
    >>> from survexec.statistics.ranks import rank
    >>> ranks = rank(sx.datasets.load_tau_retail_methods(), metrics=["success", "ter"], resamples=200)
    >>> ranks.frame.loc[ranks.frame["metric"] == "success", "rank"].tolist()
    [1.5, 1.5, 3.0, 4.0]
    """
    names = _checked_metrics(metrics)
    between, within = checked_design(between, within)
    level, seed = checked_level(level), as_seed(rng)
    checked_resamples(resamples)
    ranked, notes = _places(count(rollouts, (*within, between)), between, within)
    drawn = [place.drawn(names, resamples, seed) for place in ranked]
    rows = [row for sample in drawn for row in sample.rank_rows(level)]
    flips = [list(sample.flip_rows()) for sample in drawn]
    for sample, pairs in zip(drawn, flips, strict=True):
        notes += sample.notes() + _flip_notes(sample.place.name, pairs, level)
    made = {
        "between": between, "within": within, "metrics": names, "level": level, "resamples": resamples, "seed": seed,
        "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    return Ranks(
        pd.DataFrame(rows),
        within,
        (*notes, *rollouts.notes),
        made,
        rollouts.ledger,
        pd.DataFrame([row for pairs in flips for row in pairs], columns=[*within, *_FLIPS]).astype(
            {"flipped": "boolean"}
        ),
    )


def best_and_worst(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best and the worst rank of each value along the first axis; they differ where it is tied.

    Parameters
    ----------
    values : numpy.ndarray
        The largest is first. NaN counts for nobody.

    Returns
    -------
    best, worst : numpy.ndarray of int
        Of the shape of the values, without meaning where a value is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> [ranks.tolist() for ranks in best_and_worst(np.array([0.5, 0.9, 0.5]))]
    [[2, 1, 2], [3, 1, 3]]
    """
    best, worst = np.empty(values.shape, int), np.empty(values.shape, int)
    for at, own in enumerate(values):
        gap = values - own
        better = (gap > _TIE).sum(axis=0)
        best[at] = better + 1
        worst[at] = better + (np.abs(gap) <= _TIE).sum(axis=0)
    return best, worst


def _checked_metrics(metrics: Sequence[str] | str) -> tuple[str, ...]:
    """Names of metrics that can be ranked."""
    names = (metrics,) if isinstance(metrics, str) else tuple(dict.fromkeys(metrics))
    for name in names:
        if name not in RANKED:
            raise InputError(f"metric {name!r} cannot be ranked by; these can: {', '.join(RANKED)}")
    if not names:
        raise InputError(f"metrics is empty; there are: {', '.join(RANKED)}")
    return names


@dataclass(frozen=True, eq=False)
class _Place:
    """Values that are ranked together, on the tasks that all of them have."""

    within: dict[str, Any]
    name: str
    values: tuple[str, ...]
    tally: Tally

    def drawn(self, metrics: tuple[str, ...], resamples: int, seed: int) -> _Drawn:
        """The metrics of every value, with replicates that share their tasks."""
        sample = replicate(self.tally, [METRICS[name] for name in metrics], resamples, seed)
        defined = ~np.isnan(sample.estimate)
        usable = ~(np.isnan(sample.values) & defined[..., None]).any(axis=0) & defined.any(axis=0)[:, None]
        return _Drawn(self, metrics, sample.estimate, sample.values, defined, usable)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Metrics of the values of a place, shape (value, metric), and their replicates, shape (value, metric, resample).

    `usable` are the resamples in which a metric is defined for all values that it is defined for, shape (metric,
    resample).
    """

    place: _Place
    metrics: tuple[str, ...]
    estimate: np.ndarray
    replicates: np.ndarray
    defined: np.ndarray
    usable: np.ndarray

    def rank_rows(self, level: float) -> Iterator[dict[str, Any]]:
        """The rank of every value by every metric."""
        best, worst = best_and_worst(self.estimate)
        lower, upper, first = self._spread(level)
        total = self.place.tally.total
        for m, metric in enumerate(self.metrics):
            denominator = METRICS[metric].denominator(total)
            for v, value in enumerate(self.place.values):
                known = self.defined[v, m]
                numbers = ((best[v, m] + worst[v, m]) / 2, lower[v, m], upper[v, m], first[v, m])
                at, low, high, chance = (float(number) if known else np.nan for number in numbers)
                yield {
                    **self.place.within, "value": value, "metric": metric, "estimate": float(self.estimate[v, m]),
                    "rank": at, "lower": low, "upper": high, "first": chance, "n_tasks": len(self.place.tally.tasks),
                    "denominator": int(denominator[v]),
                }  # fmt: skip

    def _spread(self, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Percentiles of the ranks, and the share of resamples in which a value is first."""
        best, worst = best_and_worst(self.replicates)
        used = self.usable.sum(axis=-1)
        tail = (1 - level) / 2

        def percentile(ranks: np.ndarray, p: float) -> np.ndarray:
            """The smallest rank that at least this share of the resamples does not exceed."""
            found = np.ones(self.estimate.shape)
            for k in range(1, len(ranks)):
                found += ratio(((ranks <= k) & self.usable).sum(axis=-1), used) < p - 1e-12
            return np.where(used > 0, found, np.nan)

        shares = np.where((best == 1) & self.usable, 1 / np.maximum(worst, 1), 0)
        return percentile(best, tail), percentile(worst, 1 - tail), ratio(shares.sum(axis=-1), used)

    def flip_rows(self) -> Iterator[dict[str, Any]]:
        """Whether two metrics order a pair differently, for all pairs and all pairs of metrics."""
        for (i, a), (j, b) in itertools.combinations(enumerate(self.place.values), 2):
            gap = self.estimate[i] - self.estimate[j]
            draws = self.replicates[i] - self.replicates[j]
            known = ~np.isnan(draws)
            sign = ((draws > _TIE).astype(float) - (draws < -_TIE)) * known
            agreement = ratio(sign @ sign.T, known.astype(float) @ known.T)
            for m, n in itertools.combinations(range(len(self.metrics)), 2):
                defined = not np.isnan(gap[[m, n]]).any()
                yield {
                    **self.place.within, "a": a, "b": b, "metric_1": self.metrics[m], "metric_2": self.metrics[n],
                    "difference_1": float(gap[m]), "difference_2": float(gap[n]),
                    "flipped": bool(np.abs(gap[[m, n]]).min() > _TIE and gap[m] * gap[n] < 0) if defined else pd.NA,
                    "probability": float((1 - agreement[m, n]) / 2) if defined else np.nan,
                    "n_tasks": len(self.place.tally.tasks),
                }  # fmt: skip

    def notes(self) -> list[str]:
        """What must be said of the ranks of a place."""
        total, where, notes = self.place.tally.total, self.place.name, []
        for m, metric in enumerate(METRICS[name] for name in self.metrics):
            notes += [
                f"{where}: {metric.label} of {value} is undefined: {metric.reason(total, v)} (0/0); it has no rank"
                for v, value in enumerate(self.place.values)
                if not self.defined[v, m]
            ]
            lost = int((~self.usable[m]).sum())
            if lost and self.defined[:, m].any():
                notes.append(f"{where}: {metric.label} is undefined somewhere in {lost} resamples, which it leaves out")
        return notes


def _flip_notes(name: str, flips: Sequence[dict[str, Any]], level: float) -> list[str]:
    """How many orders differ between metrics in a place, and which of them resampling supports."""
    flipped = [row for row in flips if row["flipped"] is True]
    sure = sorted((row for row in flipped if row["probability"] >= level), key=lambda row: -row["probability"])
    if not flipped:
        return []
    named = [
        f"{row['a']} - {row['b']} by {METRICS[row['metric_1']].label} and {METRICS[row['metric_2']].label} "
        f"({row['probability']:.3f})"
        for row in sure[:_LISTED]
    ]
    which = f": {', '.join(named)}" + (f" and {len(sure) - _LISTED} more" if len(sure) > _LISTED else "")
    return [
        f"{name}: {len(flipped)} of {len(flips)} orders (a pair by two metrics) differ between the metrics, "
        f"{len(sure)} of them with a bootstrap probability of {level:g} or more{which if sure else ''}"
    ]


def _places(tally: Tally, between: str, within: tuple[str, ...]) -> tuple[list[_Place], list[str]]:
    """Values to be ranked together, and what is left out."""
    wanted_pairs(tally, between, within, None)  # refuses a table in which no place has two values
    cells, present = tally.cells, tally.present
    found, notes = [], []
    for place, group in places(tally, within):
        values = tuple(cells[between].iloc[group].astype(str))
        name = named(f"ranks by {between}", place)
        common, anywhere = present[:, group].all(axis=1), present[:, group].any(axis=1)
        if len(group) == 1:
            notes.append(f"{name}: {values[0]} stands alone and is not ranked")
        elif not common.any():
            notes.append(f"{name}: no task is common to all of {', '.join(values)}")
        else:
            notes += left_out(name, tally.tasks["task_id"][anywhere & ~common].tolist())
            found.append(_Place(place, name, values, tally.take(np.asarray(common), group)))
    if not found:
        raise PairingError("nothing can be ranked: " + "; ".join(notes))
    return found, notes
