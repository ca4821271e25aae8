"""tau2-bench results: one file or a folder, the schemas of 2025 and 2026."""

import json

import pytest

from survexec.protocol.readers import read_file
from survexec.protocol.readers.tau2 import ENDINGS
from survexec.protocol.trajectory import Call, Ending

INFO = {
    "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1", "llm_args": {}},
    "environment_info": {"domain_name": "retail", "policy": "..."},
}


def assistant(*calls, usage=None):
    return {"role": "assistant", "content": None, "tool_calls": list(calls), "usage": usage}


def call(name, call_id, requestor="assistant", **arguments):
    return {"id": call_id, "name": name, "arguments": arguments, "requestor": requestor}


def result(call_id, content, error=False, requestor="assistant"):
    return {"role": "tool", "id": call_id, "content": content, "error": error, "requestor": requestor}


def simulation(task_id="0", messages=None, reason="user_stop", **more):
    if messages is None:
        messages = [
            assistant(
                call("get_order_details", "a", order_id="#W1"),
                usage={"prompt_tokens": 10, "completion_tokens": 2},
            ),
            result("a", "Error: Order not found", True),
        ]
    body = {
        "id": "s",
        "task_id": task_id,
        "trial": 0,
        "duration": 12.5,
        "termination_reason": reason,
        "agent_cost": 0.25,
        "user_cost": 9.0,
        "reward_info": {"reward": 1.0},
        "messages": messages,
    }
    return body | more


@pytest.fixture
def read(tmp_path):
    def read(*simulations, info=INFO, **more):
        path = tmp_path / "log"
        path.write_text(json.dumps({"info": info, "tasks": [], "simulations": simulations} | more))
        return read_file(path)

    return read


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "simulations").mkdir()
    (tmp_path / "results.json").write_text(json.dumps({"timestamp": "", "info": INFO, "tasks": []}))
    (tmp_path / "simulations" / "a.json").write_text(json.dumps(simulation("0")))
    (tmp_path / "simulations" / "b.json").write_text(json.dumps(simulation("1"))[:-30])
    (tmp_path / "simulations" / "c.json").write_text(json.dumps(simulation("2")))
    (tmp_path / "simulations" / "d.json").write_text("")
    return tmp_path


def test_a_simulation_becomes_a_trajectory(read):
    reading = read(simulation("4", trial=2))
    (trajectory,) = reading.trajectories
    assert (trajectory.task_id, trajectory.trial, trajectory.ending) == ("4", 2, Ending.COMPLETED)
    assert (trajectory.benchmark, trajectory.model, trajectory.method) == (
        "tau2-retail",
        "gpt-4.1",
        "llm_agent",
    )
    assert (trajectory.reward, trajectory.tokens) == (1.0, 12)
    assert (trajectory.latency_s, trajectory.cost_usd) == (12.5, 0.25)
    assert trajectory.calls == (Call("get_order_details", {"order_id": "#W1"}, "Error: Order not found", True),)
    assert (reading.faults, reading.remarks) == ([], [])


def test_what_is_not_recorded_is_none(read):
    bare = simulation(agent_cost=None, duration=None, reward_info=None, messages=[assistant()])
    (trajectory,) = read(bare, info={}).trajectories
    assert (trajectory.reward, trajectory.tokens, trajectory.latency_s, trajectory.cost_usd) == (None,) * 4
    assert (trajectory.benchmark, trajectory.model, trajectory.method) == ("tau2", None, None)


@pytest.mark.parametrize(("reason", "ending"), ENDINGS.items())
def test_the_termination_reason_says_how_it_ended(read, reason, ending):
    (trajectory,) = read(simulation(reason=reason)).trajectories
    assert trajectory.ending is ending
    assert trajectory.reason == (None if ending is Ending.COMPLETED else reason)


def test_an_unknown_termination_reason_is_taken_as_truncated_and_remarked(read):
    reading = read(simulation(reason="power_cut"), simulation("1", reason="power_cut"))
    assert {trajectory.ending for trajectory in reading.trajectories} == {Ending.TRUNCATED}
    assert reading.remarks == ["2 rollouts with the unknown termination reason 'power_cut': taken as truncated"]


def test_a_row_without_messages_is_crashed_with_its_error(read):
    row = simulation(messages=[], reason="max_steps", info={"error": "503 Service Unavailable\nTraceback"})
    (trajectory,) = read(row).trajectories
    assert trajectory.ending is Ending.CRASHED
    assert trajectory.reason == "503 Service Unavailable"


def test_calls_by_the_user_are_not_the_agents(read):
    messages = [
        {"role": "user", "content": None, "tool_calls": [call("toggle_data", "u", "user")]},
        result("u", "Error: no such switch", True, "user"),
        assistant(call("get_line", "a")),
        result("a", "{}"),
    ]
    reading = read(simulation(messages=messages))
    assert [call.tool for call in reading.trajectories[0].calls] == ["get_line"]
    assert reading.remarks == ["1 calls by the user, not by the agent: left out"]


def test_parallel_calls_keep_their_order_and_find_their_results_by_id(read):
    messages = [assistant(call("f", "a"), call("g", "b"), call("h", "c")), result("c", "3"), result("a", "1")]
    calls = read(simulation(messages=messages, reason="max_steps")).trajectories[0].calls
    assert [(call.tool, call.observation) for call in calls] == [("f", "1"), ("g", None), ("h", "3")]


def test_tokens_are_the_agents_own(read):
    messages = [
        assistant(usage={"prompt_tokens": 10, "completion_tokens": 2}),
        {"role": "user", "content": "x", "usage": {"prompt_tokens": 500, "completion_tokens": 500}},
        assistant(usage={"prompt_tokens": 20, "completion_tokens": None}),
        assistant(usage=None),
    ]
    assert read(simulation(messages=messages)).trajectories[0].tokens == 32


def test_a_bad_simulation_is_set_aside_and_the_rest_is_read(read):
    reading = read(simulation("0"), simulation(None), simulation("2", messages=None, ticks=[]) | {"messages": 3})
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["0"]
    assert [fault.where for fault in reading.faults] == ["row 2", "row 3"]
    assert "task_id" in reading.faults[0].reason


def test_a_voice_run_is_a_fault_that_names_its_ticks(read):
    reading = read(simulation(messages=[], ticks=[{"agent_chunk": {}, "user_chunk": {}}]), simulation("1"))
    assert len(reading.trajectories) == 1
    assert "ticks" in reading.faults[0].reason


def test_nan_as_python_writes_it_is_no_number(read):
    (trajectory,) = read(simulation(agent_cost=float("nan"), reward_info={"reward": float("nan")})).trajectories
    assert (trajectory.cost_usd, trajectory.reward) == (None, None)


@pytest.mark.parametrize("given", ["", "results.json"])
def test_the_folder_form_is_read_by_folder_or_by_its_results_file(folder, given):
    reading = read_file(folder / given)
    assert reading.format == "tau2"
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["0", "2"]
    assert {trajectory.model for trajectory in reading.trajectories} == {"gpt-4.1"}
    assert [fault.where.split(",")[0] for fault in reading.faults] == [
        "simulations/b.json",
        "simulations/d.json",
    ]
    assert {fault.unit for fault in reading.faults} == {"rollouts"}
    assert "byte" in reading.faults[0].where


def test_a_folder_without_simulations_is_a_fault(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps({"info": INFO, "tasks": []}))
    assert "simulations" in read_file(tmp_path).faults[0].reason
    (tmp_path / "results.json").unlink()
    assert "a folder" in read_file(tmp_path).faults[0].reason


def test_the_schema_of_2026_is_read(shared):
    reading = read_file(shared / "data/tau2/gpt-4.1-mini_airline_2026schema.json")
    assert reading.faults == []
    assert len(reading.trajectories) == 5
    assert sum(trajectory.reward for trajectory in reading.trajectories) == 1
    assert [trajectory.reason for trajectory in reading.trajectories if trajectory.reason] == ["max_steps"]
    assert all(trajectory.tokens > 0 and trajectory.cost_usd > 0 for trajectory in reading.trajectories)
