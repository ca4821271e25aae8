"""Cohorts that agree with the published tables, their numbers, and how cells are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

import pandas as pd

from survexec.datasets import load_published
from survexec.display.markup import Cell, Row
from survexec.display.wording import number
from survexec.statistics.audit import audit
from survexec.statistics.curves import curves
from survexec.statistics.reconstruction import Reconstruction, reconstruct
from survexec.statistics.summary import Summary, summarize

KEYS: Final = ["benchmark", "model", "method"]
NAMES: Final = {
    "bfcl-v3": "BFCL-v3", "toolsandbox": "ToolSandbox", "tau3": "tau3-bench", "gpt-5.4-high": "GPT-5.4 (high)",
    "gpt-4.1": "GPT-4.1", "llama-4-maverick": "Llama-4 Maverick", "react": "ReAct",
    "prompt_planning": "Prompt Planning", "plan_conditioned": "Plan-Cond. ReAct", "dual_loop": "Dual-Loop",
}  # fmt: skip
RECONSTRUCTED: Final = "Reconstructed from published aggregates (arXiv 2610.40444): one of many cohorts that agree."
AS_PUBLISHED: Final = "As published (arXiv 2610.40444); no rollouts are behind these numbers."
MARK: Final = "†"
# Points need no resampling; a summary cannot be had with fewer.
_FEW: Final = 100
# Of 200 rollouts a mean may lie half-way between two printed values, and so print either way: take the printed one.
_EXACT: Final = {"mean_fed": 3, "success": 3}
_METHODS: Final = ("dual_loop", "plan_conditioned")


def stated(name: str) -> pd.DataFrame:
    """A published table as it was printed; to the main one, PEC@k and s of the worked case are added.

    Parameters
    ----------
    name : {"main", "tau3"}

    Returns
    -------
    pandas.DataFrame
    """
    table = load_published(name, printed=True)
    if name == "main":
        claims = load_published("claims", printed=True)
        worked = claims[claims["quantity"].eq("clean_success")].rename(columns={"side": "method", "value": "s"})
        for more in (load_published("pec_at_k", printed=True), worked[[*KEYS, "s"]]):
            table = table.merge(more, on=KEYS, how="left")
    return table.fillna("")


@cache
def cohort(name: str) -> Reconstruction:
    """One cohort of rollouts for every row of a published table whose TER is stated.

    Parameters
    ----------
    name : {"main", "tau3"}

    Returns
    -------
    Reconstruction
    """
    table = stated(name)
    if name == "main":
        return reconstruct(_centred(table), decimals=_EXACT)
    return reconstruct(table[table["ter"] != ""])


def _centred(table: pd.DataFrame) -> pd.DataFrame:
    """The table with, as success, the share nearest to the printed one that whole numbers of rollouts allow."""
    counts = audit(table).frame
    counts = counts[counts["quantity"] == "successes"]
    n = table["n"].astype(int).to_numpy()
    nearest = (table["success"].astype(float) * n).round().to_numpy().clip(counts["lower"], counts["upper"])
    return table.assign(success=[f"{share:.3f}" for share in nearest / n])


@cache
def possible() -> Reconstruction:
    """What bounds come from: rows of the main table whose PEC or difference is shown, at their printed precision."""
    table = stated("main")
    return reconstruct(table[table["pec_4"].ne("") | table["method"].isin(_METHODS)])


@cache
def pec_bounds(k: int) -> pd.DataFrame:
    """Sharp bounds of PEC at a depth from 1: ``lower`` and ``upper`` by benchmark, model and method."""
    return possible().bounds("pec", k).frame.set_index(KEYS)[["lower", "upper"]]


@cache
def differences(metric: str) -> pd.DataFrame:
    """Dual-Loop minus Plan-Conditioned ReAct over every cohort and every pairing of tasks, by benchmark and model."""
    return possible().difference_bounds(metric, *_METHODS).frame


@cache
def summary(name: str) -> Summary:
    """The metrics of a cohort."""
    return summarize(cohort(name).rollouts, resamples=_FEW)


def estimates(name: str) -> pd.DataFrame:
    """The metrics of a cohort, one row a cell in the order of the published table, one column a metric."""
    wide = summary(name).frame.pivot(index=KEYS, columns="metric", values="estimate")
    return wide.reindex([key for key in stated(name)[KEYS].itertuples(index=False, name=None) if key in wide.index])


@cache
def pec(max_depth: int) -> pd.DataFrame:
    """PEC(k) of the cohort of the main table: the columns of the cell, ``k`` and ``estimate``."""
    made = curves(cohort("main").rollouts, kind="pec", max_depth=max_depth, resamples=_FEW)
    return made.frame[[*KEYS, "k", "estimate"]]


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with names as a paper prints them."""
    return frame.assign(**{name: frame[name].map(NAMES) for name in KEYS if name in frame})


def place(benchmark: str, model: str) -> str:
    """How a benchmark and a model are written together."""
    return f"{NAMES[benchmark]} · {NAMES[model]}"


def signed(value: float, places: int = 2) -> str:
    """A change with its sign."""
    return ("+" if value >= 0 else "") + number(value, places)


def rows_of(table: pd.DataFrame, columns: Mapping[str, int]) -> Iterator[Row]:
    """One row a cell under its benchmark and model: the method, then its columns at so many digits.

    Parameters
    ----------
    table : pandas.DataFrame
        Indexed by benchmark, model and method.
    columns : mapping of str to int

    Returns
    -------
    iterator of Row
    """
    for key, values in table.iterrows():
        benchmark, model, method = cast(tuple, key)
        cells: list[Any] = [Cell(number(values[name], places)) for name, places in columns.items()]
        yield Row((Cell(NAMES[method]), *cells), place(benchmark, model))
