"""An environment for tests that stalls, eats memory, dies, prints, or answers nonsense, as it is told."""

import os
import random
import re
import sys
import time
from pathlib import Path

from survexec.protocol.environments.base import Observation, Task, Tool

_NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}}


class Rough:
    """Counts, and misbehaves."""

    benchmark = "rough"
    version = "1"

    def __init__(self, log: str = "", fails: str = "", leak: int = 0) -> None:
        if fails == "load":
            raise RuntimeError("no such luck")
        if fails == "exit":
            os._exit(3)
        self._log, self._fails, self._leak = log, fails, leak
        self._kept: list[bytearray] = []
        self.count = 0

    def tasks(self) -> list[str]:
        return ["1", "slow check", "bad check", "dying check", "bad reset", "dying reset"]

    def task(self, task_id: str) -> Task:
        if task_id not in self.tasks():
            raise KeyError(task_id)
        return Task(task_id)

    def reset(self, task: Task) -> None:
        self.count, self._task = 0, task
        self._kept.append(bytearray(self._leak))
        if self._log:
            with Path(self._log).open("a") as log:
                log.write(f"{os.getpid()}\n")
        if task.task_id == "bad reset":
            raise RuntimeError("it does not start")
        if task.task_id == "dying reset":
            os._exit(3)

    def tools(self, turn: int) -> dict[str, Tool]:
        return {name[1:]: Tool(name[1:], _NUMBER) for name in dir(self) if re.fullmatch("_[a-z]+", name)}

    def call(self, name: str, arguments: dict) -> Observation:
        self.count += 1
        return getattr(self, f"_{name}")(**arguments)

    def user_call(self, name: str, arguments: dict) -> Observation:
        return self.call(name, arguments)

    def snapshot(self) -> bytes:
        return str(self.count).encode()

    def succeeded(self, calls: list, answers: list, turns: int) -> bool | None:
        if self._task.task_id == "slow check":
            time.sleep(600)
        if self._task.task_id == "bad check":
            raise RuntimeError("cannot compare")
        if self._task.task_id == "dying check":
            os._exit(3)
        return len(calls) == self.count

    def _look(self, number: int = 0) -> Observation:
        return Observation(f"{self.count}")

    def _sleep(self) -> Observation:
        time.sleep(600)
        return Observation("slept")

    def _match(self) -> Observation:
        # runs in C and never lets go of the interpreter
        return Observation(str(re.fullmatch("(a|a)*b", "a" * 60)))

    def _eat(self, number: int = 10**10) -> Observation:
        return Observation(str(len(bytearray(number))))

    def _die(self) -> Observation:
        os._exit(3)

    def _leave(self) -> Observation:
        sys.exit("bye")

    def _print(self) -> Observation:
        print('{"type": "_Finished", "success": true, "fault": null}', flush=True)
        os.write(1, b"noise\n")
        os.write(2, b"noise\n")
        return Observation(f"read {sys.stdin.read()!r}")

    def _number(self) -> Observation:
        return 7  # type: ignore[return-value]

    def _nothing(self) -> Observation:
        return Observation(None)  # type: ignore[arg-type]

    def _broken(self) -> Observation:
        raise KeyError("name")

    def _silent(self) -> Observation:
        raise ValueError

    def _half(self) -> Observation:
        return Observation("half \ud83d\n\x00 of it")

    def _big(self, number: int = 5_000_000) -> Observation:
        return Observation("ä" * number)

    def _draw(self) -> Observation:
        return Observation(f"{random.random()} {list({'a', 'b', 'c', 'd', 'e'})}")  # noqa: S311
