"""Every call of every rollout, a row a rollout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("task_id", "trial", "k", "state", "length", "fed", "success")
CELL = ("benchmark", "model", "method")
_PAGE = 8.4
_ENDS = (("success", True, "o", "#222222"), ("failure", False, "x", "#D55E00"))


@style.styled
def swimmer(call_states: Any, rows: int = 60, figure: Figure | None = None) -> Figure:
    r"""Draw each rollout as a row of calls: ok, first error, later error, ok after error.

    Reading: rows that erred come first, the earliest first error at the top; rows without an error follow,
    shortest first. The dark cell is the first call that could not be executed; what stands to its right is
    how the agent went on, and the mark at the end says whether the task succeeded (dot) or failed (cross).
    Pale blue ending in a cross is a rollout that erred nowhere and failed all the same. Rollouts without a
    call have no row.

    Parameters
    ----------
    call_states : DataFrame
        `Rollouts.call_states()`: ``benchmark``, ``model``, ``method``, ``task_id``, ``trial``, ``k``,
        ``state``, ``length``, ``fed``, ``success``.
    rows : int
        Most rollouts in a panel; more are thinned evenly along the sorted order, which the title says.
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
    ...     "benchmark": "b", "model": "m", "method": "plain", "task_id": "1", "trial": 0, "k": [1, 2],
    ...     "state": ["first error", "ok after error"], "length": 2, "fed": 1, "success": True,
    ... })
    >>> swimmer(frame).axes[0].get_title()
    'b · m · plain\n1 rollout'
    """
    frame, _ = panels.tidy(call_states, COLUMNS)
    by = [column for column in CELL if column in frame.columns]
    cells = panels.cut(frame[frame["k"].notna()], by)
    orders = [_order(part) for _, part in cells]
    most = min(rows, max((len(order) for order in orders), default=1))
    height = min(1.1 + max(0.052 * most, 0.3), _PAGE / max(1, math.ceil(len(cells) / 4)))
    figure, axes = panels.grid(figure, len(cells), height)
    if not len(cells):
        panels.say(axes[0], "No calls to draw")
        return figure
    mark = min(2.4, 60 * (height - 1.1) / most)
    for ax, (name, part), order in zip(axes, cells, orders, strict=True):
        chosen = np.unique(np.linspace(0, len(order) - 1, min(rows, len(order))).round().astype(int))
        _rows(ax, part, order.iloc[chosen])
        _ends(ax, order.iloc[chosen], mark)
        panels.depth_axis(ax, 1, int(frame["length"].max()) + 1)
        ax.set(xlabel="Call", ylim=(len(chosen), 0), yticks=[])
        ax.spines["left"].set_visible(False)
        panels.head(ax, f"{name}\n{_shown(len(chosen), len(order))}")
    ends = [Line2D([], [], label=label, **_look(sign, color, 3)) for label, _, sign, color in _ENDS]
    panels.legend(figure, [*(fill.handle for fill in style.CALLS.values()), *ends], cells.shared)
    return figure


def _shown(count: int, of: int) -> str:
    rollouts = "rollout" if of == 1 else "rollouts"
    return f"{count} of {of} {rollouts} shown" if count < of else f"{of} {rollouts}"


def _order(calls: pd.DataFrame) -> pd.DataFrame:
    """Give one row a rollout: those that erred by depth of error then length, then clean ones by length."""
    order = calls.drop_duplicates(["task_id", "trial"]).reset_index(drop=True)
    clean = order["fed"] > order["length"]
    return order.assign(clean=clean).sort_values(["clean", "fed", "length"], kind="stable", ignore_index=True)


def _rows(ax: Axes, calls: pd.DataFrame, shown: pd.DataFrame) -> None:
    """Draw the cells of the rollouts shown, one collection a state."""
    places = shown[["task_id", "trial"]].assign(place=range(len(shown)))
    placed = calls.merge(places, on=["task_id", "trial"])
    for state, part in placed.groupby("state", observed=True):
        fill = style.CALLS.get(str(state), style.Fill(style.literal(state), "white"))
        left = part["k"].to_numpy(dtype=float) - 0.46
        top = part["place"].to_numpy(dtype=float) + 0.08
        corners = [[left, top], [left + 0.92, top], [left + 0.92, top + 0.84], [left, top + 0.84]]
        squares = list(np.array(corners).transpose(2, 0, 1))
        ax.add_collection(PolyCollection(squares, facecolor=fill.color, linewidth=0, gid=str(state)))


def _ends(ax: Axes, shown: pd.DataFrame, size: float) -> None:
    """Mark success or failure behind the last call; nothing where it is not known."""
    for _, value, sign, color in _ENDS:
        ended = shown["success"].eq(value).fillna(False).to_numpy(dtype=bool)
        if ended.any():  # an unclipped line without points counts as standing in the figure's corner
            behind = shown["length"].to_numpy(dtype=float)[ended] + 1
            ax.plot(behind, np.flatnonzero(ended) + 0.5, **_look(sign, color, size))


def _look(sign: str, color: str, size: float) -> dict[str, Any]:
    looks = {"linestyle": "", "marker": sign, "color": color, "clip_on": False}
    return looks | {"markersize": size, "markeredgewidth": 0.3 * size}
