"""Who is first depends on the metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from survexec.display.figures import rank_bump
from survexec.display.figures.slopes import rank_slopes
from survexec.display.markup import Cell, Grid, Row
from survexec.display.tables import grid
from survexec.display.wording import number
from survexec.paper.cohort import KEYS, NAMES, RECONSTRUCTED, estimates, named, place
from survexec.paper.piece import Made, Piece, say_below
from survexec.statistics.estimands import METRICS
from survexec.statistics.ranks import rank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
RANKED: Final = ("success", "ter", "auc_pec")


def published() -> Made:
    """Ranks by the values of one cohort, as they are printed; without rollouts nothing says how sure they are."""
    table, ranks = ranked(estimates("main"), RANKED)
    rows = tuple(_row(key, table.loc[key], ranks.loc[key]) for key in table.index)
    header = [column for name in RANKED for column in (METRICS[name].label, "Rank")]
    made = Grid(
        ("Method", *header), rows, 1, "Ranks by success and by execution.", "tab:rank_inversion",
        f"{RECONSTRUCTED} Ranks of the printed values, ties share one; there are no rollouts to say how sure they are.",
        group="Benchmark · model", together=2,
    )  # fmt: skip
    return Made(made, say_below(slopes(table, ranks), RECONSTRUCTED))


def ranked(table: pd.DataFrame, metrics: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Values as they are printed, and their ranks within each benchmark and model, 1 the greatest."""
    values = table[list(metrics)].map(lambda value: round(float(value), 2))
    return values, values.groupby(level=KEYS[:2]).rank(ascending=False)


def slopes(values: pd.DataFrame, ranks: pd.DataFrame) -> Figure:
    """The figure of values and ranks."""
    long = [
        table.rename_axis(columns="metric").stack().rename(name)
        for table, name in ((values, "estimate"), (ranks, "rank"))
    ]
    tidy = named(pd.concat(long, axis=1).reset_index()).rename(columns={"method": "value"})
    return rank_slopes(tidy[[*KEYS[:2], "value", "metric", "estimate", "rank"]])


def _row(key: Any, values: pd.Series, ranks: pd.Series) -> Row:
    cells = [Cell(NAMES[key[2]])]
    for name in RANKED:
        cells += [Cell(number(values[name], 2)), Cell(f"{ranks[name]:g}")]
    return Row(tuple(cells), place(key[0], key[1]))


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """Ranks on the shared tasks of real rollouts, with their uncertainty."""
    made = rank(rollouts, metrics=RANKED, resamples=resamples)
    return Made(grid(made), rank_bump(made))


PIECE: Final = Piece("rank_inversion", "Ranks by success and by execution", INPUTS, published, measured)
