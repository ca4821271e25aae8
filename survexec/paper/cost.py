"""What checking plans costs on tau3-bench."""

from __future__ import annotations

from typing import Final

from survexec.datasets import load_published
from survexec.display.markup import Cell, Grid, Row
from survexec.paper.cohort import AS_PUBLISHED, NAMES, signed
from survexec.paper.piece import Made, Piece

INPUTS: Final = ("cost",)
COLUMNS: Final = {"Agent tokens": "token_change", "Latency": "latency_change"}


def published() -> Made:
    """The changes as they were printed."""
    rows = tuple(
        Row((Cell(NAMES[row["model"]]), *(Cell(signed(row[name])) for name in COLUMNS.values())))
        for row in load_published("cost").to_dict("records")
    )
    return Made(Grid(
        ("Model", *COLUMNS), rows, 1, "Relative change of cost on tau3-bench, Dual-Loop against Plan-Cond. ReAct.",
        "tab:cost", AS_PUBLISHED,
    ))  # fmt: skip


PIECE: Final = Piece(
    "cost", "Cost of checking plans on tau3-bench", INPUTS, published,
    skipped="the cost table repeats published changes of tokens and latency",
)  # fmt: skip
