"""A table as text (`Grid`) and its three writers: Markdown, LaTeX and HTML. All text is escaped here."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

# Of a paper's page: points of \footnotesize text across, and between columns; rows, and rows that a block's head takes.
_ACROSS, _GAP, _DOWN, _HEAD = 372.0, 6.0, 50.0, 4.0
_NAME = ' class="name"'


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of one cell; ``small`` is its interval or denominator, ``mark`` points to the foot."""

    text: str
    small: str = ""
    mark: str = ""

    @property
    def line(self) -> str:
        """All of it in one line."""
        return f"{self.text}{self.mark} {self.small}".strip()


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row; rows of the same ``group`` stand under its name."""

    cells: tuple[Cell, ...]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as text, before any markup.

    Parameters
    ----------
    header : tuple of str
    rows : tuple of Row
    labels : int
        How many columns from the left name the row.
    caption, label : str
        What the table is; its LaTeX label.
    foot : str
        How its numbers were made.
    notes : tuple of str
        What a reader must know beside the numbers.
    group : str
        What the groups of rows are.
    stacked : bool
        Whether LaTeX sets the small text under its number, not beside it.
    together : int
        How many columns at a time LaTeX may move into a further block.
    """

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    labels: int
    caption: str
    label: str
    foot: str = ""
    notes: tuple[str, ...] = ()
    group: str = ""
    stacked: bool = False
    together: int = 1

    @property
    def grouped(self) -> bool:
        """Whether any row stands in a named group."""
        return any(row.group for row in self.rows)


def one_line(text: str) -> str:
    """Text without line breaks or control characters."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def markdown(grid: Grid) -> str:
    r"""Write a grid as a Markdown table; groups become its first column.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str

    Examples
    --------
    >>> print(markdown(Grid(("k", "n|m"), (Row((Cell("1"), Cell("2", "[1, 3]"))),), 1, "Counts.", "tab:n")))
    **Counts.**
    <BLANKLINE>
    | k | n\|m |
    |:--|--:|
    | 1 | 2 [1, 3] |
    """
    groups = [grid.group] if grid.grouped else []
    header = [*groups, *grid.header]
    lines = [f"**{_md(grid.caption)}**", "", _md_row(header)]
    lines.append("|" + ":--|" * (len(groups) + grid.labels) + "--:|" * (len(grid.header) - grid.labels))
    for row in grid.rows:
        texts = [cell.line for cell in row.cells]
        lines.append(_md_row([row.group, *texts] if groups else texts))
    if grid.foot:
        lines += ["", _md(grid.foot)]
    if grid.notes:
        lines += ["", *(f"- {_md(note)}" for note in grid.notes)]
    return "\n".join(lines) + "\n"


def _md_row(texts: list[str]) -> str:
    return "| " + " | ".join(map(_md, texts)) + " |"


def _md(text: str) -> str:
    """Text that Markdown prints as it is; no escape where none is needed: ``tool_calling``, ``[0, 1]``, ``<0.001``."""
    escaped = re.sub(r"[\\|*`~$]|\](?=[(:\[])|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", one_line(text))
    return re.sub(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)", lambda found: html.escape(found[0]), escaped)


def html_table(grid: Grid) -> str:
    """Write a grid as an HTML table element.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str

    Examples
    --------
    >>> html_table(Grid(("k",), (Row((Cell("<b>"),)),), 1, "Counts.", "tab:n"))[-51:]
    '<th scope="row">&lt;b&gt;</th></tr></tbody></table>'
    """
    heads = "".join(
        f'<th scope="col"{_NAME if at < grid.labels else ""}>{html.escape(text)}</th>'
        for at, text in enumerate(grid.header)
    )
    caption = f"<caption>{html.escape(grid.caption)}</caption>" if grid.caption else ""
    parts = [f"<table>{caption}<thead><tr>{heads}</tr></thead>"]
    for group, rows in groupby(grid.rows, key=lambda row: row.group):
        name = f'<tr><th scope="rowgroup" colspan="{len(grid.header)}">{_breakable(group)}</th></tr>'
        parts.append("<tbody>" + (name if group else ""))
        for row in rows:
            names = (f'<th scope="row">{_breakable(cell.text)}</th>' for cell in row.cells[: grid.labels])
            numbers = (f"<td>{_html(cell)}</td>" for cell in row.cells[grid.labels :])
            parts.append(f"<tr>{''.join([*names, *numbers])}</tr>")
        parts.append("</tbody>")
    return "".join(parts) + "</table>"


def _breakable(text: str) -> str:
    """A name that may be broken where a person would."""
    return re.sub(r"(?<=[_/:.-])(?=[^_/:.-])", "<wbr>", html.escape(text))


def _html(cell: Cell) -> str:
    mark = f"<sup>{html.escape(cell.mark)}</sup>" if cell.mark else ""
    small = f" <small>{html.escape(cell.small)}</small>" if cell.small else ""
    return html.escape(cell.text) + mark + small


def latex(grid: Grid) -> str:
    r"""Write a grid as LaTeX floats for the package booktabs; the notes stand above as comments.

    Columns that do not fit beside one another go into further blocks under the first, with the row names repeated;
    rows that do not fit a page go into further floats.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str

    Examples
    --------
    >>> print(latex(Grid(("k", "n_1"), (Row((Cell("1"), Cell("2"))),), 1, "Counts.", "tab:n")))
    \begin{table}[t]
    \centering
    \caption{Counts.}
    \label{tab:n}
    \footnotesize
    \setlength{\tabcolsep}{3pt}
    \begin{tabular}{@{}lr@{}}
    \toprule
    k & n\_1 \\
    \midrule
    1 & 2 \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    comments = "".join(f"% {one_line(note)}\n" for note in grid.notes)
    blocks = _blocks(grid)
    floats = []
    for page, rows in enumerate(_pages(grid, len(blocks))):
        part = replace(grid, rows=rows)
        label = "" if page else f"\\label{{{re.sub(r'[^A-Za-z0-9:._-]', '-', grid.label)}}}\n"
        body = "\n\n\\medskip\n".join(_tabular(part, columns) for columns in blocks)
        foot = f"\n\n\\smallskip\n\\parbox{{\\linewidth}}{{\\scriptsize {_tex(grid.foot)}}}" if grid.foot else ""
        floats.append(
            f"\\begin{{table}}[t]\n\\centering\n\\caption{{{_tex(grid.caption)}{' (continued)' if page else ''}}}\n"
            f"{label}\\footnotesize\n\\setlength{{\\tabcolsep}}{{3pt}}\n{body}{foot}\n\\end{{table}}\n"
        )
    return comments + "\n".join(floats)


def _blocks(grid: Grid) -> list[list[int]]:
    """Columns that fit beside one another, the row names first in each block."""
    widths = [
        max([4.3 * len(grid.header[at]), *(_width(row.cells[at], grid.stacked) for row in grid.rows)]) + _GAP
        for at in range(len(grid.header))
    ]
    names = list(range(grid.labels))
    blocks = [names]
    for start in range(grid.labels, len(grid.header), grid.together):
        columns = list(range(start, min(start + grid.together, len(grid.header))))
        if blocks[-1] != names and sum(widths[at] for at in blocks[-1] + columns) > _ACROSS:
            blocks.append(names)
        blocks[-1] = blocks[-1] + columns
    return blocks


def _pages(grid: Grid, blocks: int) -> list[tuple[Row, ...]]:
    """Rows that fit a page under one another, where each stands in every block."""
    pages: list[tuple[Row, ...]] = [()]
    most, used = _DOWN / blocks - _HEAD, 0.0
    for row in grid.rows:
        fresh = not pages[-1] or pages[-1][-1].group != row.group
        need = (1.8 if grid.stacked else 1.0) + (1.5 if row.group and fresh else 0.0)
        if pages[-1] and used + need > most:
            pages.append(())
            used = 0.0
        pages[-1] += (row,)
        used += need
    return pages


def _width(cell: Cell, stacked: bool) -> float:
    """Rough width of a cell in points."""
    text, small = 4.3 * len(cell.text + cell.mark), 3.3 * len(cell.small)
    return max(text, small) if stacked else text + small + 3


def _tabular(grid: Grid, columns: list[int]) -> str:
    """One block of columns as a tabular."""
    align = "".join("l" if at < grid.labels else "r" for at in columns)
    lines = [f"\\begin{{tabular}}{{@{{}}{align}@{{}}}}", "\\toprule"]
    lines += [_tex_row(_tex(grid.header[at]) for at in columns), "\\midrule"]
    for place, (group, rows) in enumerate(groupby(grid.rows, key=lambda row: row.group)):
        if group:
            lines += ["\\addlinespace"] * bool(place)
            lines.append(f"\\multicolumn{{{len(columns)}}}{{@{{}}l@{{}}}}{{\\emph{{{_tex(group)}}}}} \\\\")
        for row in rows:
            cells = [row.cells[at] for at in columns]
            lines += _stacked(cells) if grid.stacked else [_tex_row(map(_beside, cells))]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _stacked(cells: list[Cell]) -> list[str]:
    """A row of numbers and, where there are any, a row of their small texts under it."""
    lines = [_tex_row(_tex(cell.text + cell.mark) for cell in cells)]
    if any(cell.small for cell in cells):
        lines.append(_tex_row(_small(cell) for cell in cells))
    return lines


def _beside(cell: Cell) -> str:
    return _tex(cell.text + cell.mark) + (" " + _small(cell) if cell.small else "")


def _small(cell: Cell) -> str:
    return f"{{\\scriptsize {_tex(cell.small)}}}" if cell.small else ""


def _tex_row(texts: Iterable[str]) -> str:
    """Cells joined to a row; a leading bracket or star would be read as an option of the row before."""
    line = " & ".join(texts)
    return ("{}" if line.startswith(("[", "*")) else "") + line + " \\\\"


_TEX: Final = {
    "-": "-{}", "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_",
    "%": r"\%", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "−": "$-$", "–": "--", "—": "---", "×": r"$\times$",
    "·": r"\textperiodcentered{}", "≤": r"$\le$", "≥": r"$\ge$", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}",
    "¶": r"\P{}", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\ldots{}", "ß": r"\ss{}", "æ": r"\ae{}",
    "Æ": r"\AE{}", "ø": r"\o{}", "Ø": r"\O{}", "å": r"\aa{}", "Å": r"\AA{}", "ł": r"\l{}", "Ł": r"\L{}",
}  # fmt: skip
_ACCENTS: Final = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0304": r"\=", "\u0306": r"\u",
    "\u0307": r"\.", "\u0308": r"\"", "\u030b": r"\H", "\u030c": r"\v", "\u0327": r"\c",
}  # fmt: skip


def _tex(text: str) -> str:
    """Text that LaTeX prints as it is; a character that its standard fonts lack shows its code."""
    return "".join(map(_tex_mark, one_line(text)))


def _tex_mark(mark: str) -> str:
    if mark in _TEX:
        return _TEX[mark]
    if mark.isascii():
        return mark
    parts = unicodedata.normalize("NFD", mark)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return f"{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"[U+{ord(mark):04X}]"
