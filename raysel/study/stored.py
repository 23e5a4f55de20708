"""Study restored from its journal, and the check that it can be resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raysel.config import StudyConfig, config_from_dict
from raysel.config.plain_data import flat
from raysel.core.errors import DirectoryError, StudyError
from raysel.evaluation.lost_trials import follows, was_lost
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.study.definition import Study
from raysel.study.identity import MACHINE, changed_versions
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records
from raysel.tracking.records import NodeRecord, NoiseRecord, Record, SearchRecord, StudyRecord

#: Keys that are not compared: the data's hash, the stored folds and the list of configurations
#: stand for them. `flat` yields `solver.params` itself if it is empty.
_COVERED = {
    "dataset.path",
    "dataset.labels",
    "dataset.mask",
    "dataset.source",
    "dataset.tasks",
    "cv.plan",
    "search.num_samples",
    "solver.params",
}


@dataclass(frozen=True)
class StoredStudy:
    """State of a study as recorded in its journal."""

    #: Directory that the study was read from; None if it is held in memory.
    read_from: StudyDirectory | None
    study: StudyRecord
    trials: list[TrialRecord]
    paths: list[PathRecord]
    refits: dict[str, RefitRecord]
    search: SearchRecord | None
    status: str
    mixed: list[str] = field(default_factory=list)
    noise: NoiseRecord | None = None

    @classmethod
    def read(cls, directory: StudyDirectory) -> StoredStudy:
        """Read the journal of a study, written by this or an earlier version of raysel."""
        directory.check()
        return cls.of(read_records(directory.journal, checked=True), directory)

    @classmethod
    def of(cls, records: Iterable[Record], directory: StudyDirectory | None = None) -> StoredStudy:
        """Restore a study from the records of its journal, oldest first."""
        place = "the study" if directory is None else directory.journal
        study: StudyRecord | None = None
        trials: dict[str, TrialRecord] = {}
        paths: list[PathRecord] = []
        refits: dict[str, RefitRecord] = {}
        mixed: list[str] = []
        search, noise, status = None, None, "killed"
        for record in records:
            status = "killed"
            if isinstance(record, StudyRecord):
                former = study if trials or paths else None
                mixed += _moved(former.versions, record.versions) if former else ()
                study = record
            elif study is None:
                break
            elif isinstance(record, TrialRecord):
                before = trials.pop(record.id, None)  # run again since, as a part of a path may be
                if before is not None and not paths:
                    trials = _run_again(trials, before, study, place)
                trials[record.id] = record
            elif isinstance(record, PathRecord):
                paths.append(record)
            elif isinstance(record, RefitRecord):
                record.clear_scores(study.constant)
                refits[record.fold] = record
            elif isinstance(record, SearchRecord):
                search = record
            elif isinstance(record, NoiseRecord):
                noise = record
            elif isinstance(record, NodeRecord):
                mixed.append(record.sentence)
            else:
                status = record.status
        if study is None:
            raise DirectoryError(
                f"{place} has no record of a study; restore the file from a copy, or use another"
                " directory."
            )
        unmixed = list(dict.fromkeys(mixed))
        return cls(
            read_from=directory,
            study=study,
            trials=list(trials.values()),
            paths=paths,
            refits=refits,
            search=search,
            status=status,
            mixed=unmixed,
            noise=noise,
        )

    @property
    def directory(self) -> StudyDirectory:
        """Directory of the study."""
        if self.read_from is None:
            raise StudyError(
                f"the study {self.study.name} is held in memory and has no files; give path to"
                " write them."
            )
        return self.read_from

    @property
    def n_trials(self) -> int:
        """Number of trials that have ended; on a path, a trial is an inner training set."""
        paths = {(record.fold, record.inner) for record in self.paths}
        return len(paths) or len(self.trials)

    @property
    def has_lost(self) -> bool:
        """Whether trials failed for no fault of their own, so that they run again when resumed."""
        return any(map(was_lost, self.trials)) or any(map(was_lost, self.paths))

    def is_of(self, study: Study) -> bool:
        """Return whether the configuration and the data are those of the given study."""
        before = self.study.config_hash, self.study.data_hash
        return before == (study.config.hash, study.dataset.content_hash)

    def check(self, study: Study, now: StudyRecord) -> None:
        """Check that the study can be resumed: that its results so far are valid for it now.

        A larger grid or more random samples are allowed, and so is a change of code that cannot
        change a number.
        """
        self._refuse(
            [*self._changes(study, now), *changed_versions(self.study.versions, now.versions)]
        )

    def check_finished(self, study: Study, now: StudyRecord) -> None:
        """Check that something can be computed of the finished study, also by other versions."""
        self._refuse([*self._changes(study, now)])

    def _changes(self, study: Study, now: StudyRecord) -> Iterator[str]:
        yield from self._changed_config(study.config)
        yield from self._changed_trials(study)
        if self.study.data_hash != now.data_hash:
            yield f"the data of {study.dataset.name}: their content has changed"
        if study.capabilities.grouped and self.study.feature_groups != now.feature_groups:
            yield "dataset.feature_groups: the groups that the method takes have changed"

    def _refuse(self, changes: Sequence[str]) -> None:
        if changes:
            raise DirectoryError(
                f"{self.directory.path} cannot be resumed, because these changes invalidate its"
                " results:\n"
                + "".join(f"  {change}\n" for change in changes)
                + "Undo the change, or start a new study in another directory."
            )

    def _changed_config(self, config: StudyConfig) -> Iterator[str]:
        before = dict(flat(config_from_dict(self.study.config).identity()))
        now = dict(flat(config.identity()))
        for key in sorted(before.keys() | now.keys()):
            # Of a list `_changed_trials` says what has changed.
            grows = key.startswith("solver.space") and not config.search.learns
            if before.get(key) == now.get(key) or grows or key in _COVERED:
                continue
            yield f"{key}: {before.get(key, 'not set')} -> {now.get(key, 'not set')}"

    def _changed_trials(self, study: Study) -> Iterator[str]:
        """Yield a line if configurations that were tried are no longer part of the search."""
        before = self.study.config["search"].get("num_samples")
        if not study.configurations:
            if before is not None and study.n_configurations < before:
                yield f"search.num_samples: {before} -> {study.n_configurations}"
            return
        there = {configuration.id for configuration in study.configurations}
        tried = {record.id.rpartition("-")[2] for record in self.trials}
        tried = tried.union(*(record.fits for record in self.paths))
        if missing := len(tried - there):
            yield (
                f"solver.space or search.num_samples: {missing} of the configurations that were"
                " tried are not in it"
            )


def _run_again(
    trials: dict[str, TrialRecord], before: TrialRecord, study: StudyRecord, place: Path | str
) -> dict[str, TrialRecord]:
    """Return the trials that count besides one that was run again, which failed before."""
    if before.status != "failed":
        raise DirectoryError(
            f"{place} has two records of the trial {before.id}; restore the file from a copy."
        )
    search = config_from_dict(study.config).search
    return {id_: trial for id_, trial in trials.items() if not follows(trial, before, search)}


def _moved(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence if a study was resumed where processor or BLAS are others."""
    known = [name for name in MACHINE if name in before and name in now]
    changes = [
        f"{name} {before[name]} -> {now[name]}" for name in known if before[name] != now[name]
    ]
    if changes:
        yield f"The study was resumed on another kind of machine: {', '.join(changes)}."


def newest_unfinished(study: Study, below: Path) -> StoredStudy | None:
    """Find the newest unfinished run of a study in a folder of studies."""
    folders = sorted(
        below.glob(f"{study.config.name}-*/journal.jsonl"), key=lambda path: path.stat().st_mtime
    )
    for journal in reversed(folders):
        directory = StudyDirectory(journal.parent)
        try:
            stored = StoredStudy.read(directory)
        except DirectoryError:
            continue
        if stored.is_of(study) and stored.status != "finished" and not directory.is_running():
            return stored
    return None
