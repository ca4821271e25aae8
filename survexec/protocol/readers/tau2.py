"""tau2-bench: an object with `info` and `simulations`, or a folder of results.json and simulations/*.json.

Reads the 2025 schema and the 2026 one, which only adds fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from survexec.protocol.readers.documents import (
    Document,
    Fault,
    Reading,
    Shape,
    UnreadableError,
    decode_as,
    elements,
    one_line,
)
from survexec.protocol.readers.messages import CallLog, UserCallLog, first_line
from survexec.protocol.trajectory import Call, Ending, Trajectory

ENDINGS = {
    "user_stop": Ending.COMPLETED,
    "agent_stop": Ending.COMPLETED,
    "max_steps": Ending.TRUNCATED,
    "timeout": Ending.TRUNCATED,
    "context_window_exceeded": Ending.TRUNCATED,
    "too_many_errors": Ending.TRUNCATED,
    "agent_error": Ending.TRUNCATED,
    "infrastructure_error": Ending.CRASHED,
    "unexpected_error": Ending.CRASHED,
    "user_error": Ending.CRASHED,
}


class _ToolCall(msgspec.Struct, gc=False):
    id: str | int | None = None
    name: str | None = None
    arguments: Any = None
    requestor: str | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    id: str | int | None = None
    content: Any = None
    tool_calls: list[_ToolCall] | None = None
    requestor: str | None = None
    error: bool | None = None
    usage: _Usage | None = None


class _Tick(msgspec.Struct, gc=False):
    """Step of a voice run; only that there are some matters."""


class _Reward(msgspec.Struct, gc=False):
    reward: float | bool | None = None


class _Simulation(msgspec.Struct, gc=False):
    task_id: str | int
    trial: int | None = None
    termination_reason: str | None = None
    duration: float | None = None
    agent_cost: float | None = None
    reward_info: _Reward | None = None
    messages: list[_Message] | None = None
    ticks: list[_Tick] | None = None
    info: Any = None


class _Agent(msgspec.Struct, gc=False):
    llm: str | None = None
    implementation: str | None = None


class _Environment(msgspec.Struct, gc=False):
    domain_name: str | None = None


class _Info(msgspec.Struct, gc=False):
    agent_info: _Agent | None = None
    environment_info: _Environment | None = None


_SIMULATION = msgspec.json.Decoder(_Simulation)
_INFO = msgspec.json.Decoder(_Info)


class Tau2Reader:
    """Reads tau2-bench results, in one file or as a folder."""

    name = "tau2"
    expects = "a JSON object with `info` and `simulations`, or a folder of results.json and simulations/*.json"

    def recognises(self, document: Document) -> bool:
        """Whether it looks like tau2-bench's results."""
        if document.shape is Shape.FOLDER:
            return (document.path / "results.json").is_file()
        if document.shape is not Shape.OBJECT or "info" not in document.keys:
            return False
        return "simulations" in document.keys or (document.path.parent / "simulations").is_dir()

    def read(self, document: Document) -> Reading:
        """Read all rollouts; one that cannot be read is set aside as a fault."""
        is_folder = document.shape is Shape.FOLDER
        results = Document(document.path / "results.json") if is_folder else document
        if "info" not in results.fields:
            raise UnreadableError(f"{results.describe()}; wanted is {self.expects}")
        info = decode_as(results.fields["info"], _INFO)
        reading = Reading(document.source, self.name)
        noted: Counter[str] = Counter()
        for number, (where, part) in enumerate(_simulations(results), start=1):
            try:
                simulation = decode_as(part.data if isinstance(part, Document) else part, _SIMULATION)
                trajectory = _trajectory(simulation, info, document.source, number, noted)
            except UnreadableError as error:
                inside = f"{where}, {error.where}" if error.where else where
                reading.faults.append(Fault(document.source, inside, str(error), "rollouts"))
                continue
            reading.trajectories.append(trajectory)
        reading.remarks.extend(f"{count} {what}" for what, count in noted.items())
        return reading


def _simulations(results: Document) -> Iterator[tuple[str, Any]]:
    """Every simulation, not yet decoded, with where it stands."""
    if "simulations" in results.fields:
        for number, raw in enumerate(elements(results.fields["simulations"]), start=1):
            yield f"row {number}", raw
        return
    folder: Path = results.path.parent / "simulations"
    files = sorted(folder.glob("*.json"))
    if not files:
        raise UnreadableError(f"no `simulations` in it, and none in the folder {folder.name}/ beside it")
    for file in files:
        yield f"{folder.name}/{file.name}", Document(file)


def _trajectory(row: _Simulation, info: _Info, source: str, number: int, noted: Counter[str]) -> Trajectory:
    messages = row.messages or []
    if not messages and row.ticks:
        raise UnreadableError("a voice run (`ticks` and no messages): only runs with `messages` can be read")
    calls, of_user = _calls(messages, noted)
    ending, reason = _ending(row, noted)
    agent = info.agent_info or _Agent()
    reward = row.reward_info.reward if row.reward_info else None
    domain = info.environment_info.domain_name if info.environment_info else None
    return Trajectory(
        task_id=str(row.task_id),
        calls=calls.calls(),
        ending=ending,
        benchmark=f"tau2-{domain}" if domain else "tau2",
        model=agent.llm,
        method=agent.implementation,
        trial=row.trial or 0,
        reward=None if reward is None else float(reward),
        tokens=_tokens(messages),
        latency_s=row.duration,
        cost_usd=row.agent_cost,
        source=source,
        row=number,
        reason=reason,
        turns=calls.turns,
        said=calls.said,
        user_calls=of_user,
    )


def _calls(messages: list[_Message], noted: Counter[str]) -> tuple[CallLog, tuple[tuple[int, Call], ...]]:
    """Collect the calls of the agent and, apart from them, those of the user, who has tools in some domains."""
    log = CallLog()
    of_user = UserCallLog(log)
    for message in messages:
        if message.role == "tool":
            answered = of_user if message.requestor == "user" else log
            answered.result(message.content, message.error, message.id)
            continue
        if message.role == "assistant":
            log.speak()
        elif message.role == "user":
            log.hear(message.content)
        log.message()
        if not message.tool_calls:
            continue
        of_user.message()
        for call in message.tool_calls:
            if message.role == "assistant" and call.requestor != "user":
                log.call(call.name, call.arguments, call.id)
            else:
                of_user.call(call.name, call.arguments, call.id)
    if len(of_user):
        noted["calls by the user, not by the agent: left out"] += len(of_user)
    if log.unmatched:
        noted["results answer no recorded call: left out"] += log.unmatched
    return log, of_user.placed()


def _ending(row: _Simulation, noted: Counter[str]) -> tuple[Ending, str | None]:
    """How it ended, and why where it did not end by itself."""
    reason = one_line(row.termination_reason or "", 60)
    if not row.messages:
        error = row.info.get("error") if isinstance(row.info, dict) else None
        return Ending.CRASHED, first_line(error) or reason or "no messages and no error recorded"
    ending = ENDINGS.get(reason)
    if ending is None:
        noted[f"rollouts with the unknown termination reason {reason!r}: taken as truncated"] += 1
        ending = Ending.TRUNCATED
    return ending, None if ending is Ending.COMPLETED else reason or None


def _tokens(messages: list[_Message]) -> float | None:
    """Tokens of the agent's own messages."""
    used = [message.usage for message in messages if message.role == "assistant" and message.usage]
    if not used:
        return None
    return sum((usage.prompt_tokens or 0) + (usage.completion_tokens or 0) for usage in used)
