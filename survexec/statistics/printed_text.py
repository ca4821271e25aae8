"""A printed table as text (CSV, Markdown, LaTeX) -> a frame of the text of its cells."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Final

import pandas as pd

from survexec.errors import InputError

_RULE: Final = re.compile(r"\\(?:top|mid|bottom|h|c?mid)(?:rule|line)(?:\([^)]*\))?(?:\[[^]]*\])?(?:\{[^{}]*\})?")
_SPACING: Final = re.compile(r"\\(?:addlinespace|specialrule|rowcolor|noalign)(?:\[[^]]*\])?(?:\{[^{}]*\})*")
_BODY: Final = re.compile(r"\\begin\{(tabular[*xy]?|longtable|tabu)\}(.*?)\\end\{\1\}", re.DOTALL)
_SPAN: Final = re.compile(r"\\multicolumn\s*\{\s*(\d+)\s*\}")
_INTERVAL: Final = re.compile(r"^$|^[\[(].*[\])]$")
_DASHES: Final = re.compile(r"^:?-+:?$")
# Commands that stand for a sign; all others keep their last argument or vanish.
_SIGNS: Final = {r"\%": "%", r"\_": "_", r"\&": "&", r"\#": "#", r"\$": "$", r"\textendash": "–", "~": " "}


def printed_cells(table: str | Path) -> tuple[pd.DataFrame, str]:
    r"""Read a printed table: a file, or its text, in CSV, Markdown or LaTeX as its content shows.

    Parameters
    ----------
    table : str or Path
        The path of a file; text with a line break is the table itself.

    Returns
    -------
    frame : pandas.DataFrame
        One row a row of numbers, all cells text, empty where nothing was printed.
    source : str
        The name of the file, or "text".

    Raises
    ------
    InputError
        The file is not there, is no text, or holds no table.

    Examples
    --------
    >>> frame, _ = printed_cells("| Method | TER |\n|:--|--:|\n| plan | **0.47** |\n")
    >>> frame
      Method   TER
    0   plan  0.47
    """
    text, source = (table, "text") if isinstance(table, str) and "\n" in table else _opened(Path(table))
    if _BODY.search(text) or re.search(r"(?<!\\)&.*\\\\", text):
        rows = _latex_rows(text)
    elif any(line.lstrip().startswith("|") for line in text.splitlines()):
        rows = _markdown_rows(text)
    else:
        rows = _csv_rows(text)
    if len(rows) < 2:
        raise InputError(f"{source}: no table with a heading and rows; wanted is CSV, Markdown or LaTeX")
    return _framed(rows, source), source


def _opened(path: Path) -> tuple[str, str]:
    """The text of a file, and its name."""
    try:
        return path.read_text(encoding="utf-8-sig"), path.name
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({type(error).__name__})") from error


def _framed(rows: list[list[str]], source: str) -> pd.DataFrame:
    """Rows under their heading; a row with one cell is a heading within the table, one of brackets the intervals."""
    width = max(len(row) for row in rows)
    heads = [row + [""] * (width - len(row)) for row in rows]
    first = next((at for at, row in enumerate(heads) if sum(map(bool, row)) > 1), 0)
    header = heads[first]
    body = [
        row for row in heads[first + 1 :]
        if sum(map(bool, row)) > 1 and row != header and not all(_INTERVAL.match(cell) for cell in row)
    ]  # fmt: skip
    named = [name or f"column {at}" for at, name in enumerate(header, 1)]
    twice = {name for name in named if named.count(name) > 1}
    if twice:
        raise InputError(f"{source}: the column {min(twice)!r} stands twice; each needs a name of its own")
    return pd.DataFrame(body, columns=named, dtype=object)


def _csv_rows(text: str) -> list[list[str]]:
    """Cells of a CSV file; the separator is the one its heading has most of."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(",;\t", key=head.count)
    rows = csv.reader(text.splitlines(), delimiter=separator)
    return [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]


def _markdown_rows(text: str) -> list[list[str]]:
    """Cells of the first Markdown table."""
    rows: list[list[str]] = []
    for line in map(str.strip, text.splitlines()):
        if not line.startswith("|"):
            if rows:
                break
            continue
        inner = line[1:-1] if line.endswith("|") and not line.endswith(r"\|") else line[1:]
        cells = [_plain(cell.replace(r"\|", "|")) for cell in re.split(r"(?<!\\)\|", inner)]
        if not all(_DASHES.match(cell) for cell in cells):
            rows.append(cells)
    return rows


def _plain(cell: str) -> str:
    """Markdown text without emphasis or escapes."""
    cell = re.sub(r"(\*\*|`)(.+?)\1", r"\2", cell.strip())
    cell = re.sub(r"<br\s*/?>|&nbsp;", " ", cell)
    return re.sub(r"\\([\\`*_{}\[\]()#+\-.!<>~])", r"\1", cell).strip()


def _latex_rows(text: str) -> list[list[str]]:
    """Cells of the first LaTeX table, spans repeated as empty cells."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    body = _BODY.search(text)
    inner = body.group(2) if body else text
    rows = []
    for line in re.split(r"\\\\(?:\[[^]]*\])?|\\tabularnewline", _SPACING.sub("", _RULE.sub("", inner))):
        cells: list[str] = []
        for cell in re.split(r"(?<!\\)&", line):
            span = _SPAN.search(cell)
            cells += [_untexed(cell), *[""] * (int(span.group(1)) - 1 if span else 0)]
        if any(cells):
            rows.append(cells)
    if rows and body:
        rows[0][0] = _without_format(inner, rows[0][0])
    return rows


def _without_format(inner: str, cell: str) -> str:
    """The first cell without the column format, which stands between the beginning and the first row."""
    first = re.split(r"(?<!\\)&", _SPACING.sub("", _RULE.sub("", inner)))[0].lstrip()
    while first.startswith(("{", "[")):
        depth, pairs = 0, {"{": 1, "[": 1, "}": -1, "]": -1}
        for at, mark in enumerate(first):
            depth += pairs.get(mark, 0)
            if depth == 0:
                first = first[at + 1 :].lstrip()
                break
        else:
            return cell
    return _untexed(first)


def _untexed(cell: str) -> str:
    r"""LaTeX text as plain text: a command keeps its last argument (the text of \textbf, \multirow and the like)."""
    for command, sign in _SIGNS.items():
        cell = cell.replace(command, sign)
    before = None
    while before != cell:
        before = cell
        cell = re.sub(r"\\[A-Za-z]+\*?(?:\[[^]]*\])?(?:\s*\{[^{}]*\})*\s*\{([^{}]*)\}", r"\1", cell)
        cell = re.sub(r"(?<!\\)\{([^{}]*)\}", r"\1", cell)
    cell = re.sub(r"\\[A-Za-z]+\*?", " ", cell).replace("$", "").replace("--", "–")
    return " ".join(cell.split())
