"""List of the members of a comparison, as ``members.json`` holds it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from raysel.core.credentials import keep_credentials
from raysel.core.errors import DataError, DirectoryError
from raysel.core.files import check_entries, instance_of, read_again, read_json
from raysel.tracking.directory import RESULTS, StudyDirectory
from raysel.tracking.locks import FileLock, LockedFile

SCHEMA = 1

#: Most letters of a label; the configuration allows fewer.
_LONGEST_LABEL = 100
#: Seconds since the epoch at the end of the year 9999.
_LAST_TIME = 253402300799.0


@dataclass(frozen=True)
class MemberEntry:
    """Entry of a member in ``members.json``."""

    label: str
    folder: str
    solver: str
    reconstructed: bool
    error: str | None = None
    transductive: bool = False


@dataclass(frozen=True)
class ComparisonRecord:
    """Content of ``members.json``."""

    id: str
    name: str
    reference: str
    experiment: str
    uri: str
    #: Time of the first start, in seconds since the epoch.
    started: float
    members: tuple[MemberEntry, ...]

    @classmethod
    def read(cls, directory: StudyDirectory) -> ComparisonRecord:
        """Read the list of members from the directory of a comparison."""
        directory.check()
        try:
            record = cls.from_json(read_again(lambda: read_json(directory.members)))
        except OSError as error:
            raise DirectoryError(
                f"{directory.path} holds no comparison: {directory.members.name} cannot be read ({error.strerror}). "
                "Give the directory of a study with the key `compare`."
            ) from error
        except (ValueError, DataError) as error:
            raise DirectoryError(f"{directory.members} is damaged: {error}. Restore it from a copy.") from error
        for entry in record.members:
            if (directory.path / entry.folder).is_symlink():
                check_entries(directory.path, [entry.folder])
        return record

    def write(self, directory: StudyDirectory, lock: FileLock) -> None:
        """Write the list of members."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False)
        try:
            LockedFile(directory.members, lock).write(text, durable=True)
        except OSError as error:
            raise DirectoryError(f"{directory.members} cannot be written: {error.strerror}.") from error

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, raw: Any) -> ComparisonRecord:
        """Restore the record from the data of `to_json`, which may be a stranger's; unknown keys are ignored."""
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise DataError(f"its schema is not {SCHEMA}")
        try:
            record = instance_of(cls, raw)
        except ValueError as error:
            raise DataError(str(error)) from error
        labels = [entry.label for entry in record.members]
        faults = {
            "its id or its time is damaged": not re.fullmatch(r"[\w-]{1,100}", record.id)
            or not 0 <= record.started <= _LAST_TIME,
            "its name is not printable, or is too long": not _is_short(record.name) or len(record.experiment) > 500,
            f"a label is not 1 to {_LONGEST_LABEL} printable characters": not all(map(_is_short, labels)),
            "it has no members": not labels,
            "two members have the same label": len(set(labels)) < len(labels),
            "its reference is not one of the members": record.reference not in labels,
        }
        faults |= {
            f"'{entry.folder}' is not the name of a member's folder": not _is_folder(entry.folder)
            for entry in record.members
        }
        for fault, found in faults.items():
            if found:
                raise DataError(fault)
        return replace(record, uri=keep_credentials(record.uri))


def _is_short(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_LABEL and name.isprintable()


def _is_folder(name: str) -> bool:
    is_one = PurePosixPath(name).name == name and name not in ("", "..", RESULTS)
    return is_one and len(name) <= 200 and name.isprintable()
