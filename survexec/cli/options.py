"""What the commands share: choices, options and how a result is written."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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
    BFCL = "bfcl"
    TOOLSANDBOX = "toolsandbox"
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


class Show(StrEnum):
    """What a comparison shows."""

    DIFFERENCES = "differences"
    TESTS = "tests"
    RATIOS = "ratios"
    EQUIVALENCE = "equivalence"


class Adjustment(StrEnum):
    """Adjustments of p for many tests."""

    HOLM = "holm"
    HOCHBERG = "hochberg"
    BH = "bh"
    BY = "by"
    ROMANO_WOLF = "romano_wolf"
    NONE = "none"


class DifferenceInterval(StrEnum):
    """Intervals of paired differences."""

    EXPANDED_PERCENTILE = "expanded_percentile"
    PERCENTILE = "percentile"
    BCA = "bca"
    JACKKNIFE_T = "jackknife_t"
    MOVER = "mover"
    NEWCOMBE = "newcombe"
    TANGO = "tango"


class Band(StrEnum):
    """Simultaneous bands of curves."""

    WILSON = "wilson"
    SUP_T = "sup_t"


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

CELL = "benchmark,model,method"


def names(text: str) -> list[str]:
    """Names joined by commas, as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def write(result: "Result", format: Format, output: Path | None) -> None:
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
