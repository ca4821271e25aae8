"""Every analysis of a report, each computed once; where one is impossible, the reason stands in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import Rule
from survexec.rollouts import Rollouts
from survexec.statistics.attribution import Attribution, attribute
from survexec.statistics.comparison import Comparison, compare
from survexec.statistics.curves import Curves, FirstErrors, curves, first_errors
from survexec.statistics.summary import Summary, summarize
from survexec.statistics.tally import checked_by

_Found = TypeVar("_Found")
# What the rules move, and the denominator of RR.
MOVED = ("ter", "mean_fed", "auc_pec", "rr_eligible", "rr", "success")
NO_CALLS = "not every source has its single calls, only depths; read the logs themselves, not a table, to see this"


@dataclass(frozen=True)
class Analyses:
    """Results of a report; a string is the reason why there is no result.

    Parameters
    ----------
    summary : Summary
    comparison : Comparison or str
    attribution : Attribution or str
    pec, pec_elig, states : Curves
    first_errors : FirstErrors
    calls : pandas.DataFrame or str
        `Rollouts.call_states()`.
    """

    summary: Summary
    comparison: Comparison | str
    attribution: Attribution | str
    pec: Curves
    pec_elig: Curves
    states: Curves
    first_errors: FirstErrors
    calls: pd.DataFrame | str


def analyse(
    rollouts: Rollouts,
    by: Sequence[str] | str,
    between: str,
    level: float,
    resamples: int,
    rng: int | np.random.Generator,
) -> Analyses:
    """Compute what a report shows.

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str or str
    between : str
        The column that is compared, within the others of ``by``.
    level : float
    resamples : int
    rng : int or numpy.random.Generator

    Returns
    -------
    Analyses
    """
    by = checked_by(by)
    how: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng}
    summary = summarize(rollouts, by, **how)
    how["rng"] = summary.made["seed"]
    pec, pec_elig, states = (curves(rollouts, by, kind=kind, **how) for kind in ("pec", "pec_elig", "states"))
    calls = NO_CALLS if rollouts.calls is None else rollouts.call_states()
    within = [name for name in by if name != between]
    compared = _or_reason(lambda: compare(rollouts, between, within, **how))
    parts = _or_reason(lambda: attribute(rollouts, between, within, **how))
    return Analyses(summary, compared, parts, pec, pec_elig, states, first_errors(rollouts, by), calls)


def _or_reason(work: Callable[[], _Found]) -> _Found | str:
    """A result, or why there is none."""
    try:
        return work()
    except InputError as reason:
        return str(reason)


def under_each_rule(rollouts: Rollouts, summary: Summary) -> Summary | str:
    """The summary under each rule as one, cell by cell.

    Parameters
    ----------
    rollouts : Rollouts
    summary : Summary
        Under the rule of the rollouts.

    Returns
    -------
    Summary or str
        With ``rule`` as the last column of a cell; or the reason why it cannot be had.
    """
    if rollouts.calls is None:
        return NO_CALLS
    how = {"level": summary.made["level"], "resamples": summary.made["resamples"], "rng": summary.made["seed"]}
    frames = []
    for rule in Rule:
        under = summary if rule == rollouts.rule else summarize(rollouts.under(rule), summary.by, **how)
        moved = under.frame[under.frame["metric"].isin(MOVED)]
        frames.append(moved.assign(rule=str(rule), cell=np.arange(len(moved)) // len(MOVED)))
    frame = pd.concat(frames, ignore_index=True).sort_values("cell", kind="stable", ignore_index=True)
    columns = [*summary.by, "rule", *(c for c in summary.frame.columns if c not in summary.by)]
    made = {**summary.made, "rule": "each"}
    return replace(summary, frame=frame[columns], by=(*summary.by, "rule"), notes=(), made=made)
