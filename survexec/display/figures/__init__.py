"""Results -> matplotlib: one module a figure, each a function of a tidy frame that says how to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from survexec.display.figures.bump import rank_bump
from survexec.display.figures.curve_differences import curve_difference
from survexec.display.figures.decomposition import decomposition_bars
from survexec.display.figures.first_errors import first_error_profile
from survexec.display.figures.forest import forest
from survexec.display.figures.hazard import hazard_by_depth
from survexec.display.figures.incidence import incidence_stack
from survexec.display.figures.meta import meta_forest
from survexec.display.figures.pec import curve, pec_beside_eligible
from survexec.display.figures.power import power_curves
from survexec.display.figures.recovery import success_against_ter
from survexec.display.figures.regression import regression_forest
from survexec.display.figures.states import state_stacks
from survexec.display.figures.swimmer import swimmer
from survexec.display.figures.trials import pass_curves, trial_errors
from survexec.display.figures.waterfall import waterfall
from survexec.errors import InputError

__all__ = [
    "curve",
    "curve_difference",
    "decomposition_bars",
    "first_error_profile",
    "forest",
    "hazard_by_depth",
    "incidence_stack",
    "meta_forest",
    "pass_curves",
    "pec_beside_eligible",
    "plot",
    "power_curves",
    "rank_bump",
    "regression_forest",
    "state_stacks",
    "success_against_ter",
    "swimmer",
    "trial_errors",
    "waterfall",
]

_ONE_PANEL: dict[str, Callable[..., Axes]] = {
    **dict.fromkeys(("pec", "pec_elig", "km", "na", "at_risk"), curve),
    "summary": success_against_ter,
    "hazard_model": regression_forest,
    "plan": power_curves,
}
_MANY_PANELS: dict[str, Callable[..., Figure]] = {
    "states": state_stacks,
    "cif": incidence_stack,
    "hazard": hazard_by_depth,
    "curve_differences": curve_difference,
    "comparison": forest,
    "first_errors": first_error_profile,
    "attribution": waterfall,
    "heterogeneity": meta_forest,
    "ranks": rank_bump,
    "pass_at": pass_curves,
    "trial_variance": trial_errors,
}


def plot(result: Any, ax: Axes | None = None) -> Axes | Figure | SubFigure:
    """Draw a result by the figure of its kind.

    Parameters
    ----------
    result : Result
        Anything with ``.kind``, ``.frame`` and ``.by``.
    ax : Axes, optional
        Where to draw. A figure of several panels takes the place that these axes have in their grid.

    Returns
    -------
    Axes or Figure
        Axes for kinds of one panel; else the figure, or the part of the figure that took the place of `ax`.

    Raises
    ------
    InputError
        No figure is known for this kind.

    Examples
    --------
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> frame = pd.DataFrame({
    ...     "method": "plain", "k": [1, 2], "error_class": "schema", "events": [3, 1], "at_risk": [10, 6],
    ... })
    >>> plot(SimpleNamespace(kind="first_errors", frame=frame, by=("method",))).axes[0].get_ylabel()
    'First errors at call k'
    """
    if result.kind in _ONE_PANEL:
        return _ONE_PANEL[result.kind](result, ax=ax)
    if result.kind not in _MANY_PANELS:
        known = ", ".join(sorted({**_ONE_PANEL, **_MANY_PANELS}))
        raise InputError(f"no figure for results of kind {result.kind!r}; there is one for: {known}")
    return _MANY_PANELS[result.kind](result, figure=None if ax is None else _place_of(ax))


def _place_of(ax: Axes) -> Any:
    place = ax.get_subplotspec()
    if place is None:
        raise InputError(
            "these axes stand in no grid, so several panels cannot take their place; make them by subplots"
        )
    ax.set_axis_off()
    return ax.figure.add_subfigure(place)
