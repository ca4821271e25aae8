"""Success of two cells split over strata: what their mix contributes, and what success within them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import UNKNOWN
from survexec.statistics.estimands import METRICS, ratio
from survexec.statistics.intervals import without_spread
from survexec.statistics.pairing import named, wanted_pairs
from survexec.statistics.resampling import Replicates, replicate
from survexec.statistics.summary import resampled_bounds
from survexec.statistics.tally import Counts, Tally

SPLITS: Final = ("stratum_mix", "stratum_rates", "stratum_alone")
_OF_STRATA: Final = ("labelled", "success")
COLUMNS: Final = (
    "a", "b", "stratum", "part", "share_a", "share_b", "rate_a", "rate_b", "estimate", "lower", "upper", "n_tasks_a",
    "n_tasks_b", "denominator_a", "denominator_b", "interval",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Split:
    """The success of two cells by stratum, on all tasks of each.

    Parameters
    ----------
    within : dict
        What the two share.
    a, b : str
    strata : tuple of str
        Their names, then an empty one for all of them.
    tasks, labelled, success : numpy.ndarray
        Numbers of tasks, of rollouts whose success is known and of successes, shape (side, stratum).
    sample : Replicates
        Of `_kitagawa`, one cell.
    """

    within: dict[str, Any]
    a: str
    b: str
    strata: tuple[str, ...]
    tasks: np.ndarray
    labelled: np.ndarray
    success: np.ndarray
    sample: Replicates

    @property
    def name(self) -> str:
        """The pair in words."""
        return named(f"{self.a} - {self.b}", self.within)

    @property
    def shown(self) -> Iterator[tuple[int, str, int]]:
        """Stratum, part and place among the statistics of each number that exists."""
        sides = (self.labelled[:, :-1] > 0).sum(axis=0)
        for at, of in enumerate(sides):
            for part in ((), ("stratum_alone",), ("stratum_mix", "stratum_rates"))[of]:
                yield at, part, len(SPLITS) + 1 + SPLITS.index(part) * len(sides) + at
        for place, part in enumerate((*SPLITS, "total")):
            if part != "stratum_alone" or (sides == 1).any():
                yield len(sides), part, place


def split_by_stratum(
    tally: Tally, between: str, within: tuple[str, ...], baseline: str | None, resamples: int, seed: int
) -> tuple[Split, ...]:
    """Every pair of cells on all tasks of each, by stratum.

    Parameters
    ----------
    tally : Tally
        Counted by ``(*within, between)``.
    between : str
    within : tuple of str
    baseline : str or None
    resamples, seed : int

    Returns
    -------
    tuple of Split

    Raises
    ------
    InputError
        If there is nothing to compare, or no task has a stratum.
    """
    if not (tally.tasks["stratum"] != "").any():
        raise InputError("strata = True, but no task has a stratum; name it in the column stratum")
    cells = tally.cells
    splits = []
    for a, b in wanted_pairs(tally, between, within, baseline):
        place, (first, second) = dict(cells.loc[a, list(within)]), cells[between].iloc[[a, b]].astype(str)
        splits.append(_split(tally.take(cells=[a, b]), place, first, second, resamples, seed))
    return tuple(splits)


def _split(tally: Tally, place: dict[str, Any], a: str, b: str, resamples: int, seed: int) -> Split:
    """Two cells by stratum, with replicates that share the weight of a task which both have."""
    tally = tally.take(np.asarray(tally.present.any(axis=1)))
    codes, strata = pd.factorize(tally.tasks["stratum"].replace("", UNKNOWN), sort=True)
    inside = (codes[:, None] == np.arange(len(strata)))[:, None]
    # both sides become columns of one cell, so that one set of weights serves them
    labelled, success = (tally[name][..., None] * inside for name in _OF_STRATA)
    blocks = [tally["rollouts"].sum(axis=1)[:, None], *(hits.reshape(len(codes), -1) for hits in (labelled, success))]
    ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
    columns: dict[str, int | slice] = {
        "rollouts": 0, "labelled": slice(ends[0], ends[1]), "success": slice(ends[1], ends[2]),
    }  # fmt: skip
    # the numbers of tasks that a side has of each stratum are not left to chance
    fixed = [f"{code} {sides}" for code, sides in zip(codes, tally.present.tolist(), strict=True)]
    counts = Counts(np.concatenate(blocks, axis=1)[:, None], columns)
    both = Tally(counts, tally.tasks.assign(stratum=fixed), pd.DataFrame(index=range(1)))
    numbers = [hits.sum(axis=0) for hits in (tally.present[..., None] * inside, labelled, success)]
    sample = replicate(both, [_kitagawa(numbers[1] > 0)], resamples, seed)
    summed = [np.append(n, n.sum(axis=1, keepdims=True), axis=1) for n in numbers]
    return Split(place, a, b, (*map(str, strata), ""), summed[0], summed[1], summed[2], sample)


def _kitagawa(there: np.ndarray) -> Callable[..., np.ndarray]:
    """The estimator of the sums of each of `SPLITS` and the total, then of each one by stratum.

    Parameters
    ----------
    there : numpy.ndarray of bool
        Which side has rollouts of which stratum, shape (side, stratum).
    """
    shared, alone = there.all(axis=0), there.sum(axis=0) == 1

    def estimator(counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        labelled, success = (counts[name].reshape(*counts.values.shape[:-1], *there.shape) for name in _OF_STRATA)
        whole = labelled.sum(axis=-1, keepdims=True)
        overall = ratio(success.sum(axis=-1, keepdims=True), whole)
        sides = ratio(labelled, whole), np.where(there, ratio(success, labelled), 0), overall
        (w_a, w_b), (r_a, r_b), (p_a, p_b) = (np.moveaxis(numbers, -2, 0) for numbers in sides)
        mean = (p_a + p_b) / 2
        nothing = 0 * mean  # undefined where a side has no known success
        parts = (
            np.where(shared, (w_a - w_b) * ((r_a + r_b) / 2 - mean), nothing),
            np.where(shared, (w_a + w_b) / 2 * (r_a - r_b), nothing),
            np.where(alone, (w_a * r_a - w_b * r_b) - (w_a - w_b) * mean, nothing),
        )
        sums = [part.sum(axis=-1, keepdims=True) for part in parts]
        return np.concatenate([*sums, p_a - p_b, *parts], axis=-1, out=out)

    return estimator


def split_rows(split: Split, level: float, interval: str) -> list[dict[str, Any]]:
    """Each stratum's parts, then their sums and the total.

    Parameters
    ----------
    split : Split
    level : float
    interval : str
        A method of `BOOTSTRAP`.

    Returns
    -------
    list of dict
        One a row, with the keys `COLUMNS` and those of the shared columns.
    """
    numbers = [bound[0] for bound in (split.sample.estimate, *resampled_bounds(split.sample, interval, level))]
    share, rate = ratio(split.labelled, split.labelled[:, -1:]), ratio(split.success, split.labelled)
    rows = []
    for at, part, place in split.shown:
        estimate, low, high = (float(values[place]) for values in numbers)
        bounded = not np.isnan([estimate, low]).any()
        row = {**split.within, "a": split.a, "b": split.b, "stratum": split.strata[at], "part": part}
        for side, letter in enumerate("ab"):
            row |= {
                f"share_{letter}": share[side, at], f"rate_{letter}": rate[side, at],
                f"n_tasks_{letter}": int(split.tasks[side, at]),
                f"denominator_{letter}": int(split.labelled[side, at]),
            }  # fmt: skip
        row |= {
            "estimate": estimate, "lower": low if bounded else np.nan, "upper": high if bounded else np.nan,
            "interval": interval if bounded else "",
        }  # fmt: skip
        rows.append(row)
    return rows


def split_notes(split: Split) -> list[str]:
    """What must be said of a split by strata.

    Parameters
    ----------
    split : Split

    Returns
    -------
    list of str
    """
    name, strata = f"{split.name}, by stratum", np.array(split.strata[:-1])
    notes = [
        f"{name}: success is undefined in {where}: {METRICS['success'].undefined} (0/0)"
        for where, n in zip((split.a, split.b), split.labelled[:, -1], strict=True)
        if n == 0
    ]
    share = ratio(split.labelled, split.labelled[:, -1:])
    if (share[0] == share[1]).all():
        notes.append(f"{name}: both sides have the same mix of strata, so that its part is exactly 0")
    for side, where in enumerate((split.a, split.b)):
        only = (split.labelled[side, :-1] > 0) & (split.labelled[1 - side, :-1] == 0)
        if only.any():
            notes.append(
                f"{name}: only {where} has {', '.join(strata[only])}, which leaves nothing to compare its success "
                "with; it stands apart as stratum_alone"
            )
    undefined = int(np.isnan(split.sample.values[0, 0]).sum())
    if undefined and not np.isnan(split.sample.estimate[0, 0]):
        notes.append(f"{name}: {undefined} resamples lack a stratum on a side and are left out")
    flat = without_spread(split.sample)[0] & (np.nan_to_num(split.sample.estimate[0]) != 0)
    if flat.any():
        notes.append(f"{name}: a part that no task moves has no interval")
    return notes
