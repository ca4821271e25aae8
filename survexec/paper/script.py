"""What the scripts of `paper_figures/` do: make one table or figure, alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from survexec.errors import SurvexecError
from survexec.paper import folder_of, make, piece_of


def script(name: str, arguments: Sequence[str] | None = None) -> int:
    """Make one table or figure from the command line.

    Parameters
    ----------
    name : str
        Of `survexec.paper.PIECES`.
    arguments : sequence of str, optional
        ``-o DIR`` and ``--rollouts FILE``; those of the process by default.

    Returns
    -------
    int
        The exit code: 0, or 1 with one line on standard error.
    """
    piece = piece_of(name)
    parser = argparse.ArgumentParser(
        description=f"{piece.title}. Rests on: {', '.join(piece.inputs) or 'definitions'}."
    )
    parser.add_argument("-o", "--output", default="paper_figures/out", help="the folder to write")
    parser.add_argument("--rollouts", nargs="+", help="logs or Parquet, in place of the published aggregates")
    given = parser.parse_args(arguments)
    try:
        from survexec.paper.compare import CHECKED, compare

        rollouts = None
        if given.rollouts:
            from survexec.reading import read

            rollouts = read(given.rollouts)
        folder = folder_of(given.output)
        skipped = make(piece, folder, rollouts)
        if skipped:
            print(f"{name}: left out: {skipped}")
        elif rollouts is None and name in CHECKED:
            found = compare(folder, [name])
            found.demand()
            print(found)
    except SurvexecError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0
