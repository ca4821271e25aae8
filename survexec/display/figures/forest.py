"""Paired differences with their intervals, a block a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import decimals, estimate, p_value

COLUMNS = ("metric", "a", "b", "difference", "lower", "upper", "p_adjusted", "n_pairs")
_ROOM, _GAP = 170.0, 7.0


@style.styled
def forest(comparison: Any, metrics: Sequence[str] | None = None, figure: Figure | None = None) -> Figure:
    """Draw the paired differences a − b of each metric with their intervals, and write them beside.

    Reading: a point right of the zero line says that a has the higher value. Where a whisker does not reach
    the line, the interval excludes a difference of zero. Each block has its own scale, in the unit of its
    metric: shares, or calls for mean FED and mean length. Columns: difference and interval, adjusted p (a
    dash where the metric has no test), and the number of pairs. Where names are too long for the rows, they
    are written M1, M2, ... and the foot of the figure says which is which.

    Parameters
    ----------
    comparison : Comparison or DataFrame
        Within columns, ``metric``, ``a``, ``b``, ``difference``, ``lower``, ``upper``, ``p_adjusted``,
        ``n_pairs``.
    metrics : sequence of str, optional
        Which to draw, in this order; all of them otherwise.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One block a metric; two side by side from three metrics on.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "metric": ["ter"], "a": ["x"], "b": ["y"], "difference": [0.1], "lower": [0.02], "upper": [0.18],
    ...     "p_adjusted": [0.03], "n_pairs": [100],
    ... })
    >>> [text.get_text() for text in forest(frame).axes[0].texts if text.get_gid() == "cell"]
    ['0.100 [0.020, 0.180]', '0.030', '100']
    """
    frame, by = panels.tidy(comparison, COLUMNS)
    chosen = list(frame["metric"].unique()) if metrics is None else list(metrics)
    cells = panels.cut(frame[frame["metric"].isin(chosen)], by)
    if not len(cells):
        return panels.nothing(figure, "No differences to draw")
    across = 1 if len(chosen) < 3 else 2
    names, key = _names(cells, across)
    placed, labels = _places(cells, names)
    tall = 1 + max(label.count("\n") for label, _ in labels)
    foot = "\n".join(style.wrap(line, 72 * style.TWO_COLUMNS - 10, style.SMALL) for line in key)
    height = 0.46 + 0.135 * tall * len(labels)
    top = 0.12 * (foot.count("\n") + 1) * bool(key) + 0.2 * bool(cells.shared)
    figure = figure or style.new_figure(style.TWO_COLUMNS, top + height * math.ceil(len(chosen) / across))
    figure, axes = panels.grid(figure, len(chosen), height, across, gridspec_kw={"wspace": 0.06})
    texts = _texts(placed, f"a − b [{panels.level_of(comparison)}interval]")
    widths = column_widths(texts)
    for place, (ax, metric) in enumerate(zip(axes, chosen, strict=True)):
        rows = placed[placed["metric"] == metric]
        _block(ax, rows, len(labels), 5 if across == 1 else 2)
        text_columns(ax, rows["place"], texts.loc[rows.index], widths)
        row_labels(ax, labels if place % across == 0 else [])
        ax.set_title(panels.metric(metric), loc="left", fontweight="bold")
    if cells.shared:
        figure.suptitle(cells.shared)
    if key:
        figure.supxlabel(foot, fontsize=style.SMALL, x=0.01, ha="left")
    return figure


def _names(cells: panels.Cells, across: int) -> tuple[dict[Any, str], list[str]]:
    """Choose how each side is written: by its name, or by a number with a key where names are too long."""
    sides = dict.fromkeys(side for _, rows in cells for pair in zip(rows["a"], rows["b"], strict=True) for side in pair)
    names = {side: style.literal(side) for side in sides}
    longest = max(style.width_of(f"− {label}", style.SMALL) for label in names.values())
    if longest <= (_ROOM if across == 1 else _ROOM / 4):
        return names, []
    short = {side: f"M{index}" for index, side in enumerate(sides, 1)}
    key = [f"{short[side]}: {names[side]}" for side in sides]
    line = ",   ".join(key)
    return short, [line] if style.width_of(line, style.SMALL) <= 72 * style.TWO_COLUMNS - 10 else key


def _places(cells: panels.Cells, names: dict[Any, str]) -> tuple[pd.DataFrame, list[tuple[str, bool]]]:
    """Give each pair a row, the same in every block; label the rows, headings of groups (True) among them."""
    placed: list[pd.DataFrame] = []
    labels: list[tuple[str, bool]] = []
    for name, rows in cells:
        if len(cells) > 1:
            labels.append((name, True))
        for (a, b), pair in rows.groupby(["a", "b"], sort=False, dropna=False, observed=True):
            placed.append(pair.assign(place=len(labels)))
            label = f"{names[a]} − {names[b]}"
            wide = style.width_of(label, style.SMALL) > _ROOM
            labels.append((f"{names[a]}\n− {names[b]}" if wide else label, False))
    return pd.concat(placed, ignore_index=True), labels


def _block(ax: Axes, rows: pd.DataFrame, count: int, ticks: int) -> None:
    """Draw points and whiskers about the zero line."""
    ax.axvline(0, color=style.INK, linewidth=0.6, zorder=1)
    ax.hlines(rows["place"], rows["lower"], rows["upper"], color=style.stroke(0).color, linewidth=1.1)
    ax.plot(rows["difference"], rows["place"], "s", color=style.stroke(0).color, markersize=3.2)
    across = ax.get_yaxis_transform()
    ax.hlines(rows["place"], 0, 1, transform=across, color=style.FAINT, linewidth=0.4, zorder=0)
    ax.margins(x=0.08)
    panels.zero_axis(ax, count, ticks)


def _texts(rows: pd.DataFrame, head: str) -> pd.DataFrame:
    """Write out each row of the frame; the columns are named by their headings."""
    texts = [
        [estimate(row, decimals(row.metric), "difference").line, p_value(row.p_adjusted), panels.count(row.n_pairs)]
        for row in rows.itertuples()
    ]
    return pd.DataFrame(texts, index=rows.index, columns=[head, "adj. p", "n"])


def column_widths(texts: pd.DataFrame) -> list[float]:
    """How wide each column of texts is with its heading and the gap before it, in points."""
    return [_GAP + max(style.width_of(text, style.TINY) for text in [title, *texts[title]]) for title in texts]


def text_columns(ax: Axes, places: pd.Series, texts: pd.DataFrame, widths: list[float]) -> None:
    """Write the texts to the right of a block, each column flush right."""
    look = {"ha": "right", "fontsize": style.TINY}
    for title, right in zip(map(str, texts), np.cumsum(widths), strict=True):
        for place, text in zip(places, texts[title], strict=True):
            where = ax.get_yaxis_transform()
            panels.beside(ax, text, (1, place), (right, 0), where, va="center", gid="cell", **look)
        panels.beside(ax, title, (1, 1), (right, 4), ax.transAxes, color=style.GREY, va="bottom", **look)


def row_labels(ax: Axes, labels: list[tuple[str, bool]]) -> None:
    """Write what each row compares, to the left of a block."""
    for place, (label, heading) in enumerate(labels):
        look = {"ha": "right", "va": "center", "fontsize": style.SMALL, "weight": "bold" if heading else None}
        panels.beside(ax, label, (0, place), (-6, 0), ax.get_yaxis_transform(), **look)
