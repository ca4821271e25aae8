"""The page of a report: what every number is, how it was made and where it comes from, in one HTML file."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import jinja2
import pandas as pd
from markupsafe import Markup

import survexec
from survexec.checks import CLASSES, UNKNOWN
from survexec.display.claims import claims_by_pair, family
from survexec.display.markup import Cell, Grid, Row, html_table
from survexec.display.report.analyses import Analyses
from survexec.display.report.drawing import DRAWINGS
from survexec.display.report.flow import flow
from survexec.display.tables import grid
from survexec.display.wording import COLUMNS, IN_CALLS, INTERVALS, groups, split_by
from survexec.rollouts import ASIDE, Rollouts, counted
from survexec.statistics.comparison import Comparison
from survexec.statistics.estimands import METRICS
from survexec.statistics.results import Result
from survexec.statistics.summary import Summary

# Pixels of the screen for one pixel of a figure at 300 dots an inch.
_SCALE: Final = 0.4
# Pairs beyond this number are folded, those of which nothing is shown or suggested first.
_PAIRS: Final = 6
# Letters of a word that may be broken inside.
_LONG: Final = 20
# How the note on the family of tests begins, whatever the adjustment.
_FAMILY: Final = re.compile("p (not adjusted|adjusted by .+) over a family of ")
_RULES: Final = {
    "strict": "any refusal by the environment is an error",
    "lookup": "a read-only call that found nothing gave an answer and is ok",
    "interface": "only schema and dependency faults are errors; a refusal for reasons of the domain is ok",
}
_DENOMINATORS: Final = {
    "ter": "all rollouts", "mean_fed": "all rollouts", "auc_pec": "all rollouts", "mean_length": "all rollouts",
    "rr": "rollouts that erred and whose success is recorded", "success": "rollouts whose success is recorded",
    "clean_success": "rollouts that never erred and whose success is recorded", "success_after_error": "successes",
}  # fmt: skip
_COUNTS: Final = {
    "rr_eligible": "rollouts that erred",
    "rollouts": "rollouts of the cell that were kept",
    "tasks": "different tasks among them",
    "zero_calls": "rollouts that made no call (T = 0): no error, counted as executable in TER, 1 in AUC-PEC",
}
_CLASS_MEANINGS: Final = {
    "schema": "the arguments do not fit the declared interface",
    "dependency": "a value refers to something that does not exist or is not current",
    "precondition": "an explicit precondition does not hold in the state",
    "state-consistency": "the call contradicts the state that earlier calls produced",
    "information": "the call rests on something that was never learned",
    "unclassified": "no entry of the catalogue matches the message",
}


def page(rollouts: Rollouts, done: Analyses, rules: Summary | str, figures: Path) -> str:
    """Write the page.

    Parameters
    ----------
    rollouts : Rollouts
    done : Analyses
    rules : Summary or str
        From `under_each_rule`.
    figures : Path
        The folder with the PNG files of the figures.

    Returns
    -------
    str
        HTML that loads nothing from anywhere.
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["breakable"] = _breakable
    template = environment.from_string((resources.files(__package__) / "page.html").read_text(encoding="utf-8"))
    varying, shared = split_by(done.summary.frame, done.summary.by)
    ledger_notes = set(rollouts.notes)
    results = [done.summary, done.comparison, done.attribution]
    notes = dict.fromkeys(note for result in results if isinstance(result, Result) for note in result.notes)
    return template.render(
        title=_title(rollouts),
        version=survexec.__version__,
        facts=_facts(rollouts, done.summary, varying, shared),
        summary=_shown(done.summary),
        columns=_columns(done.summary),
        denominators=_table(_denominators(done.summary)),
        figures=[_figure(drawing, done, figures) for drawing in DRAWINGS],
        comparison=_shown(done.comparison),
        family=_family(done.comparison),
        attribution=_shown(done.attribution),
        claims=_claims(done.comparison),
        flow=_flow(rollouts, done),
        rules=_shown(rules),
        rule_meanings=_RULES,
        classes=_classes(done.first_errors),
        class_meanings={name: _CLASS_MEANINGS[name] for name in CLASSES},
        ledger=_table(_ledger(rollouts.ledger)),
        notes=[note for note in notes if note not in ledger_notes],
        clustered=bool((_counts(done.summary, "tasks") < _counts(done.summary, "rollouts")).any()),
    )


def _breakable(name: str) -> Markup:
    """A name that may be broken where a person would; what it is made of is escaped."""
    words = [re.split(r"(?<=[_/:.-])(?=[^_/:.-])", word) if len(word) > _LONG else [word] for word in name.split(" ")]
    return Markup(" ").join(Markup("<wbr>").join(parts) for parts in words)


def _shown(result: Result | str) -> dict[str, Any]:
    """A result as a table for the template, or the reason why there is none."""
    if isinstance(result, str):
        return {"reason": result}
    made = grid(result)
    return {"reason": "", "caption": made.caption, "table": _table(made), "foot": made.foot}


def _table(made: Grid) -> Markup:
    """A table element without its caption, which the page sets where it does not scroll away."""
    return Markup(html_table(replace(made, caption="")))  # noqa: S704 - escaped by its writer


def _counts(summary: Summary, name: str) -> pd.Series:
    """A plain count of each cell."""
    frame = summary.frame
    return frame.loc[frame["metric"] == name, "estimate"].astype(int).reset_index(drop=True)


def _title(rollouts: Rollouts) -> str:
    """The benchmarks, where they are known and few."""
    names = [str(name) for name in rollouts.frame["benchmark"].unique() if name != UNKNOWN]
    return ", ".join(names) if 0 < len(names) <= 3 else "All rollouts"


def _facts(rollouts: Rollouts, summary: Summary, varying: list[str], shared: str) -> list[tuple[str, str]]:
    """What was analysed, in the order in which one asks."""
    made, ledger = summary.made, rollouts.ledger
    aside = ledger[(ledger["unit"] == "rollouts") & ledger["status"].isin(ASIDE)]
    aside = aside.groupby(aside["status"] == "crashed", sort=False)["count"].sum()
    sources = counted(rollouts.frame["source"].nunique(), "sources")
    words = ", ".join(f"{count} {'crashed' if crashed else 'faulty'}" for crashed, count in aside.items())
    tasks = rollouts.frame[["benchmark", "task_id"]].drop_duplicates()
    cells = len(_counts(summary, "rollouts"))
    return [
        (
            "Rollouts",
            f"{len(rollouts)} from {sources}" + (f"; set aside: {words}" if words else ""),
        ),
        ("Tasks", f"{len(tasks)}; the task is the unit of analysis"),
        (
            "Cells",
            f"{cells}" + (f", by {', '.join(varying)}" if varying else "") + (f"; all of {shared}" if shared else ""),
        ),
        ("Rule", f"{made['rule']}: {_RULES[made['rule']]}"),
        ("Intervals", f"{100 * made['level']:g}% level; {made['resamples']} resamples of tasks, seed {made['seed']}"),
        ("Made by", f"survexec {survexec.__version__}"),
    ]


def _columns(summary: Summary) -> list[dict[str, str]]:
    """What each column of the main table is: estimand, unit, denominator, interval."""
    used = summary.frame.groupby("metric")["interval"].unique()
    rows = []
    for name, label in COLUMNS.items():
        if name in METRICS:
            names = [INTERVALS.get(interval, interval) for interval in used[name]]
            unit = "calls" if name in IN_CALLS else "share"
            meaning, under, interval = METRICS[name].meaning, _DENOMINATORS[name], " or ".join(names)
        else:
            meaning, unit, under, interval = _COUNTS[name], "count", "", ""
        rows.append({"label": label, "meaning": meaning, "unit": unit, "denominator": under, "interval": interval})
    return rows


def _denominators(summary: Summary) -> Grid:
    """The number under every share and mean, cell by cell."""
    varying, _ = split_by(summary.frame, summary.by)
    names = [name for name in COLUMNS if name in METRICS]
    rows = []
    for key, cell in groups(summary.frame, varying):
        under = cell.set_index("metric")["denominator"]
        rows.append(Row(tuple(Cell(str(text)) for text in [*key, *(under[name] for name in names)])))
    header = [name.capitalize() for name in varying] + [COLUMNS[name] for name in names]
    return Grid(tuple(header), tuple(rows), len(varying), "", "")


def _figure(drawing: Any, done: Analyses, folder: Path) -> dict[str, Any]:
    """A figure for the template: its picture inside the page, or the reason why there is none."""
    about = {"title": drawing.title, "reading": drawing.reading, "name": drawing.name, "wide": drawing.wide}
    about["reason"] = drawing.missing(done)
    if not about["reason"]:
        picture = (folder / f"{drawing.name}.png").read_bytes()
        # a PNG file states its size at bytes 16 to 24
        about["width"], about["height"] = (round(_SCALE * int.from_bytes(picture[at : at + 4])) for at in (16, 20))
        about["source"] = "data:image/png;base64," + base64.b64encode(picture).decode("ascii")
    return about


def _family(comparison: Comparison | str) -> str:
    """The family of tests, as the comparison itself states it."""
    if isinstance(comparison, str):
        return ""
    return next((note for note in comparison.notes if _FAMILY.match(note)), "")


def _claims(comparison: Comparison | str) -> dict[str, Any]:
    """What can be claimed of each pair, those that tell something first where there are many; or why nothing can."""
    if isinstance(comparison, str):
        return {"reason": comparison}
    pairs, level = claims_by_pair(comparison), comparison.made["level"]
    told = [pair for pair in pairs if pair.tells or len(pairs) <= _PAIRS]
    folded = [pair for pair in pairs if pair not in told]
    about = {"level": f"{100 * level:g}%", "alpha": f"{1 - level:.3g}", "family": family(comparison)}
    return {"reason": "", "told": told, "folded": folded, **about}


def _flow(rollouts: Rollouts, done: Analyses) -> dict[str, Any]:
    """The flow of rollouts to the cells, then that of tasks to the pairs."""
    steps = flow(rollouts.ledger, rollouts.frame, done.comparison, done.summary.by)
    pairs = [step for step in steps if step.stage == "pair"]
    reason = done.comparison if isinstance(done.comparison, str) else ""
    return {"steps": steps[: -len(pairs) or None], "pairs": pairs[:_PAIRS], "folded": pairs[_PAIRS:], "reason": reason}


def _classes(first_errors: Any) -> Markup | str:
    """First errors of each cell by class; "" where there are none."""
    frame = first_errors.frame
    if not frame["events"].sum():
        return ""
    varying, _ = split_by(frame, first_errors.by)
    names = [name for name in CLASSES if name in set(frame["error_class"])]
    rows = []
    for key, cell in groups(frame, varying):
        events = cell.groupby("error_class")["events"].sum()
        counts = [int(events.get(name, 0)) for name in names]
        rows.append(Row(tuple(Cell(str(text)) for text in [*key, *counts, sum(counts)])))
    header = [name.capitalize() for name in varying] + [name.capitalize() for name in names] + ["RR-eligible"]
    return _table(Grid(tuple(header), tuple(rows), len(varying), "", ""))


def _ledger(ledger: pd.DataFrame) -> Grid:
    """The ledger as it is, what was set aside first."""
    order = {"fault": 0, "past": 0, "crashed": 1, "noted": 2, "kept": 3}
    ledger = ledger.sort_values("status", key=lambda column: column.map(order), kind="stable")
    names = ["status", "count", "unit", "reason", "examples", "source"]
    rows = tuple(Row(tuple(Cell(str(value)) for value in row)) for row in ledger[names].itertuples(index=False))
    return Grid(tuple(name.capitalize() for name in names), rows, 0, "", "")
