"""A phone: contacts, messages, reminders, settings. Small on purpose, it shows how an environment is written.

An environment needs tools with a JSON Schema, a state, the tasks, and answers that say plainly when it refuses. What
its refusals mean stands beside the others in `catalogues/phone.toml`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from survexec.protocol.environments.base import Observation, Task, Tool
from survexec.protocol.judging import interface_of
from survexec.protocol.trajectory import Call

_TEXT: Final = {"type": "string"}
_SWITCH: Final = {"type": "boolean"}
_START: Final = {
    "contacts": {
        "c1": {"name": "Ann Mills", "phone_number": "+358409999"},
        "c2": {"name": "Bo Lund", "phone_number": "+358401234"},
    },
    "messages": {},
    "reminders": {"r1": {"text": "water the plants", "time": "18:00"}},
    "settings": {"wifi": True, "cellular": False, "low_battery": False},
}


def _tool(tool: str, /, optional: Mapping[str, Any] | None = None, changes: bool = True, **required: Any) -> Tool:
    properties = {**required, **(optional or {})}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(tool, schema, tuple(properties), changes)


_TOOLS: Final = {
    tool.name: tool
    for tool in (
        _tool("add_contact", name=_TEXT, phone_number={"type": "string", "pattern": "^[+][0-9]{6,15}$"}),
        _tool("search_contacts", {"name": _TEXT, "phone_number": _TEXT}, changes=False),
        _tool("remove_contact", contact_id=_TEXT),
        _tool("send_message", phone_number=_TEXT, text=_TEXT),
        _tool("add_reminder", text=_TEXT, time={"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}),
        _tool("remove_reminder", reminder_id=_TEXT),
        _tool("set_wifi", on=_SWITCH),
        _tool("set_cellular", on=_SWITCH),
        _tool("set_low_battery", on=_SWITCH),
    )
}

_TASKS: Final = (
    Task(
        "remove_contact",
        "contacts",
        ("Remove the contact with the number +358401234.",),
        (Call("search_contacts", {"phone_number": "+358401234"}), Call("remove_contact", {"contact_id": "c2"})),
    ),
    Task(
        "send_message",
        "messages",
        ("Tell Ann that I am late.",),
        (
            Call("search_contacts", {"name": "Ann"}),
            Call("set_cellular", {"on": True}),
            Call("send_message", {"phone_number": "+358409999", "text": "I am late."}),
        ),
    ),
    # The number comes with the second turn only.
    Task(
        "add_contact",
        "contacts",
        ("Add Cleo to my contacts.", "Her number is +358405555."),
        (Call("add_contact", {"name": "Cleo", "phone_number": "+358405555"}, turn=1),),
        missing=frozenset({0}),
    ),
    # The tool comes with the second turn only.
    Task(
        "add_reminder",
        "reminders",
        ("Remind me at 07:30 to call Bo.", "You can set reminders now."),
        (Call("add_reminder", {"text": "call Bo", "time": "07:30"}, turn=1),),
        withheld={0: frozenset({"add_reminder"})},
    ),
)


class RefusedError(Exception):
    """The phone does not do it; the text says why."""


class Phone:
    """The phone as an `Environment`."""

    benchmark = "phone"
    version = "1"

    def __init__(self) -> None:
        self._task = _TASKS[0]
        self._state: dict[str, Any] = {}
        self.reset(self._task)

    def tasks(self) -> Sequence[str]:
        """Ids of the tasks."""
        return [task.task_id for task in _TASKS]

    def task(self, task_id: str) -> Task:
        """One task."""
        return {task.task_id: task for task in _TASKS}[task_id]

    def reset(self, task: Task) -> None:
        """Put the phone into its first state."""
        self._task, self._state = task, json.loads(json.dumps(_START))

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """All tools but those that the task holds back."""
        held_back = self._task.withheld.get(turn, frozenset())
        return {name: tool for name, tool in _TOOLS.items() if name not in held_back}

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Use the phone."""
        if misfit := interface_of(_TOOLS[name]).fault(arguments):
            return Observation(misfit, error=True)
        try:
            return Observation(json.dumps(getattr(self, f"_{name}")(**arguments)))
        except RefusedError as refusal:
            return Observation(str(refusal), error=True)

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """The user holds the same phone."""
        return self.call(name, arguments)

    def snapshot(self) -> bytes:
        """The state as JSON."""
        return json.dumps(self._state).encode()

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """Whether the phone is as the reference solution leaves it."""
        reference = Phone()
        for call in self._task.reference:
            reference.call(call.tool, dict(call.arguments or {}))  # type: ignore[arg-type]
        return reference.snapshot() == self.snapshot()

    def _add_contact(self, name: str, phone_number: str) -> str:
        return self._add("contacts", name=name, phone_number=phone_number)

    def _search_contacts(self, name: str = "", phone_number: str = "") -> dict[str, Any]:
        contacts = self._state["contacts"].items()
        found = {key: one for key, one in contacts if name in one["name"] and phone_number in one["phone_number"]}
        return found or _refuse("no contact was found")

    def _remove_contact(self, contact_id: str) -> str:
        return self._remove("contacts", contact_id)

    def _send_message(self, phone_number: str, text: str) -> str:
        if not self._state["settings"]["cellular"]:
            _refuse("cellular is off")
        if len(self._state["messages"]) >= 3:
            _refuse("the network did not take the message")
        return self._add("messages", to=phone_number, text=text)

    def _add_reminder(self, text: str, time: str) -> str:
        return self._add("reminders", text=text, time=time)

    def _remove_reminder(self, reminder_id: str) -> str:
        return self._remove("reminders", reminder_id)

    def _set_wifi(self, on: bool) -> str:
        return self._switch("wifi", on)

    def _set_cellular(self, on: bool) -> str:
        return self._switch("cellular", on)

    def _set_low_battery(self, on: bool) -> str:
        if on:
            self._state["settings"].update(wifi=False, cellular=False)
        return self._switch("low_battery", on)

    def _add(self, table: str, **entry: str) -> str:
        rows = self._state[table]
        key = f"{table[0]}{1 + max((int(known[1:]) for known in rows), default=0)}"
        rows[key] = entry
        return key

    def _remove(self, table: str, key: str) -> str:
        if key not in self._state[table]:
            _refuse(f"none of the {table} has the id {key!r}")
        del self._state[table][key]
        return "removed"

    def _switch(self, setting: str, on: bool) -> str:
        settings = self._state["settings"]
        if on and settings["low_battery"] and setting != "low_battery":
            _refuse(f"{setting} cannot be turned on while the battery is low")
        settings[setting] = on
        return f"{setting} is {'on' if on else 'off'}"


def _refuse(why: str) -> Any:
    raise RefusedError(why)
