"""Readers: one module a log format, chosen by what a file holds, never by its name.

A new format is a module with a reader and one entry in `READERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from survexec.errors import InputError
from survexec.protocol.readers.bfcl import BfclReader
from survexec.protocol.readers.documents import Document, Fault, Reading, UnreadableError
from survexec.protocol.readers.tables import TableReader, check_names, read_table
from survexec.protocol.readers.tau import TauReader
from survexec.protocol.readers.tau2 import Tau2Reader
from survexec.protocol.readers.toolsandbox import ToolSandboxReader

__all__ = ["READERS", "Document", "Fault", "Reader", "Reading", "read_file", "read_table"]


class Reader(Protocol):
    """What a log format has to provide."""

    @property
    def name(self) -> str:
        """Name of the format, as `format=` takes it."""

    @property
    def expects(self) -> str:
        """What a file of this format looks like, for messages."""

    def recognises(self, document: Document) -> bool:
        """Whether a document is of this format, judged by its content."""

    def read(self, document: Document) -> Reading:
        """Read a document; raises `UnreadableError` where nothing of it can be read."""


READERS: tuple[Reader, ...] = (TauReader(), Tau2Reader(), BfclReader(), ToolSandboxReader(), TableReader())


def read_file(path: Path, *, format: str | None = None, columns: Mapping[str, str] | None = None) -> Reading:
    """Read one file or folder of rollouts.

    Parameters
    ----------
    path : Path
        A log, a table, or a folder of a log.
    format : str, optional
        Name of the format; found by content where it is not given.
    columns : mapping of str to str, optional
        For tables: survexec's name -> the table's own column.

    Returns
    -------
    Reading
        What was read. Bad content never raises: it stands in `faults`.

    Raises
    ------
    InputError
        `format` or a name in `columns` is not one that survexec knows.

    Examples
    --------
    >>> read_file(Path("no-such-file.json")).faults[0].reason
    'cannot be opened: No such file or directory'
    """
    check_names(columns or {})
    if format is not None and format not in {reader.name for reader in READERS}:
        known = ", ".join(reader.name for reader in READERS)
        raise InputError(f"format {format!r} is not known: {known} are")
    document = Document(Path(path))
    try:
        reader = _reader_for(document, format)
        if columns and isinstance(reader, TableReader):
            reader = TableReader(columns)
        return reader.read(document)
    except UnreadableError as error:
        fault = Fault(document.source, error.where, str(error), "files")
        return Reading(document.source, format or "", faults=[fault])


def _reader_for(document: Document, format: str | None) -> Reader:
    for reader in READERS:
        if reader.name == format or (format is None and reader.recognises(document)):
            return reader
    formats = "; ".join(f"{reader.name} ({reader.expects})" for reader in READERS)
    raise UnreadableError(f"{document.describe()}: none of the formats that are read: {formats}")
