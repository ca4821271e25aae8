"""What a comparison allows one to say: a sentence for each pair and metric, never stronger than its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from survexec.display.wording import IN_CALLS, decimals, groups, number
from survexec.rollouts import counted
from survexec.statistics.comparison import Comparison
from survexec.statistics.difference_intervals import FEW_APART, apart
from survexec.statistics.estimands import METRICS, Metric
from survexec.statistics.families import ADJUSTMENTS
from survexec.statistics.metric_tests import known_everywhere
from survexec.statistics.pairing import Pair, named
from survexec.statistics.summary import BOOTSTRAP

# The headline metrics, as they stand inside a sentence.
NAMES: Final = {"ter": "TER", "mean_fed": "mean FED", "auc_pec": "AUC-PEC", "rr": "RR", "success": "success rate"}
# Below these a sentence says how little it rests on; with fewer than 5 differing tasks no exact test reaches 0.05.
_FEW_TASKS, _FEW_ERRORS = 20, 5
# Nearer to 0 than this is rounding of the machine.
_ZERO: Final = 1e-9
_TOLD: Final = {
    "shown": ("was shown", "were shown"),
    "suggested": ("is suggested, not shown", "are suggested, not shown"),
}


@dataclass(frozen=True, slots=True)
class Claim:
    """What one row of a comparison allows one to say.

    Parameters
    ----------
    pair : str
        The two sides, and where.
    metric : str
    text : str
        Plain text; names stand in it as they are in the data.
    strength : {"shown", "suggested", "not shown", "undefined", "interval only"}
    """

    pair: str
    metric: str
    text: str
    strength: str


@dataclass(frozen=True, slots=True)
class PairClaims:
    """The claims of a pair.

    Parameters
    ----------
    pair : str
    summary : str
        All of them in one sentence.
    claims : tuple of Claim
        One a metric.
    readings : tuple of str
        What they say together: what success alone would miss, what goes with length, which tasks they hold for.
    """

    pair: str
    summary: str
    claims: tuple[Claim, ...]
    readings: tuple[str, ...]

    @property
    def tells(self) -> bool:
        """Whether anything is shown or suggested."""
        return any(claim.strength in _TOLD for claim in self.claims)


def claims(comparison: Comparison) -> tuple[Claim, ...]:
    """One sentence for each pair and headline metric of a comparison, no stronger than its interval and adjusted test.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    tuple of Claim
        Pair by pair; a metric that was not compared has none.

    Notes
    -----
    Shown: the adjusted p is at most 1 - level and the interval excludes 0. Suggested: the same holds of the unadjusted
    p alone. Where a difference is not shown, the sentence says what the interval leaves possible, since absence of
    evidence is no evidence of absence. The intervals are those of the comparison, not adjusted for its other tests.

    References
    ----------
    Altman and Bland (1995), BMJ 311:485; Wasserstein and Lazar (2016), The American Statistician 70:129-133.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods().select(method=["tool_calling", "assertions"])
    >>> [(claim.metric, claim.strength) for claim in claims(sx.compare(runs, metrics=["ter", "success"]))]
    [('ter', 'not shown'), ('success', 'shown')]
    """
    return tuple(claim for pair in claims_by_pair(comparison) for claim in pair.claims)


def claims_by_pair(comparison: Comparison) -> tuple[PairClaims, ...]:
    """The claims of each pair, a sentence that sums them up, and what the metrics say together.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    tuple of PairClaims
        In the order of the comparison.

    Examples
    --------
    >>> import survexec as sx
    >>> runs = sx.datasets.load_tau_retail_methods().select(method=["tool_calling", "assertions"])
    >>> claims_by_pair(sx.compare(runs, metrics=["ter", "success"]))[0].summary
    'Shown: tool_calling had a higher success rate than assertions; not shown to differ: TER.'
    """
    rows = groups(comparison.frame, [*comparison.by, "a", "b"])  # in the order of the pairs
    return tuple(
        _told(of.pair, {row.metric: _Row(row, of.pair, comparison) for row in frame.itertuples(index=False)})
        for of, (_, frame) in zip(comparison.pairs, rows, strict=True)
    )


def family(comparison: Comparison) -> str:
    """Which tests were adjusted together, and how, in a sentence.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str

    Examples
    --------
    >>> import survexec as sx
    >>> family(sx.compare(sx.datasets.load_tau_retail_methods(), metrics=["ter", "success", "rr"], resamples=200))
    'p is adjusted by Holm over a family of 12 tests (TER, success rate; 6 pairs).'
    """
    tested = comparison.frame[comparison.frame["p_value"].notna()]
    if tested.empty:
        return "No metric of this comparison has a test."
    names = ", ".join(NAMES.get(name, METRICS[name].label) for name in tested["metric"].unique())
    of = f"a family of {counted(len(tested), 'tests')} ({names}; {counted(len(comparison.pairs), 'pairs')})"
    adjust = comparison.made.get("adjust", "holm")
    return f"p is {'not adjusted' if adjust == 'none' else 'adjusted by ' + ADJUSTMENTS[adjust]} over {of}."


class _Row:
    """One row of a comparison, judged, and its numbers in words."""

    def __init__(self, row: Any, pair: Pair, comparison: Comparison) -> None:
        self.row, self.pair, self.notes = row, pair, comparison.notes
        self.metric: Metric = METRICS[row.metric]
        self.name = NAMES.get(row.metric, self.metric.label)
        self.unit, self.digits = " calls" * (row.metric in IN_CALLS), decimals(row.metric)
        self.level = f"{100 * comparison.made['level']:g}% interval"
        self.adjust = ADJUSTMENTS[comparison.made.get("adjust", "holm")].partition(" (")[0]
        self.alpha = 1 - comparison.made["level"] + 1e-12  # so that rounding never decides
        self.tested, self.tests = not pd.isna(row.p_value), int(comparison.frame["p_value"].notna().sum())
        self.more, self.higher = ("higher", row.a) if row.difference > 0 else ("lower", row.b)
        self.counts = self.adjust != "none" or self.tests == 1
        # 1 where the interval lies above 0, -1 below, 0 where it includes 0 or there is none
        self.side = int(row.lower > _ZERO) - int(row.upper < -_ZERO)

    @cached_property
    def both(self) -> np.ndarray:
        """Which tasks have the metric on both sides."""
        return known_everywhere(self.pair.tally, self.metric)

    @cached_property
    def apart(self) -> int:
        """On how many tasks the two sides differ."""
        return apart(self.pair, self.metric)

    @cached_property
    def case(self) -> str:
        """Which sentence the numbers allow."""
        row, side = self.row, self.side
        if pd.isna(row.difference):
            return "undefined"
        if not self.metric.conditional and self.both.all() and not self.apart:
            return "same"
        if not row.lower < row.upper:
            return "no interval"
        if not self.tested:
            return "interval only"
        rejects, survives = row.p_value <= self.alpha, row.p_adjusted <= self.alpha and self.counts
        if rejects != bool(side) or (survives and not rejects) or (side and side != np.sign(row.difference)):
            return "disagree"
        return "shown" if survives else "suggested" if rejects else "not shown"

    @cached_property
    def strength(self) -> str:
        if self.case in ("undefined", "no interval"):
            return "undefined"
        return self.case if self.case in _TOLD else "not shown" if self.tested else "interval only"

    def fixed(self, value: float) -> str:
        """A number rounded as in the table of differences, but never to 0 unless it is 0."""
        digits = self.digits
        while abs(value) > _ZERO and round(abs(value), digits) == 0:
            digits += 1
        return number(value, digits)

    @property
    def change(self) -> str:
        """The difference with its sign and unit."""
        return ("+" if self.row.difference > _ZERO else "") + self.fixed(self.row.difference) + self.unit

    @property
    def interval(self) -> str:
        bounds = f"{self.fixed(self.row.lower)} to {self.fixed(self.row.upper)}"
        return f"{self.level} {bounds}" if self.row.lower < self.row.upper else "no interval"

    @property
    def reach(self) -> str:
        """What the interval leaves possible; not where it comes of resampling too few tasks that differ."""
        low, high = self.row.lower, self.row.upper
        if not self.metric.conditional and self.row.interval in BOOTSTRAP and self.apart < FEW_APART:
            return f"{self.change} ({self.interval}"
        start = f"{self.row.a} lower by {self.fixed(-low)}" if low < -_ZERO else "0"
        end = f"{'' if low < -_ZERO else self.row.a + ' '}higher by {self.fixed(high)}" if high > _ZERO else "0"
        possible = f"the data are compatible with anything from {start} to {end}{self.unit}"
        return f"{possible} ({self.level}; estimate {self.change}"

    @property
    def adjusted(self) -> str:
        p = self.p(self.row.p_adjusted)
        known = f"p {p}, not adjusted" if self.adjust == "none" else f"{self.adjust}-adjusted p {p}"
        return known if self.tested else "no test, not adjusted"

    def p(self, value: float) -> str:
        """A p-value with as many digits as it takes to see on which side of alpha it lies."""
        floor, digits = min(0.001, self.alpha), 3
        if value < floor:
            return f"< {floor:g}"
        while value > 0 and (not round(value, digits) or (round(value, digits) <= self.alpha) != (value <= self.alpha)):
            digits += 1
        return "undefined" if pd.isna(value) else f"= {number(value, digits)}"

    @property
    def basis(self) -> str:
        """On how many tasks and rollouts it rests."""
        row, tasks = self.row, counted(self.row.n_pairs, "paired tasks")
        if self.metric.conditional:
            erring = f"{row.denominator_a} and {row.denominator_b} erring rollouts"
            return f"{erring} of {tasks}, {int(self.both.sum())} of them erring on both sides"
        plain = row.denominator_a == row.denominator_b == row.n_pairs
        return tasks + ("" if plain else f", {row.denominator_a} and {row.denominator_b} rollouts")


def _told(pair: Pair, rows: dict[str, _Row]) -> PairClaims:
    """The claims of one pair."""
    name = named(f"{pair.a} against {pair.b}", pair.within)
    heads = {metric: rows[metric] for metric in NAMES if metric in rows}
    made = tuple(Claim(name, metric, _sentence(row) + _small(row), row.strength) for metric, row in heads.items())
    missing, kept = counted(len(pair.left_out), "tasks"), counted(len(pair.tally.tasks), "tasks")
    held = f"Left out: {missing} that only one side has; the claims hold for the {kept} that both have, and no further."
    length = _length(heads, rows.get("mean_length"))
    readings = (_success_alone(heads), length, held if pair.left_out else "")
    return PairClaims(name, _summary(pair, heads, bool(length)), made, tuple(filter(None, readings)))


def _sentence(r: _Row) -> str:
    """One row in words."""
    a, b, title, few = r.row.a, r.row.b, r.name[0].upper() + r.name[1:], f"({r.interval}; {r.adjusted}; {r.basis})"
    unadjusted = f"unadjusted p {r.p(r.row.p_value)}"
    if r.case == "undefined":
        return f"{title} of {a} and {b} cannot be compared: {_reason(r)}."
    if r.case == "same":
        held = "That does not show that they would agree on other tasks."
        return f"{title} came out the same for {a} and {b} on every task {few}. {held}"
    if r.case == "no interval":
        return f"{title} of {a} and {b} has no interval, so nothing is claimed: {r.change} {few}."
    if r.case == "interval only" and r.side:
        alone = "by its interval alone, which is not adjusted for the other comparisons"
        return f"{title} has no test here; {alone}, {a} was {r.more} than {b}: {r.change} ({r.interval}; {r.basis})."
    if r.case == "shown":
        return f"{a} had a {r.more} {r.name} than {b}: {r.change} {few}."
    if r.case == "suggested":
        lost = "It does not survive the adjustment over" if r.counts else "No adjustment was made for"
        lost += f" the family of {counted(r.tests, 'tests')} ({r.adjusted})."
        told = f"{r.change} ({r.interval}; {unadjusted}; {r.basis}). {lost}"
        return f"A {r.more} {r.name} of {a} than of {b} is suggested, not shown: {told}"
    if r.case == "disagree":
        told = f"{r.interval}, which {'excludes' if r.side else 'includes'} 0; {unadjusted}, {r.adjusted}; {r.basis}"
        return f"Test and interval disagree on the {r.name} of {a} and {b}, so nothing is claimed: {r.change} ({told})."
    return f"No difference in {r.name} between {a} and {b} was shown: {r.reach}; {r.adjusted}; {r.basis})."


def _reason(r: _Row) -> str:
    """Why a difference does not exist, as the notes have it."""
    start = f"{r.pair.name}: {r.metric.label} is "
    found = [note for note in r.notes if note.startswith(start + "undefined in ") and note.endswith("(0/0)")]
    return f"it is {found[0].removeprefix(start)}" if found else "it is undefined"


def _small(r: _Row) -> str:
    """A note where a claim rests on little; "" where it does not."""
    row, errors = r.row, int(r.pair.tally.total.errors.sum())
    under, plain = min(row.denominator_a, row.denominator_b), not r.metric.conditional
    few = {
        counted(row.n_pairs, "paired tasks"): row.n_pairs < _FEW_TASKS,
        f"a denominator of {under}": under < _FEW_TASKS and under != row.n_pairs,
        f"{counted(r.apart, 'tasks')} on which the two differ": plain and 0 < r.apart < FEW_APART,
        f"{counted(errors, 'erring rollouts')} in all": plain and row.metric != "success" and errors < _FEW_ERRORS,
    }
    text = ", ".join(words for words, small in few.items() if small)
    return f" Small sample: {text}." if text and r.case != "undefined" else ""


def _listed(words: Sequence[str]) -> str:
    """Words joined as a person would: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _summary(pair: Pair, rows: dict[str, _Row], lengthy: bool) -> str:
    """All claims of a pair in one sentence."""
    by: dict[str, list[_Row]] = {}
    for row in rows.values():
        by.setdefault(row.strength, []).append(row)
    names = {strength: _listed([row.name for row in found]) for strength, found in by.items()}
    aside = {"mean_fed": " (which goes with length)"} if lengthy else {}
    changes = {
        known: [f"a {r.more} {r.name}{aside.get(r.row.metric, '')}" for r in by.get(known, [])] for known in _TOLD
    }
    changed = {known: _listed(found) for known, found in changes.items() if found}
    parts = [f"no difference between {pair.a} and {pair.b} was shown" if rows else "no headline metric was compared"]
    if "shown" in by:
        parts = [f"shown: {pair.a} had {changed['shown']} than {pair.b}"]
    if "suggested" in by:
        parts.append(f"suggested only: {changed['suggested']} of {pair.a}")
    if "not shown" in by and changed:
        parts.append(f"not shown to differ: {names['not shown']}")
    elif "not shown" in by:
        parts = [f"{parts[0]} in {names['not shown']}, which does not say that they agree"]
    parts += [f"{strength}: {names[strength]}" for strength in ("interval only", "undefined") if strength in by]
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _leaning(rows: Sequence[_Row]) -> str:
    """Which side is higher in which metrics, and how well that is known."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault((row.strength, row.higher), []).append(f"a higher {row.name}")
    return _listed([f"{_listed(n)} of {who} {_TOLD[known][len(n) > 1]}" for (known, who), n in found.items()])


def _success_alone(rows: dict[str, _Row]) -> str:
    """What reading by success alone would miss; "" where it would miss nothing."""
    clean = [rows[metric] for metric in ("ter", "auc_pec") if metric in rows]
    told = [row for row in clean if row.strength in _TOLD]
    success = rows.get("success")
    if success is not None and success.strength == "not shown" and told:
        missed = "miss this" if any(row.strength == "shown" for row in told) else "give no hint of this"
        return f"Success alone would {missed}: no difference in it was shown, while {_leaning(told)}."
    if success is None or success.strength not in _TOLD or not clean:
        return ""
    against = [row for row in told if row.higher != success.higher]
    if against:
        return f"Success alone would hide a conflict: {_leaning([success])}, while {_leaning(against)}."
    if any(row.strength != "not shown" for row in clean):
        return ""
    return (
        f"Success alone would hide that no difference in {_listed([row.name for row in clean])} was shown beside it: "
        f"{_leaning([success])}, which is no evidence of cleaner execution."
    )


def _length(rows: dict[str, _Row], length: _Row | None) -> str:
    """That a difference in mean FED goes with length and not with cleaner rollouts; "" where it does not."""
    found = {metric: row.strength for metric, row in rows.items()}
    if found.get("mean_fed") not in _TOLD or any(found.get(metric) != "not shown" for metric in ("ter", "auc_pec")):
        return ""
    if length is None or not length.side or length.case == "disagree" or length.higher != rows["mean_fed"].higher:
        return ""
    longer = f"{length.higher} were longer (mean length, a − b: {length.change}; {length.interval}; {length.adjusted})"
    return (
        f"The difference in mean FED goes with length: rollouts of {longer}, FED is T + 1 where nothing fails, and no "
        "difference in TER and AUC-PEC was shown. It is no evidence of cleaner rollouts."
    )
