"""The command line: parse, call, print. Only the result goes to standard output; messages go to standard error."""

import inspect
import json
import warnings
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from survexec.errors import SurvexecError, SurvexecWarning
from survexec.protocol.trajectory import Rule

if TYPE_CHECKING:
    import click

    from survexec.rollouts import Rollouts
    from survexec.statistics.results import Result


class Format(StrEnum):
    """How a result is written."""

    MARKDOWN = "md"
    LATEX = "tex"
    CSV = "csv"
    JSON = "json"


class LogFormat(StrEnum):
    """Formats of logs, where the content alone shall not decide."""

    TAU = "tau"
    TAU2 = "tau2"
    TABLE = "table"


class Crashed(StrEnum):
    """What becomes of rollouts that the infrastructure ended."""

    SET_ASIDE = "set-aside"
    FAIL = "fail"


class Kind(StrEnum):
    """Kinds of curves."""

    PEC = "pec"
    PEC_ELIG = "pec_elig"
    KM = "km"
    NA = "na"
    HAZARD = "hazard"
    CIF = "cif"
    STATES = "states"
    AT_RISK = "at_risk"


class Interval(StrEnum):
    """Pointwise intervals of curves."""

    WILSON = "wilson"
    PLAIN = "plain"
    LOG = "log"
    LOGLOG = "loglog"


class Band(StrEnum):
    """Simultaneous bands of curves."""

    WILSON = "wilson"
    SUP_T = "sup_t"


class _Group(TyperGroup):
    """Commands whose errors are one clear message and exit code 1, and whose warnings carry no Python noise."""

    def invoke(self, ctx: "click.Context") -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except (SurvexecError, OSError) as error:
                _say(str(error))
                raise typer.Exit(1) from None


def _say(text: str) -> None:
    """Tell the person at the terminal something."""
    typer.echo(f"survexec: {text}", err=True)


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """A warning as one line."""
    _say(str(message) if issubclass(category, SurvexecWarning) else f"{category.__name__}: {message}")


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge tool-using agents by how they got there: how far their calls could be executed, and what came of it.",
    epilog="Start with [bold]survexec demo[/bold]; each command explains itself under [bold]--help[/bold].",
)

Logs = Annotated[
    list[str],
    typer.Argument(metavar="LOGS", help="Logs, tables or Parquet of [bold]score[/bold]: files, folders, patterns."),
]
By = Annotated[str, typer.Option(help="Columns that make a cell, joined by commas.", metavar="COLUMNS")]
Level = Annotated[float, typer.Option(help="Confidence level.")]
Resamples = Annotated[int, typer.Option(help="Bootstrap resamples of tasks.")]
Seed = Annotated[int, typer.Option(help="Seed of the resampling; the same seed gives the same numbers.", min=0)]
Written = Annotated[
    Format, typer.Option("--format", "-f", help="How to write it; csv and json have full precision, md and tex round.")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="A file to write instead of standard output.")]
Between = Annotated[str, typer.Option(help="The column whose values are compared.", metavar="COLUMN")]

_CELL = "benchmark,model,method"


def _read(
    logs: Logs,
    rule: Annotated[Rule, typer.Option(help="What counts as executable.")] = Rule.STRICT,
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
            logs, format=log_format, rule=rule, columns=_pairs(column, "--column"), from_path=from_path,
            set=_pairs(set_, "--set"), success_threshold=success_threshold, crashed=crashed.replace("-", "_"),
        )  # fmt: skip


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """``name=value`` texts as a mapping."""
    for text in texts or []:
        if not all(text.partition("=")):
            raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint=option)
    return {name: value for name, _, value in (text.partition("=") for text in texts or [])}


def _reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it gets the rollouts in their place.

    Faults of the input are told after the work on the rest is done, and make the exit code 1.
    """
    reading = inspect.signature(_read).parameters
    own = list(inspect.signature(command).parameters.values())[1:]
    taken = {name: p for name, p in reading.items() if name != "log_format"}

    @wraps(command)
    def run(**given: Any) -> None:
        told = {name: given.pop(name) for name in taken}
        rollouts = _read(**told, log_format=given.pop("log_format", None))
        command(rollouts, **given)
        faults = rollouts.ledger[rollouts.ledger["status"] == "fault"]
        for fault in faults.itertuples():
            _say(f"{fault.source}: {f'{fault.examples}: ' if fault.examples else ''}{fault.reason}")
        if len(faults):
            raise typer.Exit(1)

    every = [*taken.values(), *own]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in every]
    )
    run.__annotations__ = {p.name: p.annotation for p in every}
    return run


@app.command()
@_reads
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
@_reads
def summarize(
    rollouts: "Rollouts", by: By = _CELL, level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of TER, mean FED, AUC-PEC, RR and success in each cell, with intervals and denominators.

    [bold]survexec summarize rollouts.parquet --by model,method[/bold]

    [bold]survexec summarize runs.csv --column length=T --column fed=FED --format csv > summary.csv[/bold]
    """
    import survexec

    _write(survexec.summarize(rollouts, _names(by), level=level, resamples=resamples, rng=seed), format, output)


@app.command()
@_reads
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
    by: By = _CELL, level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of a curve over depth k in each cell, with intervals and the rollouts at risk.

    [bold]survexec curves rollouts.parquet --kind pec --by method[/bold]

    [bold]survexec curves rollouts.parquet --kind cif --by-class --format csv -o incidence.csv[/bold]
    """
    import survexec

    made = survexec.curves(
        rollouts, _names(by), kind=kind, by_class=by_class, level=level, interval=interval, band=band,
        resamples=resamples, rng=seed,
    )  # fmt: skip
    _write(made, format, output)


@app.command()
@_reads
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
    level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
    format: Written = Format.MARKDOWN, output: Output = None,
) -> None:  # fmt: skip
    """Table of differences between methods, paired by task, with intervals, tests and adjusted p.

    [bold]survexec compare rollouts.parquet --baseline tool_calling[/bold]

    [bold]survexec compare rollouts.parquet --between model --within benchmark,method --metrics ter,success[/bold]
    """
    import survexec

    made = survexec.compare(
        rollouts, between, None if within is None else _names(within), baseline,
        metrics=None if metrics is None else _names(metrics), level=level, resamples=resamples, rng=seed,
    )  # fmt: skip
    _write(made, format, output)


@app.command()
@_reads
def report(
    rollouts: "Rollouts",
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; nothing is written elsewhere.")],
    by: By = _CELL, between: Between = "method", level: Level = 0.95, resamples: Resamples = 10_000, seed: Seed = 0,
) -> None:  # fmt: skip
    """Folder with tables (tex, md, csv), figures (pdf, png), the ledger, and one page that explains every number.

    [bold]survexec report 'logs/*.json' --from-path '{method}.json' -o out/[/bold]

    [bold]survexec report rollouts.parquet --between model --level 0.9 -o out/[/bold]
    """
    typer.echo(_report(rollouts, output, by=_names(by), between=between, level=level, resamples=resamples, rng=seed))


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


def _names(text: str) -> list[str]:
    """Names joined by commas, as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _write(result: "Result", format: Format, output: Path | None) -> None:
    """Write a result to a file or to standard output."""
    writers = {
        Format.MARKDOWN: result.to_markdown, Format.LATEX: result.to_latex, Format.CSV: result.to_csv,
        Format.JSON: lambda: _json(result),
    }  # fmt: skip
    text = writers[format]()
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))
    else:
        output.write_text(text, encoding="utf-8")


def _json(result: "Result") -> str:
    """A result with its notes and how it was made; what is undefined is null."""
    frame = result.frame.astype(object).where(result.frame.notna(), None)
    about = {"kind": result.kind, "made": result.made, "notes": result.notes, "rows": frame.to_dict("records")}
    return json.dumps(about, indent=1, default=lambda value: value.item())


def main() -> None:
    """Entry point."""
    app(prog_name="survexec")
