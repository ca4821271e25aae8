"""Where in a rollout its first error falls, and of what class it is."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("k", "error_class", "events", "at_risk")


@style.styled
def first_error_profile(first_errors: Any, figure: Figure | None = None) -> Figure:
    """Draw how many rollouts made their first error at each depth, by class of error.

    Reading: the bar at depth k counts the rollouts whose first error was call k; its segments say of which
    class. The number under a tick is how many were about to make that call without an earlier error: bar
    over number is the hazard, so a low bar over a small number can be as bad as a high one over a large one.

    Parameters
    ----------
    first_errors : FirstErrors or DataFrame
        Cell columns, ``k``, ``error_class``, ``events``, ``at_risk``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a cell, four side by side, with the same vertical scale.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [1, 2], "error_class": "schema", "events": [3, 1], "at_risk": [10, 6],
    ... })
    >>> len(first_error_profile(frame).axes)
    1
    """
    frame, by = panels.tidy(first_errors, COLUMNS)
    cells = panels.cut(frame, by)
    figure, axes = panels.grid(figure, len(cells), 1.9, sharey=True)
    if not len(cells):
        panels.say(axes[0], "No first errors to draw")
        return figure
    present = set(frame.loc[frame["events"] > 0, "error_class"].dropna())
    known = [label for label in style.CLASSES if label in present]
    others = sorted(present - set(known))
    fills = {label: style.CLASSES.get(label, style.Fill(style.literal(label), "#444444")) for label in known + others}
    for ax, (name, rows) in zip(axes, cells, strict=True):
        panels.head(ax, name)
        _profile(ax, rows, fills, int(frame["k"].max()))
    if fills:
        panels.legend(figure, [fill.handle for fill in fills.values()], cells.shared)
    elif cells.shared:
        figure.suptitle(cells.shared)
    return figure


def _profile(ax: Axes, rows: pd.DataFrame, fills: dict[str, style.Fill], last: int) -> None:
    """Draw the stacked bars of one panel."""
    table = rows.pivot_table(index="k", columns="error_class", values="events", aggfunc="sum")
    below = pd.Series(0.0, index=table.index)
    for label, fill in fills.items():
        if label in table:
            counts = table.loc[table[label] > 0, label].astype(float)
            ax.bar(counts.index, counts, bottom=below[counts.index], width=0.85, **fill.look)
            below = below.add(counts, fill_value=0.0)
    first = panels.leftmost(ax)
    at_risk = panels.first_of(rows, "at_risk")
    ticks = panels.depth_axis(ax, 1, last, rows["at_risk"])
    panels.at_risk_row(ax, ticks, at_risk, label="At risk" if first else "")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    ax.set_ylabel("First errors at call k" if first else "")
    if not below.sum():
        ax.text(0.5, 0.5, "No error", transform=ax.transAxes, ha="center", va="center", color=style.GREY)
