"""The verifier study: another verifier changes cost, not execution."""

from __future__ import annotations

from typing import Final

from survexec.datasets import load_published
from survexec.display.markup import Cell, Grid, Row
from survexec.paper.cohort import AS_PUBLISHED, signed
from survexec.paper.piece import Made, Piece

INPUTS: Final = ("verifier",)


def published() -> Made:
    """The one variant whose numbers are stated, and what is stated of all."""
    rows = tuple(
        Row((
            Cell(row["verifier"].upper()), Cell(str(row["k_val"])), Cell(signed(row["ter_change"], 3)),
            Cell(signed(row["token_change"] / 1000, 1) + "k"), Cell(signed(row["latency_change_s"], 1)),
        ))
        for row in load_published("verifier").to_dict("records")
    )  # fmt: skip
    return Made(Grid(
        ("Verifier", "K_val", "TER", "Tokens", "Latency (s)"), rows, 2,
        "Changes with another verifier: plans of GPT-5.4 (high) held fixed, 164 tau3-bench tasks.",
        "tab:verifier_study",
        f"{AS_PUBLISHED} Of every variant it is stated that the paired 95% intervals of the changes of TER and AUC-PEC "
        "cover zero.",
    ))  # fmt: skip


PIECE: Final = Piece(
    "verifier_study", "Another verifier, plans held fixed", INPUTS, published,
    skipped="the verifier study repeats published changes",
)  # fmt: skip
