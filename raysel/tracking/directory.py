"""Directory of a study or of a comparison: locked by one run, never overwritten."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from raysel.config.plain_data import OWN_DATA
from raysel.core.arrays import FloatArray
from raysel.core.credentials import keep_credentials
from raysel.core.errors import DataError, DirectoryError, StudyError
from raysel.core.files import check_entries, make_instance, read_again, read_json, result_path
from raysel.data.formats.array_files import open_npy
from raysel.evaluation.records import FINAL
from raysel.tracking.locks import FileLock, LockedFile, LockHeldError, is_locked

#: Folder of the tables and figures of a comparison, which no member can have.
RESULTS = "comparison"
#: What a directory has besides: stability selection and permutation test.
_LATER = ("stability", "permutation")
#: Names of the files of an exported result.
EXPORTED = ("ranking.csv", "ranking.parquet", "manifest.json")
#: Version of the format of a comparison's list of members.
SCHEMA = 1
#: Most letters of a label; the configuration allows fewer.
_LONGEST_LABEL = 100
#: Seconds since the epoch at the end of the year 9999.
_LAST_TIME = 253402300799.0


class DirectoryEntry:
    """File or folder of a directory, as an attribute of an object with a ``path``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, directory: Any, owner: type | None = None) -> Path:
        return Path(directory.path, self.name)


@dataclass(frozen=True)
class StudyDirectory:
    """Paths of the files of a study."""

    path: Path

    #: Validated configuration, YAML.
    config = DirectoryEntry("config.yaml")
    #: Sample indices of all folds, JSON.
    plan = DirectoryEntry("plan.json")
    #: Data set, Arrow IPC file; only if the samples were given in memory.
    data = DirectoryEntry(OWN_DATA)
    #: Journal, JSON lines: one record for the study, each trial, each refit and each end.
    journal = DirectoryEntry("journal.jsonl")
    #: List of the members of a comparison, which have directories of their own, JSON, replaced
    #: atomically.
    members = DirectoryEntry("members.json")
    #: Folder of the tables and figures of a comparison.
    results = DirectoryEntry(RESULTS)
    #: Counts of the trials, JSON, replaced atomically.
    progress = DirectoryEntry("progress.json")
    #: State of the upload to MLflow, JSON, replaced atomically.
    tracking = DirectoryEntry("tracking.json")
    #: Objective and scores of all inner fits by iteration, Parquet.
    traces = DirectoryEntry("traces.parquet")
    #: Folder of the outer folds' rankings and models.
    folds = DirectoryEntry("folds")
    #: Fitted pipeline of the final model, in skops format.
    model = DirectoryEntry("model.skops")
    #: Hash of that file by the key of the account that wrote it.
    model_hash = DirectoryEntry("model.skops.hmac")
    #: Mean of each feature over the samples, in NumPy's format; only if samples are images.
    mean_sample = DirectoryEntry("mean_sample.npy")
    #: Image that pictures show below maps, in NumPy's format; only if the configuration names one.
    background = DirectoryEntry("background.npy")
    #: A few samples as the model takes them, NumPy array of shape (n, n_features).
    model_example = DirectoryEntry("model_example.npy")
    #: Folder of the exported result.
    ranking = DirectoryEntry("ranking")
    #: Label, class counts, groups and ranges for the report, JSON.
    preview = DirectoryEntry("preview.json")
    #: Mean images of the classes, single samples and ranges of columns for the report, in NumPy's
    #: format.
    preview_parts = DirectoryEntry("preview.npz")
    #: Report, one HTML file.
    report = DirectoryEntry("report.html")
    #: Marker that exists while the first files are written; if it is left, they may be overwritten.
    incomplete = DirectoryEntry(".beginning")
    #: Lock file of the running study.
    lock = DirectoryEntry(".lease")
    #: Lock file of the process that uploads to MLflow.
    tracking_lock = DirectoryEntry(".tracking.lease")

    def fold_table(self, fold: str) -> Path:
        """Return the path of the ranking of an outer fold's winner, CSV."""
        return self.folds / f"{fold}.csv"

    def fold_model(self, fold: str) -> Path:
        """Return the path of the fitted pipeline of a fold's winner; `model` for the final fold."""
        if fold == FINAL:
            return self.model
        return self.folds / f"{fold}.skops"

    def member(self, folder: str) -> StudyDirectory:
        """Return the directory of the study of a member."""
        return StudyDirectory(self.path / folder)

    @classmethod
    def create(
        cls, path: Path, needed_bytes: int, *, data: bool = False
    ) -> tuple[StudyDirectory, FileLock]:
        """Create the directory of a new study and lock it."""
        directory = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        lock = directory.open(needed_bytes)
        files = [directory.config, directory.plan, directory.journal, directory.members]
        files += [directory.model, directory.ranking]
        if data:
            files.append(directory.data)
        if any(file.exists() for file in files) and not directory.incomplete.exists():
            lock.close()
            what = "a study, or files of the same names"
            if directory.members.exists():
                what = "a comparison"
            raise DirectoryError(
                f"{path} already holds {what}; nothing was overwritten. Resume that study, or"
                " choose another output directory."
            )
        return directory, lock

    def open(self, needed_bytes: int) -> FileLock:
        """Lock the directory for a study that is to run."""
        self.check()
        try:
            stat = os.statvfs(self.path)
            if stat.f_bavail * stat.f_frsize < needed_bytes:
                raise OSError(errno.ENOSPC, f"{needed_bytes / 2**20:.0f} MiB are needed")
            return FileLock(self.lock)
        except LockHeldError as error:
            raise DirectoryError(
                f"a study is running in {self.path}: {error}. Wait until it ends, or choose another"
                " output directory."
            ) from error
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def check(self) -> None:
        """Check that the study's files and folders are no links, pipes or devices."""
        entries = [
            entry.name
            for entry in vars(StudyDirectory).values()
            if isinstance(entry, DirectoryEntry)
        ]
        selected = [path.name for path in self.path.glob("selection*")]
        check_entries(self.path, [*entries, *_LATER, *selected])

    def is_running(self) -> bool:
        """Return whether a study is running in the directory, or its lock file cannot be opened."""
        try:
            return is_locked(self.lock)
        except OSError:
            return True

    @staticmethod
    def default(name: str) -> Path:
        """Return the default directory of a new study, below ``raysel-studies``."""
        return result_path("raysel-studies") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _unwritable(path: Path, error: OSError) -> DirectoryError:
    reason = os.strerror(error.errno or 0)
    if error.errno == errno.ENOSPC:
        reason += f" ({error.strerror})"  # says how much is needed
    return DirectoryError(
        f"nothing can be written to {path}: {reason}. Choose another output directory."
    )


def newest_study(below: Path) -> Path:
    """Find the study directory with the newest journal in a folder and its subfolders."""
    patterns = ("journal.jsonl", "*/journal.jsonl", "*/*/journal.jsonl")
    journals = list(chain.from_iterable(map(below.glob, patterns)))
    if not journals:
        raise StudyError(
            f"there is no study at or below {below.resolve()}; give the directory of one, or run a"
            " study first."
        )
    return max(journals, key=lambda path: (path.stat().st_mtime, str(path))).parent


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
                f"{directory.path} holds no comparison: {directory.members.name} cannot be read"
                f" ({error.strerror}). Give the directory of a study with the key `compare`."
            ) from error
        except (ValueError, DataError) as error:
            raise DirectoryError(
                f"{directory.members} is damaged: {error}. Restore it from a copy."
            ) from error
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
            raise DirectoryError(
                f"{directory.members} cannot be written: {error.strerror}."
            ) from error

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, raw: Any) -> ComparisonRecord:
        """Restore the record from the data of `to_json`, without unknown keys."""
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise DataError(f"its schema is not {SCHEMA}")
        try:
            record = make_instance(cls, raw)
        except ValueError as error:
            raise DataError(str(error)) from error
        labels = [entry.label for entry in record.members]
        faults = {
            "its id or its time is damaged": (
                not re.fullmatch(r"[\w-]{1,100}", record.id)
                or not 0 <= record.started <= _LAST_TIME
            ),
            "its name is not printable, or is too long": (
                not _is_short(record.name) or len(record.experiment) > 500
            ),
            f"a label is not 1 to {_LONGEST_LABEL} printable characters": not all(
                map(_is_short, labels)
            ),
            "it has no members": not labels,
            "two members have the same label": len(set(labels)) < len(labels),
            "its reference is not one of the members": record.reference not in labels,
        }
        faults |= {
            f"'{entry.folder}' is not the name of a member's folder": not _is_folder(entry.folder)
            for entry in record.members
        }
        for fault, is_so in faults.items():
            if is_so:
                raise DataError(fault)
        return replace(record, uri=keep_credentials(record.uri))


def _is_short(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_LABEL and name.isprintable()


def _is_folder(name: str) -> bool:
    is_one = PurePosixPath(name).name == name and name not in ("", "..", RESULTS)
    return is_one and len(name) <= 200 and name.isprintable()


def started_members(directory: StudyDirectory) -> list[StudyDirectory]:
    """Return the directories of the members of a comparison that have started; a study has none."""
    if not directory.members.exists():
        return []
    members = [directory.member(entry.folder) for entry in ComparisonRecord.read(directory).members]
    return [member for member in members if member.journal.exists()]


def read_floats(path: Path, shape: tuple[int | None, ...]) -> FloatArray:
    """Read an array of floats in NumPy's format."""
    with open_npy(path) as file:
        values: FloatArray = file.get("X")
    fits = values.ndim == len(shape) and all(
        side <= 1000 if wanted is None else side == wanted
        for side, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits or values.dtype != np.float64:
        raise ValueError(
            f"{path.name} holds an array of shape {values.shape} and type {values.dtype}"
        )
    return values
