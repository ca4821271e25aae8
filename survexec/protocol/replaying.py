"""Replay of many trajectories, in parallel and within limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import rich.console
import rich.progress

from survexec.errors import InputError
from survexec.protocol.environments.worker import MEMORY_LIMIT, TIME_LIMIT, Child
from survexec.protocol.replay import Replayed, prepare
from survexec.protocol.trajectory import Trajectory


class _Kind(NamedTuple):
    """What tells one child from another."""

    name: str
    options: str
    time_limit: float
    memory_limit: int | None


# Children without work, in this process: the next rollout of their kind takes one, whatever thread or worker runs it.
_IDLE: dict[_Kind, list[Child]] = {}
_LOCK = threading.Lock()


def replay_all(
    trajectories: Iterable[Trajectory],
    name: str,
    *,
    jobs: int | None = None,
    options: Mapping[str, Any] | None = None,
    time_limit: float = TIME_LIMIT,
    memory_limit: int | None = MEMORY_LIMIT,
    progress: bool = True,
) -> list[Replayed]:
    """Replay trajectories in child processes; the result does not depend on how many there are.

    Parameters
    ----------
    trajectories : iterable of Trajectory
    name : str
        The environment, as `survexec.protocol.environments.load` takes it.
    jobs : int, optional
        Rollouts at a time; -1 for as many as there are processors. One where neither it nor a
        ``joblib.parallel_config`` says otherwise.
    options : mapping, optional
        Of the environment; what JSON can hold.
    time_limit : float
        Seconds for one call. A call that takes longer is invalid, and the rollout goes on without it.
    memory_limit : int or None
        Bytes of address space for each child, on systems that can limit it; None for no limit.
    progress : bool
        Whether to show a bar where standard error is a terminal.

    Returns
    -------
    list of Replayed
        One for each trajectory, in their order. A rollout that cannot be replayed says why in `Replayed.fault`.

    Raises
    ------
    InputError
        If the environment cannot be loaded, or an argument is wrong.

    Notes
    -----
    Rollouts run in threads of which each drives one child, so that nothing is copied to other processes but what a
    child needs. ``with joblib.parallel_config(backend="loky")``, or ``"dask"`` or ``"ray"``, spreads them over
    processes or a cluster.

    Examples
    --------
    >>> from survexec.protocol.trajectory import Call, Ending, Trajectory
    >>> calls = (Call("set_wifi", {"on": "yes"}), Call("set_cellular", {"on": True}))
    >>> [replayed] = replay_all([Trajectory("send_message", calls, Ending.COMPLETED)], "phone")
    >>> [verdict.message for verdict in replayed.verdicts]
    ["on: 'yes' is not of type 'boolean'", None]
    """
    from joblib import Parallel, delayed, effective_n_jobs

    kind = _kind(name, options, time_limit, memory_limit)
    if jobs == 0:
        raise InputError("jobs = 0; it must be 1 or more, or -1 for as many as there are processors")
    rollouts = list(trajectories)
    # what a parallel_config says of jobs is asked for first: threads that are only preferred would forget it
    wanted = Parallel().n_jobs if jobs is None else jobs
    # handing out several at a time spares this process work; sixteen portions each let all end together
    portion = max(1, min(8, len(rollouts) // (16 * effective_n_jobs(wanted))))
    run = Parallel(n_jobs=wanted, prefer="threads", return_as="generator", batch_size=portion)
    results = run(delayed(_replayed)(rollout, kind) for rollout in rollouts)
    console = rich.console.Console(stderr=True)
    hidden = not (progress and console.is_terminal)
    try:
        return list(
            rich.progress.track(
                results, "replaying", total=len(rollouts), console=console, transient=True, disable=hidden
            )
        )
    finally:
        for child in _IDLE.pop(kind, []):
            child.close()


def _kind(name: str, options: Mapping[str, Any] | None, time_limit: float, memory_limit: int | None) -> _Kind:
    if not time_limit > 0:
        raise InputError(f"time_limit = {time_limit}; it must be a number of seconds above 0")
    if memory_limit is not None and not memory_limit > 0:
        raise InputError(f"memory_limit = {memory_limit}; it must be a number of bytes above 0, or None")
    try:
        return _Kind(name, json.dumps(dict(options or {}), sort_keys=True), float(time_limit), memory_limit)
    except (TypeError, ValueError) as error:
        raise InputError(f"options of an environment must be what JSON can hold: {error}") from None


def _replayed(trajectory: Trajectory, kind: _Kind) -> Replayed:
    """Replay in a child that is idle, or in a new one."""
    with _LOCK:
        idle = _IDLE.get(kind)
        child = idle.pop() if idle else None
    if child is None:
        limits = {"time_limit": kind.time_limit, "memory_limit": kind.memory_limit}
        child = Child(kind.name, json.loads(kind.options), **limits)  # type: ignore[arg-type]
    try:
        found = child.replay(prepare(trajectory))
    except BaseException:
        child.close()
        raise
    with _LOCK:
        _IDLE.setdefault(kind, []).append(child)
    return found
