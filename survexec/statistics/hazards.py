"""Regression of the hazard of a first error: discrete time, GEE, Cox, Fine-Gray; clustered by task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from scipy import stats

from survexec.checks import CLASSES, KEY
from survexec.errors import InputError
from survexec.protocol.trajectory import Ending
from survexec.rollouts import Rollouts
from survexec.statistics.cox import TIES, RiskRows, fit_cox
from survexec.statistics.design import DEPTH, Design, Estimate, Factor, Terms, build, nothing, parse
from survexec.statistics.discrete import CORRELATIONS, LINKS, Exposure, depth_scale, expose, fit_gee, fit_glm
from survexec.statistics.fine_gray import fit_fine_gray
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level

COVARIATES: Final = (*KEY, "stratum", "source")
MODELS: Final = ("discrete", "gee", "cox", "fine_gray")
_RATIOS: Final = {"logit": "odds ratio", "cloglog": "hazard ratio"}


@dataclass(frozen=True, eq=False)
class HazardModel(Result):
    """A regression table of the hazard of a first error.

    The frame has one row a coefficient: ``term, label, coefficient, standard_error, ratio, lower, upper, statistic, df,
    p_value, nuisance``. ``lower, upper`` are the limits of the ratio exp(coefficient); ``df`` is infinite where the
    statistic is referred to the normal distribution; ``nuisance`` marks the intercept and what is of depth alone.
    """

    kind: ClassVar[str] = "hazard_model"


@dataclass(frozen=True)
class _Data:
    """What a model needs of the rollouts, codes throughout."""

    time: np.ndarray
    state: np.ndarray  # 0 censored, 1 error (of the cause), 2 another end
    task: np.ndarray
    stratum: np.ndarray
    pattern: np.ndarray  # which combination of covariates
    codes: dict[str, np.ndarray]  # per pattern
    levels: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def hazard_model(
    rollouts: Rollouts,
    formula: str = "method + depth",
    *,
    model: str = "discrete",
    link: str = "logit",
    depth: str = "factor",
    max_depth: int | None = 8,
    ties: str = "efron",
    correlation: str = "independence",
    cause: str | None = None,
    strata: str | None = None,
    cluster: str | None = "task",
    level: float = 0.95,
) -> HazardModel:
    """How much more, or less, often a method's next call is a first error, given that none was before.

    Parameters
    ----------
    rollouts : Rollouts
    formula : str
        Columns of the rollouts and ``depth``, joined by ``+``, ``:``, ``*``, ``-``; each column is coded against its
        first value in the table. Nothing in it is evaluated.
    model : {"discrete", "gee", "cox", "fine_gray"}
        "discrete": binomial regression on person-depths. "gee": the same by estimating equations. "cox": Cox's
        partial likelihood over depth. "fine_gray": the subdistribution hazard of an error, finishing competes.
    link : {"logit", "cloglog"}
        For "discrete" and "gee": odds ratios, or ratios of the hazard of a grouped continuous time.
    depth : {"factor", "smooth"}
        ``depth`` in the formula as one level a depth, or as a natural cubic spline; Cox and Fine-Gray leave it free.
    max_depth : int, optional
        Depths from here on are one level of the factor; None: each its own.
    ties : {"efron", "breslow", "exact"}
        For "cox".
    correlation : {"independence", "exchangeable"}
        Working correlation for "gee".
    cause : str, optional
        Only first errors of this class are events; under "fine_gray" the others compete, else they censor.
    strata : str, optional
        For "cox": "task", or a column, with a hazard of its own for each value.
    cluster : {"task", None}
        Errors robust to the dependence within tasks, t with G-1 degrees of freedom for G tasks; None: each rollout
        (person-depth) on its own, and the normal distribution.
    level : float

    Returns
    -------
    HazardModel

    Raises
    ------
    InputError
        If the formula or an option is at fault, or there is nothing to estimate.

    Notes
    -----
    Clustered errors carry the factor G/(G-1) for "discrete" only, as R's sandwich does; "gee" is R's geepack, "cox"
    R's survival, "fine_gray" R's cmprsk. See `fit_glm`, `fit_gee`, `fit_cox`, `fit_fine_gray`. Discrete-time hazards:
    Singer & Willett (1993, J. Educ. Stat. 18).

    Examples
    --------
    >>> import survexec as sx
    >>> fit = hazard_model(sx.datasets.load_tau_retail_methods(), "method + depth", model="cox")
    >>> fit.frame["label"].tolist()[0]
    'tool_calling_preconditions vs tool_calling'
    """
    _check(model, link, depth, max_depth, ties, correlation, cause, strata, cluster)
    level = checked_level(level)
    terms = _checked_terms(parse(formula, (*COVARIATES, DEPTH)), model, formula)
    data = _prepared(rollouts, terms, cause, strata)
    entered = data.task if model == "fine_gray" else data.task[data.time > 0]
    made: dict[str, Any] = {
        "formula": formula, "model": model, "cause": cause, "strata": strata, "cluster": cluster, "level": level,
        "unit": "task", "rule": str(rollouts.rule), "rollouts": len(data.time),
        "tasks": len(np.unique(entered)), "events": int((data.state == 1).sum()), "person_depths": int(data.time.sum()),
        "references": {name: levels[0] for name, levels in data.levels.items()},
    }  # fmt: skip
    if model in ("discrete", "gee"):
        made |= {"link": link, "depth": depth, "max_depth": max_depth, "ratio": _RATIOS[link]}
    with np.errstate(all="ignore"):
        if model == "fine_gray":
            made |= {"ratio": "subdistribution hazard ratio"}
            design, estimate, notes = _fine_gray(data, terms, cluster)
        else:
            task = data.task if cluster else np.zeros_like(data.task)
            seen = expose(data.time, data.state == 1, task, data.stratum, data.pattern)
            if model == "cox":
                made |= {"ties": ties, "ratio": "odds ratio" if ties == "exact" else "hazard ratio"}
                design, estimate, notes = _cox(data, seen, terms, ties, cluster)
            else:
                working = correlation if model == "gee" else None
                made |= {"correlation": working}
                design, estimate, notes = _discrete(data, seen, terms, made, working)
        made |= {"log_likelihood": estimate.log_likelihood, "log_likelihood_null": estimate.log_likelihood_null}
        frame = _frame(design, estimate, made)
    told = (*data.notes, *notes, *_notes(design, estimate, made), *rollouts.notes)
    return HazardModel(frame, (), told, made, rollouts.ledger)


def _check(
    model: str, link: str, depth: str, max_depth: int | None, ties: str, correlation: str, cause: str | None,
    strata: str | None, cluster: str | None,
) -> None:  # fmt: skip
    """Refuse options that are unknown or do not go together."""
    known: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "model": (model, MODELS), "link": (link, tuple(LINKS)), "depth": (depth, ("factor", "smooth")),
        "ties": (ties, TIES), "correlation": (correlation, tuple(CORRELATIONS)), "cause": (cause, (None, *CLASSES)),
        "strata": (strata, (None, "task", *COVARIATES)), "cluster": (cluster, ("task", None)),
    }  # fmt: skip
    for name, (given, allowed) in known.items():
        if given not in allowed:
            raise InputError(f"{name} = {given!r}; it must be one of {', '.join(map(str, allowed))}")
    if max_depth is not None and max_depth < 1:
        raise InputError(f"max_depth = {max_depth}; depths count from 1")
    if strata is not None and model != "cox":
        raise InputError(f"strata = {strata!r} goes with model = 'cox'; elsewhere put the column into the formula")
    if cluster is None and model == "gee":
        raise InputError("model = 'gee' is robust to the dependence within tasks; it needs cluster = 'task'")
    if cluster is not None and ties == "exact" and model == "cox":
        raise InputError("ties = 'exact' has no clustered errors; take cluster = None, and strata = 'task' for pairing")


def _checked_terms(terms: Terms, model: str, formula: str) -> Terms:
    """The terms that a model can take: in Cox's and Fine and Gray's, depth is the time scale."""
    if model in ("discrete", "gee"):
        return terms
    for term in terms:
        if DEPTH in term and len(term) > 1:
            raise InputError(
                f"formula = {formula!r}: {':'.join(term)} needs model = 'discrete' or 'gee'; in {model!r} depth is time"
            )
    return ((), *(term for term in terms if term and term != (DEPTH,)))


def _prepared(rollouts: Rollouts, terms: Terms, cause: str | None, strata: str | None) -> _Data:
    """The rollouts that can enter, as codes; a level's code is its order of first appearance."""
    frame, notes = rollouts.frame, []
    if frame.empty:
        raise InputError("there are no rollouts")
    names = [name for name in COVARIATES if any(name in term for term in terms)]
    by = ["benchmark", "task_id"] if strata == "task" else [strata] if strata else []
    needed = list(dict.fromkeys([*names, *by]))
    known = frame[needed].notna().all(axis=1).to_numpy()
    if not known.any():
        raise InputError(f"no rollout has a value of {', '.join(needed)}")
    if not known.all():
        missing = ", ".join(name for name in needed if frame[name].isna().any())
        notes.append(f"{(~known).sum()} of {len(known)} rollouts have no value of {missing} and are left out")
    event = rollouts.events.to_numpy(bool)
    errs = event if cause is None else event & (frame["error_class"] == cause).fillna(False).to_numpy(bool)
    ends = (event & ~errs) | (~event & (frame["ending"] == str(Ending.COMPLETED)).to_numpy(bool))
    state = np.where(errs, 1, np.where(ends, 2, 0))[known]
    frame = frame[known]
    coded = {name: pd.factorize(frame[name].astype("string").astype(object)) for name in names}
    table = np.stack([codes for codes, _ in coded.values()], axis=1) if coded else np.zeros((len(frame), 1), int)
    patterns, pattern = np.unique(table, axis=0, return_inverse=True)
    levels = {name: tuple(map(str, unique)) for name, (_, unique) in coded.items()}
    notes += [
        f"{name} has one value only, {unique[0]!r}: it has no coefficient"
        for name, unique in levels.items()
        if len(unique) == 1
    ]
    for name, (codes, unique) in coded.items():
        silent = unique[np.bincount(codes, state == 1, len(unique)) == 0]
        if 0 < len(silent) < len(unique):
            notes.append(f"no error in {name} {', '.join(silent[:10])}{', ...' if len(silent) > 10 else ''}")
    _, task = np.unique(rollouts.tasks[0][known], return_inverse=True)
    stratum = frame.groupby(by, sort=True).ngroup().to_numpy() if by else np.zeros(len(frame), int)
    codes = {name: patterns[:, at] for at, name in enumerate(names)}
    time = rollouts.durations.to_numpy("int64")[known]
    return _Data(time, state, task, stratum, pattern.ravel(), codes, levels, tuple(notes))


def _factors(data: _Data, pattern: np.ndarray) -> dict[str, Factor]:
    """The covariates as factors, one row a pattern asked for."""
    return {
        name: Factor(name, levels, np.eye(len(levels))[data.codes[name][pattern]])
        for name, levels in data.levels.items()
    }


def _without_call(data: _Data) -> list[str]:
    """The note on rollouts that are never at risk."""
    zero = int((data.time == 0).sum())
    return [f"{zero} rollouts made no call (T = 0): never at risk, they contribute no row"] if zero else []


def _discrete(
    data: _Data, seen: Exposure, terms: Terms, made: dict[str, Any], correlation: str | None
) -> tuple[Design, Estimate, list[str]]:
    """Binomial regression or GEE on person-depths."""
    notes = _without_call(data)
    scale = None
    if any(DEPTH in term for term in terms):
        scale, kept, told = depth_scale(seen, made["depth"], made["max_depth"])
        notes += told
        columns = (seen.task, seen.stratum, seen.pattern, seen.depth, seen.at_risk, seen.events)
        seen = Exposure(*(column[kept] for column in columns))
    else:
        notes.append("the formula has no depth: one hazard for all depths")
    deepest = int(seen.depth.max(initial=0)) + 1
    cells, cell = np.unique(seen.pattern * deepest + seen.depth, return_inverse=True)
    factors = _factors(data, cells // deepest)
    if scale is not None:
        factors[DEPTH] = replace(scale, basis=scale.basis[cells % deepest])
        if len(scale.levels) == 1:
            notes.append(f"depth has one level only, {scale.levels[0]}: it has no coefficient")
    design = build(terms, factors, len(cells))
    if not made["events"]:
        return design, nothing(len(design.terms)), notes
    x, clusters = design.matrix, made["tasks"] if made["cluster"] else None
    if correlation is None:
        return design, fit_glm(seen, cell, x, made["link"], clusters), notes
    estimate = fit_gee(seen, cell, x, made["link"], correlation)
    if correlation == "exchangeable":
        notes.append(f"working correlation within a task: {estimate.correlation:.3g}")
    return design, estimate, notes


def _covariates(data: _Data, terms: Terms) -> Design:
    """The design by pattern without an intercept, which a free baseline hazard takes up."""
    patterns = np.arange(data.pattern.max() + 1)
    design = build(terms, _factors(data, patterns), len(patterns))
    if design.matrix.shape[1] < 2:
        raise InputError("nothing to estimate: no column of the formula has two values")
    return Design(design.matrix[:, 1:], design.terms[1:], design.labels[1:], design.nuisance[1:])


def _cox(
    data: _Data, seen: Exposure, terms: Terms, ties: str, cluster: str | None
) -> tuple[Design, Estimate, list[str]]:
    """Cox's model over depth."""
    design = _covariates(data, terms)
    notes = [*_without_call(data), "depth is the time scale: its hazard is left free"]
    if not seen.events.any():
        return design, nothing(len(design.terms)), notes
    risk = seen.stratum * (int(seen.depth.max(initial=0)) + 1) + seen.depth
    rows = RiskRows.of(risk, seen.pattern, seen.task, seen.at_risk, seen.events, design.matrix)
    estimate = fit_cox(rows, ties, int(seen.task.max()) + 1 if cluster else None)
    return design, estimate, notes


def _fine_gray(data: _Data, terms: Terms, cluster: str | None) -> tuple[Design, Estimate, list[str]]:
    """Fine and Gray's model over depth."""
    design = _covariates(data, terms)
    unit = data.task if cluster else np.arange(len(data.task))
    if (data.state == 1).any():
        estimate = fit_fine_gray(data.time, data.state, data.pattern, design.matrix, unit)
    else:
        estimate = nothing(len(design.terms))
    notes = ["depth is the time scale: its hazard is left free"]
    zero = int((data.time == 0).sum())
    if zero:
        notes.append(f"{zero} rollouts made no call (T = 0): they ended at depth 0, before any error could come")
    notes.append(
        f"{int((data.state == 2).sum())} rollouts ended otherwise and stay in the risk set; "
        f"{int((data.state == 0).sum())} are censored"
    )
    return design, estimate, notes


def _frame(design: Design, estimate: Estimate, made: dict[str, Any]) -> pd.DataFrame:
    """The regression table."""
    one_task = bool(made["cluster"]) and made["tasks"] < 2
    errors = np.sqrt(np.diag(estimate.covariance)) * (np.nan if one_task else 1)
    df = made["tasks"] - 1 if made["cluster"] else np.inf
    reference = stats.t(df) if np.isfinite(df) and df > 0 else stats.norm()
    statistic = estimate.coefficients / errors
    half = reference.isf((1 - made["level"]) / 2) * errors
    return pd.DataFrame(
        {
            "term": design.terms, "label": design.labels, "coefficient": estimate.coefficients,
            "standard_error": errors, "ratio": np.exp(estimate.coefficients),
            "lower": np.exp(estimate.coefficients - half), "upper": np.exp(estimate.coefficients + half),
            "statistic": statistic, "df": float(df), "p_value": 2 * reference.sf(np.abs(statistic)),
            "nuisance": np.array(design.nuisance, bool),
        }
    )  # fmt: skip


def _notes(design: Design, estimate: Estimate, made: dict[str, Any]) -> list[str]:
    """What a reader must know of the fit: what could not be estimated and why."""
    if not made["events"]:
        what = "error" if made["cause"] is None else f"first error of class {made['cause']}"
        return [f"no {what} in {made['rollouts']} rollouts: the hazard is 0, and no ratio can be estimated"]
    notes, part = [], estimate.part
    labels = np.array(design.labels, dtype=object)
    if part.aliased.any():
        notes.append(f"not to be told apart from what stands before: {', '.join(labels[part.aliased])}")
    infinite = ~part.finite & ~part.aliased
    for sign, where in ((1, "plus"), (-1, "minus")):
        some = infinite & (np.sign(np.round(part.direction, 6)) == sign)
        if some.any():
            notes.append(f"separation, the estimate goes to {where} infinity: {', '.join(labels[some])}")
    some = infinite & (np.round(part.direction, 6) == 0)
    if some.any():
        notes.append(f"separation leaves nothing to estimate it from: {', '.join(labels[some])}")
    if estimate.left_out:
        notes.append(f"{estimate.left_out:.6g} person-depths are certain in that limit and left out")
    if made["cluster"] and made["tasks"] < 2:
        notes.append("one task, so nothing is known of the spread over tasks: no standard errors")
    if not estimate.converged:
        notes.append("the fit did not converge; its numbers are not to be used")
    return notes
