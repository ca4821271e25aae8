"""What a table or figure of the paper is, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from survexec.display import style
from survexec.display.figures.picture import table_picture
from survexec.display.markup import Grid, latex, markdown

if TYPE_CHECKING:
    from survexec.rollouts import Rollouts

ENDINGS: Final = ("tex", "md", "pdf", "png")


@dataclass(frozen=True)
class Made:
    """The numbers of a piece as a table, and its figure; without one, the table is drawn as a picture."""

    grid: Grid
    figure: Any = None


@dataclass(frozen=True)
class Piece:
    """One table or figure.

    Parameters
    ----------
    name : str
        Of its script and its files.
    title : str
        What it shows; the caption of its figure, so plain text without marks of LaTeX.
    inputs : tuple of str
        The published tables that it rests on.
    published : callable
        Makes it from those.
    measured : callable or None
        Makes it from real rollouts and a number of resamples.
    skipped : str
        Why it cannot be made from rollouts, where it cannot.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    published: Callable[[], Made]
    measured: Callable[[Rollouts, int], Made] | None = None
    skipped: str = ""


def write(piece: Piece, made: Made, out: Path) -> None:
    """Write a piece as LaTeX, Markdown, PDF and PNG.

    Parameters
    ----------
    piece : Piece
    made : Made
    out : Path
        A folder that exists.
    """
    grid = replace(made.grid, label=f"tab:{piece.name}")
    figure = table_picture(grid) if made.figure is None else getattr(made.figure, "figure", made.figure)
    if made.figure is not None:
        style.settle(figure)  # a picture is placed by hand
    style.save(figure, out / piece.name)
    drawn = f"\n![{piece.title}]({piece.name}.png)\n"
    (out / f"{piece.name}.md").write_text(markdown(grid) + drawn, encoding="utf-8")
    float_ = "" if made.figure is None else _float(piece, figure.get_figwidth() > style.ONE_COLUMN + 0.1)
    (out / f"{piece.name}.tex").write_text(latex(grid) + float_, encoding="utf-8")


def _float(piece: Piece, wide: bool) -> str:
    """The figure as LaTeX, at its own size, across both columns where it is wide."""
    kind = "figure*" if wide else "figure"
    return (
        f"\n\\begin{{{kind}}}[t]\n\\centering\n\\includegraphics{{{piece.name}.pdf}}\n\\caption{{{piece.title}.}}\n"
        f"\\label{{fig:{piece.name}}}\n\\end{{{kind}}}\n"
    )


def say_below(figure: Any, text: str) -> Any:
    """Write under a figure what its numbers rest on.

    Parameters
    ----------
    figure : Figure or Axes
    text : str

    Returns
    -------
    Figure
    """
    whole = getattr(figure, "figure", figure)
    words = style.wrap(text, 72 * whole.get_figwidth() - 18, style.TINY)
    whole.supxlabel(words, fontsize=style.TINY, color=style.GREY, x=0.01, ha="left", family=style.FONT)
    return whole
