"""A table as a picture, for places that show images alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from survexec.display import style
from survexec.display.markup import Cell, Grid, Row

# Points: margin, gap between columns, height of a row, of one with its small text under it, and of a group's name.
_EDGE, _GAP, _ROW, _TALL, _GROUP = 5.0, 11.0, 11.0, 20.0, 13.5


@style.styled
def table_picture(grid: Grid) -> Figure:
    """Draw a table with rules above, below and under its head, as LaTeX with booktabs would set it.

    Reading: as the table. The caption stands above, how the numbers were made below.

    Parameters
    ----------
    grid : Grid
        Of `survexec.display.tables.grid`, or any other.

    Returns
    -------
    Figure
        As wide as the columns need.

    Examples
    --------
    >>> from survexec.display.markup import Cell, Grid, Row
    >>> figure = table_picture(Grid(("k", "n"), (Row((Cell("1"), Cell("2"))),), 1, "Counts.", "tab:n"))
    >>> [text.get_text() for text in figure.texts]
    ['Counts.', 'k', 'n', '1', '2']
    """
    page = _Page(grid, _columns(grid))
    page.paragraph(grid.caption, style.TEXT)
    page.rule(1.0)
    page.line(tuple(map(Cell, grid.header)), _ROW, head=True)
    page.rule(0.6)
    for group, rows in groupby(grid.rows, key=lambda row: row.group):
        if group:
            page.group(group)
        for row in rows:
            page.row(row)
    page.rule(1.0)
    page.paragraph(grid.foot, style.TINY, color=style.GREY)
    return page.figure()


@dataclass(frozen=True)
class _Column:
    """Where a column begins and ends, and where its numbers end when small text stands beside them."""

    left: float
    right: float
    numbers: float


def _columns(grid: Grid) -> list[_Column]:
    """Place the columns side by side, each as wide as its widest cell."""
    columns, left = [], _EDGE
    for at, head in enumerate(grid.header):
        cells = [row.cells[at] for row in grid.rows]
        text = max([style.width_of(cell.text + cell.mark, style.SMALL) for cell in cells], default=0.0)
        small = max([style.width_of(cell.small, style.TINY) for cell in cells if cell.small], default=-3.0)
        inner = max(text, small) if grid.stacked else text + 3 + small
        right = left + max(inner, style.width_of(head, style.SMALL))
        columns.append(_Column(left, right, right if grid.stacked else right - 3 - small))
        left = right + _GAP
    return columns


class _Page:
    """Text and rules from the top down; how high it is, is known at the end."""

    def __init__(self, grid: Grid, columns: list[_Column]) -> None:
        self.grid, self.columns = grid, columns
        self.width = max(columns[-1].right + _EDGE, 72 * style.ONE_COLUMN)
        self.down = _EDGE
        self.texts: list[tuple[float, float, str, dict[str, Any]]] = []
        self.rules: list[tuple[float, float]] = []

    def write(self, x: float, text: str, size: float = style.SMALL, below: float = 0.0, **look: Any) -> None:
        if text:
            self.texts.append((x, self.down + below, style.literal(text), {"fontsize": size, "va": "top", **look}))

    def paragraph(self, text: str, size: float, **look: Any) -> None:
        for line in style.wrap(text, self.width - 2 * _EDGE - 6, size).split("\n") if text else []:
            self.write(_EDGE, line, size, **look)
            self.down += 1.35 * size
        self.down += 3

    def rule(self, width: float) -> None:
        self.rules.append((self.down, width))
        self.down += 3

    def group(self, name: str) -> None:
        self.down += 2
        self.write(_EDGE, name, style="italic")
        self.down += _GROUP - 2

    def row(self, row: Row) -> None:
        self.line(row.cells, _TALL if self.grid.stacked and any(cell.small for cell in row.cells) else _ROW)

    def line(self, cells: tuple[Cell, ...], height: float, head: bool = False) -> None:
        for at, (cell, column) in enumerate(zip(cells, self.columns, strict=True)):
            if at < self.grid.labels:
                self.write(column.left, cell.text + cell.mark)
                continue
            self.write(column.right if head else column.numbers, cell.text + cell.mark, ha="right")
            below = _TALL - _ROW if self.grid.stacked else 0.0
            self.write(column.right, cell.small, style.TINY, below, ha="right", color=style.GREY)
        self.down += height

    def figure(self) -> Figure:
        height = self.down + _EDGE - 3
        figure = style.new_figure(self.width / 72, height / 72)
        for x, down, text, look in self.texts:
            figure.text(x / self.width, 1 - down / height, text, **look)
        for down, width in self.rules:
            ends = [_EDGE / self.width, 1 - _EDGE / self.width], [1 - down / height] * 2
            figure.add_artist(Line2D(*ends, color=style.INK, linewidth=width))
        return figure
