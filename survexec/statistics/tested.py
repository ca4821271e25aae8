"""A test's outcome, and the words for what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Tested:
    """A test's outcome.

    Parameters
    ----------
    test : str
        Name of the test, and how its p-value was had.
    statistic : float
    df : float
        Degrees of freedom; NaN where there are none.
    p_value : float
        Two-sided.
    n_pairs : int
        Tasks that were given.
    left_out : str
        What of them says nothing, such as "12 ties", or why there is no p-value; else empty.
    standard_error : float
        That of a p-value had by drawing; 0 for others.
    """

    test: str
    statistic: float
    df: float
    p_value: float
    n_pairs: int
    left_out: str = ""
    standard_error: float = 0.0


def outcome(
    test: str, statistic: float, p: float, n: int, left_out: str = "", df: float = np.nan, error: float = 0.0
) -> Tested:
    """A test's outcome in plain numbers; without tasks there is none.

    Parameters
    ----------
    test : str
    statistic, p : float
    n : int
        Tasks that were given.
    left_out : str
    df : float
    error : float
        Standard error of p.

    Returns
    -------
    Tested

    Examples
    --------
    >>> outcome("paired t", 0.0, 1.0, 0).left_out
    'no p: there are no tasks'
    """
    if not n:
        return Tested(test, np.nan, np.nan, np.nan, 0, "no p: there are no tasks")
    return Tested(test, float(statistic), float(df), float(p), n, left_out, float(error))


def ties(count: int) -> str:
    """Tasks that tell nothing apart, in words.

    Parameters
    ----------
    count : int

    Returns
    -------
    str
        Empty where there are none.

    Examples
    --------
    >>> ties(12), ties(1), ties(0)
    ('12 ties', '1 tie', '')
    """
    return f"{count} tie{'s' if count > 1 else ''}" if count else ""
