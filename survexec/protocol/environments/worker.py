"""A process of its own for an environment, so that a call that stalls, or takes all memory, costs one call.

The two sides exchange lines of JSON, to the child one a rollout and from it one when it is done. Before that the child
gives a sign after each step, so that the parent knows which one stalls. Nothing is ever unpickled or evaluated.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple

import msgspec

from survexec.errors import InputError, SurvexecError
from survexec.protocol.environments import load
from survexec.protocol.environments.base import Environment
from survexec.protocol.replay import Judged, Replayed, Script, clean, collect, perform

MEMORY_LIMIT: Final = 2 * 1024**3
TIME_LIMIT: Final = 5.0
_START_LIMIT: Final = 120.0  # seconds to load an environment, or to reset it
_GLANCE: Final = 0.2  # seconds between two looks at the clock
_IDLE_LIMIT: Final = 60.0  # seconds without a rollout after which a child ends
_CODE: Final = "from survexec.protocol.environments.worker import serve; serve()"
# What jsonschema would load for formats, which are not checked here; one of them works out its grammars for seconds.
_FORMATS: Final = (
    "fqdn",
    "idna",
    "isoduration",
    "jsonpointer",
    "rfc3339_validator",
    "rfc3986_validator",
    "rfc3987",
    "rfc3987_syntax",
    "uri_template",
    "webcolors",
)


class _Opening(msgspec.Struct):
    """To a child: load this environment."""

    name: str
    options: dict[str, Any]
    time_limit: float
    memory_limit: int | None


class _Opened(msgspec.Struct):
    """From a child: it is loaded, or why it is not."""

    fault: str | None


class _Order(msgspec.Struct):
    """To a child: replay this, without executing the steps that exceeded a limit before."""

    script: Script
    exceeded: dict[int, str]


class _Finished(msgspec.Struct, tag=True):
    """From a child: the rollout is replayed."""

    steps: list[Judged]
    success: bool | None
    fault: str | None


class _Failed(msgspec.Struct, tag=True):
    """From a child: the rollout cannot be replayed."""

    reason: str


class _Exhausted(msgspec.Struct, tag=True):
    """From a child: memory ran out."""


_SIGN: Final = b".\n"  # from a child: the environment is reset, or one more step is done
_REPLIES: Final = msgspec.json.Decoder(_Finished | _Failed | _Exhausted)
_OPENED: Final = msgspec.json.Decoder(_Opened)


class _Lost(NamedTuple):
    """How an attempt came to nothing."""

    signs: int
    late: bool
    reason: str


class Child:
    """A process that replays rollouts in an environment.

    Parameters
    ----------
    name : str
        As `survexec.protocol.environments.load` takes it.
    options : mapping
        Of the environment; what JSON can hold.
    time_limit : float
        Seconds for one call.
    memory_limit : int or None
        Bytes of address space, on systems that can limit it.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        time_limit: float = TIME_LIMIT,
        memory_limit: int | None = MEMORY_LIMIT,
    ) -> None:
        self._name = name
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._opening = _Opening(name, dict(options or {}), time_limit, memory_limit)
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: _Watch | None = None
        self._used = False

    def replay(self, script: Script) -> Replayed:
        """Replay a script; a step that exceeds a limit is an invalid call, and the rest is replayed without it.

        Parameters
        ----------
        script : Script
            See `survexec.protocol.replay.prepare`.

        Returns
        -------
        Replayed

        Raises
        ------
        InputError
            If the environment cannot be loaded.
        """
        exceeded: dict[int, str] = {}
        while True:
            used = self._used
            end = self._attempt(script, exceeded)
            if isinstance(end, Replayed):
                return end
            self.close()
            if used and not end.late:
                continue  # it may be what earlier rollouts left behind: once more in a fresh process
            # the first sign is the reset
            step = end.signs - 1
            if step < 0 or step in exceeded:
                return Replayed(fault=f"the reset {end.reason}")
            exceeded[step] = end.reason

    def close(self) -> None:
        """End the process."""
        if self._watch is not None:
            self._watch.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
        self._process = self._watch = None
        self._used = False

    def _attempt(self, script: Script, exceeded: dict[int, str]) -> Replayed | _Lost:
        """Replay once, as far as it goes."""
        process, watch = self._started()
        self._used = True
        signs, limit = 0, _START_LIMIT
        try:
            watch.allow(limit)
            _send(process.stdin, _Order(script, exceeded))
            while (line := _received(process.stdout)) == _SIGN:
                signs += 1
                # after the last step comes the success check, which may take as long as all of them
                limit = self._time_limit if signs <= len(script.steps) else _START_LIMIT
                watch.allow(limit)
            watch.allow(math.inf)
            match _REPLIES.decode(line):
                case _Finished(steps, success, fault):
                    return collect(steps, success, fault)
                case _Failed(reason):
                    return Replayed(fault=reason)
            return _Lost(signs, False, f"exceeded the limit of {_bytes(self._memory_limit)} of memory")
        except (OSError, EOFError):
            late = f"exceeded the limit of {limit:g} s"
            return _Lost(signs, watch.late, late if watch.late else "ended the process of the environment")

    def _started(self) -> tuple[subprocess.Popen[bytes], _Watch]:
        """The process and what watches it; started, and its environment loaded, where there is none alive."""
        if self._process is not None and self._watch is not None and self._process.poll() is None:
            return self._process, self._watch
        self.close()
        places = os.pathsep.join(place or os.getcwd() for place in sys.path)
        self._process = process = subprocess.Popen(  # noqa: S603 - this Python, with nothing of the input in it
            [sys.executable, "-P", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # sets of strings come in the same order in every child
            env={**os.environ, "PYTHONPATH": places, "PYTHONHASHSEED": "0"},
        )
        self._watch = watch = _Watch(process)
        watch.allow(_START_LIMIT)
        try:
            _send(process.stdin, self._opening)
            fault = _OPENED.decode(_received(process.stdout)).fault
        except (OSError, EOFError):
            fault = f"environment {self._name!r} ended while it was loaded"
            if watch.late:
                fault = f"environment {self._name!r} could not be loaded in {_START_LIMIT:g} s"
        if fault:
            self.close()
            raise InputError(fault)
        watch.allow(math.inf)
        return process, watch


class _Watch:
    """Kills a process that stalls; a thread, since reading a pipe for a limited time is not the same everywhere."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.late = False
        self._process = process
        self._until = math.inf
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def allow(self, seconds: float) -> None:
        """Let the process live so long from now on."""
        self._until = time.monotonic() + seconds

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(min(max(self._until - time.monotonic(), 0.001), _GLANCE)):
            if time.monotonic() < self._until:
                continue
            if self._has_answered():
                self.allow(_GLANCE)  # it is the parent that is slow
                continue
            self.late = True
            self._process.kill()
            return

    def _has_answered(self) -> bool:
        """Whether there is something to be read, where that can be told."""
        answers = self._process.stdout
        if os.name != "posix" or answers is None:
            return False
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile
            return bool(select.select([answers], [], [], 0)[0])
        return False


def serve() -> None:
    """Load the environment that the parent names, then replay what it sends until it goes away."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.dup(1)
    for inherited, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
        # what the environment prints or asks for goes nowhere
        nowhere = os.open(os.devnull, mode)
        os.dup2(nowhere, inherited)
        os.close(nowhere)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    opening = msgspec.json.decode(incoming.readline(), type=_Opening)
    if opening.memory_limit is not None:
        _limit_memory(opening.memory_limit)
    _ready_validator()
    try:
        environment = load(opening.name, **opening.options)
    except SurvexecError as error:
        _write(outgoing, _Opened(clean(str(error))))
        return
    except Exception as error:
        what = f"environment {opening.name!r} could not be loaded: {type(error).__name__}: {error}"
        _write(outgoing, _Opened(clean(what)))
        return
    # worlds are made and dropped all the time: looking for garbage at the usual pace costs a third of the replay
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)
    _write(outgoing, _Opened(None))
    orders = msgspec.json.Decoder(_Order)
    while line := _next(incoming):
        _serve_one(environment, orders.decode(line), outgoing, opening.time_limit)


def _ready_validator() -> None:
    """Load what checks arguments before any clock of a call runs, without the libraries that only formats need."""
    hidden = [name for name in _FORMATS if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    importlib.import_module("jsonschema")
    for name in hidden:
        del sys.modules[name]  # an environment may want it


def _serve_one(environment: Environment, order: _Order, outgoing: int, time_limit: float) -> None:
    """Replay a script, telling of each step as soon as it is done."""
    random.seed(0)  # an environment that draws without a seed of its own draws the same in every child
    run, steps = perform(environment, order.script, order.exceeded), list[Judged]()
    try:
        _alarm(_START_LIMIT)
        next(run)
        os.write(outgoing, _SIGN)
        for left in range(len(order.script.steps), -1, -1):
            # after the last step comes the success check
            _alarm(time_limit if left else _START_LIMIT)
            step = next(run)
            if step is not None:
                steps.append(step)
            os.write(outgoing, _SIGN)
    except StopIteration as end:
        _write(outgoing, _Finished(steps, *end.value))
    except SurvexecError as error:
        _write(outgoing, _Failed(clean(str(error))))
    except MemoryError:
        _write(outgoing, _Exhausted())
    finally:
        _alarm(0)


def _next(incoming: IO[bytes]) -> bytes:
    """The next line of the parent; nothing where it is gone, or has asked for nothing for long."""
    if os.name == "posix" and not select.select([incoming], [], [], _IDLE_LIMIT)[0]:
        return b""
    return incoming.readline()


def _limit_memory(limit: int) -> None:
    try:
        import resource
    except ImportError:
        return  # no such limit on this system
    with contextlib.suppress(ValueError, OSError):  # a lower limit is in force already
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _alarm(limit: float) -> None:
    """Have the system end this process long after the parent would have, should the parent be gone."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 2 * limit)


def _write(outgoing: int, message: msgspec.Struct) -> None:
    """Write a line; a pipe may take it in parts."""
    line = msgspec.json.encode(message) + b"\n"
    while line:
        line = line[os.write(outgoing, line) :]


def _send(stream: IO[bytes] | None, message: msgspec.Struct) -> None:
    if stream is None:
        raise EOFError
    stream.write(msgspec.json.encode(message) + b"\n")
    stream.flush()


def _received(stream: IO[bytes] | None) -> bytes:
    """A line of the child; EOFError where it ended, also in the middle of one."""
    line = stream.readline() if stream else b""
    if not line.endswith(b"\n"):
        raise EOFError
    return line


def _bytes(count: int | None) -> str:
    return f"{(count or 0) / 1024**3:.3g} GiB"
