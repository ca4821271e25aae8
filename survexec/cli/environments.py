"""The commands about benchmark environments: env list, env install."""

from enum import StrEnum
from typing import Annotated

import typer

from survexec.cli.app import app

env = typer.Typer(no_args_is_help=True, help="Benchmark environments for replay: which there are, and installing one.")
app.add_typer(env, name="env")


class Installable(StrEnum):
    """Environments that come as a package of their own."""

    BFCL = "bfcl"
    TAU2 = "tau2"


@env.command("list")
def list_() -> None:
    """Table of the environments that --replay takes, and whether each can be used here.

    [bold]survexec env list[/bold]
    """
    from survexec.protocol.environments import ENVIRONMENTS
    from survexec.protocol.environments.packages import PACKAGES, importable

    typer.echo(f"{'name':12} {'package':22} usable")
    for name in ENVIRONMENTS:
        package, usable = "", "yes"
        if name in PACKAGES:
            package = PACKAGES[name].requirement
            usable = "yes" if importable(name) else f"no: survexec env install {name}"
        elif name in _ELSEWHERE:
            package, usable = _ELSEWHERE[name]
        typer.echo(f"{name:12} {package:22} {usable}")


# What survexec cannot install: not on PyPI, or an extra of survexec itself.
_ELSEWHERE = {
    "toolsandbox": ("tool_sandbox", "where its package is importable; its logs are read without it"),
    "mcp": ("mcp", "with the extra: pip install 'survexec[mcp]'"),
}


@env.command()
def install(name: Annotated[Installable, typer.Argument(help="Which environment.")]) -> None:
    """Install a benchmark's own package into survexec's cache, without what its environment does not need.

    [bold]survexec env install bfcl[/bold]
    """
    import rich.console

    from survexec.protocol.environments import packages

    with rich.console.Console(stderr=True).status(f"installing {packages.PACKAGES[name].requirement}"):
        folder = packages.install(name)
    typer.echo(f"{packages.PACKAGES[name].requirement} is installed in {folder}")
