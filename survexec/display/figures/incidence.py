"""How many rollouts have erred, by class, and how many have finished clean, as stacked areas."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from survexec.display import style
from survexec.display.figures import panels
from survexec.display.figures.states import stack

COLUMNS = ("cause", "k", "estimate", "at_risk")
FINISH, GAP = "finish", "running"
CAUSES = {
    **style.CLASSES,
    "error": style.STATES["errored"]._replace(label="errored"),
    GAP: style.STATES["running"]._replace(label="still running"),
    FINISH: style.STATES["finished"]._replace(label="finished clean"),
}


@style.styled
def incidence_stack(curves: Any, figure: Figure | None = None) -> Figure:
    """Draw the cumulative incidence of each cause in each cell: errors from below, clean finish from above.

    Reading: at depth k a vertical cut through a panel splits all its rollouts. From the floor up, one area for
    each class of first error: those that erred at call k or before. From the ceiling down: those that stopped
    by themselves after call k or before, without an error. The pale gap between is still running without an
    error; where it closes, every fate is known. Rollouts that a limit cut are censored: they count on in the
    proportions of those who went on. The numbers under a tick are the rollouts about to make that call.

    Parameters
    ----------
    curves : Curves or DataFrame
        Kind "cif", best made with ``by_class=True``: cell columns, ``cause``, ``k``, ``estimate``, ``at_risk``.
    figure : Figure or SubFigure, optional
        Where to draw, best one with constrained layout; a new one is made otherwise.

    Returns
    -------
    Figure
        One panel a cell, four side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "cause": ["schema", "schema", "finish", "finish"], "k": [0, 1, 0, 1],
    ...     "estimate": [0, 0.3, 0.1, 0.2], "at_risk": [10, 9, 10, 9],
    ... })
    >>> [text.get_text() for text in incidence_stack(frame).legends[0].get_texts()]
    ['schema', 'still running', 'finished clean']
    """
    frame, by = panels.tidy(curves, COLUMNS)
    cells = panels.cut(frame, by)
    figure, axes = panels.grid(figure, len(cells), 1.9, sharey=True)
    if not len(cells):
        panels.say(axes[0], "No rollouts to draw")
        return figure
    fills = _fills(frame["cause"].unique())
    for ax, (name, rows) in zip(axes, cells, strict=True):
        shares = rows.pivot(index="k", columns="cause", values="estimate")
        stack(ax, shares.assign(**{GAP: _gap(shares)}), fills)
        panels.head(ax, name)
        first = panels.leftmost(ax)
        panels.share_axis(ax, "Share of rollouts" if first else "")
        ticks = panels.depth_axis(ax, *panels.span(rows), rows["at_risk"])
        panels.at_risk_row(ax, ticks, panels.first_of(rows, "at_risk"), label="At risk" if first else "")
    panels.legend(figure, [fill.handle for fill in fills.values()], cells.shared)
    return figure


def _fills(causes: Any) -> dict[str, style.Fill]:
    """The look of each cause from the bottom to the top, the gap below clean finish."""
    present = {str(cause) for cause in causes} - {FINISH}
    known = [name for name in CAUSES if name in present]
    unknown = {name: style.Fill(style.literal(name), "#444444") for name in sorted(present - set(known))}
    return {name: CAUSES[name] for name in known} | unknown | {name: CAUSES[name] for name in (GAP, FINISH)}


def _gap(shares: pd.DataFrame) -> pd.Series:
    """What the causes leave of the panel; blank where the curves have ended."""
    return 1 - shares.sum(axis=1, min_count=1)
