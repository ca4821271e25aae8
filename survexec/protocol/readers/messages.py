"""Chat messages: their text, the calls in them, and the results that answer the calls."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec

from survexec.protocol.readers.documents import one_line
from survexec.protocol.trajectory import Call

LITERAL_LIMIT = 100_000  # characters; longer text that is no JSON is kept as text
_JSON = msgspec.json.Decoder()


def first_line(value: Any) -> str:
    """First line of an error that a log recorded, shortened."""
    return one_line(next(iter(text_of(value).strip().splitlines()), ""))


def text_of(content: Any) -> str:
    """Content of a message as text: a string, a list of parts, or whatever stands in its place."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return _written(content)


def _part(part: Any) -> str:
    if isinstance(part, dict):
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return part if isinstance(part, str) else _written(part)


def _written(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "(nested too deep to be shown)"


def decode_arguments(value: Any) -> dict[str, Any] | str | None:
    """Arguments of a call: an object, a JSON string, the repr of a Python dict, or else the text itself.

    Examples
    --------
    >>> decode_arguments('{"user_id": "mia"}'), decode_arguments("{'user_id': 'mia'}")
    ({'user_id': 'mia'}, {'user_id': 'mia'})
    >>> decode_arguments("user mia, please")
    'user mia, please'
    """
    if value is None or isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return _written(value)
    if not value.strip():
        return None
    try:
        decoded = _JSON.decode(value)
    except (ValueError, RecursionError):
        decoded = literal(value.strip(), "{")
    return decoded if isinstance(decoded, dict) else value


def literal(text: str, opening: str) -> Any:
    """Value of a Python literal that begins so and that JSON can hold too, else None.

    Examples
    --------
    >>> literal("['1', '2']", "["), literal("['1', id]", "[")
    (['1', '2'], None)
    """
    if len(text) >= LITERAL_LIMIT or not text.startswith(opening):
        return None
    try:
        if '"' not in text and "\\" not in text:
            # Python writes every string of such a text in single quotes: as JSON it is read ten times faster.
            return _JSON.decode(text.replace("'", '"'))
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the log's text
            value = ast.literal_eval(text)
        msgspec.json.encode(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value


class CallLog:
    """Calls in order, the results that come back for them, and what the user said in between.

    A result finds its call by id. One without an id goes to the first unanswered call of the latest message;
    one whose id no call has, to the first there that has no id either.

    A turn is all that the agent says and does after it has heard the user and before it hears the user again; what it
    says before it has heard anything belongs to the first.
    """

    def __init__(self) -> None:
        # An entry is [tool, arguments, call id, observation, error, turn].
        self._entries: list[list[Any]] = []
        self._by_id: dict[str | int, list[list[Any]]] = {}
        self._latest: list[list[Any]] = []
        self._said: list[tuple[int, str]] = []
        self._turn = -1
        self._heard = False
        self.unmatched = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def turns(self) -> int:
        """Turns so far, the one that goes on included; at least one."""
        return max(self._turn, 0) + 1

    @property
    def said(self) -> tuple[tuple[int, str], ...]:
        """What the user said, each text with the number of calls before it."""
        return tuple(self._said)

    def hear(self, content: Any) -> None:
        """Add what the user said."""
        text = text_of(content)
        if text:
            self._said.append((len(self._entries), text))
            self._heard = True

    def speak(self) -> None:
        """Begin a turn, if the user was heard since the agent spoke last."""
        if self._heard:
            self._turn += 1
            self._heard = False

    def message(self) -> None:
        """Begin the calls of another message."""
        self._latest = []

    def call(self, tool: str | None, arguments: Any, call_id: str | int | None = None) -> None:
        """Add a call to the message."""
        entry = [tool or "", arguments, call_id, None, None, max(self._turn, 0)]
        self._entries.append(entry)
        self._latest.append(entry)
        if call_id:
            self._by_id.setdefault(call_id, []).append(entry)

    def result(self, content: Any, error: bool | None = None, call_id: str | int | None = None) -> None:
        """Give a result to the call that it answers; `unmatched` counts those that answer none."""
        if call_id in self._by_id:
            candidates = self._by_id[call_id]
        else:
            candidates = [entry for entry in self._latest if not (call_id and entry[2])]
        for entry in candidates:
            if entry[3] is None:
                entry[3] = text_of(content)
                entry[4] = error
                return
        self.unmatched += 1

    def tools(self) -> Iterator[str]:
        """Name of the tool of every call."""
        return (entry[0] for entry in self._entries)

    def calls(self) -> tuple[Call, ...]:
        """All calls with what came of them."""
        return tuple(
            [
                Call(tool, decode_arguments(arguments), observation, error, turn)
                for tool, arguments, _, observation, error, turn in self._entries
            ]
        )


class UserCallLog(CallLog):
    """Calls of the user, each with its place among those of the agent.

    Parameters
    ----------
    agent : CallLog
        Of the same conversation; the calls are in its turns.
    """

    def __init__(self, agent: CallLog) -> None:
        super().__init__()
        self._agent = agent
        self._before: list[int] = []

    def call(self, tool: str | None, arguments: Any, call_id: str | int | None = None) -> None:
        """Add a call to the message."""
        super().call(tool, arguments, call_id)
        self._entries[-1][-1] = self._agent.turns - 1
        self._before.append(len(self._agent))

    def placed(self) -> tuple[tuple[int, Call], ...]:
        """All calls with what came of them, each with the number of the agent's calls before it."""
        return tuple(zip(self._before, self.calls(), strict=True))
