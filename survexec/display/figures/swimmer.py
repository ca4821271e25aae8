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
    """Draw each rollout as a row of calls: ok, first error, later error, ok after error.

    Reading: rows that erred come first, the earliest first error at the top; rows without an error follow,
    shortest first. The dark cell is the first call that could not be executed; what stands to its right is how the
    agent went on, and the mark at the end says whether the task succeeded (dot) or failed (cross). Pale blue ending
    in a cross is a rollout that erred nowhere and failed all the same. Rollouts without a call have no row.

    Parameters
    ----------
    call_states : DataFrame
        `Rollouts.call_states()`: ``benchmark``, ``model``, ``method``, ``task_id``, ``trial``, ``k``, ``state``,
        ``length``, ``fed``, ``success``.
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
    'b · m · plain\\n1 rollout'
    """
    frame, _ = panels.tidy(call_states, COLUMNS)
    by = [column for column in CELL if column in frame.columns]
    cells = panels.cut(frame[frame["k"].notna()], by)
    most = max((len(_order(part)) for _, part in cells), default=1)
    tallest = _PAGE / max(1, math.ceil(len(cells) / 4))
    figure, axes = panels.grid(figure, len(cells), min(0.9 + 0.052 * min(most, rows), tallest))
    if not len(cells):
        panels.say(axes[0], "No calls to draw")
        return figure
    longest = float(frame["length"].max())
    for ax, (name, part) in zip(axes, cells, strict=True):
        order = _order(part)
        shown = order.iloc[
            np.unique(np.linspace(0, len(order) - 1, min(rows, len(order))).round().astype(int))
        ]
        _rows(ax, part, shown)
        _ends(ax, shown)
        panels.depth_axis(ax, 1, int(longest) + 1)
        ax.set_xlabel("Call")
        ax.set_ylim(len(shown), 0)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        of = (
            f"{len(shown)} of {len(order)} rollouts shown"
            if len(shown) < len(order)
            else _rollouts(len(order))
        )
        panels.head(ax, f"{name}\n{of}")
    handles = [fill.handle for fill in style.CALLS.values()]
    panels.legend(
        figure, [*handles, *(_end(label, mark, color) for label, _, mark, color in _ENDS)], cells.shared
    )
    return figure


def _rollouts(count: int) -> str:
    return f"{count} rollout" + "s" * (count != 1)


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
        squares = np.array(corners).transpose(2, 0, 1)
        ax.add_collection(PolyCollection(squares, facecolor=fill.color, linewidth=0, gid=str(state)))


def _ends(ax: Axes, shown: pd.DataFrame) -> None:
    """Mark success or failure behind the last call; nothing where it is not known."""
    for label, value, mark, color in _ENDS:
        ended = shown["success"].eq(value).fillna(False).astype(bool)
        line = _end(label, mark, color)
        line.set_data(shown["length"][ended].astype(float) + 1, np.flatnonzero(ended) + 0.5)
        ax.add_line(line)


def _end(label: str, mark: str, color: str) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="",
        marker=mark,
        color=color,
        markersize=2.4,
        markeredgewidth=0.7,
        label=label,
        clip_on=False,
    )
