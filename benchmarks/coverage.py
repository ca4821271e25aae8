"""Do the default intervals of numbers cover what they claim? Simulation, seeded, minutes on two cores.

Printed: the share of runs in which the interval holds the truth, of each metric in a cell, of each paired difference,
of the parts of an attribution and of the ratios. An undefined interval counts as none and is told apart.

Run: python benchmarks/coverage.py [RUNS]
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
from simulation import Setting, on_all_processors, simulate, whole_population

from survexec.statistics.attribution import part_intervals, parts_of, shapley_parts
from survexec.statistics.difference_intervals import difference_interval
from survexec.statistics.effects import ratio_rows
from survexec.statistics.estimands import METRICS
from survexec.statistics.pairing import Pair
from survexec.statistics.proportions import normal_quantile
from survexec.statistics.resampling import replicate
from survexec.statistics.summary import proportion_bounds, resampled_bounds

RESAMPLES, LEVEL = 1000, 0.95
SETTINGS = {"moderate errors": Setting((-2.2, -2.6), interaction=0.5), "few errors": Setting((-4.4, -4.0))}
DESIGNS = ((50, 1), (200, 1), (60, 4))
PARTS = ("ter", "clean_success", "rr", "total")
RATIOS = [(name, measure) for name in ("ter", "success", "rr") for measure in ("risk_ratio", "odds_ratio")]
QUANTITIES = (
    [f"{name}, cell" for name in METRICS] + [f"{name}, difference" for name in METRICS]
    + [f"{name}, attribution" for name in PARTS] + [f"{name}, {measure}" for name, measure in RATIOS]
)  # fmt: skip


@cache
def truth(setting: Setting) -> np.ndarray:
    """The true value of every quantity."""
    total = whole_population(setting)
    rates = np.array([metric(total) for metric in METRICS.values()])
    ter, s, rr = (rates[list(METRICS).index(name)] for name in ("ter", "clean_success", "rr"))
    parts = shapley_parts((ter[0], s[0], rr[0]), (ter[1], s[1], rr[1]))
    ratios = []
    for name, measure in RATIOS:
        p = rates[list(METRICS).index(name)]
        p = 1 - p if name == "ter" else p
        ratios.append(p[0] / p[1] if measure == "risk_ratio" else p[0] / (1 - p[0]) / (p[1] / (1 - p[1])))
    return np.array([*rates[:, 0], *(rates[:, 0] - rates[:, 1]), *parts, sum(parts), *ratios])


def one_run(pair: Pair, seed: int) -> np.ndarray:
    """The default interval of every quantity, shape (quantity, 2)."""
    tally, bounds = pair.tally, []
    sample = replicate(tally, list(METRICS.values()), RESAMPLES, seed)
    bca = resampled_bounds(sample, "bca", LEVEL)
    for at, metric in enumerate(METRICS.values()):
        if metric.proportion:
            lower, upper, _ = proportion_bounds(metric, tally, normal_quantile(LEVEL))
            bounds.append((lower[0], upper[0]))
        else:
            bounds.append((bca[0][0, at], bca[1][0, at]))
    apart = sample.difference(0, 1)
    for at, metric in enumerate(METRICS.values()):
        bounds.append(difference_interval(pair, apart.only(slice(at, at + 1)), metric).bounds(LEVEL))
    parts = part_intervals(pair, parts_of(pair, RESAMPLES, seed), LEVEL)
    bounds += [limits for _, *limits in parts.values()]
    rows = {(row["metric"], row["measure"]): row for row in ratio_rows(pair, ["ter", "success", "rr"], LEVEL)}
    bounds += [(rows[key]["lower"], rows[key]["upper"]) for key in RATIOS]
    return np.array(bounds)


def some_runs(seeds: range, setting: Setting, tasks: int, trials: int) -> np.ndarray:
    """Runs in which each quantity was held, and in which it had an interval, shape (quantity, 2)."""
    true, counted = truth(setting), np.zeros((len(QUANTITIES), 2))
    for seed in seeds:
        tally = simulate(np.random.default_rng((seed, tasks)), tasks, trials, setting)
        bounds = one_run(Pair({}, "a", "b", (0, 1), tally, np.ones(tasks, bool), []), seed)
        known = ~np.isnan(bounds).any(axis=1)
        counted[:, 0] += known & (bounds[:, 0] <= true + 1e-9) & (bounds[:, 1] >= true - 1e-9)
        counted[:, 1] += known
    return counted


def main(runs: int) -> None:
    """Simulate every design on all processors and print one row a quantity."""
    designs = [(setting, tasks, trials) for setting in SETTINGS.values() for tasks, trials in DESIGNS]
    found = np.array(list(on_all_processors(some_runs, runs, designs)))
    print(f"{runs} runs, {RESAMPLES} resamples, nominal {LEVEL:.0%}; percent of the runs that have an interval")
    print("moderate: " + ", ".join(f"{t} x {m}" for t, m in DESIGNS) + "; then the same with few errors")
    for at, name in enumerate(QUANTITIES):
        held = 100 * found[:, at, 0] / np.maximum(found[:, at, 1], 1)
        missing = 100 - 100 * found[:, at, 1].min() / runs
        told = f"   (none in up to {missing:.1f}% of the runs)" if missing > 0.05 else ""
        print(f"{name:34s}" + "".join(f"{value:7.1f}" for value in held) + told)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
