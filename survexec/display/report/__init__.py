"""Everything about some rollouts in one folder: tables, figures, the ledger, and a page that explains every number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survexec.display.report.drawing import DRAWINGS, Helper, draw
from survexec.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from survexec.rollouts import Rollouts


def report(
    rollouts: Rollouts,
    out: str | os.PathLike[str],
    by: Sequence[str] | str = ("benchmark", "model", "method"),
    *,
    between: str = "method",
    level: float = 0.95,
    resamples: int = 10_000,
    rng: int | np.random.Generator = 0,
) -> Path:
    """Write tables, figures, the ledger and one self-contained HTML page into a folder.

    Parameters
    ----------
    rollouts : Rollouts
    out : path
        The folder; it is made where it does not exist. Nothing is written elsewhere.
    by : sequence of str
        Columns that make a cell.
    between : str
        The column whose values are compared, paired by task, within the other columns of ``by``.
    level : float
        Confidence level in (0, 1).
    resamples : int
        Bootstrap resamples of tasks.
    rng : int or numpy.random.Generator
        The same seed gives the same bytes.

    Returns
    -------
    pathlib.Path
        The page, ``report.html``.

    Raises
    ------
    InputError
        If there are no rollouts, a column is unknown, or `out` is a file.

    Examples
    --------
    >>> import survexec as sx, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.report(sx.datasets.load_tau_retail_methods(), folder, resamples=200).name
    'report.html'
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; a report needs a folder")
    with Helper() as helper:
        # loaded only now: the other process loads this package too, and needs none of it
        from survexec.display.report.analyses import analyse, under_each_rule

        done = analyse(rollouts, by, between, level, resamples, rng)
        for part in ("tables", "figures"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        figures = folder / "figures"
        _clear(figures, [drawing.name for drawing in DRAWINGS], ("pdf", "png"))
        drawn = [drawing.name for drawing in DRAWINGS if not drawing.missing(done)]
        helper.hand(drawn, done, figures)
        rules = under_each_rule(rollouts, done.summary)
        beside: dict[str, Any] = {"tests": done.comparison, "ratios": done.comparison}
        if not isinstance(done.comparison, str):
            beside = {"tests": done.comparison.tests, "ratios": done.comparison.ratios}
        _write_tables({**vars(done), **beside, "rules": rules}, folder / "tables")
        rollouts.ledger.to_csv(folder / "ledger.csv", index=False)
        mine = draw(reversed(drawn), done, figures)  # from the other end: the two meet in between
        rest = [name for name in drawn if name not in mine]
        if rest and not helper.finished():
            _clear(figures, rest, ("pdf", "png"))
            draw(rest, done, figures)
    from survexec.display.report.page import page

    path = folder / "report.html"
    path.write_text(page(rollouts, done, rules, figures), encoding="utf-8")
    return path


def _write_tables(results: dict[str, Any], folder: Path) -> None:
    """Each result as CSV with full precision, and as Markdown and LaTeX; a reason in its place has no table."""
    from survexec.display import tables
    from survexec.display.markup import latex, markdown

    for name, result in results.items():
        if isinstance(result, str):
            _clear(folder, [name], ("csv", "md", "tex"))
        elif hasattr(result, "made"):
            grid = replace(tables.grid(result), label=f"tab:{name}")
            for ending, text in {"csv": result.to_csv(), "md": markdown(grid), "tex": latex(grid)}.items():
                (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")


def _clear(folder: Path, names: Sequence[str], endings: tuple[str, ...]) -> None:
    """Take away what an earlier report left in the folder."""
    for name in names:
        for ending in endings:
            (folder / f"{name}.{ending}").unlink(missing_ok=True)
