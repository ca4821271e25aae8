"""Are the numbers of a published table possible together, and which counts do they leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from survexec.rollouts import ledger_of
from survexec.statistics.possible import most_area, possible, split_values
from survexec.statistics.published import PublishedRow, label_of, read_published
from survexec.statistics.results import Result
from survexec.statistics.tally import CELL

COLUMNS: Final = ("row", *CELL, "quantity", "lower", "upper", "published", "consistent")
VERDICTS: Final = ("row", *CELL, "consistent", "culprit", "gap", "suspects", "contradiction", "explanation")
# A number that many times its scale away is not mended by moving it.
_FARTHEST: Final = 1000


@dataclass(frozen=True)
class Audit(Result):
    """What published numbers imply, and whether they can stand together.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        One row a published row: ``consistent``; ``culprit``, the column that has to change (or columns), ``gap``, how
        far beyond its rounding in its own unit; ``suspects``, every column whose change alone would mend the row;
        ``contradiction``, a smallest set of columns that cannot stand together; ``explanation``.
    """

    verdicts: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    kind: ClassVar[str] = "audit"


def audit(
    table: Any, *, columns: Mapping[str, str] | None = None, decimals: int | Mapping[str, int] | None = None
) -> Audit:
    r"""Check whether published, rounded numbers can stand together, and say which counts they leave open.

    Parameters
    ----------
    table : str, Path or pandas.DataFrame
        A file or its text (CSV, Markdown, LaTeX), or a frame: one row a cell, with its number of rollouts ``n`` and any
        of TER, mean FED, AUC-PEC, RR-eligible, RR, s, success, success after error, PEC at depths.
    columns : mapping of str to str, optional
        survexec's name -> the table's heading, such as ``{"ter": "valid"}``; ``{"n": "200"}`` gives the number itself.
    decimals : int or mapping of str to int, optional
        Printed decimals; by default those of the longest number of a column.

    Returns
    -------
    Audit
        ``frame``: one row a published row and quantity, ``lower`` and ``upper`` over all cohorts that print so. In a
        row that contradicts itself they are what the cells other than the culprit allow. Where nothing bounds mean
        FED from above, and of a share of nothing, they are NaN.

    Raises
    ------
    InputError
        The table cannot be read, or a number is outside of its scale.

    Notes
    -----
    A printed number stands for the closed interval of half its last digit to either side, which holds every real value
    that prints so, whether halves go up, to even, or where binary arithmetic puts them. Counts are whole: clean
    rollouts, successes among them and among the others are enumerated. Depths are checked by closed forms: PEC(k)
    counts fall with k, FED sums to a whole number of at least the sum of these counts, and AUC-PEC lies between TER and
    what errors as late as FED and PEC allow would give. Rollouts may be of any length, and of none. For AUC-PEC the
    check is a necessary condition: with a handful of rollouts it can pass a value that no set of lengths gives. That a
    mean of whole numbers can only print as certain values is the GRIM test of Brown and Heathers. What is consistent
    need not be right: the audit finds contradictions.

    References
    ----------
    Brown and Heathers (2017), Social Psychological and Personality Science 8:363-369.

    Examples
    --------
    >>> import survexec.statistics.audit as a
    >>> found = a.audit("n,ter,rr_eligible,rr,success\n200,0.05,190,0.73,0.74\n200,0.08,190,0.73,0.74\n")
    >>> found.verdicts["consistent"].tolist(), found.verdicts["culprit"].tolist()
    ([True, False], ['', 'ter'])
    >>> counts = found.frame[found.frame["quantity"] == "recovered"].iloc[0]
    >>> int(counts["lower"]), int(counts["upper"])
    (138, 139)
    """
    published = read_published(table, columns, decimals)
    verdicts, frames = [], []
    for row in published.rows:
        verdict = _verdict(row)
        verdicts.append(verdict)
        frames += _ranges(row, set(filter(None, verdict["culprit"].split(", "))))
    wrong = [v for v in verdicts if not v["consistent"]]
    notes = (
        f"{len(verdicts) - len(wrong)} of {len(verdicts)} rows are consistent: some cohort prints every number of them",
        *(f"row {v['row']}: {v['explanation']}" for v in wrong),
        *published.notes,
    )
    ledger = ledger_of([(published.source, "kept", "", len(verdicts), "rows", "")])
    made = {"source": published.source, "rounding": "closed interval of half a last digit"}
    return Audit(
        pd.DataFrame(frames, columns=list(COLUMNS)), CELL, notes, made, ledger,
        pd.DataFrame(verdicts, columns=list(VERDICTS)),
    )  # fmt: skip


def _without(row: PublishedRow, names: Any) -> PublishedRow:
    """A row as if some numbers had not been printed."""
    return replace(row, printed={name: cell for name, cell in row.printed.items() if name not in names})


def _widened(row: PublishedRow, name: str, down: int, up: int) -> PublishedRow:
    """A row in which one printed number stands for a wider interval."""
    cell = row.printed[name]
    return replace(row, printed={**row.printed, name: replace(cell, lower=cell.lower - down, upper=cell.upper + up)})


def _gap(row: PublishedRow, name: str) -> int | None:
    """Least widening of one printed number that makes a row possible, in its unit; None where none does: 0/0."""
    reach = row.printed[name].digit
    while possible(_widened(row, name, reach, reach)) is None:
        reach *= 2
        if reach > _FARTHEST * row.printed[name].unit:
            return None
    short = 0
    while reach - short > 1:
        middle = (short + reach) // 2
        short, reach = (short, middle) if possible(_widened(row, name, middle, middle)) else (middle, reach)
    return reach


def _contradiction(row: PublishedRow) -> list[str]:
    """A smallest set of printed numbers that cannot stand together: none of it can be left out."""
    for name in list(row.printed):
        if possible(_without(row, {name})) is None:
            row = _without(row, {name})
    return list(row.printed)


def _verdict(row: PublishedRow) -> dict[str, Any]:
    """Whether a row can be, and if not, what has to change."""
    verdict = {
        **row.identity(), "consistent": True, "culprit": "", "gap": 0.0, "suspects": "", "contradiction": "",
        "explanation": "every printed number can be met at once",
    }  # fmt: skip
    if possible(row):
        return verdict
    against = _contradiction(row)
    suspects = [name for name in against if possible(_without(row, {name}))]
    names = ", ".join(f"{label_of(name)} = {row.printed[name].text}" for name in against)
    what = f"{names} cannot stand together" if len(against) > 1 else f"{names} is no share or mean of whole counts"
    what += f" with n = {row.n}"
    verdict |= {"consistent": False, "suspects": ", ".join(suspects), "contradiction": ", ".join(against)}
    if not suspects:
        mended = _mended_by(row)
        several = ", ".join(map(label_of, mended))
        told = {"culprit": ", ".join(mended), "gap": np.nan, "explanation": f"{what}; several must change: {several}"}
        return verdict | told
    gaps = {name: _gap(row, name) for name in suspects}
    culprit = min(suspects, key=lambda name: (gaps[name] or np.inf) / row.printed[name].digit)
    cell, gap = row.printed[culprit], gaps[culprit]
    also = [label_of(name) for name in suspects if name != culprit]
    rest = f"; or a change of {' or of '.join(also)} alone" if also else ""
    if gap is None:
        return verdict | {"culprit": culprit, "gap": np.nan, "explanation": f"{what}: {cell.label} is 0/0{rest}"}
    below = possible(_widened(row, culprit, gap, 0)) is not None
    nearest = (cell.lower - gap if below else cell.upper + gap) / cell.unit
    wish = f"would have to be {'at most' if below else 'at least'} {nearest:g}, {gap / cell.unit:g} beyond its rounding"
    told = {"culprit": culprit, "gap": gap / cell.unit, "explanation": f"{what}: {cell.label} {wish}{rest}"}
    return verdict | told


def _mended_by(row: PublishedRow) -> list[str]:
    """A smallest set of printed numbers without which a row is possible."""
    for size in range(2, len(row.printed) + 1):
        for names in combinations(row.printed, size):
            if possible(_without(row, names)):
                return list(names)
    return list(row.printed)


def _ranges(row: PublishedRow, culprits: set[str]) -> list[dict[str, Any]]:
    """What each quantity can be, one row a quantity, by all numbers but the culprits."""
    found = possible(_without(row, culprits))
    assert found is not None  # noqa: S101 - culprits are those without which the row is possible
    depths, split = found
    n, least, most = row.n, int(split.clean.min()), int(split.clean.max())
    top = most_area(most, n, *depths.alive, depths.fed[1] - n - int(depths.alive[0].sum()))
    area = (max(depths.area[0], least), min(depths.area[1], top))
    values = {
        **split_values(split, n), "mean_fed": (np.array(depths.fed) / n,), "auc_pec": (np.array(area) / n,),
        **{f"pec_{k}": (np.array(depths.alive_at(k, n)) / n,) for k in row.depths},
    }  # fmt: skip
    rows = []
    for name, parts in values.items():
        every = np.concatenate([np.asarray(part, dtype=float).ravel() for part in parts])
        every = every[~np.isnan(every)]
        low, high = (float(every.min()), float(every.max())) if len(every) else (np.nan, np.nan)
        shown = row.printed.get(name)
        told = {
            "lower": low,
            "upper": np.nan if np.isinf(high) else high,
            "published": np.nan if shown is None else shown.value,
        }
        rows.append({**row.identity(), "quantity": name, **told, "consistent": name not in culprits})
    return rows
