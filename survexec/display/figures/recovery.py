"""Success against TER, over lines of equal recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("metric", "estimate", "lower", "upper")
RECOVERIES = (0.0, 0.25, 0.5, 0.75, 1.0)
LINES = "Lines: success = TER + (1 − TER) r, for s = 1"
_HIGH = 8.0


@style.styled
def success_against_ter(summary: Any, ax: Axes | None = None, names: bool = True) -> Axes:
    """Draw each cell as a point, TER across and success up, over lines of equal recovery.

    Reading: right is better execution, up is better success. The grey lines hold for s = 1, where every
    rollout without an error succeeds: success = TER + (1 − TER) r. A point on the line r = 0.5 would then
    have repaired half of its rollouts with an error. In the shaded corner success is below TER: rollouts
    failed without any error, so s < 1 whatever the recovery. Whiskers are the intervals of the two rates,
    each by itself.

    Parameters
    ----------
    summary : Summary or DataFrame
        Cell columns, ``metric`` (with "ter" and "success"), ``estimate``, ``lower``, ``upper``.
    ax : Axes, optional
        Where to draw; a new figure of one column's width otherwise.
    names : bool
        Name the points, beside them or below; without, a legend of several panels does.

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
    points = {name: rates for name, rows in cells if (rates := _rates(rows)) is not None}
    given = ax is not None
    if ax is None:
        ax = style.new_axes(style.ONE_COLUMN, 3.1)
    if not points:
        return panels.say(ax, "No cell has both TER and success")
    _frame(ax, np.concatenate(list(points.values()), axis=1), cells.shared)
    labels = _recovery_lines(ax, list(points.values()))
    looks = {name: style.stroke(index) for index, name in enumerate(points)}
    for name, rates in points.items():
        _point(ax, rates, looks[name])
    if not names:
        return ax
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    if not _name_points(ax, points, looks, labels):
        _key(ax, looks, grow=not given)
    return ax


def _rates(rows: pd.DataFrame) -> np.ndarray | None:
    """Give TER and success of one cell, each with its bounds; None where one of them is undefined."""
    table = rows.drop_duplicates("metric").set_index("metric")[["estimate", "lower", "upper"]]
    rates = table.reindex(["ter", "success"]).to_numpy(dtype=float)
    return None if np.isnan(rates[:, 0]).any() else rates


def _key(ax: Axes, looks: dict[str, style.Stroke], grow: bool) -> None:
    """Name the points below the panel, where there is no room beside them; a new figure grows by as much."""
    names = [style.wrap(name, 72 * style.ONE_COLUMN - 45, style.SMALL) for name in looks]
    handles = [_marker(look, label=name) for name, look in zip(names, looks.values(), strict=True)]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.13), labelspacing=0.3)
    if grow:
        lines = sum(1 + name.count("\n") for name in names)
        ax.figure.set_size_inches(style.ONE_COLUMN, 3.15 + 0.15 * lines)  # type: ignore[union-attr]


def _frame(ax: Axes, rates: np.ndarray, shared: str) -> None:
    """Set axes that hold every whisker, 0 to 1 unless that wastes room; shade where success is below TER."""
    ax.set(xlim=_limits(rates[0]), xlabel="TER")
    ax.set(ylim=_limits(rates[1]), ylabel="Success")
    ax.fill_between([0, 1], [0, 1], color="#F3F3F3", linewidth=0, zorder=0)
    panels.head(ax, "\n".join(filter(None, [shared, LINES])), style.SMALL)
    panels.dress(ax)


def _limits(values: np.ndarray) -> tuple[float, float]:
    low = max(np.floor(10 * np.nanmin(values) - 0.2) / 10, 0.0)
    high = min(np.ceil(10 * np.nanmax(values) + 0.2) / 10, 1.0)
    low = min(low, max(high - 0.4, 0.0))
    high = max(high, low + 0.4)
    return (0.0, 1.0) if high - low > 0.65 else (low, high)


def _recovery_lines(ax: Axes, points: list[np.ndarray]) -> list[Text]:
    """Draw the lines success = q + (1 - q) r, each labelled along itself where it enters the panel or after a point."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    labels = [ax.text(0.98, 0.02, "s < 1", transform=ax.transAxes, ha="right", va="bottom")]
    for r in RECOVERIES:
        ax.plot([0, 1], [r, 1], color="#ABABAB", linewidth=0.6, zorder=1, scalex=False, scaley=False)
        start = left if r == 1 else max(left, (bottom - r) / (1 - r))
        x = start + 0.015 * (right - left)
        for (at, _, _), (_, low, high) in sorted(rates.tolist() for rates in points):
            reached, across = -0.03 < (at - x) / (right - left) < 0.2, r + (1 - r) * at
            if reached and low - 0.08 * (top - bottom) < across < high + 0.02 * (top - bottom):
                x = at + 0.045 * (right - left)
        y = r + (1 - r) * x
        if y <= top and x < left + 0.6 * (right - left):
            under = y > top - 0.07 * (top - bottom)
            labels.append(ax.text(
                x, y, f"r = {r:g}", va="top" if under else "bottom", rotation=np.degrees(np.arctan(1 - r)),
                rotation_mode="anchor", transform_rotates_text=True,
            ))  # fmt: skip
    for label in labels:
        label.set(fontsize=style.TINY, color=style.GREY, zorder=1, path_effects=style.HALO)
    return labels


def _point(ax: Axes, rates: np.ndarray, look: style.Stroke) -> None:
    """Draw one point and its whiskers."""
    (x, left, right), (y, low, high) = rates.tolist()
    ax.plot([left, right], [y, y], color=look.color, linewidth=0.8, zorder=2)
    ax.plot([x, x], [low, high], color=look.color, linewidth=0.8, zorder=2)
    ax.add_line(_marker(look, [x], [y]))


def _marker(look: style.Stroke, x: Sequence[float] = (), y: Sequence[float] = (), label: str = "") -> Line2D:
    return Line2D(
        x, y, linestyle="", marker=look.marker, color=look.color, markersize=5, markeredgecolor="white",
        markeredgewidth=0.5, label=label, zorder=3, clip_on=False,
    )  # fmt: skip


def _name_points(ax: Axes, points: dict[str, np.ndarray], looks: dict[str, style.Stroke], labels: list[Text]) -> bool:
    """Write each name beside its point; False, with nothing written, where one finds no free place."""
    scale = 72 / ax.figure.dpi
    panel = _scaled(ax.get_window_extent(), scale)
    hard, soft = [_scaled(label.get_window_extent(), scale) for label in labels], []
    centres = {}
    for name, rates in points.items():
        (x, y), low, high = (ax.transData.transform(rates.T) * scale).tolist()
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
        (x, y), (across, up) = points[name][:, 0].tolist(), (box.p0 + box.p1) / 2 - centres[name]
        look: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": style.TINY,
            "gid": "name",
            "zorder": 4,
        }
        text = panels.beside(ax, name, (x, y), (across, up), **look)
        text.set_in_layout(False)
        red, green, blue = to_rgb(looks[name].color)
        text.set_color((0.65 * red, 0.65 * green, 0.65 * blue))
        text.set_path_effects(style.HALO)
    return True


def _free_box(
    centre: tuple[float, float], width: float, panel: Bbox, hard: list[Bbox], soft: list[Bbox]
) -> Bbox | None:
    """Find the nearest place for a label in the panel: off all boxes of `hard`, rarely on one of `soft`."""
    best, least = None, np.inf
    for distance in (3.0, 6.0, 9.0, 12.0):
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


def _scaled(box: Bbox, scale: float) -> Bbox:
    return Bbox(box.get_points() * scale)
