"""Transfer to tau3-bench: where checking the plan beforehand brings nothing."""

from __future__ import annotations

from typing import Final

import pandas as pd

from survexec.datasets import load_published
from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import DASH, number
from survexec.paper.cohort import KEYS, MARK, NAMES, RECONSTRUCTED, estimates, place
from survexec.paper.piece import Made, Piece, say_below
from survexec.paper.rank_inversion import ranked, slopes

INPUTS: Final = ("tau3", "claims")
COLUMNS: Final = {"TER": "ter", "AUC-PEC": "auc_pec", "Success": "success"}


def published() -> Made:
    """The cells that the write-ups state; one without a TER stands as published."""
    stated, computed = load_published("tau3").set_index(KEYS), estimates("tau3")
    rows = tuple(_row(key, stated.loc[key], computed) for key in stated.index)
    table = Grid(
        ("Method", *COLUMNS), rows, 1, "Transfer to tau3-bench airline and retail: 164 tasks a row.",
        "tab:tau3_transfer",
        f"{RECONSTRUCTED} {DASH}: not stated. {MARK}: as published, without a cohort. {_ranges()}",
        group="Benchmark · model",
    )  # fmt: skip
    complete = computed[computed["success"].notna()]
    return Made(table, say_below(slopes(*ranked(complete, ("success", "ter"))), RECONSTRUCTED))


def _row(key: tuple, stated: pd.Series, computed: pd.DataFrame) -> Row:
    """A row: computed where there is a cohort, as published where not, a dash where nothing is stated."""
    known = key in computed.index
    cells = [
        Cell(DASH)
        if pd.isna(stated[name])
        else Cell(number(computed.loc[key, name] if known else stated[name], 2), mark="" if known else MARK)
        for name in COLUMNS.values()
    ]
    return Row((Cell(NAMES[key[2]]), *cells), place(key[0], key[1]))


def _ranges() -> str:
    """What is stated of Llama-4, whose rows are not."""
    claims = load_published("claims", printed=True)
    said = claims[claims["topic"] == "range"].set_index(["quantity", "side"])["value"]
    ter, auc = (f"{said[name, 'lowest']} to {said[name, 'highest']}" for name in ("ter", "auc_pec"))
    tie = said["success", "tied by three methods"]
    return f"Llama-4 Maverick, as published: three methods tie at success {tie}, TER {ter}, AUC-PEC {auc}."


PIECE: Final = Piece(
    "tau3_transfer", "Transfer to tau3-bench", INPUTS, published,
    skipped="the transfer table repeats what was published on tau3-bench; the main table shows your benchmarks",
)  # fmt: skip
