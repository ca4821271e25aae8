"""The application: its errors are one clear line, and only results go to standard output."""

import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from survexec.errors import SurvexecError, SurvexecWarning

# The order of the commands under --help, from a first look to the last table.
_ORDER = ("demo", "score", "summarize", "curves", "compare", "plan", "report", "audit", "paper", "env")


class Group(TyperGroup):
    """Commands whose errors are one clear message and exit code 1, and whose warnings carry no Python noise."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order in which one meets them."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what went wrong is told in one line."""
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except (SurvexecError, OSError) as error:
                say(str(error))
                raise typer.Exit(1) from None


def say(text: str) -> None:
    """Tell the person at the terminal something."""
    typer.echo(f"survexec: {text}", err=True)


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """A warning as one line."""
    say(str(message) if issubclass(category, SurvexecWarning) else f"{category.__name__}: {message}")


app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge tool-using agents by how they got there: how far their calls could be executed, and what came of it.",
    epilog="Start with [bold]survexec demo[/bold]; each command explains itself under [bold]--help[/bold].",
)
