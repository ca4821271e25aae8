"""How fast is the paired bootstrap? This engine, scipy's bootstrap, and the bound, timed in turn in one run.

The work: 200 tasks, 12 cells, 26 statistics a cell (8 metrics and PEC(k) for k = 1..18) and 18 paired differences
(AUC-PEC of every pair of methods within a model), B = 10,000 resamples of tasks, 95% limits of all 330 numbers. A
second line gives the differences of all 26 statistics, 780 numbers.

The bound is what no bootstrap by weights can do without: drawing the resamples and multiplying the weights with one
column a statistic, in single precision on one thread. scipy.stats.bootstrap does the same work, the differences
included, by gathering the rows of the features for each resample.

Run: python benchmarks/bootstrap.py
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats
from threadpoolctl import threadpool_limits

from survexec.rollouts import Rollouts
from survexec.statistics import intervals
from survexec.statistics.estimands import METRICS, Curve
from survexec.statistics.resampling import replicate
from survexec.statistics.tally import SCALARS, Counts, Tally, count

TASKS, MODELS, METHODS, RESAMPLES, DEPTHS = 200, 3, 4, 10_000, 18


def cohort(seed: int = 20261130) -> Rollouts:
    """Rollouts of 12 cells on the same tasks, with the lengths and error rates of real logs."""
    rng = np.random.default_rng(seed)
    rows = []
    for model, method in itertools.product(range(MODELS), range(METHODS)):
        length = np.clip(rng.poisson(7, TASKS) + 1, 1, DEPTHS)
        fed = np.minimum(rng.geometric(0.03 + 0.03 * method + 0.02 * model, TASKS), length + 1)
        success = rng.random(TASKS) < np.where(fed > length, 0.8, 0.3)
        rows.append(pd.DataFrame({"model": f"model {model}", "method": f"method {method}", "task_id": range(TASKS),
                                  "length": length, "fed": fed, "success": success}))  # fmt: skip
    return Rollouts(pd.concat(rows, ignore_index=True))


LEVEL = 0.95
AUC = list(METRICS).index("auc_pec")


def _share(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    return counts["alive"][..., 1:], counts["rollouts"][..., None]


PEC = Curve("pec", "PEC(k)", lambda counts: np.divide(*_share(counts)), "k = 1..18", _share)
STATISTICS = (*METRICS.values(), PEC)


PAIRS = [
    (model * METHODS + a, model * METHODS + b)
    for model in range(MODELS)
    for a, b in itertools.combinations(range(METHODS), 2)
]


def engine(tally: Tally, each: slice) -> None:
    """Replicates and limits of 12 x 26 statistics, and of the paired differences of some of them."""
    sample = replicate(tally, STATISTICS, RESAMPLES, seed=1)
    intervals.percentile(sample, LEVEL)
    for a, b in PAIRS:
        intervals.expanded_percentile(sample.only(each).difference(a, b), LEVEL)


def scipy_gather(tally: Tally, batch: int | None) -> None:
    """The same statistics and differences by scipy.stats.bootstrap, which gathers the rows of the features."""
    tally = tally.select((*SCALARS, "alive"))

    def statistic(drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        sums = Counts(tally.counts.values[drawn].sum(axis=axis - 2), tally.counts.columns)
        cells = np.concatenate([_wide(s(sums), sums) for s in STATISTICS], axis=-1)
        differences = [cells[..., a, AUC] - cells[..., b, AUC] for a, b in PAIRS]
        return np.concatenate([cells.reshape(*cells.shape[:-2], -1), np.stack(differences, axis=-1)], axis=-1).T

    stats.bootstrap(
        (np.arange(TASKS),), statistic, n_resamples=RESAMPLES, batch=batch, method="percentile", vectorized=True,
        rng=np.random.default_rng(1),
    )  # fmt: skip


def bound() -> None:
    """Random draws and the matrix product alone: one single-precision column a statistic and cell, one thread."""
    matrix = np.ones((TASKS, MODELS * METHODS * 26), dtype=np.float32)
    rng = np.random.default_rng(1)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(RESAMPLES // 1000):
            drawn = rng.integers(0, TASKS, (1000, TASKS)) + np.arange(1000)[:, None] * TASKS
            weights = np.bincount(drawn.ravel(), minlength=1000 * TASKS).reshape(1000, TASKS)
            _ = matrix.T @ weights.astype(np.float32).T


def _wide(values: np.ndarray, counts: Counts) -> np.ndarray:
    return values if values.ndim == counts.values.ndim else values[..., None]


def timed(works: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each work, in turn in every round, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Time the three in turn and print medians and the medians of the ratios."""
    tally = count(cohort(), depth=DEPTHS)
    works = {
        "bound": bound,
        "survexec": lambda: engine(tally, slice(AUC, AUC + 1)),
        "survexec, 18 x 26 differences": lambda: engine(tally, slice(None)),
    }
    seconds = timed(works, 15)
    print(f"{TASKS} tasks, 12 cells x 26 statistics + 18 paired differences, B = {RESAMPLES:,}")
    for name, taken in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(taken, seconds["bound"], strict=True))
        print(f"{name:38s} {statistics.median(taken):7.3f} s   {ratio:6.2f} of the bound")
    ours = statistics.median(seconds["survexec"])
    for name, batch in (("as it comes", None), ("batch=50, its best", 50)):
        start = time.perf_counter()
        scipy_gather(tally, batch)
        peer = time.perf_counter() - start
        print(f"scipy.stats.bootstrap, {name:15s} {peer:7.3f} s   survexec is {peer / ours:.0f} times as fast")


if __name__ == "__main__":
    main()
