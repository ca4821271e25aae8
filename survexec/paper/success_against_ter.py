"""Success against TER: equal success from clean execution or from repair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from matplotlib.lines import Line2D

from survexec.display import figures, style
from survexec.display.figures.recovery import LINES
from survexec.display.markup import Grid
from survexec.paper import main_table
from survexec.paper.cohort import KEYS, RECONSTRUCTED, estimates, named, rows_of, summary
from survexec.paper.piece import Made, Piece, say_below
from survexec.statistics.summary import summarize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from survexec.rollouts import Rollouts

INPUTS: Final = ("main", "pec_at_k", "claims")
COLUMNS: Final = {"TER": ("ter", 2), "Success": ("success", 2)}


def published() -> Made:
    """The 24 cells, a panel a benchmark and model."""
    rows = tuple(rows_of(estimates("main"), dict(COLUMNS.values())))
    table = Grid(
        ("Method", *COLUMNS), rows, 1, "Success and clean execution.", "tab:success_against_ter", RECONSTRUCTED,
        group="Benchmark · model",
    )  # fmt: skip
    return Made(table, say_below(_panels(), f"{RECONSTRUCTED} Whiskers: 95% Wilson."))


@style.styled
def _panels() -> Figure:
    """Success against TER, a panel a benchmark and model."""
    figure = style.new_figure(style.TWO_COLUMNS, 4.9)
    figure.set_layout_engine("none")
    margins = {"left": 0.065, "right": 0.985, "bottom": 0.12, "top": 0.855, "wspace": 0.3, "hspace": 0.38}
    axes = figure.subplots(2, 3, gridspec_kw=margins).ravel()
    frame = named(summary("main").frame)
    for ax, (key, cells) in zip(axes, frame.groupby(KEYS[:2], sort=False), strict=True):
        figures.success_against_ter(cells, ax=ax, names=False)  # one legend for all panels
        ax.set_title(" · ".join(key), pad=10)  # above the labels of steep lines
    figure.legend(handles=_key(frame["method"].unique()), title=LINES, loc="upper center", ncols=4)
    return figure


def _key(names: Iterable[str]) -> list[Line2D]:
    """The markers of the methods, in the order in which `success_against_ter` gives them."""
    looks = [style.stroke(at) for at, _ in enumerate(names)]
    return [
        Line2D([], [], linestyle="", marker=look.marker, color=look.color, markersize=5, label=name)
        for name, look in zip(names, looks, strict=True)
    ]


def measured(rollouts: Rollouts, resamples: int) -> Made:
    """The same of real rollouts, with intervals."""
    made = summarize(rollouts, resamples=resamples)
    return Made(main_table.shown(made), figures.success_against_ter(made))


PIECE: Final = Piece("success_against_ter", "Success against clean execution", INPUTS, published, measured)
