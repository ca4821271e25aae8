"""Rollouts -> counts that add up over tasks: one array, task x cell x feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pandas as pd

from survexec.checks import COLUMNS
from survexec.errors import InputError
from survexec.protocol.trajectory import Ending, ErrorClass
from survexec.rollouts import Rollouts

CELL: Final = ("benchmark", "model", "method")

# Features of a rollout that are summed over the rollouts of a task in a cell. Y is the success.
SCALARS: Final = (
    "rollouts",  # 1
    "clean",  # 1{FED = T+1}
    "labelled",  # 1{Y is known}
    "success",  # Y
    "clean_labelled",  # 1{FED = T+1, Y is known}
    "clean_success",  # 1{FED = T+1} Y
    "fed",  # FED
    "area",  # (FED-1)/T, and 1 where T = 0
    "length",  # T
    "zero_calls",  # 1{T = 0}
)
# Features with one column a depth k = 0..K.
DEPTHS: Final = (
    "alive",  # 1{FED > k}; all rollouts at k = 0
    "reached",  # 1{T >= k}
    "at_risk",  # 1{about to make call k}: T >= k and no error before
    "errors",  # 1{FED = k <= T}
    "finished",  # 1{clean, completed, T = k}
    "censored",  # 1{clean, not completed, T = k}
)


@dataclass(frozen=True)
class Counts:
    """Sums of features with any leading axes; ``counts["clean"]`` is one of them.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (..., columns).
    columns : dict of str to int or slice
        Where each feature stands; a slice holds depths k = 0..K.
    """

    values: np.ndarray
    columns: dict[str, int | slice]
    _made: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def once(self, name: str, make: Callable[[Counts], np.ndarray]) -> np.ndarray:
        """Something made of these counts that several estimands share, made once."""
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]

    def __getitem__(self, feature: str) -> np.ndarray:
        return self.values[..., self.columns[feature]]

    @property
    def errors(self) -> np.ndarray:
        """Rollouts with FED <= T: those eligible for RR."""
        return self["rollouts"] - self["clean"]

    @property
    def errors_labelled(self) -> np.ndarray:
        """Rollouts with an error whose success is known."""
        return self["labelled"] - self["clean_labelled"]

    @property
    def recovered(self) -> np.ndarray:
        """Successes among rollouts with an error."""
        return self["success"] - self["clean_success"]


@dataclass(frozen=True)
class Tally:
    """Counts per task and cell.

    Parameters
    ----------
    counts : Counts
        Values of shape (task, cell, column), all >= 0. A task that a cell lacks has zeros.
    tasks : pandas.DataFrame
        One row a task: ``benchmark, task_id, stratum``.
    cells : pandas.DataFrame
        One row a cell: the columns that make it.

    Examples
    --------
    >>> import pandas as pd
    >>> from survexec.rollouts import Rollouts
    >>> runs = Rollouts(pd.DataFrame({"task_id": ["a", "b"], "length": [3, 2], "fed": [1, 3]}))
    >>> count(runs).total["clean"].tolist()
    [1.0]
    """

    counts: Counts
    tasks: pd.DataFrame
    cells: pd.DataFrame

    def __getitem__(self, feature: str) -> np.ndarray:
        return self.counts[feature]

    @property
    def total(self) -> Counts:
        """Counts summed over tasks, shape (cell, column)."""
        return Counts(self.counts.values.sum(axis=0), self.counts.columns)

    @property
    def present(self) -> np.ndarray:
        """Which tasks a cell has, shape (task, cell)."""
        return self["rollouts"] > 0

    def take(self, tasks: np.ndarray | slice = slice(None), cells: Sequence[int] | slice = slice(None)) -> Tally:
        """Some tasks and some cells.

        Parameters
        ----------
        tasks : boolean or integer array
        cells : list of int

        Returns
        -------
        Tally
        """
        values = self.counts.values[tasks][:, cells]
        return Tally(
            Counts(values, self.counts.columns),
            self.tasks.iloc[np.arange(len(self.tasks))[tasks]].reset_index(drop=True),
            self.cells.iloc[cells].reset_index(drop=True),
        )

    def select(self, features: Sequence[str]) -> Tally:
        """The same tally with some features only.

        Parameters
        ----------
        features : sequence of str

        Returns
        -------
        Tally
        """
        columns: dict[str, int | slice] = {}
        picked: list[int] = []
        for name in features:
            place = self.counts.columns[name]
            if isinstance(place, slice):
                columns[name] = slice(len(picked), len(picked) + place.stop - place.start)
                picked += range(place.start, place.stop)
            else:
                columns[name] = len(picked)
                picked.append(place)
        return replace(self, counts=Counts(self.counts.values[:, :, picked], columns))

    def groups(self) -> Iterator[tuple[np.ndarray, list[int]]]:
        """Cells with the same tasks, as (tasks, cells): they share their weights, which is the pairing."""
        patterns, group = np.unique(self.present, axis=1, return_inverse=True)
        for g in range(patterns.shape[1]):
            yield patterns[:, g], np.flatnonzero(group.ravel() == g).tolist()

    def merge(self, other: Tally) -> Tally:
        """The tally of the union of two sets of rollouts: counts add.

        Parameters
        ----------
        other : Tally
            With the same features.

        Returns
        -------
        Tally
        """
        if self.counts.columns != other.counts.columns:
            raise InputError("two tallies with different features cannot be merged; count both to the same depth")
        tasks = pd.concat([self.tasks, other.tasks]).drop_duplicates().sort_values(["benchmark", "task_id"])
        cells = pd.concat([self.cells, other.cells]).drop_duplicates()
        values = np.zeros((len(tasks), len(cells), self.counts.values.shape[2]))
        for tally in (self, other):
            t = _positions(tasks[["benchmark", "task_id"]], tally.tasks[["benchmark", "task_id"]])
            c = _positions(cells, tally.cells)
            values[np.ix_(t, c)] += tally.counts.values
        return Tally(Counts(values, self.counts.columns), tasks.reset_index(drop=True), cells.reset_index(drop=True))


def count(rollouts: Rollouts, by: Sequence[str] = CELL, depth: int | None = None, by_class: bool = False) -> Tally:
    """Count rollouts per task and cell.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell. Cells stand in order of first appearance, tasks in order of their names.
    depth : int, optional
        Count the features by depth too, for k = 0..depth.
    by_class : bool
        With a depth: count errors by class too, as "errors:schema" and so on.

    Returns
    -------
    Tally

    Raises
    ------
    InputError
        If there are no rollouts, or a column of ``by`` is not there.
    """
    frame, by = rollouts.frame, checked_by(by)
    if frame.empty:
        raise InputError("there are no rollouts")
    task, tasks = rollouts.tasks
    cell, cells = cells_of(frame, by)
    flat = task * len(cells) + cell
    length, fed = frame["length"].to_numpy("int64"), frame["fed"].to_numpy("int64")
    # real-valued sums must not depend on the order of rows
    order = np.lexsort((length, fed, flat))
    flat, size = flat[order], len(tasks) * len(cells)
    columns: dict[str, int | slice] = {}
    blocks: list[np.ndarray] = []
    for name, values in scalars_of(frame, length, fed).items():
        columns[name] = len(blocks)
        blocks.append(np.bincount(flat, values[order], minlength=size)[:, None])
    start = len(blocks)
    completed = (frame["ending"] == str(Ending.COMPLETED)).to_numpy()
    hits_at = {} if depth is None else by_depth(length, fed, completed, depth)
    if hits_at and by_class:
        classes = frame["error_class"].to_numpy()[:, None]
        hits_at |= {f"errors:{c}": hits_at["errors"] * (classes == str(c)) for c in ErrorClass}
    for name, hits in hits_at.items():
        columns[name] = slice(start, start + hits.shape[1])
        start += hits.shape[1]
        blocks.append(np.stack([np.bincount(flat, h[order], minlength=size) for h in hits.T], axis=1))
    values = np.concatenate(blocks, axis=1).reshape(len(tasks), len(cells), -1)
    return Tally(Counts(values, columns), tasks, cells)


def checked_by(by: Sequence[str] | str) -> tuple[str, ...]:
    """The columns that make a cell, as a tuple of known names.

    Raises
    ------
    InputError
        If one is unknown or stands twice.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in COLUMNS:
            raise InputError(f"by = {name!r} is no column; there are: {', '.join(COLUMNS)}")
    if len(set(names)) != len(names):
        raise InputError(f"by names a column twice: {', '.join(names)}")
    return names


def cells_of(frame: pd.DataFrame, by: tuple[str, ...]) -> tuple[np.ndarray, pd.DataFrame]:
    """Code of each rollout's cell, and the cells in order of first appearance."""
    if not by:
        return np.zeros(len(frame), dtype="int64"), pd.DataFrame(index=range(1))
    names = pd.MultiIndex.from_frame(frame[list(by)].astype("string").fillna("").astype(object))
    codes, unique = names.factorize()
    return codes, pd.DataFrame(unique.tolist(), columns=list(by))


def scalars_of(frame: pd.DataFrame, length: np.ndarray, fed: np.ndarray) -> dict[str, np.ndarray]:
    """Each scalar feature of each rollout."""
    clean = (fed > length).astype(float)
    labelled = frame["success"].notna().to_numpy(float)
    success = frame["success"].fillna(False).to_numpy(float)
    # T = 0: nothing was asked of the environment, nothing was refused; 1 keeps TER <= AUC-PEC
    area = np.divide(fed - 1, length, out=np.ones(len(frame)), where=length > 0)
    values = (
        np.ones(len(frame)), clean, labelled, success, clean * labelled, clean * success,
        fed.astype(float), area, length.astype(float), (length == 0).astype(float),
    )  # fmt: skip
    return dict(zip(SCALARS, values, strict=True))


def by_depth(length: np.ndarray, fed: np.ndarray, completed: np.ndarray, depth: int) -> dict[str, np.ndarray]:
    """Each feature by depth of each rollout, in the order of `DEPTHS`.

    Parameters
    ----------
    length, fed : numpy.ndarray of int
        T and first-error depth, shape (rollout,).
    completed : numpy.ndarray of bool
        Whether it ended by itself.
    depth : int

    Returns
    -------
    dict of str to numpy.ndarray
        Shape (rollout, depth + 1), values 0 and 1.
    """
    k = np.arange(depth + 1)
    T, F, done = length[:, None], fed[:, None], completed[:, None]
    clean = F > T
    values = (
        (k < F) | (k == 0),
        k <= T,
        (k <= T) & (k <= F),
        (k == F) & ~clean,
        clean & done & (k == T),
        clean & ~done & (k == T),
    )
    return {name: hit.astype(float) for name, hit in zip(DEPTHS, values, strict=True)}


def _positions(among: pd.DataFrame, wanted: pd.DataFrame) -> np.ndarray:
    """Where the rows of one frame stand in another."""
    if not len(among.columns):
        return np.zeros(len(wanted), dtype="int64")
    return pd.MultiIndex.from_frame(among).get_indexer(pd.MultiIndex.from_frame(wanted))
