"""Journal of a study: lines appended whole, and read back as records, also of raysel 0.7."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from raysel.core.errors import DirectoryError, StudyError
from raysel.core.files import atomic_write, flush_folder, open_regular, parse_json
from raysel.tracking.locks import FileLock
from raysel.tracking.records import (
    SCHEMA,
    EndRecord,
    Record,
    StudyRecord,
    check_record,
    journal_line,
    record_from_line,
)

#: Schema of raysel up to 0.7.
_FORMER_SCHEMA = 2
# Found without parsing, because the lines of a large study take minutes to parse.
STUDY_LINE = re.compile(rb'\{"kind": ?"study"')
END_LINE = re.compile(rb'\{"kind": ?"end"')
#: Longest line in bytes: a path of 1000 configurations with 1000 scores each takes a tenth of it.
_LONGEST_LINE = 2**28


def _from_schema_2(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a line of raysel 0.7, whose estimator is the classifier, and C its only setting."""
    kind = line.get("kind")
    if kind == "study":
        evaluation = dict(line["config"]["evaluation"])
        evaluation = {"estimator": evaluation.pop("classifier"), **evaluation}
        return {**line, "schema": SCHEMA, "config": {**line["config"], "evaluation": evaluation}}
    if kind == "trial":
        return {
            **line,
            "folds": {name: _with_settings(trace) for name, trace in line.get("folds", {}).items()},
        }
    if kind == "refit":
        line = _with_settings(line)
        named = line.pop("reference_c", {})
        return {
            **line,
            "reference_settings": {name: _settings(values) for name, values in named.items()},
        }
    return line


def _with_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(record)
    if "C" in converted:
        converted["settings"] = _settings(converted.pop("C"))
    return converted


def _settings(values: Iterable[float]) -> list[dict[str, float]]:
    return [{"C": value} for value in values]


class LineWriter:
    """Append-only file of JSON objects, one a line."""

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        self.path, self.lock = path, lock
        try:
            is_new = not path.exists()
            if lock and lock.evicted and not is_new:
                # Who was evicted may be about to write: that goes to a file which has no name any
                # more.
                with atomic_write(path, durable=True) as copy:
                    shutil.copyfile(path, copy)
            # Unbuffered: a record that failed because the disk was full must not be written after a
            # later one.
            self._file = path.open("a+b", buffering=0)
            self._cut_half_line()
            if is_new:
                flush_folder(path.parent)
        except OSError as error:
            raise StudyError(f"the journal {path} cannot be written: {error.strerror}.") from error

    def _cut_half_line(self) -> None:
        """Remove an incomplete last line, as a crash or a power cut leaves it."""
        size = self._file.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - 2**16)
            self._file.seek(start)
            position = self._file.read(end - start).rfind(b"\n")
            end = start + position + 1
            if position >= 0:
                break
        if end < size:
            os.ftruncate(self._file.fileno(), end)

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line and flush it to disk before returning."""
        rest = memoryview(json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        if self.lock:
            self.lock.check()
        size = self._file.seek(0, os.SEEK_END)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # readers ignore an incomplete last line
                os.ftruncate(self._file.fileno(), size)
            raise StudyError(
                f"the journal {self.path} cannot be written: {error.strerror}. Its earlier records"
                " are kept."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Journal(LineWriter):
    """Append-only file of records."""

    def append(self, record: Record) -> None:
        """Write a record and flush it to disk before returning."""
        self.write(journal_line(record))


def _readable_schema(line: Mapping[str, Any]) -> int:
    """Return the schema of a study's line; refuse one that this version does not read."""
    schema: int = line.get("schema", 1)
    if schema in (_FORMER_SCHEMA, SCHEMA):
        return schema
    if schema == 1:
        release = line["versions"]["raysel"].partition("+")[0]
        raise DirectoryError(
            f"written by raysel {release}, whose records this version does not read; open or resume"
            f" the study with raysel {release}, or run it anew."
        )
    raise DirectoryError(f"written by a newer version of raysel (schema {schema}); update raysel.")


class RecordReader:
    """Reader that converts the lines of one journal, of this or the former schema, to records.

    Each study line sets the schema of the lines that follow it, because a journal that was started
    by an earlier version and resumed by this one has lines of both.
    """

    def __init__(self, path: Path, *, checked: bool = False) -> None:
        self._path, self._checked = path, checked
        self._schema = SCHEMA
        self._study: StudyRecord | None = None

    def read(self, line: Mapping[str, Any], number: int) -> Record | None:
        """Read the journal's next line."""
        try:
            if line.get("kind") == "study":
                self._schema = _readable_schema(line)
            if self._schema != SCHEMA:
                line = _from_schema_2(line)
            record = record_from_line(line)
            if record is not None and self._checked:
                check_record(record, self._study)
        except DirectoryError as error:
            raise DirectoryError(f"{self._path}, line {number}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            of = (
                f"a record of kind {line.get('kind')!r} is damaged:"
                f" {'there is no ' * isinstance(error, KeyError)}"
            )
            raise DirectoryError(f"{self._path}, line {number}: {of}{error}.") from error
        if isinstance(record, StudyRecord):
            self._study = record
        return record


def read_records(path: Path, *, checked: bool = False) -> Iterator[Record]:
    """Read the records of a journal, oldest first; those of unknown kinds are skipped."""
    reader = RecordReader(path, checked=checked)
    for number, line in enumerate(read_journal(path), start=1):
        record = reader.read(line, number)
        if record is not None:
            yield record


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of a journal as they are, oldest first, without an incomplete last line."""
    try:
        with open_journal(path) as file:
            for number, line in enumerate(journal_lines(file, path), start=1):
                yield parse_line(line, path, number)
    except OSError as error:
        raise DirectoryError(
            f"{path.parent} holds no readable journal: {error.strerror}. Give the directory of a"
            " study."
        ) from error


def open_journal(path: Path) -> BinaryIO:
    """Open a journal for reading; an OSError if it is a link, a pipe or a device."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def journal_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield the complete lines of an open journal from its position on."""
    while (line := file.readline(_LONGEST_LINE + 1)).endswith(b"\n"):
        yield line
    if len(line) > _LONGEST_LINE:
        raise DirectoryError(
            f"{path}: a line is longer than {_LONGEST_LINE // 2**20} MiB, which no record is;"
            " restore the file from a copy."
        )


def parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Parse a complete line of a journal."""
    try:
        record = parse_json(
            line[:-1]
        )  # without its end, which would move the position that an error names
        if not isinstance(record, dict):
            raise ValueError("not a record")
    except ValueError as error:
        raise DirectoryError(
            f"{path}, line {number}: damaged ({error}); restore the file from a copy."
        ) from error
    return record


def last_study(journal: Path) -> StudyRecord:
    """Read the last record of the study itself from a journal."""
    record = _last(journal, STUDY_LINE)
    if not isinstance(record, StudyRecord):
        raise DirectoryError(f"{journal} has no record of a study; restore the file from a copy.")
    return record


def last_end(journal: Path) -> EndRecord | None:
    """Read the last record of an end from a journal."""
    record = _last(journal, END_LINE)
    if not isinstance(record, EndRecord):
        return None
    return record


def _last(journal: Path, kind: re.Pattern[bytes]) -> Record | None:
    """Read the last whole record of a kind; None if there is none."""
    number, last = 0, b""
    with open_journal(journal) as file:
        for i, line in enumerate(journal_lines(file, journal), start=1):
            if kind.match(line):
                number, last = i, line
    if not last:
        return None
    return RecordReader(journal).read(parse_line(last, journal, number), number)
