"""Paired differences by group, and pooled over the groups: the forest plot of a meta-analysis, a block a metric."""

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
from survexec.display.figures.forest import column_widths, row_labels, text_columns
from survexec.display.wording import DASH, decimals, estimate, number, p_value

COLUMNS = (
    "metric", "a", "b", "level_of", "group", "role", "difference", "lower", "upper", "weight_fixed", "weight_random",
    "n_pairs",
)  # fmt: skip
# Points for the names of rows, and up to which there is room for two blocks side by side.
_ROOM, _NARROW = 170.0, 90.0
# Area of the square of a group that has all the weight, and of the smallest that can be seen, in square points.
_LARGEST, _SMALLEST = 64.0, 4.0
_DIAMONDS = {"fixed effect": style.INK, "random effects (DL)": style.GREY, "random effects (HK)": "white"}


@style.styled
def meta_forest(heterogeneity: Any, metrics: Sequence[str] | None = None, figure: Figure | None = None) -> Figure:
    """Draw the paired difference a − b in each group and pooled over the groups, with the interaction test below.

    Reading: a square is the difference in one group, its area the weight in the fixed-effect estimate, its whisker the
    interval; a small open square was left out of the pooling. Diamonds are pooled differences, as wide as their
    intervals: fixed effect (dark), random effects of DerSimonian-Laird (grey) and of Hartung-Knapp (white). What ends
    in an arrow goes on; the numbers say how far. Right of the zero line a has the higher value. Columns: difference and
    interval, weight in percent (fixed / random), number of pairs; a dash where there is none. Below: Cochran's Q, which
    tests that all groups have the same difference.

    Parameters
    ----------
    heterogeneity : Heterogeneity or DataFrame
        Within columns, ``metric``, ``a``, ``b``, ``level_of``, ``group``, ``role``, ``difference``, ``lower``,
        ``upper``, ``weight_fixed``, ``weight_random``, ``n_pairs``; the interaction tests stand in its ``tests``.
    metrics : sequence of str, optional
        Which to draw, in this order; all of them otherwise.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One block a metric; two side by side where the names of the groups leave room.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "metric": "ter", "a": "x", "b": "y", "level_of": "stratum", "group": ["web", "code", "fixed effect"],
    ...     "role": ["group", "group", "pooled"], "difference": [0.1, 0.2, 0.15], "lower": [0.0, 0.1, 0.08],
    ...     "upper": [0.2, 0.3, 0.22], "weight_fixed": [0.5, 0.5, None], "weight_random": [0.5, 0.5, None],
    ...     "n_pairs": [50, 50, 100],
    ... })
    >>> [text.get_text() for text in meta_forest(frame).axes[0].texts if text.get_gid() == "cell"][:3]
    ['0.100 [0.000, 0.200]', '0.200 [0.100, 0.300]', '0.150 [0.080, 0.220]']
    """
    frame, by = panels.tidy(heterogeneity, COLUMNS)
    chosen = list(frame["metric"].unique()) if metrics is None else list(metrics)
    cells = panels.cut(frame[frame["metric"].isin(chosen)], by)
    if not len(cells):
        return panels.nothing(figure, "No differences to draw")
    placed, labels, title = _places(cells)
    widest = max(style.width_of(label, style.SMALL) for label, _ in labels)
    across = min(len(chosen), 1 if widest > _NARROW else 2)
    height = 0.46 + 0.135 * len(labels)
    top = 0.1 + 0.14 * (title.count("\n") + 1) * bool(title)
    figure = figure or style.new_figure(style.TWO_COLUMNS, top + height * math.ceil(len(chosen) / across))
    figure, axes = panels.grid(figure, len(chosen), height, across, gridspec_kw={"wspace": 0.06})
    texts = _texts(placed, f"a − b [{panels.level_of(heterogeneity)}interval]")
    widths = column_widths(texts)
    tests = getattr(heterogeneity, "tests", None)
    for place, (ax, metric) in enumerate(zip(axes, chosen, strict=True)):
        rows = placed[placed["metric"] == metric]
        _block(ax, rows, labels)
        text_columns(ax, rows["place"], texts.loc[rows.index], widths)
        row_labels(ax, labels if place % across == 0 else [])
        if tests is not None:
            _feet(ax, rows, tests, by)
        ax.set_title(panels.metric(metric), loc="left", fontweight="bold")
    if title:
        figure.suptitle(title)
    return figure


def _places(cells: panels.Cells) -> tuple[pd.DataFrame, list[tuple[str, bool]], str]:
    """Give each group a row, the same in every block, and its test one below; a single pair is named in the title."""
    several = len(cells) > 1 or sum(len(rows[["a", "b"]].drop_duplicates()) for _, rows in cells) > 1
    placed: list[pd.DataFrame] = []
    labels: list[tuple[str, bool]] = []
    title = cells.shared
    for name, rows in cells:
        for (a, b), pair in rows.groupby(["a", "b"], sort=False, dropna=False, observed=True):
            sides = f"{style.literal(a)} − {style.literal(b)}"
            if several:
                heading = sides if len(cells) == 1 else f"{name}: {sides}"
                labels += [(line, True) for line in style.wrap(heading, _ROOM, style.SMALL).split("\n")]
            else:
                title = style.wrap(f"{title}: {sides}" if title else sides, 72 * style.TWO_COLUMNS - 10, style.TEXT)
            for (role, group), found in pair.groupby(["role", "group"], sort=False, observed=True):
                placed.append(found.assign(place=len(labels)))
                label = style.literal(group) if role == "group" else group[0].upper() + group[1:]
                labels += [(line, False) for line in style.wrap(label, _ROOM, style.SMALL).split("\n")]
            labels.append(("", False))
    return pd.concat(placed, ignore_index=True), labels, title


def _block(ax: Axes, rows: pd.DataFrame, labels: list[tuple[str, bool]]) -> None:
    """Draw squares, whiskers and diamonds about the zero line."""
    groups, pooled = rows[rows["role"] == "group"], rows[rows["role"] == "pooled"]
    # Hartung-Knapp with few groups is so wide that it would press all else together
    wide = (rows["role"] == "pooled") & (rows["group"] == "random effects (HK)")
    inside = rows.loc[~wide, ["difference", "lower", "upper"]].to_numpy(float)
    known = np.append(inside[np.isfinite(inside)], 0.0)
    room = 0.08 * (np.ptp(known) or 1.0)
    low, high = known.min() - room, known.max() + room
    # the zero line leaves out headings and tests, which are text
    lines = np.array([place for place, (label, heading) in enumerate(labels) if label and not heading])
    ax.vlines(np.zeros(len(lines)), lines - 0.5, lines + 0.5, color=style.INK, linewidth=0.6, zorder=1)
    ax.hlines(groups["place"], groups["lower"], groups["upper"], color=style.stroke(0).color, linewidth=1.1)
    _squares(ax, groups)
    for row in pooled.itertuples():
        _diamond(ax, row, low, high)
    ax.set_xlim(low, high)
    panels.zero_axis(ax, len(labels))


def _squares(ax: Axes, groups: pd.DataFrame) -> None:
    """Draw each group's difference, its area the weight; open where it has none."""
    color = style.stroke(0).color
    weight = groups["weight_fixed"].astype(float).abs()
    area = (_LARGEST * weight).fillna(0).clip(lower=_SMALLEST)
    ax.scatter(
        groups["difference"], groups["place"], s=area, marker="s", linewidths=0.8, edgecolors=color, zorder=3,
        facecolors=np.where(weight.isna(), "white", color).tolist(),
    )  # fmt: skip


def _diamond(ax: Axes, row: Any, low: float, high: float) -> None:
    """Draw a pooled difference as wide as its interval, cut at the edge of the block with an arrow."""
    if np.isnan(row.difference):
        return
    ends = np.nan_to_num(np.array([row.lower, row.upper], float), nan=row.difference)
    left, right = np.clip(ends, low, high)
    look: dict[str, Any] = {"facecolor": _DIAMONDS[row.group], "edgecolor": style.INK, "linewidth": 0.7, "zorder": 3}
    ax.fill([left, row.difference, right, row.difference], row.place + np.array([0, -0.32, 0, 0.32]), **look)
    for cut, at, marker in ((ends[0] < low, low, "<"), (ends[1] > high, high, ">")):
        if cut:
            ax.plot(at, row.place, marker, color=style.INK, markersize=3.2, clip_on=False, zorder=4)


def _texts(rows: pd.DataFrame, head: str) -> pd.DataFrame:
    """Write out each row of the frame; the columns are named by their headings."""

    def written(row: Any) -> list[str]:
        weights = [number(100 * weight, 0) for weight in (row.weight_fixed, row.weight_random)]
        share = "" if row.role == "pooled" else DASH if DASH in weights else " / ".join(weights)
        return [estimate(row, decimals(row.metric), "difference").line, share, panels.count(row.n_pairs)]

    texts = [written(row) for row in rows.itertuples()]
    return pd.DataFrame(texts, index=rows.index, columns=[head, "% F / R", "n"])


def _feet(ax: Axes, rows: pd.DataFrame, tests: pd.DataFrame, by: Sequence[str]) -> None:
    """Write the interaction test of each pair below its rows, from the left edge of the block."""
    keys = [*by, "metric", "a", "b"]
    below = rows.groupby(keys, sort=False, dropna=False, observed=True, as_index=False)["place"].max()
    for test in below.merge(tests, on=keys).itertuples():
        words = "no interaction test"
        if test.df > 0:
            p = f"p {p_value(test.p_value)}, adj. {p_value(test.p_adjusted)}"
            tau2 = number(test.tau2, decimals(test.metric) + 1)
            words = f"Q({test.df:.0f}) = {test.q:.2f}, {p}, I² = {100 * test.i2:.0f}%, τ² = {tau2}"
        where, look = ax.get_yaxis_transform(), {"ha": "left", "va": "center", "fontsize": style.TINY}
        panels.beside(ax, words, (0, test.place + 1), (0, 0), where, gid="test", **look)
