"""What does judging cost? BFCL's 800 reference tasks replayed, against a bare loop over the same calls.

The bare loop makes the same environment in this process, resets it for each task and executes the same decoded calls:
no child process, no check of the arguments, no snapshots, no success check. Both sides are run in turn, in one session.

Run: python benchmarks/replay.py [ROUNDS], with bfcl installed by `survexec env install bfcl`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
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


def timed(work: Callable[[], object]) -> float:
    """Seconds of a work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(rounds: int) -> None:
    """Time the loop and the replay with one and two workers in turn, and print medians and ratios."""
    rollouts = references()
    # calls bound by name already: the loop is not charged for that
    environment = load("bfcl")
    plain = []
    for rollout in rollouts:
        environment.reset(environment.task(rollout.task_id))
        calls = [call for call in rollout.calls if isinstance(call.arguments, dict)]
        plain.append(replace(rollout, calls=tuple(calls)))
    works: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare_loop(plain),
        "replay, 1 worker": lambda: replay_all(plain, "bfcl", jobs=1, progress=False),
        "replay, 2 workers": lambda: replay_all(plain, "bfcl", jobs=2, progress=False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            taken = timed(work)
            if turn:
                seconds[name].append(taken)
    total = sum(len(rollout.calls) for rollout in plain)
    print(f"{len(plain)} tasks, {total} calls, medians of {rounds} rounds")
    for name, taken in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(taken, seconds["bare loop"], strict=True))
        print(f"{name:20s} {statistics.median(taken):6.2f} s   {ratio:5.2f} of the bare loop")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
