"""What a quantity can be over every cohort that prints a row."""

from __future__ import annotations

from typing import Final

import numpy as np

from survexec.errors import InputError
from survexec.statistics.feasible import Feasible
from survexec.statistics.pairing_bounds import Side
from survexec.statistics.possible import split_values

_OF_SPLITS: Final = (
    "clean", "rr_eligible", "recovered", "clean_success", "successes", "ter", "rr", "s", "success",
    "success_after_error",
)  # fmt: skip
_OF_SUMS: Final = ("mean_fed", "auc_pec", "mean_length")
_OF_DEPTHS: Final = ("pec", "pec_elig", "hazard", "km")


def check_quantity(quantity: str, k: int | None) -> None:
    """Refuse unknown quantities, and a depth where there is none.

    Raises
    ------
    InputError
    """
    every = (*_OF_SPLITS, *_OF_SUMS, *_OF_DEPTHS)
    if quantity not in every:
        raise InputError(f"quantity = {quantity!r}; it must be one of {', '.join(every)}")
    if quantity in _OF_DEPTHS and (k is None or k < 1):
        raise InputError(f"k = {k!r}; {quantity} is of a depth, at least 1")
    if quantity not in _OF_DEPTHS and k is not None:
        raise InputError(f"k = {k!r}; {quantity} is of no depth")


def bounded(cohorts: Feasible, quantity: str, k: int | None) -> tuple[float, float, bool]:
    """Least and greatest value in one row, and whether a cohort reaches them.

    Parameters
    ----------
    cohorts : Feasible
    quantity : str
    k : int or None

    Returns
    -------
    lower, upper : float
        NaN where the quantity is 0/0 in every cohort.
    sharp : bool
    """
    n, (length, fed) = cohorts.row.n, cohorts.kinds
    if quantity in _OF_SPLITS:
        return (*cohorts.split_bounds(split_values(cohorts.splits, n)[quantity]), True)
    if quantity in _OF_SUMS:
        low, high = cohorts.bounds(_number(cohorts, quantity))
        return low / n, high / n, True
    assert k is not None  # noqa: S101 - checked
    if quantity == "pec":
        low, high = cohorts.bounds((fed > k).astype(float))
        return low / n, high / n, True
    if quantity == "pec_elig":
        return (*cohorts.ratio_bounds((fed > k).astype(int), (length >= k).astype(int)), True)
    if quantity == "hazard":
        risk = (length >= k) & (fed >= k)
        return (*cohorts.ratio_bounds((risk & (fed == k)).astype(int), risk.astype(int)), True)
    return _kaplan_meier(cohorts, k)


def _number(cohorts: Feasible, metric: str) -> np.ndarray:
    """The number of each kind of rollout whose mean is a metric."""
    length, fed = cohorts.kinds
    return {
        "mean_length": length.astype(float), "mean_fed": fed.astype(float), "auc_pec": cohorts.area,
        "ter": cohorts.clean.astype(float),
    }[metric]  # fmt: skip


def _kaplan_meier(cohorts: Feasible, k: int) -> tuple[float, float, bool]:
    """Outer bounds of KM(k); at depth 1 it is one ratio, and they are sharp. With nobody at risk a factor is 1."""
    n, (length, fed) = cohorts.row.n, cohorts.kinds
    alone = min(k, cohorts.longest) == 1
    low, high = 1.0, 1.0
    for j in range(1, min(k, cohorts.longest) + 1):
        risk = (length >= j) & (fed >= j)
        factor = cohorts.ratio_bounds if alone else cohorts.outer_ratio
        least, most = factor((fed > j).astype(int), risk.astype(int))
        if np.isnan(least):
            break
        nobody = most < 1 and cohorts.bounds(risk.astype(float))[0] == 0
        low, high = low * least, high * (1.0 if nobody else most)
    if not alone:
        low = max(low, cohorts.bounds((fed > k).astype(float))[0] / n)
        high = min(high, 1 - cohorts.bounds(((fed <= k) & ~cohorts.clean).astype(float))[0] / n)
    return low, high, alone or low == high


def side(cohorts: Feasible, metric: str) -> Side:
    """Sum and sum of squares of a metric's number in one row.

    Parameters
    ----------
    cohorts : Feasible
    metric : {"ter", "success", "mean_fed", "auc_pec"}

    Returns
    -------
    Side
    """
    n = cohorts.row.n
    if metric in ("ter", "success"):
        count = "clean" if metric == "ter" else "successes"
        total = cohorts.split_bounds(split_values(cohorts.splits, n)[count])
        return Side(n, total, total, True)
    number = _number(cohorts, metric)
    return Side(n, cohorts.bounds(number), cohorts.bounds(number**2), False)
