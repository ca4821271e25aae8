"""Rollouts of two methods on the same tasks, simulated as counts: what the benchmarks of coverage and size draw.

Tasks differ in how hard they are (a normal frailty on the logit of the hazard of an error, shared by the methods);
methods may differ from task to task; rollouts end by themselves after a Poisson number of calls. Success depends on the
task and is rarer after an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from survexec.statistics.tally import SCALARS, Counts, Tally


@dataclass(frozen=True)
class Setting:
    """A design: logit hazards of the two methods and spreads over tasks.

    Parameters
    ----------
    hazard : tuple of float
        Logit of the chance of an error at each call, by method.
    frailty : float
        Standard deviation of a task's difficulty.
    interaction : float
        Standard deviation of a method's own effect on a task.
    success : tuple of float
        Logit of success without an error, by method; an error takes 1.5 off.
    """

    hazard: tuple[float, ...]
    frailty: float = 1.0
    interaction: float = 0.0
    success: tuple[float, ...] = (0.8, 0.5)


def simulate(rng: np.random.Generator, tasks: int, trials: int, setting: Setting) -> Tally:
    """A tally of the methods of a setting on the same tasks."""
    methods = len(setting.hazard)
    shape = (tasks, methods, trials)
    hard = rng.normal(size=(tasks, 1, 1)) * setting.frailty
    own = rng.normal(size=(tasks, methods, 1)) * setting.interaction
    chance = 1 / (1 + np.exp(-(hard + own + np.array(setting.hazard).reshape(1, -1, 1)))) * np.ones(shape)
    length = 1 + rng.poisson(6, shape)
    fed = np.minimum(rng.geometric(chance), length + 1)
    clean = (fed > length).astype(float)
    logit = np.array(setting.success).reshape(1, -1, 1) - 0.5 * hard - 1.5 * (1 - clean)
    success = (rng.random(shape) < 1 / (1 + np.exp(-logit))).astype(float)
    one = np.ones(shape)
    area = (fed - 1) / length
    values = np.stack(
        [one, clean, one, success, clean, clean * success, fed, area, length, np.zeros(shape)], axis=-1
    ).sum(axis=2)
    names = pd.DataFrame({"benchmark": "simulated", "task_id": np.arange(tasks).astype(str), "stratum": ""})
    cells = pd.DataFrame({"method": [f"m{m}" for m in range(methods)]})
    return Tally(Counts(values, {name: at for at, name in enumerate(SCALARS)}), names, cells)


def whole_population(setting: Setting) -> Counts:
    """Sums over two million rollouts of each method: what the estimates aim at."""
    rng = np.random.default_rng(99)
    parts = [simulate(rng, 100_000, 1, setting).total for _ in range(20)]
    return Counts(np.sum([part.values for part in parts], axis=0), parts[0].columns)


def on_all_processors(
    work: Callable[..., np.ndarray], runs: int, designs: Iterable[tuple[object, ...]]
) -> Iterator[np.ndarray]:
    """Of each design, the sum of ``work(seeds, *design)`` over shares of the seeds 0 to runs - 1.

    The processes stay for all designs, so that what `work` keeps is found once a process.
    """
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        for design in designs:
            jobs = [pool.submit(work, range(at, runs, workers), *design) for at in range(workers)]
            yield sum(job.result() for job in jobs)
