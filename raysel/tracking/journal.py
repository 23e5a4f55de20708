"""Journal of a study: one JSON record a line, appended and flushed to disk; a study is restored from it alone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from raysel.errors import DirectoryError, StudyError
from raysel.files import parse_json
from raysel.tracking.records import Record, journal_line, record_from_line
from raysel.tracking.upgrade import Upgrader


class LineWriter:
    """Append-only file of JSON objects, one a line.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist, and an incomplete last line is removed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    >>> with LineWriter(path) as writer:
    ...     writer.write({"number": 1})
    >>> list(read_journal(path))
    [{'number': 1}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Unbuffered: a record that failed because the disk was full must not be written after a later one.
            self._file = path.open("a+b", buffering=0)
            self._cut_half_line()
        except OSError as error:
            raise StudyError(f"the journal {path} cannot be written: {error.strerror}.") from error

    def _cut_half_line(self) -> None:
        """Remove an incomplete last line, as a crash or a power cut leaves it."""
        size = self._file.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - 2**16)
            self._file.seek(start)
            found = self._file.read(end - start).rfind(b"\n")
            end = start if found < 0 else start + found + 1
            if found >= 0:
                break
        if end < size:
            os.ftruncate(self._file.fileno(), end)

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line and flush it to disk before returning.

        Parameters
        ----------
        line : mapping
            Plain data; the numbers must be finite.

        Raises
        ------
        StudyError
            If it cannot be written, e.g. because the disk is full; earlier lines are not affected.
        ValueError
            If a number is not finite.
        """
        rest = memoryview(json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        size = self._file.seek(0, os.SEEK_END)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # readers ignore an incomplete last line
                os.ftruncate(self._file.fileno(), size)
            raise StudyError(
                f"the journal {self.path} cannot be written: {error.strerror}. Its earlier records are kept."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Journal(LineWriter):
    """Append-only file of records.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist, and an incomplete last line is removed.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.tracking.records import SearchRecord
    >>> path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(SearchRecord(n_tried=6, n_planned=6, cut=False))
    >>> list(read_records(path))
    [SearchRecord(n_tried=6, n_planned=6, cut=False)]
    """

    def append(self, record: Record) -> None:
        """Write a record and flush it to disk before returning.

        Parameters
        ----------
        record : Record
            Record to write; its numbers must be finite.

        Raises
        ------
        StudyError
            If it cannot be written, e.g. because the disk is full; earlier records are not affected.
        ValueError
            If a number is not finite.
        """
        self.write(journal_line(record))


class RecordReader:
    """Reader that converts the lines of one journal, of this or an earlier schema, to records.

    Parameters
    ----------
    path : Path
        The journal, for the errors.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._upgrader = Upgrader()

    def read(self, line: Mapping[str, Any], number: int) -> Record | None:
        """Read the journal's next line.

        Parameters
        ----------
        line : mapping
            The parsed line.
        number : int
            Number of the line, for the error.

        Returns
        -------
        Record or None
            The record; None if its kind is unknown.

        Raises
        ------
        DirectoryError
            If a field is missing or damaged, or a newer version of raysel wrote the line.
        """
        try:
            return record_from_line(self._upgrader.upgrade(line))
        except DirectoryError as error:
            raise DirectoryError(f"{self._path}, line {number}: {error}") from error


def read_records(path: Path) -> Iterator[Record]:
    """Read the records of a journal, oldest first; older schemas are converted, unknown kinds are skipped.

    Parameters
    ----------
    path : Path
        The journal.

    Yields
    ------
    Record
        One record for each line of a known kind.

    Raises
    ------
    DirectoryError
        If there is no journal, a line is damaged or lacks a field, or a newer version of raysel wrote it.
    """
    reader = RecordReader(path)
    for number, line in enumerate(read_journal(path), start=1):
        record = reader.read(line, number)
        if record is not None:
            yield record


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of a journal without converting them, oldest first; an incomplete last line is ignored.

    Parameters
    ----------
    path : Path
        The journal.

    Yields
    ------
    dict
        Content of each line.

    Raises
    ------
    DirectoryError
        If there is no journal, or a line before the last is damaged.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield parse_line(line, path, number)
    except OSError as error:
        raise DirectoryError(f"{path.parent} holds no readable journal: {error.strerror}.") from error


def parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Parse a complete line of a journal.

    Parameters
    ----------
    line : bytes
        The line with its end.
    path : Path
        The journal, for the error.
    number : int
        Number of the line, for the error.

    Returns
    -------
    dict
        Content of the line.

    Raises
    ------
    DirectoryError
        If the line is damaged.
    """
    try:
        record = parse_json(line[:-1])  # without its end, which would move the position that an error names
        if not isinstance(record, dict):
            raise ValueError("not a record")
    except ValueError as error:
        raise DirectoryError(f"{path}, line {number}: damaged ({error}); restore the file from a copy.") from error
    return record
