"""Directory of a study: created before anything is computed, locked by one running study, never overwritten."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from raysel.config.overrides import OWN_DATA
from raysel.core.errors import DirectoryError, StudyError
from raysel.core.files import check_entries, result_path
from raysel.evaluation.plan import FINAL
from raysel.tracking.locks import FileLock, LockHeldError, is_locked

#: What a directory has besides: stability selection, permutation test, tables and list of members of a comparison.
_LATER = ("stability", "permutation", "comparison", "members.json")
#: Names of the files of an exported result.
EXPORTED = ("ranking.csv", "ranking.parquet", "ranking.png", "model.skops", "manifest.json")


@dataclass(frozen=True)
class StudyDirectory:
    """Paths of the files of a study."""

    path: Path

    @property
    def config(self) -> Path:
        """Validated configuration, YAML."""
        return self.path / "config.yaml"

    @property
    def plan(self) -> Path:
        """Sample indices of all folds, JSON."""
        return self.path / "plan.json"

    @property
    def data(self) -> Path:
        """Data set, Arrow IPC file; only if the samples were given in memory."""
        return self.path / OWN_DATA

    @property
    def journal(self) -> Path:
        """Journal, JSON lines: one record for the study, each trial, each refit and each end."""
        return self.path / "journal.jsonl"

    @property
    def progress(self) -> Path:
        """Counts of the trials, JSON, replaced atomically."""
        return self.path / "progress.json"

    @property
    def tracking(self) -> Path:
        """State of the upload to MLflow, JSON, replaced atomically."""
        return self.path / "tracking.json"

    @property
    def traces(self) -> Path:
        """Objective and scores of all inner fits by iteration, Parquet."""
        return self.path / "traces.parquet"

    @property
    def folds(self) -> Path:
        """Folder of the outer folds' rankings and models."""
        return self.path / "folds"

    def fold_table(self, fold: str) -> Path:
        """Return the path of the ranking of an outer fold's winner, CSV."""
        return self.folds / f"{fold}.csv"

    def fold_model(self, fold: str) -> Path:
        """Return the path of the fitted pipeline of a fold's winner, in skops format; `model` for the final fold."""
        return self.model if fold == FINAL else self.folds / f"{fold}.skops"

    @property
    def model(self) -> Path:
        """Fitted pipeline of the final model, in skops format."""
        return self.path / "model.skops"

    @property
    def mean_sample(self) -> Path:
        """Mean of each feature over the samples, in NumPy's format; only if samples are images."""
        return self.path / "mean_sample.npy"

    @property
    def background(self) -> Path:
        """Image that pictures show below maps, in NumPy's format; only if the configuration names one."""
        return self.path / "background.npy"

    @property
    def model_example(self) -> Path:
        """A few samples as the model takes them, NumPy array of shape (n, n_features)."""
        return self.path / "model_example.npy"

    @property
    def ranking(self) -> Path:
        """Folder of the exported result."""
        return self.path / "ranking"

    @property
    def preview(self) -> Path:
        """Label, class counts, groups and ranges for the report, JSON."""
        return self.path / "preview.json"

    @property
    def preview_parts(self) -> Path:
        """Mean images of the classes, single samples and ranges of columns for the report, in NumPy's format."""
        return self.path / "preview.npz"

    @property
    def report(self) -> Path:
        """Report, one HTML file."""
        return self.path / "report.html"

    @property
    def incomplete(self) -> Path:
        """Marker that exists while the first files are written; if it is left, they may be overwritten."""
        return self.path / ".beginning"

    @property
    def lock(self) -> Path:
        """Lock file of the running study."""
        return self.path / ".lease"

    @property
    def tracking_lock(self) -> Path:
        """Lock file of the process that uploads to MLflow."""
        return self.path / ".tracking.lease"

    @classmethod
    def create(cls, path: Path, needed_bytes: int, *, data: bool = False) -> tuple[StudyDirectory, FileLock]:
        """Create the directory of a new study and lock it."""
        directory = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        lock = directory.open(needed_bytes)
        files = [directory.config, directory.plan, directory.journal, directory.model, directory.ranking]
        files += [directory.data] if data else []
        if any(file.exists() for file in files) and not directory.incomplete.exists():
            lock.close()
            raise DirectoryError(
                f"{path} already holds a study, or files of the same names; nothing was overwritten. "
                "Resume that study, or choose another output directory."
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
        files = [self.config, self.plan, self.data, self.journal, self.progress, self.tracking, self.traces, self.model]
        files += [self.folds, self.mean_sample, self.background, self.model_example, self.ranking, self.preview]
        files += [self.preview_parts, self.report, self.incomplete, self.lock, self.tracking_lock]
        selected = [path.name for path in self.path.glob("selection*")] if self.path.is_dir() else []
        check_entries(self.path, [*(file.name for file in files), *_LATER, *selected])

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
