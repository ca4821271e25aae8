"""A formula of column names -> the columns of a regression, and which of their coefficients are finite."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from survexec.errors import InputError

DEPTH: Final = "depth"
_TOLERANCE: Final = 1e-9
Terms = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Factor:
    """A covariate as columns that add to one: indicators of its levels, or spline weights of its knots.

    Parameters
    ----------
    name : str
    levels : tuple of str
        The first is the reference.
    basis : numpy.ndarray
        Shape (row, level).
    """

    name: str
    levels: tuple[str, ...]
    basis: np.ndarray

    def text(self, level: int) -> str:
        """A level as a reader wants it: numbers keep the name of what they number."""
        return f"{self.name} {self.levels[level]}" if self.name in (DEPTH, "trial") else self.levels[level]


@dataclass(frozen=True)
class Design:
    """The columns of a regression.

    Parameters
    ----------
    matrix : numpy.ndarray
        Shape (row, coefficient).
    terms : tuple of str
        Unique names, such as ``method[react]``, ``depth[2]``, ``method[react]:depth[2]``, ``intercept``.
    labels : tuple of str
        The same for a reader: ``react vs base``.
    nuisance : tuple of bool
        True for the intercept and what is of depth alone.
    """

    matrix: np.ndarray
    terms: tuple[str, ...]
    labels: tuple[str, ...]
    nuisance: tuple[bool, ...]


@dataclass(frozen=True)
class Finite:
    """Which coefficients have a finite estimate, and where the others go.

    Parameters
    ----------
    basis : numpy.ndarray
        Shape (coefficient, r): a fit along its columns gives every finite coefficient.
    finite, aliased : numpy.ndarray of bool
        Finite; or told apart from earlier columns by nothing in the data. What is neither is infinite.
    direction : numpy.ndarray
        The likelihood grows without end along it; zeros where it does not.
    decided : numpy.ndarray of bool
        Rows of the evidence that the limit along `direction` satisfies with certainty.
    """

    basis: np.ndarray
    finite: np.ndarray
    aliased: np.ndarray
    direction: np.ndarray
    decided: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """Coefficients with their covariance; NaN where an estimate is not finite.

    Parameters
    ----------
    coefficients : numpy.ndarray
    covariance : numpy.ndarray
    log_likelihood, log_likelihood_null : float
        At the estimate, and with all coefficients 0.
    part : Finite
    left_out : float
        Person-depths that the limit of an infinite coefficient decides.
    converged : bool
    correlation : float
        Of a working correlation, where there is one.
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    log_likelihood: float
    part: Finite
    left_out: float
    converged: bool
    log_likelihood_null: float = np.nan
    correlation: float = np.nan


def parse(formula: str, names: Sequence[str]) -> Terms:
    """The terms of a formula, the empty one standing for the intercept; nothing in it is evaluated.

    Parameters
    ----------
    formula : str
        Names joined by ``+``, ``:`` (interaction), ``*`` (both and their interaction) and ``-`` (leave out);
        ``0`` or ``- 1`` leaves out the intercept.
    names : sequence of str
        The names that may stand in it.

    Returns
    -------
    tuple of tuple of str
        By order of interaction, then as they were written.

    Raises
    ------
    InputError
        If anything else stands in it.

    Examples
    --------
    >>> parse("method * depth", ["method", "depth"])
    ((), ('method',), ('depth',), ('method', 'depth'))
    """
    wrong = re.search(r"[^\w\s+:*-]", formula)
    if wrong:
        raise InputError(
            f"formula = {formula!r}: {wrong.group()!r} cannot stand in a formula; it joins column names by +, :, * "
            "and -, with 0 or 1 for the intercept, and calls nothing"
        )
    terms: dict[frozenset[str], tuple[str, ...]] = {frozenset(): ()}
    written = re.sub(r"\s+", " ", formula).strip()
    for sign, part in re.findall(r"([+-]?)([^+-]*)", written if written.startswith(("+", "-")) else f"+{written}")[:-1]:
        if part.strip() in ("0", "1"):
            found: list[tuple[str, ...]] = [()]
            sign = sign if part.strip() == "1" else {"+": "-", "-": "+"}[sign]
        else:
            found = _expanded(part, formula, names)
        for term in found:
            if sign == "+":
                terms.setdefault(frozenset(term), term)
            else:
                terms.pop(frozenset(term), None)
    return tuple(sorted(terms.values(), key=len))


def _expanded(part: str, formula: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """What ``a * b:c`` stands for: a, b:c and a:b:c."""
    crossed = [[name.strip() for name in one.split(":")] for one in part.split("*")]
    for name in itertools.chain(*crossed):
        if not name:
            raise InputError(f"formula = {formula!r}: a column name is missing beside an operator")
        if name not in names:
            raise InputError(
                f"formula = {formula!r}: {name!r} is no covariate; there are: {', '.join(names)} (what a rollout "
                "brings about itself, such as its length or success, cannot explain its hazard)"
            )
    subsets = itertools.chain.from_iterable(
        itertools.combinations(crossed, size) for size in range(1, len(crossed) + 1)
    )
    return [tuple(dict.fromkeys(itertools.chain(*subset))) for subset in subsets]


def build(terms: Terms, factors: Mapping[str, Factor], rows: int) -> Design:
    """The columns of the terms, each factor against its first level.

    Parameters
    ----------
    terms : tuple of tuple of str
    factors : mapping of str to Factor
        With bases over the same rows.
    rows : int

    Returns
    -------
    Design

    Notes
    -----
    A factor within a term loses its first level where the term without it is in the formula too, and keeps all its
    levels where it is not: the rule of S (Chambers & Hastie 1992, Statistical Models in S).

    Examples
    --------
    >>> import numpy as np
    >>> method = Factor("method", ("base", "react"), np.eye(2))
    >>> build(((), ("method",)), {"method": method}, 2).labels
    ('intercept', 'react vs base')
    """
    there = {frozenset(term) for term in terms}
    columns, names, labels, nuisance = [], [], [], []
    for term in terms:
        parts = [factors[name] for name in term]
        against = [frozenset(term) - {name} in there for name in term]
        levels = (range(int(a), len(part.levels)) for part, a in zip(parts, against, strict=True))
        for chosen in itertools.product(*levels):
            pairs = list(zip(parts, chosen, strict=True))
            columns.append(np.prod([part.basis[:, level] for part, level in pairs], axis=0) * np.ones(rows))
            names.append(":".join(f"{part.name}[{part.levels[level]}]" for part, level in pairs) or "intercept")
            label = " : ".join(part.text(level) for part, level in pairs) or "intercept"
            labels.append(f"{label} vs {parts[0].levels[0]}" if against == [True] else label)
            nuisance.append(set(term) <= {DEPTH})
    matrix = np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
    return Design(matrix, tuple(names), tuple(labels), tuple(nuisance))


def finite_part(evidence: np.ndarray) -> Finite:
    """Which coefficients a likelihood bounds.

    Parameters
    ----------
    evidence : numpy.ndarray
        Shape (row, coefficient). The likelihood does not fall along a direction b where ``evidence @ b >= 0``.

    Returns
    -------
    Finite

    Notes
    -----
    A direction with ``evidence @ b >= 0``, not all zero, is separation: no finite maximum (Albert & Anderson 1984,
    Biometrika 71). One linear programme finds a direction that is strict in every row where any is (Konis 2007). In
    the limit those rows are certain and drop out; the others bound the coefficients in the span of their rows.

    Examples
    --------
    >>> import numpy as np
    >>> finite_part(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])).finite.tolist()
    [True, False]
    """
    size = evidence.shape[1]
    rows, which = np.unique(evidence, axis=0, return_inverse=True)
    kept = _independent(rows)
    rows = rows[:, kept]
    inside, decided = _recession(rows)
    direction, basis = np.zeros(size), np.eye(size)[:, kept]
    if decided.any():
        direction[kept] = inside
        _, strength, across = np.linalg.svd(rows[~decided], full_matrices=False)
        basis = basis @ across[strength > _TOLERANCE * max(float(strength.max(initial=0)), 1.0)].T
    finite = np.isclose((basis**2).sum(axis=1), 1)
    aliased = ~np.isin(np.arange(size), kept)
    return Finite(basis, finite, aliased, direction, decided[which.ravel()])


def nothing(size: int) -> Estimate:
    """The estimate of a model that no event informs.

    Parameters
    ----------
    size : int
        How many coefficients it has.

    Returns
    -------
    Estimate
    """
    no = np.zeros(size, bool)
    part = Finite(np.zeros((size, 0)), no, no, np.zeros(size), no)
    return embed(part, np.zeros(0), np.zeros((0, 0)), 0.0, 0.0, True)


def embed(
    part: Finite, beta: np.ndarray, covariance: np.ndarray, log_likelihood: float, left_out: float, converged: bool,
    null: float = np.nan, correlation: float = np.nan,
) -> Estimate:  # fmt: skip
    """An estimate along the bounded directions as coefficients, NaN where they are not finite.

    Parameters
    ----------
    part : Finite
    beta, covariance : numpy.ndarray
        Along ``part.basis``.
    log_likelihood, left_out, converged, null, correlation
        As in `Estimate`.

    Returns
    -------
    Estimate
    """
    known = np.where(part.finite, 0, np.nan)
    return Estimate(
        part.basis @ beta + known, part.basis @ covariance @ part.basis.T + known + known[:, None],
        log_likelihood, part, left_out, converged, null, correlation,
    )  # fmt: skip


def _independent(rows: np.ndarray) -> list[int]:
    """Columns that no earlier ones make up."""
    found: list[int] = []
    directions = np.zeros((len(rows), 0))
    for at, column in enumerate(rows.T):
        left = column - directions @ (directions.T @ column)
        left -= directions @ (directions.T @ left)
        if float(np.linalg.norm(left)) > _TOLERANCE * max(float(np.linalg.norm(column)), 1.0):
            found.append(at)
            directions = np.column_stack([directions, left / np.linalg.norm(left)])
    return found


def _recession(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A direction b with rows @ b >= 0 that is above 0 in as many rows as can be, and which those are."""
    count, size = rows.shape
    if not count or not size:
        return np.zeros(size), np.zeros(count, bool)
    # the directions form a cone, so each row that can be above 0 can be at least 1
    solved = linprog(
        np.repeat([0.0, -1.0], [size, count]),
        A_ub=sparse.hstack([sparse.csr_array(-rows), sparse.eye_array(count)]).tocsr(),
        b_ub=np.zeros(count),
        bounds=[(None, None)] * size + [(0, 1)] * count,
        method="highs",
    )
    decided = solved.x[size:] > 0.5
    return (solved.x[:size] if decided.any() else np.zeros(size)), decided
