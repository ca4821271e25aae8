"""ToolSandbox: its tools on its own databases, run from the benchmark's package.

Written against the source of commit 165848b. What a replay can know and what not:

- The environment's own checks are deterministic, and they decide. Entries that a call makes get a random id, and a
  later call of the log that names one cannot be repeated: such a rollout is not replayed, rather than its call refused.
- Tools behind the network are not asked: a call that passes all checks before the request is executable, and what was
  answered is in the log alone. So replay needs neither a key nor a connection.
- Parallel calls run in the order of the log; the benchmark tries all their orders, and lets them fail if one does.
- Success depends on what the agent says to the user too, so it is the recorded similarity that tells it.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import json
import os
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from survexec.errors import InputError, SurvexecError
from survexec.protocol.environments.base import Observation, Task, Tool
from survexec.protocol.readers.toolsandbox import stratum_of, without_addresses
from survexec.protocol.trajectory import Call

_KEY: Final = "RAPID_API_KEY"
_UNASKED: Final = "(the service behind this tool is not asked again)"


class ToolSandbox:
    """The scenarios of ToolSandbox. There is one world at a time: a `reset` begins the next.

    Raises
    ------
    InputError
        The benchmark's package is not installed.

    Notes
    -----
    Its tools check most of what they are given themselves, and setting what is already set is refused: no tool has to
    be watched for calls that change nothing. Times in its databases count from the moment of loading.
    """

    benchmark = "toolsandbox"
    version = "165848b"

    def __init__(self) -> None:
        if importlib.util.find_spec("tool_sandbox") is None:
            raise InputError(
                "ToolSandbox is not installed, and no package registry has it: to replay, `pip install` a clone of the "
                "repository apple/ToolSandbox; without it, its logs are read as they were recorded"
            )
        try:
            self._contexts = importlib.import_module("tool_sandbox.common.execution_context")
            self._conversion = importlib.import_module("tool_sandbox.common.tool_conversion")
            discovery = importlib.import_module("tool_sandbox.common.tool_discovery")
            scenarios = importlib.import_module("tool_sandbox.scenarios")
        except ImportError as error:
            raise InputError(f"ToolSandbox is installed but cannot be imported: {error}") from error
        self._scenarios: Mapping[str, Any] = scenarios.named_scenarios(
            preferred_tool_backend=discovery.ToolBackend.DEFAULT
        )
        self._world: Any = None
        self._made = False  # whether a call made an entry, with an id that is not that of the log
        self._lost = ""

    def tasks(self) -> Sequence[str]:
        """Names of the scenarios."""
        return list(self._scenarios)

    def task(self, task_id: str) -> Task:
        """One scenario; raises KeyError where there is none of this name."""
        scenario = self._scenarios[task_id]
        return Task(task_id, stratum_of([str(label) for label in scenario.categories]), data=scenario.starting_context)

    def reset(self, task: Task) -> None:
        """Put the databases into the state that the scenario starts from."""
        self._world = copy.deepcopy(task.data)
        self._world.trace_tool = False
        self._contexts.set_current_context(self._world)
        self._made, self._lost = False, ""

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """The tools of the scenario under the names that it shows to the agent, described as it describes them."""
        agent = self._contexts.RoleType.AGENT
        available = self._world.get_available_tools(scrambling_allowed=True)
        shown = {name: tool for name, tool in available.items() if agent in getattr(tool, "visible_to", (agent,))}
        described = (entry["function"] for entry in self._conversion.convert_to_openai_tools(shown))
        return {entry["name"]: Tool(entry["name"], entry["parameters"]) for entry in described}

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool; what it raises is written as the benchmark's console writes it."""
        return self._execute(self._world.get_available_tools(scrambling_allowed=True)[name], arguments)

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool of the user, whose names are never scrambled."""
        return self._execute(self._world.get_available_tools(scrambling_allowed=False)[name], arguments)

    def snapshot(self) -> bytes:
        """The databases, without that of the messages.

        Raises
        ------
        SurvexecError
            If the state can no longer be that of the log.
        """
        if self._lost:
            raise SurvexecError(self._lost)
        return json.dumps(self._databases()).encode()

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """None: it also depends on what the agent says."""
        return None

    def _execute(self, tool: Any, arguments: dict[str, Any]) -> Observation:
        if self._made and (unknown := self._unknown_id(arguments)):
            self._lost = f"{unknown} was made in the recorded run; an id made here is another"
            return Observation(self._lost, error=True)
        try:
            with _offline():
                answer = tool(**copy.deepcopy(arguments))
        except Exception as error:
            told = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
            if _KEY in told:
                return Observation(_UNASKED)
            return Observation(without_addresses(told), error=True)
        self._made = self._made or _is_random_id(answer)
        return Observation(repr(answer))

    def _unknown_id(self, arguments: Mapping[str, Any]) -> str | None:
        """An argument that has the form of a random id and stands in no database."""
        ids = [value for value in _texts(arguments) if _is_random_id(value)]
        known = json.dumps(self._databases()) if ids else ""
        return next((value for value in ids if value not in known), None)

    def _databases(self) -> dict[str, list[str]]:
        """Rows of each database, in an order of their own: changing an entry moves it to the end."""
        spaces = self._contexts.DatabaseNamespace
        return {
            str(space): sorted(json.dumps(row, default=str) for row in self._world.get_database(space).to_dicts())
            for space in spaces
            if space != spaces.SANDBOX
        }


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Take away the key without which no tool asks the network: a request would get another answer each time."""
    key = os.environ.pop(_KEY, None)
    try:
        yield
    finally:
        if key is not None:
            os.environ[_KEY] = key


def _is_random_id(value: Any) -> bool:
    """Whether a value is an id of the kind that calls make; those of the scenarios are of another version."""
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value and uuid.UUID(value).version == 4
    except ValueError:
        return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
