"""Success against TER, over lines of equal recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("metric", "estimate", "lower", "upper")
RECOVERIES = (0.0, 0.25, 0.5, 0.75, 1.0)
LINES = "Lines: success = TER + (1 − TER) r, for s = 1"
HALO = [withStroke(linewidth=1.5, foreground="white")]
_MOST_NAMED, _HIGH, _APART = 8, 8.0, 12.0


@style.styled
def success_against_ter(summary: Any, ax: Axes | None = None) -> Axes:
    """Draw each cell as a point, TER across and success up, over lines of equal recovery.

    Reading: right is better execution, up is better success. The grey lines hold for s = 1, where every rollout
    without an error succeeds: success = TER + (1 − TER) r. A point on the line r = 0.5 then owes its success to
    repairing half of its errors. In the shaded corner success is below TER: rollouts failed without any error, so
    s < 1 whatever the recovery. Whiskers are the intervals of the two rates, each by itself.

    Parameters
    ----------
    summary : Summary or DataFrame
        Cell columns, ``metric`` (with "ter" and "success"), ``estimate``, ``lower``, ``upper``.
    ax : Axes, optional
        Where to draw; a new figure of one column's width otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "metric": ["ter", "success"], "estimate": [0.6, 0.7], "lower": [0.5, 0.6],
    ...     "upper": [0.7, 0.8],
    ... })
    >>> success_against_ter(frame).get_xlabel()
    'TER'
    """
    frame, by = panels.tidy(summary, COLUMNS)
    cells = panels.cut(frame, by)
    points = {name: table for name, rows in cells if (table := _rates(rows)) is not None}
    if ax is None:
        ax = style.new_axes(style.ONE_COLUMN, 3.1 + 0.11 * (len(points) > _MOST_NAMED) * len(points))
    if not points:
        return panels.say(ax, "No cell has both TER and success")
    _frame(ax, pd.concat(points.values()), cells.shared)
    labels = _recovery_lines(ax)
    looks = {name: style.stroke(index) for index, name in enumerate(points)}
    for name, rates in points.items():
        _point(ax, rates, looks[name])
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    if len(points) > _MOST_NAMED or not _name_points(ax, points, labels):
        handles = [_marker(look, label=name) for name, look in looks.items()]
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.14))
    return ax


def _rates(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Give TER and success of one cell, or None where one is missing or undefined."""
    table = rows.drop_duplicates("metric").set_index("metric")[["estimate", "lower", "upper"]].astype(float)
    wanted = [metric for metric in ("ter", "success") if metric in table.index]
    table = table.loc[wanted]
    return table if len(wanted) == 2 and table["estimate"].notna().all() else None


def _frame(ax: Axes, rates: pd.DataFrame, shared: str) -> None:
    """Set axes that hold every whisker, from 0 to 1 unless that wastes room, and shade where success is below TER."""
    for metric, limit in (("ter", ax.set_xlim), ("success", ax.set_ylim)):
        values = rates.loc[[metric]]
        low = max(np.floor(10 * np.nanmin(values) - 0.2) / 10, 0.0)
        high = min(np.ceil(10 * np.nanmax(values) + 0.2) / 10, 1.0)
        low = min(low, max(high - 0.4, 0.0))
        high = max(high, low + 0.4)
        limit(*((0, 1) if high - low > 0.55 else (low, high)))
    ax.set_xlabel(style.METRICS["ter"])
    ax.set_ylabel(style.METRICS["success"])
    ax.fill_between([0, 1], [0, 1], color="#F3F3F3", linewidth=0, zorder=0)
    panels.head(ax, "\n".join(filter(None, [shared, LINES])), style.SMALL)
    panels.dress(ax)


def _recovery_lines(ax: Axes) -> list[Text]:
    """Draw the lines success = q + (1 - q) r, each labelled along itself where it enters the panel."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    labels = [ax.text(0.98, 0.02, "s < 1", transform=ax.transAxes, ha="right", va="bottom")]
    for r in RECOVERIES:
        ax.plot([0, 1], [r, 1], color="#ABABAB", linewidth=0.6, zorder=1, scalex=False, scaley=False)
        start = left if r == 1 else max(left, (bottom - r) / (1 - r))
        x = start + 0.015 * (right - left)
        y = r + (1 - r) * x
        if y <= top and x < left + 0.6 * (right - left):
            slope = np.degrees(np.arctan(1 - r))
            labels.append(ax.text(
                x, y, f"r = {r:g}", va="top" if r == 1 else "bottom", rotation=slope, rotation_mode="anchor",
                transform_rotates_text=True,
            ))  # fmt: skip
    for label in labels:
        label.set(fontsize=style.TINY, color=style.GREY, zorder=1, path_effects=HALO)
    return labels


def _point(ax: Axes, rates: pd.DataFrame, look: style.Stroke) -> None:
    """Draw one point and its whiskers."""
    (x, *across), (y, *up) = rates.loc["ter"], rates.loc["success"]
    ax.plot(across, [y, y], color=look.color, linewidth=0.9, zorder=2)
    ax.plot([x, x], up, color=look.color, linewidth=0.9, zorder=2)
    ax.add_line(_marker(look, [x], [y]))


def _marker(look: style.Stroke, x: Sequence[float] = (), y: Sequence[float] = (), label: str = "") -> Line2D:
    return Line2D(
        x, y, linestyle="", marker=look.marker, color=look.color, markersize=5, markeredgecolor="white",
        markeredgewidth=0.5, label=label, zorder=3, clip_on=False,
    )  # fmt: skip


def _name_points(ax: Axes, points: dict[str, pd.DataFrame], labels: list[Text]) -> bool:
    """Write each name beside its point, on free ground; False, with nothing written, where one finds no place."""
    scale = 72 / ax.figure.dpi
    panel = _scaled(ax.get_window_extent(), scale)
    hard, soft = [], [_scaled(label.get_window_extent(), scale) for label in labels]
    centres = {}
    for name, rates in points.items():
        corners = ax.transData.transform(rates.loc[["ter", "success"]].fillna(rates["estimate"]).T) * scale
        (x, y), low, high = corners
        centres[name] = x, y
        hard.append(Bbox([[x - 3, y - 3], [x + 3, y + 3]]))
        soft += [Bbox([[low[0], y - 2], [high[0], y + 2]]), Bbox([[x - 2, low[1]], [x + 2, high[1]]])]
    placed = {}
    for name, centre in centres.items():
        box = _free_box(centre, style.width_of(name, style.TINY), panel, hard, soft)
        if box is None:
            return False
        hard.append(box)
        placed[name] = box
    for name, box in placed.items():
        _write(ax, name, points[name]["estimate"], centres[name], box)
    return True


def _free_box(
    centre: tuple[float, float], width: float, panel: Bbox, hard: list[Bbox], soft: list[Bbox]
) -> Bbox | None:
    """Find the nearest place for a label: inside the panel, off every box of `hard`, mostly off those of `soft`."""
    best, least = None, np.inf
    for distance in (3.0, 6.0, 10.0, 15.0, 21.0, 28.0, 36.0, 46.0):
        for across, up in ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
            x = centre[0] + across * (width / 2 + distance)
            y = centre[1] + up * (_HIGH / 2 + distance)
            box = Bbox([[x - width / 2, y - _HIGH / 2], [x + width / 2, y + _HIGH / 2]])
            inside = panel.x0 <= box.x0 and box.x1 <= panel.x1 and panel.y0 <= box.y0 and box.y1 <= panel.y1
            if not inside or any(box.overlaps(other) for other in hard):
                continue
            cost = distance + sum(25.0 for other in soft if box.overlaps(other))
            if cost < least:
                best, least = box, cost
    return best


def _write(ax: Axes, name: str, at: pd.Series, centre: tuple[float, float], box: Bbox) -> None:
    """Write a name in its box, with a thin line to its point where they stand apart."""
    offset = ((box.x0 + box.x1) / 2 - centre[0], (box.y0 + box.y1) / 2 - centre[1])
    near = np.hypot(max(abs(offset[0]) - box.width / 2, 0), max(abs(offset[1]) - _HIGH / 2, 0)) < _APART
    lead = (
        None
        if near
        else {"arrowstyle": "-", "linewidth": 0.4, "color": style.GREY, "shrinkB": 3, "shrinkA": 0}
    )
    text = ax.annotate(
        name, (at["ter"], at["success"]), offset, textcoords="offset points", ha="center", va="center",
        fontsize=style.TINY, arrowprops=lead, gid="name", zorder=4,
    )  # fmt: skip
    text.set_in_layout(False)
    text.set_path_effects(HALO)


def _scaled(box: Bbox, scale: float) -> Bbox:
    return Bbox(box.get_points() * scale)
