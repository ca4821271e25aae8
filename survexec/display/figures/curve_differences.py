"""How far two curves are apart at each depth, paired by task."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.wording import number

COLUMNS = (
    "a", "b", "k", "difference", "lower", "upper", "band_lower", "band_upper", "at_risk_a", "at_risk_b", "n_pairs",
)  # fmt: skip
LABELS = {"pec": "PEC(k)", "pec_elig": "PEC_elig(k)", "km": "Kaplan-Meier", "cif": "Cumulative incidence"}


@style.styled
def curve_difference(differences: Any, figure: Figure | None = None) -> Figure:
    r"""Draw the difference a − b of two curves over depth for each pair, with its interval and band.

    Reading: the line above zero at k says that a has the higher value there. Where the dark ribbon leaves the
    zero line, the interval at that depth excludes no difference; where the pale one does, so does the band for
    all depths at once, which is what a claim about any depth that was not fixed before needs. For PEC and
    Kaplan-Meier higher is better, for the cumulative incidence of an error worse. The numbers under a tick are
    the rollouts of each side about to make that call without an earlier error, on the common tasks.

    Parameters
    ----------
    differences : CurveDifferences or DataFrame
        Within columns, ``a``, ``b``, ``k``, ``difference``, ``lower``, ``upper``, ``band_lower``, ``band_upper``,
        ``at_risk_a``, ``at_risk_b``, ``n_pairs``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a pair, three side by side, with the same scales.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "a": "x", "b": "y", "k": [0, 1], "difference": [0, 0.1], "lower": [0, -0.1], "upper": [0, 0.3],
    ...     "band_lower": [0, -0.2], "band_upper": [0, 0.4], "at_risk_a": [9, 8], "at_risk_b": [9, 7], "n_pairs": 9,
    ... })
    >>> curve_difference(frame).axes[0].get_title()
    'x (a)\n− y (b)\n9 pairs'
    """
    frame, by = panels.tidy(differences, COLUMNS)
    cells = panels.cut(frame, by)
    pairs = [
        (_title(a, b, name if len(cells) > 1 else ""), rows)
        for name, part in cells
        for (a, b), rows in part.groupby(["a", "b"], sort=False, dropna=False, observed=True)
    ]
    figure, axes = panels.grid(figure, len(pairs), 2.15, across=3, sharey=True)
    if not pairs:
        panels.say(axes[0], "No differences to draw")
        return figure
    of = LABELS.get(getattr(differences, "made", {}).get("kind", ""), "Difference")
    for ax, (title, rows) in zip(axes, pairs, strict=True):
        panels.head(ax, f"{title}\n{panels.count(rows['n_pairs'].iloc[0])} pairs")
        _line(ax, rows.sort_values("k"), f"{of}: a − b")
    line = Line2D([], [], color=style.stroke(0).color, linewidth=1.2, label="a − b")
    panels.legend(figure, [line, *panels.ribbon_key(differences, frame)], cells.shared)
    return figure


def _title(a: Any, b: Any, place: str) -> str:
    """Say which side is which, under where the pair stands."""
    return f"{place}\n" * bool(place) + f"{style.literal(a)} (a)\n− {style.literal(b)} (b)"


def _line(ax: Axes, rows: pd.DataFrame, label: str) -> None:
    """Draw one pair about the zero line, and who is at risk on both sides."""
    color = style.stroke(0).color
    ax.axhline(0, color=style.INK, linewidth=0.6, zorder=1)
    ax.plot(rows["k"], rows["difference"], drawstyle="steps-mid", color=color, linewidth=1.2, zorder=3)
    panels.ribbons(ax, rows, color)
    counts = rows[["at_risk_a", "at_risk_b"]]
    ticks = panels.depth_axis(ax, *panels.span(rows), counts.to_numpy().ravel())
    first = panels.leftmost(ax)
    for row, (column, side) in enumerate(zip(counts, ("At risk a", "b"), strict=True)):
        panels.at_risk_row(ax, ticks, panels.first_of(rows, column), row, label=side if first else "")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6))
    ax.yaxis.set_major_formatter(lambda value, _: number(value, 2))
    ax.set_ylabel(label if first else "")
