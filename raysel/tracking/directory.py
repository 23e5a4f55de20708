"""A study's directory: made before Ray starts, held by one running study, never written over."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from raysel.errors import DirectoryError, StudyError
from raysel.tracking.locks import take_lock

#: The files of an exported ranking.
EXPORTED = ("ranking.csv", "ranking.parquet", "ranking.png", "model.skops", "manifest.json")


@dataclass(frozen=True)
class StudyDirectory:
    """Where the files of a study lie.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> StudyDirectory(Path("study")).journal.name
    'journal.jsonl'
    """

    path: Path

    @property
    def config(self) -> Path:
        """The validated configuration, YAML."""
        return self.path / "config.yaml"

    @property
    def plan(self) -> Path:
        """Every fold's sample indices, JSON."""
        return self.path / "plan.json"

    @property
    def journal(self) -> Path:
        """One record a finished trial or refit, JSON lines."""
        return self.path / "journal.jsonl"

    @property
    def progress(self) -> Path:
        """Counts of trials, JSON, renewed atomically."""
        return self.path / "progress.json"

    @property
    def tracking(self) -> Path:
        """How far MLflow has been told, JSON, renewed atomically."""
        return self.path / "tracking.json"

    @property
    def traces(self) -> Path:
        """Every inner fit's objective and scores by iteration, Parquet."""
        return self.path / "traces.parquet"

    @property
    def folds(self) -> Path:
        """The folder of each fold's own ranking, CSV."""
        return self.path / "folds"

    def fold_table(self, fold: str) -> Path:
        """A fold's own ranking, CSV."""
        return self.folds / f"{fold}.csv"

    @property
    def model(self) -> Path:
        """The model, skops."""
        return self.path / "model.skops"

    @property
    def ranking(self) -> Path:
        """The exported ranking's folder."""
        return self.path / "ranking"

    @property
    def beginning(self) -> Path:
        """There while the first files are written: a study killed meanwhile has left nothing to keep."""
        return self.path / ".beginning"

    @property
    def lock(self) -> Path:
        """Held while the study runs."""
        return self.path / ".lock"

    @property
    def tracking_lock(self) -> Path:
        """Held while MLflow is told."""
        return self.path / ".tracking.lock"

    @classmethod
    def create(cls, path: Path, needed_bytes: int) -> tuple[StudyDirectory, IO[str]]:
        """Make a new study's directory and hold it.

        Parameters
        ----------
        path : Path
        needed_bytes : int
            Room that the study's files may take.

        Returns
        -------
        directory : StudyDirectory
        hold : file
            Keep it open while the study runs.

        Raises
        ------
        DirectoryError
            If a study is running there or has left its files, or nothing can be written.
        """
        directory = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        hold = directory.open(needed_bytes)
        files = (directory.config, directory.plan, directory.journal, directory.model, directory.ranking)
        if any(file.exists() for file in files) and not directory.beginning.exists():
            hold.close()
            raise DirectoryError(
                f"{path} already holds a study, or files named like one's; nothing was written over. "
                f"Go on with it by --resume {path}, or choose another directory with --output."
            )
        return directory, hold

    def open(self, needed_bytes: int) -> IO[str]:
        """Hold the directory for as long as the study runs.

        Parameters
        ----------
        needed_bytes : int
            Room that the study's files may take.

        Returns
        -------
        file
            Keep it open while the study runs.

        Raises
        ------
        DirectoryError
            If a study is running there, or nothing can be written.
        """
        try:
            stat = os.statvfs(self.path)
            if stat.f_bavail * stat.f_frsize < needed_bytes:
                raise OSError(errno.ENOSPC, f"{needed_bytes / 2**20:.0f} MiB are needed")
            hold = self.lock.open("a+")
        except OSError as error:
            raise _unwritable(self.path, error) from error
        if not take_lock(hold, wait=False):
            hold.close()
            raise DirectoryError(
                f"a study is running in {self.path}; let it end, or choose another directory with --output."
            )
        return hold

    def is_running(self) -> bool:
        """Whether a study holds the directory now."""
        try:
            with self.lock.open("a+") as hold:
                return not take_lock(hold, wait=False)
        except OSError:
            return True

    @staticmethod
    def default(name: str) -> Path:
        """``raysel-studies/<name>-<time>`` below the working directory."""
        return Path("raysel-studies") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _unwritable(path: Path, error: OSError) -> DirectoryError:
    room = f" ({error.strerror})" if error.errno == errno.ENOSPC else ""
    return DirectoryError(
        f"nothing can be written to {path}: {os.strerror(error.errno or 0)}{room}. "
        "Choose another directory with --output."
    )


def newest_study(below: Path) -> Path:
    """The study directory last written to at or below a folder.

    Parameters
    ----------
    below : Path

    Returns
    -------
    Path

    Raises
    ------
    StudyError
        If there is none.
    """
    journals = [
        path for pattern in ("journal.jsonl", "*/journal.jsonl", "*/*/journal.jsonl") for path in below.glob(pattern)
    ]
    if not journals:
        raise StudyError(
            f"there is no study at or below {below.resolve()}; name one, or run `python -m raysel.tune` first."
        )
    return max(journals, key=lambda path: (path.stat().st_mtime, str(path))).parent
