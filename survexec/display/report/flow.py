"""Where rollouts went on their way from the sources to the pairs; every step is what stays plus what leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.rollouts import ASIDE, counted, ending_is_crash
from survexec.statistics.comparison import Comparison
from survexec.statistics.pairing import named, wanted_pairs
from survexec.statistics.tally import CELL, Counts, Tally, cells_of

_LEAVING: Final = {
    "crashed": "Crashed: no verdict on the agent",
    "fault": "Faulty",
    "past": "Faulty when the table was made",
}
# Sources and reasons named one by one; the rest is counted together.
_NAMED: Final = 8
_LONGEST: Final = 160


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the rollouts or tasks of a step.

    Parameters
    ----------
    name : str
    count : int
    parts : tuple of Part
        What it consists of, where that is known; their counts add up to its own.
    note : str
    """

    name: str
    count: int
    parts: tuple[Part, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the flow.

    Parameters
    ----------
    stage : {"found", "read", "analysed", "pair"}
    whole : Part
        What comes to this step.
    leaving : tuple of Part
        What leaves after it.
    unit : {"rollouts", "tasks"}
    note : str
    """

    stage: str
    whole: Part
    leaving: tuple[Part, ...] = ()
    unit: str = "rollouts"
    note: str = ""

    @property
    def staying(self) -> int:
        """What goes on to the next step."""
        return self.whole.count - sum(part.count for part in self.leaving)


def flow(
    ledger: pd.DataFrame, frame: pd.DataFrame, comparison: Comparison | str, by: Sequence[str] = CELL
) -> list[Step]:
    """Count rollouts from the sources to the cells, and tasks from the sides of each pair to the pairs.

    Parameters
    ----------
    ledger, frame : pandas.DataFrame
        Of the same `Rollouts`.
    comparison : Comparison or str
        Of these rollouts; a string is the reason why there is none.
    by : sequence of str
        Columns that make a cell.

    Returns
    -------
    list of Step
        "found" and "analysed", between them "read" where some of the rollouts read are not analysed, then a "pair" for
        each pair that was wanted, which counts tasks; one without common tasks has none that stay.

    Notes
    -----
    A file that could not be read holds nobody knows how many rollouts: it is told of in a note and not counted. The
    diagram of a trial's participants is the model: enrolled, excluded with reasons, allocated, analysed.

    References
    ----------
    Schulz, Altman and Moher (2010), CONSORT 2010 Statement, BMJ 340:c332.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods()
    >>> steps = flow(runs.ledger, runs.frame, "not compared")
    >>> [(step.stage, step.whole.count, step.staying) for step in steps]
    [('found', 400, 361), ('analysed', 361, 361)]
    """
    told = ledger[(ledger["unit"] == "rollouts") & ledger["status"].isin(["kept", *ASIDE])]
    aside = told[told["status"] != "kept"]
    read, here = int(told.loc[told["status"] == "kept", "count"].sum()), len(frame)
    parts = [Part(source, count) for source, count in _sums(told["source"], told["count"])]
    if read < here:
        parts.append(Part("of which the ledger does not tell", here - read))
    files = ledger[(ledger["unit"] == "files") & ledger["status"].isin(ASIDE)]["count"].sum()
    lost = f"{counted(int(files), 'files')} could not be read: nobody knows with how many rollouts" if files else ""
    leaving = tuple(
        Part(words, int(rows["count"].sum()), _shortened(_reasons(rows), "further reasons"))
        for status, words in _LEAVING.items()
        if len(rows := aside[aside["status"] == status])
    )
    found = Part(
        "found in the sources", max(read, here) + int(aside["count"].sum()), _shortened(parts, "further sources")
    )
    steps = [Step("found", found, leaving, note=lost)]
    if read > here:
        steps.append(Step("read", Part("kept when read", read), (Part("Not among those analysed here", read - here),)))
    steps.append(_analysed(frame, by))
    return steps + ([] if isinstance(comparison, str) else _paired(frame, comparison.made))


def _sums(names: pd.Series, counts: pd.Series) -> list[tuple[str, int]]:
    """Counts by name, in order of appearance."""
    summed = counts.groupby(names.astype(str), sort=False).sum()
    return [(str(name), int(count)) for name, count in summed.items()]


def _reasons(rows: pd.DataFrame) -> list[Part]:
    """Ledger lines by reason, the most frequent first; numbers inside a reason do not tell reasons apart."""
    rows = rows.assign(reason=rows["reason"].fillna("").astype(str))
    kinds = rows["reason"].str.replace(r"\d+", "#", regex=True)
    grouped = rows.groupby(kinds, sort=False).agg(reason=("reason", "first"), count=("count", "sum"))
    grouped = grouped.sort_values("count", ascending=False, kind="stable")
    return [Part(_cut(reason) or "no reason recorded", int(count)) for reason, count in grouped.itertuples(index=False)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _shortened(parts: Sequence[Part], rest: str) -> tuple[Part, ...]:
    """The first parts, and the others as one; their counts add up to the same."""
    if len(parts) <= _NAMED:
        return tuple(parts)
    others = parts[_NAMED - 1 :]
    return (*parts[: _NAMED - 1], Part(f"{len(others)} {rest}", sum(part.count for part in others)))


def _analysed(frame: pd.DataFrame, by: Sequence[str]) -> Step:
    """The rollouts of each cell."""
    counts, cells = _counts(frame, by)
    varying = [name for name in cells if cells[name].nunique() > 1]
    names = [" / ".join(row) for row in cells[varying].astype(str).itertuples(index=False)] if varying else []
    parts = tuple(
        Part(name, int(cell.sum()), note=_of_tasks(cell)) for name, cell in zip(names, counts.T, strict=False)
    )
    crashed = int(ending_is_crash(frame).sum())
    note = f"{crashed} of them crashed and are kept" if crashed else ""
    return Step("analysed", Part("analysed", len(frame), parts, _of_tasks(counts.sum(axis=1))), note=note)


def _counts(frame: pd.DataFrame, by: Sequence[str]) -> tuple[np.ndarray, pd.DataFrame]:
    """Rollouts of each task in each cell, and the cells."""
    codes, cells = cells_of(frame, tuple(by))
    task, tasks = pd.MultiIndex.from_frame(frame[["benchmark", "task_id"]]).factorize()
    counts = np.zeros((len(tasks), len(cells)), dtype=int)
    np.add.at(counts, (task, codes), 1)
    return counts, cells


def _of_tasks(rollouts: np.ndarray) -> str:
    return f"of {counted(int((rollouts > 0).sum()), 'tasks')}"


def _paired(frame: pd.DataFrame, made: dict[str, Any]) -> list[Step]:
    """For each pair the tasks of either side, those that only one has, and those that both have."""
    between, within = made["between"], tuple(made["within"])
    counts, cells = _counts(frame, (*within, between))
    tally = Tally(Counts(counts[:, :, None], {"rollouts": 0}), pd.DataFrame(index=range(len(counts))), cells)
    varying = [name for name in within if cells[name].nunique() > 1]
    steps = []
    for pair in wanted_pairs(tally, between, within, made["baseline"]):
        two, names = counts[:, pair], [str(cells[between][cell]) for cell in pair]
        both, either = (two > 0).all(axis=1), (two > 0).any(axis=1)
        alone = [int((either & (two[:, 1 - side] == 0)).sum()) for side in (0, 1)]
        leaving = tuple(Part(f"only {name} has", n) for name, n in zip(names, alone, strict=True) if n)
        name = named(" against ".join(names), {place: cells[place][pair[0]] for place in varying})
        a, b = two[both].sum(axis=0)
        note = "" if a == b == both.sum() else f"{a} and {b} rollouts"
        steps.append(Step("pair", Part(name, int(either.sum())), leaving, "tasks", note))
    return steps
