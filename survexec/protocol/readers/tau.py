"""tau-bench (v1): one JSON array (or JSON lines), a row a rollout, with OpenAI chat messages in `traj`.

It has no error flag (a refusal is text), no field for how a rollout ended, and does not name its domain.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from survexec.protocol.readers.documents import (
    Document,
    Fault,
    Reading,
    Shape,
    UnreadableError,
)
from survexec.protocol.readers.messages import CallLog, decode_arguments, first_line, literal
from survexec.protocol.trajectory import Ending, Trajectory

# Tools that only one domain has; the others (think, calculate, get_user_details, ...) tell nothing.
DOMAIN_TOOLS = {
    "tau-airline": frozenset(
        [
            "book_reservation",
            "cancel_reservation",
            "get_reservation_details",
            "list_all_airports",
            "search_direct_flight",
            "search_onestop_flight",
            "send_certificate",
            "update_reservation_baggages",
            "update_reservation_flights",
            "update_reservation_passengers",
        ]
    ),
    "tau-retail": frozenset(
        [
            "cancel_pending_order",
            "exchange_delivered_order_items",
            "find_user_id_by_email",
            "find_user_id_by_name_zip",
            "get_order_details",
            "get_product_details",
            "list_all_product_types",
            "modify_pending_order_address",
            "modify_pending_order_items",
            "modify_pending_order_payment",
            "modify_user_address",
            "return_delivered_order_items",
        ]
    ),
}


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _ToolCall(msgspec.Struct, gc=False):
    id: str | int | None = None
    function: _Function | None = None


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None
    tool_call_id: str | int | None = None


class _Info(msgspec.Struct, gc=False):
    error: Any = None


class _Row(msgspec.Struct, gc=False):
    task_id: str | int
    traj: list[_Message] | None
    trial: int | None = None
    reward: float | bool | None = None
    info: _Info | None = None


class TauReader:
    """Reads tau-bench result files."""

    name = "tau"
    expects = "a JSON array whose rows have `task_id` and `traj`"

    def recognises(self, document: Document) -> bool:
        """Whether the rows look like tau-bench's."""
        rows = document.shape in (Shape.ARRAY, Shape.LINES)
        return rows and {"task_id", "traj"} <= set(document.keys)

    def read(self, document: Document) -> Reading:
        """Read all rollouts; a row that cannot be read is set aside as a fault."""
        if not document.keys or document.shape is Shape.OBJECT:
            raise UnreadableError(f"{document.describe()}; wanted is {self.expects}")
        reading = Reading(document.source, self.name)
        rollouts: list[tuple[int, _Row, CallLog]] = []
        for number, row in document.decoded_rows(_Row):
            try:
                if isinstance(row, UnreadableError):
                    raise row
                rollouts.append((number, row, _calls(row.traj or [])))
            except UnreadableError as error:
                reading.faults.append(Fault(document.source, f"row {number}", str(error), "rollouts"))
        no_trial = any(row.trial for _, row, _ in rollouts) and all(
            str(row.trial) == str(row.task_id) for _, row, _ in rollouts
        )
        if no_trial:
            reading.remarks.append("trial equals task_id in every row: taken as no trial, all set to 0")
        if unmatched := sum(calls.unmatched for _, _, calls in rollouts):
            reading.remarks.append(f"{unmatched} results answer no recorded call: left out")
        benchmark = _benchmark(Counter(tool for _, _, calls in rollouts for tool in calls.tools()))
        for number, row, calls in rollouts:
            trial = 0 if no_trial else row.trial or 0
            reading.trajectories.append(_trajectory(row, calls, benchmark, trial, document.source, number))
        return reading


def _calls(messages: list[_Message]) -> CallLog:
    log = CallLog()
    for message in messages:
        if message.role in ("tool", "function"):
            log.result(message.content, None, message.tool_call_id)
        elif message.role == "user":
            log.hear(message.content)
        elif message.role == "assistant":
            log.speak()
            if message.tool_calls:
                log.message()
                for call in message.tool_calls:
                    function = call.function or _Function()
                    log.call(function.name, _arguments(function.arguments), call.id)
            elif message.function_call:
                log.message()
                log.call(message.function_call.name, message.function_call.arguments)
    return log


def _arguments(written: Any) -> Any:
    """Arguments of a call; a log that writes them as Python has made a text of each value first, lists too."""
    if not isinstance(written, str) or not written.startswith("{'") or "[" not in written:
        return written
    decoded = decode_arguments(written)
    if not isinstance(decoded, dict):
        return decoded
    lists = {name: literal(value, "[") for name, value in decoded.items() if isinstance(value, str)}
    return decoded | {name: value for name, value in lists.items() if isinstance(value, list)}


def _trajectory(row: _Row, calls: CallLog, benchmark: str, trial: int, source: str, number: int) -> Trajectory:
    error = row.info.error if row.info else None
    crashed = bool(error) or not row.traj
    return Trajectory(
        task_id=str(row.task_id),
        calls=calls.calls(),
        ending=Ending.CRASHED if crashed else Ending.COMPLETED,
        benchmark=benchmark,
        trial=trial,
        reward=None if row.reward is None else float(row.reward),
        source=source,
        row=number,
        reason=(first_line(error) or "no messages and no error recorded") if crashed else None,
        turns=calls.turns,
        said=calls.said,
    )


def _benchmark(tools: Counter[str]) -> str:
    """Domain whose own tools the agents called; they may have made up a few of the other domain's."""
    seen = {name: sum(tools[tool] for tool in own) for name, own in DOMAIN_TOOLS.items()}
    domain = max(seen, key=lambda name: seen[name])
    return domain if 10 * seen[domain] > 9 * sum(seen.values()) else "tau"
