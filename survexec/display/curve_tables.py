"""Tables over depth: curves, their parts, their differences, and who is at risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from survexec.display.markup import Cell, Grid, Row
from survexec.display.wording import (
    AT_RISK,
    DASH,
    UNDEFINED,
    caption,
    dash,
    digits_of,
    estimate,
    groups,
    number,
    pair_name,
    split_by,
    title,
)
from survexec.protocol.trajectory import ErrorClass
from survexec.statistics.estimands import STATES

_WHAT: Final = {
    "pec": "PEC(k), of all rollouts",
    "pec_elig": "PEC_elig(k), of rollouts with at least k calls",
    "km": "Kaplan-Meier: chance of no error up to call k, endings censored",
    "na": "Nelson-Aalen: cumulative hazard of a first error up to call k, endings censored",
    "hazard": "Hazard: first errors at call k among rollouts about to make it",
}
_OF: Final = {
    "pec": "PEC(k)", "pec_elig": "PEC_elig(k)", "km": "the Kaplan-Meier curve",
    "cif": "the cumulative incidence of an error",
}  # fmt: skip
_DEFAULTS: Final = {"km": "loglog", "cif": "loglog"}
_INTERVALS: Final = {"wilson": "Wilson", "plain": "plain", "log": "log", "loglog": "log-log"}
_CAUSES: Final = {
    "error": "Errored",
    **{name: name.capitalize() for name in map(str, ErrorClass)},
    "finish": "Finished clean",
}
_ENDED: Final = "nobody is left at risk"
_UNDEFINED: Final = {"pec": UNDEFINED, "pec_elig": UNDEFINED, "km": _ENDED, "na": _ENDED, "hazard": _ENDED}


def _pointwise(result: Any) -> str:
    """What the intervals at each depth are; those of a cumulative hazard are always on the log scale."""
    chosen = result.made.get("interval") or _DEFAULTS.get(result.kind, "wilson")
    return f"Pointwise {_INTERVALS['log' if result.kind == 'na' else chosen]} intervals."


def _name(key: tuple[Any, ...]) -> str:
    """The values of a cell in one text."""
    return " / ".join(map(str, key))


def _curves(result: Any) -> Grid:
    """One row a depth, two columns a cell: the estimate, and those at risk or the counts it comes of."""
    hazard = result.kind == "hazard"
    frame = result.frame[result.frame["k"] > 0] if hazard else result.frame
    varying, shared = split_by(frame, result.by)
    digits, header, columns = digits_of(frame), ["k"], []
    for key, cell in groups(frame, varying):
        header += [_name(key) or "Estimate", "Errors / at risk" if hazard else "At risk"]
        columns.append(
            {
                row.k: (estimate(row, digits), Cell(f"{row.events} / {row.at_risk}" if hazard else str(row.at_risk)))
                for row in cell.itertuples()
            }
        )
    missing = (Cell(DASH), Cell(DASH))
    rows = [
        Row((Cell(str(k)), *(cell for table in columns for cell in table.get(k, missing))))
        for k in sorted(frame["k"].unique())
    ]
    return Grid(
        tuple(header), tuple(rows), 1, caption(_WHAT[result.kind], result, shared), f"tab:{result.kind}",
        f"{_pointwise(result)} {AT_RISK}" + dash(rows, _UNDEFINED[result.kind]), together=2,
    )  # fmt: skip


def _parts(result: Any, column: str, names: Mapping[str, str], what: str, foot: str) -> Grid:
    """One group of rows a cell, one row a depth, one column a part of the rollouts."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    digits, rows = digits_of(frame), []
    parts = [name for name in names if name in set(frame[column])]
    for key, cell in groups(frame, varying):
        for k, depth in cell.groupby("k"):
            values = {getattr(row, column): row for row in depth.itertuples()}
            shares = [estimate(values[part], digits) for part in parts]
            rows.append(Row((Cell(str(k)), *shares, Cell(str(depth["at_risk"].iloc[0]))), _name(key)))
    return Grid(
        ("k", *(names[part] for part in parts), "At risk"), tuple(rows), 1, caption(what, result, shared),
        f"tab:{result.kind}", f"{foot} {_pointwise(result)} {AT_RISK}" + dash(rows, _ENDED), group=title(varying),
    )  # fmt: skip


def _at_risk(result: Any) -> Grid:
    """One group of rows a cell, one row a depth: who is at risk, and what becomes of them at that call."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    columns = ("k", "at_risk", "events", "finished", "censored")
    rows = [
        Row(tuple(Cell(str(value)) for value in depth), _name(key))
        for key, cell in groups(frame, varying)
        for depth in cell[list(columns)].itertuples(index=False)
    ]
    header = ("k", "At risk", "First errors", "Finished clean", "Cut by a limit")
    what = "Rollouts at risk at call k, and those who leave there"
    return Grid(
        header, tuple(rows), 1, caption(what, result, shared, bounded=False), "tab:at_risk",
        f"{AT_RISK} Who leaves at k is not at risk at k + 1.", group=title(varying),
    )  # fmt: skip


def _differences(result: Any) -> Grid:
    """One group of rows a pair, one row a depth."""
    frame = result.frame
    varying, shared = split_by(frame, result.by)
    digits, rows = digits_of(frame), []
    for key, pair in groups(frame, [*varying, "a", "b"]):
        group = pair_name(key, f"{pair['n_pairs'].iloc[0]} pairs")
        for row in pair.itertuples():
            sides = [number(row.estimate_a, digits), number(row.estimate_b, digits)]
            band = estimate(row._replace(lower=row.band_lower, upper=row.band_upper), digits, "difference").small
            risks = [str(row.at_risk_a), str(row.at_risk_b)]
            texts = [*map(Cell, sides), estimate(row, digits, "difference"), *map(Cell, [band or DASH, *risks])]
            rows.append(Row((Cell(str(row.k)), *texts), group))
    band = "plain" if result.made["band"] == "sup_t" else "Newcombe, paired"
    foot = f"Intervals of a − b at one depth: Newcombe, paired; bands over all depths: {band}, at the sup-t value. "
    return Grid(
        ("k", "a", "b", "a − b", "Band", "At risk a", "At risk b"), tuple(rows), 1,
        caption(f"Paired differences of {_OF[result.made['kind']]}", result, shared), "tab:curve_differences",
        foot + AT_RISK + dash(rows, _ENDED), group="Pair",
    )  # fmt: skip


GRIDS: Final[dict[str, Callable[..., Grid]]] = {
    **dict.fromkeys(_WHAT, _curves),
    "states": partial(
        _parts, column="state", names={name: state.label for name, state in STATES.items()},
        what="Shares of rollouts after k calls", foot="The shares of a row add to 1.",
    ),
    "cif": partial(
        _parts, column="cause", names=_CAUSES, what="Cumulative incidence of leaving at or before call k",
        foot="What is missing to 1 is still running.",
    ),
    "at_risk": _at_risk,
    "curve_differences": _differences,
}  # fmt: skip
