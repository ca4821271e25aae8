"""How often does a test reject where nothing differs? Simulation of every test, seeded, minutes on two cores.

Methods have the same law; tasks differ in how hard they are, which is what pairing has to cope with, and each method
has its own effect on each task. Printed: the share of runs with p <= 0.05, in percent.

Run: python benchmarks/size.py [RUNS]
"""

from __future__ import annotations

import sys

import numpy as np
from simulation import Setting, on_all_processors, simulate

from survexec.statistics import paired_tests
from survexec.statistics.estimands import METRICS
from survexec.statistics.metric_tests import hits, task_means
from survexec.statistics.paired_tests import bootstrap_inversion
from survexec.statistics.resampling import replicate
from survexec.statistics.tally import Tally

ALPHA, RESAMPLES = 0.05, 1000
METHODS = 3
SETTINGS = {
    "moderate errors": Setting((-2.4,) * METHODS, interaction=0.5, success=(0.5,) * METHODS),
    "few errors": Setting((-4.2,) * METHODS, interaction=0.5, success=(0.5,) * METHODS),
}
DESIGNS = ((20, 1), (50, 1), (200, 1), (60, 4))
MEANS = ("ter", "success", "mean_fed", "auc_pec")
OF_HITS = ("mcnemar_midp", "mcnemar_exact", "mcnemar_asymptotic")
OF_MEANS = ("sign_flip", "wilcoxon", "paired_t")
TESTS = (
    [f"{test}, {metric}" for metric in ("ter", "success") for test in OF_HITS]
    + [f"{test}, {metric}" for metric in MEANS for test in OF_MEANS]
    + [f"overall, {metric}" for metric in MEANS] + [f"bootstrap, {metric}" for metric in (*MEANS, "rr")]
)  # fmt: skip
# What `compare` runs unless told otherwise: marked in the table. Sign-flip of TER and success where trials are several.
DEFAULT = {"mcnemar_midp, ter", "mcnemar_midp, success"}
DEFAULT |= {f"{test}, {metric}" for test in ("sign_flip", "overall") for metric in MEANS}


def p_values(tally: Tally, seed: int) -> list[float]:
    """Of every test on one simulated cohort; NaN where a test does not apply."""
    single, found = tally["rollouts"].max() == 1, []
    pair = tally.take(slice(None), [0, 1])
    for name in ("ter", "success"):
        first, second = hits(pair, METRICS[name]).T
        found += [getattr(paired_tests, test)(first, second).p_value if single else np.nan for test in OF_HITS]
    for name in MEANS:
        # areas over their common denominator would only make ties exact
        area = pair["area"] / pair["rollouts"], False
        means, whole = area if name == "auc_pec" else task_means(pair, METRICS[name])
        gap = (means[:, 0] - means[:, 1]).astype(np.int64 if whole else float)
        found += [paired_tests.sign_flips([gap], seed)[0].p_value]
        found += [getattr(paired_tests, test)(gap).p_value for test in OF_MEANS[1:]]
    for name in MEANS:
        metric = METRICS[name]
        if metric.proportion and single:
            found.append(paired_tests.cochran_q(hits(tally, metric)).p_value)
        else:
            means = metric.numerator(tally.counts) / metric.denominator(tally.counts)
            found.append(paired_tests.friedman(means).p_value)
    if len(tally.tasks) < 100:
        return [*found, *[np.nan] * 5]
    drawn = replicate(pair, [METRICS[name] for name in (*MEANS, "rr")], RESAMPLES, seed).difference(0, 1).values[0]
    return [*found, *(bootstrap_inversion(values, len(tally.tasks)).p_value for values in drawn)]


def some_runs(seeds: range, setting: Setting, tasks: int, trials: int) -> np.ndarray:
    """Rejections of each test, and runs in which it applied, shape (test, 2)."""
    counted = np.zeros((len(TESTS), 2))
    for seed in seeds:
        p = np.array(p_values(simulate(np.random.default_rng((seed, tasks)), tasks, trials, setting), seed))
        counted[:, 0] += p <= ALPHA
        counted[:, 1] += ~np.isnan(p)
    return counted


def main(runs: int) -> None:
    """Simulate every design on all processors and print one row a test."""
    designs = [(setting, tasks, trials) for setting in SETTINGS.values() for tasks, trials in DESIGNS]
    found = np.array(list(on_all_processors(some_runs, runs, designs)))
    print(f"{runs} runs, nominal {ALPHA:.0%}; percent rejected, - where the test does not apply; * default")
    print("moderate: " + ", ".join(f"{t} x {m}" for t, m in DESIGNS) + "; then the same with few errors")
    for at, name in enumerate(TESTS):
        share = [f"{100 * r / n:7.1f}" if n else f"{'-':>7s}" for r, n in found[:, at]]
        print(f"{'*' if name in DEFAULT else ' '} {name:32s}" + "".join(share))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
