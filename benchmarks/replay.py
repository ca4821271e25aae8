"""What does judging cost? BFCL's 800 reference tasks replayed, against a bare loop over the same calls.

The bare loop makes the same environment in this process, resets it for each task and executes the same decoded calls:
no child process, no check of the arguments, no snapshots, no success check. All works are run in turn, in one session.
Beside seconds of the clock there are those of the processors, of this process and its children, which other work on
the machine disturbs less. Minima are printed, for the same reason. Two bare loops at once, in two processes, tell how
much faster two workers could be on the machine as it is.

Run: python benchmarks/replay.py [ROUNDS], with bfcl installed by `survexec env install bfcl`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from survexec.protocol.environments import load
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Ending, Trajectory


def references() -> list[Trajectory]:
    """The benchmark's own solution of every task, as a rollout."""
    environment = load("bfcl")
    tasks = [environment.task(name) for name in environment.tasks()]
    return [Trajectory(task.task_id, task.reference, Ending.COMPLETED, "bfcl", turns=len(task.turns)) for task in tasks]


def bare_loop(rollouts: list[Trajectory]) -> None:
    """Reset and execute, nothing else."""
    environment = load("bfcl")
    for rollout in rollouts:
        environment.reset(environment.task(rollout.task_id))
        for call in rollout.calls:
            environment.call(call.tool, dict(call.arguments or {}))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a work by the clock, and of the processors."""
    start, before = time.perf_counter(), sum(os.times()[:4])
    work()
    return time.perf_counter() - start, sum(os.times()[:4]) - before


def main(rounds: int) -> None:
    """Time the loop and the replay with one and two workers in turn, and print minima and ratios."""
    rollouts = references()
    # calls bound by name already: the loop is not charged for that
    plain = []
    for rollout in rollouts:
        calls = [call for call in rollout.calls if isinstance(call.arguments, dict)]
        plain.append(replace(rollout, calls=tuple(calls)))
    pool = ProcessPoolExecutor(2)
    works: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare_loop(plain),
        "2 bare loops at once": lambda: list(pool.map(bare_loop, [plain, plain])),
        "start of a worker": lambda: replay_all(plain[:1], "bfcl", jobs=1, progress=False),
        "replay, 1 worker": lambda: replay_all(plain, "bfcl", jobs=1, progress=False),
        "replay, 2 workers": lambda: replay_all(plain, "bfcl", jobs=2, progress=False),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            seconds = timed(work)
            if turn:
                taken[name].append(seconds)
    total = sum(len(rollout.calls) for rollout in plain)
    print(f"{len(plain)} tasks, {total} calls, minima of {rounds} rounds, load {os.getloadavg()[0]:.1f}")
    least = {name: [min(each) for each in zip(*seconds, strict=True)] for name, seconds in taken.items()}
    print(f"{'':20s}   clock   ratio   processors   ratio")
    twice = least.pop("2 bare loops at once")[0]
    alone = least["bare loop"]
    for name, (clock, processors) in least.items():
        ratios = clock / alone[0], processors / alone[1]
        print(f"{name:20s} {clock:5.2f} s {ratios[0]:7.2f}      {processors:5.2f} s {ratios[1]:7.2f}")
    gain = least["replay, 1 worker"][0] / least["replay, 2 workers"][0]
    print(f"two workers are {gain:.2f} times as fast as one; two bare loops at once: {2 * alone[0] / twice:.2f}")
    pool.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
