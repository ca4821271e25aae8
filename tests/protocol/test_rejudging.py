"""Replay in the place of recorded answers: what it takes over, what it leaves, and what it tells."""

import json

import pytest

import survexec as sx
from survexec.errors import InputError
from survexec.protocol.rejudging import Replay, rejudge
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Trajectory


def rollout(*calls, task="send_message", **more):
    return Trajectory(task, calls, Ending.COMPLETED, row=1, **more)


def lines(*calls, **more):
    return {what: count for what, count, _, _ in rejudge([rollout(*calls, **more)], Replay("phone")).told}


def test_the_replayed_verdict_stands_whatever_the_log_says():
    accepted = Call("set_wifi", {"on": "yes"}, "done", error=False)
    refused = Call("set_cellular", {"on": True}, "refused", error=True)
    judged = rejudge([rollout(accepted, refused)], Replay("phone")).checked[0]
    assert [verdict.outcome for verdict in judged.verdicts] == [Outcome.INVALID, Outcome.OK]
    assert judged.verdicts[0].error_class is ErrorClass.SCHEMA
    assert judged.verdicts[0].classes[0] is ErrorClass.SCHEMA


def test_disagreements_are_counted_by_tool_and_direction():
    told = lines(
        Call("set_cellular", {"on": True}, "refused", error=True), Call("set_wifi", {"on": "yes"}, "done", error=False)
    )
    assert told["judged by replay in phone"] == 2
    assert told["recorded as refused, replayed as accepted: set_cellular"] == 1
    assert told["recorded as accepted, replayed as refused: set_wifi"] == 1


def test_where_both_agree_nothing_is_told_but_the_replay():
    assert lines(Call("set_cellular", {"on": True}, "done", error=False)) == {"judged by replay in phone": 1}


def test_success_comes_from_the_benchmark_where_the_log_has_none():
    fresh, recorded = (rejudge([rollout(reward=reward)], Replay("phone")) for reward in (None, 1.0))
    assert fresh.checked[0].trajectory.reward == 0.0
    assert recorded.checked[0].trajectory.reward == 1.0
    assert any("recorded success and the benchmark's own check" in what for what, *_ in recorded.told)


def test_a_rollout_that_was_cut_did_not_succeed_whatever_its_state():
    calls = (Call("search_contacts", {"phone_number": "+358401234"}), Call("remove_contact", {"contact_id": "c2"}))
    for ending, reward in ((Ending.COMPLETED, 1.0), (Ending.TRUNCATED, 0.0)):
        found = rejudge([Trajectory("remove_contact", calls, ending)], Replay("phone"))
        assert found.checked[0].trajectory.reward == reward


def test_a_rollout_of_an_unknown_task_falls_back_on_what_was_recorded():
    found = rejudge([rollout(Call("set_wifi", {}, "refused", error=True), task="no such task")], Replay("phone"))
    assert found.checked[0].verdicts[0].outcome is Outcome.INVALID
    assert "could not be replayed, so the recorded answers decide" in found.told[0][0]
    assert found.told[0][1:] == (1, "rollouts", "row 1")


def test_without_recorded_answers_it_is_lost_and_says_why():
    found = rejudge([rollout(Call("set_wifi", {}), task="no such task")], Replay("phone"))
    assert not found.checked
    assert "no task 'no such task'" in found.lost[0][1]


def test_the_reference_is_each_task_once():
    twice = [rollout(), rollout(), rollout(task="remove_contact"), rollout(task="no such task")]
    found = Replay("phone").reference(twice)
    assert [trajectory.task_id for trajectory in found] == ["send_message", "remove_contact"]
    assert {trajectory.model for trajectory in found} == {"reference"}


@pytest.fixture
def log(tmp_path):
    """A log of tau2's shape, of tasks that the phone has."""

    def message(call, name, arguments, answer, error):
        call = {"id": call, "name": name, "arguments": arguments, "requestor": "assistant"}
        return [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "id": call["id"], "content": answer, "error": error, "requestor": "assistant"},
        ]

    messages = [
        *message("a", "remove_contact", {"contact_id": "+358401234"}, "removed", False),
        *message("b", "search_contacts", {"phone_number": "+358401234"}, "[]", False),
        *message("c", "remove_contact", {"contact_id": "c2"}, "removed", False),
    ]
    simulation = {"task_id": "remove_contact", "termination_reason": "user_stop", "messages": messages}
    info = {"agent_info": {"llm": "m", "implementation": "agent"}, "environment_info": {"domain_name": "phone"}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"info": info, "simulations": [simulation]}))
    return path


def test_read_replays_the_worked_example_of_the_paper(log):
    plain, again = sx.read(log), sx.read(log, replay="phone", reference=True)
    assert plain.frame[["length", "fed"]].values.tolist() == [[3, 4]]
    assert again.frame[["method", "length", "fed", "success"]].values.tolist() == [
        ["agent", 3, 1, True], ["reference", 2, 3, True],
    ]  # fmt: skip
    assert again.frame["error_class"].tolist()[0] == "dependency"
    assert "recorded as accepted, replayed as refused: remove_contact" in set(again.ledger["reason"])


def test_all_classes_of_a_call_are_kept_in_the_table_and_in_parquet(log, tmp_path):
    again = sx.read(log, replay="phone")
    assert again.calls["classes"].tolist()[0].split(",")[0] == "dependency"
    again.to_parquet(tmp_path / "r.parquet")
    stored = sx.Rollouts.from_parquet(tmp_path / "r.parquet")
    assert stored.calls["classes"].fillna("").tolist() == again.calls["classes"].fillna("").tolist()


@pytest.mark.parametrize("wrong", [{"reference": True}, {"jobs": 2}, {"replay_options": {"a": 1}}])
def test_options_of_a_replay_without_one_are_refused(log, wrong):
    with pytest.raises(InputError, match="say replay="):
        sx.read(log, **wrong)


def test_an_unknown_environment_is_refused_with_those_there_are(log):
    with pytest.raises(InputError, match="environment 'telephone' is not known: bfcl, tau2"):
        sx.read(log, replay="telephone")
