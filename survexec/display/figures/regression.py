"""The ratios of a hazard regression with their intervals, a row a term."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.figures.forest import column_widths, row_labels, text_columns
from survexec.display.markup import Cell
from survexec.display.wording import limits, p_value, ratio

COLUMNS = ("label", "ratio", "lower", "upper", "p_value", "nuisance")
_ROOM = 190.0
# A whisker further than this many times from all points ends in an arrow, so that the points do not press together.
_FAR = 8.0


@style.styled
def regression_forest(model: Any, nuisance: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the ratio of each term of a hazard regression with its interval, and write it beside.

    Reading: a point right of the line at 1 says that a first error at the next call is more frequent there than
    in the group it is held against, a point left of it less; twice and half are equally far away. Where a
    whisker does not reach the line, the interval excludes no difference. A whisker that ends in an arrow goes
    on; the numbers say how far. A dash: not estimable. What is of depth alone is left out: it is the shape of
    the hazard, not a comparison.

    Parameters
    ----------
    model : HazardModel or DataFrame
        ``label``, ``ratio``, ``lower``, ``upper``, ``p_value``, ``nuisance``.
    nuisance : bool
        Also draw the intercept and the terms of depth.
    ax : Axes, optional
        Where to draw; a new figure of two columns' width otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "label": ["depth 2 vs 1", "x vs y"], "ratio": [0.5, 1.6], "lower": [0.2, 1.1], "upper": [0.9, 2.4],
    ...     "p_value": [0.2, 0.01], "nuisance": [True, False],
    ... })
    >>> [text.get_text() for text in regression_forest(frame).texts if text.get_gid() == "cell"]
    ['1.60 [1.10, 2.40]', '0.010']
    """
    frame, _ = panels.tidy(model, COLUMNS, ())
    rows = (frame if nuisance else frame[~frame["nuisance"].astype(bool)]).reset_index(drop=True)
    labels = [style.wrap(style.literal(label), _ROOM, style.SMALL) for label in rows["label"]]
    tall = 1 + max([label.count("\n") for label in labels], default=0)
    if ax is None:
        ax = style.new_axes(style.TWO_COLUMNS, 0.75 + 0.15 * max(len(rows), 2) * tall)
    if not len(rows):
        return panels.say(ax, "No terms to draw but those of depth")
    made = {} if isinstance(model, pd.DataFrame) else model.made
    what = str(made.get("ratio", "ratio"))
    _whiskers(ax, rows)
    ax.set_xlabel(f"{what.capitalize()} of a first error (log scale)")
    texts = _texts(rows, f"{what} [{panels.level_of(model)}interval]")
    text_columns(ax, pd.Series(rows.index), texts, column_widths(texts))
    row_labels(ax, [(label, False) for label in labels])
    if "events" in made:
        ax.set_title(
            f"{made['events']} first errors in {made['rollouts']} rollouts of {made['tasks']} tasks", loc="left"
        )
    return ax


def _whiskers(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw points and whiskers about the line at 1 on a log axis."""
    color, places = style.stroke(0).color, rows.index.to_numpy()
    at, lower, upper = (rows[name].astype(float) for name in ("ratio", "lower", "upper"))
    points = np.append(at[(at > 0) & np.isfinite(at)], 1.0)
    low, high = points.min() / _FAR, points.max() * _FAR
    shown = [bound.clip(low, high) for bound in (lower, upper)]
    ax.set_xscale("log")
    ax.axvline(1, color=style.INK, linewidth=0.6, zorder=1)
    ax.hlines(places, *shown, color=color, linewidth=1.1)
    ax.plot(at, places, "s", color=color, markersize=3.2)
    for bound, end, marker in ((lower < low, low, "<"), (upper > high, high, ">")):
        ax.plot(np.full(bound.sum(), end), places[bound], marker, color=color, markersize=3.2)
    ax.hlines(places, 0, 1, transform=ax.get_yaxis_transform(), color=style.FAINT, linewidth=0.4, zorder=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    _log_ticks(ax, min(shown[0].min(), points.min()), max(shown[1].max(), points.max()))


def _log_ticks(ax: Axes, low: float, high: float) -> None:
    """Set the range of the axis with some room, and plain numbers at round ratios."""
    low, high = np.fmin(low, 0.8) / 1.1, np.fmax(high, 1.25) * 1.1
    ax.set_xlim(low, high)
    rounds = {300: (1.0,), 10: (1.0, 2.0, 5.0), 0: (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)}
    ax.xaxis.set_major_locator(LogLocator(10, next(steps for least, steps in rounds.items() if high / low > least)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    panels.dress(ax)


def _texts(rows: pd.DataFrame, head: str) -> pd.DataFrame:
    """Write out each row; the columns are named by their headings."""
    texts = []
    for row in rows.itertuples():
        at, low, high = map(ratio, (row.ratio, row.lower, row.upper))
        texts.append([Cell(at, limits(low, high)).line, p_value(row.p_value)])
    return pd.DataFrame(texts, index=rows.index, columns=[head, "p"])
