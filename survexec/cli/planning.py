"""The command that plans a study: plan."""

from typing import Annotated

import typer

from survexec.cli.app import app
from survexec.cli.options import Format, Level, Output, Written, write
from survexec.cli.reading import read, tell_faults


@app.command()
def plan(
    logs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PILOT]", help="Logs or Parquet of earlier rollouts, which give the assumptions."),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="ter, success, auc_pec, mean_fed, mean_length, rr, clean_success, success_after_error.")
    ] = "ter",
    difference: Annotated[
        float | None, typer.Option(help="To show, a minus b. Alone, tasks needed are found; with --tasks the power.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(help="Alone, the smallest difference that they show is found.")] = None,
    trials: Annotated[int, typer.Option(help="Of each task on each side.")] = 1,
    budget: Annotated[
        int | None, typer.Option(help="Rollouts of each method: the best numbers of tasks and trials are found.")
    ] = None,
    max_tasks: Annotated[
        int | None, typer.Option(help="With --budget: how many tasks there are; what is left pays for further trials.")
    ] = None,
    task_cost: Annotated[
        float,
        typer.Option(
            help="With --budget: what a further task costs beside its trials, in rollouts of each method; where tasks "
            "are free, one trial of each is best."
        ),
    ] = 0.0,
    power: Annotated[float, typer.Option(help="To reach.")] = 0.8,
    comparisons: Annotated[int, typer.Option(help="Size of the family of tests; alpha is divided by it.")] = 1,
    rate: Annotated[float | None, typer.Option(help="Metric of b, where it is a share.")] = None,
    rate_a: Annotated[
        float | None,
        typer.Option(help="Metric of a, in place of --difference: the difference is this less --rate."),
    ] = None,
    discordance: Annotated[
        float | None, typer.Option(help="Binary metrics: share of tasks that exactly one of the two hits.")
    ] = None,
    eligible: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE[,SHARE]",
            help="rr and its like: share of all rollouts that count, or that of a and that of b; for rr 1 - TER.",
        ),
    ] = None,
    sd: Annotated[
        float | None, typer.Option(help="Means: standard deviation over tasks of the difference of single trials.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Share of that variance between trials of the same task, 0 to 1.")
    ] = None,
    between: Annotated[str, typer.Option(help="The column that tells the sides of the pilot apart.")] = "method",
    a: Annotated[str | None, typer.Option("--a", help="Side a of the pilot.")] = None,
    b: Annotated[str | None, typer.Option("--b", help="Side b of the pilot.")] = None,
    level: Level = 0.95, format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Tasks needed to show a difference, or the difference that a number of tasks can show.

    [bold]survexec plan --difference 0.1 --discordance 0.25[/bold]

    [bold]survexec plan --tasks 100 --discordance 0.25 --power 0.9[/bold]

    [bold]survexec plan --metric rr --rate 0.3 --rate-a 0.5 --eligible 0.2,0.3[/bold]

    [bold]survexec plan --budget 600 --max-tasks 115 --difference 0.1 --discordance 0.25 --noise 0.6[/bold]

    [bold]survexec plan pilot.parquet --a new --b old --metric success --difference 0.05[/bold]
    """
    import survexec

    if rate_a is not None:
        if rate is None or difference is not None:
            raise typer.BadParameter("needs --rate, and stands in place of --difference", param_hint="--rate-a")
        difference = rate_a - rate
    counting = None if eligible is None else _of_sides(eligible)
    pilot = read(logs) if logs else None
    made = survexec.plan(
        pilot, metric=metric, difference=difference, tasks=tasks, trials=trials, budget=budget, power=power,
        level=level, comparisons=comparisons, rate=rate, discordance=discordance, eligible=counting, sd=sd, noise=noise,
        between=between, a=a, b=b, max_tasks=max_tasks, task_cost=task_cost,
    )  # fmt: skip
    write(made, format, output)
    if pilot is not None:
        tell_faults(pilot)


def _of_sides(text: str) -> float | tuple[float, float]:
    """One number for both sides, or one for each."""
    try:
        a, *rest = (float(part) for part in text.split(","))
        (b,) = rest or [a]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a share, such as 0.25, or two, such as 0.2,0.3") from None
    return (a, b) if rest else a
