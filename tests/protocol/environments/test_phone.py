"""The phone: every class of error, the worked example of the paper, and hostile input."""

import inspect
import json
from pathlib import Path

import pytest

from survexec.protocol.catalogues import catalogue_for, normalise
from survexec.protocol.checker import checked
from survexec.protocol.environments import load
from survexec.protocol.literals import read_calls
from survexec.protocol.replay import replay
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Rule, Trajectory

ON, OFF = {"on": True}, {"on": False}
MESSAGE = {"phone_number": "+358409999", "text": "I am late."}
CELLULAR = Call("set_cellular", ON)


def rollout(task, *calls, turns=1):
    return Trajectory(task, calls, Ending.COMPLETED, benchmark="phone", turns=turns)


def verdicts(task, *calls):
    return replay(load("phone"), rollout(task, *calls)).verdicts


def last(task, *calls):
    return verdicts(task, *calls)[-1]


def test_the_papers_worked_example():
    number, contact = {"phone_number": "+358401234"}, {"contact_id": "c2"}
    hasty = rollout(
        "remove_contact",
        Call("remove_contact", {"contact_id": "+358401234"}),
        Call("search_contacts", number),
        Call("remove_contact", contact),
    )
    verified = rollout("remove_contact", Call("search_contacts", number), Call("remove_contact", contact))
    phone = load("phone")
    for trajectory, length, first_error in ((hasty, 3, 1), (verified, 2, 3)):
        replayed = replay(phone, trajectory)
        found = checked(trajectory, replayed.verdicts)
        assert (found.length, found.first_error(Rule.STRICT)[0], replayed.success) == (length, first_error, True)
    assert replay(phone, hasty).verdicts[0].classes == (ErrorClass.DEPENDENCY,)
    assert replay(phone, hasty).changed == (False, False, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("call_contact", {"contact_id": "c1"}), "the tool 'call_contact' is not exposed in turn 0"),
        (Call("remove_contact", {}), "'contact_id' is a required property"),
        (Call("remove_contact", {"contact_id": 1}), "contact_id: 1 is not of type 'string'"),
        (Call("set_wifi", {"on": "no"}), "on: 'no' is not of type 'boolean'"),
        (Call("set_wifi", {"on": False, "now": True}), "Additional properties are not allowed ('now' was unexpected)"),
        (Call("set_wifi", "turn it off"), "arguments that cannot be decoded: no call in Python syntax: invalid syntax"),
        (
            Call("add_contact", {"name": "Bo", "phone_number": "12"}),
            "phone_number: '12' does not match '^[+][0-9]{6,15}$'",
        ),
    ],
)
def test_schema(call, message):
    verdict = last("remove_contact", call)
    assert (verdict.error_class, verdict.message) == (ErrorClass.SCHEMA, message)


def test_dependency():
    assert last("remove_contact", Call("remove_contact", {"contact_id": "+358401234"})).classes == (
        ErrorClass.DEPENDENCY,
    )
    # an id that was right before is stale
    again = verdicts("remove_contact", *[Call("remove_contact", {"contact_id": "c2"})] * 2)
    assert [verdict.error_class for verdict in again][1:] == [ErrorClass.DEPENDENCY]


def test_precondition():
    assert last("send_message", Call("send_message", MESSAGE)).error_class is ErrorClass.PRECONDITION
    assert last("send_message", Call("set_low_battery", ON), CELLULAR).error_class is ErrorClass.PRECONDITION
    assert last("send_message", CELLULAR, Call("send_message", MESSAGE)).outcome is Outcome.OK


def test_state_consistency_of_a_transition_that_is_refused():
    found = verdicts("send_message", CELLULAR, *[Call("send_message", MESSAGE)] * 4)
    assert [verdict.outcome for verdict in found[:4]] == [Outcome.OK] * 4
    assert found[4].error_class is ErrorClass.STATE_CONSISTENCY


def test_state_consistency_of_a_call_that_changes_nothing_it_claims_to_change():
    verdict = last("send_message", Call("set_wifi", ON))
    assert verdict.classes == (ErrorClass.STATE_CONSISTENCY,)
    assert verdict.message == "accepted, but it changed nothing"


def test_information_that_a_stand_in_stands_for():
    phone = load("phone")
    trajectory = rollout("add_contact", Call("add_reminder", {"text": "<UNKNOWN>", "time": "08:00"}, turn=1))
    replayed = replay(phone, trajectory)
    assert replayed.verdicts[0].classes == (ErrorClass.INFORMATION,)
    assert replayed.changed == (True,)  # the phone took it, so it is there


def test_information_that_the_user_gives_only_later():
    early = Call("add_contact", {"name": "Zoe", "phone_number": "+358405555"})
    right = Call("add_contact", {"name": "Cleo", "phone_number": "+358405555"}, turn=1)
    phone = load("phone")
    replayed = replay(phone, rollout("add_contact", early, right, turns=2))
    assert [verdict.classes for verdict in replayed.verdicts] == [(ErrorClass.INFORMATION,), ()]
    assert replayed.changed == (True, True)
    assert replayed.success is False
    assert replay(phone, rollout("add_contact", right, turns=2)).success is True


def test_information_that_a_withheld_tool_stands_for():
    calls = [Call("add_reminder", {"text": "call Bo", "time": "07:30"}, turn=turn) for turn in (0, 1)]
    found = verdicts("add_reminder", *calls)
    assert found[0].classes == (ErrorClass.SCHEMA, ErrorClass.INFORMATION)
    assert found[1].outcome is Outcome.OK


def test_information_beside_another_class():
    assert last("remove_contact", Call("remove_contact", {"contact_id": "u9"})).classes == (
        ErrorClass.DEPENDENCY,
        ErrorClass.INFORMATION,
    )


def test_a_search_that_finds_nothing_is_an_answer_under_the_rule_lookup():
    trajectory = rollout("remove_contact", Call("search_contacts", {"name": "Zoe"}))
    found = checked(trajectory, replay(load("phone"), trajectory).verdicts)
    assert [found.first_error(rule)[0] for rule in (Rule.STRICT, Rule.LOOKUP)] == [1, 2]


def test_null_for_an_optional_parameter_is_taken_as_omitted():
    call = Call("search_contacts", {"name": None, "phone_number": "+358401234"})
    assert last("remove_contact", call).outcome is Outcome.OK


def test_calls_in_python_syntax_bind_values_without_a_name():
    calls = read_calls("[set_cellular(True), send_message('+358409999', text='ls(a=True)')]")
    assert [verdict.outcome for verdict in verdicts("send_message", *calls)] == [Outcome.OK, Outcome.OK]


@pytest.mark.parametrize("task_id", load("phone").tasks())
def test_every_task_is_solved_by_its_reference_without_an_error(task_id):
    phone = load("phone")
    task = phone.task(task_id)
    replayed = replay(phone, rollout(task_id, *task.reference, turns=len(task.turns)))
    assert {verdict.outcome for verdict in replayed.verdicts} == {Outcome.OK}
    assert replayed.success is True
    assert replay(phone, rollout(task_id)).success is False


@pytest.mark.parametrize("entry", catalogue_for("phone").entries, ids=lambda entry: entry.example)
def test_every_refusal_of_the_catalogue_is_met_by_its_own_entry(entry):
    assert entry.pattern.fullmatch(normalise(entry.example))


def test_an_environment_is_written_in_under_200_lines():
    source = Path(inspect.getfile(type(load("phone"))))
    assert len(source.read_text().splitlines()) < 200


DEEP = json.loads("[" * 900 + "]" * 900)
CANARY = "__import__('os').system('touch canary')"
HOSTILE = {
    "code": Call("set_wifi", CANARY),
    "code as a value": Call("set_wifi", f"set_wifi(on={CANARY})"),
    "code without a name": Call("set_wifi", f"set_wifi({CANARY})"),
    "code as a tool": Call(CANARY, {}),
    "code as an argument": Call("set_wifi", {CANARY: True}),
    "attribute": Call("set_wifi", "set_wifi(on=().__class__.__bases__[0])"),
    "method of the environment": Call("reset", {"task": None}),
    "inner method": Call("switch", {"setting": "wifi", "on": False}),
    "dunder": Call("__init__", {}),
    "nested call": Call("set_wifi", "set_wifi(on=set_cellular(on=True))"),
    "comprehension": Call("set_wifi", "set_wifi(on=[x for x in range(10**10)])"),
    "power": Call("set_wifi", "set_wifi(on=9**9**9)"),
    "nesting": Call("set_wifi", "set_wifi(on=" + "[" * 100_000),
    "deep object": Call("set_wifi", {"on": DEEP}),
    "long text": Call("set_wifi", "set_wifi(on='" + "a" * 10_000_000 + "')"),
    "long value": Call("remove_contact", {"contact_id": "a" * 10_000_000}),
    "many values": Call("set_wifi", {"on": list(range(3_000_000))}),
    "long tool": Call("a" * 10_000_000, {}),
    "quotes and newlines": Call("set'\"\n\r\x00wifi", {"on": False}),
    "half a surrogate pair": Call("set_wifi\ud800", {"on": "\ud800"}),
    "not a number": Call("set_wifi", {"on": float("nan")}),
    "huge integer": Call("set_wifi", {"on": 10**5000}),
    "an object": Call("set_wifi", {"on": object()}),
    "a set": Call("set_wifi", {"on": {1}}),
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        trajectories = [rollout("send_message", call, Call("set_wifi", OFF)) for call in HOSTILE.values()]
        found = replay_all(trajectories, "phone")
        here = [replay(load("phone"), trajectory) for trajectory in trajectories]
    assert not list(folder.iterdir())
    assert here == found
    return dict(zip(HOSTILE, found, strict=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_a_schema_error_and_nothing_is_executed(hostile, name):
    result = hostile[name]
    assert result.verdicts[0].error_class is ErrorClass.SCHEMA
    assert len(result.verdicts[0].message) < 1000
    assert result.changed[0] is False
    assert result.verdicts[1].outcome is Outcome.OK
