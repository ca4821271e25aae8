"""Is planned power the power that studies have? Simulation with the default tests of `compare`, seeded, minutes.

Two methods on a population of 20,000 tasks. Tasks differ in how hard they are (a normal frailty on the logit of the
hazard of an error, shared by the methods) and in which method suits them (a further one of each method); rollouts end
by themselves after a Poisson number of calls or are cut at 15; a rollout succeeds more often without an error. The
population is the pilot, so that the plan knows the truth; studies are drawn from it, and the default test (or, of RR
and s, the interval) decides on each.

Printed: planned power and the share of studies that show the difference, with its Monte Carlo error. "from 4 trials":
the plan is made from a population with four trials of each task, the studies have fewer, which tests the split of the
variance. "from rates": the plan knows the shares and how many rollouts are eligible, and takes two independent samples.
"few": the plan says that in 5% of studies or more a side has so few eligible rollouts that MOVER's interval decides.

Run: python benchmarks/planning.py [RUNS]
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd

from survexec.rollouts import Rollouts
from survexec.statistics.planning import Plan, plan

TASKS, LIMIT, SOURCE_TRIALS = 20_000, 15, 4
# Logits of the hazard, and of success after an error, of a and b; spreads of the frailties.
SETTINGS: dict[str, dict[str, Any]] = {
    "moderate errors": {"hazard": (-2.9, -2.3), "recovery": (0.8, 0.0), "shared": 1.0, "own": 0.5},
    "few errors": {"hazard": (-5.0, -4.2), "recovery": (1.0, -0.5), "shared": 1.0, "own": 0.5},
    "tasks differ": {"hazard": (-1.9, -1.3), "recovery": (0.5, 0.0), "shared": 0.7, "own": 1.5},
    "no difference": {"hazard": (-2.6, -2.6), "recovery": (0.3, 0.3), "shared": 1.0, "own": 0.5},
}
# Setting, metric, trials, numbers of tasks, and how the plan is made.
DESIGNS: tuple[tuple[str, str, int, tuple[int, ...], str], ...] = (
    ("moderate errors", "ter", 1, (30, 100, 250), "pilot"),
    ("few errors", "ter", 1, (60, 150, 300), "pilot"),
    ("no difference", "ter", 1, (30, 200), "pilot"),
    ("moderate errors", "success", 1, (100, 200), "pilot"),
    ("moderate errors", "ter", 2, (30, 60, 120), "pilot"),
    ("few errors", "ter", 3, (40, 80, 150), "pilot"),
    ("tasks differ", "ter", 2, (40, 100), "from 4 trials"),
    ("tasks differ", "auc_pec", 2, (40, 100), "from 4 trials"),
    ("moderate errors", "auc_pec", 1, (20, 60, 150), "pilot"),
    ("few errors", "auc_pec", 1, (50, 150, 300), "pilot"),
    ("moderate errors", "mean_fed", 1, (30, 100, 200), "pilot"),
    ("tasks differ", "mean_fed", 2, (40, 100), "from 4 trials"),
    ("no difference", "auc_pec", 1, (50, 200), "pilot"),
    ("moderate errors", "rr", 1, (100, 250), "pilot"),
    ("moderate errors", "rr", 2, (60, 130), "pilot"),
    ("few errors", "rr", 1, (150, 250, 400), "pilot"),
    ("few errors", "rr", 1, (150, 250, 400), "from rates"),
    ("few errors", "rr", 2, (75, 150), "pilot"),
    ("no difference", "rr", 1, (100,), "pilot"),
)


def population(
    hazard: tuple[float, float], recovery: tuple[float, float], shared: float, own: float, trials: int
) -> Rollouts:
    """Rollouts of methods a and b on the same tasks; those of fewer trials are the first of those of more."""
    rng = np.random.default_rng(1)
    hard, suits = rng.normal(size=(TASKS, 1)), rng.normal(size=(TASKS, 2))
    chance = 1 / (1 + np.exp(-(np.array(hazard) + shared * hard + own * suits)))
    frames = []
    for trial in range(trials):
        length = np.minimum(1 + rng.poisson(7, chance.shape), LIMIT)
        fed = np.minimum(rng.geometric(chance), length + 1)
        logit = np.where(fed > length, 1.5, np.array(recovery)) - 0.5 * hard
        success = rng.random(chance.shape) < 1 / (1 + np.exp(-logit))
        task, side = (at.ravel() for at in np.indices(chance.shape))
        frames.append(pd.DataFrame({
            "task_id": task.astype(str), "method": np.array(["a", "b"])[side], "trial": trial,
            "length": length.ravel(), "fed": fed.ravel(), "success": success.ravel(),
        }))  # fmt: skip
    return Rollouts(pd.concat(frames, ignore_index=True))


def planned(setting: str, metric: str, trials: int, tasks: int, how: str) -> tuple[float, Plan]:
    """Planned power, and the plan from the population that the studies are drawn from."""
    cohort = population(**SETTINGS[setting], trials=trials)
    asked: dict[str, Any] = {"metric": metric, "tasks": tasks, "trials": trials}
    difference = plan(cohort, **asked).pilot.difference
    own = plan(cohort, **asked, difference=difference)
    if how == "from rates":
        source = plan(**asked, difference=difference, rate=own.pilot.rate, eligible=own.pilot.eligible)
    elif how == "from 4 trials":
        source = plan(population(**SETTINGS[setting], trials=SOURCE_TRIALS), **asked, difference=difference)
    else:
        source = own
    return float(source.answer["power"]), own


def one_row(design: tuple[str, str, int, int, str], runs: int) -> str:
    """A row of the table."""
    setting, metric, trials, tasks, how = design
    power, own = planned(*design)
    found = own.simulate(runs, rng=2)
    few = "few" if any("MOVER" in note for note in own.notes) else ""
    return (
        f"{setting:16s} {metric:9s} {trials:6d} {tasks:6d} {how:13s} {100 * power:8.1f} {100 * found.power:8.1f} "
        f"{100 * found.standard_error:6.1f} {100 * (power - found.power):+6.1f} {few}"
    ).rstrip()


def main(runs: int) -> None:
    """Simulate every design on all processors and print one row each."""
    print(f"{runs} studies a row, level 95%; power in percent")
    print("setting          metric    trials  tasks plan           planned  studies +- s.e.    gap")
    designs = [(s, metric, trials, n, how) for s, metric, trials, tasks, how in DESIGNS for n in tasks]
    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        for row in pool.map(one_row, designs, [runs] * len(designs)):
            print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
