"""BFCL v3 and v4, multi-turn: eight classes of tools, run from the benchmark's own package.

Which tools are exposed follows the package: the documentation of the involved classes, without what `missed_function`
holds back until its turn. Some tasks also have a field `excluded_function`; the package reads it nowhere, so neither
does this module. In a few tasks the reference does what the documentation does not allow: it calls a tool in a turn
that holds it back, or passes the id of a ticket as text. There the data is at odds with itself; the reference is right.
"""

from __future__ import annotations

import copy
import decimal
import importlib
import importlib.metadata
import inspect
import io
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from survexec.protocol.environments import packages
from survexec.protocol.environments.base import Observation, Task, Tool, copied
from survexec.protocol.environments.bfcl_success import World, solved
from survexec.protocol.literals import bind, parse_calls
from survexec.protocol.trajectory import Call

CATEGORIES: Final = ("base", "miss_func", "miss_param", "long_context")
_TYPES: Final = {
    "any": None,
    "array": "array",
    "bool": "boolean",
    "boolean": "boolean",
    "dict": "object",
    "float": "number",
    "integer": "integer",
    "list": "array",
    "number": "number",
    "object": "object",
    "string": "string",
    "tuple": "array",
}
_KEPT: Final = ("description", "default", "enum")
_HOLDS: Final[dict[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): (),
}
_BACKEND: Final = "bfcl_eval.constants.executable_backend_config"
_PADDING: Final = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code.long_context"
_UNSEEN: Final = frozenset({"_random", "_flight_cost_lookup"})  # what looking something up may change
_DOCUMENT: Final = msgspec.json.Decoder()


class BFCL:
    """The multi-turn tasks of BFCL. There is one world at a time: a `reset` begins the next.

    Raises
    ------
    InputError
        The benchmark's package is not installed.
    """

    benchmark = "bfcl"

    def __init__(self) -> None:
        packages.use("bfcl")
        self._backend = importlib.import_module(_BACKEND)
        self.version = f"bfcl-eval {importlib.metadata.version('bfcl-eval')}"
        self._data = Path(str(self._backend.__file__)).parents[1] / "data"
        self._entries = _entries(self._data)
        self._shared = _Shared(importlib.import_module(_PADDING))
        self._classes: dict[str, tuple[type, dict[str, Tool]]] = {}
        self._tasks: dict[str, Task] = {}  # those that were asked for
        self._task = Task("")
        self._exposed: dict[frozenset[str], dict[str, Tool]] = {}  # by what is held back
        self._world: World = ({}, {})

    def tasks(self) -> Sequence[str]:
        """Ids of the tasks, category by category in the order of the files."""
        return list(self._entries)

    def task(self, task_id: str) -> Task:
        """One task; raises KeyError where there is none of this id.

        What `missing` tells of a miss_param task is the first turn that its reference leaves without a call; in two
        tasks a later turn has none either, because no tool can do what it asks.
        """
        if task_id not in self._tasks:
            self._tasks[task_id] = self._read(task_id)
        return self._tasks[task_id]

    def reset(self, task: Task) -> None:
        """Begin the task anew: fresh instances, and nothing left of what earlier rollouts did to shared state."""
        self._task, self._exposed = task, {}
        self._shared.restore()
        self._world = self._fresh()

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """The tools exposed to the agent in a turn, by name."""
        held = _held_back(self._task.data, self._task.reference, turn)
        if held not in self._exposed:
            exposed = {name: tool for name, tool in self._all_tools(self._task.data).items() if name not in held}
            for call in self._task.reference:
                if call.tool in exposed:
                    exposed[call.tool] = _widened(exposed[call.tool], call)
            self._exposed[held] = exposed
        return self._exposed[held]

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool; the answer is written as the benchmark's executor writes it."""
        return execute(self._world[1], name, arguments)

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """No user of this benchmark has tools."""
        raise KeyError(name)

    def snapshot(self) -> bytes:
        """Digest of all that the classes hold, except clocks, caches and random number generators."""
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, 5)
        pickler.fast = True  # without the memo, equal values give equal bytes, whichever objects hold them
        pickler.dump([_state(instance) for instance in self._world[0].values()])
        return buffer.getvalue()

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """Whether the calls solve the task, by the benchmark's own multi-turn checker; it ends the rollout.

        None where the calls, made again from the start, give other answers than before.
        """
        self._shared.restore()
        return solved(self._task, calls, answers, turns, (self._fresh(), self._fresh()), execute)

    def _read(self, task_id: str) -> Task:
        entry, answers = self._entries[task_id]
        category = category_of(task_id)
        reference = tuple(self._reference(entry, answers))
        silent = [turn for turn, calls in enumerate(answers) if not calls]
        held = {turn: _held_back(entry, reference, turn) for turn in range(len(answers))}
        return Task(
            task_id,
            stratum=category,
            turns=tuple("\n".join(message["content"] for message in turn) for turn in entry["question"]),
            reference=reference,
            missing=frozenset(silent[:1]) if category == "miss_param" else frozenset(),
            withheld={turn: names for turn, names in held.items() if names},
            data=entry,
        )

    def _reference(self, entry: Mapping[str, Any], answers: list[list[str]]) -> Iterator[Call]:
        tools = self._all_tools(entry)
        for turn, texts in enumerate(answers):
            for parsed in (parsed for text in texts for parsed in parse_calls(text)):
                yield Call(parsed.name, bind(parsed, tools[parsed.name].positional), turn=turn)

    def _class(self, name: str) -> tuple[type, dict[str, Tool]]:
        """A class, and its tools as the benchmark documents them."""
        if name not in self._classes:
            owner = getattr(importlib.import_module(self._backend.CLASS_FILE_PATH_MAPPING[name]), name)
            file = self._data / "multi_turn_func_doc" / self._backend.MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
            tools = {row["name"]: tool_of(row, getattr(owner, row["name"])) for row in _rows(file)}
            self._classes[name] = owner, tools
            self._shared.add(owner)
        return self._classes[name]

    def _all_tools(self, entry: Mapping[str, Any]) -> dict[str, Tool]:
        return {name: tool for owner in entry["involved_classes"] for name, tool in self._class(owner)[1].items()}

    def _fresh(self) -> World:
        """Instances of the task's classes in their initial state, and the methods that are tools."""
        entry = self._task.data
        instances: dict[str, Any] = {}
        methods: dict[str, Callable[..., Any]] = {}
        for name in entry["involved_classes"]:
            owner, tools = self._class(name)
            instances[name] = instance = owner()
            if name not in self._backend.STATELESS_CLASSES:
                # the loaders keep what they are given
                scenario = copied(entry["initial_config"].get(name, {}))
                instance._load_scenario(scenario, long_context=self._task.stratum == "long_context")
            methods |= {tool: getattr(instance, tool) for tool in tools}
        return instances, methods


def category_of(task_id: str) -> str:
    """Category that an id names.

    Examples
    --------
    >>> category_of("multi_turn_miss_func_17")
    'miss_func'
    """
    return task_id.removeprefix("multi_turn_").rpartition("_")[0]


def json_schema(documented: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a documented type into JSON Schema, nested types too.

    Parameters
    ----------
    documented : mapping
        A type as the benchmark's function documentation has it.

    Returns
    -------
    dict
        JSON Schema; empty where any value will do.

    Examples
    --------
    >>> json_schema({"type": "tuple", "items": {"type": "float"}})
    {'type': 'array', 'items': {'type': 'number'}}
    >>> json_schema({"type": "any"})
    {}
    """
    kind = _TYPES.get(documented.get("type", "any"))
    schema: dict[str, Any] = ({"type": kind} if kind else {}) | {
        key: documented[key] for key in _KEPT if key in documented
    }
    if "properties" in documented:
        schema["properties"] = {name: json_schema(value) for name, value in documented["properties"].items()}
        schema["required"] = list(documented.get("required", []))
    if "items" in documented:
        schema["items"] = json_schema(documented["items"])
    return schema


def tool_of(documented: Mapping[str, Any], method: Callable[..., Any]) -> Tool:
    """Tool from its documentation and from the method behind it, which alone tells the order of its parameters.

    Parameters
    ----------
    documented : mapping
        One function of the benchmark's documentation.
    method : callable
        What runs it.

    Returns
    -------
    Tool
        Takes the documented parameters and no other.
    """
    schema = {"properties": {}} | json_schema(documented["parameters"]) | {"additionalProperties": False}
    positional = tuple(name for name in inspect.signature(method).parameters if name != "self")
    return Tool(documented["name"], schema, positional)


def execute(methods: Mapping[str, Callable[..., Any]], name: str, arguments: dict[str, Any]) -> Observation:
    """Call a method and write its answer as the benchmark's executor does; an exception is a refusal."""
    try:
        if name not in methods:
            raise NameError(f"name '{name}' is not defined")
        answer = methods[name](**copied(arguments))  # some methods keep what they are given
        return Observation(_written(answer))
    except MemoryError:
        raise
    except RecursionError:  # whose own words depend on what called this
        return Observation("Error during execution: maximum recursion depth exceeded", error=True)
    except Exception as error:
        return Observation(f"Error during execution: {error}", error=True)


def _written(answer: Any) -> str:
    if isinstance(answer, dict):
        try:
            return json.dumps(answer)
        except (TypeError, ValueError, RecursionError):  # such as numbers of decimal and mpmath
            return str(answer)
    return str(answer)


def _widened(tool: Tool, call: Call) -> Tool:
    """The tool, letting through any value where a call of the reference passes another type than documented."""
    properties = tool.schema["properties"]
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    odd = [name for name, value in arguments.items() if not _fits(value, properties.get(name, {}))]
    if not odd:
        return tool
    return replace(tool, schema=tool.schema | {"properties": properties | {name: {} for name in odd}})


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    return "type" not in schema or schema["type"] in _HOLDS[type(value)]


def _held_back(entry: Mapping[str, Any], reference: Sequence[Call], turn: int) -> frozenset[str]:
    """Tools that appear only after a turn, and that the reference does not call in it."""
    later = {name for shown, names in entry.get("missed_function", {}).items() if int(shown) > turn for name in names}
    return frozenset(later - {call.tool for call in reference if call.turn == turn} if later else later)


def _entries(data: Path) -> dict[str, tuple[dict[str, Any], list[list[str]]]]:
    """Every task with its reference, by id."""
    entries: dict[str, tuple[dict[str, Any], list[list[str]]]] = {}
    for category in CATEGORIES:
        for file in sorted(data.glob(f"BFCL_v*_multi_turn_{category}.json")):
            known = {row["id"]: row["ground_truth"] for row in _rows(data / "possible_answer" / file.name)}
            entries |= {row["id"]: (row, known[row["id"]]) for row in _rows(file)}
    return entries


def _rows(file: Path) -> list[dict[str, Any]]:
    return [_DOCUMENT.decode(line) for line in file.read_bytes().splitlines() if line.strip()]


class _Shared:
    """What worlds share, put back between rollouts: padding of long-context tasks, default values, precisions.

    Of the padding only dictionaries reach an instance as they are; everyone who takes a list copies it. A default value
    of a method is one object for all its calls, and some are kept and filled.
    """

    def __init__(self, padding: ModuleType) -> None:
        named = [value for name, value in vars(padding).items() if name.isupper() and isinstance(value, dict)]
        self._pristine: list[tuple[Any, Any]] = [(value, copy.deepcopy(value)) for value in named]

    def add(self, owner: type) -> None:
        """Look after the default values of a class's methods."""
        methods = [method for _, method in inspect.getmembers(owner, inspect.isfunction)]
        values = [value for method in methods for value in (method.__defaults__ or ())]
        values += [value for method in methods for value in (method.__kwdefaults__ or {}).values()]
        self._pristine += [(value, copy.deepcopy(value)) for value in values if isinstance(value, dict | list)]

    def restore(self) -> None:
        for value, pristine in self._pristine:
            if value != pristine:
                value.clear()
                (value.update if isinstance(value, dict) else value.extend)(copy.deepcopy(pristine))
        decimal.setcontext(decimal.Context())
        if "mpmath" in sys.modules:
            sys.modules["mpmath"].mp.dps = 15


def _state(instance: Any) -> dict[str, Any]:
    state = {name: value for name, value in vars(instance).items() if name not in _UNSEEN}
    if "_current_dir" in state:
        seen: dict[int, int] = {}
        state["root"] = hash((_tree(state["root"], seen), _tree(state.pop("_current_dir"), seen)))
    return state


def _tree(directory: Any, seen: dict[int, int]) -> Any:
    """What is below a directory. One met before is its number: copying can make a directory its own child."""
    key = id(directory.contents)
    if key in seen:
        return seen[key]
    seen[key] = len(seen)
    return tuple(
        (name, _tree(item, seen) if hasattr(item, "contents") else _hashable(item.content))
        for name, item in directory.contents.items()
    )


def _hashable(content: Any) -> Any:
    return content if isinstance(content, str) else repr(content)  # the hash of a string is kept with it
