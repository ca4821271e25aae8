"""The look of every figure: colours, sizes, names of things, text that came from data, and saving."""

from __future__ import annotations

import functools
import importlib
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib.style
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.textpath import TextToPath

from survexec.display.wording import DASH

ONE_COLUMN = 3.4
TWO_COLUMNS = 7.0
TEXT, SMALL, TINY = 8.0, 7.0, 6.5
FONT = "DejaVu Sans"
INK, GREY, FAINT = "#222222", "#767676", "#D9D9D9"
# Around text that lies on lines.
HALO: list[AbstractPathEffect] = [withStroke(linewidth=1.5, foreground="white")]

RC: dict[str, Any] = {
    "font.family": [FONT],
    "font.size": TEXT,
    "text.color": INK,
    "axes.titlesize": TEXT,
    "axes.titlepad": 4.0,
    "axes.labelsize": TEXT,
    "axes.labelpad": 2.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": TEXT,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4,
    "figure.titlesize": TEXT,
    "hatch.linewidth": 0.7,
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
}


class Fill(NamedTuple):
    """Name, colour and hatch of an area; the hatch keeps neighbours apart in greyscale."""

    label: str
    color: str
    hatch: str = ""

    @property
    def look(self) -> dict[str, Any]:
        """Keywords for a patch or an area of this fill."""
        return {"facecolor": self.color, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0.0}

    @property
    def handle(self) -> Patch:
        """The entry of this fill in a legend."""
        return Patch(label=self.label, **self.look)


class Stroke(NamedTuple):
    """Colour, dash and marker of one line, each enough to tell it from its neighbours."""

    color: str
    dash: str | tuple[int, tuple[float, ...]]
    marker: str


# Bottom to top: the upper edge of "running" is PEC(k), and what is missing to 1 below "errored" is clean.
STATES = {
    "running": Fill("Running clean", "#CFE6F5"),
    "finished": Fill("Finished clean", "#56B4E9"),
    "errored": Fill("Errored", "#D55E00", "/////"),
}
CALLS = {
    "ok": Fill("ok", "#A9D3EE"),
    "first error": Fill("first error", "#A63603"),
    "later error": Fill("later error", "#E69F00"),
    "ok after error": Fill("ok after error", "#E0E0E0"),
}
PARTS = {
    "clean": Fill("Clean success: TER × s", "#56B4E9"),
    "recovered": Fill("Recovered success: (1 − TER) × RR", "#E69F00", "/////"),
}
CLASSES = {
    "schema": Fill("schema", "#0072B2"),
    "dependency": Fill("dependency", "#E69F00", "/////"),
    "precondition": Fill("precondition", "#009E73", "....."),
    "state-consistency": Fill("state-consistency", "#F0E442", ""),
    "information": Fill("information", "#CC79A7", "xxxxx"),
    "unclassified": Fill("unclassified", "#BBBBBB", "\\\\\\\\\\"),
}
_UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#000000", "#56B4E9")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vPX<>*hd"


def stroke(index: int) -> Stroke:
    """Give the line style of the index-th series; the first 35 differ.

    Parameters
    ----------
    index : int
        Position of the series, from 0.

    Returns
    -------
    Stroke

    Examples
    --------
    >>> stroke(0)
    Stroke(color='#0072B2', dash='-', marker='o')
    """
    return Stroke(_COLORS[index % len(_COLORS)], _DASHES[index % len(_DASHES)], _MARKERS[index % len(_MARKERS)])


def literal(text: object) -> str:
    r"""Make text that came from data print as it is: no mathematics, no control characters.

    Parameters
    ----------
    text : object
        Any value; a missing one becomes a dash.

    Returns
    -------
    str

    Examples
    --------
    >>> literal("a$b$")
    'a\\$b\\$'
    """
    if text is None or text is pd.NA or text != text:
        return DASH
    shown = "".join(mark if mark.isprintable() else " " for mark in str(text))
    return shown.replace("$", r"\$")


@functools.lru_cache(4096)
def width_of(text: str, size: float) -> float:
    """Measure one line of text.

    Parameters
    ----------
    text : str
        One line.
    size : float
        Font size in points.

    Returns
    -------
    float
        Width in points.

    Examples
    --------
    >>> width_of("mm", 8) > width_of("ii", 8)
    True
    """
    font = FontProperties(family=[FONT], size=size)
    return float(TextToPath().get_text_width_height_descent(text.replace(r"\$", "$"), font, ismath=False)[0])


def wrap(text: str, points: float, size: float) -> str:
    """Break text into lines no wider than a length, after spaces and marks such as ``_`` where it can.

    Parameters
    ----------
    text : str
        What to break.
    points : float
        Widest line, in points.
    size : float
        Font size in points.

    Returns
    -------
    str
        The same characters with line breaks between them.

    Examples
    --------
    >>> print(wrap("assertions_no_postconditions", 80, 8))
    assertions_no_
    postconditions
    """
    return "\n".join(_broken(line, points, size) for line in text.split("\n"))


def _broken(text: str, points: float, size: float) -> str:
    lines = [""]
    for piece in re.findall(r".*?(?:[_\-/.,:\s]+|$)", text):
        if width_of((lines[-1] + piece).rstrip(), size) <= points:
            lines[-1] += piece
            continue
        lines.append("")
        for mark in re.findall(r"\\\$|.", piece):
            if width_of((lines[-1] + mark).rstrip(), size) > points:
                lines.append("")
            lines[-1] += mark
    return "\n".join(line.rstrip() for line in lines if line.strip())


class ShownFigure(Figure):
    """A figure that a notebook shows although pyplot never heard of it."""

    def _repr_png_(self) -> bytes:
        with matplotlib.style.context(["default", RC]), io.BytesIO() as held:
            self.savefig(held, format="png", dpi=144)
            return held.getvalue()


class ShownAxes(Axes):
    """Axes that a notebook shows by their figure."""

    def _repr_png_(self) -> bytes:
        return ShownFigure._repr_png_(self.figure)  # type: ignore[arg-type]


def new_figure(width: float, height: float) -> ShownFigure:
    """Make an empty figure of a size in inches, unknown to pyplot, laid out so that nothing is clipped.

    Parameters
    ----------
    width, height : float
        Inches.

    Returns
    -------
    ShownFigure

    Examples
    --------
    >>> float(new_figure(ONE_COLUMN, 2).get_figwidth())
    3.4
    """
    return ShownFigure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> Axes:
    """Make a figure of one panel.

    Parameters
    ----------
    width, height : float
        Inches.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> float(new_axes(ONE_COLUMN, 2).figure.get_figheight())
    2.0
    """
    return new_figure(width, height).add_subplot(axes_class=ShownAxes)


P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function under this module's settings and leave the reader's own untouched.

    Parameters
    ----------
    draw : callable
        Any function that draws.

    Returns
    -------
    callable

    Examples
    --------
    >>> styled(lambda: matplotlib.rcParams["pdf.fonttype"])()
    42
    """

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.style.context(["default", RC]):
            return draw(*args, **kwargs)

    return drawn


@contextmanager
def _fonts_without_layout() -> Iterator[None]:
    """Leave the layout tables of embedded fonts out: glyphs in a PDF are placed, and it is written in half the time."""
    options = importlib.import_module("fontTools.subset").Options
    dropped = options._drop_tables_default
    options._drop_tables_default = [*dropped, "GSUB", "GPOS", "GDEF"]
    try:
        yield
    finally:
        options._drop_tables_default = dropped


@styled
def settle(figure: Figure) -> None:
    """Find the layout of a finished figure and keep it, so that saving in several formats does not find it again.

    Parameters
    ----------
    figure : Figure

    Examples
    --------
    >>> figure = new_axes(ONE_COLUMN, 2).figure
    >>> settle(figure)
    >>> type(figure.get_layout_engine()).__name__
    'PlaceHolderLayoutEngine'
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


@styled
def save(figure: Figure | Axes, stem: str | Path, formats: Iterable[str] = ("pdf", "png")) -> tuple[Path, ...]:
    """Write a figure at its own size: PDF with embedded TrueType fonts, PNG at 300 dots an inch.

    Parameters
    ----------
    figure : Figure or Axes
        What a function of `survexec.display.figures` returned.
    stem : str or Path
        Path without the ending; a dot in it is kept.
    formats : iterable of str
        Endings that matplotlib can write.

    Returns
    -------
    tuple of Path
        The files written. The same figure gives the same bytes: no date is stored.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save(new_axes(ONE_COLUMN, 2), f"{folder}/gpt-4.1")]
    ['gpt-4.1.pdf', 'gpt-4.1.png']
    """
    whole = figure.figure if isinstance(figure, Axes) else figure
    written = []
    for ending in formats:
        path = Path(f"{stem}.{ending}")
        with _fonts_without_layout():
            whole.savefig(path, format=ending, metadata=_UNDATED.get(ending))  # type: ignore[union-attr]
        written.append(path)
    return tuple(written)
