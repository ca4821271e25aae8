"""What several trials of a task tell: pass@k and pass^k against k, the standard error against trials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from survexec.display import style
from survexec.display.figures import panels
from survexec.statistics.trials import SAVING

PASS_COLUMNS = ("outcome", "convention", "k", "estimate", "lower", "upper", "n_tasks")
CURVE_COLUMNS = ("metric", "point", "trials", "standard_error")
CONVENTIONS: dict[str, tuple[Any, str]] = {
    "pass@k": ("-", "pass@k: at least one of k trials"),
    "pass^k": ((0, (2, 1)), "pass^k: all k trials"),
}
# On a plain axis more trials than this crowd the first ones.
_PLAIN = 16
# More ticks or whiskers than these run into each other.
_FEW = 8


@style.styled
def pass_curves(result: Any, figure: Figure | None = None) -> Figure:
    """Draw pass@k and pass^k against the number of trials k, a colour a cell.

    Reading: the solid line at k is the chance that at least one of k trials does what the title says, the dashed
    one that all k do. They start from the same point, the share of single trials. The wider they open, the less
    one trial tells of the next; two level lines mean that each task always comes out the same. Ribbon: interval
    over tasks; there is none where all tasks agree. The numbers under a tick are the tasks with at least k trials.

    Parameters
    ----------
    result : PassAt or DataFrame
        Cell columns, ``outcome``, ``convention``, ``k``, ``estimate``, ``lower``, ``upper``, ``n_tasks``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel an outcome, three side by side, with the same scale.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "outcome": "success", "convention": ["pass@k", "pass@k", "pass^k", "pass^k"],
    ...     "k": [1, 2, 1, 2], "estimate": [0.5, 0.7, 0.5, 0.3], "lower": 0.2, "upper": 0.8, "n_tasks": 50,
    ... })
    >>> pass_curves(frame).axes[0].get_title()
    'Success'
    """
    frame, by = panels.tidy(result, PASS_COLUMNS)
    cells = panels.cut(frame, by)
    outcomes = list(frame["outcome"].unique())
    height = 1.75 + 0.125 * len(cells)
    figure, axes = panels.grid(figure, len(outcomes), height, across=3, sharey=True)
    if not outcomes:
        panels.say(axes[0], "No trials to draw")
        return figure
    looks = {key: style.stroke(index) for index, (key, _) in enumerate(cells.parts)}
    for ax, outcome in zip(axes, outcomes, strict=True):
        panels.head(ax, panels.metric(outcome))
        panels.share_axis(ax, "Mean over tasks" if panels.leftmost(ax) else "")
        inside = frame[frame["outcome"] == outcome]
        if inside["k"].max() <= _PLAIN:
            ticks = panels.depth_axis(ax, *panels.span(inside), inside["n_tasks"])
        else:
            ticks = _doublings_axis(ax, inside["k"], inside["k"])
        ax.set_xlabel("Trials k")
        for row, (key, rows) in enumerate(cells.parts):
            _pair_of_lines(ax, rows[rows["outcome"] == outcome], looks[key], ticks, row)
    panels.legend(figure, [*_names(looks), *_conventions(result, frame)], cells.shared)
    return figure


@style.styled
def trial_errors(result: Any, figure: Figure | None = None) -> Figure:
    """Draw the standard error of each mean against the number of trials a task, a line a cell.

    Reading: a line shows how well the mean would be known with that many trials of the same tasks. The ring is
    the present design. The large filled marker is where more trials stop helping: from there on, twice as many
    would lower the standard error by less than 5%. The dotted line at the right is what is left with endless
    trials: only more tasks lower it. Each panel has its own scale, in the unit of its metric. A line without a
    large marker has none: its tasks do not differ, so that trials help as much as tasks do.

    Parameters
    ----------
    result : TrialVariance or DataFrame
        `TrialVariance.curve` or the result itself: cell columns, ``metric``, ``point``, ``trials``,
        ``standard_error``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a metric, three side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "metric": "ter", "point": ["asked", "asked", "now", "enough", "limit"],
    ...     "trials": [1, 4, 4, 3, float("inf")], "standard_error": [0.06, 0.05, 0.05, 0.052, 0.045],
    ... })
    >>> trial_errors(frame).axes[0].get_xlabel()
    'Trials a task'
    """
    frame, by = panels.tidy(getattr(result, "curve", result), CURVE_COLUMNS)
    cells = panels.cut(frame, by)
    known = frame[(frame["point"] == "asked") & frame["standard_error"].notna()]
    metrics = list(frame["metric"].unique()) if len(known) else []
    figure, axes = panels.grid(figure, len(metrics), 1.75, across=3)
    if not metrics:
        panels.say(axes[0], "No variance to split between tasks and trials; the notes say why")
        return figure
    looks = {key: style.stroke(index) for index, (key, _) in enumerate(cells.parts)}
    for ax, metric in zip(axes, metrics, strict=True):
        rows = frame[frame["metric"] == metric].dropna(subset=["standard_error"])
        panels.head(ax, panels.metric(metric))
        if metric not in set(known["metric"]):
            panels.say(ax, "No variance to split; the notes say why")
            continue
        _error_axes(ax, rows)
        for key, part in cells.parts:
            _error_line(ax, part[part["metric"] == metric].dropna(subset=["standard_error"]), looks[key])
    panels.legend(figure, [*_names(looks, lines=True), *_points()], cells.shared)
    return figure


def _doublings_axis(ax: Axes, trials: pd.Series, marked: Iterable[float]) -> list[int]:
    """Set an axis on which a doubling is one step, wide enough for all trials, with ticks at some of those marked."""
    there = sorted({int(value) for value in marked})
    doublings = [value for value in there if value & (value - 1) == 0]
    ticks = doublings if len(doublings) > 2 else there
    ticks = ticks[:: 1 + (len(ticks) - 1) // _FEW]
    ax.set_xscale("log", base=2)
    ax.set_xlim(trials.min() / 1.2, trials.max() * 1.2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    panels.dress(ax)
    return ticks


def _pair_of_lines(ax: Axes, rows: pd.DataFrame, look: style.Stroke, ticks: list[int], row: int) -> None:
    """Draw both conventions of one cell with their intervals, and its tasks under the axis."""
    for convention, (dash, _) in reversed(CONVENTIONS.items()):
        part = rows[rows["convention"] == convention].sort_values("k")
        full = convention == "pass@k"
        k, lower, upper = (part[column].astype(float) for column in ("k", "lower", "upper"))
        ax.fill_between(k, lower, upper, color=look.color, alpha=0.13, linewidth=0)
        if len(part) <= _FEW:
            ax.vlines(k, lower, upper, color=look.color, alpha=0.4, linewidth=0.8)
        (line,) = ax.plot(
            part["k"], part["estimate"], color=look.color, linestyle=dash, linewidth=1.2, marker=look.marker,
            markersize=3.6, markerfacecolor=look.color if full else "white", markeredgecolor=look.color,
            markeredgewidth=0.8, clip_on=False, zorder=3,
        )  # fmt: skip
    panels.at_risk_row(ax, ticks, panels.first_of(rows, "n_tasks"), row, line, "Tasks" if panels.leftmost(ax) else "")


def _names(looks: dict[tuple[Any, ...], style.Stroke], lines: bool = False) -> list[Line2D]:
    """Name the cells: by line where each has one dash, else by marker and colour alone."""
    return [
        Line2D(
            [], [], label=panels.name(key), color=look.color, marker=look.marker, markersize=3.6, linewidth=1.2,
            linestyle=look.dash if lines else "none",  # type: ignore[arg-type]
        )
        for key, look in looks.items()
    ]  # fmt: skip


def _conventions(result: Any, frame: pd.DataFrame) -> list[Line2D | Patch]:
    """Explain the dashes, and the ribbon where there is one."""
    keys: list[Line2D | Patch] = [
        Line2D(
            [], [], label=label, color=style.INK, linestyle=dash, linewidth=1.2, marker="o", markersize=3.6,
            markerfacecolor=style.INK if convention == "pass@k" else "white", markeredgecolor=style.INK,
        )
        for convention, (dash, label) in CONVENTIONS.items()
    ]  # fmt: skip
    if frame["lower"].notna().any():
        label = f"{panels.level_of(result)}interval"
        keys.append(Patch(facecolor=style.INK, alpha=0.2, linewidth=0, label=label))
    return keys


_RING: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 9.0, "markerfacecolor": "none"}
_LARGE: dict[str, Any] = {"linestyle": "none", "markersize": 6.5, "markeredgecolor": style.INK, "markeredgewidth": 0.8}


def _error_axes(ax: Axes, rows: pd.DataFrame) -> None:
    """Set both axes of one panel: trials by doublings, standard errors from 0."""
    finite = rows[np.isfinite(rows["trials"].astype(float))]
    trials = finite["trials"].astype(float)
    doublings = 2 ** np.arange(np.ceil(np.log2(trials.min())), np.log2(trials.max()) + 1e-9)
    _doublings_axis(ax, trials, [*doublings, *trials[finite["point"] == "asked"]])
    ax.set_xlabel("Trials a task")
    top = finite["standard_error"].max()
    ax.set_ylim(0, 1.08 * top if top > 0 else 1)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5))
    ax.set_ylabel("Standard error" if panels.leftmost(ax) else "")


def _error_line(ax: Axes, rows: pd.DataFrame, look: style.Stroke) -> None:
    """Draw one cell: its line, the present design, where more trials stop helping, and what is left in the end."""
    points = {point: part.sort_values("trials") for point, part in rows.groupby("point")}
    marks: dict[str, Any] = {"color": look.color, "clip_on": False}
    line = pd.concat([points[name] for name in ("asked", "enough") if name in points]).sort_values("trials")
    line = line[np.isfinite(line["trials"].astype(float))]
    ax.plot(line["trials"], line["standard_error"], linestyle=look.dash, linewidth=1.2, zorder=3, **marks)
    asked = points.get("asked", line[:0])
    ax.plot(asked["trials"], asked["standard_error"], look.marker, markersize=3.0, zorder=4, **marks)
    for name, shape, order in (("now", _RING, 5), ("enough", {**_LARGE, "marker": look.marker}, 6)):
        part = points.get(name, line[:0])
        part = part[np.isfinite(part["trials"].astype(float))]
        if len(part):  # an empty line that is not clipped has no place, which breaks the layout
            ax.plot(part["trials"], part["standard_error"], zorder=order, gid=name, **shape, **marks)
    for height in points.get("limit", line[:0])["standard_error"]:
        ax.axhline(height, 0.9, 1, color=look.color, linestyle=(0, (1, 1)), linewidth=1.4, gid="limit")


def _points() -> list[Line2D]:
    """Explain the marked points."""
    ink: dict[str, Any] = {"color": style.INK}
    return [
        Line2D([], [], label="present design", **_RING, **ink),
        Line2D(
            [], [], label=f"enough: twice as many would lower it by less than {SAVING:.0%}", marker="o", **_LARGE, **ink
        ),
        Line2D([], [], label="left with endless trials", linestyle=(0, (1, 1)), linewidth=1.4, **ink),
    ]
