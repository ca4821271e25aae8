"""Every table and figure of the paper, made from published aggregates or from real rollouts, and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from survexec.errors import InputError

if TYPE_CHECKING:
    from survexec.paper.compare import Comparison
    from survexec.paper.piece import Piece
    from survexec.rollouts import Rollouts

# In the order of the paper; each is a module with a `PIECE`.
PIECES: Final = (
    "metrics", "main_table", "success_against_ter", "pec_at_k", "pec_curves", "tau3_transfer", "cost",
    "verifier_study", "decomposition", "rank_inversion", "differences",
)  # fmt: skip


def paper(
    out: str | os.PathLike[str], rollouts: Rollouts | None = None, *, resamples: int = 10_000
) -> Comparison | None:
    """Write every table and figure of the paper with an index, and compare each printed cell with the published one.

    Parameters
    ----------
    out : path
        The folder; it is made where it does not exist. Nothing is written elsewhere.
    rollouts : Rollouts, optional
        Real rollouts in place of the published aggregates: with intervals, and without any comparison.
    resamples : int
        Of tasks, for the intervals of real rollouts.

    Returns
    -------
    Comparison or None
        Every published cell beside ours; None for real rollouts.

    Raises
    ------
    SurvexecError
        If a printed cell differs from the published one; all files are written before.
    InputError
        If `out` is a file.

    Notes
    -----
    No rollout of the paper is public. Each table is computed from a cohort that `reconstruct` makes from the published
    aggregates, and says so. What has no cohort behind it is shown as published, and says that.

    Examples
    --------
    >>> from survexec.paper import piece_of
    >>> piece_of("cost").inputs
    ('cost',)
    """
    folder = folder_of(out)
    pieces = [piece_of(name) for name in PIECES]
    skipped = {piece.name: why for piece in pieces if (why := make(piece, folder, rollouts, resamples))}
    _index(pieces, skipped, folder, rollouts)
    if rollouts is not None:
        return None
    from survexec.paper.compare import compare

    found = compare(folder)
    found.frame.to_csv(folder / "comparison.csv", index=False)
    found.demand()
    return found


def piece_of(name: str) -> Piece:
    """The table or figure of a name."""
    from importlib import import_module

    if name not in PIECES:
        raise InputError(f"no table or figure {name!r}; there are: {', '.join(PIECES)}")
    return import_module(f"survexec.paper.{name}").PIECE


def make(piece: Piece, folder: Path, rollouts: Rollouts | None = None, resamples: int = 10_000) -> str:
    """Write one table or figure.

    Parameters
    ----------
    piece : Piece
    folder : Path
    rollouts : Rollouts, optional
    resamples : int

    Returns
    -------
    str
        Why it could not be made from these rollouts; "" where it was made.
    """
    from survexec.paper.piece import ENDINGS, write

    if rollouts is None:
        write(piece, piece.published(), folder)
        return ""
    why = piece.skipped
    if piece.measured is not None:
        try:
            write(piece, piece.measured(rollouts, resamples), folder)
        except InputError as error:  # such as one method alone, which has no differences
            why = str(error)
    for ending in ENDINGS if why else ():
        (folder / f"{piece.name}.{ending}").unlink(missing_ok=True)
    return why


def folder_of(out: str | os.PathLike[str]) -> Path:
    """The folder to write, made where it does not exist."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; tables and figures need a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _index(pieces: list[Piece], skipped: dict[str, str], folder: Path, rollouts: Rollouts | None) -> None:
    """Write what there is, what it rests on, and what was left out and why."""
    about = "published aggregates (arXiv 2610.40444)" if rollouts is None else repr(rollouts)
    lines = ["# Tables and figures", "", f"Made by `survexec paper` from {about}.", ""]
    lines += ["| | rests on | files |", "|:--|:--|:--|"]
    for piece in pieces:
        name, rests = piece.name, ", ".join(piece.inputs)
        if rollouts is not None and piece.inputs:
            rests = "–" if name in skipped else "rollouts"
        files = " ".join(f"[{ending}]({name}.{ending})" for ending in ("md", "tex", "pdf", "png"))
        lines.append(f"| {piece.title} | {rests or 'definitions'} | {skipped.get(name) or files} |")
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
