"""The commands on published tables: audit, paper."""

from pathlib import Path
from typing import Annotated

import typer

from survexec.cli.app import app, say
from survexec.cli.options import Format, Output, Written, write
from survexec.cli.reading import read, tell_faults
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
    import survexec

    pairs = [text.partition("=") for text in column or []]
    for ours, sign, theirs in pairs:
        if not (ours and sign and theirs):
            raise InputError(f"--column {ours + sign + theirs!r}; it must be a name and a heading, such as ter=valid")
    found = survexec.audit(Path(table), columns={ours: theirs for ours, _, theirs in pairs}, decimals=decimals)
    write(found, format, output)
    say(found.notes[0])


@app.command()
def paper(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("out"),
    rollouts: Annotated[
        list[str] | None, typer.Option(help="Logs or Parquet in place of the published aggregates. Repeatable.")
    ] = None,
) -> None:
    """Every table and figure of the paper "Prefix Executability", each printed cell compared with the published one.

    [bold]survexec paper -o out/[/bold]

    [bold]survexec paper --rollouts rollouts.parquet -o out/[/bold]
    """
    import rich.console

    from survexec.paper import paper as make_paper

    with rich.console.Console(stderr=True).status("reconstructing and drawing"):
        own = read(rollouts) if rollouts else None
        found = make_paper(output, own)
    typer.echo(found if found is not None else f"Tables and figures are in {output}; index.md says what was left out")
    if own is not None:
        tell_faults(own)
