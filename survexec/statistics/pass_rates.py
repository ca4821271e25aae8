"""How often at least one of k trials of a task succeeds, and how often all of them do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from survexec.rollouts import Rollouts
from survexec.statistics.estimands import ratio
from survexec.statistics.resampling import RESAMPLES, Estimator, as_seed, replicate
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level, checked_resamples, resampled_bounds
from survexec.statistics.tally import CELL, Counts, Tally, checked_by, count
from survexec.statistics.trials import MEASURES, chosen, trial_notes, uneven, whole

OUTCOMES: Final = ("success", "executed_success", "ter")
CONVENTIONS: Final = ("pass@k", "pass^k")
# Beyond this many trials, pass_at takes doublings only, unless told otherwise.
_EACH: Final = 16


@dataclass(frozen=True, eq=False)
class PassAt(Result):
    """How often at least one, or all, of k trials of a task succeed.

    The frame has the columns of the cell, then ``outcome, convention, k, estimate, lower, upper, n_tasks, interval``.
    """

    kind: ClassVar[str] = "pass_at"


def pass_at(
    rollouts: Rollouts,
    by: Sequence[str] | str = CELL,
    *,
    k: Sequence[int] | int | None = None,
    outcomes: Sequence[str] | str = OUTCOMES,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> PassAt:
    """How often at least one of k trials of a task succeeds (pass@k), and how often all k do (pass^k).

    Parameters
    ----------
    rollouts : Rollouts
    by : sequence of str
        Columns that make a cell.
    k : int or sequence of int, optional
        By default each up to the most trials that half of the tasks of a cell have; beyond 16 doublings and the last.
    outcomes : sequence of {"success", "executed_success", "ter"}
        What a trial must do: succeed, succeed without any error, or have no error.
    level : float
    resamples : int
        Bootstrap resamples of tasks.
    rng : int or numpy.random.Generator
        The same seed gives the same result.

    Returns
    -------
    PassAt

    Raises
    ------
    InputError

    Notes
    -----
    Of a task with c of n trials that succeed, pass@k is 1 - C(n-c, k) / C(n, k) and pass^k is C(c, k) / C(n, k): the
    share of all sets of k of its trials in which any, or each, does. Both are without bias. The number of a cell is the
    mean over its tasks with at least k trials of known outcome, counted in ``n_tasks``. At k = 1 both are the mean of
    c/n: the metric itself where tasks have equal numbers of trials, else a mean in which each task counts once.

    Intervals are BCa over tasks: in simulations of 20 to 100 tasks they covered best near 0 and 1, where most of these
    numbers lie. Where all tasks agree there is none.

    References
    ----------
    Chen et al. (2021), arXiv 2107.03374 (pass@k). Yao et al. (2024), arXiv 2406.12045 (pass^k). Efron (1987), JASA
    82:171-185.

    Examples
    --------
    >>> import survexec as sx
    >>> from survexec.statistics.pass_rates import pass_at
    >>> runs = sx.datasets.load_tau_airline_gpt4o()
    >>> frame = pass_at(runs, outcomes="success", k=(1, 4), resamples=200).frame
    >>> frame["convention"].tolist(), frame["estimate"].round(2).tolist()
    (['pass@k', 'pass@k', 'pass^k', 'pass^k'], [0.42, 0.72, 0.42, 0.2])
    """
    by, level = checked_by(by), checked_level(level)
    checked_resamples(resamples)
    names, seed = chosen(outcomes, OUTCOMES, "outcomes"), as_seed(rng)
    tally = count(rollouts, by)
    ks = _every_k(tally) if k is None else whole(k, "k")
    sets = _sets(tally, names, ks)
    asked = [_mean_over_tasks(name, convention) for name in names for convention in CONVENTIONS]
    sample = replicate(sets, asked, resamples, seed)
    lower, upper = resampled_bounds(sample, "bca", level)
    shape = (len(tally.cells), len(names), len(CONVENTIONS), len(ks))
    tasks = np.stack([sets.total[f"{name} tasks"] for name in names], axis=1)[:, :, None].astype(int)
    index = pd.MultiIndex.from_product([range(shape[0]), names, CONVENTIONS, ks])
    numbers = index.to_frame(index=False, name=["cell", "outcome", "convention", "k"]).assign(
        estimate=sample.estimate.ravel(), lower=lower.ravel(), upper=upper.ravel(),
        n_tasks=np.broadcast_to(tasks, shape).ravel(), interval=np.where(np.isnan(lower), "", "bca").ravel(),
    )  # fmt: skip
    cells = tally.cells.iloc[numbers["cell"]].reset_index(drop=True)
    frame = pd.concat([cells, numbers.drop(columns="cell")], axis=1)
    reasons = _set_reasons(tally, sets, names, ks, sample.estimate.reshape(shape), lower.reshape(shape))
    made = {
        "by": by, "k": ks, "outcomes": names, "level": level, "interval": "bca", "resamples": resamples, "seed": seed,
        "rule": str(rollouts.rule), "unit": "task",
    }  # fmt: skip
    return PassAt(frame, by, trial_notes(tally, names, reasons) + rollouts.notes, made, rollouts.ledger)


def _every_k(tally: Tally) -> list[int]:
    """Each k to the most trials that half of the tasks of a cell have, then doublings."""
    trials = [np.sort(n[n > 0]) for n in tally["rollouts"].T]
    most = int(max(n[len(n) // 2] for n in trials))
    doubled = [k for k in (_EACH << at for at in range(1, most.bit_length())) if k < most]
    return sorted({*range(1, min(most, _EACH) + 1), *doubled, most})


def all_succeed(hits: np.ndarray, trials: np.ndarray, ks: Sequence[int]) -> np.ndarray:
    """The share of all sets of k trials in which each is a hit: C(hits, k) / C(trials, k).

    Parameters
    ----------
    hits, trials : numpy.ndarray
        Whole numbers, shape (...).
    ks : sequence of int

    Returns
    -------
    numpy.ndarray
        Shape (..., k); 0 where there are fewer than k trials.

    Examples
    --------
    >>> import numpy as np
    >>> all_succeed(np.array([3.0]), np.array([4.0]), [1, 2, 4]).tolist()
    [[0.75, 0.5, 0.0]]
    """
    shares, product = np.empty((*hits.shape, len(ks))), np.ones(hits.shape)
    for k in range(1, max(ks) + 1):
        product *= np.maximum(hits - k + 1, 0) / np.maximum(trials - k + 1, 1)
        if k in ks:
            shares[..., ks.index(k)] = product
    return shares


def _sets(tally: Tally, names: list[str], ks: list[int]) -> Tally:
    """A tally of the share of sets of k trials in which any or all succeed, 0 for tasks with fewer than k."""
    blocks = {"rollouts": tally["rollouts"][..., None]}
    for name in names:
        hits, trials = tally[MEASURES[name].value], tally[MEASURES[name].known]
        enough = trials[..., None] >= ks
        blocks[f"{name} pass@k"] = np.where(enough, 1 - all_succeed(trials - hits, trials, ks), 0)
        blocks[f"{name} pass^k"] = all_succeed(hits, trials, ks)
        blocks[f"{name} tasks"] = enough.astype(float)
    ends = np.cumsum([block.shape[-1] for block in blocks.values()]).tolist()
    columns: dict[str, int | slice] = {
        name: slice(end - block.shape[-1], end) for (name, block), end in zip(blocks.items(), ends, strict=True)
    }
    counts = Counts(np.concatenate(list(blocks.values()), axis=-1), columns | {"rollouts": 0})
    return replace(tally, counts=counts)


def _mean_over_tasks(name: str, convention: str) -> Estimator:
    """The mean over the tasks that have k trials, at each k."""

    def mean(counts: Counts, out: np.ndarray | None = None) -> np.ndarray:
        return ratio(counts[f"{name} {convention}"], counts[f"{name} tasks"], out)

    return mean


def _set_reasons(
    tally: Tally, sets: Tally, names: list[str], ks: list[int], estimate: np.ndarray, lower: np.ndarray
) -> list[tuple[int, str, str]]:
    """Tasks left out, and numbers without an interval."""
    reasons = []
    for c, o in np.ndindex(estimate.shape[:2]):
        there = int(sets.present[:, c].sum())
        odd = uneven(tally[MEASURES[names[o]].known][:, c], "at k = 1 each task counts once, in a summary each rollout")
        reasons.append((c, names[o], odd))
        kept = sets.total[f"{names[o]} tasks"][c].astype(int)
        if kept.min() < there:
            short = ", ".join(f"{there - n} at k = {k}" for k, n in zip(ks, kept, strict=True) if n < there)
            reasons.append((c, names[o], f"of {there} tasks, these have fewer than k trials and are left out: {short}"))
        for at, convention in enumerate(CONVENTIONS):
            flat = np.isnan(lower[c, o, at]) & ~np.isnan(estimate[c, o, at])
            if flat.any():
                where = ", ".join(str(k) for k, is_flat in zip(ks, flat, strict=True) if is_flat)
                reasons.append((c, names[o], f"{convention} has no interval at k = {where}: no two tasks differ"))
    return reasons
