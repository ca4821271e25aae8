"""Table 1: what each metric can see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import DASH
from survexec.paper.piece import Made, Piece

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

SIGHTS: Final = ("Reference-free", "State", "Prefix", "Recovery")
# Of each metric, which of the sights it has: y yes, n no, p only in part.
SEEN: Final = {
    "Final success": "npnp",
    "Match with a reference trajectory": "nnpn",
    "Share of valid calls": "ypnn",
    "PEC(k)": "yyyn",
    "FED": "yyyn",
    "TER": "yyyn",
    "AUC-PEC": "yyyn",
    "RR": "pyyy",
}
_WORDS: Final = {"y": "yes", "n": DASH, "p": "in part"}


def published() -> Made:
    """The table by the definitions."""
    rows = tuple(Row((Cell(name), *(Cell(_WORDS[mark]) for mark in marks))) for name, marks in SEEN.items())
    return Made(Grid(
        ("Metric", *SIGHTS), rows, 1, "What each metric sees.", "tab:metrics",
        "By the definitions; the cells of the paper's own Table 1 are not public. Reference-free: no gold trajectory "
        "or goal state. State: judged in the state that earlier calls left; final success sees the last one alone. "
        "Prefix: knows where the first error is. Recovery: tells success after an error from success without; "
        "final success mixes them. RR needs a label of success.",
    ))  # fmt: skip


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """The same, since it depends on no rollouts."""
    return published()


PIECE: Final = Piece("metrics", "What each metric sees", (), published, measured)
