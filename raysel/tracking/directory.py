"""Directory of a study: created before anything is computed, locked by one running study, never overwritten."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysel.config.loading import OWN_DATA
from raysel.core.errors import DirectoryError, StudyError
from raysel.core.files import check_entries, result_path
from raysel.evaluation.plan import FINAL
from raysel.tracking.locks import FileLock, LockHeldError, is_locked

#: Folder of the tables and figures of a comparison, which no member can have.
RESULTS = "comparison"
#: What a directory has besides: stability selection and permutation test.
_LATER = ("stability", "permutation")
#: Names of the files of an exported result.
EXPORTED = ("ranking.csv", "ranking.parquet", "ranking.png", "model.skops", "manifest.json")


class Entry:
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
    config = Entry("config.yaml")
    #: Sample indices of all folds, JSON.
    plan = Entry("plan.json")
    #: Data set, Arrow IPC file; only if the samples were given in memory.
    data = Entry(OWN_DATA)
    #: Journal, JSON lines: one record for the study, each trial, each refit and each end.
    journal = Entry("journal.jsonl")
    #: List of the members of a comparison, which have directories of their own, JSON, replaced atomically.
    members = Entry("members.json")
    #: Folder of the tables and figures of a comparison.
    results = Entry(RESULTS)
    #: Counts of the trials, JSON, replaced atomically.
    progress = Entry("progress.json")
    #: State of the upload to MLflow, JSON, replaced atomically.
    tracking = Entry("tracking.json")
    #: Objective and scores of all inner fits by iteration, Parquet.
    traces = Entry("traces.parquet")
    #: Folder of the outer folds' rankings and models.
    folds = Entry("folds")
    #: Fitted pipeline of the final model, in skops format.
    model = Entry("model.skops")
    #: Mean of each feature over the samples, in NumPy's format; only if samples are images.
    mean_sample = Entry("mean_sample.npy")
    #: Image that pictures show below maps, in NumPy's format; only if the configuration names one.
    background = Entry("background.npy")
    #: A few samples as the model takes them, NumPy array of shape (n, n_features).
    model_example = Entry("model_example.npy")
    #: Folder of the exported result.
    ranking = Entry("ranking")
    #: Label, class counts, groups and ranges for the report, JSON.
    preview = Entry("preview.json")
    #: Mean images of the classes, single samples and ranges of columns for the report, in NumPy's format.
    preview_parts = Entry("preview.npz")
    #: Report, one HTML file.
    report = Entry("report.html")
    #: Marker that exists while the first files are written; if it is left, they may be overwritten.
    incomplete = Entry(".beginning")
    #: Lock file of the running study.
    lock = Entry(".lease")
    #: Lock file of the process that uploads to MLflow.
    tracking_lock = Entry(".tracking.lease")

    def fold_table(self, fold: str) -> Path:
        """Return the path of the ranking of an outer fold's winner, CSV."""
        return self.folds / f"{fold}.csv"

    def fold_model(self, fold: str) -> Path:
        """Return the path of the fitted pipeline of a fold's winner, in skops format; `model` for the final fold."""
        return self.model if fold == FINAL else self.folds / f"{fold}.skops"

    def member(self, folder: str) -> StudyDirectory:
        """Return the directory of the study of a member."""
        return StudyDirectory(self.path / folder)

    @classmethod
    def create(cls, path: Path, needed_bytes: int, *, data: bool = False) -> tuple[StudyDirectory, FileLock]:
        """Create the directory of a new study and lock it."""
        directory = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        lock = directory.open(needed_bytes)
        files = [directory.config, directory.plan, directory.journal, directory.members]
        files += [directory.model, directory.ranking]
        files += [directory.data] if data else []
        if any(file.exists() for file in files) and not directory.incomplete.exists():
            lock.close()
            what = "a comparison" if directory.members.exists() else "a study, or files of the same names"
            raise DirectoryError(
                f"{path} already holds {what}; nothing was overwritten. Resume that study, or choose another output "
                "directory."
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
                f"a study is running in {self.path}: {error}. Wait until it ends, or choose another output directory."
            ) from error
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def check(self) -> None:
        """Check that the files and folders of the study, which may be untrusted, are no links, pipes or devices."""
        entries = [entry.name for entry in vars(StudyDirectory).values() if isinstance(entry, Entry)]
        selected = [path.name for path in self.path.glob("selection*")] if self.path.is_dir() else []
        check_entries(self.path, [*entries, *_LATER, *selected])

    def is_running(self) -> bool:
        """Return whether a study is running in the directory, or its lock file cannot be opened."""
        try:
            return is_locked(self.lock)
        except OSError:
            return True

    @staticmethod
    def default(name: str) -> Path:
        """Return the default directory of a new study, `result_path` of ``raysel-studies/<name>-<time>``."""
        return result_path("raysel-studies") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _unwritable(path: Path, error: OSError) -> DirectoryError:
    room = f" ({error.strerror})" if error.errno == errno.ENOSPC else ""
    return DirectoryError(
        f"nothing can be written to {path}: {os.strerror(error.errno or 0)}{room}. Choose another output directory."
    )


def newest_study(below: Path) -> Path:
    """Find the study directory with the newest journal in a folder and its subfolders."""
    journals = [
        path for pattern in ("journal.jsonl", "*/journal.jsonl", "*/*/journal.jsonl") for path in below.glob(pattern)
    ]
    if not journals:
        raise StudyError(
            f"there is no study at or below {below.resolve()}; give the directory of one, or run a study first."
        )
    return max(journals, key=lambda path: (path.stat().st_mtime, str(path))).parent
