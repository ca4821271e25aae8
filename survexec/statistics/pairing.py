"""Which cells are compared, on which tasks: pairs by task, what is left out, replicates that share their weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from survexec.errors import InputError, PairingError
from survexec.protocol.trajectory import UNKNOWN
from survexec.statistics.estimands import Metric
from survexec.statistics.resampling import Estimator, Replicates, replicate
from survexec.statistics.tally import CELL, Counts, Tally, checked_by


@dataclass(frozen=True, eq=False)
class Pair:
    """Two cells on the tasks that both have.

    Parameters
    ----------
    within : dict
        What the two share.
    a, b : str
        The values of the compared column; differences are a minus b.
    cells : tuple of int
        Cells a and b in the whole tally.
    tally : Tally
        The common tasks, cells a and b.
    common : numpy.ndarray of bool
        Which tasks of the whole tally they are.
    left_out : list of str
        Tasks that only one side has.
    """

    within: dict[str, Any]
    a: str
    b: str
    cells: tuple[int, int]
    tally: Tally
    common: np.ndarray
    left_out: list[str]

    @property
    def name(self) -> str:
        """The pair in words."""
        return named(f"{self.a} - {self.b}", self.within)

    @property
    def notes(self) -> list[str]:
        """The tasks left out, where there are any."""
        return left_out(self.name, self.left_out)


def named(sides: str, within: dict[str, Any]) -> str:
    """Sides that are compared, and where, in words."""
    place = " / ".join(str(value) for value in within.values() if value != UNKNOWN)
    return sides + (f" in {place}" if place else "")


def undefined(metric: Metric, total: Counts, sides: tuple[str, str]) -> str:
    """On which side a metric has no denominator, and why; empty where it has one on both.

    Parameters
    ----------
    metric : Metric
    total : Counts
        Of the two sides.
    sides : (str, str)
        Their names.

    Returns
    -------
    str
    """
    for at, name in enumerate(sides):
        if metric.denominator(total)[at] == 0:
            return f"undefined in {name}: {metric.reason(total, at)} (0/0)"
    return ""


def left_out(name: str, tasks: list[str]) -> list[str]:
    """The note of tasks that not all sides have; none where there are none."""
    if not tasks:
        return []
    some = ", ".join(tasks[:40]) + (", ..." if len(tasks) > 40 else "")
    return [f"{name}: {len(tasks)} of the tasks are not on all sides and are left out: {some}"]


def strangers(tally: Tally, cells: Sequence[int]) -> str:
    """Some task names of two cells, which show why they do not match."""
    tasks, present = tally.tasks["task_id"], tally.present
    sides = [", ".join(map(repr, tasks[present[:, cell]].head(3))) for cell in cells]
    return f"(tasks such as {sides[0]} against {sides[1]})"


def checked_design(between: str, within: Sequence[str] | str | None) -> tuple[str, tuple[str, ...]]:
    """The compared column and those a pair must share, by default the others of ``benchmark, model, method``.

    Raises
    ------
    InputError
        If a name is unknown or in both.
    """
    (between,) = checked_by(between)
    shared = tuple(name for name in CELL if name != between) if within is None else checked_by(within)
    if between in shared:
        raise InputError(f"between = {between!r} cannot also be in within")
    return between, shared


def paired(
    tally: Tally, between: str, within: tuple[str, ...], baseline: str | None
) -> tuple[list[Pair], tuple[str, ...]]:
    """Every pair of cells with common tasks, and a sentence for each that has none.

    Parameters
    ----------
    tally : Tally
        Counted by ``(*within, between)``.
    between : str
    within : tuple of str
    baseline : str or None
        Compare each value with this one only; None: all pairs.

    Returns
    -------
    pairs : list of Pair
    refused : tuple of str

    Raises
    ------
    InputError
        If there is nothing to compare.
    PairingError
        If no pair has a task in common.
    """
    wanted = wanted_pairs(tally, between, within, baseline)
    values = tally.cells[between].astype(str)
    present, tasks = tally.present, tally.tasks["task_id"]
    pairs, refused = [], []
    for a, b in wanted:
        both, either = present[:, a] & present[:, b], present[:, a] | present[:, b]
        if not both.any():
            refused.append(f"{values[a]} and {values[b]} have no task in common {strangers(tally, (a, b))}")
            continue
        place = dict(tally.cells.loc[a, list(within)])
        two = tally.take(both, [a, b])
        pairs.append(Pair(place, values[a], values[b], (a, b), two, both, tasks[either & ~both].tolist()))
    if not pairs:
        raise PairingError("no pair can be made: " + "; ".join(refused))
    return pairs, tuple(refused)


def places(tally: Tally, within: tuple[str, ...]) -> list[tuple[dict[str, Any], list[int]]]:
    """Cells that share the columns of a place: its values, and which cells, in order of appearance.

    Parameters
    ----------
    tally : Tally
    within : tuple of str
        Empty: all cells are of one place.

    Returns
    -------
    list of (dict, list of int)
    """
    cells = tally.cells
    groups = cells.groupby(list(within), sort=False).indices.values() if within else [np.arange(len(cells))]
    found = [sorted(map(int, group)) for group in groups]
    return [(dict(cells.loc[group[0], list(within)]), group) for group in found]


def wanted_pairs(tally: Tally, between: str, within: tuple[str, ...], baseline: str | None) -> list[tuple[int, int]]:
    """Pairs of cells (a, b) to compare, b the baseline where there is one.

    Parameters
    ----------
    tally : Tally
        Counted by ``(*within, between)``.
    between : str
    within : tuple of str
    baseline : str or None

    Returns
    -------
    list of (int, int)

    Raises
    ------
    InputError
        If there is none.
    """
    cells = tally.cells
    there = cells[between].astype(str).unique()
    if baseline is not None and baseline not in there:
        raise InputError(f"baseline {baseline!r} is no {between}; there are: {', '.join(there)}")
    found: list[tuple[int, int]] = []
    for _, group in places(tally, within):
        if baseline is None:
            found += itertools.combinations(group, 2)
        else:
            base = [cell for cell in group if cells[between][cell] == baseline]
            found += [(cell, b) for b in base for cell in group if cell != b]
    if not found:
        values = ", ".join(map(repr, there))
        raise InputError(f"nothing to compare: {between} has one value only within each {' x '.join(within)}: {values}")
    return found


def differences(
    tally: Tally, pairs: Sequence[Pair], estimators: Sequence[Estimator], resamples: int, seed: int
) -> list[Replicates]:
    """Replicates of a minus b for each pair, on its common tasks.

    Parameters
    ----------
    tally : Tally
    pairs : sequence of Pair
    estimators : sequence of callable
    resamples, seed : int

    Returns
    -------
    list of Replicates
        One cell each. Pairs with the same common tasks are drawn together: their cells share one set of weights.
    """
    drawn: dict[int, Replicates] = {}
    for both in {pair.common.tobytes(): pair.common for pair in pairs}.values():
        inside = [at for at, pair in enumerate(pairs) if (pair.common == both).all()]
        cells = sorted({cell for at in inside for cell in pairs[at].cells})
        sample = replicate(tally.take(both, cells), estimators, resamples, seed)
        for at in inside:
            drawn[at] = sample.difference(*(cells.index(cell) for cell in pairs[at].cells))
    return [drawn[at] for at in range(len(pairs))]
