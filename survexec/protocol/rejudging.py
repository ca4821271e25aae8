"""Replay in the place of recorded answers: verdicts, success, and where the two disagree."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from survexec.errors import InputError
from survexec.protocol.checker import Checked, check, checked
from survexec.protocol.environments import ENVIRONMENTS, Environment, load
from survexec.protocol.environments.packages import PACKAGES
from survexec.protocol.replay import Replayed
from survexec.protocol.replaying import replay_all
from survexec.protocol.trajectory import Ending, Outcome, Trajectory

REFERENCE = "reference"


@dataclass(frozen=True)
class Replay:
    """Where and how rollouts are replayed.

    Parameters
    ----------
    name : str
        A name of `ENVIRONMENTS`, or ``"module:Class"``.
    jobs : int, optional
        Rollouts at a time.
    options : mapping
        Of the environment; those that a trajectory asks for itself are found by its class.
    """

    name: str
    jobs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The environment in words, with its version where that is fixed."""
        return PACKAGES[self.name].requirement.replace("==", " ") if self.name in PACKAGES else self.name

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Replayed]:
        """Replay trajectories, each with the options that it asks for, in their order."""
        asked = [json.dumps(self._options(trajectory), sort_keys=True) for trajectory in trajectories]
        found: dict[int, Replayed] = {}
        refused: list[InputError] = []
        kinds = list(dict.fromkeys(asked))
        for options in kinds:
            inside = [at for at, own in enumerate(asked) if own == options]
            some = [trajectories[at] for at in inside]
            try:
                replayed = replay_all(some, self.name, jobs=self.jobs, options=json.loads(options))
            except InputError as error:
                # some rollouts ask for what is not there; the others are still replayed
                refused.append(error)
                replayed = [Replayed(fault=str(error))] * len(some)
            found.update(zip(inside, replayed, strict=True))
        if refused and len(refused) == len(kinds):
            raise refused[0]
        return [found[at] for at in range(len(trajectories))]

    def _options(self, trajectory: Trajectory) -> dict[str, Any]:
        module, _, kind = ENVIRONMENTS.get(self.name, self.name).partition(":")
        own = getattr(getattr(importlib.import_module(module), kind, None), "options_for", None) if kind else None
        return {**(own(trajectory) if own else {}), **self.options}

    def reference(self, trajectories: Iterable[Trajectory]) -> list[Trajectory]:
        """The benchmark's own solutions of the tasks of some trajectories, each task once.

        Parameters
        ----------
        trajectories : iterable of Trajectory

        Returns
        -------
        list of Trajectory
            Without recorded answers: replay judges them. Tasks without a solution are left out.
        """

        @cache
        def environment_with(options: str) -> Environment:
            return load(self.name, **json.loads(options))

        found: dict[tuple[str, str], Trajectory] = {}
        for trajectory in trajectories:
            key = json.dumps(self._options(trajectory), sort_keys=True), trajectory.task_id
            if key in found:
                continue
            environment = environment_with(key[0])
            try:
                task = environment.task(trajectory.task_id)
            except KeyError:
                continue
            if task.reference:
                found[key] = Trajectory(
                    task.task_id, task.reference, Ending.COMPLETED, environment.benchmark, REFERENCE, REFERENCE,
                    stratum=trajectory.stratum, user_calls=task.user_calls, source=self.about, row=len(found) + 1,
                    turns=max(trajectory.turns, len(task.turns), 1),
                )  # fmt: skip
        return list(found.values())


@dataclass(frozen=True)
class Rejudged:
    """Rollouts with the verdicts of a replay.

    Parameters
    ----------
    checked : list of Checked
        Of the rollouts that could be judged, their success as reward where the log has none.
    lost : list of (Trajectory, str)
        Those that could not be replayed and have no recorded answers either, and why.
    told : list of (str, int, str, str)
        What a reader must know: reason, count, unit, examples.
    """

    checked: list[Checked]
    lost: list[tuple[Trajectory, str]]
    told: list[tuple[str, int, str, str]]


def rejudge(trajectories: Sequence[Trajectory], replay: Replay) -> Rejudged:
    """Judge rollouts by replay; where one cannot be replayed, the recorded answers decide.

    Parameters
    ----------
    trajectories : sequence of Trajectory
    replay : Replay

    Returns
    -------
    Rejudged

    Examples
    --------
    >>> from survexec.protocol.trajectory import Call
    >>> calls = (Call("set_wifi", {"on": True}, "done"), Call("set_wifi", {"on": "yes"}, "done"))
    >>> rejudged = rejudge([Trajectory("send_message", calls, Ending.COMPLETED)], Replay("phone"))
    >>> [str(verdict.outcome) for verdict in rejudged.checked[0].verdicts]
    ['invalid', 'invalid']
    """
    judged: list[Checked] = []
    lost: list[tuple[Trajectory, str]] = []
    notes = _Notes()
    calls = 0
    for trajectory, found in zip(trajectories, replay(trajectories), strict=True):
        recorded = check(trajectory)
        if found.fault and not found.verdicts and trajectory.calls:
            if all(call.observation is None for call in trajectory.calls):
                lost.append((trajectory, f"could not be replayed, and no answers are recorded: {found.fault}"))
            else:
                notes.add(f"could not be replayed, so the recorded answers decide: {found.fault}", trajectory)
                judged.append(recorded)
            continue
        calls += len(found.verdicts)
        notes.compare(trajectory, recorded, found)
        reward = trajectory.reward
        if reward is None and found.success is not None:
            # no benchmark counts a rollout that a limit cut as solved
            reward = float(found.success and trajectory.ending is Ending.COMPLETED)
        judged.append(checked(replace(trajectory, reward=reward), found.verdicts))
    told = [(f"judged by replay in {replay.about}", calls, "calls", "")] if calls else []
    return Rejudged(judged, lost, told + notes.lines())


class _Notes:
    """What is counted while recorded and replayed verdicts are compared."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._rollouts: dict[str, list[int]] = {}

    def add(self, what: str, trajectory: Trajectory) -> None:
        """Something about a rollout."""
        self._rollouts.setdefault(what, []).append(trajectory.row)

    def compare(self, trajectory: Trajectory, recorded: Checked, found: Replayed) -> None:
        """Calls whose status differs, by tool; refused calls that changed the state; success that differs."""
        plain = (Outcome.OK, Outcome.INVALID)
        for call, old, new, changed in zip(
            trajectory.calls, recorded.verdicts, found.verdicts, found.changed, strict=True
        ):
            if old.outcome in plain and new.outcome in plain and old.outcome is not new.outcome:
                words = {Outcome.OK: "accepted", Outcome.INVALID: "refused"}
                tool = call.tool[:60]
                self._calls[f"recorded as {words[old.outcome]}, replayed as {words[new.outcome]}: {tool}"] += 1
            if new.outcome is Outcome.INVALID and changed:
                self._calls["judged invalid, but the environment took them and its state changed"] += 1
        if found.fault:
            self.add(f"success is not known by replay: {found.fault}", trajectory)
        elif (
            found.success is not None
            and trajectory.reward is not None
            and found.success != (trajectory.reward >= 1 - 1e-6)
        ):
            self.add("recorded success and the benchmark's own check on the replayed state differ", trajectory)

    def lines(self) -> list[tuple[str, int, str, str]]:
        """For the ledger."""
        calls = [(what, count, "calls", "") for what, count in self._calls.most_common()]
        rollouts = [
            (what, len(rows), "rollouts", ", ".join(f"row {row}" for row in rows[:3]) + (", ..." if rows[3:] else ""))
            for what, rows in self._rollouts.items()
        ]
        return calls + rollouts
