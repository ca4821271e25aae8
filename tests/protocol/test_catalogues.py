"""What environments say when they refuse, and the class of it."""

import re
import time
import tomllib
from importlib import resources

import pytest

from survexec.protocol.catalogues import catalogue_for, error_in, is_infrastructure, message_of, normalise, unwrap
from survexec.protocol.checker import check
from survexec.protocol.readers import read_file
from survexec.protocol.trajectory import ErrorClass, Outcome

TAU, BFCL = catalogue_for("tau-retail"), catalogue_for("bfcl")
FOLDER = resources.files("survexec.protocol.catalogues")
TABLES = {file.name: tomllib.loads(file.read_text("utf-8")) for file in FOLDER.iterdir() if file.suffix == ".toml"}
INFRASTRUCTURE = TABLES.pop("infrastructure.toml")
CATALOGUES = {name: catalogue_for(next(iter(table["versions"]))) for name, table in TABLES.items()}
ENTRIES = [
    pytest.param(catalogue, entry, id=f"{name}-{entry.pattern.pattern}")
    for name, catalogue in sorted(CATALOGUES.items())
    for entry in catalogue.entries
]


@pytest.mark.parametrize(("catalogue", "entry"), ENTRIES)
def test_every_example_is_a_refusal_and_meets_its_own_entry_first(catalogue, entry):
    for tool in entry.tools or {"f"}:
        first = next(other for other in catalogue.entries if other.meets(tool, normalise(entry.example)))
        assert first is entry
        # toolsandbox and phone may set a flag where no form tells
        assert catalogue.is_refusal(entry.example, tool) or catalogue not in (TAU, BFCL)
    assert entry.error_class is not ErrorClass.UNCLASSIFIED


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_catalogue_is_found_by_every_benchmark_it_covers(table):
    for benchmark in table["versions"]:
        assert catalogue_for(benchmark).benchmark == table["benchmark"]
        assert catalogue_for(f"{benchmark}-part").versions == table["versions"]


@pytest.mark.parametrize("rule", INFRASTRUCTURE["rule"], ids=lambda rule: rule["example"])
def test_every_example_of_infrastructure_is_met_by_its_own_pattern(rule):
    assert re.fullmatch(rule["pattern"], normalise(rule["example"]))
    assert is_infrastructure(rule["example"])


@pytest.mark.parametrize(
    "text",
    [
        "Error: 503 Service Unavailable",
        "HTTP 503 Service Unavailable.",
        '{"error": "Service Temporarily Unavailable"}',
        "504 Gateway Time-out",
        "Error code: 502",
        "Too Many Requests",
        "litellm.RateLimitError: quota of the key is used up",
        "('Connection aborted.', RemoteDisconnected('Remote end closed connection'))",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "httpx.ReadTimeout: The read operation timed out",
        "Tool execution timed out",
    ],
)
def test_a_call_that_never_arrived_is_infrastructure(text):
    assert is_infrastructure(text)


@pytest.mark.parametrize(
    "text",
    [
        "503",
        "429",
        "429.0",
        "503.5",
        "Error: flight HAT503 not found",
        "Error: 503 not found",
        '{"price": 503, "status": "Service Unavailable in economy"}',
        '{"flight": "HAT429", "note": "too many requests for seats"}',
        "The user said: 503 Service Unavailable",
        "Connection flights: HAT503, HAT504",
        "Your session timed out",
        "Error: rate limit of the account is 500",
        "503 Service Unavailable " + "x" * 300,
        "",
    ],
)
def test_data_that_only_mentions_such_words_is_not(text):
    assert not is_infrastructure(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error: user not found",
        "error: user not found",
        "  Error:user not found\n",
        "Error: Error: user not found",
        '# var_4 = "Error: user not found"',
        "# var_12 = 'Error: user not found'",
        '{"error": "user not found"}',
        "{'error': 'user not found'}",
        '[{"error": "user not found"}]',
        "['Error: user not found']",
        "Error:\u00a0User not found.",
    ],
)
def test_a_refusal_is_known_in_all_its_wrappings(text):
    assert TAU.is_refusal(text)
    assert normalise(text) == "user not found"
    assert TAU.match("find_user_id_by_email", text) == (ErrorClass.DEPENDENCY, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "errors: 0",
        "No error: user found",
        '{"name": "Error: the game", "price": 3}',
        '{"error": null}',
        '{"error": "none", "user": "mia"}',
        '["Error: the game", "chess"]',
        '# var_1 = "mia_garcia_4516"',
        "# Error: how to read it",
        "the action is unknown: Unknown action x",
    ],
)
def test_the_word_error_inside_data_is_no_refusal(text):
    assert not TAU.is_refusal(text)


def test_quotes_inside_a_wrapping_are_plain_again():
    assert unwrap(r'{"error": "the \"old\" item"}') == ('the "old" item', True)
    assert message_of("# var_0 = \"Error: Think.invoke() got an unexpected keyword argument 'user'\"") == (
        "Think.invoke() got an unexpected keyword argument 'user'"
    )


def test_not_found_is_an_answer_only_from_a_tool_that_reads():
    assert TAU.match("get_reservation_details", "Error: user not found") == (ErrorClass.DEPENDENCY, True)
    assert TAU.match("modify_user_address", "Error: user not found") == (ErrorClass.DEPENDENCY, False)
    assert TAU.match("get_order_details", "Error: 'order_id'") == (ErrorClass.SCHEMA, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"booking_status": false, "error": "Token expired"}', "Token expired"),
        ('{"error": "distance not found in database.", "intermediaryCities": []}', "distance not found in database."),
        ('{"error": 404}', "404"),
        ("[{'error': 'User not authenticated. Please log in to view tickets.'}]", None),
        ("['Error: User not authenticated. Please log in to view the watchlist.']", None),
        ("Error during execution: GorillaFileSystem.ls() takes 1 positional argument but 2 were given", None),
        ("Error decoding the model response. Proceed to next turn.", None),
    ],
)
def test_bfcl_refuses_in_many_forms(text, message):
    assert BFCL.is_refusal(text, "any")
    assert error_in(text) == message
    assert not message or message_of(text) == message


@pytest.mark.parametrize(
    "text",
    [
        "None",
        '{"file_content": "{\\"error\\": 1}"}',
        '{"matching_lines": ["Error during execution: x"]}',
        '{"error": null}',
        '{"errors": 2}',
        "{'error': Decimal('1')}",
        '[{"content": "error: none"}]',
        '{"error": "cut off',
    ],
)
def test_the_word_error_inside_an_answer_of_bfcl_is_no_refusal(text):
    assert not BFCL.is_refusal(text, "cat")


def test_an_error_among_other_things_is_a_refusal_only_where_the_catalogue_says_so():
    text = '{"status": false, "error": "user not found"}'
    assert BFCL.is_refusal(text)
    assert not TAU.is_refusal(text)


@pytest.mark.parametrize(
    ("tool", "text", "error_class", "lookup"),
    [
        ("ticket_login", '{"success": false}', ErrorClass.SCHEMA, False),
        ("TicketAPI.logout", "{'success': False}", ErrorClass.PRECONDITION, False),
        ("get_zipcode_based_on_city", '{"zipcode": "00000"}', ErrorClass.DEPENDENCY, True),
        ("get_symbol_by_name", '{"symbol": "Stock not found"}', ErrorClass.DEPENDENCY, True),
    ],
)
def test_a_soft_refusal_is_one_for_its_own_tools_only(tool, text, error_class, lookup):
    assert BFCL.is_refusal(text, tool)
    assert BFCL.match(tool, text) == (error_class, lookup)
    assert not BFCL.is_refusal(text, "another")
    assert not BFCL.is_refusal(text)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("ticket_login", '{"success": true}'),
        ("authenticate_twitter", '{"authentication_status": false}'),
        ("retweet", '{"retweet_status": "Already retweeted"}'),
        ("trading_get_login_status", '{"status": false}'),
        ("estimate_drive_feasibility_by_mileage", '{"canDrive": false}'),
        ("get_zipcode_based_on_city", '{"zipcode": "94016"}'),
    ],
)
def test_a_negative_answer_that_says_nothing_failed_is_none(tool, text):
    assert not BFCL.is_refusal(text, tool)


def test_one_text_can_have_a_class_for_one_tool_and_another_for_the_rest():
    assert BFCL.match("lockDoors", "Error during execution: 'rear'")[0] is ErrorClass.DEPENDENCY
    assert BFCL.match("get_user_tickets", "Error during execution: 'rear'")[0] is ErrorClass.STATE_CONSISTENCY


def test_what_no_entry_knows_is_unclassified():
    assert TAU.match("f", "Error: the moon is in the wrong phase") == (ErrorClass.UNCLASSIFIED, False)


def test_a_catalogue_is_chosen_by_the_family_of_the_benchmark():
    assert catalogue_for("tau") is catalogue_for("tau2-airline") is TAU
    assert catalogue_for("taurus") is None
    assert catalogue_for(None) is None


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=CATALOGUES)
@pytest.mark.parametrize(
    "text",
    [
        "flight " + "not found on date " * 600,
        "a" * 10_000,
        "a " * 5_000,
        "'" * 10_000,
        "payment amount does not add up, total price is " + ", but paid" * 1_000,
        "x missing 1 required " * 500,
        "{'error': '" + "\\'" * 5_000,
        '["' + '\\"' * 5_000,
        '# a = "' + '"x' * 5_000,
        "[" + " " * 10_000,
        "item " + "not found " * 1_000 + "x",
        "(<string>, line " * 700,
        '{"error": "' + "cp: cannot copy '" * 600,
        "cannot " * 1_400,
        "mv: cannot move '': " * 500,
        "insufficient funds: " * 500,
        " must be str, not " * 500,
        '{"message": ' * 900,
    ],
)
def test_no_text_makes_a_pattern_slow(catalogue, text):
    start = time.perf_counter()
    for tool in ("f", "logarithm", "message_login"):
        catalogue.is_refusal(text, tool)
        catalogue.match(tool, text)
    is_infrastructure(text[:300])
    assert time.perf_counter() - start < 1


LOGS = [
    "tau/gpt-4o_airline",
    "tau/retail_four_methods/tool_calling",
    "tau/retail_four_methods/tool_calling_preconditions",
    "tau/retail_four_methods/assertions",
    "tau/retail_four_methods/assertions_no_postconditions",
    "tau2/gpt-4.1_airline",
    "tau2/gpt-4.1_retail",
    "tau2/gpt-4.1-ft_airline",
    "tau2/gpt-4.1-ft_retail",
    "tau2/gpt-4o_airline",
    "tau2/qwen2.5-7b_airline",
]


@pytest.mark.parametrize("log", LOGS)
def test_no_refusal_of_the_real_logs_is_unclassified(shared, log):
    reading = read_file(shared / f"data/{log}.json")
    verdicts = [verdict for trajectory in reading.trajectories for verdict in check(trajectory).verdicts]
    unknown = {verdict.message for verdict in verdicts if verdict.error_class is ErrorClass.UNCLASSIFIED}
    assert unknown == set()
    assert any(verdict.outcome is Outcome.INVALID for verdict in verdicts)


# Lines of the list that describe a kind of message instead of quoting one: the examples above meet them.
DESCRIBED = {
    "Error: ... missing N required positional argument(s): ...",
    "Error: N validation error(s) for FlightInfo/Payment/Passenger ... (pydantic)",
    "Error: 'key'  (KeyError leaks: missing key of a nested dict argument)",
    "Error: unhashable type / list indices ... (type leak)",
    "Error: User tool calls are not allowed in solo mode / Invalid requestor",
    "Error: X1 e.g. invalid syntax, division by zero",
    "Flight X1 not found [on date X1]",
}


def documented_messages(text):
    """Messages of the list of errors, with its placeholders filled in: (message, class)."""
    for line in text.splitlines():
        if not (found := re.match(r"- \S+ \(.*?\) -> (.*?) -> \*\*(\S+)\*\*", line)):
            continue
        said = re.sub(r"\((?:v1 text is wrong on purpose|v1|tau2|v1, tau2|tau2 only|tau2 only tool)\)", "", found[1])
        for message in re.split(r" \| | {3}/ ", said):
            yield re.sub(r"\{[^}]+\}", "X1", message).strip(), found[2]


def test_every_documented_message_has_its_documented_class(shared):
    told = list(documented_messages((shared / "errors/tau_errors.md").read_text()))
    assert len(told) > 80
    assert {message for message, kind in told if TAU.match("f", message)[0] != kind} == DESCRIBED


# Lines of the list of BFCL's errors that describe what is said instead of quoting it: the examples above meet them.
DESCRIBED_BFCL = {
    "Error during execution: C.m() missing N required positional argument(s): ...",
    "Error during execution: C.m() takes N positional arguments but M were given",
    "ValueError File 'F' already exists in directory 'D'.",
    "ValueError Directory 'D' already exists in directory 'P'.",
    "AttributeError 'Directory' object has no attribute '_write'",
    "TypeError/AttributeError when path is None",
    "OverflowError / ZeroDivisionError leak as 'Error during execution: ...'",
    "Error during execution: 'created_by'  (KeyError leak)",
    "ValueError time data 'x' does not match format '%Y-%m-%d'  (leak)",
    "ValueError No available route for the given airports.  (leaks as exception)",
    "ValueError Invalid travel class. Options are: economy, business, first.  (leaks)",
    "KeyError 'card_id'/'travel_cost'/card not in list  (leak)",
    "ValueError No available exchange rate for the given currencies.  (leaks)",
    "ValueError could not convert string to float  (leak)",
}


def test_every_documented_message_of_bfcl_has_its_documented_class(shared):
    lines = re.findall(r"- (\S+) -> (.*?) -> \*\*(\S+)\*\*", (shared / "errors/bfcl_errors.md").read_text())
    quoted = [line for line in lines if "(soft" not in line[1] and not re.match(r"[{\[][{'\w]+:", line[1])]
    assert len(lines) > 180
    assert len(quoted) > 160
    wrong = set()
    for name, said, kind in quoted:
        found = BFCL.match(name.rpartition(".")[2], re.sub(r"\{[^{}]+\}", "X1", said))[0]
        wrong |= set() if found == kind else {said}
    assert wrong == DESCRIBED_BFCL
