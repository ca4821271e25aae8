"""One difference in many places: a panel a metric, a row a place."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import number
from survexec.statistics.estimands import METRICS

COLUMNS = ("metric", "difference", "lower", "upper")


@style.styled
def difference_by_place(differences: Any, figure: Figure | None = None) -> Figure:
    """Draw the same difference in every place, with its interval, a panel a metric.

    Reading: a point right of the zero line says that the first side has the higher value. Where a whisker does not
    reach the line, the interval excludes no difference. All panels have the same scale.

    Parameters
    ----------
    differences : DataFrame or result
        Cell columns, ``metric``, ``difference``, ``lower``, ``upper``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "benchmark": ["x", "y"], "metric": "ter", "difference": [0.1, 0.2], "lower": [0, 0.1], "upper": [0.2, 0.3],
    ... })
    >>> [text.get_text() for text in difference_by_place(frame).axes[0].texts]
    ['0.100', '0.200']
    """
    frame, by = panels.tidy(differences, COLUMNS)
    metrics = list(dict.fromkeys(frame["metric"]))
    places = {name: at for at, (name, _) in enumerate(panels.cut(frame, by))}
    figure, axes = panels.grid(figure, len(metrics), 0.35 + 0.3 * max(len(places), 1), 4, 0.2, sharex=True, sharey=True)
    if not places:
        panels.say(axes[0], "No differences to draw")
        return figure
    for ax, metric in zip(axes, metrics, strict=True):
        cells = panels.cut(frame[frame["metric"] == metric], by)
        _panel(ax, {places[name]: rows.iloc[0] for name, rows in cells})
        panels.head(ax, METRICS[metric].label)
    axes[0].set_yticks(list(places.values()), list(places))
    axes[0].set_ylim(len(places) - 0.5, -0.7)
    return figure


def _panel(ax: Axes, rows: dict[int, pd.Series]) -> None:
    """Draw the points of one metric about the zero line, each under its number."""
    ax.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
    for at, row in rows.items():
        ax.hlines(at, row["lower"], row["upper"], color=style.stroke(0).color, linewidth=1.1, zorder=2)
        ax.plot(row["difference"], at, "s", color=style.stroke(0).color, markersize=3.4, zorder=3)
        look: dict[str, Any] = {"ha": "center", "va": "bottom", "path_effects": style.HALO, "zorder": 4}
        text = number(row["difference"], 3)
        panels.beside(ax, text, (row["difference"], at), (0, 2.5), fontsize=style.TINY, **look)
    ax.spines["left"].set_visible(False)
    panels.dress(ax)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("Difference")
