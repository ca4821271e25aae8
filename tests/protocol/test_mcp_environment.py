"""Any MCP server as an environment, tried with a small one that speaks the protocol by itself."""

import importlib.util
import os
import subprocess
import sys
import time

import pytest

from survexec.errors import InputError
from survexec.protocol.environments import load
from survexec.protocol.environments.mcp import MCP
from survexec.protocol.replay import replay
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Call, Ending, ErrorClass, Trajectory

needs_sdk = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the MCP SDK is not installed")

# A counter: it listens to JSON lines, lists its tools in pages, and keeps its count in memory or in a file.
SERVER = """
import json, os, sys, time

if "--broken" in sys.argv:
    sys.exit("no such configuration")
if "--silent" in sys.argv:
    time.sleep(60)
FILE = os.environ.get("COUNT_FILE")

def count(new=None):
    if FILE is None:
        globals()["STATE"] = globals().get("STATE", 0) if new is None else new
        return STATE
    if new is not None:
        open(FILE, "w").write(str(new))
    return int(open(FILE).read()) if os.path.exists(FILE) else 0

def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}

def call(name, arguments):
    if name == "add":
        if arguments["by"] < 0:
            return text("the count never falls", isError=True)
        return text(str(count(count() + arguments["by"])))
    if name == "count":
        return {"content": [], "structuredContent": {"count": count()}}
    if name == "report":
        return {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    if name == "environment":
        told, secret = os.environ.get("TOLD"), os.environ.get("SECRET")
        return text(json.dumps({"where": os.getcwd(), "told": told, "secret": secret}))
    if name == "clear":
        return text(str(count(0)))
    if name == "die":
        os._exit(3)
    if name == "stall":
        time.sleep(8)
    raise KeyError(name)

ONE = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"], "additionalProperties": False}
NONE = {"type": "object", "properties": {}}
NAMES = ["add", "count", "report", "picture", "environment", "clear", "die", "stall", "ghost"]
TOOLS = [{"name": name, "inputSchema": ONE if name == "add" else NONE} for name in NAMES]

def answer(method, params):
    if method == "initialize":
        server = {"name": "counter", "version": "1.2"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        start = int((params or {}).get("cursor") or 0)
        page = {"tools": TOOLS[start : start + 2]}
        return page | ({"nextCursor": str(start + 2)} if start + 2 < len(TOOLS) else {})
    return call(params["name"], params.get("arguments") or {}) if method == "tools/call" else {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params"))
    except KeyError as missing:
        reply["error"] = {"code": -32602, "message": f"unknown tool {missing}"}
    except TypeError as wrong:
        reply["result"] = text(f"invalid arguments: {wrong}", isError=True)
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER)
    return str(path)


@pytest.fixture
def start(script):
    """Start environments that end with the test."""
    opened = []

    def started(*arguments, **options):
        opened.append(MCP([sys.executable, script, *arguments], **options))
        return opened[-1]

    yield started
    for environment in opened:
        environment.close()


def rollout(*calls):
    return Trajectory("any task", calls, Ending.COMPLETED)


# ---- without the SDK


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"command": "python server.py"}, "command = 'python server.py'"),
        ({"command": []}, "command = []"),
        ({"command": ["python", 3]}, "command = ['python', 3]"),
        ({"command": ["python"], "env": {"PORT": 80}}, "env = {'PORT': 80}"),
        ({"command": ["python"], "cwd": 7}, "cwd = 7"),
        ({"command": ["python"], "time_limit": 0}, "time_limit = 0"),
        ({"command": ["python"], "reset": True}, "reset = True"),
        ({}, "command"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(options, told):
    with pytest.raises(InputError) as raised:
        load("mcp", **options)
    assert told in str(raised.value)


def test_without_the_sdk_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(InputError, match=r"pip install survexec\[mcp\]"):
        load("mcp", command=["python"])


# ---- with the SDK


@needs_sdk
def test_all_pages_of_tools_are_listed_with_their_schemas(start):
    environment = start()
    assert list(environment.tools(0)) == [
        "add", "count", "report", "picture", "environment", "clear", "die", "stall", "ghost"
    ]  # fmt: skip
    assert environment.tools(3)["add"].schema["required"] == ["by"]
    assert environment.version == "counter 1.2"
    assert list(environment.tasks()) == []
    assert environment.task("17").task_id == "17"


@needs_sdk
def test_a_result_with_an_error_flag_is_a_refusal_and_others_are_not(start):
    environment = start()
    good, bad = environment.call("add", {"by": 2}), environment.call("add", {"by": -1})
    assert (good.text, good.error) == ("2", False)
    assert (bad.text, bad.error) == ("the count never falls", True)


@needs_sdk
def test_an_error_of_the_protocol_is_a_refusal_after_which_the_server_goes_on(start):
    environment = start()
    answer = environment.call("ghost", {})
    assert answer.error
    assert "unknown tool 'ghost'" in answer.text
    assert environment.call("add", {"by": 5}).text == "5"
    assert environment.snapshot() == b""


@needs_sdk
def test_the_text_of_a_result_is_that_of_all_its_blocks(start):
    environment = start()
    assert environment.call("report", {}).text == "one\ntwo"
    assert environment.call("count", {}).text == '{"count": 0}'  # structured content alone
    assert '"mimeType": "image/png"' in environment.call("picture", {}).text


@needs_sdk
def test_a_rollout_is_replayed_and_judged_by_schema_and_answers(start):
    calls = (
        Call("add", {"by": "two"}), Call("multiply", {"by": 2}), Call("add", {"by": -1}), Call("add", {"by": 2}),
        Call("count"),
    )  # fmt: skip
    replayed = replay(start(), rollout(*calls))
    classes = [verdict.error_class for verdict in replayed.verdicts]
    assert replayed.fault is None
    assert classes == [ErrorClass.SCHEMA, ErrorClass.SCHEMA, ErrorClass.UNCLASSIFIED, None, None]
    assert replayed.observations[4].text == '{"count": 2}'
    assert not any(replayed.changed)
    assert replayed.success is None


@needs_sdk
def test_each_rollout_meets_a_fresh_server(start):
    environment = start()
    seen = [replay(environment, rollout(Call("add", {"by": 1}))).observations[0].text for _ in range(3)]
    assert seen == ["1", "1", "1"]


@needs_sdk
def test_a_state_in_files_is_fresh_where_they_lie_in_the_folder_of_the_reset(start, tmp_path):
    kept = start(env={"COUNT_FILE": str(tmp_path / "count")})
    fresh = start(env={"COUNT_FILE": "{folder}/count"})
    one = rollout(Call("add", {"by": 1}))
    assert [replay(kept, one).observations[0].text for _ in range(3)] == ["1", "2", "3"]
    assert [replay(fresh, one).observations[0].text for _ in range(3)] == ["1", "1", "1"]


@needs_sdk
def test_a_reset_tool_clears_what_outlives_the_server_and_is_hidden_from_the_agent(start, tmp_path):
    environment = start(env={"COUNT_FILE": str(tmp_path / "count")}, reset="clear")
    one = rollout(Call("add", {"by": 1}), Call("clear"))
    replays = [replay(environment, one) for _ in range(3)]
    assert [replayed.observations[0].text for replayed in replays] == ["1", "1", "1"]
    assert {replayed.verdicts[1].error_class for replayed in replays} == {ErrorClass.SCHEMA}


@needs_sdk
def test_a_reset_tool_that_is_not_there_is_named(start):
    with pytest.raises(InputError, match="reset = 'wipe'; the MCP server has no such tool, only add"):
        start(reset="wipe")


@needs_sdk
def test_the_server_gets_the_variables_and_the_folder_of_the_options_and_no_others(start, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "not for servers")
    told = start(env={"TOLD": "yes"}, cwd=str(tmp_path)).call("environment", {}).text
    assert f'"where": "{os.path.realpath(tmp_path)}"' in told
    assert '"told": "yes"' in told
    assert '"secret": null' in told


@needs_sdk
def test_a_server_that_ends_in_a_call_makes_the_rollout_unreplayable_and_the_next_meets_a_new_one(start):
    environment = start()
    lost = replay(environment, rollout(Call("add", {"by": 1}), Call("die"), Call("add", {"by": 1})))
    assert lost.fault == "the MCP server ended in a call of 'die'"
    assert lost.verdicts == ()
    assert replay(environment, rollout(Call("add", {"by": 1}))).observations[0].text == "1"


@needs_sdk
def test_a_call_beyond_the_time_limit_makes_the_rollout_unreplayable(start):
    environment = start(time_limit=2.0)
    begin = time.monotonic()
    lost = replay(environment, rollout(Call("stall")))
    assert lost.fault == "the MCP server did not answer to 'stall' in 2 s"
    assert time.monotonic() - begin < 10


@needs_sdk
@pytest.mark.parametrize(
    ("argument", "told"), [("--broken", "no such configuration"), ("--silent", r"no answer in 0\.5 s")]
)
def test_a_server_that_does_not_start_says_why(start, argument, told):
    with pytest.raises(InputError, match=rf"did not start: .*{told}"):
        start(argument, time_limit=0.5 if argument == "--silent" else 30)


@needs_sdk
def test_a_program_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"\['no-such-program'\] did not start: .*no-such-program"):
        MCP(["no-such-program"])


@needs_sdk
@pytest.mark.slow
def test_in_children_a_stalled_call_is_invalid_and_the_rest_is_replayed(script):
    calls = (Call("add", {"by": 1}), Call("stall"), Call("add", {"by": 1}))
    options = {"command": [sys.executable, script]}
    [replayed] = replay_all([rollout(*calls)], "mcp", options=options, time_limit=2.0)
    assert replayed.fault is None
    assert [verdict.error_class for verdict in replayed.verdicts] == [None, ErrorClass.STATE_CONSISTENCY, None]
    assert replayed.observations[2].text == "2"


@needs_sdk
@pytest.mark.slow
def test_a_program_that_forgets_to_close_its_environment_still_ends(script):
    code = f"from survexec.protocol.environments import load; load('mcp', command={[sys.executable, script]!r})"
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": places}, timeout=30, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


@needs_sdk
@pytest.mark.skipif(importlib.util.find_spec("tau2_mock_mcp") is None, reason="tau2-mock-mcp-eval is not installed")
def test_the_mock_domain_of_tau2_behind_mcp():
    folder = os.path.dirname(os.path.dirname(importlib.util.find_spec("tau2_mock_mcp").origin))
    environment = MCP(
        [sys.executable, "-m", "tau2_mock_mcp.server"],
        env={"PYTHONPATH": folder, "TAU2_MOCK_MCP_STATE_DIR": "{folder}/state"},
    )
    calls = (
        Call("create_task", {"user_id": "user_9", "title": "Meeting"}),
        Call("create_task", {"user_id": "user_1", "title": "Meeting"}),
        Call("update_task_status", {"task_id": "task_2", "status": "completed"}),
    )
    first, second = replay(environment, rollout(*calls)), replay(environment, rollout(*calls))
    environment.close()
    assert [verdict.outcome for verdict in first.verdicts] == ["invalid", "ok", "ok"]
    assert first.observations == second.observations  # the state on disk does not reach the second
