"""What printed numbers leave open: counts and splits of successes by enumeration, depths by closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from survexec.errors import InputError
from survexec.statistics.estimands import ratio
from survexec.statistics.published import Printed, PublishedRow

# Printed numbers that say something on success.
SUCCESSES: Final = frozenset({"rr", "s", "success", "success_after_error"})
_MOST_SPLITS: Final = 20_000_000
_TINY: Final = 1e-9


@dataclass(frozen=True)
class Splits:
    """Ways to split successes: for each (clean, recovered), the clean successes that the printed numbers allow.

    Parameters
    ----------
    clean, recovered, fewest, most : numpy.ndarray of int
        Rollouts without error; successes after an error; least and greatest number of successes without error.
    """

    clean: np.ndarray
    recovered: np.ndarray
    fewest: np.ndarray
    most: np.ndarray


def counts_within(cell: Printed | None, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest count that a printed share of a number allows; none (1 to 0) of nothing.

    Parameters
    ----------
    cell : Printed or None
        None: not printed, so that every count will do.
    of : numpy.ndarray of int

    Returns
    -------
    least, most : numpy.ndarray of int
    """
    if cell is None:
        return np.zeros_like(of), of.copy()
    least = -(-cell.lower * of // cell.unit)
    most = np.minimum(cell.upper * of // cell.unit, of)
    return np.where(of > 0, np.maximum(least, 0), 1), np.where(of > 0, most, 0)


def clean_counts(row: PublishedRow) -> np.ndarray:
    """Numbers of clean rollouts that TER and RR-eligible allow, in order."""
    n, cells = row.n, row.printed
    least, most = counts_within(cells.get("ter"), np.array([n]))
    if "rr_eligible" in cells:
        eligible = cells["rr_eligible"]
        least, most = np.maximum(least, n - eligible.upper), np.minimum(most, n - eligible.lower)
    return np.arange(least[0], most[0] + 1)


def splits(row: PublishedRow, clean: np.ndarray) -> Splits:
    """Every split of successes that RR, s, success and success after error allow, for given numbers of clean rollouts.

    Parameters
    ----------
    row : PublishedRow
    clean : numpy.ndarray of int

    Returns
    -------
    Splits
        In order of clean, then recovered.

    Raises
    ------
    InputError
        There are too many to enumerate.
    """
    cells, n = row.printed, np.array([row.n])
    low_r, high_r = counts_within(cells.get("rr"), row.n - clean)
    low_q, high_q = counts_within(cells.get("s"), clean)
    low_y, high_y = counts_within(cells.get("success"), n)
    low_r, high_r = np.maximum(low_r, low_y - high_q), np.minimum(high_r, high_y - low_q)
    many = np.where(low_q <= high_q, np.maximum(high_r - low_r + 1, 0), 0)
    if many.sum() > _MOST_SPLITS:
        raise InputError(
            f"{row.name}: {many.sum():,} ways to split the successes of n = {row.n} rollouts; with TER or RR-eligible "
            "in the table there would be few"
        )
    at = np.repeat(np.arange(len(clean)), many)
    recovered = low_r[at] + np.arange(len(at)) - np.repeat(np.cumsum(many) - many, many)
    fewest, most = np.maximum(low_q[at], low_y - recovered), np.minimum(high_q[at], high_y - recovered)
    if "success_after_error" in cells:
        cell = cells["success_after_error"]
        total = -(-recovered * cell.unit // max(cell.upper, 1))
        fewest = np.maximum(fewest, np.maximum(total, 1) - recovered)
        if cell.lower > 0:
            most = np.minimum(most, recovered * cell.unit // cell.lower - recovered)
    keep = fewest <= most
    return Splits(clean[at][keep], recovered[keep], fewest[keep], most[keep])


@dataclass(frozen=True)
class Depths:
    """What PEC, FED and AUC-PEC leave open.

    Parameters
    ----------
    possible : bool
        Whether they can stand together at all.
    alive : tuple of numpy.ndarray
        Least and greatest count of FED > k for k = 1, 2, ...
    fed, area : tuple of float
        Least and greatest sum of FED, and of (FED-1)/T.
    clean : tuple of int
        Least and greatest number of clean rollouts.
    """

    possible: bool
    alive: tuple[np.ndarray, np.ndarray]
    fed: tuple[int, float]
    area: tuple[float, float]
    clean: tuple[int, int]

    def alive_at(self, k: int, n: int) -> tuple[int, int]:
        """Least and greatest count of FED > k among n; beyond the deepest that was printed, no more than there."""
        low, high = self.alive
        if k <= len(low):
            return int(low[k - 1]), int(high[k - 1])
        return 0, int(high[-1]) if len(high) else n


def _depths(row: PublishedRow) -> Depths:
    """Bounds by closed forms. Unprinted PEC(k) lies between its neighbours."""
    n, cells = row.n, row.printed
    deepest = max(row.depths, default=0)
    low, high = np.zeros(deepest, dtype="int64"), np.full(deepest, n)
    possible = True
    for k, cell in row.depths.items():
        least, most = counts_within(cell, np.array([n]))
        low[k - 1], high[k - 1] = least[0], most[0]
    low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    possible &= bool((low <= high).all())
    fed = (n + int(low.sum()), float("inf") if not deepest or high[-1] > 0 else n + int(high.sum()))
    if "mean_fed" in cells:
        cell = cells["mean_fed"]
        fed = (max(fed[0], -(-cell.lower * n // cell.unit)), min(fed[1], cell.upper * n // cell.unit))
    possible &= fed[0] <= fed[1]
    area = (0.0, float(n))
    clean = (0, n)
    if "auc_pec" in cells and possible:
        cell = cells["auc_pec"]
        area = (cell.lower * n / cell.unit, min(cell.upper * n / cell.unit, float(n)))
        budget = fed[1] - n - int(low.sum())
        below, enough, last = -1, min(cell.upper * n // cell.unit, n) + 1, min(cell.upper * n // cell.unit, n)
        while enough - below > 1:
            middle = (below + enough) // 2
            if most_area(middle, n, low, high, budget) >= area[0] - _TINY:
                enough = middle
            else:
                below = middle
        clean = (enough, last)
        possible &= enough <= last
    return Depths(possible, (low, high), fed, area, clean)


def most_area(clean: int, n: int, low: np.ndarray, high: np.ndarray, budget: float) -> float:
    """Greatest sum of (FED-1)/T: errors at their last call, and as late as PEC and the sum of FED allow.

    An error at F = T gives 1 - 1/F, the sum of 1/(k(k+1)) over k < F: early steps gain most, so they are taken first.

    Parameters
    ----------
    clean, n : int
    low, high : numpy.ndarray
        Least and greatest count of FED > k.
    budget : float
        By how much the sum of FED may exceed its least.

    Returns
    -------
    float
    """
    errors, deepest = n - clean, len(low)
    k = np.arange(1, deepest + 1)
    start, room = np.minimum(errors, low), np.minimum(errors, high) - np.minimum(errors, low)
    taken = np.clip(budget - (np.cumsum(room) - room), 0, room)
    rest, last = budget - taken.sum(), min(errors, int(high[-1]) if deepest else n)
    area = clean + float(((start + taken) / (k * (k + 1.0))).sum())
    if last == 0 or rest <= 0:
        return area
    if np.isinf(rest):
        return area + last / (deepest + 1)
    levels, part = divmod(int(rest), last)
    end = deepest + levels + 1
    return area + last * (1 / (deepest + 1) - 1 / end) + part / (end * (end + 1))


def possible(row: PublishedRow) -> tuple[Depths, Splits] | None:
    """What a row leaves open, for rollouts of any length; None where no cohort prints so.

    Parameters
    ----------
    row : PublishedRow

    Returns
    -------
    tuple of Depths and Splits, or None
    """
    depths = _depths(row)
    if not depths.possible:
        return None
    clean = clean_counts(row)
    clean = clean[(clean >= depths.clean[0]) & (clean <= depths.clean[1])]
    found = splits(row, clean) if SUCCESSES & set(row.printed) else _any_split(row.n, clean)
    return (depths, found) if len(found.clean) else None


def _any_split(n: int, clean: np.ndarray) -> Splits:
    """The extremes of what may be where nothing on success was printed."""
    twice, nothing = np.repeat(clean, 2), np.zeros(2 * len(clean), dtype="int64")
    return Splits(twice, np.where(np.arange(len(twice)) % 2, n - twice, 0), nothing, twice)


def split_values(split: Splits, n: int) -> dict[str, tuple[np.ndarray, ...]]:
    """Counts and shares of every split of n rollouts, at its fewest and at its most clean successes; 0/0 is NaN.

    Parameters
    ----------
    split : Splits
    n : int

    Returns
    -------
    dict of str to tuple of numpy.ndarray
    """
    c, r, ends = split.clean, split.recovered, (split.fewest, split.most)
    return {
        "clean": (c,), "rr_eligible": (n - c,), "recovered": (r,), "clean_success": ends,
        "successes": tuple(r + q for q in ends), "ter": (c / n,), "rr": (ratio(r, n - c),),
        "s": tuple(ratio(q, c) for q in ends), "success": tuple((r + q) / n for q in ends),
        "success_after_error": tuple(ratio(r, r + q) for q in ends),
    }  # fmt: skip
