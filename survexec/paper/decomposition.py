"""Where the success of Llama-4 on BFCL comes from: clean rollouts, or repaired ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from survexec.datasets import load_published
from survexec.display.figures import decomposition_bars
from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import dash, number
from survexec.paper.cohort import KEYS, NAMES, RECONSTRUCTED, estimates, named, summary
from survexec.paper.piece import Made, Piece, say_below
from survexec.statistics.summary import summarize

if TYPE_CHECKING:
    import pandas as pd

    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
BENCHMARK, MODEL = "bfcl-v3", "llama-4-maverick"
COLUMNS: Final = {
    "TER": "ter", "s": "clean_success", "RR": "rr", "Success": "success", "After an error": "success_after_error",
}  # fmt: skip


def published() -> Made:
    """The four methods, and the counts of the worked case beside them."""
    table = estimates("main").query("benchmark == @BENCHMARK and model == @MODEL").droplevel(KEYS[:2])
    parts = summary("main").decomposition
    parts = parts[(parts["benchmark"] == BENCHMARK) & (parts["model"] == MODEL)]
    made = _grid(table.rename(index=NAMES), "Success of Llama-4 Maverick on BFCL-v3.", f"{RECONSTRUCTED} {_worked()}")
    return Made(made, say_below(decomposition_bars(named(parts)), RECONSTRUCTED))


def _grid(table: pd.DataFrame, caption: str, foot: str) -> Grid:
    """One row a method, one column a part."""
    rows: list[Row] = []
    for name, values in table.iterrows():
        cells = [Cell(number(values[column], 3)) for column in COLUMNS.values()]
        rows.append(Row((Cell(str(name)), *cells)))
    undefined = dash(rows, "undefined (0/0)")
    identity = "Success = TER s + (1 − TER) RR; the last column is the share of successes that had an error."
    return Grid(("Method", *COLUMNS), tuple(rows), 1, caption, "tab:decomposition", f"{identity}{undefined} {foot}")


def _worked() -> str:
    """The worked case in the words of its counts."""
    claims = load_published("claims", printed=True)
    said: Any = claims[claims["topic"] == "worked case"].set_index("quantity")["value"]
    return (
        f"Stated of {NAMES['plan_conditioned']}: {said['executable']} of {said['rollouts']} executable, "
        f"{said['clean_successes']} of them and {said['recovered_successes']} of the other {said['rr_eligible']} "
        f"successful, so {said['recovered_successes']}/{said['successes']} = "
        f"{100 * float(said['success_after_error']):.1f}% of the successes follow an error."
    )


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """The same for every cell of real rollouts; intervals stand in the main table."""
    made = summarize(rollouts, resamples=resamples)
    wide = made.frame.pivot(index=KEYS, columns="metric", values="estimate")
    wide = wide.loc[list(made.frame[KEYS].drop_duplicates().itertuples(index=False, name=None))]
    wide.index = [" · ".join(map(str, key)) for key in wide.index]
    return Made(_grid(wide, "Success, without and after an error.", ""), decomposition_bars(made))


PIECE: Final = Piece("decomposition", "Success without an error and after one", INPUTS, published, measured)
