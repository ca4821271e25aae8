"""Do bands and intervals cover what they claim? Simulation of the default ones, seeded, minutes on two cores.

Tasks differ in how hard they are (a normal frailty on the logit of the hazard, shared by the methods), rollouts end by
themselves after a Poisson number of calls or are cut at 15. The truth is a cohort of two million rollouts.

Printed: the share of runs in which a band holds the whole true curve (at the depths where five rollouts or more are
expected to be still at risk), and in which a pointwise interval holds the truth, averaged over those depths.

Run: python benchmarks/coverage_curves.py [RUNS]
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pandas as pd
from simulation import on_all_processors

from survexec.statistics.curve_differences import difference_columns
from survexec.statistics.curve_intervals import precision
from survexec.statistics.curves import curve_bounds
from survexec.statistics.estimands import CURVES, incidence
from survexec.statistics.pairing import Pair
from survexec.statistics.resampling import replicate
from survexec.statistics.tally import Counts, Tally, by_depth

DEPTH, LIMIT, RESAMPLES, LEVEL = 12, 15, 1000, 0.95
KINDS = {"pec": CURVES["pec"], "pec_elig": CURVES["pec_elig"], "km": CURVES["km"], "cif": incidence("errors", "error")}
SETTINGS = {
    "moderate errors": {"hazard": (-2.2, -2.6), "frailty": 1.0},
    "few errors": {"hazard": (-4.4, -4.0), "frailty": 1.0},
}


def simulate(rng: np.random.Generator, tasks: int, trials: int, hazard: tuple[float, float], frailty: float) -> Tally:
    """A tally of two methods on the same tasks."""
    hard = rng.normal(size=(tasks, 1, 1)) * frailty
    chance = 1 / (1 + np.exp(-(hard + np.array(hazard).reshape(1, 2, 1)))) * np.ones((tasks, 2, trials))
    natural = 1 + rng.poisson(7, chance.shape)
    length = np.minimum(natural, LIMIT)
    fed = np.minimum(rng.geometric(chance), length + 1)
    hits = by_depth(length.ravel(), fed.ravel(), (natural <= LIMIT).ravel(), DEPTH)
    columns: dict[str, int | slice] = {"rollouts": 0}
    blocks = [np.full((tasks, 2, 1), float(trials))]
    for at, (name, hit) in enumerate(hits.items()):
        columns[name] = slice(1 + at * (DEPTH + 1), 1 + (at + 1) * (DEPTH + 1))
        blocks.append(hit.reshape(tasks, 2, trials, DEPTH + 1).sum(axis=2))
    names = pd.DataFrame({"benchmark": "simulated", "task_id": np.arange(tasks).astype(str), "stratum": ""})
    return Tally(Counts(np.concatenate(blocks, axis=2), columns), names, pd.DataFrame({"method": ["a", "b"]}))


@cache
def _truth(hazard: tuple[float, float], frailty: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """True curves of both methods, and the share still at risk by depth."""
    rng = np.random.default_rng(99)
    parts = [simulate(rng, 100_000, 1, hazard, frailty).total for _ in range(20)]
    total = Counts(np.sum([part.values for part in parts], axis=0), parts[0].columns)
    share = (total["at_risk"] / total["rollouts"][:, None]).min(axis=0)
    return {name: curve(total) for name, curve in KINDS.items()}, share


def truth(setting: dict) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The true curves of a setting and the share still at risk, simulated once a process."""
    return _truth(setting["hazard"], setting["frailty"])


def holds(lower: np.ndarray, upper: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Whether each point is held; an undefined one says nothing and holds."""
    return ~((lower > true + 1e-9) | (upper < true - 1e-9))


def one_run(tally: Tally, true: dict[str, np.ndarray], judged: np.ndarray, seed: int) -> np.ndarray:
    """Coverage in one run, shape (curve, 3): pointwise, band, and band of the difference."""
    # one set of weights for all curves, as one set serves all cells
    sample = replicate(tally, list(KINDS.values()), RESAMPLES, seed)
    made = {"level": LEVEL, "interval": None, "band": "wilson"}
    rows = []
    for at, (name, curve) in enumerate(KINDS.items()):
        own = sample.only(slice(at * (DEPTH + 1), (at + 1) * (DEPTH + 1)))
        lower, upper, low, high = curve_bounds(curve, precision(curve, tally), own.values, own.n_tasks, made)
        inside, band = holds(lower, upper, true[name])[:, judged], holds(low, high, true[name])[:, judged]
        pair = Pair({}, "a", "b", (0, 1), tally, np.ones(len(tally.tasks), bool), [])
        both = difference_columns(pair, own.difference(0, 1), {**made, "kind": name})
        difference = holds(both["band_lower"], both["band_upper"], true[name][0] - true[name][1])[judged]
        rows.append([inside.mean(), band.all(axis=1).mean(), difference.all()])
    return np.array(rows, dtype=float)


def some_runs(seeds: range, setting: dict, tasks: int, trials: int) -> np.ndarray:
    """Coverage summed over runs."""
    true, at_risk = truth(setting)
    judged = at_risk * tasks * trials >= 5
    judged[0] = False
    total = np.zeros((len(KINDS), 3))
    for seed in seeds:
        total += one_run(simulate(np.random.default_rng((seed, tasks)), tasks, trials, **setting), true, judged, seed)
    return total


def main(runs: int) -> None:
    """Simulate every design on all processors and print one row a curve."""
    print(f"{runs} runs, {RESAMPLES} resamples, nominal {LEVEL:.0%}; share of runs in percent")
    print(f"{'design':34s} {'curve':9s} {'pointwise':>9s} {'band':>6s} {'band of the difference':>23s}")
    designs = [(label, tasks, trials) for label in SETTINGS for tasks, trials in ((50, 1), (200, 1), (60, 4))]
    counted = on_all_processors(some_runs, runs, [(SETTINGS[label], *size) for label, *size in designs])
    for (label, tasks, trials), held in zip(designs, counted, strict=True):
        for name, (point, band, difference) in zip(KINDS, 100 * held / runs, strict=True):
            design = f"{label}, {tasks} tasks x {trials}"
            print(f"{design:34s} {name:9s} {point:9.1f} {band:6.1f} {difference:23.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
