"""How the order of methods changes from metric to metric, where only their values are known."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import decimals, number
from survexec.statistics.estimands import METRICS

COLUMNS = ("value", "metric", "estimate", "rank")
_ACROSS = 3


@style.styled
def rank_slopes(ranks: Any, figure: Figure | None = None) -> Figure:
    """Draw the rank of each method by each metric, joined by lines, without any claim on how sure it is.

    Reading: 1 is best; the number at a point is the value of the metric. A line that crosses others is a method that
    the metrics judge differently. Tied methods share a rank and a point. `rank_bump` adds intervals of the ranks,
    where there are rollouts to resample.

    Parameters
    ----------
    ranks : DataFrame or result
        Cell columns, ``value``, ``metric``, ``estimate``, ``rank``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a cell, three side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "benchmark": "b", "value": ["x", "y"] * 2, "metric": ["success", "success", "ter", "ter"],
    ...     "estimate": [0.9, 0.8, 0.4, 0.7], "rank": [1.0, 2.0, 2.0, 1.0],
    ... })
    >>> [text.get_text() for text in rank_slopes(frame).axes[0].texts]
    ['0.90', '0.40', '0.80', '0.70']
    """
    frame, by = panels.tidy(ranks, COLUMNS)
    cells = panels.cut(frame, by)
    if not len(cells):
        return panels.nothing(figure, "No ranks to draw")
    values = list(dict.fromkeys(frame["value"]))
    looks = {value: style.stroke(index) for index, value in enumerate(values)}
    figure, axes = panels.grid(figure, len(cells), 0.6 + 0.27 * len(values), _ACROSS, 0.45)
    for place, (ax, (name, rows)) in enumerate(zip(axes, cells, strict=True)):
        _panel(ax, rows, looks)
        panels.head(ax, name)
        ax.set_ylabel("Rank (1: best)" if place % _ACROSS == 0 else "")
    panels.legend(figure, [Line2D([], [], label=style.literal(v), **_look(looks[v])) for v in values])
    return figure


def _look(look: style.Stroke) -> dict[str, Any]:
    return {
        "color": look.color, "linestyle": look.dash, "marker": look.marker, "linewidth": 1.2, "markersize": 5,
        "markeredgecolor": "white", "markeredgewidth": 0.5,
    }  # fmt: skip


def _panel(ax: Axes, rows: pd.DataFrame, looks: dict[Any, style.Stroke]) -> None:
    """Draw the lines of one cell with the values at their points, tied ones once."""
    metrics = list(dict.fromkeys(rows["metric"]))
    written = set()
    for value, line in rows.groupby("value", sort=False):
        line = line.set_index("metric").reindex(metrics)
        ax.plot(range(len(metrics)), line["rank"], clip_on=False, zorder=3, **_look(looks[value]))
        for at, (metric, estimate, rank) in enumerate(zip(metrics, line["estimate"], line["rank"], strict=True)):
            if (metric, rank) not in written and not pd.isna(rank):
                written.add((metric, rank))
                text = number(estimate, decimals(metric) - 1)
                look: dict[str, Any] = {"ha": "center", "va": "bottom", "path_effects": style.HALO, "zorder": 4}
                panels.beside(ax, text, (at, rank), (0, 3.5), fontsize=style.TINY, **look)
    ax.set_xlim(-0.3, len(metrics) - 0.7)
    ax.set_ylim(len(looks) + 0.3, 0.4)
    ax.set_xticks(range(len(metrics)), [METRICS[name].label for name in metrics])
    ax.set_yticks(range(1, len(looks) + 1))
    panels.dress(ax)
