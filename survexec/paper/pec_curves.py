"""PEC over depth: one cohort's curve, the bounds of every cohort, and the stated points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from survexec.datasets import load_published
from survexec.display.figures import pec_beside_eligible
from survexec.display.figures.bounded import bounded_curves
from survexec.display.markup import Cell, Grid, Row
from survexec.display.tables import grid
from survexec.display.wording import interval, number
from survexec.paper.cohort import KEYS, NAMES, RECONSTRUCTED, named, pec, pec_bounds, place
from survexec.paper.piece import Made, Piece, say_below
from survexec.statistics.curves import curves

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
DEEPEST: Final = 8


def published() -> Made:
    """The cells whose curve is stated at four depths."""
    stated = load_published("pec_at_k").dropna()
    shown = stated[KEYS].merge(pec(DEEPEST), on=KEYS)
    limits = pd.concat([pec_bounds(k).assign(k=k) for k in range(1, DEEPEST + 1)]).reset_index()
    points = stated.melt(KEYS, var_name="k", value_name="stated")
    points = points.assign(k=points["k"].str.removeprefix("pec_").astype(int))
    frame = shown.merge(limits, on=[*KEYS, "k"], how="left").merge(points, on=[*KEYS, "k"], how="left")
    frame = frame[[*KEYS, "k", "estimate", "lower", "upper", "stated"]].fillna({"lower": 1.0, "upper": 1.0})  # k = 0
    rows = tuple(_row(key, cell) for key, cell in frame.groupby(KEYS, sort=False))
    table = Grid(
        ("Method", *(f"k = {k}" for k in range(1, DEEPEST + 1))), rows, 1,
        "PEC(k) where it is stated, and in brackets the sharp bounds beyond.", "tab:pec_curves", RECONSTRUCTED,
        group="Benchmark · model",
    )  # fmt: skip
    return Made(table, say_below(bounded_curves(named(frame)), RECONSTRUCTED))


def _row(key: tuple, cell: pd.DataFrame) -> Row:
    cells = [
        Cell(interval(at.lower, at.upper, 3) if pd.isna(at.stated) else number(at.estimate, 2))
        for at in cell[cell["k"] > 0].itertuples()
    ]
    return Row((Cell(NAMES[key[2]]), *cells), place(key[0], key[1]))


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """PEC beside PEC_elig of real rollouts, with intervals and bands."""
    made = curves(rollouts, kind="pec", resamples=resamples)
    eligible = curves(rollouts, kind="pec_elig", resamples=resamples)
    figure = pec_beside_eligible(made, eligible)
    return Made(grid(replace(made, frame=made.frame[made.frame["k"] <= DEEPEST])), figure)


PIECE: Final = Piece("pec_curves", "Prefix executability over depth", INPUTS, published, measured)
