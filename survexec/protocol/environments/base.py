"""What an environment is: exposed tools, a state that calls change, and the tasks of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from survexec.protocol.trajectory import Call


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is exposed to the agent.

    Parameters
    ----------
    name : str
    schema : dict
        JSON Schema of its arguments, an object.
    positional : tuple of str
        Names of its parameters in the order in which positional arguments are bound.
    changes : bool
        Whether a call that is accepted must change the state: one that did not is inconsistent with it.
    """

    name: str
    schema: dict[str, Any]
    positional: tuple[str, ...] = ()
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment answered to a call.

    Parameters
    ----------
    text : str
        As the agent sees it.
    error : bool
        Whether the environment itself says that it refused; where it only says so in words, the catalogue of the
        benchmark tells.
    """

    text: str
    error: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a benchmark.

    Parameters
    ----------
    task_id : str
    stratum : str or None
        Group of the task within its benchmark, such as a BFCL category or a tau2 split.
    turns : tuple of str
        What the user says in each turn, where the benchmark fixes it.
    reference : tuple of Call
        The benchmark's own solution, each call with its turn.
    user_calls : tuple of (int, Call)
        What the user does in that solution, each call with the number of the agent's calls before it.
    missing : frozenset of int
        Turns in which something that the request needs has not been given yet: a call that needs it lacks information.
    withheld : mapping of int to frozenset of str
        Turn -> tools that the task needs and holds back in that turn.
    data : any
        What the environment itself needs to reset to this task.
    """

    task_id: str
    stratum: str | None = None
    turns: tuple[str, ...] = ()
    reference: tuple[Call, ...] = ()
    user_calls: tuple[tuple[int, Call], ...] = ()
    missing: frozenset[int] = frozenset()
    withheld: Mapping[int, frozenset[str]] = field(default_factory=dict)
    data: Any = None


class Environment(Protocol):
    """A benchmark's environment, deterministic: the same calls after the same reset give the same answers.

    One instance lives in a child process and serves many rollouts, each after a `reset`. It runs no text of the log:
    a call is the name of a tool and decoded arguments. A class whose options depend on the rollout may have a static
    method ``options_for(trajectory)`` that gives them.
    """

    benchmark: str
    version: str

    def tasks(self) -> Sequence[str]:
        """Ids of the tasks, in the benchmark's order."""

    def task(self, task_id: str) -> Task:
        """One task; raises KeyError where there is none of this id."""

    def reset(self, task: Task) -> None:
        """Put the world into the state that the task starts from."""

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """The tools exposed to the agent in a turn, by name."""

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute an exposed tool, or one that the task withholds; whatever it raises counts as refused.

        The arguments may break the schema: the verdict on that is made elsewhere, but what the call does to the state
        is for the environment to say, as it was in the real run.
        """

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Execute a tool of the user."""

    def snapshot(self) -> bytes:
        """A digest of the state: equal before and after a call that changed nothing."""

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """Whether the calls made since the reset solved the task, by the benchmark's own check; None if it cannot tell.

        `calls` are those that were executed, with decoded arguments; `answers` the texts that came back, one for each.
        """


def copied(value: Any) -> Any:
    """Copy what JSON can hold, several times as fast as `copy.deepcopy`.

    Examples
    --------
    >>> given = {"colours": ["red"]}
    >>> copied(given)["colours"].append("blue")
    >>> given
    {'colours': ['red']}
    """
    if type(value) is dict:
        return {name: copied(part) if type(part) in (dict, list) else part for name, part in value.items()}
    if type(value) is list:
        return [copied(part) if type(part) in (dict, list) else part for part in value]
    return value
