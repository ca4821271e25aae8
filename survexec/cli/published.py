"""The commands on published tables: audit, paper."""

from typing import Annotated

import typer

from survexec.cli.app import app, say
from survexec.cli.options import Format, Output, Written, write
from survexec.errors import InputError


@app.command()
def audit(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A published table: CSV, Markdown or LaTeX.")],
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="What a heading is: ter=valid; n=200 gives the number itself."),
    ] = None,
    decimals: Annotated[
        int | None, typer.Option(help="Printed decimals; by default those of a column's longest number.", min=0, max=8)
    ] = None,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of what published numbers leave open, and which of them contradict each other.

    [bold]survexec audit table.csv[/bold]

    [bold]survexec audit paper.tex --column ter=Valid --column n=200 --format csv[/bold]
    """
    from pathlib import Path

    import survexec

    pairs = [text.partition("=") for text in column or []]
    for ours, sign, theirs in pairs:
        if not (ours and sign and theirs):
            raise InputError(f"--column {ours + sign + theirs!r}; it must be a name and a heading, such as ter=valid")
    found = survexec.audit(Path(table), columns={ours: theirs for ours, _, theirs in pairs}, decimals=decimals)
    write(found, format, output)
    say(found.notes[0])
