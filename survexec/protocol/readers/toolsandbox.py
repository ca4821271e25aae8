"""ToolSandbox: a run's folder of result_summary.json and trajectories/<scenario>/execution_context.json.

A call is a message of the agent to the execution environment, written as Python; the answer says whether it raised. A
call of a tool that is not exposed never becomes a message: it ends the scenario, and only the summary tells of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from survexec.protocol.literals import UnreadableCallError, read_calls
from survexec.protocol.readers.documents import (
    Document,
    Fault,
    Reading,
    Shape,
    UnreadableError,
    decode_as,
    elements,
)
from survexec.protocol.readers.messages import CallLog, UserCallLog, decode_arguments, first_line
from survexec.protocol.trajectory import UNKNOWN, Call, Ending, Trajectory

_SUMMARY: Final = "result_summary.json"
_LOGS: Final = "trajectories/*/execution_context.json"
_GRADED: Final = "success is a graded similarity from 0 to 1: taken as success from the success threshold on"
_NO_SUMMARY: Final = f"no {_SUMMARY}, as of a run that was broken off: success is not known"
_NO_LOG: Final = "scenarios of the summary have no trajectory and are left out"
# How ToolSandbox writes a call: `call_1_parameters = {...}` and, in the next line, `call_1_response = tool(...`.
_CODE: Final = re.compile(r"(?P<id>.+)_parameters = (?P<arguments>.+)\n(?P=id)_response = (?P<tool>[^(\n]+)\(")
_ADDRESS: Final = re.compile(r"\bat 0x[0-9A-Fa-f]+")
# Labels of a scenario that say which tools are offered and how they are described, not what the task is.
_OFFER: Final = re.compile(r".*_DISTRACTION_TOOLS|ALL_TOOLS_AVAILABLE|.*_SCRAMBLED")
# Where the agent's role looks up a tool that the model named, and where it decodes what the model wrote.
_LOOK_UP: Final = "facing_tool_name"
_DECODING: Final = ("in openai_tool_call_to_python_code\n", "in to_chat_completion_message\n")
_NAMED: Final = re.compile(r"""agent_facing_tool_name=\\?['"](?P<tool>.*?)\\?['"] is not a known""", re.DOTALL)
_KEY: Final = re.compile(r"""KeyError: ['"](?P<tool>.*)['"]""", re.DOTALL)


class _Message(msgspec.Struct, gc=False):
    sender: str | None = None
    recipient: str | None = None
    content: str | None = None
    openai_tool_call_id: str | None = None
    openai_function_name: str | None = None
    conversation_active: bool | None = None
    tool_call_exception: str | None = None
    visible_to: list[str] | None = None


class _Databases(msgspec.Struct, gc=False):
    messages: list[_Message] = msgspec.field(name="SANDBOX")


class _Context(msgspec.Struct, gc=False):
    databases: _Databases = msgspec.field(name="_dbs")


class _Scenario(msgspec.Struct, gc=False):
    name: str
    categories: list[str] | None = None
    traceback: str | None = None
    exception_type: str | None = None
    similarity: float | None = None


_CONTEXT = msgspec.json.Decoder(_Context)
_SCENARIO = msgspec.json.Decoder(_Scenario)


class ToolSandboxReader:
    """Reads the folder of a ToolSandbox run, given as such or by its summary."""

    name = "toolsandbox"
    expects = f"a folder of {_SUMMARY} and {_LOGS}"

    def recognises(self, document: Document) -> bool:
        """Whether it looks like a run of ToolSandbox."""
        if document.shape is not Shape.FOLDER:
            return document.shape is Shape.OBJECT and "per_scenario_results" in document.keys
        return (document.path / _SUMMARY).is_file() or any(document.path.glob(_LOGS))

    def read(self, document: Document) -> Reading:
        """Read all scenarios; one that cannot be read, or has no trajectory, is set aside as a fault."""
        if not self.recognises(document):
            raise UnreadableError(f"{document.describe()}; wanted is {self.expects}")
        is_folder = document.shape is Shape.FOLDER
        summary = Document(document.path / _SUMMARY) if is_folder else document
        # names in the summary are matched with what is there, never opened as paths
        logs = {file.parent.name: file for file in sorted(summary.path.parent.glob(_LOGS))}
        has_summary = summary.path.is_file()
        reading = Reading(document.source, self.name, remarks=[_GRADED if has_summary else _NO_SUMMARY])
        noted: Counter[str] = Counter()
        rows = list(_scenarios(summary)) if has_summary else []
        known = {row.name for row in rows if isinstance(row, _Scenario)}
        rows += [_Scenario(name) for name in logs if name not in known]
        for number, row in enumerate(rows, start=1):
            try:
                if isinstance(row, UnreadableError):
                    raise row
                if row.name not in logs:
                    noted[_NO_LOG] += 1
                    continue
                trajectory = _trajectory(row, logs[row.name], noted)
            except UnreadableError as error:
                where = f"row {number}, {error.where}" if error.where else f"row {number}"
                reading.faults.append(Fault(document.source, where, str(error), "rollouts"))
                continue
            reading.trajectories.append(replace(trajectory, source=document.source, row=number))
        reading.remarks.extend(f"{count} {what}" for what, count in noted.items())
        return reading


def _scenarios(summary: Document) -> Iterator[_Scenario | UnreadableError]:
    """Scenarios of a summary, each or the reason why it cannot be read."""
    if "per_scenario_results" not in summary.fields:
        raise UnreadableError(f"{_SUMMARY} is {summary.describe()}; wanted is one with per_scenario_results")
    for raw in elements(summary.fields["per_scenario_results"]):
        try:
            yield decode_as(raw, _SCENARIO)
        except UnreadableError as error:
            yield error


def _trajectory(scenario: _Scenario, file: Path, noted: Counter[str]) -> Trajectory:
    messages = decode_as(Document(file).data, _CONTEXT).databases.messages
    log, of_user = _calls(messages)
    calls = log.calls()
    if log.unmatched:
        noted["results answer no recorded call: left out"] += log.unmatched
    refused = _refused(scenario, log.turns - 1)
    ending, reason = _ending(scenario, messages, refused, (file.parent / "conversation.json").is_file())
    return Trajectory(
        task_id=scenario.name,
        calls=(*calls, refused) if refused else calls,
        ending=ending,
        benchmark="toolsandbox",
        stratum=stratum_of(scenario.categories or ()),
        reward=scenario.similarity,
        reason=reason,
        turns=log.turns,
        said=log.said,
        user_calls=of_user,
    )


def stratum_of(categories: Sequence[str]) -> str | None:
    """The kind of a scenario's task out of its labels, the same for all its variants.

    Parameters
    ----------
    categories : sequence of str
        The labels of a scenario, in any order.

    Returns
    -------
    str or None
        Labels of the task itself in alphabetical order, joined by "+"; None without such labels. What tools are offered
        and how they are described is left out: the eight variants of a task would else be in eight strata of few tasks
        each, and resampling within such a stratum makes intervals too short.

    Examples
    --------
    >>> stratum_of(["STATE_DEPENDENCY", "MULTIPLE_TOOL_CALL", "THREE_DISTRACTION_TOOLS", "TOOL_NAME_SCRAMBLED"])
    'MULTIPLE_TOOL_CALL+STATE_DEPENDENCY'
    """
    return "+".join(sorted(label for label in set(categories) if not _OFFER.fullmatch(label))) or None


def without_addresses(text: str) -> str:
    """Text without addresses in memory, which differ from run to run.

    Examples
    --------
    >>> without_addresses("No db entry matching predicate=<Expr ['...'] at 0x7F36B64CA550> found")
    "No db entry matching predicate=<Expr ['...'] at 0x...> found"
    """
    return _ADDRESS.sub("at 0x...", text)


def _calls(messages: list[_Message]) -> tuple[CallLog, tuple[tuple[int, Call], ...]]:
    """Calls of the agent and, with the number of the agent's before each, of the user."""
    log = CallLog()
    of_user = UserCallLog(log)
    goes_on = False  # whether the last message was a call of the agent: parallel calls are messages in a row
    for message in messages:
        if message.visible_to == ["USER"]:
            continue  # an example for the user's simulator
        calls = False
        match message.sender, message.recipient:
            case "USER", "AGENT":
                log.hear(message.content)
            case "AGENT", "USER":
                log.speak()
            case "AGENT", "EXECUTION_ENVIRONMENT":
                calls = True
                log.speak()
                if not goes_on:
                    log.message()
                log.call(*_read(message), message.openai_tool_call_id)
            case "EXECUTION_ENVIRONMENT", "AGENT":
                log.result(*_answer(message), message.openai_tool_call_id)
            case "USER", "EXECUTION_ENVIRONMENT":
                of_user.message()
                of_user.call(*_read(message), message.openai_tool_call_id)
            case "EXECUTION_ENVIRONMENT", "USER":
                of_user.result(*_answer(message), message.openai_tool_call_id)
        goes_on = calls
    return log, of_user.placed()


def _read(message: _Message) -> tuple[str, dict[str, Any] | str | None]:
    """Tool and arguments of a call; the code itself where it is none that can be read."""
    code, name = message.content or "", message.openai_function_name
    if written := _CODE.match(code):
        return name or written["tool"].strip(), decode_arguments(written["arguments"])
    try:
        [call] = read_calls(code)
    except (UnreadableCallError, ValueError):
        return name or UNKNOWN, code
    return name or call.tool, call.arguments


def _answer(message: _Message) -> tuple[str | None, bool]:
    """What came back, and whether it is an exception."""
    exception = message.tool_call_exception
    if exception is None:
        return message.content, False
    return without_addresses(exception), True


def _refused(scenario: _Scenario, turn: int) -> Call | None:
    """The call that ended a scenario before it became a message; None where something else did."""
    told = scenario.traceback or ""
    message = _last(told)
    last_frame = told.rpartition('  File "')[2]
    if scenario.exception_type == "KeyError" and _LOOK_UP in last_frame:
        found = _NAMED.search(message) or _KEY.match(message)
        return Call(found["tool"] if found else UNKNOWN, None, message, True, turn)
    if any(place in told for place in _DECODING):
        return Call(UNKNOWN, None, message, True, turn)
    return None


def _ending(
    scenario: _Scenario, messages: list[_Message], refused: Call | None, has_conversation: bool
) -> tuple[Ending, str | None]:
    """How it ended, and why where it did not end by itself."""
    if refused:
        return Ending.TRUNCATED, "the scenario ends with a call that the agent's role refuses"
    if scenario.exception_type or scenario.traceback:
        return Ending.CRASHED, first_line(_last(scenario.traceback or "")) or scenario.exception_type
    if scenario.similarity is None and not has_conversation:
        return Ending.CRASHED, "no conversation.json, which a scenario that does not crash leaves"
    active = [message.conversation_active for message in messages if message.conversation_active is not None]
    if active and not active[-1]:
        return Ending.COMPLETED, None
    return Ending.TRUNCATED, "the limit of messages"


def _last(traceback: str) -> str:
    """The exception at the end of a traceback, which may be of several lines."""
    lines = traceback.rstrip().splitlines()
    start = max((i for i, line in enumerate(lines) if line.startswith("  ")), default=-1)
    return "\n".join(lines[start + 1 :])
