"""What the figures share: cells and their names, panels, depth axes and the at-risk numbers under them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, ScaledTranslation, Transform

from survexec.display import style
from survexec.display.wording import COLUMNS, IN_CALLS, number
from survexec.errors import InputError
from survexec.protocol.trajectory import UNKNOWN
from survexec.statistics.estimands import METRICS
from survexec.statistics.trials import MEASURES

DEPTH = "Depth k (tool calls)"
# Shares of fewer rollouts than this jump between 0 and 1 and hide the rest of the panel.
FEWEST = 5
_ROW_TOP, _ROW_STEP = 28.0, 9.0


@dataclass(frozen=True)
class Cells:
    """A tidy frame cut into its cells, in order of appearance.

    Parameters
    ----------
    parts : tuple of (tuple, DataFrame)
        Values of the columns that vary, and the rows of that cell.
    varying : tuple of str
        Cell columns that take more than one value; all of them where there is one cell.
    shared : str
        The values that every cell has, ready to print.
    """

    parts: tuple[tuple[tuple[Any, ...], pd.DataFrame], ...]
    varying: tuple[str, ...]
    shared: str

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Give the printable name and the rows of each cell."""
        for key, rows in self.parts:
            yield name(key), rows


def name(key: Sequence[Any]) -> str:
    """Write the values of a cell in one line."""
    return " · ".join(style.literal(value) for value in key)


def tidy(data: Any, measured: Sequence[str], by: Sequence[str] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Take the frame out of a result, and say which of its columns name the cell.

    Parameters
    ----------
    data : DataFrame or result
        A tidy frame, or anything with ``.frame`` and ``.by``.
    measured : sequence of str
        Columns that must be there; the cell columns of a bare frame are those before the first of them.
    by : sequence of str, optional
        Cell columns, where neither of these rules holds.

    Returns
    -------
    (DataFrame, list of str)
    """
    bare = isinstance(data, pd.DataFrame)
    frame = data if bare else data.frame
    missing = [column for column in measured if column not in frame.columns]
    if missing:
        raise InputError(
            f"this figure needs the columns {', '.join(measured)}; missing: {', '.join(missing)}; "
            f"got: {', '.join(map(str, frame.columns))}"
        )
    if by is None and not bare:
        by = data.by
    columns = list(frame.columns)
    first = min(columns.index(column) for column in measured)
    return frame, columns[:first] if by is None else list(by)


def cut(frame: pd.DataFrame, by: Sequence[str]) -> Cells:
    """Cut a tidy frame into cells named by the columns that vary."""
    varying = [column for column in by if frame[column].nunique(dropna=False) > 1] or list(by)
    constant = [column for column in by if column not in varying and (frame[column] != UNKNOWN).all()]
    shared = name([frame[column].iloc[0] for column in constant]) if len(frame) else ""
    if not by:
        return Cells(((("all rollouts",), frame),) if len(frame) else (), (), "")
    groups = frame.groupby(varying, sort=False, dropna=False, observed=True)
    return Cells(tuple((cast(tuple, key), rows) for key, rows in groups), tuple(varying), shared)


def level_of(data: Any) -> str:
    """Write the level of a result's intervals, such as ``"95% "``; nothing where it is not known."""
    made = {} if isinstance(data, pd.DataFrame) else getattr(data, "made", {})
    return f"{100 * made['level']:g}% " if made.get("level") else ""


def grid(
    figure: Figure | None, count: int, height: float, across: int = 4, top: float = 0.6, **shared: Any
) -> tuple[Any, list[Axes]]:
    """Make panels side by side, one or two columns wide, on a given figure or a new one.

    Parameters
    ----------
    figure : Figure or SubFigure or None
        Where to draw; a new figure is made for None.
    count : int
        Panels needed; at least one is made.
    height : float
        Inches of one row of panels.
    across : int
        Most panels side by side.
    top : float
        Inches for titles and legend.
    **shared
        For ``Figure.subplots``.

    Returns
    -------
    (Figure, list of Axes)
        As many axes as asked for, row by row; the cells of the grid left over stay blank.
    """
    columns = min(max(count, 1), across)
    rows = math.ceil(max(count, 1) / columns)
    if figure is None:
        width = style.ONE_COLUMN if columns == 1 else style.TWO_COLUMNS
        figure = style.new_figure(width, top + rows * height)
    axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
    for spare in axes[max(count, 1) :]:
        spare.set_axis_off()
    return figure, axes[: max(count, 1)]


def say(ax: Axes, text: str) -> Axes:
    """Write in an empty panel why it is empty."""
    ax.set_axis_off()
    words = style.wrap(text, width_of(ax), style.TEXT)
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=style.GREY)
    return ax


def nothing(figure: Figure | None, text: str, height: float = 1.0) -> Any:
    """Make a figure of one panel that says why it is empty."""
    figure, axes = grid(figure, 1, height)
    say(axes[0], text)
    return figure


def metric(name: str) -> str:
    """Write the name of a metric over its panel, with the unit where that is calls."""
    if name in IN_CALLS:
        return f"{COLUMNS[name]} (calls)"
    known = METRICS.get(name) or MEASURES.get(name)
    return known.label if known else style.literal(name)


def zero_axis(ax: Axes, count: int, ticks: int = 2) -> None:
    """Set a horizontal axis of differences with few ticks, over so many rows that are labelled beside the panel."""
    ax.set_ylim(count - 0.5, -0.5)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    dress(ax)


def head(ax: Axes, text: str, size: float = style.TEXT) -> None:
    """Give a panel a title no wider than itself; the values of a cell stand in one line or one each."""
    room = width_of(ax)
    lines = [line if style.width_of(line, size) <= room else line.replace(" · ", "\n") for line in text.split("\n")]
    ax.set_title(style.wrap("\n".join(lines), room, size), fontsize=size)


def width_of(ax: Axes) -> float:
    """Estimate, in points, how wide a panel will be: the layout is known only when the figure is drawn."""
    place = ax.get_subplotspec()
    across = 1 if place is None else place.get_gridspec().ncols
    return max(0.93 * (_points(ax.figure.bbox.width, ax) - 45) / across, 40.0)


def leftmost(ax: Axes) -> bool:
    """Whether a panel stands at the left, where labels are written for its whole row."""
    place = ax.get_subplotspec()
    return place is None or place.is_first_col()


def legend(figure: Figure | SubFigure, handles: Sequence[Artist], title: str = "") -> None:
    """Put one legend above all panels, under what they have in common, in as many columns as have room."""
    room = _points(figure.bbox.width, figure)
    labels = [style.wrap(str(handle.get_label()), room - 45, style.SMALL) for handle in handles]
    widest = max(style.width_of(line, style.SMALL) for label in labels for line in label.split("\n")) + 28
    figure.legend(
        handles=handles,
        labels=labels,
        title=style.wrap(title, room - 10, style.TEXT) or None,
        loc="outside upper center",
        ncols=max(1, min(len(handles), int(room // widest))),
        borderpad=0.2,
    )


def _points(pixels: float, inside: Any) -> float:
    """Turn pixels into points."""
    return 72 * pixels / (inside.figure.dpi if isinstance(inside, Axes) else inside.dpi)


def dress(ax: Axes) -> None:
    """Fix what matplotlib would otherwise take from the reader's settings when it draws."""
    ax.tick_params(labelsize=style.SMALL, labelfontfamily=style.FONT, width=0.6, length=2.5, pad=2.5)


def depth_axis(ax: Axes, first: int, last: int, numbers: Iterable[float] = ()) -> list[int]:
    """Set a discrete depth axis with no more ticks than the numbers under it have room for.

    Parameters
    ----------
    ax : Axes
        The panel.
    first, last : int
        Lowest and highest depth; each takes a whole column of the panel.
    numbers : iterable of float
        What is to stand under the ticks.

    Returns
    -------
    list of int
        The depths with a tick.
    """
    digits = max(len(count(value)) for value in [last, *numbers])
    room = width_of(ax) / (style.width_of("0" * digits, style.TINY) + 4.0)
    steps = (scale * step for scale in (1, 10, 100, 1000, 10_000) for step in (1, 2, 5))
    step = next((step for step in steps if (last - first) / step + 1 <= max(room, 2)), 50_000)
    even = range(first, last + 1, step) if step < 5 else range(0, last + 1, step)
    ticks = [first, *(k for k in even if k > first)]
    ax.set_xlim(first - 0.5, last + 0.5)
    ax.set_xticks(ticks)
    ax.set_xlabel(DEPTH)
    dress(ax)
    return ticks


def share_axis(ax: Axes, label: str = "Share of rollouts") -> None:
    """Set a vertical axis from 0 to 1."""
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1"])
    ax.set_ylabel(label)
    dress(ax)


def count(value: float) -> str:
    """Write a count; a dash where it is not known."""
    return number(value, 0)


def at_risk_row(
    ax: Axes,
    ticks: Sequence[int],
    at_risk: pd.Series,
    row: int = 0,
    line: Line2D | None = None,
    label: str = "At risk",
) -> None:
    """Write the numbers at risk under a depth axis, each centred on its tick.

    Parameters
    ----------
    ax : Axes
        The panel.
    ticks : sequence of int
        Depths with a tick.
    at_risk : Series
        Number at risk, indexed by depth; where a tick has none, nothing is written.
    row : int
        Which row under the axis label, from 0.
    line : Line2D, optional
        A line of the panel: its look is repeated to the left of the numbers, to say whose they are.
    label : str
        What the numbers are, written to the left of the row, or above the lines where there are any.
    """
    down = -(_ROW_TOP + _ROW_STEP * row)
    look = {"va": "center", "fontsize": style.TINY}
    for k in ticks:
        if k in at_risk.index:
            where = ax.get_xaxis_transform()
            beside(ax, count(at_risk[k]), (k, 0), (0, down), where, ha="center", gid="at risk", **look)
    if line is not None:
        corner = ScaledTranslation(0, 0, ax.transAxes)  # type: ignore[arg-type]
        points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + corner
        sample = Line2D([-29, -19, -9], [down] * 3)
        sample.update_from(line)
        sample.set(transform=points, clip_on=False, markevery=[1])
        ax.add_artist(sample)
    if label and (row == 0 or line is None):
        height = down if line is None else _ROW_STEP - _ROW_TOP
        beside(ax, label, (0, 0), (-9, height), ax.transAxes, ha="right", **look)


def ribbons(ax: Axes, rows: pd.DataFrame, color: str, faint: float = 1.0) -> None:
    """Draw the pale ribbon of the simultaneous band and on it that of the pointwise interval.

    Parameters
    ----------
    ax : Axes
        The panel.
    rows : DataFrame
        Of one curve in order of depth: ``k``, ``lower``, ``upper``, ``band_lower``, ``band_upper``.
    color : str
        That of the curve.
    faint : float
        Below 1 where many ribbons lie on one another.
    """
    # each depth fills its column, also the last before a gap, as the line does
    columns = rows.iloc[np.repeat(np.arange(len(rows)), 2)]
    depths = np.clip(columns["k"].to_numpy(float) + np.tile([-0.5, 0.5], len(rows)), *span(rows))
    for low, high, alpha in (("band_lower", "band_upper", 0.09), ("lower", "upper", 0.2)):
        edges = columns[low].astype(float), columns[high].astype(float)
        ax.fill_between(depths, *edges, color=color, linewidth=0, alpha=alpha * faint)


def ribbon_key(data: Any, frame: pd.DataFrame) -> list[Patch]:
    """Explain the two ribbons, where there are any."""
    level = level_of(data)
    named = {"lower": f"{level}pointwise interval", "band_lower": f"{level}simultaneous band"}
    shades = {"lower": 0.35, "band_lower": 0.14}
    return [
        Patch(facecolor=style.INK, alpha=shades[column], linewidth=0, label=label)
        for column, label in named.items()
        if frame[column].notna().any()
    ]


def beside(
    ax: Axes,
    text: str,
    at: tuple[float, ...],
    shift: tuple[float, float],
    where: Transform | None = None,
    **look: Any,
) -> Annotation:
    """Write text some points away from a place, given in data coordinates or those of `where`."""
    return ax.annotate(
        text,
        (at[0], at[1]),
        shift,
        xycoords=where or "data",
        textcoords="offset points",
        annotation_clip=False,
        **look,
    )


def first_of(rows: pd.DataFrame, column: str) -> pd.Series:
    """Give a column by depth, where several rows of one depth repeat it."""
    return rows.drop_duplicates("k").set_index("k")[column].sort_index()


def span(frame: pd.DataFrame) -> tuple[int, int]:
    """Give the lowest and the highest depth of a frame."""
    return int(np.min(frame["k"])), int(np.max(frame["k"]))
