"""Power against the number of tasks, with the answer of a plan."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import brief, number
from survexec.statistics.estimands import METRICS

COLUMNS = ("metric", "point", "tasks", "trials", "difference", "power")


@style.styled
def power_curves(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the power to show a difference against the number of tasks, a curve a difference and number of trials.

    Reading: follow a curve up to the dashed line of the power that is sought; below that point stands the number of
    tasks it takes. The filled point, with a line down to its number of tasks, is the answer of the plan; open points
    are its alternatives. How far apart the curves of neighbouring differences are says how much hangs on the
    difference that was assumed. A curve of hits with one trial a task rises like a saw: the test takes whole numbers.

    Parameters
    ----------
    plan : Plan or DataFrame
        ``metric``, ``point`` ("curve", "alternative" or "answer"), ``tasks``, ``trials``, ``difference``, ``power``.
    ax : Axes, optional
        Where to draw; a new figure of one column's width otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "metric": "ter", "point": ["answer", "curve", "curve"], "tasks": [94, 50, 150], "trials": 1,
    ...     "difference": 0.15, "power": [0.8, 0.53, 0.94],
    ... })
    >>> power_curves(frame).get_ylabel()
    'Power'
    """
    frame, _ = panels.tidy(plan, COLUMNS, by=())
    ax = style.new_axes(style.ONE_COLUMN, 2.7) if ax is None else ax
    drawn = frame[frame["power"].notna()]
    if drawn.empty:
        return panels.say(ax, "No difference is shown with the power that is sought")
    several = {name: drawn[name].nunique() > 1 for name in ("difference", "trials")}
    several["difference"] |= not several["trials"]
    lines = [
        _curve(ax, rows, style.stroke(index), ", ".join(_words(key, several, True)))
        for index, (key, rows) in enumerate(drawn.groupby(["difference", "trials"]))
    ]
    last = int(drawn["tasks"].max())
    ax.set_xlim(0, last)
    ax.set_xlabel("Tasks")
    panels.share_axis(ax, "Power")
    sought = getattr(plan, "made", {}).get("power")
    if sought is not None:
        ax.axhline(sought, color=style.GREY, linewidth=0.7, dashes=(4, 2), zorder=1)
    for answer in drawn[drawn["point"] == "answer"].itertuples():
        _answer(ax, answer, answer.tasks > last / 2)
    first = drawn.iloc[0]
    shared = _words((first["difference"], first["trials"]), several, False)
    panels.legend(ax.figure, lines, ", ".join([f"Difference in {METRICS[first['metric']].label}", *shared]))
    return ax


def _words(key: tuple[float, int], several: dict[str, bool], varying: bool) -> list[str]:
    """The difference and the trials of a curve in words: those that vary between curves, or those they share."""
    size, trials = brief(key[0]), panels.count(key[1])
    words = {"difference": size, "trials": f"{trials} trial{'s' * (trials != '1')}"}
    return [word for name, word in words.items() if several[name] == varying]


def _curve(ax: Axes, rows: pd.DataFrame, look: style.Stroke, label: str) -> Line2D:
    """Draw one curve with its answers."""
    rows = rows.sort_values("tasks")
    drawn: dict[str, Any] = {"color": look.color, "linestyle": look.dash, "linewidth": 1.2, "label": label}
    (line,) = ax.plot(rows["tasks"], rows["power"], **drawn, clip_on=False, zorder=2)
    for point, at in rows[rows["point"] != "curve"].groupby("point"):
        fill = look.color if point == "answer" else "white"
        ax.plot(
            at["tasks"], at["power"], look.marker, color=look.color, markersize=4.5, markerfacecolor=fill,
            clip_on=False, zorder=3,
        )  # fmt: skip
    return line


def _answer(ax: Axes, answer: Any, left: bool) -> None:
    """Lead from the answer down to its number of tasks, and write it there."""
    ax.vlines(answer.tasks, 0, answer.power, color=style.INK, linewidth=0.7, linestyle=":", zorder=1)
    text = f"{answer.tasks} tasks, power {number(answer.power, 2)}"
    shift, side = ((-3, 4), "right") if left else ((3, 4), "left")
    panels.beside(ax, text, (answer.tasks, 0), shift, ha=side, va="bottom", fontsize=style.SMALL, gid="answer")
