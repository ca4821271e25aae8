"""The commands that print a table: summarize, curves, compare."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from survexec.cli.app import app
from survexec.cli.options import (
    CELL,
    Adjustment,
    Band,
    Between,
    By,
    DifferenceInterval,
    Format,
    Interval,
    Kind,
    Level,
    Output,
    Resamples,
    Seed,
    Show,
    Written,
    names,
    write,
)
from survexec.cli.reading import reads

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts
    from survexec.statistics.results import Result


@app.command()
@reads
def summarize(
    rollouts: "Rollouts", by: By = CELL, level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of TER, mean FED, AUC-PEC, RR and success in each cell, with intervals and denominators.

    [bold]survexec summarize rollouts.parquet --by model,method[/bold]

    [bold]survexec summarize runs.csv --column length=T --column fed=FED --format csv > summary.csv[/bold]
    """
    import survexec

    write(survexec.summarize(rollouts, names(by), level=level, resamples=resamples, rng=seed), format, output)


@app.command()
@reads
def curves(
    rollouts: "Rollouts",
    kind: Annotated[
        Kind,
        typer.Option(
            help="pec: of all rollouts; pec_elig: of those with k calls; km: Kaplan-Meier; na: Nelson-Aalen; hazard: "
            "of those about to call; cif: erred and finished clean; states: what became of them; at_risk: counts."
        ),
    ] = Kind.PEC,
    by_class: Annotated[bool, typer.Option("--by-class", help="For cif: erring split by first-error class.")] = False,
    interval: Annotated[
        Interval | None, typer.Option(help="At each depth; by default loglog for km and cif, log for na, else wilson.")
    ] = None,
    band: Annotated[Band, typer.Option(help="Over all depths at once, in csv and json.")] = Band.WILSON,
    by: By = CELL, level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of a curve over depth k in each cell, with intervals and the rollouts at risk.

    [bold]survexec curves rollouts.parquet --kind pec --by method[/bold]

    [bold]survexec curves rollouts.parquet --kind cif --by-class --format csv -o incidence.csv[/bold]
    """
    import survexec

    made = survexec.curves(
        rollouts, names(by), kind=kind, by_class=by_class, level=level, interval=interval, band=band,
        resamples=resamples, rng=seed,
    )  # fmt: skip
    write(made, format, output)


@app.command()
@reads
def compare(
    rollouts: "Rollouts", between: Between = "method",
    within: Annotated[
        str | None,
        typer.Option(help="Columns that a pair must share; the others of benchmark,model,method.", metavar="COLUMNS"),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Compare each value with this one only.", metavar="VALUE")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Such as ter,success; fewer metrics make a smaller family of tests.", metavar="NAMES"),
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(
            help="Such as wilcoxon,sign_flip; the first that applies to a metric enters the family, more are listed by "
            "--show tests.",
            metavar="NAMES",
        ),
    ] = None,
    adjust: Annotated[
        Adjustment,
        typer.Option(help="For many tests: holm, hochberg, romano_wolf (any false one), bh, by (share of false ones)."),
    ] = Adjustment.HOLM,
    interval: Annotated[
        DifferenceInterval | None,
        typer.Option(help="Where it applies; by default expanded_percentile, and mover or newcombe for few."),
    ] = None,
    show: Annotated[
        Show, typer.Option(help="differences; tests: every one; ratios: of risks and odds; equivalence: see --margin.")
    ] = Show.DIFFERENCES,
    margin: Annotated[
        float | None, typer.Option(help="For equivalence: the largest difference of shares that does not matter.")
    ] = None,
    level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of differences between methods, paired by task, with intervals, tests and adjusted p.

    [bold]survexec compare rollouts.parquet --baseline tool_calling[/bold]

    [bold]survexec compare rollouts.parquet --between model --within benchmark,method --metrics ter,success[/bold]

    [bold]survexec compare rollouts.parquet --metrics ter --show equivalence --margin 0.05[/bold]
    """
    import survexec

    if (show == Show.EQUIVALENCE) != (margin is not None):
        raise typer.BadParameter("--show equivalence and --margin go together", param_hint="--margin")
    made = survexec.compare(
        rollouts, between, None if within is None else names(within), baseline,
        metrics=None if metrics is None else names(metrics), tests=None if tests is None else names(tests),
        adjust=adjust, interval=interval, level=level, resamples=resamples, rng=seed,
    )  # fmt: skip
    shown: dict[Show, Callable[[], Result]] = {
        Show.DIFFERENCES: lambda: made, Show.TESTS: lambda: made.tests, Show.RATIOS: lambda: made.ratios,
        Show.EQUIVALENCE: lambda: made.equivalence(margin or 0.0),
    }  # fmt: skip
    write(shown[show](), format, output)
