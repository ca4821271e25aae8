"""Success in BFCL's multi-turn tasks: the benchmark's own checker, without evaluating anything.

The checker compares states and answers turn by turn. Where it would execute calls by evaluating their text, it gets the
methods themselves and decoded arguments. What the agent's and the reference's instances share in long-context tasks,
they share here too. The package also has a check that turns without a reference stay without calls; its evaluation
calls it nowhere, so it plays no part here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final

from survexec.protocol.environments.base import Observation, Task
from survexec.protocol.trajectory import Call

_CHECKER: Final = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_AGENT: Final = "agent"
World = tuple[dict[str, Any], dict[str, Callable[..., Any]]]  # instances by class, methods by tool
Execute = Callable[[Mapping[str, Callable[..., Any]], str, dict[str, Any]], Observation]


def solved(
    task: Task,
    calls: Sequence[Call],
    answers: Sequence[str],
    turns: int,
    worlds: tuple[World, World],
    execute: Execute,
) -> bool | None:
    """Whether calls solve a task, as the benchmark's checker decides it.

    Parameters
    ----------
    task : Task
        With the benchmark's own entry as its data.
    calls : sequence of Call
        The agent's, with decoded arguments and their turns.
    answers : sequence of str
        What they gave when they were made.
    turns : int
        Turns that the agent answered; fewer than the task has is a failure.
    worlds : pair of World
        The task's initial state, once for the agent and once for the reference.
    execute : callable
        Calls one of the methods and writes its answer.

    Returns
    -------
    bool or None
        None where the calls gave other answers this time.
    """
    if turns != len(task.turns):
        return False
    said: list[str] = []

    def run(func_call_list: Sequence[Call], model_name: str, **_: Any) -> tuple[list[str], dict[str, Any]]:
        instances, methods = worlds[0] if model_name == _AGENT else worlds[1]
        texts = [execute(methods, call.tool, call.arguments).text for call in func_call_list]  # type: ignore[arg-type]
        if model_name == _AGENT:
            said.extend(texts)
        return texts, instances

    module = importlib.import_module(_CHECKER)
    # the same function with another executor, so that the package itself stays as it is
    check = FunctionType(module.multi_turn_checker.__code__, vars(module) | {"execute_multi_turn_func_call": run})
    steps = [[part] if part else [] for part in _by_turn(calls, turns)]
    try:
        verdict = check(steps, _by_turn(task.reference, turns), task.data, "", _AGENT)
    except RecursionError:  # a directory inside itself equals nothing, and no reference makes one
        return False
    return bool(verdict["valid"]) if said == list(answers[: len(said)]) else None


def _by_turn(calls: Sequence[Call], turns: int) -> list[list[Call]]:
    return [[call for call in calls if call.turn == turn] for turn in range(turns)]
