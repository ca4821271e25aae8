"""Replay in one process: what is executed, what is judged, what is known."""

import copy
import importlib.util
from pathlib import Path

import pytest

from survexec.protocol.checker import check, checked
from survexec.protocol.environments import ENVIRONMENTS
from survexec.protocol.environments.base import Observation, Task, Tool
from survexec.protocol.replay import Script, clean, prepare, replay
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Rule, Trajectory

ANY = {"type": "object"}
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


class Diary:
    """Writes down what happens to it."""

    benchmark = "tau-retail"  # its refusals are in a catalogue
    version = "1"
    task_of = staticmethod(Task)

    def __init__(self, answers=(), **task):
        self.answers = dict(answers)
        self.options = task
        self.log = []

    def task(self, task_id):
        if task_id != "1":
            raise KeyError(task_id)
        return Task(task_id, **self.options)

    def reset(self, task):
        self.log = ["reset"]
        self.written = []

    def tools(self, turn):
        self.log.append(f"tools {turn}")
        names = {"write": WORD, "read": ANY} if turn < 5 else {"read": ANY}
        return {name: Tool(name, schema, ("word",), name == "write") for name, schema in names.items()}

    def call(self, name, arguments):
        self.log.append((name, arguments))
        answer = self.answers.get(arguments.get("word"), "fine")
        if isinstance(answer, BaseException):
            raise answer
        if name == "write" and answer == "fine":
            self.written.append(arguments)
        return Observation(answer)

    def user_call(self, name, arguments):
        self.log.append(f"user {name}")
        if name == "fail":
            raise ValueError("no")
        self.written.append(arguments)
        return Observation("done by the user")

    def snapshot(self):
        self.log.append("snapshot")
        return repr(self.written).encode()

    def succeeded(self, calls, answers, turns):
        self.log.append(("succeeded", [call.tool for call in calls], list(answers), turns))


def write(word, **more):
    return Call("write", {"word": word}, **more)


def rollout(*calls, ending=Ending.COMPLETED, **more):
    return Trajectory("1", calls, ending, benchmark="tau-retail", **more)


def outcomes(replayed):
    return [str(verdict.outcome) for verdict in replayed.verdicts]


def classes(replayed):
    return [tuple(map(str, verdict.classes)) for verdict in replayed.verdicts]


def test_calls_are_made_in_order_after_a_reset():
    diary = Diary()
    replayed = replay(diary, rollout(write("a"), write("b")))
    made = [entry for entry in diary.log if entry == "reset" or entry[0] == "write"]
    assert made == ["reset", ("write", {"word": "a"}), ("write", {"word": "b"})]
    assert (outcomes(replayed), replayed.changed) == (["ok", "ok"], (True, True))


def test_one_snapshot_is_taken_a_call_and_one_before():
    diary = Diary()
    replay(diary, rollout(write("a"), Call("read"), Call("unknown")))
    assert diary.log.count("snapshot") == 3


def test_tools_are_asked_for_once_a_turn():
    diary = Diary()
    replay(diary, rollout(Call("read"), Call("read"), Call("read", turn=1), Call("read", turn=5)))
    assert [entry for entry in diary.log if str(entry).startswith("tools")] == ["tools 0", "tools 1", "tools 5"]


def test_a_tool_that_is_not_exposed_in_the_turn_is_a_schema_error():
    assert classes(replay(Diary(), rollout(write("a"), write("b", turn=5)))) == [(), ("schema",)]


def test_calls_of_the_user_come_where_they_were_made_and_are_not_judged():
    user_calls = ((2, Call("late")), (0, Call("first")), (1, Call("fail")), (1, Call("second")))
    diary = Diary()
    replayed = replay(diary, rollout(write("a"), write("b"), user_calls=user_calls))
    made = [entry if isinstance(entry, str) else entry[0] for entry in diary.log]
    assert [entry for entry in made if "user" in entry or entry == "write"] == [
        "user first",
        "write",
        "user fail",
        "user second",
        "write",
        "user late",
    ]
    assert outcomes(replayed) == ["ok", "ok"]
    assert replayed.changed == (True, True)


def test_a_call_that_never_reached_the_environment_is_not_replayed():
    lost = write("a", observation="503 Service Unavailable", error=True)
    user_calls = ((0, Call("lost", {}, "Connection refused")),)
    diary = Diary()
    replayed = replay(diary, rollout(lost, write("b"), user_calls=user_calls))
    assert [entry for entry in diary.log if entry[0] == "write" or "user" in entry] == [("write", {"word": "b"})]
    assert outcomes(replayed) == ["infrastructure", "ok"]
    assert checked(rollout(lost, write("b")), replayed.verdicts).positions == (None, 1)


def test_a_call_without_a_recorded_result_is_judged_by_replay():
    trajectory = rollout(write("a", observation="fine"), write("b"), ending=Ending.TRUNCATED)
    recorded, found = check(trajectory), checked(trajectory, replay(Diary(), trajectory).verdicts)
    assert (recorded.length, found.length) == (1, 2)
    assert found.ending is Ending.TRUNCATED


def test_replay_decides_whatever_the_log_says():
    trajectory = rollout(write("a", observation="Error: user not found"), write("b", observation="fine"))
    replayed = replay(Diary({"b": "Error: user not found"}), trajectory)
    assert checked(trajectory, replayed.verdicts).first_error(Rule.STRICT) == (2, ErrorClass.DEPENDENCY, 1)


def test_a_refusal_in_words_is_classified_by_the_catalogue_of_the_benchmark():
    answers = {"a": "Error: non-pending order cannot be cancelled", "b": ValueError("order not found"), "c": "Error: ?"}
    trajectory = rollout(*map(write, "abc"), said=((0, "a b c"),))
    assert classes(replay(Diary(answers), trajectory)) == [("precondition",), ("dependency",), ("unclassified",)]


def test_an_accepted_call_that_claims_to_change_the_state_must():
    replayed = replay(Diary({"a": "already there"}), rollout(write("a"), Call("read")))
    assert classes(replayed) == [("state-consistency",), ()]


def test_what_the_environment_accepts_is_executed_though_it_breaks_the_schema():
    diary = Diary()
    replayed = replay(diary, rollout(write(7)))
    assert (classes(replayed), replayed.changed) == ([("schema",)], (True,))
    assert replayed.observations == (Observation("fine"),)


def test_a_withheld_tool_is_executed_and_judged():
    diary = Diary(withheld={5: frozenset({"write"})})
    replayed = replay(diary, rollout(write("a", turn=5)))
    assert (classes(replayed), replayed.changed) == ([("schema", "information")], (True,))


@pytest.mark.parametrize("call", [Call("other", {}), Call("write", "no call"), Call("write", {"word": float("inf")})])
def test_what_cannot_be_decoded_or_is_not_there_is_not_executed(call):
    diary = Diary()
    replayed = replay(diary, rollout(call))
    assert classes(replayed) == [("schema",)]
    assert replayed.observations == (None,)
    assert not any(entry[0] in ("other", "write") for entry in diary.log)


def test_the_environment_cannot_change_the_log():
    class Eraser(Diary):
        def call(self, name, arguments):
            arguments.clear()
            return Observation("fine")

    trajectory = rollout(Call("read", {"word": ["a"]}))
    before = copy.deepcopy(trajectory)
    replay(Eraser(), trajectory)
    assert trajectory == before


def test_deep_arguments_are_refused_and_shallow_ones_are_not():
    deep, shallow = [], [[]] * 200
    for _ in range(150):
        deep = [deep]
    replayed = replay(Diary(), rollout(Call("read", {"a": shallow}), Call("read", {"a": deep})))
    assert classes(replayed) == [(), ("schema",)]
    assert replayed.verdicts[1].message == "arguments that are nested too deep"


def test_a_value_does_not_become_known_by_being_refused_unexecuted():
    answers = {"Zed": ValueError("order not found")}
    calls = (Call("write", "write('Zed' + 'Zed')"), write("Zed"))
    assert classes(replay(Diary(answers), rollout(*calls)))[1] == ("dependency", "information")


def test_only_executed_calls_are_asked_whether_they_solved_the_task():
    diary = Diary({"b": KeyError("b")})
    calls = (write("a"), Call("other"), write("b"), write("c", observation="Connection refused"))
    replayed = replay(diary, rollout(*calls, turns=3))
    assert diary.log[-1] == ("succeeded", ["write", "write"], ["fine", "'b'"], 3)
    assert replayed.success is None


def test_what_the_user_said_before_a_call_is_known():
    answers = {"Zed": ValueError("order not found")}
    for said, lacking in (((0, "ask zed"), False), ((1, "ask zed"), True)):
        [verdict] = replay(Diary(answers), rollout(write("Zed"), said=(said,))).verdicts
        assert (ErrorClass.INFORMATION in verdict.classes) is lacking


def test_the_turns_of_the_task_are_known_as_far_as_they_have_come():
    for turn, lacking in ((0, True), (1, False)):
        diary = Diary({"Zed": ValueError("order not found")}, turns=("hello", "ask Zed"))
        [verdict] = replay(diary, rollout(write("Zed", turn=turn))).verdicts
        assert (ErrorClass.INFORMATION in verdict.classes) is lacking


def test_what_the_environment_answered_is_known_as_recorded_and_as_replayed():
    answers = {"a": "Zed is here", "Zed": ValueError("order not found"), "Yan": ValueError("order not found")}
    trajectory = rollout(write("a", observation="so is Yan"), write("Zed"), write("Yan"))
    assert classes(replay(Diary(answers), trajectory))[1:] == [("dependency",), ("dependency",)]


def test_an_accepted_call_without_a_source_lacks_information_only_where_something_is_held_back():
    for missing, expected in ((frozenset(), ()), (frozenset({0}), ("information",))):
        replayed = replay(Diary(missing=missing), rollout(write("Zed")))
        assert (classes(replayed), replayed.changed) == ([expected], (True,))


def test_a_task_that_is_not_there_is_told():
    replayed = replay(Diary(), Trajectory("2", (write("a"),), Ending.COMPLETED))
    assert (replayed.verdicts, replayed.fault) == ((), "there is no task '2' in tau-retail 1")


def test_running_out_of_memory_costs_one_call():
    replayed = replay(Diary({"b": MemoryError()}), rollout(*map(write, "abc")))
    assert classes(replayed) == [(), ("state-consistency",), ()]
    assert replayed.verdicts[1].message == "ran out of memory"


def test_running_out_of_memory_at_the_start_is_told():
    class Full(Diary):
        def reset(self, task):
            raise MemoryError

    assert replay(Full(), rollout(write("a"))).fault == "the reset ran out of memory"


def test_an_environment_whose_schema_is_none_is_told():
    class Odd(Diary):
        def tools(self, turn):
            return {"read": Tool("read", {"type": "float"})}

    assert "its schema is no JSON Schema" in replay(Odd(), rollout(Call("read"))).fault


def test_the_same_rollout_gives_the_same_again():
    diary, trajectory = Diary({"b": "Error: order not found"}), rollout(*map(write, "abc"))
    assert replay(diary, trajectory) == replay(diary, trajectory)


def test_a_script_holds_what_was_made_in_the_order_in_which_it_was():
    trajectory = rollout(write("a"), user_calls=((1, Call("late")),), said=((0, "hi \ud800"),), turns=2)
    script = prepare(trajectory)
    assert isinstance(script, Script)
    assert [(step.by_user, step.tool) for step in script.steps] == [(False, "write"), (True, "late")]
    assert (script.said, script.turns) == (((0, "hi ?"),), 2)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert clean("a \ud83d\ude00 \ud83d b é") == "a ?? ? b é"
    assert clean("é 😀") == "é 😀"


@pytest.mark.parametrize("place", ENVIRONMENTS.values())
def test_every_environment_of_the_registry_is_where_it_says(place):
    module, _, kind = place.partition(":")
    source = Path(importlib.util.find_spec(module).origin).read_text()
    assert f"\nclass {kind}:" in source
