"""Replay: every call of a trajectory again, in the benchmark's own environment, and the verdict on each.

The state follows the real run. So a call is executed whenever its arguments can be decoded and its tool is there, also
where it does not fit the tool's schema or where the agent lacked information: the verdict is ours, but whether the
state changes is for the environment to say, as it was then.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

from survexec.errors import SurvexecError
from survexec.protocol.catalogues import catalogue_for, is_infrastructure, message_of
from survexec.protocol.environments.base import Environment, Observation, Tool, copied
from survexec.protocol.information import TEXT_LIMIT, Knowledge, Lack, lack_of
from survexec.protocol.judging import Interface, interface_of, is_refused, judge
from survexec.protocol.literals import UnreadableCallError
from survexec.protocol.trajectory import Call, ErrorClass, Outcome, Trajectory, Verdict

ARGUMENTS_LIMIT: Final = 1_000_000  # characters of the arguments of a call, as JSON
_DEEPEST: Final = 100  # levels of the arguments of a call
_JSON: Final = json.JSONEncoder(allow_nan=False)
_TOO_DEEP: Final = "arguments that are nested too deep"


class UnreplayableError(SurvexecError):
    """A rollout cannot be replayed: its task is unknown, or the environment itself fails."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What replay found.

    Parameters
    ----------
    verdicts : tuple of Verdict
        One per call; `survexec.protocol.checker.checked` places them. Empty where the rollout could not be replayed.
    observations : tuple of Observation or None
        What the environment answered now. None: the call was not executed, or it exceeded a limit.
    changed : tuple of bool
        Whether each call changed the state.
    success : bool or None
        By the benchmark's own check; None where it cannot tell.
    fault : str or None
        Why the rollout could not be replayed or, beside verdicts, why its success is not known.
    """

    verdicts: tuple[Verdict, ...] = ()
    observations: tuple[Observation | None, ...] = ()
    changed: tuple[bool, ...] = ()
    success: bool | None = None
    fault: str | None = None


class Step(NamedTuple):
    """One call of a script, of the agent or of the user; `fault` says why its arguments cannot be taken at all."""

    by_user: bool
    tool: str
    arguments: str | None
    fault: str | None
    turn: int
    observation: str | None


class Judged(NamedTuple):
    """What came of one step; `verdict` is None for a call of the user."""

    verdict: Verdict | None
    observation: Observation | None
    changed: bool


class Script(NamedTuple):
    """A trajectory as replay needs it: made of what JSON can hold, so that it crosses to another process as it is."""

    task_id: str
    turns: int
    said: tuple[tuple[int, str], ...]
    steps: tuple[Step, ...]


def replay(environment: Environment, trajectory: Trajectory) -> Replayed:
    """Replay a trajectory in this process, without limits of time or memory.

    Parameters
    ----------
    environment : Environment
        It is reset first.
    trajectory : Trajectory
        What an agent did.

    Returns
    -------
    Replayed

    See Also
    --------
    survexec.protocol.replaying.replay_all : Many trajectories, in processes of their own with limits.

    Examples
    --------
    The worked example of the paper: the phone number is refused as an id, a search finds the id, then it works.

    >>> from survexec.protocol.checker import checked
    >>> from survexec.protocol.environments import load
    >>> from survexec.protocol.trajectory import Call, Ending, Rule, Trajectory
    >>> calls = (
    ...     Call("remove_contact", {"contact_id": "+358401234"}),
    ...     Call("search_contacts", {"phone_number": "+358401234"}),
    ...     Call("remove_contact", {"contact_id": "c2"}),
    ... )
    >>> rollout = Trajectory("remove_contact", calls, Ending.COMPLETED)
    >>> replayed = replay(load("phone"), rollout)
    >>> found = checked(rollout, replayed.verdicts)
    >>> found.length, found.first_error(Rule.STRICT), replayed.success
    (3, (1, <ErrorClass.DEPENDENCY: 'dependency'>, 1), True)
    """
    script = prepare(trajectory)
    exceeded: dict[int, str] = {}
    while True:
        steps: list[Judged] = []
        run = perform(environment, script, exceeded)
        begun = False
        try:
            begun = next(run) is None
            while step := next(run):
                steps.append(step)
        except StopIteration as end:
            return collect(steps, *end.value)
        except SurvexecError as error:
            return Replayed(fault=clean(str(error)))
        except MemoryError:
            if not begun or len(steps) in exceeded:
                return Replayed(fault="the reset ran out of memory")
            exceeded[len(steps)] = "ran out of memory"


def prepare(trajectory: Trajectory) -> Script:
    """Calls of the agent and of the user in the order in which they were made.

    Parameters
    ----------
    trajectory : Trajectory

    Returns
    -------
    Script
    """
    steps: list[Step] = []
    of_user = sorted(trajectory.user_calls, key=lambda entry: entry[0])
    position = 0
    for number, call in enumerate(trajectory.calls):
        while position < len(of_user) and of_user[position][0] <= number:
            steps.append(_step(of_user[position][1], by_user=True))
            position += 1
        steps.append(_step(call, by_user=False))
    steps += [_step(call, by_user=True) for _, call in of_user[position:]]
    said = tuple((before, clean(text)) for before, text in sorted(trajectory.said, key=lambda entry: entry[0]))
    return Script(clean(trajectory.task_id), trajectory.turns, said, tuple(steps))


def clean(text: str) -> str:
    r"""A text that can be written as UTF-8: half a surrogate pair, as some logs hold, becomes a question mark.

    Examples
    --------
    >>> clean("caf\u00e9 \ud83d")
    'caf\xe9 ?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def collect(steps: list[Judged], success: bool | None, fault: str | None) -> Replayed:
    """Put the steps of a replay together, without those of the user."""
    of_agent = [(step.verdict, step.observation, step.changed) for step in steps if step.verdict is not None]
    if not of_agent:
        return Replayed(success=success, fault=fault)
    verdicts, observations, changed = zip(*of_agent, strict=True)
    return Replayed(verdicts, observations, changed, success, fault)


def perform(
    environment: Environment, script: Script, exceeded: Mapping[int, str]
) -> Generator[Judged | None, None, tuple[bool | None, str | None]]:
    """Perform a script step by step.

    Parameters
    ----------
    environment : Environment
    script : Script
    exceeded : mapping of int to str
        Steps, by number, that exceeded a limit in an earlier attempt, and which: they are not executed again.

    Yields
    ------
    Judged or None
        First None, when the environment has been reset; then what came of each step, as soon as it is known.

    Returns
    -------
    success : bool or None
    fault : str or None
        Why success is not known.

    Raises
    ------
    UnreplayableError
        If the task is unknown or the environment itself fails.
    MemoryError
        If the environment ran out of memory.
    """
    try:
        world = _World(environment, script)
        yield None
        for number, step in enumerate(script.steps):
            act = world.user_step if step.by_user else world.step
            yield act(step, exceeded.get(number))
    except (SurvexecError, MemoryError):
        raise
    except Exception as error:
        raise UnreplayableError(f"the environment failed: {_told(error)}") from error
    if len(script.steps) in exceeded:
        return None, f"the success check {exceeded[len(script.steps)]}"
    return world.succeeded(script.turns)


def _step(call: Call, *, by_user: bool) -> Step:
    arguments, fault = _encoded(call.arguments)
    observation = None if call.observation is None else clean(call.observation[:TEXT_LIMIT])
    return Step(by_user, clean(call.tool), arguments, fault, call.turn, observation)


def _encoded(arguments: dict[str, Any] | str | None) -> tuple[str | None, str | None]:
    """Arguments as JSON, or why they cannot be taken."""
    try:
        text = _JSON.encode(arguments)
    except RecursionError:
        return None, _TOO_DEEP
    except (TypeError, ValueError) as error:
        return None, f"arguments that are no JSON: {error}"
    if len(text) > ARGUMENTS_LIMIT:
        return None, f"arguments of {len(text):,} characters; at most {ARGUMENTS_LIMIT:,} are taken"
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(arguments):
        return None, _TOO_DEEP
    return text, None


def _is_deep(value: Any) -> bool:
    """Whether a value has more levels than `_DEEPEST`; found without recursion, which is what they would break."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inner for part in parts]
    return bool(level)


class _World:
    """An environment in the middle of a replay."""

    def __init__(self, environment: Environment, script: Script) -> None:
        self._environment = environment
        try:
            self._task = environment.task(script.task_id)
        except KeyError:
            name = f"{environment.benchmark} {environment.version}".strip()
            raise UnreplayableError(f"there is no task {_short(script.task_id)} in {name}") from None
        environment.reset(self._task)
        self._state = environment.snapshot()
        self._catalogue = catalogue_for(environment.benchmark)
        self._knowledge = Knowledge()
        self._turn, self._exposed = -1, cast(Mapping[str, Tool], {})
        self._said, self._heard = script.said, 0
        self._seen = 0  # calls of the agent so far
        self._made: list[Call] = []

    def step(self, step: Step, exceeded: str | None) -> Judged:
        """Execute and judge a call of the agent."""
        self._listen(step.turn)
        self._seen += 1
        if step.observation is not None and is_infrastructure(step.observation):
            return Judged(Verdict(Outcome.INFRASTRUCTURE, message=message_of(step.observation)), None, False)
        tool = self._exposed.get(step.tool)
        withheld = step.tool in self._task.withheld.get(step.turn, ())
        interface = interface_of(tool) if tool else None
        arguments, fault = _decoded(step, interface)
        answer, changed = None, False
        if arguments is not None and (tool or withheld) and exceeded is None:
            answer = self._execute(step.tool, arguments)
            changed = self._has_changed()
            self._made.append(Call(step.tool, arguments, answer.text, answer.error, step.turn))
        said = answer or Observation(exceeded or fault or "", error=True)
        refused = is_refused(step.tool, said, self._catalogue)
        lack = Lack(f"the tool {_short(step.tool)} is held back in this turn", True) if withheld else None
        if lack is None and arguments is not None:
            lack = self._lack(step, interface, arguments, refused and exceeded is None)
        verdict = judge(
            step.tool,
            answer or (said if exceeded else None),
            refused=refused,
            fault=fault,
            error_class=ErrorClass.STATE_CONSISTENCY if exceeded else None,
            idle=bool(tool and tool.changes) and not changed,
            lack=lack,
            catalogue=self._catalogue,
        )
        for text in (answer and answer.text, step.observation):
            if text:
                self._knowledge.add(text)
        return Judged(verdict, answer, changed)

    def user_step(self, step: Step, exceeded: str | None) -> Judged:
        """Execute a call of the user: what it says of it matters to nobody here, what it changes does."""
        lost = step.observation is not None and is_infrastructure(step.observation)
        arguments = json.loads(step.arguments or "null") or {}
        if lost or exceeded or step.fault or not isinstance(arguments, dict):
            return Judged(None, None, False)
        try:
            self._environment.user_call(step.tool, arguments)
        except MemoryError:
            raise
        except (Exception, SystemExit):  # noqa: S110 - refused, as it was then
            pass
        return Judged(None, None, self._has_changed())

    def succeeded(self, turns: int) -> tuple[bool | None, str | None]:
        """Whether the task was solved, or why that is not known."""
        answers = [call.observation or "" for call in self._made]
        try:
            found = self._environment.succeeded(self._made, answers, turns)
        except MemoryError:
            raise
        except Exception as error:
            return None, f"the success check failed: {_told(error)}"
        return (None if found is None else bool(found)), None

    def _listen(self, turn: int) -> None:
        """Take in what the user said before this call, and the tools of its turn."""
        if turn != self._turn:
            for text in self._task.turns[max(self._turn + 1, 0) : turn + 1]:
                self._knowledge.add(text)
            self._turn, self._exposed = turn, self._environment.tools(turn)
        while self._heard < len(self._said) and self._said[self._heard][0] <= self._seen:
            self._knowledge.add(self._said[self._heard][1])
            self._heard += 1

    def _execute(self, name: str, arguments: dict[str, Any]) -> Observation:
        try:
            answer = self._environment.call(name, copied(arguments))  # some keep, or change, what they are given
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            return Observation(clean(str(error)) or type(error).__name__, error=True)
        if not isinstance(answer, Observation) or not isinstance(answer.text, str):
            raise UnreplayableError(f"the environment's answer to {_short(name)} is not an Observation with a text")
        return answer if answer.text.isascii() else replace(answer, text=clean(answer.text))

    def _has_changed(self) -> bool:
        before, self._state = self._state, self._environment.snapshot()
        return before != self._state

    def _lack(self, step: Step, interface: Interface | None, arguments: dict[str, Any], refused: bool) -> Lack | None:
        missing = step.turn in self._task.missing and interface is not None
        words = interface.words if interface else frozenset[str]()
        required = interface.required if interface else ()
        return lack_of(arguments, required, self._knowledge, interface=words, missing=missing, refused=refused)


def _decoded(step: Step, interface: Interface | None) -> tuple[dict[str, Any] | None, str | None]:
    """Arguments of a call by name, None where they cannot be decoded; and why the call does not fit the interface."""
    if step.fault:
        return None, step.fault
    arguments = json.loads(step.arguments or "null")
    if interface is None:
        by_name = None if isinstance(arguments, str) else arguments or {}
        return by_name, f"the tool {_short(step.tool)} is not exposed in turn {step.turn}"
    try:
        by_name = interface.decode(arguments)
    except UnreadableCallError as error:
        return None, f"arguments that cannot be decoded: {error}"
    return by_name, interface.fault(by_name)


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:60] + "...")


def _told(error: BaseException) -> str:
    return clean(f"{type(error).__name__}: {error}")
