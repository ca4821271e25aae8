"""The state of a tau2 domain: what calls changed in it, and how it is put back before the next rollout.

Building a domain takes a fraction of a second and copying it as much, so neither is done for each rollout.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Protocol


class State(Protocol):
    """The databases of a domain."""

    def restore(self) -> None:
        """Put everything back to what it was at first."""

    def digest(self) -> bytes:
        """Equal for equal contents, as the benchmark compares them: as JSON, whatever the order of members."""


def state_of(environment: Any) -> State:
    """The state of an environment of the benchmark, in the way that suits its size.

    Parameters
    ----------
    environment : tau2.environment.environment.Environment
        Just built: what its databases hold now is what `State.restore` puts back.

    Returns
    -------
    State
    """
    database = environment.tools.db
    tables = [name for name in type(database).model_fields if _is_table(getattr(database, name))]
    if environment.user_tools is None and len(tables) == len(type(database).model_fields):
        return Tables(environment, tables)
    return Copies(environment)


class Tables:
    """A large database that is nothing but tables: only rows that were looked up are watched.

    Parameters
    ----------
    environment : tau2.environment.environment.Environment
    names : list of str
        Its tables.

    Notes
    -----
    Every tool that changes a row looks it up by its key first; searches go through all rows and change none.
    """

    def __init__(self, environment: Any, names: list[str]) -> None:
        self._environment = environment
        self._database = environment.tools.db
        self._tables = {name: Table(getattr(self._database, name)) for name in names}
        for name, table in self._tables.items():
            setattr(self._database, name, table)

    def restore(self) -> None:
        """Put changed rows back."""
        # initial data of a task replaces the database by another
        self._environment.tools.db = self._database
        for table in self._tables.values():
            table.restore()

    def digest(self) -> bytes:
        """What differs from the beginning."""
        if self._environment.tools.db is not self._database:
            return as_json(self._environment.tools.db).encode()
        changed = {name: changes for name, table in self._tables.items() if (changes := table.changes())}
        return json.dumps(changed, sort_keys=True).encode()


class Table(dict[str, Any]):
    """A table whose rows, pydantic models, are remembered as they were when they were first looked up.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> row = SimpleNamespace(status="pending")
    >>> row.model_dump = lambda warnings: {"status": row.status}
    >>> table = Table({"#W1": row})
    >>> table["#W1"].status = "cancelled"
    >>> table.changes()
    {'#W1': '{"status": "cancelled"}'}
    """

    def __init__(self, rows: dict[str, Any]) -> None:
        super().__init__(rows)
        self._first: dict[str, tuple[type, dict[str, Any], str] | None] = {}
        self._looked_up: set[str] = set()
        self._changed: dict[str, str | None] = {}

    def __getitem__(self, key: str) -> Any:
        row = super().__getitem__(key)
        self._look_up(key)
        return row

    def __setitem__(self, key: str, row: Any) -> None:
        self._look_up(key)
        super().__setitem__(key, row)

    def changes(self) -> dict[str, str | None]:
        """Rows that are not as they were, as JSON; None for one that is gone."""
        for key in self._looked_up:
            first = self._first[key]
            now = as_json(super().__getitem__(key)) if key in self else None
            if now == (first and first[2]):
                self._changed.pop(key, None)
            else:
                self._changed[key] = now
        self._looked_up.clear()
        return self._changed

    def restore(self) -> None:
        """Put changed rows back; the other rows stay what they are."""
        for key in self.changes():
            first = self._first[key]
            if first is None:
                del self[key]
            else:
                kind, contents, _ = first
                super().__setitem__(key, kind.model_validate(contents))  # type: ignore[attr-defined]
        self._changed.clear()

    def _look_up(self, key: str) -> None:
        self._looked_up.add(key)
        if key not in self._first:
            row = self.get(key)
            self._first[key] = None if row is None else (type(row), _contents(row), as_json(row))


class Copies:
    """Small databases, of the agent's tools and the user's: copied whole.

    Parameters
    ----------
    environment : tau2.environment.environment.Environment
    """

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        kits = [kit for kit in (environment.tools, environment.user_tools) if kit is not None]
        for kit in kits:
            # what tools keep in their class would pass from one rollout to the next
            for name, value in vars(type(kit)).items():
                if hasattr(value, "model_dump") and not isinstance(value, type):
                    setattr(kit, name, value)
        self._first = pickle.dumps((environment.tools, environment.user_tools), pickle.HIGHEST_PROTOCOL)

    def restore(self) -> None:
        """Begin with new copies."""
        # bytes that this process made itself
        self._environment.tools, self._environment.user_tools = pickle.loads(self._first)  # noqa: S301

    def digest(self) -> bytes:
        """All of both databases."""
        kits = (self._environment.tools, self._environment.user_tools)
        return "\n".join(as_json(kit.db) for kit in kits if kit is not None).encode()


def as_json(model: Any) -> str:
    """A pydantic model as the benchmark writes it to compare two."""
    return json.dumps(_contents(model), sort_keys=True, default=str)


def _contents(model: Any) -> dict[str, Any]:
    # tools put values into models unchecked, of which pydantic would warn
    contents: dict[str, Any] = model.model_dump(warnings=False)
    return contents


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(hasattr(row, "model_dump") for row in value.values())
