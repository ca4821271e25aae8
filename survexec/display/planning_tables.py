"""The grid of a plan: its answer, and the rows to hold beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import brief, dash, number
from survexec.statistics.estimands import METRICS

_MARK: Final = "*"
_CAPTIONS: Final = {
    "tasks": "Tasks needed to show a difference in {metric}",
    "difference": "The smallest difference in {metric} that tasks show",
    "power": "Power to show a difference in {metric}",
    "split": "Tasks and trials of {budget} rollouts of each method, to show a difference in {metric}",
}


def _plan(result: Any) -> Grid:
    """One row an answer, that to the question marked."""
    made, rows = result.made, result.frame[result.frame["point"] != "curve"]
    lines = [
        Row((
            Cell(str(row.tasks), mark=_MARK * (row.point == "answer")), Cell(str(row.trials)), Cell(str(row.rollouts)),
            Cell(brief(row.difference)), Cell(brief(row.sd)), Cell(number(row.power, 3)),
        ))
        for row in rows.itertuples()
    ]  # fmt: skip
    sides = f"of {made['a']} minus {made['b']}" if made["a"] else "of a minus b"
    family = f" / {made['comparisons']} comparisons" if made["comparisons"] > 1 else ""
    foot = (
        f"{_MARK}: the answer. Power sought: {made['power']:g}, two-sided, at alpha {1 - made['level']:.3g}{family}. "
        f"Difference {sides}; SD: over tasks, of a task's difference. Tests, and how their power was had: "
        f"{'; '.join(rows['method'].unique())}."
    )
    caption = _CAPTIONS[made["solved"]].format(metric=METRICS[made["metric"]].label, budget=made["budget"])
    rule = f" ({made['rule']} rule)" if made["rule"] else ""
    return Grid(
        ("Tasks", "Trials", "Rollouts a method", "Difference", "SD", "Power"), tuple(lines), 1,
        f"{caption}{rule}.", "tab:plan", foot + dash(lines, "no difference is shown with that power"),
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {"plan": _plan}
