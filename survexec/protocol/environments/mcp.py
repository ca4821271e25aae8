"""Any server of the Model Context Protocol over stdio, through version 1 or 2 of the official SDK: ``survexec[mcp]``.

The server is a command of the user's own; nothing of a log ever becomes part of it. Each `reset` starts a fresh server.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, TextIO

from survexec.errors import InputError, SurvexecError
from survexec.protocol.environments.base import Observation, Task, Tool
from survexec.protocol.trajectory import Call

_FOLDER: Final = "{folder}"
_PAGES: Final = 1000  # of a listing of tools; a server that never ends it is at fault


class MCP:
    """An MCP server as an environment. Any id is a task: what a world starts from is the server's own affair.

    Parameters
    ----------
    command : sequence of str
        What starts the server: a program and its arguments.
    env : mapping of str to str, optional
        Variables of its environment, beside the few that the SDK hands on, such as PATH.
    cwd : str, optional
        Its working directory.
    reset : str, optional
        A tool of the server, called without arguments after each start and never exposed to the agent: for a server
        whose state outlives it.
    time_limit : float
        Seconds for a start, and for one call.

    Raises
    ------
    InputError
        The SDK is not installed, an option is wrong, or the server does not start.

    Notes
    -----
    Of an option, ``{folder}`` is replaced by an empty folder that lives from one reset to the next: for a server that
    keeps its state in files.

    A refusal is a result with an error flag, or an error of the protocol such as that of an unknown tool. After a call
    that takes too long, or ends the server, the state is unknown, and the rollout cannot be replayed. Limits of
    `survexec.protocol.replaying.replay_all` come first where they are tighter: a stalled call is then an invalid one,
    and its server, cut off from its input, ends when that call does. Its limit of memory holds for the server too, and
    is too tight for some runtimes, such as Node.js.

    Whether a call changed the state cannot be seen from outside: `snapshot` always says that it did not, and no tool is
    said to change it. The refusals of a server are its own: a subclass whose `benchmark` has a catalogue gets them
    classified.

    References
    ----------
    Model Context Protocol, Specification, 2025-06-18: Lifecycle, Tools, Transports.
    """

    benchmark = "mcp"

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        reset: str | None = None,
        time_limit: float = 60.0,
    ) -> None:
        self._options = _checked(command, env, cwd)
        if reset is not None and not isinstance(reset, str):
            raise InputError(f"reset = {reset!r}; it must be the name of a tool")
        if not time_limit > 0:
            raise InputError(f"time_limit = {time_limit}; it must be a number of seconds above 0")
        self._reset, self._time_limit = reset, time_limit
        self._open = contextlib.ExitStack()
        # an environment that nobody closes takes its server along
        weakref.finalize(self, self._open.close)
        try:
            from anyio.from_thread import start_blocking_portal
            from mcp import ClientSession  # noqa: F401 - the SDK, without which nothing is started
        except ImportError as error:
            raise InputError(f"the environment 'mcp' needs `pip install survexec[mcp]`: {error}") from error
        self._portal = self._open.enter_context(start_blocking_portal())
        self._server = self._open.enter_context(contextlib.ExitStack())
        self._session: Any = None
        self._tools: dict[str, Tool] = {}
        self._fresh = True
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def tasks(self) -> Sequence[str]:
        """None are known: a task is whatever a log names."""
        return ()

    def task(self, task_id: str) -> Task:
        """A task of any id."""
        return Task(task_id)

    def reset(self, task: Task) -> None:
        """End the server and start it again."""
        if not self._fresh:
            self._start()
        self._fresh = False

    def tools(self, turn: int) -> Mapping[str, Tool]:
        """All tools of the server, in every turn."""
        return self._tools

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Call a tool; its text is what the blocks of its result say, one below the other."""
        try:
            return _observation(self._portal.call(self._call, name, arguments))
        except TimeoutError:
            self._lost = f"the MCP server did not answer to {name!r} in {self._time_limit:g} s"
        except Exception as error:
            if self._answers():
                return Observation(_short(error), error=True)
            self._lost = f"the MCP server ended in a call of {name!r}"
        return Observation(self._lost, error=True)

    def user_call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """Call a tool: the user has the same."""
        return self.call(name, arguments)

    def snapshot(self) -> bytes:
        """The same at all times: a server does not show its state.

        Raises
        ------
        SurvexecError
            If the state was lost in an earlier call.
        """
        if self._lost:
            raise SurvexecError(self._lost)
        return b""

    def succeeded(self, calls: Sequence[Call], answers: Sequence[str], turns: int) -> bool | None:
        """None: a server does not know what a task asks for."""
        return None

    def close(self) -> None:
        """End the server; the environment is of no use after that."""
        self._open.close()

    def _start(self) -> None:
        """A fresh server, its tools listed."""
        self._server.close()
        self._lost = ""
        errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - ends with the server
        self._server.enter_context(errors)
        options = self._options
        if _FOLDER in str(options):
            folder = self._server.enter_context(tempfile.TemporaryDirectory(prefix="survexec-mcp-"))
            options = _in_folder(options, folder)
        try:
            session = _session(options, errors, self._time_limit)
            self._session, info = self._server.enter_context(self._portal.wrap_async_context_manager(session))
            listed = self._portal.call(self._list)
        except Exception as error:
            reason = self._why(error, errors)
            self._server.close()
            raise InputError(f"the MCP server {self._options['command']!r} did not start: {reason}") from None
        self.version = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
        self._tools = {tool["name"]: Tool(tool["name"], tool["inputSchema"]) for tool in listed}
        if self._reset is not None:
            self._run_reset(self._reset)

    def _why(self, error: BaseException, errors: TextIO) -> str:
        """Why a server did not start, with the last line that it wrote on standard error."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        reason = f"no answer in {self._time_limit:g} s" if isinstance(error, TimeoutError) else _short(error)
        errors.seek(0)
        return ": ".join([reason, *errors.read().strip().splitlines()[-1:]])

    def _run_reset(self, name: str) -> None:
        if self._tools.pop(name, None) is None:
            raise InputError(f"reset = {name!r}; the MCP server has no such tool, only {', '.join(self._tools)}")
        answer = self.call(name, {})
        if answer.error:
            raise InputError(f"reset = {name!r}: the MCP server refused it: {answer.text}")

    def _answers(self) -> bool:
        """Whether the server is still there."""
        try:
            self._portal.call(self._ping)
        except Exception:
            return False
        return True

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        import anyio

        with anyio.fail_after(self._time_limit):
            return _wire(await self._session.call_tool(name, arguments))

    async def _ping(self) -> None:
        import anyio

        with anyio.fail_after(self._time_limit):
            await self._session.send_ping()

    async def _list(self) -> list[dict[str, Any]]:
        """All pages of the server's tools."""
        import anyio
        from mcp.types import PaginatedRequestParams

        tools: list[dict[str, Any]] = []
        cursor = None
        with anyio.fail_after(self._time_limit):
            for _ in range(_PAGES):
                page = _wire(await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
                tools += page["tools"]
                cursor = page.get("nextCursor")
                if not cursor:
                    return tools
        raise SurvexecError(f"its listing of tools has more than {_PAGES} pages")


@contextlib.asynccontextmanager
async def _session(
    options: Mapping[str, Any], errors: TextIO, time_limit: float
) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """A running server: the session with it, and what it says of itself."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *arguments = options["command"]
    parameters = StdioServerParameters(command=program, args=arguments, env=options["env"], cwd=options["cwd"])
    async with stdio_client(parameters, errors) as streams, ClientSession(*streams) as session:
        with anyio.fail_after(time_limit):
            answer = _wire(await session.initialize())
        yield session, answer["serverInfo"]


def _checked(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> dict[str, Any]:
    if isinstance(command, str) or not command or not all(isinstance(part, str) for part in command):
        raise InputError(
            f"command = {command!r}; it must be a program and its arguments, such as ['python', 'server.py']"
        )
    if not all(isinstance(text, str) for item in (env or {}).items() for text in item):
        raise InputError(f"env = {env!r}; it must map names to texts")
    if cwd is not None and not isinstance(cwd, str):
        raise InputError(f"cwd = {cwd!r}; it must be a folder")
    return {"command": list(command), "env": dict(env or {}), "cwd": cwd}


def _in_folder(options: Mapping[str, Any], folder: str) -> dict[str, Any]:
    return {
        "command": [part.replace(_FOLDER, folder) for part in options["command"]],
        "env": {name: value.replace(_FOLDER, folder) for name, value in options["env"].items()},
        "cwd": options["cwd"] and options["cwd"].replace(_FOLDER, folder),
    }


def _wire(answer: Any) -> dict[str, Any]:
    """An answer under the names of the protocol, which both versions of the SDK share."""
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _observation(result: Mapping[str, Any]) -> Observation:
    blocks = [block.get("text") if block["type"] == "text" else json.dumps(block) for block in result["content"]]
    if not blocks and "structuredContent" in result:
        blocks = [json.dumps(result["structuredContent"])]
    return Observation("\n".join(block or "" for block in blocks), error=bool(result.get("isError")))


def _short(error: BaseException) -> str:
    return str(error) or type(error).__name__
