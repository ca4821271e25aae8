"""The options of reading logs, given to every command that reads some."""

import inspect
import json
import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from survexec.cli.app import say
from survexec.cli.options import Crashed, LogFormat, Logs
from survexec.errors import SurvexecWarning
from survexec.protocol.trajectory import Rule

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts


def read(
    logs: Logs,
    rule: Annotated[Rule, typer.Option(help="What counts as executable.")] = Rule.STRICT,
    replay: Annotated[
        str | None,
        typer.Option(
            help="Execute each call again: bfcl, tau2, toolsandbox, mcp, phone or module:Class; see survexec env list.",
            metavar="NAME",
        ),
    ] = None,
    replay_options: Annotated[
        str | None,
        typer.Option(
            help='Of the environment, as JSON, such as \'{"command": ["my-server"]}\' for mcp.', metavar="JSON"
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="With --replay: add the benchmark's own solutions as a row.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Rollouts replayed at a time; -1 for all processors.")] = None,
    from_path: Annotated[
        str | None, typer.Option(help="Take columns from the end of each path, such as '{model}/{method}.json'.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Fix a column, such as benchmark=tau-retail. Repeatable.", metavar="NAME=VALUE"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="For tables: survexec's name of a column = the file's, such as length=T. Repeatable.",
            metavar="NAME=NAME",
        ),
    ] = None,
    success_threshold: Annotated[float, typer.Option(help="A rollout succeeded from this reward on.")] = 1.0,
    crashed: Annotated[
        Crashed, typer.Option(help="Rollouts that the infrastructure ended: leave out, or count as failures.")
    ] = Crashed.SET_ASIDE,
    log_format: LogFormat | None = None,
) -> "Rollouts":
    """Read the input; what was faulty stands in the ledger, so the warning of it is not repeated."""
    import survexec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurvexecWarning)
        return survexec.read(
            logs, format=log_format, rule=rule, replay=replay, replay_options=_options(replay_options),
            reference=reference, jobs=jobs, columns=_pairs(column, "--column"), from_path=from_path,
            set=_pairs(set_, "--set"), success_threshold=success_threshold, crashed=crashed.replace("-", "_"),
        )  # fmt: skip


def _options(text: str | None) -> dict[str, Any] | None:
    """Options of an environment, given as a JSON object."""
    try:
        found = None if text is None else json.loads(text)
    except ValueError:
        found = text
    if not (found is None or isinstance(found, dict)):
        raise typer.BadParameter(f"{text!r} is no JSON object", param_hint="--replay-options")
    return found


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """``name=value`` texts as a mapping."""
    for text in texts or []:
        if not all(text.partition("=")):
            raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint=option)
    return {name: value for name, _, value in (text.partition("=") for text in texts or [])}


def tell_faults(rollouts: "Rollouts") -> None:
    """Say what could not be read, and make the exit code 1 if there is any."""
    faults = rollouts.ledger[rollouts.ledger["status"] == "fault"]
    for fault in faults.itertuples():
        say(f"{fault.source}: {f'{fault.examples}: ' if fault.examples else ''}{fault.reason}")
    if len(faults):
        raise typer.Exit(1)


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it gets the rollouts in their place.

    Faults of the input are told after the work on the rest is done, and make the exit code 1.
    """
    reading = inspect.signature(read).parameters
    own = list(inspect.signature(command).parameters.values())[1:]
    taken = {name: p for name, p in reading.items() if name != "log_format"}

    @wraps(command)
    def run(**given: Any) -> None:
        told = {name: given.pop(name) for name in taken}
        rollouts = read(**told, log_format=given.pop("log_format", None))
        command(rollouts, **given)
        tell_faults(rollouts)

    every = [*taken.values(), *own]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in every]
    )
    run.__annotations__ = {p.name: p.annotation for p in every}
    return run
