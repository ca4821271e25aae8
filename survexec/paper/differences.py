"""What Dual-Loop changes against Plan-Conditioned ReAct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from survexec.datasets import load_published
from survexec.display.figures import forest
from survexec.display.figures.places import difference_by_place
from survexec.display.markup import Cell, Grid, Row
from survexec.display.tables import grid
from survexec.display.wording import interval
from survexec.paper.cohort import KEYS, NAMES, differences, named, place, signed
from survexec.paper.piece import Made, Piece, say_below
from survexec.statistics.comparison import compare
from survexec.statistics.estimands import METRICS

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
SIDES: Final = ("dual_loop", "plan_conditioned")
SHOWN: Final = ("ter", "auc_pec", "success")
BOUNDS: Final = "Reconstructed from published aggregates (arXiv 2610.40444), over every cohort that agrees."
INTERVAL: Final = (
    "95% intervals hold whatever the pairing of tasks, which is not public: wider than a paired interval of the same "
    "rollouts would be. Points are the middle of what rounding leaves open. No test is made."
)


def published() -> Made:
    """The differences of six places, within the bounds of every cohort and every pairing."""
    parts = [differences(metric).assign(metric=metric) for metric in SHOWN]
    frame = pd.concat(parts, ignore_index=True)
    # rounding leaves a difference open: its middle is that of the printed values, or of the counts behind them
    frame["difference"] = (frame["difference_lower"] + frame["difference_upper"]) / 2
    frame = frame[[*KEYS[:2], "metric", "difference", "lower", "upper"]]
    rows = []
    for key, cells in frame.groupby(KEYS[:2], sort=False):
        texts = [Cell(signed(row.difference, 3), interval(row.lower, row.upper, 2)) for row in cells.itertuples()]
        rows.append(Row((Cell(place(*key)), *texts)))
    made = Grid(
        ("Benchmark · model", *(METRICS[name].label for name in SHOWN)), tuple(rows), 1,
        f"{NAMES[SIDES[0]]} minus {NAMES[SIDES[1]]}.", "tab:differences", f"{BOUNDS} {INTERVAL} {_stated()}",
    )  # fmt: skip
    return Made(made, say_below(difference_by_place(named(frame)), f"{BOUNDS} {INTERVAL}"))


def _stated() -> str:
    """What the text says of these differences: those of rounded cells, which may differ by one in the last digit."""
    claims = load_published("claims", printed=True)
    told = claims[claims["topic"] == "difference"].to_dict("records")
    listed = "; ".join(f"{place(c['benchmark'], c['model'])} {METRICS[c['quantity']].label} {c['value']}" for c in told)
    return f"Stated: {listed}; differences of printed values, which rounding may have moved by up to 0.01."


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """Paired differences of real rollouts, every pair of methods."""
    made = compare(rollouts, metrics=list(SHOWN), resamples=resamples)
    return Made(grid(made), forest(made))


PIECE: Final = Piece("differences", "Differences between methods", INPUTS, published, measured)
