"""ToolSandbox's run folders, and what its environment says when it refuses."""

import json
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import survexec as sx
from survexec.protocol.catalogues import catalogue_for, normalise
from survexec.protocol.checker import check
from survexec.protocol.readers import read_file
from survexec.protocol.readers.toolsandbox import stratum_of
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Rule

CATALOGUE = catalogue_for("toolsandbox")
NOTHING = {"sender": None, "recipient": None, "content": None, "visible_to": None}
NO_DATA = "polars.exceptions.NoDataError: No db entry matching predicate=<Expr ['x'] at 0x7F36B64CA550> found"

# ---- a run folder, message by message


def message(sender, recipient, content, **more):
    """A row, with the roles by their first letters."""
    names = {"A": "AGENT", "U": "USER", "E": "EXECUTION_ENVIRONMENT", "S": "SYSTEM"}
    return {
        "sender": names[sender],
        "recipient": names[recipient],
        "content": content,
        "conversation_active": True,
    } | more


def user(text, **more):
    return message("U", "A", text, **more)


def agent(text, **more):
    return message("A", "U", text, **more)


def call(name, arguments, call_id="call_1", shown=None, by="A"):
    code = f"{call_id}_parameters = {arguments!r}\n{call_id}_response = {name}(**{call_id}_parameters)\n"
    return message(
        by,
        "E",
        code + f"print(repr({call_id}_response))",
        openai_tool_call_id=call_id,
        openai_function_name=shown or name,
    )


def answer(text, call_id="call_1", exception=False, to="A", **more):
    raised = text if exception else None
    return message("E", to, text, openai_tool_call_id=call_id, tool_call_exception=raised) | more


def refusal(text, call_id="call_1"):
    return answer(text, call_id, exception=True)


END = (call("end_conversation", {}, "call_end", by="U"), answer("None", "call_end", to="U", conversation_active=False))


def scenario(name="wifi_off", similarity=1.0, categories=("SINGLE_TOOL_CALL",), traceback=None, exception_type=None):
    return {
        "name": name,
        "categories": list(categories),
        "traceback": traceback,
        "exception_type": exception_type,
        "similarity": similarity,
        "turn_count": 5,
    }


@pytest.fixture
def run(tmp_path):
    """Write a run: scenarios of the summary, and the messages of those that have a trajectory."""

    def written(scenarios, logs, folder="run", conversations=()):
        place = tmp_path / folder
        for name, messages in logs.items():
            inside = place / "trajectories" / name
            inside.mkdir(parents=True)
            rows = [{"sandbox_message_index": i} | row for i, row in enumerate(messages)]
            (inside / "execution_context.json").write_text(json.dumps({"_dbs": {"SANDBOX": rows, "SETTING": []}}))
            if name in conversations:
                (inside / "conversation.json").write_text("[]")
        if scenarios is not None:
            summary = {"per_scenario_results": scenarios, "category_aggregated_results": {}, "git_sha": "165848b"}
            (place / "result_summary.json").write_text(json.dumps(summary))
        return place

    return written


@pytest.fixture
def read(run):
    """The one trajectory of a run of one scenario."""

    def read(*messages, **more):
        [trajectory] = read_file(run([scenario(**more)], {"wifi_off": messages})).trajectories
        return trajectory

    return read


# ---- messages


def test_calls_are_read_with_what_came_of_them(read):
    found = read(
        user("Turn wifi off"), call("set_wifi_status", {"on": "off", "why": "it's late"}), refusal("TypeError: bad"),
        call("set_wifi_status", {"on": False}, "call_2"), answer("None", "call_2"), agent("Done"), *END,
    )  # fmt: skip
    assert found.calls == (
        Call("set_wifi_status", {"on": "off", "why": "it's late"}, "TypeError: bad", True),
        Call("set_wifi_status", {"on": False}, "None", False),
    )
    assert (found.benchmark, found.task_id, found.ending, found.reward) == (
        "toolsandbox",
        "wifi_off",
        Ending.COMPLETED,
        1,
    )


def test_examples_for_the_simulated_user_and_empty_rows_are_left_out(read):
    example = {"visible_to": ["USER"]}
    found = read(
        NOTHING, message("S", "E", "import json"), message("S", "A", "Be brief"), user("Send a message", **example),
        agent("To whom?", **example), message("U", "E", "end_conversation()", **example), user("Is wifi on?"), NOTHING,
        call("get_wifi_status", {}) | {"visible_to": ["AGENT", "EXECUTION_ENVIRONMENT"]}, answer("True"), *END,
    )  # fmt: skip
    assert [made.tool for made in found.calls] == ["get_wifi_status"]
    assert found.said == ((0, "Is wifi on?"),)
    assert found.turns == 1


def test_the_tool_has_the_name_that_the_agent_saw(read):
    found = read(user("Hi"), call("modify_contact", {"person_id": "p"}, shown="contact_1"), answer("None"))
    assert found.calls[0].tool == "contact_1"


def test_answers_of_parallel_calls_find_their_calls_by_id_in_any_order(read):
    found = read(
        user("Hi"), call("get_wifi_status", {}, "a"), call("get_current_location", {}, "b"),
        refusal("PermissionError: Location service is not enabled.", "b"), answer("True", "a"),
    )  # fmt: skip
    assert [(made.tool, made.error) for made in found.calls] == [
        ("get_wifi_status", False),
        ("get_current_location", True),
    ]


def test_ids_that_come_again_in_every_message_do_not_mix_calls(read):
    found = read(user("Hi"), *(part for n in range(3) for part in (call("f", {"n": n}), answer(str(n)))))
    assert [(made.arguments["n"], made.observation) for made in found.calls] == [(0, "0"), (1, "1"), (2, "2")]


def test_answers_without_ids_go_to_the_calls_of_the_same_message_in_order(read):
    bare = {"openai_tool_call_id": None}
    found = read(
        user("Hi"), call("f", {}) | bare, call("g", {}) | bare, answer("1") | bare, answer("2") | bare,
        call("h", {}) | bare, answer("3") | bare,
    )  # fmt: skip
    assert [made.observation for made in found.calls] == ["1", "2", "3"]


def test_turns_are_counted_and_what_the_user_said_stands_with_the_calls_before_it(read):
    found = read(
        user("Hi"), call("f", {}), answer("1"), agent("And now?"), user("Go on"), call("g", {}), answer("2"),
        agent("Done"), *END,
    )  # fmt: skip
    assert [made.turn for made in found.calls] == [0, 1]
    assert found.said == ((0, "Hi"), (1, "Go on"))
    assert found.turns == 2
    assert found.user_calls == ((2, Call("end_conversation", {}, "None", False, 1)),)


@pytest.mark.parametrize(
    ("code", "tool", "arguments"),
    [
        ("get_wifi_status()", "get_wifi_status", {}),
        ("search_contacts(name='Ann')", "search_contacts", {"name": "Ann"}),
        ("x = 1\ny = 2", "unknown", "x = 1\ny = 2"),
        ("if True:", "unknown", "if True:"),
        ("c_parameters = {'on': nan}\nc_response = f(**c_parameters)", "f", "{'on': nan}"),
        ("c_parameters = __import__('os')\nc_response = f(**c_parameters)", "f", "__import__('os')"),
        ("", "unknown", None),
    ],
)
def test_code_of_another_form_is_read_by_its_syntax_or_kept_as_text(read, code, tool, arguments):
    found = read(user("Hi"), message("A", "E", code), answer("None") | {"openai_tool_call_id": None})
    assert [(made.tool, made.arguments) for made in found.calls] == [(tool, arguments)]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_arguments_come_back_as_they_were_written(arguments):
    from survexec.protocol.readers.toolsandbox import _Message, _read

    written = call("f", arguments)
    fields = {name: written[name] for name in ("content", "openai_function_name")}
    assert _read(_Message(**fields)) == ("f", arguments)


def test_addresses_in_memory_do_not_tell_refusals_apart(read):
    found = read(user("Hi"), call("remove_contact", {"person_id": "p"}), refusal(NO_DATA))
    assert "at 0x...> found" in found.calls[0].observation
    assert check(found).first_error(Rule.STRICT) == (1, ErrorClass.DEPENDENCY, 1)


@pytest.mark.parametrize(
    "text",
    [
        "PermissionError: Please provide 'RAPID_API_KEY' in environment variable. You can find your API key by ...",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='maps', port=443): "
        + "Max retries exceeded " * 30,
    ],
)
def test_a_call_that_never_reached_the_service_behind_its_tool_is_no_call_of_the_agent(run, text):
    messages = (
        user("Hi"), call("search_stock", {"query": "x"}), refusal(text), user("Again"),
        call("get_wifi_status", {}, "b"), answer("True", "b"), *END,
    )  # fmt: skip
    reading = read_file(run([scenario()], {"wifi_off": messages}))
    [found] = reading.trajectories
    judged = check(found)
    assert [verdict.outcome for verdict in judged.verdicts] == ["infrastructure", "ok"]
    assert (judged.positions, judged.length) == ((None, 1), 1)


# ---- how a scenario ends


def traced(*frames, error):
    lines = [f'  File "tool_sandbox/{file}.py", line 9, in {function}\n    {code}' for file, function, code in frames]
    return "Traceback (most recent call last):\n" + "\n".join(lines) + f"\n{error}\n"


HALLUCINATED = {
    "plain": (
        "KeyError",
        traced(
            ("roles/openai_api_agent", "respond", "content=openai_tool_call_to_python_code("),
            ("common/message_conversion", "openai_tool_call_to_python_code", "raise KeyError("),
            error="KeyError: \"Agent tool call agent_facing_tool_name='call_taxi' is not a known allowed tool. Options "
            "are available_tool_names={'get_wifi_status', 'end'}\"",
        ).replace("raise KeyError(", 'raise KeyError(f"Agent tool call {agent_facing_tool_name=} is'),
    ),
    "scrambled": (
        "KeyError",
        traced(
            ("roles/openai_api_agent", "respond", "current_context.get_execution_facing_tool_name("),
            ("common/execution_context", "get_execution_facing_tool_name", "self._scrambled_to_actual_tool_name["),
            error="KeyError: 'call_taxi'",
        ),
    ),
}


@pytest.mark.parametrize("kind", HALLUCINATED)
def test_a_tool_that_is_not_exposed_is_an_invalid_call_at_the_end(read, kind):
    error, traceback = HALLUCINATED[kind]
    found = read(
        user("Hi"), call("get_wifi_status", {}), answer("True"), similarity=0, exception_type=error, traceback=traceback
    )
    assert [made.tool for made in found.calls] == ["get_wifi_status", "call_taxi"]
    assert check(found).first_error(Rule.STRICT) == (2, ErrorClass.SCHEMA, 1)
    assert (found.ending, found.reward) == (Ending.TRUNCATED, 0)


def test_arguments_that_are_no_json_are_an_invalid_call_at_the_end(read):
    error = "json.decoder.JSONDecodeError: Expecting value: line 1 column 9 (char 8)"
    decoding = (
        "common/message_conversion",
        "openai_tool_call_to_python_code",
        "json.loads(tool_call.function.arguments)",
    )
    traceback = traced(decoding, ("json/decoder", "raw_decode", "raise JSONDecodeError("), error=error)
    found = read(user("Hi"), similarity=0, exception_type="JSONDecodeError", traceback=traceback)
    assert check(found).first_error(Rule.STRICT) == (1, ErrorClass.SCHEMA, 1)


@pytest.mark.parametrize(
    ("error", "last"),
    [
        ("RateLimitError", "openai.RateLimitError: Error code: 429"),
        ("KeyError", "KeyError: 'choices'"),
        ("JSONDecodeError", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_another_exception_is_a_crash_and_no_verdict_on_the_agent(run, error, last):
    traceback = traced(("roles/openai_api_agent", "model_inference", "return self.openai_client.chat("), error=last)
    rows = [scenario(similarity=0, exception_type=error, traceback=traceback), scenario("get_wifi")]
    logs = {"wifi_off": [user("Hi"), call("f", {})], "get_wifi": [user("Hi"), *END]}
    rollouts = sx.read(run(rows, logs))
    assert list(rollouts.frame["task_id"]) == ["get_wifi"]
    crashed = rollouts.ledger[rollouts.ledger["status"] == "crashed"]
    assert list(crashed["reason"]) == [last]


def test_a_conversation_that_is_still_active_was_cut_by_the_limit_of_messages(read):
    found = read(user("Hi"), call("f", {}), answer("1"))
    assert (found.ending, found.reason) == (Ending.TRUNCATED, "the limit of messages")


def test_without_a_summary_a_missing_conversation_tells_the_crash(run):
    messages = [user("Hi"), call("f", {}), answer("1"), *END]
    place = run(None, {"wifi_off": messages, "get_wifi": messages}, conversations=["get_wifi"])
    reading = read_file(place)
    assert {found.task_id: found.ending for found in reading.trajectories} == {
        "wifi_off": Ending.CRASHED,
        "get_wifi": Ending.COMPLETED,
    }
    assert [found.reward for found in reading.trajectories] == [None, None]
    assert "success is not known" in reading.remarks[0]


# ---- runs


def test_success_is_the_similarity_from_a_stated_threshold_on(run):
    rows = [scenario("a", 1.0), scenario("b", 0.8), scenario("c", 0.0)]
    place = run(rows, {name: [user("Hi"), *END] for name in "abc"})
    assert list(sx.read(place).frame["success"]) == [True, False, False]
    assert list(sx.read(place, success_threshold=0.8).frame["success"]) == [True, True, False]
    assert sx.read(place).ledger["reason"].str.contains("graded similarity").any()


def test_a_scenario_without_a_trajectory_is_told_of_and_no_path_in_the_log_is_opened(run, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "execution_context.json").write_text('{"_dbs": {"SANDBOX": []}}')
    rows = [scenario("gone"), scenario("../../outside"), scenario("wifi_off")]
    reading = read_file(run(rows, {"wifi_off": [user("Hi"), *END]}))
    assert [found.task_id for found in reading.trajectories] == ["wifi_off"]
    assert "2 scenarios of the summary have no trajectory and are left out" in reading.remarks
    assert not reading.faults


def test_a_trajectory_that_cannot_be_read_does_not_take_the_others_along(run):
    place = run([scenario("a"), scenario("b")], {name: [user("Hi"), *END] for name in "ab"})
    (place / "trajectories" / "a" / "execution_context.json").write_text('{"_dbs": {"SANDBOX": [')
    reading = read_file(place)
    assert [(found.task_id, found.row) for found in reading.trajectories] == [("b", 2)]
    assert "cut off" in reading.faults[0].reason


def test_a_row_of_the_summary_that_is_none_is_set_aside(run):
    reading = read_file(run([{"similarity": 1}, scenario("a")], {"a": [user("Hi"), *END]}))
    assert [found.task_id for found in reading.trajectories] == ["a"]
    assert reading.faults[0].where == "row 1"


def test_a_trajectory_that_the_summary_does_not_name_is_read_too(run):
    place = run([scenario("a")], {name: [user("Hi"), *END] for name in "acb"}, conversations="abc")
    assert [(found.task_id, found.row) for found in read_file(place).trajectories] == [("a", 1), ("b", 2), ("c", 3)]


def test_a_run_is_known_by_its_folder_and_by_its_summary_whatever_its_name(run):
    place = run([scenario("a", 0.5)], {"a": [user("Hi"), *END]})
    renamed = place / "summary of May.json"
    renamed.write_bytes((place / "result_summary.json").read_bytes())
    for path in (place, place / "result_summary.json", renamed):
        reading = read_file(path)
        assert reading.format == "toolsandbox"
        assert [found.reward for found in reading.trajectories] == [0.5]


def test_an_object_of_another_format_is_told_from_a_run(tmp_path):
    (tmp_path / "result_summary.json").write_text('{"results": []}')
    assert "per_scenario_results" in read_file(tmp_path).faults[0].reason


def test_several_runs_are_methods_on_the_same_tasks(run):
    for method in ("one", "two"):
        run([scenario("a"), scenario("b")], {name: [user("Hi"), *END] for name in "ab"}, folder=f"agent_{method}")
    place = run([scenario("c")], {"c": [user("Hi"), *END]}).parent
    rollouts = sx.read(place / "agent_*", from_path="agent_{method}")
    assert sorted(zip(rollouts.frame["method"], rollouts.frame["task_id"], strict=True)) == [
        ("one", "a"), ("one", "b"), ("two", "a"), ("two", "b")
    ]  # fmt: skip


@given(st.permutations(["SINGLE_USER_TURN", "CANONICALIZATION", "ALL_TOOLS_AVAILABLE", "ARG_TYPE_SCRAMBLED"]))
def test_the_stratum_is_that_of_the_task_in_whatever_order_and_variant(labels):
    assert stratum_of(labels) == stratum_of([*labels, "SINGLE_USER_TURN"]) == "CANONICALIZATION+SINGLE_USER_TURN"
    assert stratum_of(["TEN_DISTRACTION_TOOLS"]) is None


# ---- what the environment says

EVERY_REFUSAL = {
    "schema": [
        "KeyError: \"Agent tool call agent_facing_tool_name='x' is not a known allowed tool. Options are "
        "available_tool_names={'a'}\"",
        "NameError: name 'x' is not defined",
        'Traceback (most recent call last):\n  File "<input>", line 1\n    a b\n      ^\nSyntaxError: invalid syntax\n',
        "Traceback (most recent call last):\nOverflowError: too large\n",
        "Traceback (most recent call last):\nValueError: source code string cannot contain null bytes\n",
        "Error: The given code was incomplete and could not be executed: 'if True:'",
        "TypeError: missing a required argument: 'x'",
        "TypeError: got an unexpected keyword argument 'x'",
        "TypeError: too many positional arguments",
        "TypeError: multiple values for argument 'x'",
        "TypeError: Parameter 'name' is of type '<class 'bool'>', but expected 'typing.Union[str, NotGiven]'.",
        "ValueError: Parameter 'latitude' is smaller than its valid range minimum of -90.0.",
        "ValueError: Parameter 'latitude' is larger than its valid range maximum of 90.0.",
        "ValueError: XYZ is not a known 3 letter ISO 4217 currency code",
        "phonenumbers.phonenumberutil.NumberParseException: (0) Missing or invalid default region.",
        "phonenumbers.phonenumberutil.NumberParseException: (1) The string supplied did not seem to be a phone number.",
        "phonenumbers.phonenumberutil.NumberParseException: (2) Phone number too short after IDD",
        "phonenumbers.phonenumberutil.NumberParseException: (3) The string supplied is too short to be a phone number.",
        "phonenumbers.phonenumberutil.NumberParseException: (4) The string supplied is too long to be a phone number.",
        "ValueError: No search criteria are given. At least one search criteria should be provided among ('a', 'b')",
        "ValueError: No update information given. At least one new field should be provided among [content] in order "
        "to modify reminder",
        "KeyError: 'airplane is not a boolean column'",
        "ValueError: Cannot convert from 'a' to 'b'",
        "pint.errors.DimensionalityError: Cannot convert from 'meter' ([length]) to 'second' ([time])",
        "pint.errors.UndefinedUnitError: 'x' is not defined in the unit registry",
        "ValueError: month must be in 1..12",
        "ValueError: day is out of range for month",
        "ValueError: year 0 is out of range",
        "OverflowError: date value out of range",
        "ValueError: Latitude and Longitude must be either both provided, or both not provided",
        "ValueError: Days must be positive integer, found days=-1.",
    ],
    "dependency": [
        "polars.exceptions.NoDataError: No db entry matching person_id='x' found",
        "polars.exceptions.NoDataError: No db entry matching reminder_id='x' found",
        NO_DATA,
    ],
    "precondition": [
        "polars.exceptions.DuplicateError: Self entry already exists. Cannot add another one.",
        "ConnectionError: Cellular service is not enabled",
        "polars.exceptions.DuplicateError: 1 and only 1 self entry should exist in contacts database, instead found 2",
        "PermissionError: Location service cannot be turned on in low battery mode",
        "PermissionError: Cellular service cannot be turned on in low battery mode",
        "PermissionError: Wifi cannot be turned on in low battery mode",
        "ValueError: low_battery_mode already enabled",
        "ValueError: location_service already disabled",
        "PermissionError: Location service is not enabled.",
        "ConnectionError: Wifi is not enabled",
        "ValueError: Conversation already ended",
    ],
    "state-consistency": [
        "polars.exceptions.DuplicateError: More than 1 entry with reminder_id='x' found",
        "RuntimeError: Conversion failed",
        "PermissionError: Please provide 'RAPID_API_KEY' in environment variable. You can find your API key by ...",
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://maps",
    ],
}


@pytest.mark.parametrize(
    ("expected", "text"), [(name, text) for name, texts in EVERY_REFUSAL.items() for text in texts]
)
def test_every_refusal_of_the_environment_has_its_class(expected, text):
    assert CATALOGUE.match("any_tool", text) == (expected, False)


@pytest.mark.parametrize("entry", CATALOGUE.entries, ids=lambda entry: entry.pattern.pattern)
def test_every_example_meets_its_own_entry_first(entry):
    tool = min(entry.tools, default="any_tool")
    assert next(other for other in CATALOGUE.entries if other.meets(tool, normalise(entry.example))) is entry


@pytest.mark.parametrize("text", ["ValueError: the moon is in the wrong phase", "MemoryError", "AssertionError: x"])
def test_what_no_entry_knows_is_unclassified(text):
    assert CATALOGUE.match("search_contacts", text) == (ErrorClass.UNCLASSIFIED, False)


def test_a_holiday_that_is_not_found_is_a_refusal_without_an_exception_and_an_answer_by_the_rule_lookup():
    for tool in ("search_holiday", "utilities_3"):
        assert CATALOGUE.is_refusal("None", tool)
        assert CATALOGUE.match(tool, "None") == (ErrorClass.DEPENDENCY, True)
    assert not CATALOGUE.is_refusal("None", "set_wifi_status")
    assert not CATALOGUE.is_refusal("1735102800.0", "search_holiday")


# ---- real runs

METHODS = ("right", "recover", "random")
EXCEPTION = re.compile(r"(?:[a-z_]+\.)*[A-Z][A-Za-z]*(?:Error|Exception): ")


@pytest.fixture(scope="module")
def real(shared):
    folder = shared / "data" / "toolsandbox"
    if not folder.is_dir():
        pytest.skip("the runs of ToolSandbox are not here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sx.errors.SurvexecWarning)  # of 80 scenarios, 27 have their trajectories here
        return folder, sx.read(folder / "scripted_*", from_path="scripted_{method}")


def test_real_runs_give_what_their_chat_messages_say(real):
    folder, rollouts = real
    frame = rollouts.frame.set_index(["method", "task_id"])
    assert len(frame) == 3 * 27
    for (method, task), row in frame.iterrows():
        chat = folder / f"scripted_{method}" / "trajectories" / task / "conversation.json"
        answers = [part["content"] for part in json.loads(chat.read_text()) if part["role"] == "tool"]
        raised = [EXCEPTION.match(text) is not None for text in answers if "RAPID_API_KEY" not in text]
        assert row["length"] == len(raised)
        assert row["fed"] == (raised.index(True) if any(raised) else len(raised)) + 1
        assert row["invalid_calls"] == sum(raised)


def test_two_agents_of_the_same_similarity_are_told_apart_by_their_prefixes(real):
    frame = real[1].frame.sort_values("task_id")
    right, recover = (frame[frame["method"] == method] for method in ("right", "recover"))
    assert right["success"].tolist() == recover["success"].tolist()
    assert right["success"].sum() == 26
    assert (right["fed"] == right["length"] + 1).all()
    assert (recover["fed"] == 1).all()
    assert recover["error_class"].value_counts().to_dict() == {"schema": 17, "precondition": 7, "dependency": 3}


def test_no_refusal_in_the_real_runs_is_unclassified(real):
    calls = real[1].calls
    assert calls["outcome"].value_counts().to_dict() == {"ok": 110, "invalid": 106, "infrastructure": 5}
    assert "unclassified" not in set(calls["error_class"])


def test_scenarios_without_a_trajectory_are_in_the_ledger(real):
    told = real[1].ledger["reason"]
    assert (told == "53 scenarios of the summary have no trajectory and are left out").sum() == 3
