"""The table of PEC at depths 1 to 4; what is not stated shows the bounds that the aggregates imply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from survexec.datasets import load_published
from survexec.display.markup import Cell, Grid, Row
from survexec.display.tables import grid
from survexec.display.wording import interval, number
from survexec.paper.cohort import KEYS, NAMES, RECONSTRUCTED, pec, pec_bounds, place
from survexec.paper.piece import Made, Piece
from survexec.statistics.curves import curves

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
DEPTHS: Final = (1, 2, 3, 4)


def published() -> Made:
    """The ten rows of the paper, computed from one cohort."""
    stated = load_published("pec_at_k")
    stated = pd.concat([rows for _, rows in stated.groupby(KEYS[:2], sort=False)])
    values = pec(max(DEPTHS)).set_index([*KEYS, "k"])["estimate"]
    rows = tuple(_row(cell, values) for cell in stated.itertuples(index=False))
    table = Grid(
        ("Method", *(f"PEC@{k}" for k in DEPTHS)), rows, 1, "Prefix executability at depths 1 to 4.", "tab:pec_at_k",
        f"{RECONSTRUCTED} In brackets: not stated; the sharp bounds that the aggregates imply.",
        group="Benchmark · model",
    )  # fmt: skip
    return Made(table)


def _row(cell: tuple, values: pd.Series) -> Row:
    """A row: values where the paper has them, bounds where not."""
    key, stated = cell[: len(KEYS)], cell[len(KEYS) :]
    cells = [Cell(NAMES[key[2]])]
    for k, value in zip(DEPTHS, stated, strict=True):
        if pd.isna(value):
            low, high = pec_bounds(k).loc[key, ["lower", "upper"]]
            cells.append(Cell(interval(low, high, 3)))
        else:
            cells.append(Cell(number(values[(*key, k)], 2)))
    return Row(tuple(cells), place(key[0], key[1]))


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """The same of real rollouts, with intervals and those at risk."""
    return Made(grid(curves(rollouts, kind="pec", max_depth=max(DEPTHS), resamples=resamples)))


PIECE: Final = Piece("pec_at_k", "Prefix executability at depths 1 to 4", INPUTS, published, measured)
