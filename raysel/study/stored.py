"""A study restored from its journal, and the check that it may be resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raysel.config import StudyConfig, config_from_dict
from raysel.config.flatten import flat
from raysel.cv.records import PathRecord, RefitRecord, TrialRecord
from raysel.errors import DirectoryError
from raysel.study.definition import Study
from raysel.study.identity import changed_versions
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records
from raysel.tracking.records import SearchRecord, StudyRecord


@dataclass(frozen=True)
class StoredStudy:
    """A study as its journal tells it.

    Parameters
    ----------
    directory : StudyDirectory
        Holds the journal.
    study : StudyRecord
        The study when it was last started.
    trials : list of TrialRecord
        Trials that ended, oldest first.
    paths : list of PathRecord
        Paths that ended, oldest first; empty where the study has none.
    refits : dict of str to RefitRecord
        The last refit of each outer fold.
    search : SearchRecord or None
        The end of the last search; None where no search has ended.
    status : str
        How the last run ended: ``finished``, ``failed``, ``interrupted``, or ``killed`` where no end was recorded.
    """

    directory: StudyDirectory
    study: StudyRecord
    trials: list[TrialRecord]
    paths: list[PathRecord]
    refits: dict[str, RefitRecord]
    search: SearchRecord | None
    status: str

    @classmethod
    def read(cls, directory: StudyDirectory) -> StoredStudy:
        """Read a study's journal, of this or an earlier version of raysel.

        Parameters
        ----------
        directory : StudyDirectory
            The study's.

        Returns
        -------
        StoredStudy
            All that the journal holds.

        Raises
        ------
        DirectoryError
            If there is no journal, it is damaged, or it holds no study.
        """
        study: StudyRecord | None = None
        trials: list[TrialRecord] = []
        paths: list[PathRecord] = []
        refits: dict[str, RefitRecord] = {}
        search, status = None, "killed"
        for record in read_records(directory.journal):
            status = "killed"
            if isinstance(record, StudyRecord):
                study = record
            elif isinstance(record, TrialRecord):
                trials.append(record)
            elif isinstance(record, PathRecord):
                paths.append(record)
            elif isinstance(record, RefitRecord):
                refits[record.fold] = record
            elif isinstance(record, SearchRecord):
                search = record
            else:
                status = record.status
        if study is None:
            raise DirectoryError(f"{directory.journal} is not the journal of a study: it has no record of one.")
        return cls(directory, study, trials, paths, refits, search, status)

    @property
    def n_trials(self) -> int:
        """Number of trials that have ended; on a path, a trial is an inner training set."""
        paths = {(record.fold, record.inner) for record in self.paths}
        return len(paths) or len(self.trials)

    def is_of(self, study: Study) -> bool:
        """Whether this is the same study: configuration and data."""
        before = self.study.config_hash, self.study.data_hash
        return before == (study.config.hash, study.dataset.content_hash)

    def check(self, study: Study, now: StudyRecord) -> None:
        """Raise an error where the results so far would not be those of the study now.

        More samples or a larger grid are allowed, and so is a change of code that cannot change a number.

        Parameters
        ----------
        study : Study
            The study as it is to be resumed.
        now : StudyRecord
            Its record as it would be written now.

        Raises
        ------
        DirectoryError
            If the data, the configuration or the code that computes numbers has changed; names all changes.
        """
        changes = [*self._changed_config(study.config), *self._changed_trials(study)]
        if self.study.data_hash != now.data_hash:
            changes.append(f"the data of {study.dataset.name}: their content is not what it was")
        changes += changed_versions(self.study.versions, now.versions)
        if changes:
            raise DirectoryError(
                f"{self.directory.path} cannot be resumed, for what has changed would make it another study:\n"
                + "".join(f"  {change}\n" for change in changes)
                + "Undo the change, or start a new study in another directory."
            )

    def _changed_config(self, config: StudyConfig) -> Iterator[str]:
        before = dict(flat(config_from_dict(self.study.config).identity()))
        now = dict(flat(config.identity()))
        for key in sorted(before.keys() | now.keys()):
            grows = key.startswith("solver.space") and config.search.method != "tpe"  # see _changed_trials
            # `solver.params` stands for itself where it is empty.
            if before.get(key) == now.get(key) or grows or key in ("search.num_samples", "solver.params"):
                continue
            yield f"{key}: {before.get(key, 'not set')} -> {now.get(key, 'not set')}"

    def _changed_trials(self, study: Study) -> Iterator[str]:
        """A search may grow, but what was tried must be part of it."""
        before = self.study.config["search"].get("num_samples")
        if not study.configurations:
            if before is not None and study.n_configurations < before:
                yield f"search.num_samples: {before} -> {study.n_configurations}"
            return
        there = {configuration.id for configuration in study.configurations}
        tried = {record.id.rpartition("-")[2] for record in self.trials}
        tried |= {id_ for record in self.paths for id_ in record.fits}
        if missing := len(tried - there):
            yield f"solver.space or search.num_samples: {missing} of the configurations that were tried are not in it"


def newest_unfinished(study: Study, below: Path) -> StoredStudy | None:
    """The newest interrupted run of this very study in a folder of studies.

    Parameters
    ----------
    study : Study
    below : Path

    Returns
    -------
    StoredStudy or None
    """
    folders = sorted(below.glob(f"{study.config.name}-*/journal.jsonl"), key=lambda path: path.stat().st_mtime)
    for journal in reversed(folders):
        directory = StudyDirectory(journal.parent)
        try:
            kept = StoredStudy.read(directory)
        except DirectoryError:
            continue
        if kept.is_of(study) and kept.status != "finished" and not directory.is_running():
            return kept
    return None
