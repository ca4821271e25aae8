"""The commands that write files: score, report, demo."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from survexec.cli.app import app
from survexec.cli.options import CELL, Between, By, Level, LogFormat, Resamples, Seed, names
from survexec.cli.reading import reads

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts


@app.command()
@reads
def score(
    rollouts: "Rollouts",
    output: Annotated[Path, typer.Option("--output", "-o", help="The Parquet file to write.")] = Path(
        "rollouts.parquet"
    ),
    log_format: Annotated[
        LogFormat | None, typer.Option("--format", "-f", help="Insist on a format; by default the content tells.")
    ] = None,
) -> None:
    """Judge every call of LOGS and write one Parquet file: a row a rollout, its calls, and the ledger.

    [bold]survexec score 'logs/*.json' -o rollouts.parquet[/bold]

    [bold]survexec score 'runs/*/*.json' --from-path '{model}/{method}.json' --set benchmark=tau-retail[/bold]
    """
    rollouts.to_parquet(output)
    from survexec.rollouts import ASIDE, counted

    ledger = rollouts.ledger[rollouts.ledger["unit"] == "rollouts"]
    aside = int(ledger.loc[ledger["status"].isin(ASIDE), "count"].sum())
    files = counted(rollouts.frame["source"].nunique(), "files")
    typer.echo(f"{counted(len(rollouts), 'rollouts')} of {files} written to {output}; {aside} set aside")


@app.command()
@reads
def report(
    rollouts: "Rollouts",
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; nothing is written elsewhere.")],
    by: By = CELL, between: Between = "method", level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
) -> None:  # fmt: skip
    """Folder with tables (tex, md, csv), figures (pdf, png), the ledger, and one page that explains every number.

    [bold]survexec report 'logs/*.json' --from-path '{method}.json' -o out/[/bold]

    [bold]survexec report rollouts.parquet --between model --level 0.9 -o out/[/bold]
    """
    typer.echo(_report(rollouts, output, by=names(by), between=between, level=level, resamples=resamples, rng=seed))


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("out"),
) -> None:
    """Report on real rollouts that come with survexec: four methods on the same 100 retail tasks of tau-bench.

    [bold]survexec demo[/bold]

    [bold]survexec demo -o somewhere/[/bold]
    """
    import survexec

    rollouts = survexec.datasets.load_tau_retail_methods()
    page = _report(rollouts, output)
    typer.echo((page.parent / "tables" / "summary.md").read_text(encoding="utf-8"))
    typer.echo(f"The report is {page}")


def _report(rollouts: "Rollouts", output: Path, **how: Any) -> Path:
    """Write a report, with a sign of life on a terminal."""
    import rich.console

    import survexec

    with rich.console.Console(stderr=True).status("analysing and drawing"):
        return survexec.report(rollouts, output, **how)
