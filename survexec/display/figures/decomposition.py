"""Success split into clean and recovered success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import number

COLUMNS = ("part", "estimate")
HEADS = ("clean", "recovered", "success")


@style.styled
def decomposition_bars(decomposition: Any, ax: Axes | None = None) -> Axes:
    """Draw the success of each cell as a bar of two parts: clean and recovered.

    Reading: the bar ends at the success rate. Blue: rollouts that never erred and succeeded, TER × s.
    Orange hatched: rollouts that erred and succeeded all the same, (1 − TER) × RR. Of two bars of equal
    length, the one with more orange got there by repairing errors. The numbers beside are the two parts and
    their sum; a dash where one is undefined.

    Parameters
    ----------
    decomposition : Summary or DataFrame
        `Summary.decomposition` or the summary itself: cell columns, ``part`` ("clean", "recovered"),
        ``estimate``.
    ax : Axes, optional
        Where to draw; a new figure of one column's width otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"method": "plain", "part": ["clean", "recovered"], "estimate": [0.3, 0.2]})
    >>> [text.get_text() for text in decomposition_bars(frame).texts]
    ['plain', '0.300', '0.200', '0.500', 'clean', 'recovered', 'success']
    """
    frame, by = panels.tidy(getattr(decomposition, "decomposition", decomposition), COLUMNS)
    cells = panels.cut(frame, by)
    names = [style.wrap(name, 72 * style.ONE_COLUMN - 25, style.SMALL) for name, _ in cells]
    tall = max((1 + name.count("\n") for name in names), default=1)
    if ax is None:
        ax = style.new_axes(style.ONE_COLUMN, 1.0 + (0.17 + 0.14 * tall) * len(cells))
    if not len(cells):
        return panels.say(ax, "No rollouts to draw")
    for place, (name, (_, rows)) in enumerate(zip(names, cells, strict=True)):
        _bar(ax, place, name, rows.set_index("part")["estimate"])
    ax.set_xlim(0, 1)
    ax.set_ylim(len(cells) - 0.6, -0.75)
    ax.set_yticks([])
    ax.set_xlabel("Success (share of rollouts)")
    panels.dress(ax)
    _numbers(ax, -0.75, HEADS, color=style.GREY, va="bottom")
    handles = [fill.handle for fill in style.PARTS.values()]
    title = cells.shared or None
    ax.legend(handles=handles, title=title, loc="lower left", bbox_to_anchor=(-0.05, 1.0), borderaxespad=1.3)
    return ax


def _bar(ax: Axes, place: int, name: str, parts: pd.Series) -> None:
    """Draw one bar under its name, with the numbers of its parts and their sum beside it."""
    left = 0.0
    for part, fill in style.PARTS.items():
        share = float(parts.get(part, float("nan")))
        if share > 0:
            ax.barh(place, share, left=left, height=0.45, **fill.look)
            left += share
    panels.beside(ax, name, (0, place - 0.225), (2, 1), va="bottom", fontsize=style.SMALL, linespacing=1.0)
    shares = [float(parts.get(part, float("nan"))) for part in style.PARTS]
    _numbers(ax, place, [number(share, 3) for share in [*shares, sum(shares)]])


def _numbers(ax: Axes, place: float, texts: Sequence[str], **look: str) -> None:
    """Write a row of numbers, or of their headings, to the right of the bars."""
    right = 0.0
    for head, text in zip(HEADS, texts, strict=True):
        right += 7 + max(style.width_of(head, style.TINY), style.width_of("0.000", style.TINY))
        plain: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": style.TINY, "gid": "number"}
        panels.beside(ax, text, (1, place), (right, 0), ax.get_yaxis_transform(), **plain | look)
