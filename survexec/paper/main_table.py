"""The main table: execution, recovery and success of every method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from survexec.display.markup import Grid
from survexec.display.tables import grid
from survexec.paper.cohort import RECONSTRUCTED, estimates, rows_of
from survexec.paper.piece import Made, Piece
from survexec.statistics.summary import Summary, summarize

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
COLUMNS: Final = {
    "TER": ("ter", 2), "Mean FED": ("mean_fed", 2), "AUC-PEC": ("auc_pec", 2), "RR-eligible": ("rr_eligible", 0),
    "RR": ("rr", 2), "Success": ("success", 2),
}  # fmt: skip


def published() -> Made:
    """The 24 cells, computed from one cohort."""
    rows = tuple(rows_of(estimates("main"), dict(COLUMNS.values())))
    table = Grid(
        ("Method", *COLUMNS), rows, 1, "Execution, recovery and success: 200 tasks a row.", "tab:main_table",
        f"{RECONSTRUCTED} RR-eligible: rollouts with an error.", group="Benchmark · model",
    )  # fmt: skip
    return Made(table)


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """The same of real rollouts, with intervals."""
    return Made(shown(summarize(rollouts, resamples=resamples)))


def shown(summary: Summary) -> Grid:
    """The table of a summary: the columns of the paper, and how many rollouts and tasks there are."""
    kept = (*(name for name, _ in COLUMNS.values()), "rollouts", "tasks")
    return grid(replace(summary, frame=summary.frame[summary.frame["metric"].isin(kept)]))


PIECE: Final = Piece("main_table", "Execution, recovery and success", INPUTS, published, measured)
