"""Opening and decoding what a log is made of. Nothing here knows a log format.

Logs are untrusted: nothing in them is evaluated, and no path that stands in one is opened.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pandas as pd

from survexec.errors import InputError
from survexec.protocol.trajectory import Trajectory

T = TypeVar("T")
HEAD_BYTES = 65_536  # enough to tell what a file is
NULL = msgspec.Raw(b"null")  # default of fields that are decoded only where they are needed
_ANY = msgspec.json.Decoder()
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that could not be read.

    Parameters
    ----------
    source : str
        The file as given.
    where : str
        ``"row 3"``, ``"byte 120"``; empty for the whole file.
    reason : str
        What is wrong and what would be right, in one line.
    unit : str
        What was lost: ``"files"`` or ``"rollouts"``.
    """

    source: str
    where: str
    reason: str
    unit: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one file gave.

    Parameters
    ----------
    source : str
        The file as given.
    format : str
        Name of the reader that read it; empty where none did.
    trajectories : list of Trajectory
        What the agent did; empty for tables.
    frame : pandas.DataFrame or None
        Tables only: the columns under survexec's names, values unchecked, and ``row`` (from 1).
    faults : list of Fault
        What could not be read.
    remarks : list of str
        What the reader took as given, for the ledger.
    """

    source: str
    format: str
    trajectories: list[Trajectory] = field(default_factory=list)
    frame: pd.DataFrame | None = None
    faults: list[Fault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class UnreadableError(InputError):
    """A document or a part of it cannot be read; `where` says where."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.where = where


class Shape(StrEnum):
    """What a document is made of, before anything is known of its format."""

    ARRAY = "a JSON array"
    OBJECT = "a JSON object"
    LINES = "JSON lines"
    TEXT = "plain text"
    PARQUET = "a Parquet file"
    FOLDER = "a folder"


@dataclass(frozen=True)
class Document:
    """One file or folder, opened step by step: what nobody asks for is not decoded.

    Parameters
    ----------
    path : Path
        Where it is.
    """

    path: Path

    @property
    def source(self) -> str:
        """The path as given."""
        return str(self.path)

    @cached_property
    def head(self) -> bytes:
        """The first bytes, without a byte-order mark."""
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        except OSError as error:
            raise UnreadableError(f"cannot be opened: {error.strerror or error}") from None

    @cached_property
    def data(self) -> bytes:
        """All bytes, without a byte-order mark."""
        try:
            return self.path.read_bytes().removeprefix(codecs.BOM_UTF8)
        except OSError as error:
            raise UnreadableError(f"cannot be opened: {error.strerror or error}") from None

    @cached_property
    def shape(self) -> Shape:
        """What it is made of; raises `UnreadableError` where that is nothing survexec reads."""
        if self.path.is_dir():
            return Shape.FOLDER
        head = self.head
        start = head.lstrip()[:1]
        if not start:
            raise UnreadableError("the file is empty: a log or a table of rollouts is wanted")
        if head.startswith(b"PAR1"):
            return Shape.PARQUET
        if head.startswith(b"version https://git-lfs"):
            raise UnreadableError("a git-LFS pointer, not the file itself: fetch it with `git lfs pull`")
        is_json = start in (b"[", b"{")
        if b"\0" in head or not (is_json or _is_text(head)):
            begin = head[:4].hex(" ")
            raise UnreadableError(f"no UTF-8 text (begins with bytes {begin}): JSON, CSV or Parquet is wanted")
        if not is_json:
            return Shape.TEXT
        if _has_lines(self.data):
            return Shape.LINES
        return Shape.ARRAY if start == b"[" else Shape.OBJECT

    @cached_property
    def rows(self) -> Sequence[bytes | msgspec.Raw]:
        """Rows of an array or of JSON lines, not yet decoded; `decode_as` takes one."""
        if self.shape is Shape.LINES:
            return [line for line in self.data.splitlines() if line.strip()]
        return elements(self.data) if self.shape is Shape.ARRAY else []

    @cached_property
    def fields(self) -> Mapping[str, msgspec.Raw]:
        """Fields of an object, not yet decoded; `decode_as` takes one."""
        return members(self.data) if self.shape is Shape.OBJECT else {}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the object, or of the first row that is an object."""
        if self.shape is Shape.OBJECT:
            return tuple(self.fields)
        if self.shape is Shape.ARRAY:
            try:  # The first row alone is in most cases enough, and in the head.
                head = self.head.decode("utf-8", "replace").lstrip().removeprefix("[")
                first, _ = json.JSONDecoder().raw_decode(head.lstrip())
            except (ValueError, RecursionError):
                first = None
            if isinstance(first, dict):
                return tuple(first)
        for row in self.rows[:20]:
            try:
                return tuple(members(row))
            except UnreadableError:
                continue
        return ()

    def decoded_rows(self, row: type[T]) -> Iterator[tuple[int, T | UnreadableError]]:
        """Rows of an array or of JSON lines with their numbers, each of a type or the reason why not."""
        if self.shape is Shape.ARRAY:
            try:  # All at once is faster; rows apart only matter where one is bad.
                return enumerate(msgspec.json.Decoder(list[row]).decode(self.data), start=1)  # type: ignore[valid-type]
            except (ValueError, RecursionError):
                pass
        return enumerate((_row(part, msgspec.json.Decoder(row)) for part in self.rows), start=1)

    def describe(self) -> str:
        """In a few words, what was found."""
        if self.shape not in (Shape.ARRAY, Shape.OBJECT, Shape.LINES):
            return str(self.shape)
        if not self.keys:
            return f"{self.shape} without keys"
        names = [one_line(key, 40) for key in self.keys[:8]]
        more = f" and {len(self.keys) - 8} more" if len(self.keys) > 8 else ""
        return f"{self.shape} with the keys {', '.join(names)}{more}"


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _has_lines(data: bytes) -> bool:
    """Whether the first line is a JSON value of its own and something follows it."""
    end = data.find(b"\n", len(data) - len(data.lstrip()))
    first = data[:end].rstrip()
    if end < 0 or not first.endswith((b"}", b"]")) or not data[end:].lstrip():
        return False
    try:
        plain(first)
    except UnreadableError:
        return False
    return True


def _repaired(data: bytes) -> bytes:
    """JSON as Python writes it made valid: NaN and Infinity become null, half surrogate pairs "?"."""
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=lambda name: None)
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            reason = "the JSON is cut off before its last value is closed: the whole file is wanted"
            raise UnreadableError(reason, f"byte {len(data)}") from None
        found = one_line(text[error.pos : error.pos + 20])
        byte = len(text[: error.pos].encode())
        raise UnreadableError(f"no valid JSON, {error.msg.lower()}: {found!r}", f"byte {byte}") from None
    except RecursionError:
        raise UnreadableError("JSON nested too deep to be read") from None


def decode_as(value: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a part of a document into a type; raises `UnreadableError` with what was expected and where."""
    try:
        try:
            return decoder.decode(value)
        except msgspec.ValidationError:
            raise
        except (ValueError, RecursionError):
            return decoder.decode(_repaired(bytes(value)))
    except msgspec.DecodeError as error:
        raise UnreadableError(one_line(str(error).replace("$.", "").replace("`", "'"))) from None


def _row(value: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | UnreadableError:
    try:
        return decode_as(value, decoder)
    except UnreadableError as error:
        return error


def elements(value: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Elements of a JSON array, each to be decoded apart."""
    return decode_as(value, _ELEMENTS)


def members(value: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Fields of a JSON object, each to be decoded apart."""
    return decode_as(value, _MEMBERS)


def plain(value: bytes | msgspec.Raw) -> Any:
    """Decode a part of a document to plain objects."""
    return decode_as(value, _ANY)


def one_line(text: str, limit: int = 200) -> str:
    r"""Text as one line of printable characters, cut at a length.

    Examples
    --------
    >>> one_line("Connection  aborted.\n  Traceback ...", 24)
    'Connection aborted. Tra…'
    """
    line = " ".join(text[: 10 * limit].split())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"
