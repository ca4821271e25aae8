"""BFCL's multi-turn files in all their shapes, and what a step that cannot be decoded lists."""

import json

import pytest

from survexec.protocol.checker import check
from survexec.protocol.literals import UnreadableCallError, parse_calls
from survexec.protocol.readers import read_file
from survexec.protocol.readers.bfcl_steps import UNDECODABLE, calls_of, undecodable
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Rule


@pytest.fixture
def write(tmp_path):
    def write(*rows, name="model/BFCL_v4_multi_turn_base_result.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def row(result, number=0, category="base", **more):
    return {"id": f"multi_turn_{category}_{number}", "result": result} | more


def step(*entries, **calls):
    """A step of an inference log: the assistant's calls, then other entries."""
    return [{"role": "assistant", "content": [{name: json.dumps(given)} for name, given in calls.items()]}, *entries]


def tool(content):
    return {"role": "tool", "content": content}


def note(content, **more):
    return {"role": "handler_log", "content": content} | more


STATE = [{"role": "state_info", "class_name": "TicketAPI", "content": {"ticket_queue": []}}]
DECODED = note("Successfully decoded model response.", model_response_decoded=[])


def tools(calls):
    return [call.tool for call in calls]


def test_turns_steps_and_calls_become_calls_with_their_turn(write):
    result = [[[{"cd": '{"folder": "docs"}'}, {"ls": "{}"}], []], [["answer in words"]], [[{"pwd": {}}]]]
    reading = read_file(write(row(result, 7, "miss_func"), row([[]], 8)))
    first, second = reading.trajectories
    assert (reading.format, reading.faults) == ("bfcl", [])
    assert (first.task_id, first.benchmark, first.stratum) == ("multi_turn_miss_func_7", "bfcl", "miss_func")
    assert first.calls == (Call("cd", {"folder": "docs"}), Call("ls", {}), Call("pwd", {}, turn=2))
    assert (first.turns, first.ending, first.reward, first.model, first.row) == (3, Ending.COMPLETED, None, None, 1)
    assert (second.calls, second.turns, second.stratum, second.row) == ((), 1, "base", 2)


def test_a_file_without_answers_says_that_it_needs_a_replay(write):
    path = write(row([[[{"ls": "{}"}, {"pwd": "{}"}]]]), row([]))
    reading = read_file(path)
    assert reading.remarks == ["2 calls without a recorded answer: only a replay can judge them"]
    checked = check(reading.trajectories[0])
    assert [verdict.outcome for verdict in checked.verdicts] == [Outcome.UNJUDGED] * 2
    assert (checked.length, checked.ending) == (0, Ending.TRUNCATED)


def test_a_turn_may_be_a_text_in_python_syntax(write):
    turns = ['[mv(source="a.txt", destination="b (ls()) .txt"), ls()]', "No function matches.", "[sort('a.txt')]"]
    (trajectory,) = read_file(write(row(turns), row([]))).trajectories[:1]
    assert trajectory.calls == (
        Call("mv", {"source": "a.txt", "destination": "b (ls()) .txt"}),
        Call("ls", {}),
        Call("sort", "sort('a.txt')", turn=2),
    )
    assert trajectory.turns == 3


def test_a_step_may_be_a_text_of_json_with_names_of_classes(write):
    turns = [['[{"GorillaFileSystem.mv": {"source": "a", "destination": "b"}}, {"TwitterAPI.post_tweet": {}}]', "[]"]]
    (trajectory,) = read_file(write(row(turns), row([]))).trajectories[:1]
    assert trajectory.calls == (Call("mv", {"source": "a", "destination": "b"}), Call("post_tweet", {}))


def test_a_result_that_is_a_text_is_a_crash(write):
    path = write(row("Error during inference: connection lost\nTraceback", traceback="..."), row([[]], 1))
    crashed, kept = read_file(path).trajectories
    assert (crashed.ending, crashed.reason, crashed.calls) == (
        Ending.CRASHED,
        "Error during inference: connection lost",
        (),
    )
    assert kept.ending is Ending.COMPLETED


def test_rows_that_name_no_multi_turn_task_are_set_aside(write):
    path = write(["[ls()]"], row([[]]), {"result": [[]]}, [], {"id": "simple_python_0", "result": "[f()]"}, {"id": 3})
    reading = read_file(path)
    assert tools_read(reading) == ["multi_turn_base_0"]
    assert [fault.where for fault in reading.faults] == ["row 1", "row 3", "row 4", "row 5", "row 6"]
    assert [("no `id`" in fault.reason) for fault in reading.faults] == [True, True, True, False, False]
    assert "simple_python_0" in reading.faults[3].reason


def tools_read(reading):
    return [trajectory.task_id for trajectory in reading.trajectories]


def test_a_file_of_one_row_is_read_and_a_file_of_another_kind_is_not(write):
    assert tools_read(read_file(write(row([[]])))) == ["multi_turn_base_0"]
    other = write({"id": "q1", "result": [[]]}, {"id": "q2", "result": [[]]})
    assert read_file(other).format != "bfcl"
    other.write_text('[{"id": "multi_turn_base_0", "result": []}]')
    assert "wanted is JSON lines" in read_file(other, format="bfcl").faults[0].reason


def test_tokens_and_seconds_add_up_however_they_are_nested(write):
    nested = row([[]], input_token_count=[[10, 20], [5]], output_token_count=[[1, 1], [2]], latency=[[0.5], [1.25]])
    plain = row([[]], 1, input_token_count=7, latency=2)
    first, second = read_file(write(nested, plain)).trajectories
    assert (first.tokens, first.latency_s) == (39, 1.75)
    assert (second.tokens, second.latency_s) == (7, 2)


def test_an_inference_log_has_what_the_tools_answered(write):
    log = [
        STATE,
        {
            "begin_of_turn_query": [{"role": "user", "content": "go"}],
            "step_0": step(
                DECODED, tool('{"current_working_directory": "docs"}'), tool("None"), cd={"folder": "docs"}, mkdir={}
            ),
            "step_1": step(DECODED, note("Empty response from the model. Proceed to next turn.")),
        },
        STATE,
        {
            "begin_of_turn_query": [],
            "step_0": step(DECODED, tool('{"error": "cat: \'a\': No such file or directory"}'), cat={}),
        },
    ]
    result = [[[{"cd": '{"folder": "docs"}'}, {"mkdir": "{}"}], []], [[{"cat": "{}"}]]]
    reading = read_file(write(row(result, inference_log=log), row([], 1)))
    (trajectory, _) = reading.trajectories
    assert [(call.tool, call.observation, call.turn) for call in trajectory.calls] == [
        ("cd", '{"current_working_directory": "docs"}', 0),
        ("mkdir", "None", 0),
        ("cat", '{"error": "cat: \'a\': No such file or directory"}', 1),
    ]
    assert reading.remarks == []
    assert check(trajectory).first_error(Rule.STRICT) == (3, ErrorClass.DEPENDENCY, 1)


def test_a_logged_step_that_was_not_decoded_makes_its_calls_invalid_and_lines_up_with_nothing(write):
    failed = note("Error decoding the model response. Proceed to next turn.", error="Expecting ',' delimiter")
    bad = [{"role": "assistant", "content": [{"ls": '{"a": tru'}, {"pwd": "{}"}]}, failed]
    words = [{"role": "assistant", "content": "All done, see ls()."}, failed]
    log = [{"step_0": bad}, {"step_0": step(tool('{"x": 1}'), du={}), "step_1": words}]
    (trajectory, _) = read_file(write(row([[], []], inference_log=log), row([], 1))).trajectories
    assert [(call.tool, call.error, call.turn) for call in trajectory.calls] == [
        ("ls", True, 0),
        ("pwd", True, 0),
        ("du", None, 1),
    ]
    verdicts = check(trajectory).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.INVALID, Outcome.INVALID, Outcome.OK]
    assert verdicts[0].error_class is ErrorClass.SCHEMA


def test_results_meet_the_calls_that_the_harness_decoded_where_the_message_lists_others(write):
    text = [{"role": "assistant", "content": "I think:\n[ls(), pwd()]"}]
    decoded = note("Successfully decoded model response.", model_response_decoded=["ls()", "pwd()"])
    odd = step(tool("Error during execution: invalid syntax (<string>, line 1)"), **{"ls<|channel|>x": {"a": 1}})
    extra = step(tool("1"), tool("2"), pwd={})
    log = [{"step_0": [*text, decoded, tool("A"), tool("B")], "step_1": odd, "step_2": extra}]
    reading = read_file(write(row([[]], inference_log=log), row([], 1)))
    assert [(call.tool, call.observation) for call in reading.trajectories[0].calls] == [
        ("ls", "A"),
        ("pwd", "B"),
        ("ls<|channel|>x", "Error during execution: invalid syntax (<string>, line 1)"),
        ("pwd", "1"),
    ]
    assert reading.remarks == ["1 results answer no recorded call: left out"]


def test_a_rollout_that_the_harness_ended_is_truncated(write):
    quit_ = note("Model has been forced to quit after 20 steps.")
    logged = row([[]], inference_log=[{"step_0": step(tool("{}"), quit_, ls={})}])
    by_length = row([[[]], [[{"ls": "{}"}]] * 21], 1)
    enough = row([[[]], [[{"ls": "{}"}]] * 20], 2)
    endings = [trajectory.ending for trajectory in read_file(write(logged, by_length, enough)).trajectories]
    assert endings == [Ending.TRUNCATED, Ending.TRUNCATED, Ending.COMPLETED]


HEADER = {"accuracy": 0.5, "correct_count": 2, "total_count": 4}


def failure(number, error_type="instance_state_mismatch", **more):
    error = {"error_type": f"multi_turn:{error_type}", "error_message": ["..."]}
    return {"id": f"multi_turn_base_{number}", "model_name": "gpt-x", "valid": False, "error": error} | more


@pytest.mark.parametrize("place", ["run/result/m/multi_turn", "model"])
def test_what_a_score_file_beside_does_not_name_has_passed(write, place):
    name = "BFCL_v4_multi_turn_base"
    rows = [row([[]], 0), row([[]], 1), row([[], []], 2), row("Error during inference: x", 3)]
    path = write(*rows, name=f"{place}/{name}_result.json")
    scores = write(
        HEADER,
        failure(2, "force_terminated"),
        failure(3, "inference_error"),
        failure(1),
        name=f"{place.replace('result', 'score')}/{name}_score.json",
    )
    reading = read_file(path)
    assert [t.reward for t in reading.trajectories] == [1, 0, 0, 0]
    assert [t.ending for t in reading.trajectories] == [
        Ending.COMPLETED,
        Ending.COMPLETED,
        Ending.TRUNCATED,
        Ending.CRASHED,
    ]
    assert {t.model for t in reading.trajectories} == {"gpt-x"}
    assert reading.remarks == [f"success from {name}_score.json beside it: what that does not name has passed"]
    beside = read_file(scores)
    assert (beside.format, beside.trajectories, beside.faults) == ("bfcl", [], [])
    assert "read with that file" in beside.remarks[0]


def test_a_score_file_alone_has_failures_alone_and_says_so(write):
    log = [{"step_0": step(tool("{}"), ls={})}]
    rows = [failure(4, model_result_raw=[[[{"ls": "{}"}]]], inference_log=log), failure(5, model_result=[["[pwd()]"]])]
    reading = read_file(write(HEADER, *rows, name="BFCL_v4_multi_turn_base_score.json"))
    assert [(t.task_id, t.reward, tools(t.calls)) for t in reading.trajectories] == [
        ("multi_turn_base_4", 0.0, ["ls"]),
        ("multi_turn_base_5", 0.0, ["pwd"]),
    ]
    assert "failures alone" in reading.remarks[0]


def test_a_log_of_glyphh_has_its_own_verdict(write):
    made = [[["ls(a=True)", "cd(folder='docs')"], ["pwd()"]], []]
    log = {"id": "multi_turn_base_9", "passed": True, "error": None, "decoded_calls": made, "api_calls": 3}
    path = write(log | {"input_tokens": 10, "output_tokens": 5, "latency_s": 1.5}, log | {"passed": False})
    first, second = read_file(path).trajectories
    assert tools(first.calls) == ["ls", "cd", "pwd"]
    assert (first.reward, first.tokens, first.latency_s, first.turns) == (1.0, 15, 1.5, 2)
    assert second.reward == 0.0


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("[pwd()], [ls()]", ["pwd", "ls"]),
        ('[touch(file_name="a.txt")]\n[ls()]', ["touch", "ls"]),
        ("[check_tire_pressure]()", ["check_tire_pressure"]),
        ('[cat file_name="notes.txt"]', ["cat"]),
        ('[cp, source="a.txt", destination="b.txt"]', ["cp"]),
        ("[ls]", ["ls"]),
        ("[get_watchlist], [get_message_stats]", ["get_watchlist", "get_message_stats"]),
        ('[echo(content="never closed', ["echo"]),
        ("[mean(numbers=[sum(1), 2], [stand_up(x=1)]", ["mean"]),
        ("[stand_up(x=1)]\n[sit_down()]", ["stand_up", "sit_down"]),
        ('[echo(content="run pwd() or ls()")]\n[du()]', ["echo", "du"]),
        ("[get_ticket(ticket_id=1)]\nuser's turn\n[get_ticket(ticket_id=2)]", ["get_ticket", "get_ticket"]),
        ("```python\n[ls()]\n[pwd()]\n```", ["ls", "pwd"]),
        ("ls(a=True)\npwd()", ["ls", "pwd"]),
        ("TicketAPI.logout() TicketAPI.logout()", ["logout", "logout"]),
        ('[{"ls": {}, "pwd": {}}', []),
        ("", []),
        ("No function matches the user's request.", []),
        ("I called ls() and cat(file_name='a').", []),
        ("stand_up() and then sit_down()", []),
        ("[Note] The files are listed above (see ls).", []),
        ("[stand_up]", []),
        ("lines, 'w' for words (default 'l')", []),
        ("(a) first (b) second", []),
    ],
)
def test_what_a_text_that_cannot_be_decoded_lists(text, listed):
    calls = calls_of(text)
    assert tools(calls) == listed
    assert all(call.error and call.observation == UNDECODABLE and isinstance(call.arguments, str) for call in calls)


def test_a_bare_name_is_read_as_text_and_other_code_is_left_alone():
    assert calls_of("[ls(a=true), mean(numbers=[x, 2])]") == [
        Call("ls", {"a": "true"}),
        Call("mean", {"numbers": ["x", 2]}),
    ]
    nested = calls_of("[mean(numbers=[wc(file_name='a')]), sort('a.txt'), rm(file_name=__import__('os').name)]")
    assert all(isinstance(call.arguments, str) and call.error is None for call in nested)


def test_objects_of_a_step_are_decoded_together_or_not_at_all():
    calls = calls_of([{"ls": "{}"}, {"cat": '{"file_name": '}])
    assert [(call.tool, call.observation) for call in calls] == [("ls", UNDECODABLE), ("cat", UNDECODABLE)]
    assert all(call.error for call in undecodable([{"ls": "{}"}]))


@pytest.mark.parametrize("bad", [{"ls": "ls()"}, {"f(lambda x": "x)"}, {"{'a'": "1}"}])
def test_no_text_of_an_invalid_call_reads_as_a_call_again(bad):
    (call,) = calls_of([bad])
    assert call.error
    with pytest.raises(UnreadableCallError):
        parse_calls(call.arguments)


def test_counting_calls_is_fast_on_hostile_text():
    assert len(calls_of("[ls()]\n" * 20_000)) == 1_000
    assert calls_of("[" * 50_000) == []
    assert len(calls_of("[ls(" + "'" * 50_000)) == 1


AIREV = {"base": (1730, 26), "miss_func": (1767, 35), "miss_param": (1727, 26), "long_context": (1529, 34)}


@pytest.mark.parametrize("category", AIREV)
def test_the_real_files_are_read_whole(shared, category):
    reading = read_file(shared / f"data/bfcl/AIREV-0.8B_BFCL_v4_multi_turn_{category}_result.json")
    calls = [len(trajectory.calls) for trajectory in reading.trajectories]
    assert (reading.faults, len(calls)) == ([], 200)
    assert (sum(calls), calls.count(0)) == AIREV[category]
    assert {trajectory.stratum for trajectory in reading.trajectories} == {category}
