"""What had become of the rollouts at each depth, as stacked areas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("state", "k", "estimate", "at_risk")


@style.styled
def state_stacks(curves: Any, figure: Figure | None = None) -> Figure:
    """Draw the state stack of each cell: running clean, finished clean, errored.

    Reading: at depth k a vertical cut through a panel splits all its rollouts. Pale blue: still calling,
    with no error so far; where no limit cut a rollout its upper edge is PEC(k). Blue: stopped by itself before
    call k without an error. Orange-red hatched, from the top down: made its first error within the first k
    calls. A wide blue area says that PEC falls because rollouts end, not because they fail. Rollouts that a
    limit cut are censored: they count on in the proportions of those who went on. The numbers under a tick
    are the rollouts about to make that call.

    Parameters
    ----------
    curves : Curves or DataFrame
        Kind "states": cell columns, ``state``, ``k``, ``estimate``, ``at_risk``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a cell, four side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "state": ["running", "running", "errored", "errored"], "k": [0, 1, 0, 1],
    ...     "estimate": [1, 0.7, 0, 0.3], "at_risk": [10, 10, 10, 10],
    ... })
    >>> len(state_stacks(frame).axes)
    1
    """
    frame, by = panels.tidy(curves, COLUMNS)
    cells = panels.cut(frame, by)
    figure, axes = panels.grid(figure, len(cells), 1.9, sharey=True)
    if not len(cells):
        panels.say(axes[0], "No rollouts to draw")
        return figure
    for ax, (name, rows) in zip(axes, cells, strict=True):
        stack(ax, rows.pivot(index="k", columns="state", values="estimate"), style.STATES)
        panels.head(ax, name)
        first = panels.leftmost(ax)
        panels.share_axis(ax, "Share of rollouts" if first else "")
        ticks = panels.depth_axis(ax, *panels.span(rows), rows["at_risk"])
        panels.at_risk_row(ax, ticks, panels.first_of(rows, "at_risk"), label="At risk" if first else "")
    panels.legend(figure, [fill.handle for fill in reversed(style.STATES.values())], cells.shared)
    return figure


def stack(ax: Axes, shares: pd.DataFrame, fills: dict[str, style.Fill]) -> None:
    """Pile shares up from 0; each depth takes the whole column from k - 1/2 to k + 1/2.

    Parameters
    ----------
    ax : Axes
        The panel.
    shares : DataFrame
        One row a depth, one column a part; a depth without values stays blank.
    fills : dict of str to Fill
        The parts from the bottom to the top.
    """
    table = shares.sort_index().reindex(columns=list(fills)).astype(float).fillna(0)
    depths = table.index.to_numpy(dtype=float)
    edges = np.concatenate([[depths[0] - 0.5], depths, [depths[-1] + 0.5]])
    below = np.zeros(len(edges))
    for part, fill in fills.items():
        share = table[part].to_numpy()
        above = below + np.concatenate([share[:1], share, share[-1:]])
        ax.fill_between(edges, below, above, step="mid", **fill.look)
        ax.plot(edges, above, drawstyle="steps-mid", color="white", linewidth=0.7)
        below = above
