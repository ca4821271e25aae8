"""Cohorts that print a published table, and sharp bounds of what it did not publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from scipy import special

from survexec.errors import InputError
from survexec.rollouts import LEDGER_COLUMNS, Rollouts, ledger_of
from survexec.statistics.audit import audit
from survexec.statistics.feasible import Feasible
from survexec.statistics.pairing_bounds import Side, unpaired
from survexec.statistics.possible import SUCCESSES, possible
from survexec.statistics.published import Published, PublishedRow, read_published
from survexec.statistics.quantity_bounds import bounded, check_quantity, side
from survexec.statistics.resampling import as_seed
from survexec.statistics.results import Result
from survexec.statistics.summary import checked_level
from survexec.statistics.tally import CELL

SOURCE: Final = "reconstructed"
COLUMNS: Final = (
    "row", *CELL, "n", "clean", "rr_eligible", "recovered", "clean_success", "mean_fed", "auc_pec", "mean_length",
    "met",
)  # fmt: skip
BOUNDS: Final = ("row", *CELL, "quantity", "k", "lower", "upper", "sharp", "published")
_LONGEST: Final = 15
_DIFFERENCES: Final = ("ter", "success", "mean_fed", "auc_pec")


@dataclass(frozen=True)
class Bounds(Result):
    """Least and greatest value of a quantity over every cohort that prints a row."""

    kind: ClassVar[str] = "reconstruction_bounds"


@dataclass(frozen=True)
class DifferenceBounds(Result):
    """A difference between two methods over every cohort and every pairing of their tasks."""

    kind: ClassVar[str] = "difference_bounds"


@dataclass(frozen=True)
class Reconstruction(Result):
    """Cohorts that print a published table.

    Parameters
    ----------
    rollouts : Rollouts
        One cohort a row, of ``source`` "reconstructed". No two cells share a task, since which rollouts of two methods
        are of the same task was not published: what compares by task refuses them.
    """

    rollouts: Rollouts = field(default_factory=lambda: _rollouts([], 0), repr=False)
    _published: Published | None = field(default=None, repr=False)
    _sets: tuple[Feasible | None, ...] = field(default=(), repr=False)
    kind: ClassVar[str] = "reconstruction"

    def bounds(self, quantity: str, k: int | None = None) -> Bounds:
        """What a quantity can be in each row, over every cohort of lengths up to the horizon that prints it.

        Parameters
        ----------
        quantity : str
            A count ("clean", "rr_eligible", "recovered", "clean_success", "successes"), a metric ("ter", "mean_fed",
            "auc_pec", "rr", "s", "success", "success_after_error", "mean_length") or one at a depth ("pec",
            "pec_elig", "hazard", "km").
        k : int, optional
            The depth, at least 1.

        Returns
        -------
        Bounds
            ``lower, upper``; ``sharp`` is False where a cohort need not reach them.

        Raises
        ------
        InputError

        Notes
        -----
        Sums are bounded by integer programs, ratios by Dinkelbach's series of them, quantities of success by
        enumeration: all exactly. Kaplan-Meier beyond depth 1 is a product; its bounds are outer, the tighter of the
        product of the bounds of its factors and of PEC(k) <= KM(k) <= 1 - (errors up to k) / n. Mean length and what
        is deep depend on the horizon, since nothing published bounds the length of a rollout after its error.
        """
        check_quantity(quantity, k)
        rows = []
        for row, cohorts in zip(self._rows, self._sets, strict=True):
            low, high, sharp = (np.nan, np.nan, True) if cohorts is None else bounded(cohorts, quantity, k)
            shown = row.printed.get(f"pec_{k}" if quantity == "pec" else quantity)
            known = {"lower": low, "upper": high, "sharp": sharp, "published": np.nan if shown is None else shown.value}
            rows.append({**row.identity(), "quantity": quantity, "k": pd.NA if k is None else k, **known})
        frame = pd.DataFrame(rows, columns=list(BOUNDS)).astype({"k": "Int64"})
        notes = [self.notes[0], _horizon_note(self.made["horizon"])]
        if not frame["sharp"].all():
            notes.append("bounds marked as not sharp are outer: every cohort lies within, none need reach them")
        return Bounds(frame, CELL, tuple(notes), {**self.made, "quantity": quantity, "k": k}, self.ledger)

    def difference_bounds(
        self, metric: str, a: str, b: str, within: Sequence[str] = ("benchmark", "model"), level: float = 0.95
    ) -> DifferenceBounds:
        """The difference between two methods where the pairing of their tasks is not known.

        Parameters
        ----------
        metric : {"ter", "success", "mean_fed", "auc_pec"}
        a, b : str
            Two methods.
        within : sequence of str
            Columns whose values the two share.
        level : float

        Returns
        -------
        DifferenceBounds
            One row for each pair: see `survexec.statistics.pairing_bounds.unpaired`. No p-value is given: a paired
            test needs the pairing.

        Raises
        ------
        InputError
        """
        if metric not in _DIFFERENCES:
            raise InputError(f"metric = {metric!r}; a difference over pairings is there for {', '.join(_DIFFERENCES)}")
        level, within = checked_level(level), (within,) if isinstance(within, str) else tuple(within)
        if not set(within) <= {"benchmark", "model"}:
            raise InputError(f"within = {within!r}; it may hold benchmark and model")
        sides: dict[str, dict[tuple[Any, ...], tuple[PublishedRow, Side]]] = {a: {}, b: {}}
        for row, cohorts in zip(self._rows, self._sets, strict=True):
            labels = row.identity()
            if labels["method"] in sides and cohorts is not None:
                key = tuple(labels[name] for name in within)
                if key in sides[labels["method"]]:
                    raise InputError(f"{row.name}: {labels['method']!r} stands twice within {' and '.join(within)}")
                sides[labels["method"]][key] = (row, side(cohorts, metric))
        shared = [key for key in sides[a] if key in sides[b]] if a != b else []
        if not shared:
            there = ", ".join(dict.fromkeys(row.cell[2] for row in self._rows))
            raise InputError(f"no two rows of {a!r} and {b!r} share {' and '.join(within)}; methods are: {there}")
        rows = [
            {
                **dict(zip(within, key, strict=True)), "metric": metric, "a": a, "b": b, "n_a": sides[a][key][0].n,
                "n_b": sides[b][key][0].n, **unpaired(sides[a][key][1], sides[b][key][1], level),
            }
            for key in shared
        ]  # fmt: skip
        notes = (
            self.notes[0],
            "which tasks two methods share was not published: errors are bounded over every pairing, and the interval "
            "is that of the worst; the independent one holds unless a method does well where the other does badly",
            *([] if metric in ("ter", "success") else [_horizon_note(self.made["horizon"])]),
        )
        made = {**self.made, "metric": metric, "level": level}
        return DifferenceBounds(pd.DataFrame(rows), within, notes, made, self.ledger)

    @property
    def _rows(self) -> tuple[PublishedRow, ...]:
        return () if self._published is None else self._published.rows


def reconstruct(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    decimals: int | Mapping[str, int] | None = None,
    horizon: int | tuple[int, int] | None = None,
    rng: int | np.random.Generator = 0,
    draw: bool = False,
) -> Reconstruction:
    r"""Make a cohort (length, FED and success of every rollout) that prints each row of a published table.

    Parameters
    ----------
    table, columns, decimals
        As `audit` takes them.
    horizon : int or (int, int), optional
        The longest rollout, or the shortest and the longest. By default from 0 calls to 15, or to twice the
        greatest mean FED or one beyond the deepest PEC where that is more.
    rng : int or numpy.random.Generator
        Of draws.
    draw : bool
        False: the cohort of greatest entropy, made whole. True: a random cohort near to that distribution, moved until
        it prints the row; draws differ as samples do, and are not uniform over all cohorts.

    Returns
    -------
    Reconstruction
        ``frame``: one row a published row, with counts of its cohort and whether every printed number is met.

    Raises
    ------
    InputError
        The table cannot be read, or the horizon is impossible.

    Notes
    -----
    Aggregates leave most of a cohort open: read a curve of a reconstructed cohort as one of many, and `bounds` for what
    is known. Whole numbers of rollouts by (T, FED) meet the printed intervals as an integer program. The
    representative is the distribution of greatest entropy over (T, FED), moved to a nearby cohort of whole numbers
    that prints the same, off the edges of the printed intervals where it can, so that any rounding prints it. Success
    goes evenly over depths, in the numbers that most assignments have; it is missing where no number on success was
    printed. Every rollout counts as ended by itself.

    References
    ----------
    Jaynes (1957), Physical Review 106:620-630. Dinkelbach (1967), Management Science 13:492-498. Wilner, Wood and
    Simons (2018), complete recovery of values in Diophantine systems (CORVIDS), doi:10.31234/osf.io/7shr8.

    Examples
    --------
    >>> table = "n,ter,mean_fed,auc_pec,rr_eligible,rr,success\n20,0.75,4.10,0.90,5,0.40,0.80\n"
    >>> made = reconstruct(table, horizon=6)
    >>> made.frame[["clean", "recovered", "met"]].values.tolist()
    [[15, 2, True]]
    >>> made.bounds("success_after_error").frame[["lower", "upper"]].values.tolist()
    [[0.125, 0.125]]
    """
    published, seed = read_published(table, columns, decimals), as_seed(rng)
    reach = _horizon(published, horizon)
    sets, cohorts, failed = [], [], []
    for row in published.rows:
        found = possible(row)
        cohort = None
        for inner in (_inside(row), row):
            within = possible(inner) if cohort is None else None
            if within is not None:
                random = np.random.default_rng([seed, row.row]) if draw else None
                cohort = _cohort(Feasible(inner, within[1], *reach), random)
        sets.append(Feasible(row, found[1], *reach) if found is not None and cohort is not None else None)
        cohorts.append((row, cohort))
        if cohort is None:
            failed.append(row)
    rollouts = _rollouts([(row, cohort) for row, cohort in cohorts if cohort is not None], len(published.rows))
    notes = [rollouts.notes[0], _horizon_note(reach), *_failures(failed, table, columns, decimals, reach)]
    made = {
        "source": SOURCE, "from": published.source, "horizon": reach, "draw": draw, "seed": seed,
        "rule": str(rollouts.rule),
    }  # fmt: skip
    frame = pd.DataFrame([_summary(row, cohort) for row, cohort in cohorts], columns=list(COLUMNS))
    return Reconstruction(
        frame, CELL, (*notes, *published.notes), made, rollouts.ledger, rollouts, published, tuple(sets)
    )


def _horizon(published: Published, given: int | tuple[int, int] | None) -> tuple[int, int]:
    """The fewest and the most calls of a rollout."""
    feds = [row.printed["mean_fed"].value for row in published.rows if "mean_fed" in row.printed]
    deepest = max((k for row in published.rows for k in row.depths), default=0)
    longest = max(_LONGEST, int(np.ceil(2 * max(feds, default=0))), deepest + 1)
    reach = (0, longest) if given is None else (0, given) if isinstance(given, int | np.integer) else tuple(given)
    if len(reach) != 2 or not 0 <= reach[0] <= reach[1] or reach[1] < 1:
        raise InputError(f"horizon = {given!r}; it must be a longest rollout of 1 call or more, or (shortest, longest)")
    return int(reach[0]), int(reach[1])


def _horizon_note(reach: tuple[int, int]) -> str:
    return (
        f"rollouts are taken to make {reach[0]} to {reach[1]} calls (horizon); nothing published bounds the calls "
        "after an error, so bounds of lengths and of deep quantities move with it"
    )


def _failures(failed: Sequence[PublishedRow], *table: Any) -> list[str]:
    """Why rows have no cohort."""
    if not failed:
        return []
    *read, reach = table
    verdicts = audit(read[0], columns=read[1], decimals=read[2]).verdicts.set_index("row")
    long = f"no rollouts of {reach[0]} to {reach[1]} calls print it; with a wider horizon some may"
    return [
        f"{row.name}: no cohort: " + (long if at["consistent"] else at["explanation"])
        for row, at in ((row, verdicts.loc[row.row]) for row in failed)
    ]


def _cohort(kinds: Feasible, random: np.random.Generator | None) -> pd.DataFrame | None:
    """Length, depth and success of each rollout of a row."""
    n = kinds.row.n
    many = kinds.representative(lambda shares: n * shares if random is None else random.multinomial(n, shares) * 1.0)
    if many is None:
        return None
    length, fed = (np.repeat(values, many) for values in kinds.kinds)
    order = np.lexsort((length, fed, fed > length))
    length, fed = length[order], fed[order]
    clean = fed > length
    success = np.full(n, pd.NA, dtype=object)
    if SUCCESSES & set(kinds.row.printed):
        for group, count in zip((~clean, clean), _successes(kinds, int(clean.sum()), random), strict=True):
            success[group] = _spread(int(group.sum()), count, random)
    return pd.DataFrame({"length": length, "fed": fed, "success": success})


def _inside(row: PublishedRow) -> PublishedRow:
    """A row without the edges of its intervals, as far as it stays possible."""
    for name in row.printed:
        inner = row.inside(name)
        row = inner if possible(inner) is not None else row
    return row


def _successes(kinds: Feasible, clean: int, random: np.random.Generator | None) -> tuple[int, int]:
    """Recovered and clean successes: those that most assignments to rollouts have, or random ones."""
    here = kinds.splits.clean == clean
    recovered, low, high = kinds.splits.recovered[here], kinds.splits.fewest[here], kinds.splits.most[here]
    errors = kinds.row.n - clean
    if random is not None:
        many = high - low + 1
        at = int(random.choice(len(recovered), p=many / many.sum()))
        return int(recovered[at]), int(random.integers(low[at], high[at] + 1))
    middle = np.clip(clean // 2, low, high)
    ways = [-np.log1p(m) - special.betaln(m - x + 1, x + 1) for m, x in ((errors, recovered), (clean, middle))]
    at = int(np.argmax(sum(ways)))
    return int(recovered[at]), int(middle[at])


def _spread(of: int, count: int, random: np.random.Generator | None) -> np.ndarray:
    """Successes evenly over rollouts in order of depth, or at random."""
    ends = np.arange(of + 1) * count // max(of, 1)
    hits = np.diff(ends).astype(bool)
    return hits if random is None else random.permutation(hits)


def _rollouts(cohorts: Sequence[tuple[PublishedRow, pd.DataFrame]], rows: int) -> Rollouts:
    """Cohorts as one table that says where it is from; a task belongs to one row, so that nothing can be paired."""
    parts = [
        cohort.assign(
            **dict(zip(CELL, row.cell, strict=True)), ending="completed", source=SOURCE,
            task_id=[f"{row.row}/r{i}" for i in range(1, row.n + 1)],
        )
        for row, cohort in cohorts
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"task_id": [], "length": [], "fed": []})
    reason = (
        f"made to print {len(parts)} of {rows} published rows; no such rollout was observed, and tasks of two methods "
        "are not paired"
    )
    ledger = ledger_of([(SOURCE, "noted", reason, len(frame), "rollouts", "")])
    return Rollouts(frame, ledger=ledger[list(LEDGER_COLUMNS)])


def _summary(row: PublishedRow, cohort: pd.DataFrame | None) -> dict[str, Any]:
    """Counts of a cohort, and whether it prints every number of its row: exactly, from its rollouts alone."""
    if cohort is None:
        return {**row.identity(), "n": row.n, **dict.fromkeys(COLUMNS[5:-1], np.nan), "met": False}
    n, clean = row.n, (cohort["fed"] > cohort["length"]).to_numpy()
    told = bool(cohort["success"].notna().all())
    success = cohort["success"].to_numpy(bool) if told else np.zeros(n, dtype=bool)
    q, r, c = int((success & clean).sum()), int((success & ~clean).sum()), int(clean.sum())
    kinds = cohort.groupby(["length", "fed"]).size()
    area = sum((Fraction(int(many) * (f - 1), t) if t else Fraction(int(many)) for (t, f), many in kinds.items()))
    parts = {
        "ter": (c, n), "rr_eligible": (n - c, 1), "mean_fed": (int(cohort["fed"].sum()), n), "auc_pec": (area, n),
        "rr": (r, n - c), "s": (q, c), "success": (r + q, n), "success_after_error": (r, r + q),
        **{f"pec_{k}": (int((cohort["fed"] > k).sum()), n) for k in row.depths},
    }  # fmt: skip
    met = len(cohort) == n and all(
        of > 0 and cell.allows(Fraction(part) / of)
        for cell, (part, of) in ((cell, parts[name]) for name, cell in row.printed.items())
    )
    return {
        **row.identity(), "n": n, "clean": c, "rr_eligible": n - c, "recovered": r if told else np.nan,
        "clean_success": q if told else np.nan, "mean_fed": float(cohort["fed"].mean()), "auc_pec": float(area / n),
        "mean_length": float(cohort["length"].mean()), "met": met,
    }  # fmt: skip
