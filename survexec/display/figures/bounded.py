"""A curve that is known only within bounds, with the points that were stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("k", "estimate", "lower", "upper", "stated")
_OTHERS = "#9A9A9A"


@style.styled
def bounded_curves(curves: Any, figure: Figure | None = None) -> Figure:
    """Draw each curve in a panel of its own: the line of one cohort, what is possible, and what was stated.

    Reading: the line is PEC(k) of one cohort that agrees with everything stated; any curve within the shaded
    bounds may be the true one. Rings are the stated values. Thin grey lines repeat the curves of the other panels of
    the row as far as values are stated, for comparison. Where the shading is wide, the aggregates say little.

    Parameters
    ----------
    curves : DataFrame or result
        Cell columns, ``k``, ``estimate``, ``lower``, ``upper``, ``stated`` (NaN where nothing was stated).
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One row of panels for each value of all cell columns that vary but the last.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [0, 1, 2], "estimate": [1, 0.7, 0.4], "lower": [1, 0.69, 0.1],
    ...     "upper": [1, 0.71, 0.7], "stated": [float("nan"), 0.7, float("nan")],
    ... })
    >>> bounded_curves(frame).axes[0].get_xlabel()
    'Depth k (tool calls)'
    """
    frame, by = panels.tidy(curves, COLUMNS)
    cells = panels.cut(frame, by)
    if not len(cells):
        return panels.nothing(figure, "No curves to draw")
    outer, inner = list(cells.varying[:-1]), cells.varying[-1]
    looks = {value: style.stroke(at) for at, value in enumerate(dict.fromkeys(frame[inner]))}
    figure, axes = panels.grid(figure, len(cells), 1.45, len(looks), 0.45, sharey=True)
    for place, (ax, (name, rows)) in enumerate(zip(axes, cells, strict=True)):
        beside = frame[(frame[outer] == rows[outer].iloc[0]).all(axis=1)] if outer else frame
        _panel(ax, rows.sort_values("k"), beside, inner, looks)
        panels.head(ax, name)
        ax.set_ylabel("PEC(k)" if place % len(looks) == 0 else "")
        if place + len(looks) < len(cells):
            ax.set_xlabel("")
    panels.legend(figure, _key(), cells.shared)
    return figure


def _key() -> list[Any]:
    ring: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markeredgecolor": style.INK, "markersize": 5}
    return [
        Line2D([], [], linestyle="", label="stated", **ring),
        Line2D([], [], color=style.INK, linewidth=1.2, label="one cohort that agrees"),
        Patch(facecolor=style.INK, alpha=0.25, linewidth=0, label="what the aggregates allow"),
        Line2D([], [], color=_OTHERS, linewidth=0.7, label="other methods"),
    ]


def _panel(ax: Axes, rows: pd.DataFrame, beside: pd.DataFrame, inner: str, looks: dict[Any, style.Stroke]) -> None:
    """Draw one curve before the others of its row."""
    panels.share_axis(ax, "")
    panels.depth_axis(ax, *panels.span(rows))
    mine = rows[inner].iloc[0]
    for value, other in beside.groupby(inner, sort=False):
        known = other.sort_values("k")
        known = known[known["k"] <= known.loc[known["stated"].notna(), "k"].max()]
        if value != mine:
            ax.plot(known["k"], known["estimate"], color=_OTHERS, linestyle=looks[value].dash, linewidth=0.7, zorder=2)
    color, depths = looks[mine].color, rows["k"].to_numpy(float)
    low, high = rows["lower"].to_numpy(float), rows["upper"].to_numpy(float)
    ax.fill_between(depths, low, high, color=color, linewidth=0, alpha=0.25, zorder=1)
    ax.plot(depths, rows["estimate"], color=color, linewidth=1.2, zorder=3, clip_on=False)
    stated = ~np.isnan(rows["stated"].to_numpy(float))
    ax.plot(
        depths[stated], rows["stated"][stated], "o", markerfacecolor="none", markeredgecolor=style.INK,
        markeredgewidth=0.8, markersize=5, zorder=4, clip_on=False,
    )  # fmt: skip
