"""Journal of a study: one JSON record a line, appended and flushed to disk; a study is restored from it alone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from raysel.errors import DirectoryError, StudyError
from raysel.tracking.records import Record, journal_line, record_from_line
from raysel.tracking.upgrade import Upgrader


class Journal:
    """An append-only file of records.

    Parameters
    ----------
    path : Path
        The file; made if need be, and a half line at its end is dropped.

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

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Unbuffered: what the disk had no room for must not turn up after a later record.
            self._file = path.open("a+b", buffering=0)
            self._cut_half_line()
        except OSError as error:
            raise StudyError(f"the journal {path} cannot be written: {error.strerror}.") from error

    def _cut_half_line(self) -> None:
        """Drop a last line that a crash or a power cut has left without its end."""
        size = self._file.seek(0, os.SEEK_END)
        kept = size
        while kept:
            start = max(0, kept - 2**16)
            self._file.seek(start)
            found = self._file.read(kept - start).rfind(b"\n")
            kept = start if found < 0 else start + found + 1
            if found >= 0:
                break
        if kept < size:
            os.ftruncate(self._file.fileno(), kept)

    def append(self, record: Record) -> None:
        """Write a record and flush it to disk before returning.

        Parameters
        ----------
        record : Record
            Its figures must be finite.

        Raises
        ------
        StudyError
            If it cannot be written, e.g. because the disk is full; earlier records stay whole.
        """
        rest = memoryview(json.dumps(journal_line(record), allow_nan=False, separators=(",", ":")).encode() + b"\n")
        size = self._file.seek(0, os.SEEK_END)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # a reader drops a half line
                os.ftruncate(self._file.fileno(), size)
            raise StudyError(
                f"the journal {self.path} cannot be written: {error.strerror}. What it held before is kept."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RecordReader:
    """Turns the lines of one journal, of any schema so far, into records."""

    def __init__(self) -> None:
        self._upgrader = Upgrader()

    def read(self, line: Mapping[str, Any]) -> Record | None:
        """Read the journal's next line.

        Parameters
        ----------
        line : mapping
            As it was written.

        Returns
        -------
        Record or None
            None where its kind is unknown.

        Raises
        ------
        DirectoryError
            If something needed is missing or damaged, or a newer version of raysel wrote it.
        """
        return record_from_line(self._upgrader.upgrade(line))


def read_records(path: Path) -> Iterator[Record]:
    """Read the records of a journal, oldest first; older schemas are converted, unknown kinds passed over.

    Parameters
    ----------
    path : Path
        The journal.

    Yields
    ------
    Record
        One for each line of a known kind.

    Raises
    ------
    DirectoryError
        If there is no journal, a line is damaged or lacks something, or a newer version of raysel wrote it.
    """
    reader = RecordReader()
    for number, line in enumerate(read_journal(path), start=1):
        try:
            record = reader.read(line)
        except DirectoryError as error:
            raise DirectoryError(f"{path}, line {number}: {error}") from error
        if record is not None:
            yield record


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of a journal as they were written, oldest first; a last line cut short by a crash is dropped.

    Parameters
    ----------
    path : Path
        The journal.

    Yields
    ------
    dict
        One for each line.

    Raises
    ------
    DirectoryError
        If there is no journal, or a line before the last is damaged.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DirectoryError(f"{path.parent} holds no readable journal: {error.strerror}.") from error
    lines = raw.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not a record")
        except ValueError as error:
            raise DirectoryError(f"{path}, line {number}: damaged ({error}); restore the file from a copy.") from error
        yield record
