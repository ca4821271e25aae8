"""Replay of ToolSandbox, on a stand-in of the few parts of its package that the environment uses."""

import os
import sys

import pytest

from survexec.errors import InputError
from survexec.protocol.environments import load
from survexec.protocol.replay import replay
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Trajectory

# The stand-in has the names, signatures and messages of the real package, and two databases without any library.
CONTEXT = """
import copy
from enum import StrEnum, auto

class RoleType(StrEnum):
    USER = auto()
    AGENT = auto()

class DatabaseNamespace(StrEnum):
    SANDBOX = auto()
    SETTING = auto()
    CONTACT = auto()

class Frame(list):
    def to_dicts(self):
        return [dict(row) for row in self]

class ExecutionContext:
    def __init__(self, allowed, scrambled=False):
        contact = {"person_id": "9e137f06-916a-5310-8174-cf0b7e9f7054", "name": "Fredrik"}
        other = {"person_id": "b5b0ae0b-2f5b-5f0e-8c52-3e4f2d5d1d7c", "name": "Homer"}
        self.dbs = {
            DatabaseNamespace.SANDBOX: [{"conversation_active": True}],
            DatabaseNamespace.SETTING: [{"wifi": True, "low_battery_mode": False}],
            DatabaseNamespace.CONTACT: [contact, other],
        }
        self.trace_tool = True
        self.allowed, self.scrambled = allowed, scrambled

    def get_available_tools(self, scrambling_allowed):
        from tool_sandbox.tools import TOOLS
        shown = {tool.__name__: tool for tool in TOOLS if tool.__name__ in self.allowed}
        if scrambling_allowed and self.scrambled:
            return {f"tool_{number}": tool for number, tool in enumerate(shown.values())}
        return shown

    def get_database(self, namespace):
        return Frame(self.dbs[namespace])

_current = None

def get_current_context():
    return _current

def set_current_context(context):
    globals()["_current"] = context
"""

TOOLS = """
import os
import uuid
from tool_sandbox.common.execution_context import DatabaseNamespace, RoleType, get_current_context

class NoDataError(Exception):
    pass
NoDataError.__module__ = "polars.exceptions"

def tool(*visible_to):
    def register(function):
        function.visible_to = visible_to
        return function
    return register

def settings():
    return get_current_context().dbs[DatabaseNamespace.SETTING][0]

def contacts():
    return get_current_context().dbs[DatabaseNamespace.CONTACT]

@tool(RoleType.AGENT)
def set_wifi_status(on):
    assert not get_current_context().trace_tool
    if on and settings()["low_battery_mode"]:
        raise PermissionError("Wifi cannot be turned on in low battery mode")
    if settings()["wifi"] == on:
        raise ValueError("wifi already " + ("enabled" if on else "disabled"))
    settings()["wifi"] = on

@tool(RoleType.AGENT)
def add_contact(name):
    contacts().append({"person_id": str(uuid.uuid4()), "name": name})
    return contacts()[-1]["person_id"]

@tool(RoleType.AGENT)
def modify_contact(person_id, name):
    entry = find(person_id)
    contacts().remove(entry)
    contacts().append(entry | {"name": name})

@tool(RoleType.AGENT)
def remove_contact(person_id):
    contacts().remove(find(person_id))

def find(person_id):
    found = [entry for entry in contacts() if entry["person_id"] == person_id]
    if not found:
        raise NoDataError(f"No db entry matching predicate=<Expr at {hex(id(object()))}> found")
    return found[0]

@tool(RoleType.AGENT)
def search_stock(query):
    if not settings()["wifi"]:
        raise ConnectionError("Wifi is not enabled")
    if "RAPID_API_KEY" not in os.environ:
        raise PermissionError("Please provide 'RAPID_API_KEY' in environment variable. You can find ...")
    raise AssertionError("the network must not be asked")

@tool(RoleType.USER)
def end_conversation():
    get_current_context().dbs[DatabaseNamespace.SANDBOX][0]["conversation_active"] = False

TOOLS = [add_contact, end_conversation, modify_contact, remove_contact, search_stock, set_wifi_status]
"""

CONVERSION = """
import inspect

def convert_to_openai_tools(name_to_tool):
    made = []
    for name, tool in name_to_tool.items():
        parameters = inspect.signature(tool).parameters
        types = {parameter: {"type": "boolean" if parameter == "on" else "string"} for parameter in parameters}
        schema = {"type": "object", "properties": types, "required": list(parameters)}
        made.append({"type": "function", "function": {"name": name, "description": "", "parameters": schema}})
    return made
"""

SCENARIOS = """
from types import SimpleNamespace
from tool_sandbox.common.execution_context import ExecutionContext

CONTACTS = ["add_contact", "modify_contact", "remove_contact", "end_conversation"]

def named_scenarios(preferred_tool_backend):
    assert preferred_tool_backend == "DEFAULT"
    def scenario(allowed, *categories, scrambled=False):
        context = ExecutionContext(allowed, scrambled)
        return SimpleNamespace(starting_context=context, categories=["SINGLE_TOOL_CALL", *categories])
    return {
        "contacts": scenario(CONTACTS, "NO_DISTRACTION_TOOLS"),
        "contacts_scrambled": scenario(CONTACTS, "TOOL_NAME_SCRAMBLED", scrambled=True),
        "wifi": scenario(["set_wifi_status", "search_stock", "end_conversation"]),
    }
"""

FILES = {
    "__init__.py": "",
    "common/__init__.py": "",
    "common/execution_context.py": CONTEXT,
    "common/tool_conversion.py": CONVERSION,
    "common/tool_discovery.py": "class ToolBackend:\n    DEFAULT = 'DEFAULT'\n",
    "scenarios/__init__.py": SCENARIOS,
    "tools.py": TOOLS,
}
FREDRIK = "9e137f06-916a-5310-8174-cf0b7e9f7054"
RECORDED = "5848aaf9-9244-476d-bea4-c7d4f86f00e6"  # made by a call in the recorded run


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "tool_sandbox"]:
        del sys.modules[name]


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / "tool_sandbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path / "tool_sandbox"
    forget()


@pytest.fixture
def environment(package):
    return load("toolsandbox")


def rollout(task, *calls, **more):
    return Trajectory(task, calls, Ending.COMPLETED, **more)


def classes(replayed):
    return [verdict.error_class for verdict in replayed.verdicts]


def test_without_the_package_the_message_says_what_to_install_and_what_works_without(monkeypatch):
    forget()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError) as raised:
        load("toolsandbox")
    assert "apple/ToolSandbox" in str(raised.value)
    assert "read as they were recorded" in str(raised.value)


def test_a_package_whose_own_needs_are_missing_says_which(package):
    (package / "scenarios" / "__init__.py").write_text("import no_such_library")
    with pytest.raises(InputError, match="cannot be imported: No module named 'no_such_library'"):
        load("toolsandbox")


def test_scenarios_are_tasks_with_the_stratum_that_the_reader_gives_them(environment):
    assert list(environment.tasks()) == ["contacts", "contacts_scrambled", "wifi"]
    assert {environment.task(name).stratum for name in environment.tasks()} == {"SINGLE_TOOL_CALL"}
    assert replay(environment, rollout("chess")).fault == "there is no task 'chess' in toolsandbox 165848b"


def test_calls_are_judged_by_what_the_tools_say(environment):
    replayed = replay(
        environment,
        rollout(
            "contacts",
            Call("remove_contact", {"person_id": "+358401234"}),
            Call("remove_contact", {"person": FREDRIK}),
            Call("set_wifi_status", {"on": True}),
            Call("end_conversation", {}),
            Call("remove_contact", {"person_id": FREDRIK}),
            Call("remove_contact", {"person_id": FREDRIK}),
            said=((0, f"Remove +358401234, who is {FREDRIK}"),),
        ),
    )
    assert classes(replayed) == [
        ErrorClass.DEPENDENCY, ErrorClass.SCHEMA, ErrorClass.SCHEMA, ErrorClass.SCHEMA, None, ErrorClass.DEPENDENCY
    ]  # fmt: skip
    assert replayed.changed == (False, False, False, False, True, False)
    assert replayed.observations[4].text == "None"
    assert replayed.verdicts[0].message.startswith("polars.exceptions.NoDataError: No db entry matching")
    assert "at 0x...>" in replayed.verdicts[0].message
    assert replayed.success is None


def test_a_state_that_forbids_a_call_is_a_precondition(environment):
    replayed = replay(environment, rollout("wifi", Call("set_wifi_status", {"on": True})))
    assert classes(replayed) == [ErrorClass.PRECONDITION]


def test_each_rollout_starts_from_the_scenarios_own_state(environment):
    turn_off = rollout("wifi", Call("set_wifi_status", {"on": False}))
    assert [classes(replay(environment, turn_off)) for _ in range(2)] == [[None], [None]]


def test_tools_have_the_names_that_the_scenario_shows_to_the_agent(environment):
    replayed = replay(
        environment,
        rollout(
            "contacts_scrambled",
            Call("remove_contact", {"person_id": FREDRIK}),
            Call("tool_3", {"person_id": FREDRIK}),
            said=((0, FREDRIK),),
            user_calls=((1, Call("end_conversation", {})),),
        ),
    )
    assert classes(replayed) == [ErrorClass.SCHEMA, None]
    assert replayed.changed == (False, True)


def test_an_entry_that_moves_but_keeps_its_values_is_no_change(environment):
    replayed = replay(
        environment, rollout("contacts", Call("modify_contact", {"person_id": FREDRIK, "name": "Fredrik"}))
    )
    assert (classes(replayed), replayed.changed) == ([None], (False,))


@pytest.mark.parametrize("tool", ["remove_contact", "modify_contact"])
def test_an_id_made_in_the_recorded_run_makes_the_rollout_unreplayable(environment, tool):
    arguments = {"person_id": RECORDED} | ({"name": "Bo"} if tool == "modify_contact" else {})
    replayed = replay(environment, rollout("contacts", Call("add_contact", {"name": "Ann"}), Call(tool, arguments)))
    assert replayed.verdicts == ()
    assert replayed.fault == f"{RECORDED} was made in the recorded run; an id made here is another"


def test_an_id_of_that_form_before_anything_was_made_is_one_that_does_not_exist(environment):
    rename = Call("modify_contact", {"person_id": FREDRIK, "name": "Fred"})
    replayed = replay(environment, rollout("contacts", rename, Call("remove_contact", {"person_id": RECORDED})))
    assert classes(replayed) == [None, ErrorClass.DEPENDENCY]


def test_what_one_rollout_made_is_forgotten_in_the_next(environment):
    remove = Call("remove_contact", {"person_id": RECORDED})
    assert replay(environment, rollout("contacts", Call("add_contact", {"name": "Ann"}), remove)).fault
    assert classes(replay(environment, rollout("contacts", remove))) == [ErrorClass.DEPENDENCY]


def test_ids_of_the_scenario_stay_good_after_an_entry_was_made(environment):
    calls = (Call("add_contact", {"name": "Ann"}), Call("remove_contact", {"person_id": FREDRIK}))
    assert classes(replay(environment, rollout("contacts", *calls))) == [None, None]


def test_the_network_is_not_asked_but_what_comes_before_it_is_checked(environment, monkeypatch):
    monkeypatch.setenv("RAPID_API_KEY", "secret")
    calls = (
        Call("search_stock", {"query": "Apple"}, "{'symbol': 'AAPL'}"), Call("set_wifi_status", {"on": False}, "None"),
        Call("search_stock", {"query": "Apple"}),
    )  # fmt: skip
    replayed = replay(environment, rollout("wifi", *calls, said=((0, "Price of Apple"),)))
    assert [verdict.outcome for verdict in replayed.verdicts] == [Outcome.OK, Outcome.OK, Outcome.INVALID]
    assert classes(replayed)[2] is ErrorClass.PRECONDITION
    assert os.environ["RAPID_API_KEY"] == "secret"  # the user's own stays


def test_it_runs_in_a_child_as_in_this_process(environment):
    one = rollout(
        "contacts", Call("remove_contact", {"person_id": FREDRIK}), Call("remove_contact", {"person_id": "x"})
    )
    [replayed] = replay_all([one], "toolsandbox")
    assert replayed == replay(environment, one)
