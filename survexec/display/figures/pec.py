"""One curve a cell over depth, with intervals, bands and numbers at risk: PEC, Kaplan-Meier, Nelson-Aalen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from survexec.display import style
from survexec.display.figures import panels

COLUMNS = ("k", "estimate", "lower", "upper", "band_lower", "band_upper", "at_risk")
TITLES = {
    "pec": "PEC(k): of all rollouts",
    "pec_elig": f"PEC_elig(k): of rollouts with T ≥ k, if {panels.FEWEST} or more",
    "km": "Kaplan-Meier: had every rollout gone on",
    "na": "Nelson-Aalen: had every rollout gone on",
    "at_risk": "About to make call k, without an error so far",
}
LABEL = "Share without an error"
# What is no share, and so has no end at 1.
AMOUNTS = {"na": "Cumulative hazard", "at_risk": "Rollouts at risk"}


@style.styled
def curve(curves: Any, ax: Axes | None = None) -> Axes:
    """Draw one curve a cell as steps, each with its interval, band and numbers at risk.

    Reading: a marker at depth k is the estimate; the line steps half-way between depths because calls are
    counted. Dark ribbon: pointwise interval. Pale ribbon: simultaneous band, which covers the whole curve at
    once. PEC falls when rollouts fail and also when they finish: read it beside PEC_elig or the state stack.
    Kaplan-Meier falls only when they fail: who finished or was cut counts as able to go on, and leaves the
    numbers at risk. Nelson-Aalen adds up the hazards instead: 0.5 at k means half an error to be expected by
    then. A line ends where nobody is left at risk.

    Parameters
    ----------
    curves : Curves or DataFrame
        Kind "pec", "pec_elig", "km", "na" or "at_risk": cell columns, ``k``, ``estimate``, ``lower``, ``upper``,
        ``band_lower``, ``band_upper``, ``at_risk``.
    ax : Axes, optional
        Where to draw; a new figure of one column's width otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [0, 1], "estimate": [1, 0.7], "lower": [1, 0.4], "upper": [1, 0.9],
    ...     "band_lower": [1, 0.3], "band_upper": [1, 1], "at_risk": [10, 10],
    ... })
    >>> curve(frame).get_xlabel()
    'Depth k (tool calls)'
    """
    kind = getattr(curves, "kind", "")
    frame, by = panels.tidy(curves, COLUMNS)
    cells = panels.cut(_eligible(frame) if kind == "pec_elig" else frame, by)
    if ax is None:
        ax = style.new_axes(style.ONE_COLUMN, 2.4 + 0.25 * len(cells))
    if not len(cells):
        return panels.say(ax, "No rollouts to draw")
    looks = {key: style.stroke(index) for index, (key, _) in enumerate(cells.parts)}
    _lines(ax, cells, looks, kind)
    panels.head(ax, TITLES.get(kind, ""))
    panels.legend(ax.figure, [*_key(looks), *panels.ribbon_key(curves, frame)], cells.shared)
    return ax


@style.styled
def pec_beside_eligible(pec: Any, pec_elig: Any, figure: Figure | None = None) -> Figure:
    """Draw PEC beside PEC_elig, a line a cell, with intervals, bands and numbers at risk.

    Reading: left, the share of all rollouts that made k calls without an error: a rollout that finished
    clean before call k counts as gone. Right, the same share among rollouts with at least k calls. Where the
    left curve falls and the right one does not, rollouts finish; where both fall, they fail. A marker is the
    estimate at that depth, the dark ribbon its pointwise interval, the pale ribbon the simultaneous band.
    Each row of numbers belongs to the line at its left: left, the rollouts about to make that call without an
    earlier error; right, those with at least that many calls, the denominator of the curve.

    Parameters
    ----------
    pec, pec_elig : Curves or DataFrame
        Cell columns, ``k``, ``estimate``, ``lower``, ``upper``, ``band_lower``, ``band_upper``, ``at_risk``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        Two panels. Where several cell columns vary, one row of two panels for each value of all but the last.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [0, 1], "estimate": [1, 0.7], "lower": [1, 0.4], "upper": [1, 0.9],
    ...     "band_lower": [1, 0.3], "band_upper": [1, 1], "at_risk": [10, 10],
    ... })
    >>> len(pec_beside_eligible(frame, frame).axes)
    2
    """
    sides = [panels.tidy(side, COLUMNS) for side in (pec, pec_elig)]
    sides[1] = _eligible(sides[1][0]), sides[1][1]
    whole = panels.cut(*sides[0])
    if not len(whole):
        return panels.nothing(figure, "No rollouts to draw", 1.9)
    inner = whole.varying if len(whole) == 1 else whole.varying[-1:]
    outer = whole.varying[: -len(inner)]
    looks = {key: style.stroke(index) for index, (key, _) in enumerate(panels.cut(sides[0][0], inner).parts)}
    blocks = [{panels.name(key): rows for key, rows in panels.cut(side, outer).parts} for side, _ in sides]
    figure, axes = panels.grid(figure, 2 * len(blocks[0]), 2.0 + 0.125 * len(looks), across=2, sharey=True)
    for place, block in enumerate(blocks[0]):
        for column, (kind, side) in enumerate(zip(("pec", "pec_elig"), blocks, strict=True)):
            ax = axes[2 * place + column]
            if block not in side:
                panels.say(ax, f"No {kind} here")
                continue
            _lines(ax, panels.cut(side[block], inner), looks, kind)
            panels.head(ax, "\n".join([block] * bool(outer) + [TITLES[kind]]))
            ax.set_ylabel("" if column else LABEL)
    panels.legend(figure, [*_key(looks), *panels.ribbon_key(pec, sides[0][0])], whole.shared)
    return figure


def _eligible(frame: pd.DataFrame) -> pd.DataFrame:
    """PEC_elig with its own denominator as the numbers below, drawn only where that is not tiny."""
    if "denominator" not in frame.columns:
        return frame
    drawn = frame["denominator"] >= panels.FEWEST
    shares = ["estimate", "lower", "upper", "band_lower", "band_upper"]
    return frame.assign(at_risk=frame["denominator"], **{name: frame[name].where(drawn) for name in shares})


def _key(looks: dict[tuple[Any, ...], style.Stroke]) -> list[Line2D]:
    """Name the lines."""
    return [Line2D([], [], label=panels.name(key), **_look(look)) for key, look in looks.items()]


def _look(look: style.Stroke) -> dict[str, Any]:
    return {
        "color": look.color, "linestyle": look.dash, "linewidth": 1.2, "marker": look.marker,
        "markersize": 3.4, "markeredgecolor": "white", "markeredgewidth": 0.3,
    }  # fmt: skip


def _lines(ax: Axes, cells: panels.Cells, looks: dict[tuple[Any, ...], style.Stroke], kind: str) -> None:
    """Draw the cells of one panel and their rows of numbers; many cells get fainter ribbons."""
    frame = pd.concat([rows for _, rows in cells.parts])
    if kind in AMOUNTS:
        _amount_axis(ax, frame, AMOUNTS[kind])
    else:
        panels.share_axis(ax, LABEL)
    ticks = panels.depth_axis(ax, *panels.span(frame), frame["at_risk"])
    faint = 0.5 if len(cells) > 6 else 1.0
    for row, (key, rows) in enumerate(cells.parts):
        rows = rows.sort_values("k")
        depths, look = rows["k"].to_numpy(dtype=float), looks[key]
        at_ticks = np.flatnonzero(np.isin(depths, ticks)).tolist()
        (line,) = ax.plot(
            depths,
            rows["estimate"],
            drawstyle="steps-mid",
            markevery=at_ticks,
            clip_on=False,
            zorder=3,
            **_look(look),
        )
        panels.ribbons(ax, rows, look.color, faint)
        label = "Eligible" if kind == "pec_elig" else "At risk"
        panels.at_risk_row(ax, ticks, panels.first_of(rows, "at_risk"), row, line, label)


def _amount_axis(ax: Axes, frame: pd.DataFrame, label: str) -> None:
    """Set a vertical axis from 0 with room for the limits, unless they would press the lines to the floor."""
    limits = frame[["estimate", "upper", "band_upper"]].astype(float).max()
    top = min(limits.max(), 2.5 * limits["estimate"])
    ax.set_ylim(0, 1.04 * top if top > 0 else 1)
    ax.set_ylabel(label)
    panels.dress(ax)
