"""What an agent did: calls, verdicts and trajectories. This module imports nothing of survexec."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

# What stands for a benchmark, model or method that a log does not name.
UNKNOWN: Final = "unknown"


class Ending(StrEnum):
    """How a rollout ended.

    ``completed``: it stopped by itself. ``truncated``: a step, token, time or error limit cut it, which
    censors its first-error depth. ``crashed``: the infrastructure failed, so there is no verdict on the agent.
    """

    COMPLETED = "completed"
    TRUNCATED = "truncated"
    CRASHED = "crashed"


class ErrorClass(StrEnum):
    """Root cause of a call that could not be executed, in order of priority: the first that applies names it.

    ``unclassified`` is what the catalogues do not know; it is counted, never guessed.
    """

    SCHEMA = "schema"
    DEPENDENCY = "dependency"
    PRECONDITION = "precondition"
    STATE_CONSISTENCY = "state-consistency"
    INFORMATION = "information"
    UNCLASSIFIED = "unclassified"


class Outcome(StrEnum):
    """What became of one call.

    ``ok``: executed, a negative answer included. ``invalid``: refused. ``infrastructure``: never reached the
    environment, so it is no action of the agent. ``unjudged``: no result was recorded.
    """

    OK = "ok"
    INVALID = "invalid"
    INFRASTRUCTURE = "infrastructure"
    UNJUDGED = "unjudged"


class Rule(StrEnum):
    """What counts as executable.

    ``strict``: any refusal by the environment is an error (the paper's rule). ``lookup``: a read-only call that
    found nothing gave an answer and is ok. ``interface``: only schema and dependency faults are errors.
    """

    STRICT = "strict"
    LOOKUP = "lookup"
    INTERFACE = "interface"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the agent and what the log says came of it.

    Parameters
    ----------
    tool : str
        Name of the tool as the agent wrote it.
    arguments : dict or str or None
        Decoded arguments; the text itself where it could not be decoded; None where there was none.
    observation : str or None
        What came back. None: no result was recorded.
    error : bool or None
        The log's own error flag. None: the format has no flag, or it was not set.
    turn : int
        The turn of the conversation it was made in, from 0, where the format has turns.
    """

    tool: str
    arguments: dict[str, Any] | str | None = None
    observation: str | None = None
    error: bool | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one call, independent of the rule in force.

    Parameters
    ----------
    outcome : Outcome
        As the environment had it (the strict rule).
    error_class : ErrorClass or None
        Given for invalid calls only.
    message : str or None
        The refusal, without its prefix. Given for invalid and infrastructure calls.
    lookup : bool
        True where the refusal is the answer of a read-only call that found nothing.
    classes : tuple of ErrorClass
        Every class that applies, in order of priority; the first is `error_class`. Empty for a call that is ok.
    """

    outcome: Outcome
    error_class: ErrorClass | None = None
    message: str | None = None
    lookup: bool = False
    classes: tuple[ErrorClass, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout as a log recorded it.

    Parameters
    ----------
    task_id : str
        Identity of the task within its benchmark.
    calls : tuple of Call
        The agent's tool calls in order; parallel calls in one message are several calls.
    ending : Ending
        How it ended.
    benchmark, model, method : str or None
        What the log itself says; None where it says nothing.
    trial : int
        Which repetition of the task, from 0.
    stratum : str or None
        Group of the task within its benchmark.
    reward : float or None
        Score of the final state; None where none was recorded. Success is reward >= a stated threshold.
    tokens, latency_s, cost_usd : float or None
        What the agent used; None where not recorded.
    source : str
        File the rollout came from.
    row : int
        Position in that file, from 1.
    reason : str or None
        Why it was cut or crashed, in the log's words.
    turns : int
        Turns of the conversation, those without a call included; 1 where the format has none.
    said : tuple of (int, str)
        What the user said, each text with the number of the agent's calls before it.
    user_calls : tuple of (int, Call)
        Calls of the user, each with the number of the agent's calls before it: replayed, since they change the state,
        but never judged.
    """

    task_id: str
    calls: tuple[Call, ...]
    ending: Ending
    benchmark: str | None = None
    model: str | None = None
    method: str | None = None
    trial: int = 0
    stratum: str | None = None
    reward: float | None = None
    tokens: float | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    source: str = ""
    row: int = 0
    reason: str | None = None
    turns: int = 1
    said: tuple[tuple[int, str], ...] = ()
    user_calls: tuple[tuple[int, Call], ...] = ()
