"""tau-bench (v1) result files."""

import json

import pytest

from survexec.protocol.readers import read_file
from survexec.protocol.trajectory import Call, Ending


def call(name, arguments="{}", call_id=None):
    body = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return body | ({"id": call_id} if call_id else {})


def row(task_id=0, trial=0, reward=1.0, messages=None, **more):
    if messages is None:
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "tool_calls": [call("get_order_details", '{"order_id": "#W1"}', "c1")]},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "name": "get_order_details",
                "content": "Error: order not found",
            },
        ]
    return {"task_id": task_id, "trial": trial, "reward": reward, "info": {}, "traj": messages} | more


CRASH = {"error": "('Connection aborted.', ConnectionResetError(104))\n  second line", "traceback": "..."}


@pytest.fixture
def read(tmp_path):
    def read(*rows, text=None):
        path = tmp_path / "log.json"
        path.write_text(text or json.dumps(rows))
        return read_file(path)

    return read


def test_a_row_becomes_a_trajectory(read):
    (trajectory,) = read(row(task_id=3, trial=1, reward=0.5)).trajectories
    assert trajectory.task_id == "3"
    assert (trajectory.trial, trajectory.reward, trajectory.row) == (1, 0.5, 1)
    assert trajectory.ending is Ending.COMPLETED
    assert trajectory.calls == (Call("get_order_details", {"order_id": "#W1"}, "Error: order not found", None),)
    assert (trajectory.model, trajectory.method, trajectory.tokens, trajectory.cost_usd) == (None,) * 4


def test_calls_and_results_without_ids_and_with_python_arguments_are_read(read):
    messages = [
        {
            "role": "assistant",
            "tool_calls": [call("find_user_id_by_email", "{'email': 'm@x'}"), call("think", "hm")],
        },
        {"role": "tool", "content": '# var_0 = "Error: user not found"'},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": None},
    ]
    (trajectory,) = read(row(messages=messages)).trajectories
    assert trajectory.calls == (
        Call("find_user_id_by_email", {"email": "m@x"}, '# var_0 = "Error: user not found"'),
        Call("think", "hm", ""),
    )


def test_the_old_function_call_is_a_call(read):
    messages = [
        {"role": "assistant", "function_call": {"name": "calculate", "arguments": '{"expression": "1+1"}'}},
        {"role": "function", "name": "calculate", "content": "2.0"},
    ]
    (trajectory,) = read(row(messages=messages)).trajectories
    assert trajectory.calls == (Call("calculate", {"expression": "1+1"}, "2.0"),)


def test_a_call_without_a_result_has_no_observation(read):
    messages = [{"role": "assistant", "tool_calls": [call("think", "{}", "c1")]}]
    assert read(row(messages=messages)).trajectories[0].calls[0].observation is None


def test_a_result_that_answers_no_call_is_remarked(read):
    messages = [{"role": "tool", "tool_call_id": "c9", "content": "x"}]
    assert read(row(messages=messages)).remarks == ["1 results answer no recorded call: left out"]


def test_a_row_with_an_error_and_no_messages_is_crashed_for_its_first_line(read):
    (trajectory,) = read(row(messages=[], info=CRASH)).trajectories
    assert trajectory.ending is Ending.CRASHED
    assert trajectory.reason == "('Connection aborted.', ConnectionResetError(104))"


def test_a_row_without_messages_and_error_is_crashed_too(read):
    (trajectory,) = read(row(messages=[])).trajectories
    assert trajectory.ending is Ending.CRASHED
    assert "no messages" in trajectory.reason


def test_an_error_beside_messages_is_a_crash_whatever_the_reward(read):
    assert read(row(info=CRASH, reward=1.0)).trajectories[0].ending is Ending.CRASHED


def test_trial_equal_to_task_in_every_row_is_no_trial(read):
    reading = read(row(0, 0), row(1, 1), row("2", 2))
    assert [trajectory.trial for trajectory in reading.trajectories] == [0, 0, 0]
    assert "taken as no trial" in reading.remarks[0]


def test_trial_equal_to_task_in_some_rows_is_a_trial(read):
    reading = read(row(0, 0), row(1, 1), row(0, 1), row(1, 0))
    assert [trajectory.trial for trajectory in reading.trajectories] == [0, 1, 1, 0]
    assert reading.remarks == []


@pytest.mark.parametrize(
    ("tools", "benchmark"),
    [
        (["get_order_details", "think"], "tau-retail"),
        (["book_reservation"], "tau-airline"),
        (["think", "get_user_details"], "tau"),
        (["book_reservation", "get_order_details"], "tau"),
        (["book_reservation"] * 30 + ["get_order_details"], "tau-airline"),
    ],
)
def test_the_domain_is_inferred_from_the_tools_of_the_whole_file(read, tools, benchmark):
    rows = [row(i, 5, messages=[{"role": "assistant", "tool_calls": [call(tool)]}]) for i, tool in enumerate(tools)]
    quiet = row(99, 5, messages=[{"role": "user", "content": "hi"}])
    assert {trajectory.benchmark for trajectory in read(*rows, quiet).trajectories} == {benchmark}


def test_a_bad_row_is_set_aside_and_the_rest_is_read(read):
    rows = [row(0), None, {"traj": []}, row(3, reward="good"), row(4, messages=[{"role": 5}]), row(5)]
    reading = read(*rows)
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["0", "5"]
    assert [trajectory.row for trajectory in reading.trajectories] == [1, 6]
    assert [fault.where for fault in reading.faults] == ["row 2", "row 3", "row 4", "row 5"]
    assert {fault.unit for fault in reading.faults} == {"rollouts"}
    assert "task_id" in reading.faults[1].reason
    assert "traj[0].role" in reading.faults[3].reason


def test_nan_as_python_writes_it_is_no_number(read):
    text = json.dumps([row(0, reward=float("nan")), row(1, info={"user_cost": float("inf")})])
    reading = read(text=text)
    assert [trajectory.reward for trajectory in reading.trajectories] == [None, 1.0]
    assert reading.faults == []


def test_half_a_surrogate_pair_does_not_stop_the_reading(read):
    messages = [{"role": "assistant", "tool_calls": [call("think")]}, {"role": "tool", "content": "a\ud83d"}]
    (trajectory,) = read(row(messages=messages)).trajectories
    assert trajectory.calls[0].observation == "a?"


@pytest.mark.parametrize("depth", [300, 900, 5_000])
def test_content_nested_without_end_costs_at_most_its_row(read, depth):
    nested = '{"x": ' * depth + "1" + "}" * depth
    deep = json.dumps(
        row(1, messages=[{"role": "assistant", "tool_calls": [call("f")]}, {"role": "tool", "content": 0}])
    )
    deep = deep.replace('"content": 0', f'"content": [{nested}, [{nested}], {nested}]')
    reading = read(text=f"[{json.dumps(row(0))}, {deep}]")
    # no decoder goes down without end: the deepest may cost the file, which then is the one fault
    assert len(reading.trajectories) + len(reading.faults) == 2 or (depth == 5_000 and len(reading.faults) == 1)


def test_a_result_with_a_number_out_of_range_costs_only_its_row(read):
    text = json.dumps([row(0), row(1)]).replace('"Error: order not found"', "1e999", 1)
    reading = read(text=text)
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["1"]
    assert [fault.where for fault in reading.faults] == ["row 1"]


def test_json_lines_are_read_row_by_row(read):
    lines = [json.dumps(row(0)), json.dumps(row(1))[:-9], "", json.dumps(row(2))]
    reading = read(text="\n".join(lines))
    assert [trajectory.task_id for trajectory in reading.trajectories] == ["0", "2"]
    assert [fault.where for fault in reading.faults] == ["row 2"]


def test_crash_rows_of_real_files_carry_their_reason(shared):
    reading = read_file(shared / "data/tau/retail_four_methods/assertions_no_postconditions.json")
    crashed = [trajectory for trajectory in reading.trajectories if trajectory.ending is Ending.CRASHED]
    assert len(crashed) == 5
    assert sum("Connection aborted" in trajectory.reason for trajectory in crashed) == 1
    assert all(trajectory.reason and "\n" not in trajectory.reason for trajectory in crashed)


@pytest.mark.parametrize(
    ("file", "benchmark", "trials"),
    [
        ("gpt-4o_airline.json", "tau-airline", {0, 1, 2, 3}),
        ("retail_four_methods/tool_calling.json", "tau-retail", {0}),
        ("retail_four_methods/assertions.json", "tau-retail", {0}),
    ],
)
def test_real_files_are_read_whole(shared, file, benchmark, trials):
    reading = read_file(shared / "data/tau" / file)
    assert reading.faults == []
    assert {trajectory.benchmark for trajectory in reading.trajectories} == {benchmark}
    assert {trajectory.trial for trajectory in reading.trajectories} == trials
    calls = [call for trajectory in reading.trajectories for call in trajectory.calls]
    assert all(call.observation is not None for call in calls)
    assert sum(isinstance(call.arguments, str) for call in calls) == 0
