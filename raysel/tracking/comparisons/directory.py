"""Directory of a comparison: the shared folds, the list of members, and a study's directory for each member."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from raysel.core.errors import DataError, DirectoryError
from raysel.core.files import check_entries, read_again, read_json
from raysel.tracking.comparisons.record import RESULTS, ComparisonRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.locks import FileLock, LockedFile


@dataclass(frozen=True)
class ComparisonDirectory:
    """Paths of the files of a comparison."""

    path: Path

    @property
    def config(self) -> Path:
        """Validated configuration of the comparison, YAML."""
        return self._as_study.config

    @property
    def plan(self) -> Path:
        """Sample indices of all folds, which the members share, JSON."""
        return self._as_study.plan

    @property
    def data(self) -> Path:
        """Data set, Arrow IPC file; only if the samples were given in memory."""
        return self._as_study.data

    @property
    def members(self) -> Path:
        """List of the members, JSON, replaced atomically."""
        return self.path / "members.json"

    @property
    def results(self) -> Path:
        """Folder of the tables and figures."""
        return self.path / RESULTS

    @property
    def report(self) -> Path:
        """Report, one HTML file."""
        return self._as_study.report

    @property
    def tracking(self) -> Path:
        """State of the upload to MLflow, JSON, replaced atomically."""
        return self._as_study.tracking

    @property
    def tracking_lock(self) -> Path:
        """Lock file of the process that uploads to MLflow."""
        return self._as_study.tracking_lock

    @property
    def incomplete(self) -> Path:
        """Marker that exists while the first files are written; if it is left, they may be overwritten."""
        return self._as_study.incomplete

    def member(self, folder: str) -> StudyDirectory:
        """Return the directory of a member's study."""
        return StudyDirectory(self.path / folder)

    def create(self, folders: Iterable[str] = (), n_bytes: int = 0) -> FileLock:
        """Create the directory of a new comparison and lock it."""
        if self.members.exists() and not self.incomplete.exists() and not self._as_study.is_running():
            raise DirectoryError(
                f"{self.path} already holds a comparison; nothing was overwritten. Resume it, or choose another "
                "output directory."
            )
        lock = StudyDirectory.create(self.path, _NEEDED_BYTES + n_bytes, data=n_bytes > 0)[1]
        for member in map(self.member, folders):  # its numbers would be taken for those of the new comparison
            if member.journal.exists():
                lock.close()
                raise DirectoryError(
                    f"{member.path} already holds a study; nothing was overwritten. Choose another output directory."
                )
        return lock

    def open(self) -> FileLock:
        """Lock the directory of a comparison that is to be resumed."""
        return self._as_study.open(_NEEDED_BYTES)

    def read(self) -> ComparisonRecord:
        """Read the list of members."""
        self._as_study.check()
        try:
            record = ComparisonRecord.from_json(read_again(lambda: read_json(self.members)))
        except OSError as error:
            raise DirectoryError(
                f"{self.path} holds no comparison: {self.members.name} cannot be read ({error.strerror}). Give the "
                "directory of a study with the key `compare`."
            ) from error
        except (ValueError, DataError) as error:
            raise DirectoryError(f"{self.members} is damaged: {error}. Restore it from a copy.") from error
        for entry in record.members:
            if (self.path / entry.folder).is_symlink():
                check_entries(self.path, [entry.folder])
        return record

    def write(self, record: ComparisonRecord, lock: FileLock) -> None:
        """Write the list of members."""
        text = json.dumps(record.to_json(), indent=1, ensure_ascii=False)
        try:
            LockedFile(self.members, lock).write(text, durable=True)
        except OSError as error:
            raise DirectoryError(f"{self.members} cannot be written: {error.strerror}.") from error

    @property
    def _as_study(self) -> StudyDirectory:
        """The files that a comparison has as a study has them."""
        return StudyDirectory(self.path)


#: Bytes that the comparison's own files may take.
_NEEDED_BYTES = 2**22
