"""tau2-bench's own environments: what they refuse, how they are put back, and what logs tell of turns and users."""

import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survexec.errors import InputError
from survexec.protocol.checker import check, checked
from survexec.protocol.environments import packages
from survexec.protocol.environments.arithmetic import is_quick
from survexec.protocol.environments.base import Observation
from survexec.protocol.environments.tau2 import PSEUDO_TOOLS, Tau2
from survexec.protocol.environments.tau2_state import Table
from survexec.protocol.readers import read_file
from survexec.protocol.replay import replay
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Rule, Trajectory

needs_tau2 = pytest.mark.skipif(not packages.importable("tau2"), reason="tau2 is not installed")
MADE: dict[tuple, Tau2] = {}


def tau2(benchmark, solo=False):
    """An environment, built once for all tests."""
    if (benchmark, solo) not in MADE:
        MADE[benchmark, solo] = Tau2(benchmark, solo)
    return MADE[benchmark, solo]


def begun(benchmark, task_id, solo=False):
    environment = tau2(benchmark, solo)
    environment.reset(environment.task(task_id))
    return environment


# ---- what logs tell


@pytest.fixture
def read(tmp_path):
    def read(body):
        path = tmp_path / "log.json"
        path.write_text(json.dumps(body))
        (trajectory,) = read_file(path).trajectories
        return trajectory

    return read


def first_log(*messages):
    return [{"task_id": 0, "trial": 0, "reward": 1.0, "info": {}, "traj": list(messages)}]


def second_log(*messages):
    info = {"agent_info": {}, "environment_info": {"domain_name": "telecom"}}
    simulation = {"task_id": "0", "termination_reason": "user_stop", "messages": list(messages)}
    return {"info": info, "tasks": [], "simulations": [simulation]}


def user(text, *names):
    calls = [{"id": f"u{name}", "name": name, "arguments": {}, "requestor": "user"} for name in names]
    return {"role": "user", "content": text, "tool_calls": calls or None}


def agent(text, *names):
    calls = [{"id": name, "name": name, "arguments": {}, "requestor": "assistant"} for name in names]
    return {"role": "assistant", "content": text, "tool_calls": calls or None}


def answer(call_id, text, requestor="assistant", error=False):
    return {"role": "tool", "id": call_id, "content": text, "requestor": requestor, "error": error}


def test_a_turn_begins_when_the_agent_has_heard_the_user(read):
    trajectory = read(
        second_log(
            agent("Hi! How can I help you today?"),
            user("my phone is dead"),
            agent(None, "f"),
            answer("f", "1"),
            agent(None, "g"),
            answer("g", "2"),
            agent("try this"),
            user("no"),
            user("still no"),
            agent("then that"),
            user("it works"),
            agent(None, "h"),
            answer("h", "3"),
            user("###STOP###"),
        )
    )
    assert [(call.tool, call.turn) for call in trajectory.calls] == [("f", 0), ("g", 0), ("h", 2)]
    assert trajectory.turns == 3
    assert trajectory.said == ((0, "my phone is dead"), (2, "no"), (2, "still no"), (2, "it works"), (3, "###STOP###"))


def test_a_rollout_in_which_nobody_spoke_has_one_turn(read):
    trajectory = read(second_log(agent(None, "f"), answer("f", "1")))
    assert (trajectory.turns, trajectory.said, trajectory.calls[0].turn) == (1, (), 0)


def test_calls_of_the_user_keep_their_place_among_those_of_the_agent(read):
    trajectory = read(
        second_log(
            user("help"),
            agent(None, "f"),
            answer("f", "1"),
            agent("toggle it"),
            user(None, "toggle", "look"),
            answer("utoggle", "on", "user"),
            answer("ulook", "Error: dark", "user", True),
            user("it is dark"),
            agent(None, "g"),
            answer("g", "2"),
        )
    )
    assert trajectory.user_calls == ((1, Call("toggle", {}, "on", False)), (1, Call("look", {}, "Error: dark", True)))
    assert [(call.tool, call.turn) for call in trajectory.calls] == [("f", 0), ("g", 1)]


def test_turns_of_the_first_version_are_those_of_its_messages(read):
    call = {"id": "c", "type": "function", "function": {"name": "think", "arguments": "{}"}}
    trajectory = read(
        first_log(
            {"role": "system", "content": "the policy"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "who are you?"},
            {"role": "user", "content": [{"type": "text", "text": "Ann"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": ""},
        )
    )
    assert (trajectory.turns, trajectory.calls[0].turn) == (2, 1)
    assert trajectory.said == ((0, "hello"), (0, "Ann"))
    assert trajectory.user_calls == ()


@pytest.mark.parametrize(
    ("written", "decoded"),
    [
        ("{'ids': \"['1', '2']\", 'to': 'x'}", {"ids": ["1", "2"], "to": "x"}),
        ("{'ids': '[1, 2', 'to': '[]'}", {"ids": "[1, 2", "to": []}),
        ("{\"ids\": \"['1', '2']\"}", {"ids": "['1', '2']"}),
        ("{'thought': 'list of [1]'}", {"thought": "list of [1]"}),
    ],
)
def test_lists_that_a_log_wrote_as_python_text_are_lists_again(read, written, decoded):
    call = {"type": "function", "function": {"name": "f", "arguments": written}}
    assert read(first_log({"role": "assistant", "tool_calls": [call]})).calls[0].arguments == decoded


# ---- arithmetic

NUMBERS = st.one_of(st.integers(0, 10**6).map(str), st.floats(0, 1e6).map("{:.2f}".format))
ARITHMETIC = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(NUMBERS, st.integers(0, 12).map(str)).map("({0[0]}) ** {0[1]}".format),
    ),
    max_leaves=12,
)


@given(ARITHMETIC)
def test_plain_arithmetic_is_quick(expression):
    assert is_quick(expression)


@given(st.text("0123456789+-*/(). ", max_size=40))
def test_what_is_quick_never_makes_a_large_number(expression):
    if not is_quick(expression):
        assert "**" in expression
        return
    try:
        value = eval(expression, {"__builtins__": None}, {})  # noqa: S307 - arithmetic of this test, found to be quick
    except (ArithmeticError, SyntaxError, TypeError):
        return
    assert not isinstance(value, int) or value.bit_length() <= 10_000


@pytest.mark.parametrize("expression", ["9**9**9", "2**20000", "(2**9)**9999", "2**4000*2**4000*2**4000", "1+" * 1001])
def test_what_could_take_years_is_not_quick(expression):
    assert not is_quick(expression)


@pytest.mark.parametrize(
    "expression", ["1**99999999", "2.5**9**9", "9**-99999", "1/0**2", "(", "x**2", "2**3%5", "1" * 2000]
)
def test_what_ends_at_once_is_quick(expression):
    assert is_quick(expression)


# ---- tables that are put back


@dataclass
class Row:
    """As much of a pydantic model as a table needs."""

    value: list = field(default_factory=list)

    def model_dump(self, warnings):
        return {"value": list(self.value)}

    @classmethod
    def model_validate(cls, contents):
        return cls(list(contents["value"]))


DEEDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["read", "append", "undo", "replace", "forget"])), max_size=12
)


@given(st.lists(DEEDS, max_size=4))
def test_a_table_tells_its_changes_and_forgets_them(rollouts):
    table = Table({key: Row([key]) for key in "ab"})
    untouched = {"a": ["a"], "b": ["b"]}
    for deeds in rollouts:
        for key, deed in deeds:
            if key not in table and deed != "replace":
                continue
            match deed:
                case "read":
                    assert table[key].value
                case "append":
                    table[key].value.append(1)
                case "undo":
                    table[key].value[1:] = []
                case "replace":
                    table[key] = Row([key])
            if deed == "forget":
                table.changes()
            now = {name: row.value for name, row in table.items()}
            assert set(table.changes()) == {name for name in now if now[name] != untouched.get(name)}
        table.restore()
        assert {name: row.value for name, row in table.items()} == untouched
        assert table.changes() == {}


# ---- without the package


def test_a_benchmark_that_is_none_of_its_own_is_refused_with_those_that_are():
    with pytest.raises(InputError, match="no benchmark 'tau2-chess'; it has tau2-airline"):
        Tau2("tau2-chess")


def test_a_trajectory_tells_its_domain_and_whether_the_agent_was_alone():
    plain = Trajectory("0", (), Ending.COMPLETED, "tau-retail")
    solo = Trajectory("0", (), Ending.COMPLETED, "tau2-telecom", method="llm_agent_solo")
    assert Tau2.options_for(plain) == {"benchmark": "tau-retail", "solo": False}
    assert Tau2.options_for(solo) == {"benchmark": "tau2-telecom", "solo": True}


# ---- with the package


@needs_tau2
def test_answers_and_refusals_are_the_benchmarks():
    environment = begun("tau2-airline", "0")
    assert environment.call("get_flight_status", {"flight_number": "HAT001", "date": "1999-01-01"}) == Observation(
        "Error: Flight HAT001 not found on date 1999-01-01", error=True
    )
    assert environment.call("calculate", {"expression": "(300 - 120) * 2"}) == Observation("360.0")
    assert environment.call("nothing", {}) == Observation("Error: Tool 'nothing' not found.", error=True)
    assert "unexpected keyword argument 'x'" in environment.call("list_all_airports", {"x": 1}).text


@needs_tau2
def test_tools_have_the_schemas_of_the_package():
    tool = tau2("tau2-airline").tools(0)["update_reservation_baggages"]
    assert tool.positional == ("reservation_id", "total_baggages", "nonfree_baggages", "payment_id")
    assert tool.schema["properties"]["total_baggages"]["type"] == "integer"
    assert set(tool.schema["required"]) == set(tool.positional)


@needs_tau2
def test_a_calculation_that_would_not_end_is_refused_and_classified():
    rollout = Trajectory("0", (Call("calculate", {"expression": "9**9**9**9"}),), Ending.COMPLETED, "tau2-airline")
    (verdict,) = replay(tau2("tau2-airline"), rollout).verdicts
    assert (verdict.error_class, verdict.message) == (ErrorClass.SCHEMA, "Expression too large to calculate")


@needs_tau2
@pytest.mark.parametrize("benchmark", ["tau2-airline", "tau2-retail", "tau2-mock", "tau2-telecom"])
def test_a_reset_puts_back_what_the_reference_changed(benchmark):
    environment = tau2(benchmark)
    ids = list(environment.tasks())[:: len(environment.tasks()) // 8 or 1]
    for task_id in ids:
        task = environment.task(task_id)
        environment.reset(task)
        first = environment.snapshot()
        answers = [environment.call(call.tool, dict(call.arguments)).text for call in task.reference]
        reached = environment.snapshot()
        environment.reset(task)
        assert environment.snapshot() == first
        assert [environment.call(call.tool, dict(call.arguments)).text for call in task.reference] == answers
        assert environment.snapshot() == reached


@needs_tau2
@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["tau2-airline", "tau2-retail"])
def test_the_digest_is_equal_where_the_benchmarks_own_hash_is(benchmark):
    environment = tau2(benchmark)
    writing = ("update", "modify", "cancel", "book", "exchange")
    tasks = [task for task in map(environment.task, environment.tasks()) if task.reference]
    found = []
    for task in [task for task in tasks if task.reference[-1].tool.startswith(writing)][:3]:
        environment.reset(task)
        found.append((environment.snapshot(), environment._environment.get_db_hash()))
        for call in task.reference:
            environment.call(call.tool, dict(call.arguments))
        found.append((environment.snapshot(), environment._environment.get_db_hash()))
    assert len(found) == 6
    assert len({digest for digest, _ in found}) == len({hashed for _, hashed in found}) == len(set(found)) == 4


@needs_tau2
@pytest.mark.parametrize(("benchmark", "calls", "refused"), [("tau2-airline", 148, 0), ("tau2-retail", 553, 23)])
def test_the_reference_solutions_are_executable_but_for_what_is_meant_to_fail(benchmark, calls, refused):
    environment = tau2(benchmark)
    counts, solved = Counter(), Counter()
    for task_id in environment.tasks():
        task = environment.task(task_id)
        environment.reset(task)
        answers = [environment.call(call.tool, dict(call.arguments)) for call in task.reference]
        counts.update(answer.error for answer in answers)
        solved[environment.succeeded(task.reference, [answer.text for answer in answers], 1)] += 1
    assert (counts.total(), counts[True]) == (calls, refused)
    assert solved[False] == 0
    assert solved[True] > solved[None]


@needs_tau2
def test_initial_data_actions_and_history_are_those_of_the_task():
    environment = tau2("tau2-mock")
    found = {}
    for task_id in environment.tasks():
        task = environment.task(task_id)
        history = (task.data.get("initial_state") or {}).get("message_history") or []
        said = [
            Call(call["name"], call["arguments"]) for message in history for call in message.get("tool_calls") or []
        ]
        replayed = replay(environment, Trajectory(task_id, (*said, *task.reference), Ending.COMPLETED))
        assert not any(answer.error for answer in replayed.observations)
        found[task_id] = replayed.success
    assert found.pop("update_task_with_initialization_data") is None  # all that is left is what the agent says
    assert found.pop("update_task_with_history_and_env_assertions") is False  # it has no reference, only assertions
    assert set(found.values()) == {True}


@needs_tau2
def test_success_is_known_where_the_state_decides_it():
    environment = begun("tau2-airline", "0")
    assert environment.succeeded((), (), 1) is True  # the reference of this task changes nothing
    environment.reset(environment.task("0"))
    assert not environment.call("send_certificate", {"user_id": "noah_muller_9847", "amount": 5}).error
    assert environment.succeeded((), (), 1) is False


@needs_tau2
def test_what_the_agent_had_to_say_leaves_success_open_but_not_failure():
    environment = tau2("tau2-retail")
    to_say = [t for t in environment.tasks() if environment.task(t).data["evaluation_criteria"].get("communicate_info")]
    open_, failed = Counter(), Counter()
    for task_id in to_say:
        task = environment.task(task_id)
        environment.reset(task)
        start = environment.snapshot()
        for call in task.reference:
            environment.call(call.tool, dict(call.arguments))
        changed = environment.snapshot() != start
        open_[environment.succeeded(task.reference, (), 1)] += 1
        environment.reset(task)
        failed[environment.succeeded((), (), 1)] += changed
    assert set(open_) == {None}
    assert failed[False] == failed.total() > 0


@needs_tau2
def test_strata_are_the_smallest_splits():
    counted = {
        benchmark: Counter(tau2(benchmark).task(task_id).stratum for task_id in tau2(benchmark).tasks())
        for benchmark in ("tau2-airline", "tau2-retail", "tau2-telecom", "tau2-mock")
    }
    assert counted["tau2-airline"] == {"train": 30, "test": 20}
    assert counted["tau2-retail"] == {"train": 74, "test": 40}
    assert counted["tau2-telecom"] == {"train": 74, "test": 40, "small": 20, "full": 2151}
    assert counted["tau2-mock"] == {"base": 9}


@needs_tau2
def test_a_task_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError):
        tau2("tau2-airline").task("50")


# ---- telecom: the user has tools


def telecom_task(word):
    return next(task_id for task_id in tau2("tau2-telecom").tasks() if word in task_id)


@needs_tau2
def test_what_the_user_does_changes_the_state_and_reaches_the_agents_side():
    environment = begun("tau2-telecom", telecom_task("overdue_bill_suspension"))
    customer = json.loads(environment.call("get_customer_by_phone", {"phone_number": "555-123-2002"}).text)
    overdue = next(
        bill
        for bill in json.loads(environment.call("get_bills_for_customer", {"customer_id": "C1001"}).text)
        if bill["status"] == "Overdue"
    )
    request = {"customer_id": customer["customer_id"], "bill_id": overdue["bill_id"]}
    assert not environment.call("send_payment_request", request).error
    before = environment.snapshot()
    assert overdue["bill_id"] in environment.user_call("check_payment_request", {}).text
    assert environment.snapshot() == before
    environment.user_call("make_payment", {})
    assert environment.snapshot() != before
    assert json.loads(environment.call("get_details_by_id", {"id": overdue["bill_id"]}).text)["status"] == "Paid"


@needs_tau2
def test_calls_of_the_user_count_for_success_and_not_as_the_agents():
    environment = tau2("tau2-telecom")
    task_id = telecom_task("airplane_mode_on")
    actions = environment.task(task_id).data["evaluation_criteria"]["actions"]
    of_user = tuple((0, Call(a["name"], a["arguments"])) for a in actions if a["requestor"] == "user")
    of_agent = environment.task(task_id).reference
    with_user = replay(environment, Trajectory(task_id, of_agent, Ending.COMPLETED, user_calls=of_user))
    without = replay(environment, Trajectory(task_id, of_agent, Ending.COMPLETED))
    assert (with_user.success, without.success) == (True, False)
    assert len(with_user.verdicts) == len(of_agent)


@needs_tau2
def test_the_users_tools_are_the_agents_only_where_it_is_alone():
    assert "toggle_airplane_mode" not in tau2("tau2-telecom").tools(0)
    alone = begun("tau2-telecom", telecom_task("airplane_mode_on"), solo=True)
    assert {"toggle_airplane_mode", "get_customer_by_phone"} <= set(alone.tools(0))
    assert not alone.call("toggle_airplane_mode", {}).error
    assert alone.user_call("toggle_airplane_mode", {}) == Observation(
        "Error: User tool calls are not allowed in solo mode", error=True
    )


@needs_tau2
def test_a_domain_without_a_solo_mode_says_so():
    with pytest.raises(InputError, match="does not support solo mode"):
        Tau2("tau2-airline", solo=True)


@needs_tau2
def test_a_broken_vpn_is_whole_again_in_the_next_rollout():
    broken = begun("tau2-telecom", telecom_task("bad_vpn"))
    broken.user_call("disconnect_vpn", {})
    broken.user_call("connect_vpn", {})
    assert "poor" in broken.user_call("check_vpn_status", {}).text.lower()
    whole = begun("tau2-telecom", telecom_task("airplane_mode_on"))
    whole.user_call("connect_vpn", {})
    assert "poor" not in whole.user_call("check_vpn_status", {}).text.lower()


@needs_tau2
def test_new_bills_get_the_same_ids_every_time():
    bills = []
    for _ in range(2):
        environment = begun("tau2-telecom", telecom_task("airplane_mode_on"))
        answer = environment.call("refuel_data", {"customer_id": "C1001", "line_id": "L1002", "gb_amount": 1.0})
        assert not answer.error
        bills.append(environment.call("get_bills_for_customer", {"customer_id": "C1001"}).text)
    assert bills[0] == bills[1]
    assert "Draft" in bills[0]


# ---- the first version


@needs_tau2
def test_logs_of_the_first_version_have_their_own_tools():
    environment = begun("tau-airline", "7")
    assert set(PSEUDO_TOOLS) <= set(environment.tools(0))
    assert "get_flight_status" not in environment.tools(0)
    calls = (
        Call("think", {"thought": "hm"}),
        Call("think", {"thought": "hm", "user": "x"}),
        Call("get_flight_status", {"flight_number": "HAT001", "date": "2024-05-16"}),
        Call("get_user_details", {"user_id": "nobody"}),
    )
    replayed = replay(environment, Trajectory("7", calls, Ending.COMPLETED, "tau-airline"))
    assert [verdict.error_class for verdict in replayed.verdicts] == [
        None,
        ErrorClass.SCHEMA,
        ErrorClass.SCHEMA,
        ErrorClass.DEPENDENCY,
    ]
    assert replayed.success is None


def agreement(trajectories):
    """Rollouts with an equal first error, calls with an equal status, all calls, and equal texts."""
    rollouts, status, calls, texts = 0, 0, 0, 0
    for trajectory in trajectories:
        replayed = replay(tau2(trajectory.benchmark), trajectory)
        recorded, now = check(trajectory), checked(trajectory, replayed.verdicts)
        rollouts += recorded.first_error(Rule.STRICT)[:2] == now.first_error(Rule.STRICT)[:2]
        outcomes = [(a.outcome, b.outcome) for a, b in zip(recorded.verdicts, now.verdicts, strict=True)]
        status += sum(a == b for a, b in outcomes)
        calls += len(outcomes)
        texts += sum(c.observation == o.text for c, o in zip(trajectory.calls, replayed.observations, strict=True))
    return rollouts, status, calls, texts


@needs_tau2
@pytest.mark.slow
def test_every_recorded_call_of_tau2_is_answered_to_the_letter(shared):
    files = sorted((shared / "data/tau2").glob("*.json"))
    assert agreement(t for file in files for t in read_file(file).trajectories) == (225, 1534, 1534, 1534)


@needs_tau2
@pytest.mark.slow
def test_every_call_of_a_log_of_the_first_version_has_the_status_it_had(shared):
    rollouts, status, calls, _ = agreement(read_file(shared / "data/tau/gpt-4o_airline.json").trajectories)
    assert (rollouts, status, calls) == (200, 1164, 1164)


@needs_tau2
@pytest.mark.slow
def test_retail_differs_where_the_versions_do(shared):
    files = sorted((shared / "data/tau/retail_four_methods").glob("*.json"))
    found = {file.stem: agreement(read_file(file).trajectories)[:3] for file in files}
    assert found == {
        "assertions": (98, 469, 472),
        "assertions_no_postconditions": (99, 630, 632),
        "tool_calling": (99, 789, 793),
        "tool_calling_preconditions": (99, 872, 876),
    }
