"""From one method's success to another's, in steps: what TER, s and RR contribute."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import estimate, number

COLUMNS = ("a", "b", "part", "estimate_a", "estimate_b", "estimate", "lower", "upper", "n_pairs")
STEPS: Final = {"ter": "TER", "clean_success": "Success if clean (s)", "rr": "Recovery (RR)"}
ENDS: Final = style.Fill("success", "#BDBDBD")
UP: Final = style.Fill("raises success", "#56B4E9")
DOWN: Final = style.Fill("lowers success", "#D55E00", "/////")
# Points down a panel: a bar, a line of the label above it, the gap below it.
_BAR, _LINE, _GAP = 10.0, 8.5, 4.5


@style.styled
def waterfall(attribution: Any, figure: Figure | None = None) -> Figure:
    """Draw how the success of b becomes that of a, a step a factor, one panel a pair.

    Reading: the upper grey bar is the success of b, the lower one that of a. The steps between are what TER, s and
    RR contribute; they start where the one before ended and add to the difference exactly. Blue to the right raises
    success, orange hatched to the left lowers it; the label gives the factor itself, from b to a. A whisker is the
    interval of the step's length, drawn from its start: where it crosses that start, the interval holds zero. A dash
    and dotted lines: the part is undefined, and the steps do not meet the lower bar.

    Parameters
    ----------
    attribution : Attribution or DataFrame
        Within columns, ``a``, ``b``, ``part``, ``estimate_a``, ``estimate_b``, ``estimate``, ``lower``, ``upper``,
        ``n_pairs``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "a": "x", "b": "y", "part": ["ter", "clean_success", "rr", "total"], "estimate_a": [0.9, 0.9, 0.5, 0.86],
    ...     "estimate_b": [0.7, 0.9, 0.5, 0.78], "estimate": [0.08, 0.0, 0.0, 0.08], "lower": [0.02, -0.1, -0.05, 0.01],
    ...     "upper": [0.14, 0.1, 0.05, 0.15], "n_pairs": 100,
    ... })
    >>> [text.get_text() for text in waterfall(frame).axes[0].texts if text.get_gid() == "number"][:2]
    ['0.780', '+0.080 [0.020, 0.140]']
    """
    frame, by = panels.tidy(attribution, COLUMNS)
    cells = panels.cut(frame, by)
    drawn = [
        (name if len(cells) > 1 else "", pair.set_index("part"))
        for name, rows in cells
        for _, pair in rows.groupby(["a", "b"], sort=False, dropna=False, observed=True)
    ]
    labels = [_labels(pair) for _, pair in drawn]
    tops, depth = _places(labels)
    figure, axes = panels.grid(figure, len(drawn), depth / 72 + 0.6, 2, 0.25 + 0.15 * bool(cells.shared))
    if not drawn:
        panels.say(axes[0], "No differences to draw")
        return figure
    texts = [_numbers(pair) for _, pair in drawn]
    room = 8 + max(style.width_of(text, style.TINY) for column in texts for text in column)
    ends = np.array([_ends(pair) for _, pair in drawn])
    limits = 1.04 * ends[:, 0].min(), 1.04 * ends[:, 1].max()
    for ax, (place, pair), names, numbers in zip(axes, drawn, labels, texts, strict=True):
        _panel(ax, pair, tops)
        ax.set(xlim=limits, ylim=(depth, 0), xlabel="Success (share of rollouts)")
        for top, name, numbered in zip(tops, names, numbers, strict=True):
            look: dict[str, Any] = {"va": "bottom", "fontsize": style.SMALL, "linespacing": 1.0, "zorder": 4}
            panels.beside(ax, name, (0, top), (2, 1.5), path_effects=style.HALO, **look)
            look = {"ha": "right", "va": "center", "fontsize": style.TINY, "gid": "number"}
            panels.beside(ax, numbered, (1, top + _BAR / 2), (room, 0), ax.get_yaxis_transform(), **look)
        panels.head(ax, "\n".join(filter(None, [place, f"{panels.count(pair['n_pairs'].iloc[0])} pairs"])), style.SMALL)
        panels.dress(ax)
    whisker = Line2D([], [], color=style.INK, linewidth=0.9, label=f"{panels.level_of(attribution)}interval")
    panels.legend(figure, [UP.handle, DOWN.handle, whisker], cells.shared)
    return figure


def _labels(pair: pd.DataFrame) -> list[str]:
    """Name the bars: b, the factors from b to a, and a."""
    sides = {side: style.wrap(f"{style.literal(pair[side].iloc[0])} ({side})", 150, style.SMALL) for side in "ab"}
    steps = [
        f"{name}: {number(pair['estimate_b'][part], 3)} → {number(pair['estimate_a'][part], 3)}"
        for part, name in STEPS.items()
    ]
    return [sides["b"], *steps, sides["a"]]


def _places(labels: list[list[str]]) -> tuple[list[float], float]:
    """Give the top of each bar, in points from the top of a panel, and the depth of the panel."""
    tops, down = [], 0.0
    for row in zip(*labels, strict=True):
        tops.append(down + 2.0 + _LINE * (1 + max(name.count("\n") for name in row)))
        down = tops[-1] + _BAR + _GAP
    return tops, down


def _levels(pair: pd.DataFrame) -> np.ndarray:
    """Give where each step starts, and where the last one ends; an undefined step has no length."""
    lengths = pair["estimate"].reindex(list(STEPS)).astype(float).fillna(0.0)
    return pair["estimate_b"]["total"] + np.concatenate([[0.0], np.cumsum(lengths)])


def _ends(pair: pd.DataFrame) -> tuple[float, float]:
    """Give the left and the right end of what a panel holds."""
    levels = _levels(pair)
    bounds = pair[["lower", "upper"]].reindex(list(STEPS)).to_numpy(float)
    held = np.concatenate([[0.0, 0.1, pair["estimate_a"]["total"]], levels, *(levels[:-1] + bounds.T)])
    return float(np.nanmin(held)), float(np.nanmax(held))


def _panel(ax: Axes, pair: pd.DataFrame, tops: list[float]) -> None:
    """Draw the bars, steps and whiskers of one pair, with lines from each to the next."""
    levels = _levels(pair)
    look: dict[str, Any] = {"height": _BAR, "align": "edge"}
    for side, top in (("b", tops[0]), ("a", tops[-1])):
        ax.barh(top, pair[f"estimate_{side}"]["total"], **look, **ENDS.look)
    for top, start, part in zip(tops[1:-1], levels, STEPS, strict=False):
        length, low, high = pair.loc[part, ["estimate", "lower", "upper"]].astype(float)
        ax.barh(top, 0.0 if np.isnan(length) else length, left=start, **look, **(DOWN if length < 0 else UP).look)
        ax.hlines(top + _BAR / 2, start + low, start + high, color=style.INK, linewidth=0.9, zorder=3)
    known = [True, *pair["estimate"].reindex(list(STEPS)).notna(), True]
    for level, (above, below), both in zip(levels, pairwise(tops), pairwise(known), strict=True):
        dash = "solid" if all(both) else "dotted"
        ax.vlines(level, above, below + _BAR, color=style.INK, linewidth=0.5, linestyle=dash, zorder=2)
    ax.set_yticks([])
    ax.spines["left"].set_position(("data", 0))
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


def _numbers(pair: pd.DataFrame) -> list[str]:
    """Write the success of b, the steps with their intervals, and the success of a."""
    steps = ["+" * (row.estimate > 0) + estimate(row, 3).line for row in pair.loc[list(STEPS)].itertuples()]
    return [number(pair["estimate_b"]["total"], 3), *steps, number(pair["estimate_a"]["total"], 3)]
