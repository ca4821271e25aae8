"""All tests of a call as one family: adjusted p, and the simultaneous intervals that match its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.statistics.difference_intervals import DifferenceInterval
from survexec.statistics.estimands import METRICS
from survexec.statistics.intervals import expanded_quantile, jackknife_error
from survexec.statistics.multiplicity import METHODS, adjusted, romano_wolf, simultaneous_level
from survexec.statistics.proportions import normal_quantile
from survexec.statistics.resampling import Replicates

ADJUSTMENTS: Final = {
    "holm": "Holm", "hochberg": "Hochberg", "bh": "Benjamini-Hochberg (false discovery rate)",
    "by": "Benjamini-Yekutieli (false discovery rate)", "romano_wolf": "Romano-Wolf max-T", "none": "none",
}  # fmt: skip


def checked_adjustment(adjust: str) -> str:
    """A name of `METHODS`.

    Raises
    ------
    InputError
    """
    if adjust not in METHODS:
        raise InputError(f"adjust = {adjust!r}; it must be one of {', '.join(METHODS)}")
    return adjust


def judged_together(
    frame: pd.DataFrame, samples: Sequence[Replicates], intervals: Sequence[DifferenceInterval], made: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Adjusted p of all tests of the call, simultaneous bounds of the same rows, and the family in words.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a pair and metric; those with a p-value are the family.
    samples : sequence of Replicates
        Of the row's difference, one cell and one statistic each.
    intervals : sequence of DifferenceInterval
    made : dict
        With ``adjust, level, between, within``.

    Returns
    -------
    p_adjusted : numpy.ndarray
    bounds : numpy.ndarray
        Shape (2, row), NaN outside the family.
    notes : list of str
    """
    p = frame["p_value"].to_numpy()
    bounds, members = np.full((2, len(frame)), np.nan), np.flatnonzero(~np.isnan(p)).tolist()
    if not len(members):
        return p, bounds, []
    notes = [_named(frame.iloc[members], made)]
    if made["adjust"] == "romano_wolf":
        p = np.full(len(frame), np.nan)
        p[members], bounds[:, members] = _romano_wolf([samples[at] for at in members], made["level"])
    else:
        p = adjusted(p, made["adjust"])
        level = simultaneous_level(made["adjust"], made["level"], p)
        bounds[:, members] = np.transpose([intervals[at].bounds(level) for at in members])
    return p, bounds, notes


def _romano_wolf(samples: Sequence[Replicates], level: float) -> tuple[np.ndarray, np.ndarray]:
    """Adjusted p and simultaneous bounds; NaN where resampling shows no spread."""
    estimate, error, n = (
        np.array([number.item() for number in numbers])
        for numbers in zip(*((s.estimate, jackknife_error(s), s.n_tasks) for s in samples), strict=True)
    )
    # as with the expanded percentile, a small number of tasks needs wider limits
    scaled = error * expanded_quantile(n, level) / normal_quantile(level)
    deviations = np.stack([sample.values[0, 0] for sample in samples]) - estimate[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        t, drawn = estimate / scaled, deviations / error[:, None]
    p, critical = romano_wolf(t, np.where(error > 0, 1.0, np.nan), drawn + t[:, None])
    half = critical(level) * np.where(error > 0, scaled, np.nan)
    return p, np.stack([estimate - half, estimate + half])


def _named(tested: pd.DataFrame, made: dict[str, Any]) -> str:
    """Which tests were adjusted together, and how."""
    names = ", ".join(METRICS[name].label for name in tested["metric"].unique())
    pairs = tested.groupby([*made["within"], "a", "b"], sort=False).ngroups
    of = f"{pairs} pair{'s' if pairs != 1 else ''} of {made['between']}"
    place = f" within {' and '.join(made['within'])}" if made["within"] else ""
    how = "p not adjusted" if made["adjust"] == "none" else f"p adjusted by {ADJUSTMENTS[made['adjust']]}"
    return f"{how} over a family of {len(tested)} tests: {names}; {of}{place}"
