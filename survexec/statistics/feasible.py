"""The cohorts of one published row: whole numbers of rollouts by length and depth, by integer programming."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from scipy import optimize

from survexec.statistics.possible import Splits, counts_within
from survexec.statistics.published import PublishedRow

# How far AUC-PEC is drawn in, per rollout, where the solver's tolerance let a cohort slip over an edge.
_INSET: Final = (0.0, 1e-9, 1e-7, 1e-6)
# The representative need not be the very nearest: this share of what moving gains is not worth the search.
_NEAR: Final = 0.1
_ROUNDING: Final = 1e-9
_STEEPEST: Final = 200.0


@dataclass(frozen=True)
class Feasible:
    """Every cohort that prints a row: numbers of rollouts of each kind (T, FED), T from the shortest to the longest.

    Success is independent of depth once it is known who is clean, so it stands apart, in `splits`.

    Parameters
    ----------
    row : PublishedRow
    splits : Splits
        Clean rollouts, and successes among them and the others, that the printed numbers allow.
    shortest, longest : int
        Numbers of calls that a rollout may make.
    """

    row: PublishedRow
    splits: Splits
    shortest: int
    longest: int
    _known: dict[int, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """T and FED of every kind of rollout."""
        pairs = [(t, f) for t in range(self.shortest, self.longest + 1) for f in range(1, t + 2)]
        length, fed = np.array(pairs, dtype="int64").T
        return length, fed

    @property
    def clean(self) -> np.ndarray:
        """Which kinds have no error."""
        return self.kinds[1] > self.kinds[0]

    @property
    def area(self) -> np.ndarray:
        """(FED-1)/T of every kind, 1 where T = 0."""
        length, fed = self.kinds
        return np.divide(fed - 1, length, out=np.ones(len(length)), where=length > 0)

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """The numbers of clean rollouts that success allows, as stretches without a hole."""
        values = np.unique(self.splits.clean)
        parts = np.split(values, np.flatnonzero(np.diff(values) > 1) + 1)
        return [(int(part[0]), int(part[-1])) for part in parts if len(part)]

    @cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums over the rollouts that were printed, with their least and greatest value: all, PEC, FED, AUC-PEC."""
        n, cells, (_, fed) = self.row.n, self.row.printed, self.kinds
        rows: list[tuple[np.ndarray, float, float]] = [(np.ones(len(fed)), n, n)]
        for k, cell in self.row.depths.items():
            least, most = counts_within(cell, np.array([n]))
            rows.append(((fed > k).astype(float), least[0], most[0]))
        if "mean_fed" in cells:
            cell = cells["mean_fed"]
            rows.append((fed.astype(float), -(-cell.lower * n // cell.unit), cell.upper * n // cell.unit))
        if "auc_pec" in cells:
            cell = cells["auc_pec"]
            rows.append((self.area, cell.lower * n / cell.unit, cell.upper * n / cell.unit))
        sums, low, high = zip(*rows, strict=True)
        return np.array(sums), np.array(low, dtype=float), np.array(high, dtype=float)

    def meets(self, cohort: np.ndarray) -> bool:
        """Whether a cohort prints every depth of the row, in whole numbers."""
        _, fed = self.kinds
        n, cells = self.row.n, self.row.printed
        if cohort.sum() != n or (cohort < 0).any():
            return False
        clean = int(cohort[self.clean].sum())
        values = {f"pec_{k}": Fraction(int(cohort[fed > k].sum()), n) for k in self.row.depths}
        values |= {"mean_fed": Fraction(int(cohort @ fed), n), "auc_pec": self.exact_area(cohort) / n}
        values |= {"ter": Fraction(clean, n), "rr_eligible": Fraction(n - clean)}
        return all(cells[name].allows(value) for name, value in values.items() if name in cells)

    def exact_area(self, cohort: np.ndarray) -> Fraction:
        """The sum of (FED-1)/T as a fraction."""
        length, fed = self.kinds
        parts = ((int(cohort[at]), int(length[at]), int(fed[at])) for at in np.flatnonzero(cohort))
        return sum((Fraction(many * (f - 1), t) if t else Fraction(many) for many, t, f in parts), Fraction(0))

    def best(
        self, cost: np.ndarray, run: tuple[int, int], extra: tuple[np.ndarray, float, float] | None = None
    ) -> np.ndarray | None:
        """The cohort of least cost among those with so many clean rollouts.

        Parameters
        ----------
        cost : numpy.ndarray
            Of one rollout of each kind.
        run : tuple of int
            Least and greatest number of clean rollouts.
        extra : tuple, optional
            One more sum with its least and greatest value.

        Returns
        -------
        numpy.ndarray of int, or None
            None where no cohort prints the row.
        """
        return self._solved(cost, run, np.eye(len(cost)), np.zeros(len(cost)), np.full(len(cost), np.inf), extra)

    def nearest(self, target: np.ndarray, run: tuple[int, int]) -> np.ndarray | None:
        """A whole cohort nearly as close as can be, in rollouts to move, to numbers that are not whole.

        Parameters
        ----------
        target : numpy.ndarray
        run : tuple of int

        Returns
        -------
        numpy.ndarray of int, or None
        """
        base = np.floor(target)
        part, kinds = target - base, np.eye(len(target))
        # to the whole number above, further up, and down from the whole number below: |x - target|, convex in each kind
        moves = np.concatenate([kinds, kinds, -kinds], axis=1)
        cost = np.concatenate([1 - 2 * part, np.ones_like(part), np.ones_like(part)])
        most = np.concatenate([np.ones_like(part), np.full_like(part, np.inf), base])
        return self._solved(cost, run, moves, base, most, None, _NEAR)

    def _solved(
        self, cost: np.ndarray, run: tuple[int, int], moves: np.ndarray, base: np.ndarray, most: np.ndarray,
        extra: tuple[np.ndarray, float, float] | None, gap: float = 0.0,
    ) -> np.ndarray | None:  # fmt: skip
        """The cohort base + moves @ steps of least cost in whole steps, or within a share of it."""
        sums, low, high = self._limits
        sums, low, high = np.vstack([sums, self.clean]), np.append(low, run[0]), np.append(high, run[1])
        if extra is not None:
            sums, low, high = np.vstack([sums, extra[0]]), np.append(low, extra[1]), np.append(high, extra[2])
        offset, steps = sums @ base, sums @ moves
        at = int(len(self.row.depths) + 1 + ("mean_fed" in self.row.printed))
        for inset in _INSET if "auc_pec" in self.row.printed else _INSET[:1]:
            less, more = low - offset, high - offset
            if inset:
                less[at], more[at] = less[at] + inset * self.row.n, more[at] - inset * self.row.n
            found = optimize.milp(
                cost, integrality=np.ones(len(cost)), bounds=optimize.Bounds(0, most),
                constraints=optimize.LinearConstraint(steps, less, more),
                options={"mip_rel_gap": gap},
            )  # fmt: skip
            if found.x is None:
                return None
            cohort = np.rint(base + moves @ np.rint(found.x)).astype("int64")
            if self.meets(cohort):
                return cohort
        return None

    def has(self, clean: int) -> bool:
        """Whether a cohort with so many clean rollouts prints the row."""
        if clean not in self._known:
            self._known[clean] = self.best(np.zeros(len(self.area)), (clean, clean)) is not None
        return self._known[clean]

    def bounds(self, cost: np.ndarray) -> tuple[float, float]:
        """Least and greatest sum of something over the rollouts; NaN where no cohort prints the row.

        Parameters
        ----------
        cost : numpy.ndarray
            Of one rollout of each kind.
        """
        ends = []
        for sign in (1.0, -1.0):
            found = [self.best(sign * cost, run) for run in self.runs]
            values = [float(cohort @ (sign * cost)) for cohort in found if cohort is not None]
            ends.append(sign * min(values) if values else np.nan)
        return ends[0], ends[1]

    def ratio_bounds(self, part: np.ndarray, whole: np.ndarray) -> tuple[float, float]:
        """Least and greatest ratio of two counts over cohorts in which the second is not 0 (Dinkelbach 1967).

        Parameters
        ----------
        part, whole : numpy.ndarray
            0 or 1 for each kind.
        """
        ends = []
        for sign in (1, -1):
            found = [self._least_ratio(sign * part, whole, run) for run in self.runs]
            values = [value for value in found if value is not None]
            ends.append(float(sign * min(values)) if values else np.nan)
        return ends[0], ends[1]

    def _least_ratio(self, part: np.ndarray, whole: np.ndarray, run: tuple[int, int]) -> Fraction | None:
        some = (whole, 1.0, float(self.row.n))
        below = self._relaxed_ratio(part, whole, run)  # starting at the bound without whole numbers saves most programs
        cohort = None if below is None else self.best(part - below * whole, run, some)
        if below is None or cohort is None:
            return None
        value = Fraction(int(cohort @ part), int(cohort @ whole))
        while value > below + _ROUNDING:
            cost = part * value.denominator - whole * value.numerator
            cohort = self.best(cost.astype(float), run, some)
            if cohort is None or cohort @ cost >= 0:
                return value
            value = Fraction(int(cohort @ part), int(cohort @ whole))
        return value

    def outer_ratio(self, part: np.ndarray, whole: np.ndarray) -> tuple[float, float]:
        """As `ratio_bounds`, wider and faster: over fractions of rollouts too, by linear programs.

        Parameters
        ----------
        part, whole : numpy.ndarray
            0 or 1 for each kind.
        """
        low = [self._relaxed_ratio(part, whole, run) for run in self.runs]
        high = [self._relaxed_ratio(-part, whole, run) for run in self.runs]
        return (
            min((value for value in low if value is not None), default=np.nan),
            -min((value for value in high if value is not None), default=np.nan),
        )

    def _relaxed_ratio(self, part: np.ndarray, whole: np.ndarray, run: tuple[int, int]) -> float | None:
        """Least ratio by one linear program in the cohort over its second count (Charnes and Cooper 1962)."""
        sums, low, high = self._limits
        sums, low, high = np.vstack([sums, self.clean]), np.append(low, run[0]), np.append(high, run[1])
        above, below = np.hstack([sums, -high[:, None]]), np.hstack([-sums, low[:, None]])
        found = optimize.linprog(
            np.append(part, 0.0), A_ub=np.vstack([above, below]), b_ub=np.zeros(2 * len(low)),
            A_eq=np.append(whole, 0.0)[None, :], b_eq=[1.0], bounds=[(0, None)] * len(part) + [(0, 1.0)],
        )  # fmt: skip
        return None if found.x is None else float(found.fun)

    def split_bounds(self, values: Iterable[np.ndarray]) -> tuple[float, float]:
        """Least and greatest of a number of clean rollouts and successes, over splits that some cohort has.

        Parameters
        ----------
        values : iterable of numpy.ndarray
            The number at the fewest and at the most clean successes of every split; NaN where it is undefined.
        """
        every = np.array(list(values), dtype=float)
        clean = np.broadcast_to(self.splits.clean, every.shape).ravel()
        known = ~np.isnan(every.ravel())
        clean, every = clean[known], every.ravel()[known]
        return self._first(clean, every, np.argsort(every, kind="stable")), self._first(
            clean, every, np.argsort(-every, kind="stable")
        )

    def _first(self, clean: np.ndarray, values: np.ndarray, order: np.ndarray) -> float:
        return next((float(values[at]) for at in order if self.has(int(clean[at]))), np.nan)

    def shares(self, run: tuple[int, int]) -> np.ndarray:
        """The distribution over kinds of greatest entropy whose means print the row (Jaynes 1957).

        Its dual is smooth and small, a multiplier to either side of each printed mean.

        Parameters
        ----------
        run : tuple of int

        Returns
        -------
        numpy.ndarray
            Sums to 1. Where only the edge of the simplex prints the row, close to it.
        """
        n = self.row.n
        sums, low, high = self._limits
        sums = np.vstack([sums[1:], self.clean])
        scale = np.maximum(sums.max(axis=1), 1.0)
        low, high = np.append(low[1:], run[0]) / n / scale, np.append(high[1:], run[1]) / n / scale
        sums = sums / scale[:, None]

        def dual(both: np.ndarray) -> tuple[float, np.ndarray]:
            up, down = both[: len(low)], both[len(low) :]
            power = (up - down) @ sums
            top = power.max()
            weight = np.exp(power - top)
            mean = sums @ weight / weight.sum()
            value = top + np.log(weight.sum()) - up @ low + down @ high
            return value, np.concatenate([mean - low, high - mean])

        start = np.zeros(2 * len(low))
        bounds = [(0.0, _STEEPEST)] * len(start)
        found = optimize.minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 2000})
        power = (found.x[: len(low)] - found.x[len(low) :]) @ sums
        weight = np.exp(power - power.max())
        return weight / weight.sum()

    def representative(self, target: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """A whole cohort near to numbers made of the shares of greatest entropy, in the widest stretch that has one.

        Parameters
        ----------
        target : callable
            Shares -> numbers of rollouts of each kind, at least 0.

        Returns
        -------
        numpy.ndarray of int, or None
        """
        for run in sorted(self.runs, key=lambda run: (run[0] - run[1], run)):
            cohort = self.nearest(target(self.shares(run)), run)
            if cohort is not None:
                return cohort
        return None
