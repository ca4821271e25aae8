"""How the ranks of methods move from metric to metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import decimals, number
from survexec.statistics.estimands import METRICS

COLUMNS = ("value", "metric", "estimate", "rank", "lower", "upper", "first", "n_tasks")
# Points: the width of the names at the right, and the height of one of their lines.
_NAMES, _LINE = 80.0, 8.5
# More metrics than these need two columns of the page.
_MOST = 5
# The share of the room between two metrics over which the methods stand side by side.
_SPREAD = 0.5


@style.styled
def rank_bump(ranks: Any, figure: Figure | None = None) -> Figure:
    """Draw the rank of each method by each metric, joined by lines, one panel a place.

    Reading: 1 is best, and a line that crosses others is a method that the metrics judge differently. A whisker is
    the interval of a rank; where those of two methods overlap, their order by that metric is open. The number at a
    point is the value of the metric. Under the panel: the bootstrap probability that the method which leads by this
    metric is first. Tied methods share a rank. A line with a hole: the metric is undefined for that method.

    Parameters
    ----------
    ranks : Ranks or DataFrame
        Within columns, ``value``, ``metric``, ``estimate``, ``rank``, ``lower``, ``upper``, ``first``, ``n_tasks``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "value": ["x", "y"] * 2, "metric": ["success", "success", "ter", "ter"], "estimate": [0.9, 0.8, 0.4, 0.7],
    ...     "rank": [1.0, 2.0, 2.0, 1.0], "lower": 1.0, "upper": 2.0, "first": [0.9, 0.1, 0.0, 1.0], "n_tasks": 50,
    ... })
    >>> [text.get_text() for text in rank_bump(frame).axes[0].texts if text.get_gid() == "first"]
    ['0.90', '1.00']
    """
    frame, by = panels.tidy(ranks, COLUMNS)
    cells = panels.cut(frame, by)
    if not len(cells):
        return panels.nothing(figure, "No ranks to draw")
    values = list(dict.fromkeys(frame["value"]))
    names = {value: style.wrap(style.literal(value), _NAMES, style.TINY) for value in values}
    looks = {value: style.stroke(index) for index, value in enumerate(values)}
    most = max(rows["value"].nunique() for _, rows in cells)
    tall = 1 + max(name.count("\n") for name in names.values())
    height = 0.75 + most * max(0.27, (_LINE * tall + 3) / 72)
    across, top = 1 if frame["metric"].nunique() > _MOST else 2, 0.25 + 0.15 * bool(cells.shared)
    if figure is None and across == 1:
        figure = style.new_figure(style.TWO_COLUMNS, top + height * len(cells))
    figure, axes = panels.grid(figure, len(cells), height, across, top)
    for ax, (name, rows) in zip(axes, cells, strict=True):
        _panel(ax, rows, looks, names)
        place = [name] if len(cells) > 1 else []
        panels.head(ax, "\n".join([*place, f"{panels.count(rows['n_tasks'].iloc[0])} tasks"]), style.SMALL)
        panels.dress(ax)
    if cells.shared:
        figure.suptitle(cells.shared)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, looks: dict[Any, style.Stroke], names: dict[Any, str]) -> None:
    """Draw the lines of one place, name them at their end, and say below how sure the leaders are."""
    metrics, values = list(dict.fromkeys(rows["metric"])), list(dict.fromkeys(rows["value"]))
    wide = rows.pivot(index="value", columns="metric").reindex(index=values)
    ranks = wide["rank"][metrics].astype(float)
    # tied points have one value, written at the last of them
    written = wide["estimate"][metrics].where(ranks.notna() & ~ranks.apply(lambda column: column.duplicated("last")))
    end = len(metrics) - 0.1
    ax.set(xlim=(-0.5, end), ylim=(len(values) + 0.6, 0.4), ylabel="Rank (1: best)")
    digits = {name: _digits(name, wide["estimate"][name], ranks[name]) for name in metrics}
    asides = _SPREAD * ((np.arange(len(values)) + 0.5) / len(values) - 0.5)
    for value, aside in zip(values, asides, strict=True):
        places = np.arange(len(metrics)) + aside
        limits = (wide[side].loc[value, metrics].astype(float) for side in ("lower", "upper"))
        ax.vlines(places, *limits, color=looks[value].color, linewidth=0.9, alpha=0.6, zorder=2)
        _line(ax, places, ranks.loc[value], written.loc[value], digits, looks[value])
    last = ranks.iloc[:, -1].to_numpy()
    for row, at in enumerate(np.argsort(last, kind="stable"), 1):
        ends = [len(metrics) - 1 + asides[at], end], [last[at], row]
        ax.plot(*ends, color=looks[values[at]].color, linewidth=0.5, zorder=1, clip_on=False)
        look: dict[str, Any] = {"va": "center", "fontsize": style.TINY, "linespacing": 1.15, "gid": "name"}
        panels.beside(ax, names[values[at]], (end, row), (2, 0), **look)
    labels = [_broken(METRICS[name].label) for name in metrics]
    ax.set_xticks(range(len(metrics)), labels)
    ax.set_yticks(range(1, len(values) + 1))
    below: dict[str, Any] = {"va": "top", "fontsize": style.TINY}
    down = -6 - _LINE * (1 + max(label.count("\n") for label in labels))
    panels.beside(ax, "P(first)", (0, 0), (-9, down), ax.transAxes, ha="right", **below)
    leaders = wide["first"][metrics].astype(float).where(ranks.eq(ranks.min())).max()
    for at, leader in enumerate(leaders):
        where = ax.get_xaxis_transform()
        panels.beside(ax, number(leader, 2), (at, 0), (0, down), where, ha="center", gid="first", **below)


def _broken(label: str) -> str:
    """Break the name of a metric between its words."""
    return label.replace(" (", "\n(").replace(" ", "\n", 1).replace("-", "-\n")


def _digits(metric: str, values: pd.Series, ranks: pd.Series) -> int:
    """One decimal less than in a table, unless values of different ranks then look the same."""
    short = decimals(metric) - 1
    printed = {rank: number(value, short) for rank, value in zip(ranks, values, strict=True) if not np.isnan(rank)}
    return short + (len(set(printed.values())) < len(printed))


def _line(
    ax: Axes, places: np.ndarray, ranks: pd.Series, written: pd.Series, digits: dict[str, int], look: style.Stroke
) -> None:
    """Draw the ranks of one method, and write the values of the metrics at them."""
    ax.plot(
        places, ranks, color=look.color, linestyle=look.dash, marker=look.marker, linewidth=1.2, markersize=4,
        markeredgecolor="white", markeredgewidth=0.5, zorder=3,
    )  # fmt: skip
    near: dict[str, Any] = {"va": "bottom", "fontsize": style.TINY, "path_effects": style.HALO, "zorder": 4}
    for place, rank, (metric, estimate) in zip(places, ranks, written.items(), strict=True):
        if not np.isnan(estimate):
            panels.beside(ax, number(estimate, digits[metric]), (place, rank), (2, 2), gid="value", **near)
