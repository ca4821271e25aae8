"""The command line: parse, call, print. Only the result goes to standard output; messages go to standard error."""

from survexec.cli import analyses, environments, folders, planning, published
from survexec.cli.app import app

__all__ = ["analyses", "app", "environments", "folders", "main", "planning", "published"]


def main() -> None:
    """Entry point."""
    app(prog_name="survexec")
