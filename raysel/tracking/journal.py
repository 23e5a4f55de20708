"""The journal of a study: one JSON record a line, appended and flushed to disk. It is the truth."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raysel.errors import DirectoryError, StudyError


class Journal:
    """An append-only file of records.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append({"kind": "trial", "id": "a"})
    >>> [record["id"] for record in read_journal(path)]
    ['a']
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

    def append(self, record: dict[str, Any]) -> None:
        """Write a record and see it on disk before returning.

        Raises
        ------
        StudyError
            If it cannot be written, e.g. because the disk is full; earlier records stay whole.
        """
        rest = memoryview(json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n")
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


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal, oldest first; a last line cut short by a crash is dropped.

    Parameters
    ----------
    path : Path

    Yields
    ------
    dict

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
