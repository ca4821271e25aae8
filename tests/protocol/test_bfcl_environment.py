"""BFCL's environment: on a benchmark made up for these tests, and on the real one where it is installed."""

import decimal
import importlib
import json
import random
import sys

import pytest

from survexec.protocol.catalogues import catalogue_for
from survexec.protocol.checker import checked
from survexec.protocol.environments import load, packages
from survexec.protocol.environments.base import Task
from survexec.protocol.environments.bfcl import BFCL, json_schema, tool_of
from survexec.protocol.readers import read_file
from survexec.protocol.replay import replay
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Outcome, Rule, Trajectory

INSTALLED = packages.importable("bfcl")
real = pytest.mark.skipif(not INSTALLED, reason="the package bfcl-eval is not installed")

# ---- a benchmark of one lamp, laid out as the real package is

LAMP = """
import decimal
from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.long_context import SHARED

class Lamp:
    def _load_scenario(self, scenario, long_context=False):
        self.colours = scenario.get("colours", ["red"])
        self.level = scenario.get("level", 0)
        self.shared = SHARED if long_context else {}
        self._random = object()

    def dim(self, level, colour="red", *, slow=False):
        if colour not in self.colours:
            return {"done": False, "error": f"no colour {colour}"}
        if level in (10, 11, 12):
            raise ValueError("too bright")
        self.level = level

    def look(self):
        return {"level": self.level, "precise": decimal.Decimal(1) / 3}

    def paint(self, colours):
        self.colours = colours
        self.colours.append("white")
        return self.colours

    def charge(self):
        self.shared["battery"]["percent"] = self.shared["battery"].get("percent", 0) + 1
        decimal.getcontext().prec = 3
        return self.shared

    def loop(self):
        self.shared["self"] = self.shared
        return "ok"

    def note(self, words=[]):
        words.append("dim")
        self.notes = words
        return words
"""
CHECKER = """
def execute_multi_turn_func_call(*_, **__):
    raise AssertionError("the executor that evaluates text")

def multi_turn_checker(decoded, truth, test_entry, test_category, model_name):
    for turn, steps in enumerate(decoded):
        for step in steps:
            _, model = execute_multi_turn_func_call(func_call_list=step, initial_config={}, involved_classes=[],
                model_name=model_name, test_entry_id="", long_context=False, is_evaL_run=True)
        _, other = execute_multi_turn_func_call(func_call_list=truth[turn], initial_config={}, involved_classes=[],
            model_name=model_name + "_ground_truth", test_entry_id="", long_context=False, is_evaL_run=True)
        if truth[turn] and not steps:
            return {"valid": False}
        if truth[turn] and vars(model["Lamp"])["level"] != vars(other["Lamp"])["level"]:
            return {"valid": False}
        if truth[turn] and model["Lamp"].shared != other["Lamp"].shared:
            return {"valid": False}
    return {"valid": True}
"""
BACKEND = """
CLASS_FILE_PATH_MAPPING = {"Lamp": "bfcl_eval.lamp"}
MULTI_TURN_FUNC_DOC_FILE_MAPPING = {"Lamp": "lamp.json"}
STATELESS_CLASSES = []
"""


def documented(name, required=(), **types):
    properties = {name: {"type": kind, "description": name} for name, kind in types.items()}
    return {"name": name, "parameters": {"type": "dict", "properties": properties, "required": list(required)}}


DOCS = [
    documented("dim", ["level"], colour="string", level="integer"),
    documented("look"),
    documented("paint", ["colours"], colours="array"),
    documented("charge"),
    documented("loop"),
    documented("note", words="array"),
]


def entry(number, category="base", *, turns=2, answers=(), **more):
    questions = [[{"role": "user", "content": f"turn {turn}"}] for turn in range(turns)]
    row = {"id": f"multi_turn_{category}_{number}", "question": questions, "involved_classes": ["Lamp"]}
    return row | {"initial_config": {"Lamp": {"level": 1}}} | more, list(answers)


ENTRIES = {
    "base": [
        entry(0, answers=[["dim(3)"], ["dim(level=5, colour='red')", "look()"]]),
        entry(1, answers=[["dim(level='low')"], []]),
    ],
    "miss_func": [
        entry(0, "miss_func", turns=3, answers=[["look()"], [], ["dim(2)"]], missed_function={"2": ["dim", "look"]}),
    ],
    "miss_param": [entry(0, "miss_param", turns=4, answers=[["look()"], [], ["dim(4)"], []])],
    "long_context": [entry(0, "long_context", answers=[["charge()"], ["look()"]])],
}


@pytest.fixture
def lamp(tmp_path, monkeypatch):
    """The environment on the made-up package, which takes the place of the real one for the time of a test."""
    package = tmp_path / "bfcl_eval"
    source = package / "eval_checker" / "multi_turn_eval" / "func_source_code"
    for folder in (package, package / "constants", *source.parents[:2], source):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (package / "lamp.py").write_text(LAMP)
    (package / "constants" / "executable_backend_config.py").write_text(BACKEND)
    (source / "long_context.py").write_text('SHARED = {"battery": {}}\nWORDS = ["a"]\n')
    (source.parent / "multi_turn_checker.py").write_text(CHECKER)
    data = package / "data"
    for folder in (data / "multi_turn_func_doc", data / "possible_answer"):
        folder.mkdir(parents=True)
    (data / "multi_turn_func_doc" / "lamp.json").write_text("\n".join(json.dumps(row) for row in DOCS))
    for category, rows in ENTRIES.items():
        name = f"BFCL_v4_multi_turn_{category}.json"
        (data / name).write_text("\n".join(json.dumps(row) for row, _ in rows))
        known = [{"id": row["id"], "ground_truth": answers} for row, answers in rows]
        (data / "possible_answer" / name).write_text("\n".join(json.dumps(row) for row in known))
    (tmp_path / "bfcl_eval-0.1.dist-info").mkdir()
    (tmp_path / "bfcl_eval-0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: bfcl-eval\nVersion: 0.1\n"
    )
    kept = forget()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield load("bfcl")
    forget()
    sys.modules.update(kept)


def forget():
    """Take the benchmark's modules out of those that are loaded."""
    names = [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]
    return {name: sys.modules.pop(name) for name in names}


def start(environment, task_id):
    task = environment.task(task_id)
    environment.reset(task)
    return task


def answer(environment, name, **arguments):
    return environment.call(name, arguments).text


def test_tasks_are_those_of_the_package_in_its_order(lamp):
    assert (lamp.benchmark, lamp.version) == ("bfcl", "bfcl-eval 0.1")
    assert [task_id.removeprefix("multi_turn_") for task_id in lamp.tasks()] == [
        "base_0",
        "base_1",
        "miss_func_0",
        "miss_param_0",
        "long_context_0",
    ]
    with pytest.raises(KeyError):
        lamp.task("multi_turn_base_9")


def test_a_task_has_its_turns_and_its_reference_with_arguments_by_name(lamp):
    task = lamp.task("multi_turn_base_0")
    assert (task.stratum, task.turns) == ("base", ("turn 0", "turn 1"))
    assert task.reference == (
        Call("dim", {"level": 3}),
        Call("dim", {"level": 5, "colour": "red"}, turn=1),
        Call("look", {}, turn=1),
    )
    assert (task.missing, task.withheld) == (frozenset(), {})


def test_a_miss_param_task_misses_something_in_its_first_silent_turn(lamp):
    assert lamp.task("multi_turn_miss_param_0").missing == {1}


def test_a_held_back_tool_is_exposed_from_its_turn_on_and_where_the_reference_calls_it(lamp):
    task = start(lamp, "multi_turn_miss_func_0")
    assert task.withheld == {0: {"dim"}, 1: {"dim", "look"}}
    assert [sorted({"dim", "look"} & set(lamp.tools(turn))) for turn in range(3)] == [["look"], [], ["dim", "look"]]


def test_positional_arguments_follow_the_signature_not_the_documentation(lamp):
    start(lamp, "multi_turn_base_0")
    tool = lamp.tools(0)["dim"]
    assert tool.positional[:2] == ("level", "colour")
    assert list(tool.schema["properties"]) == ["colour", "level"]
    assert tool.schema["required"] == ["level"]


def test_a_type_that_the_reference_does_not_keep_to_is_let_through_in_that_task_only(lamp):
    start(lamp, "multi_turn_base_1")
    assert lamp.tools(0)["dim"].schema["properties"]["level"] == {}
    start(lamp, "multi_turn_base_0")
    assert lamp.tools(0)["dim"].schema["properties"]["level"]["type"] == "integer"


def test_types_become_json_schema_however_deep_they_are():
    nested = {
        "type": "dict",
        "properties": {
            "pair": {"type": "tuple", "items": {"type": "float"}},
            "any": {"type": "any"},
            "rows": {"type": "array", "items": {"type": "dict", "properties": {"on": {"type": "boolean"}}}},
            "kind": {"type": "string", "enum": ["a", "b"], "description": "A kind.", "default": "a"},
        },
        "required": ["pair"],
    }
    rows = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": []}
    assert json_schema(nested) == {
        "type": "object",
        "properties": {
            "pair": {"type": "array", "items": {"type": "number"}},
            "any": {},
            "rows": {"type": "array", "items": rows},
            "kind": {"type": "string", "enum": ["a", "b"], "description": "A kind.", "default": "a"},
        },
        "required": ["pair"],
    }


def test_a_tool_takes_no_other_parameters_than_documented():
    tool = tool_of(documented("f", ["x"], x="float"), lambda self, x=None: x)
    assert tool.schema["additionalProperties"] is False
    assert tool.positional == ("x",)


def test_answers_are_written_as_the_executor_writes_them(lamp):
    start(lamp, "multi_turn_base_0")
    assert answer(lamp, "dim", level=4) == "None"
    assert answer(lamp, "dim", level=4, colour="blue") == '{"done": false, "error": "no colour blue"}'
    assert answer(lamp, "look") == "{'level': 4, 'precise': Decimal('0.3333333333333333333333333333')}"
    assert answer(lamp, "paint", colours=["blue"]) == "['blue', 'white']"
    refused = lamp.call("dim", {"level": 12, "colour": "blue"})
    assert (refused.text, refused.error) == ("Error during execution: too bright", True)
    assert lamp.call("dim", {"light": 1}).text.endswith("unexpected keyword argument 'light'")
    with pytest.raises(KeyError):
        lamp.user_call("dim", {})


def test_a_call_changes_nothing_of_what_the_log_holds(lamp):
    start(lamp, "multi_turn_base_0")
    given = {"colours": ["blue"]}
    lamp.call("paint", given)
    assert given == {"colours": ["blue"]}


def test_a_reset_takes_back_shared_objects_and_precision(lamp):
    for _ in range(2):
        start(lamp, "multi_turn_long_context_0")
        assert answer(lamp, "charge") == '{"battery": {"percent": 1}}'
        assert decimal.getcontext().prec == 3
    start(lamp, "multi_turn_base_0")
    assert decimal.getcontext().prec == 28
    shared = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.func_source_code.long_context")
    assert shared.SHARED == {"battery": {}}


def test_a_reset_takes_back_default_values_that_calls_have_filled(lamp):
    for _ in range(2):
        start(lamp, "multi_turn_base_0")
        assert answer(lamp, "note") == "['dim']"
        assert answer(lamp, "note") == "['dim', 'dim']"


def test_a_snapshot_tells_whether_something_changed(lamp):
    start(lamp, "multi_turn_base_0")
    first = lamp.snapshot()
    answer(lamp, "look")
    assert lamp.snapshot() == first
    answer(lamp, "dim", level=7)
    assert lamp.snapshot() != first
    answer(lamp, "dim", level=1)
    assert lamp.snapshot() == first


def made(environment, task_id, *calls):
    """Make calls and ask for success, as replay does."""
    task = start(environment, task_id)
    answers = [environment.call(call.tool, call.arguments).text for call in calls]
    return environment.succeeded(calls, answers, len(task.turns))


FIRST, SECOND = Call("dim", {"level": 3}), Call("dim", {"level": 5}, turn=1)


def test_success_is_what_the_benchmarks_checker_says(lamp):
    assert made(lamp, "multi_turn_base_0", FIRST, SECOND) is True
    assert made(lamp, "multi_turn_base_0", FIRST, Call("look", {}, turn=1)) is False
    assert made(lamp, "multi_turn_base_0", FIRST) is False
    assert made(lamp, "multi_turn_base_0") is False


def test_a_rollout_that_was_cut_before_its_last_turn_failed(lamp):
    start(lamp, "multi_turn_base_0")
    assert lamp.succeeded((), (), 1) is False


def test_success_is_unknown_where_the_calls_do_not_answer_as_before(lamp):
    start(lamp, "multi_turn_base_0")
    assert lamp.succeeded((FIRST, SECOND), ("None", "another"), 2) is None
    assert lamp.succeeded((FIRST, SECOND), ("None", "None"), 2) is True


def test_the_agent_and_the_reference_share_what_they_share_in_the_benchmark(lamp):
    charge = Call("charge", {})
    assert made(lamp, "multi_turn_long_context_0", charge, Call("look", {}, turn=1)) is True
    assert made(lamp, "multi_turn_long_context_0", charge, charge, Call("look", {}, turn=1)) is True


def test_a_replay_of_the_reference_is_clean(lamp):
    for task_id in lamp.tasks():
        task = lamp.task(task_id)
        rollout = Trajectory(task_id, task.reference, Ending.COMPLETED, benchmark="bfcl", turns=len(task.turns))
        found = replay(lamp, rollout)
        assert found.fault is None
        assert {verdict.outcome for verdict in found.verdicts} == {Outcome.OK}
        assert found.success is True


# ---- the real benchmark


@pytest.fixture(scope="module")
def bfcl():
    return BFCL()


def reference_of(task, cut=None):
    calls = task.reference[:cut]
    return Trajectory(task.task_id, calls, Ending.COMPLETED, benchmark="bfcl", turns=len(task.turns))


@real
def test_mentions_of_one_rollout_are_not_in_the_next(bfcl):
    task = next(task for task in map(bfcl.task, bfcl.tasks()) if "TwitterAPI" in task.data["involved_classes"])
    for _ in range(2):
        bfcl.reset(task)
        bfcl._world[0]["TwitterAPI"].authenticated = True
        tweet = json.loads(answer(bfcl, "post_tweet", content="hello"))
        assert tweet["mentions"] == []
        answer(bfcl, "mention", tweet_id=tweet["id"], mentioned_usernames=["ann"])


def official(bfcl, task, name):
    """Answers of the benchmark's own executor to its own text of the reference."""
    utils = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")
    bfcl.reset(task)  # its executor puts nothing back
    row, answers = bfcl._entries[task.task_id]
    texts = [text for turn in answers for text in turn]
    said, _ = utils.execute_multi_turn_func_call(
        texts, row["initial_config"], row["involved_classes"], name, task.task_id, task.stratum == "long_context"
    )
    return said


def check_reference(bfcl, task_ids, name):
    calls = 0
    for task_id in task_ids:
        task = bfcl.task(task_id)
        found = replay(bfcl, reference_of(task))
        judged = checked(reference_of(task), found.verdicts)
        assert (found.success, judged.first_error(Rule.STRICT)[2]) == (True, 0), task_id
        assert [seen.text for seen in found.observations] == official(bfcl, task, name), task_id
        assert replay(bfcl, reference_of(task, -1)).success is False, task_id
        calls += judged.length
    return calls


@real
def test_the_reference_of_every_tenth_task_is_clean_accepted_and_refused_without_its_last_call(bfcl):
    assert len(bfcl.tasks()) == 800
    assert check_reference(bfcl, bfcl.tasks()[::10], "tenth") > 400


@real
@pytest.mark.slow
def test_the_reference_of_every_task_is_clean_accepted_and_refused_without_its_last_call(bfcl):
    assert check_reference(bfcl, bfcl.tasks(), "every") == 4625


@real
def test_a_held_back_tool_of_a_real_task_appears_in_its_turn(bfcl):
    start(bfcl, "multi_turn_miss_func_0")
    assert ["sort" in bfcl.tools(turn) for turn in range(5)] == [False, False, False, True, True]
    assert "tail" in (start(bfcl, "multi_turn_miss_func_49") and bfcl.tools(1))


@real
def test_insurance_is_bound_by_the_signature(bfcl):
    task = next(task for task in map(bfcl.task, bfcl.tasks()) if "TravelAPI" in task.data["involved_classes"])
    bfcl.reset(task)
    tool = bfcl.tools(0)["purchase_insurance"]
    assert tool.positional == ("access_token", "insurance_type", "booking_id", "insurance_cost", "card_id")
    assert tuple(tool.schema["properties"]) != tool.positional


@real
def test_the_names_of_tools_inside_text_stay_as_they_are(bfcl):
    start(bfcl, "multi_turn_base_0")
    assert answer(bfcl, "echo", content="sort(x) and ls()") == '{"terminal_output": "sort(x) and ls()"}'


@real
def test_a_card_that_long_context_tasks_share_is_as_new_in_the_next_rollout(bfcl):
    task = next(t for t in map(bfcl.task, bfcl.tasks()[600:]) if "TravelAPI" in t.data["involved_classes"])
    balances = []
    for _ in range(2):
        bfcl.reset(task)
        cards = json.loads(answer(bfcl, "get_all_credit_cards"))["credit_card_list"]
        card = next(card for card in reversed(cards))
        balances.append(cards[card]["balance"])
        bfcl._world[0]["TravelAPI"].credit_card_list[card]["balance"] -= 1
    assert balances[0] == balances[1]


@real
def test_a_directory_inside_itself_stops_neither_the_snapshot_nor_the_success_check(bfcl):
    into_itself = [Call("mkdir", {"dir_name": "a"}), Call("cp", {"source": "a", "destination": "a"})]
    task = bfcl.task("multi_turn_base_0")
    rollout = Trajectory(task.task_id, (*into_itself, Call("du", {})), Ending.COMPLETED, turns=len(task.turns))
    found = replay(bfcl, rollout)
    assert (found.success, found.verdicts[2].error_class) == (False, ErrorClass.STATE_CONSISTENCY)
    assert found.changed == (True, True, False)

    def from_below(levels):
        return from_below(levels - 1) if levels else replay(bfcl, rollout)

    assert [from_below(levels) for levels in range(1, 8)] == [found] * 7  # Python's words depend on the level


AIREV = {  # category -> rollouts without an error, first errors, and successes by the benchmark's own evaluation
    "base": (42, {"schema": 73, "dependency": 72, "precondition": 10, "state-consistency": 3}, {50, 133, 182}),
}


@real
def test_a_real_file_without_answers_is_replayed(shared, bfcl):
    reading = read_file(shared / "data/bfcl/AIREV-0.8B_BFCL_v4_multi_turn_base_result.json")
    found = [(rollout, replay(bfcl, rollout)) for rollout in reading.trajectories]
    assert {replayed.fault for _, replayed in found} == {None}
    firsts = [checked(rollout, replayed.verdicts).first_error(Rule.STRICT)[1] for rollout, replayed in found]
    clean, classes, solved = AIREV["base"]
    assert firsts.count(None) == clean
    assert {name: firsts.count(name) for name in classes} == classes
    assert sum(classes.values()) + clean == 200
    assert {int(rollout.task_id.rpartition("_")[2]) for rollout, replayed in found if replayed.success} == solved


VALUES = [None, True, 0, -1, 2, 300, 9.5, -0.0, 1e308, "", "..", "/", "a", "é\0", "x" * 3000, "rm('a')", "START"]
VALUES += ["2024-01-01", "economy", [], [1], ["a"], [[[]]], {}, {"a": [1, {"b": None}]}]
HUGE = [10**7, 10**30, -(10**30), 1e300]  # as an exponent or a precision they make a call stall
OF_TYPE = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def fuzzed(bfcl, owner, size, each=50):
    """Rollouts of random calls of one class, valid or not; same owner, same rollouts."""
    rng = random.Random(owner)  # noqa: S311
    ids = [task_id for task_id, (row, _) in bfcl._entries.items() if owner in row["involved_classes"]]
    tools = list(bfcl._class(owner)[1].values())

    def value(kind):
        fitting = [value for value in VALUES if type(value) is OF_TYPE.get(kind)]
        if rng.random() < 0.002:
            return rng.choice(HUGE)
        return rng.choice(fitting if fitting and rng.random() < 0.6 else VALUES)

    def call():
        tool = rng.choice(tools)
        given = {name: value(part.get("type")) for name, part in tool.schema["properties"].items()}
        kept = {name: value for name, value in given.items() if rng.random() < 0.95}
        return Call(tool.name, kept | ({"extra": 1} if rng.random() < 0.03 else {}))

    for _ in range(size // each):
        yield Trajectory(rng.choice(ids), tuple(call() for _ in range(each)), Ending.COMPLETED, benchmark="bfcl")


OWNERS = [
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
]


def check_fuzzed(bfcl, owners, each):
    rollouts = [rollout for owner in owners for rollout in fuzzed(bfcl, owner, each)]
    size = each * len(owners)
    found = replay_all(rollouts, "bfcl", jobs=2, time_limit=2.0, progress=False)
    assert sum(len(rollout.calls) for rollout in rollouts) == size
    assert {replayed.fault for replayed in found} == {None}
    verdicts = [verdict for replayed in found for verdict in replayed.verdicts]
    assert len(verdicts) == size
    assert {verdict.outcome for verdict in verdicts} == {Outcome.OK, Outcome.INVALID}
    unknown = [verdict.message for verdict in verdicts if verdict.error_class is ErrorClass.UNCLASSIFIED]
    assert len(unknown) < 0.001 * size, unknown[:5]


@real
def test_random_calls_harm_nobody(bfcl):
    check_fuzzed(bfcl, OWNERS, 50)


@real
@pytest.mark.slow
@pytest.mark.parametrize("owner", OWNERS)
def test_ten_thousand_random_calls_of_a_class_harm_nobody(bfcl, owner):
    check_fuzzed(bfcl, [owner], 10_000)


@real
def test_the_catalogue_names_every_tool_of_the_benchmark_once(bfcl):
    catalogue = catalogue_for("bfcl")
    tools = {name for owner in OWNERS for name in bfcl._class(owner)[1]}
    assert catalogue.lookup_tools | catalogue.other_tools == tools
    assert not catalogue.lookup_tools & catalogue.other_tools
    assert {tool for entry in catalogue.entries for tool in entry.tools} <= tools


@real
def test_tools_that_only_read_leave_the_state_alone(bfcl):
    lookup = catalogue_for("bfcl").lookup_tools
    for task_id in bfcl.tasks()[::8]:
        task = bfcl.task(task_id)
        found = replay(bfcl, reference_of(task))
        for call, changed in zip(task.reference, found.changed, strict=True):
            assert not (changed and call.tool in lookup), call


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(packages, "path_of", lambda name: None)
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Exception, match="survexec env install bfcl"):
        BFCL()
    assert Task("x").turns == ()
