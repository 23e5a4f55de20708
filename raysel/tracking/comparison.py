"""List of the members of a comparison, as ``members.json`` holds it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from types import UnionType
from typing import Any

from raysel.core.credentials import keep_credentials
from raysel.core.errors import DataError, DirectoryError
from raysel.core.files import check_entries, read_again, read_json
from raysel.tracking.directory import RESULTS, StudyDirectory
from raysel.tracking.locks import FileLock, LockedFile

SCHEMA = 1

#: Keys of ``members.json`` with their types, and those of a member.
_COMPARISON: dict[str, type | UnionType] = {
    "id": str,
    "name": str,
    "reference": str,
    "experiment": str,
    "uri": str,
    "started": int | float,
}
_MEMBER: dict[str, type | UnionType] = {
    "label": str,
    "folder": str,
    "solver": str,
    "reconstructed": bool,
    "error": str | None,
}
#: Keys of a member that a record of an earlier version lacks, with what they were.
_LATER: dict[str, Any] = {"transductive": False}
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
        """Restore the record from the data of `to_json`; unknown keys are ignored."""
        if fault := _fault(raw):
            raise DataError(fault)
        members = tuple(
            MemberEntry(**{key: entry[key] for key in _MEMBER}, **{key: entry.get(key, _LATER[key]) for key in _LATER})
            for entry in raw["members"]
        )
        own = {key: raw[key] for key in _COMPARISON} | {"uri": keep_credentials(raw["uri"])}
        return cls(**own, members=members)


def _fault(raw: Any) -> str:
    """Describe the first error of the content of ``members.json``; empty if there is none."""
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        return f"its schema is not {SCHEMA}"
    if fault := _fault_of_comparison(raw):
        return fault
    entries = raw.get("members")
    if not isinstance(entries, list) or not entries:
        return "it has no members"
    if fault := next(filter(None, map(_fault_of_member, entries)), ""):
        return fault
    labels = [entry["label"] for entry in entries]
    if len(set(labels)) < len(labels):
        return "two members have the same label"
    return "" if raw["reference"] in labels else "its reference is not one of the members"


def _fault_of_comparison(raw: dict[str, Any]) -> str:
    for key, types in _COMPARISON.items():
        if not isinstance(raw.get(key), types):
            return f"it has no valid '{key}'"
    if not re.fullmatch(r"[\w-]{1,100}", raw["id"]) or not 0 <= raw["started"] <= _LAST_TIME:
        return "its id or its time is damaged"
    if not raw["name"].isprintable() or len(raw["name"]) > _LONGEST_LABEL or len(raw["experiment"]) > 500:
        return "its name is not printable, or is too long"
    return ""


def _fault_of_member(entry: Any) -> str:
    for key, types in _MEMBER.items():
        if not isinstance(entry, dict) or not isinstance(entry.get(key, 0), types):
            return f"a member has no valid '{key}'"
    for key, default in _LATER.items():
        if not isinstance(entry.get(key, default), type(default)):
            return f"a member has no valid '{key}'"
    folder = entry["folder"]
    label = entry["label"]
    if not label or not label.isprintable() or len(label) > _LONGEST_LABEL:
        return f"a label is not 1 to {_LONGEST_LABEL} printable characters"
    usable = (
        len(folder) <= 200
        and folder.isprintable()
        and PurePosixPath(folder).name == folder
        and folder not in ("", ".", "..", RESULTS)
    )
    return "" if usable else f"'{folder}' is not the name of a member's folder"
