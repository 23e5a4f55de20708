"""A comparison of several studies: its members run one after the other, then tables and figures."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from raysel.base.registry import solver_capabilities
from raysel.config import ComparisonConfig, load_comparison, member_folders
from raysel.config.loading import Overrides, Source
from raysel.core.credentials import without_credentials
from raysel.core.errors import (
    ConfigError,
    DirectoryError,
    HeadLostError,
    RayselError,
    RayStartError,
    StorageError,
    StudyError,
)
from raysel.core.machine import now
from raysel.data.dataset import Dataset
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.execution.signals import sigterm_as_interrupt
from raysel.results.comparison.export import export_comparison, write_comparison_report
from raysel.results.comparison.result import ComparisonResult
from raysel.results.progress import counted
from raysel.run import course
from raysel.run.course import StartUpload
from raysel.run.definition import Planned, naming_member
from raysel.run.launch import cluster_address, make_executor, with_known_executor
from raysel.run.options import DEFAULTS, RunOptions
from raysel.run.recording import mlflow_uri, resumed_record, started_uri, usable_store
from raysel.study.definition import Study
from raysel.study.inputs import with_data_at
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory
from raysel.tracking.journal_upload import tracking_status
from raysel.tracking.locks import FileLock
from raysel.tracking.places import (
    check_experiment,
    names_in_mlflow,
    note_names,
    note_place,
)
from raysel.tracking.upload_process import MLflowUploader

#: Bytes that the files of a comparison itself may take.
_NEEDED_BYTES = 2**22


@dataclass(frozen=True)
class Comparison(Planned[ComparisonConfig, ComparisonResult]):
    """Several studies on the same folds, each in a folder of its own."""

    what = "comparison"

    @classmethod
    def of_prepared(cls, planned: Study | Planned[Any, Any]) -> Comparison:
        """Return a comparison that was prepared."""
        if not isinstance(planned, Comparison):
            raise ConfigError("a prepared study is run by run_study.")
        return planned

    @classmethod
    def of_config(
        cls,
        config: ComparisonConfig,
        resumed: StudyDirectory | None = None,
        own: Dataset | None = None,
    ) -> Self:
        """Load the data, draw the folds once for all members, and check every member."""
        known, plan = {}, None
        if resumed:
            known, plan = _known_folders(config, resumed), resumed.plan
        folders = member_folders(list(config.compare), known)
        studies: dict[str, Study] = {}
        for label, folder in folders.items():
            member = config.study(label, folder)
            # The folds and, if there is a study that reads them, the data of an earlier member are
            # shared.
            alike = (study for study in studies.values() if study.reads_alike(member))
            like = next(alike, next(iter(studies.values()), None))
            with naming_member(label):
                studies[label] = Study.prepare(member, plan, like, own)
        raw = config.to_dict()
        first = next(iter(studies.values()))
        raw["dataset"] = {"scaling": first.dataset.layout.default_scaling, **raw["dataset"]}
        return cls(load_comparison(raw), studies, folders)

    @staticmethod
    def load(
        source: Source, overrides: Overrides = (), *, own_data: bool = False
    ) -> ComparisonConfig:
        """Read, override and validate the configuration of a comparison and of its members."""
        return load_comparison(source, overrides, own_data=own_data)

    @staticmethod
    def check(directory: StudyDirectory) -> None:
        """Check that a directory has a list of members."""
        ComparisonRecord.read(directory)

    def naming(self, label: str) -> AbstractContextManager[None]:
        """Name a member in errors."""
        return naming_member(label)

    def with_data_at(self, path: Path) -> Comparison:
        """Return the comparison whose own data, if it has any, are read from a file."""
        if self.first.own is None:
            return self
        studies = {label: study.with_data_at(path) for label, study in self.studies.items()}
        config = with_data_at(path.absolute(), self.config, written=False)
        return Comparison(config, studies, self.folders)

    def record(self, *, id_: str, uri: str, started: float) -> ComparisonRecord:
        """Return the list of the members, none of which has failed."""
        members = tuple(
            _entry(label, self.folders[label], study) for label, study in self.studies.items()
        )
        config = self.config
        reference = config.reference or members[0].label
        return ComparisonRecord(
            id=id_,
            name=config.name,
            reference=reference,
            experiment=config.experiment,
            uri=uri,
            started=started,
            members=members,
        )

    def run(self, path: Path, options: RunOptions = DEFAULTS) -> ComparisonResult:
        """Run the members in a new directory."""
        self.check_resources(options)
        own, uri = self.first.own, mlflow_uri(self.first.config)
        directory = StudyDirectory(path)
        placed = self.with_data_at(directory.data)
        course.check_upload(placed.first.config, uri)
        record = placed.record(id_=uuid.uuid4().hex, uri=uri, started=now())
        placed.note_store(record)
        with create(path, placed.folders.values(), own) as lock:
            with course.first_files(
                directory, placed.config, plan=placed.first.plan, own=own, last=directory.members
            ):
                record.write(directory, lock)
            return _ComparisonCourse(placed, directory, lock, options).run(record)

    def resume(self, directory: StudyDirectory, options: RunOptions = DEFAULTS) -> ComparisonResult:
        """Resume the members; those that have finished are kept, failed ones tried again."""
        self.check_resources(options)
        with directory.open(_NEEDED_BYTES) as lock:
            before = ComparisonRecord.read(directory)
            self.check_stored(directory)
            uri = self.uri_in(directory, before)
            record = self.record(id_=before.id, uri=uri, started=before.started)
            if self.first.config.tracking.mlflow:
                if record.experiment == record.name:
                    check_experiment(uri, record.name, record.id, directory.path)
                self.note_store(record)
            course.write_config(directory, self.config)
            record.write(directory, lock)
            return _ComparisonCourse(self, directory, lock, options).run(record)

    def check_stored(self, directory: StudyDirectory) -> None:
        """Check that no change invalidates the results of a member."""
        for label, study in self.studies.items():
            stored = read_state(directory.member(self.folders[label]))
            if stored is None:
                continue
            with naming_member(label):
                stored.check(study, resumed_record(study, stored.study))

    def uri_in(self, directory: StudyDirectory, before: ComparisonRecord) -> str:
        """Return the store of a comparison that is resumed, after checks that it may be used."""
        config = self.first.config
        named = next(iter(load_comparison(directory.config).members.values())).tracking.uri
        uri = started_uri(config, named, before.uri)
        if config.tracking.mlflow:
            uri = usable_store(config, uri, before.uri, directory.path)
        course.check_upload(config, uri)
        return uri

    def note_store(self, record: ComparisonRecord) -> None:
        """Note the store and the names in it as this user's own."""
        note_place(record.uri)
        for study in self.studies.values():
            names = names_in_mlflow(vars(study.config.tracking), record.name)
            note_names({"experiment": record.name, **names}, record.id)


def _known_folders(config: ComparisonConfig, resumed: StudyDirectory) -> dict[str, str]:
    """Return the folders of the members of a comparison to resume, all of which must remain."""
    known = {entry.label: entry.folder for entry in ComparisonRecord.read(resumed).members}
    if gone := [label for label in known if label not in config.compare]:
        raise DirectoryError(
            f"the member {gone[0]!r} of the comparison to resume is not in the configuration;"
            " add it to `compare`, or start a new comparison in another directory."
        )
    return known


def _entry(label: str, folder: str, study: Study) -> MemberEntry:
    name = study.config.solver.name
    can = solver_capabilities(name)
    return MemberEntry(label, folder, name, can.reconstructed, transductive=can.transductive)


def create(path: Path, folders: Iterable[str], own: Dataset | None = None) -> FileLock:
    """Create the directory of a new comparison and lock it."""
    needed = _NEEDED_BYTES
    if own is not None:
        needed += own.X.nbytes
    directory, lock = StudyDirectory.create(path, needed, data=own is not None)
    for member in map(directory.member, folders):
        if member.journal.exists():  # it would be taken for a member of the new comparison
            lock.close()
            raise DirectoryError(
                f"{member.path} already holds a study; nothing was overwritten. Choose another"
                " output directory."
            )
    return lock


def read_state(member: StudyDirectory) -> StoredStudy | None:
    """Return the stored study of a member; None if it has not started."""
    if not member.journal.exists() or member.incomplete.exists():
        return None
    return StoredStudy.read(member)


def _is_whole(stored: StoredStudy, study: Study) -> bool:
    """Return whether a stored member is this study, has finished and lost no trial."""
    return stored.status == "finished" and not stored.has_lost and stored.is_of(study)


@dataclass
class _ComparisonCourse:
    """One run of a comparison in its directory."""

    comparison: Comparison
    directory: StudyDirectory
    lock: FileLock
    options: RunOptions
    session: ExitStack = field(default_factory=ExitStack)
    has_ray: bool = False
    without_ray: bool = False

    def run(self, record: ComparisonRecord) -> ComparisonResult:
        """Run the members that have not finished, write tables and figures, and upload all."""
        uploads = self.comparison.first.config.tracking.mlflow
        with sigterm_as_interrupt(), ExitStack() as stack:
            follow: StartUpload | None = None
            if uploads:
                tell = self.options.tell
                started = course.uploading(MLflowUploader(self.directory), tell, tell)
                follow = stack.enter_context(started).follow
            with self.session:
                for number in range(len(record.members)):
                    record = self._run_member(number, record, follow)
            return self._export(record)

    def _run_member(
        self,
        number: int,
        record: ComparisonRecord,
        follow: StartUpload | None,
    ) -> ComparisonRecord:
        """Run or resume a member unless it has finished; return the record with its error."""
        entry, tell, error = record.members[number], self.options.tell, None
        study, member = self.comparison.studies[entry.label], self.directory.member(entry.folder)
        head = f"{entry.label} ({number + 1} of {len(record.members)})"
        stored, n_done = read_state(member), 0
        if stored is not None:
            if _is_whole(stored, study):
                if follow is not None and not tracking_status(member)["complete"]:
                    follow(member)
                return record
            n_done = stored.n_trials
        with suppress(ConfigError):  # every pilot fit fails, and so will every trial
            study = with_known_executor(study, self.options, lambda: n_done)
        self._start_ray(study)
        number_of_them = counted(study.n_configurations, "configuration")
        tell(f"{head}: {study.config.solver.name}, {number_of_them}")
        try:
            executor: Executor = SerialExecutor(replace(study, own=None))
            if not self.without_ray:
                executor = make_executor(study, self.options)
            if stored is None:
                result = course.run(
                    study,
                    member.path,
                    executor=executor,
                    listeners=self.options.listeners,
                    start_upload=follow,
                )
            else:
                result = course.resume(
                    study,
                    member,
                    executor=executor,
                    listeners=self.options.listeners,
                    start_upload=follow,
                )
            score = f"{result.test_mean:.3f} ± {result.test_sd:.3f} (SD)"
            tell(f"{head}: test {result.metric} {score}")
        except (HeadLostError, StorageError):  # lost to all members
            raise
        except RayselError as failure:
            error = str(failure)
        except (Exception, SystemExit) as failure:  # a method that fails must not end the others  # noqa: BLE001
            error = without_credentials(f"{type(failure).__name__}: {failure}")
        if error is not None:
            tell(f"{head} failed: {error}")
        members = list(record.members)
        members[number] = replace(entry, error=error)
        record = replace(record, members=tuple(members))
        record.write(self.directory, self.lock)
        return record

    def _start_ray(self, study: Study) -> None:
        """Start or join Ray once, before the first member that computes on it."""
        if study.executor == "serial" or self.without_ray:
            return
        place = cluster_address(study, self.options.address)
        mixed = self.options.allow_mixed_versions
        if not self.has_ray:
            self.options.tell("joining the cluster" if place else "starting Ray")
            self.has_ray = True
        from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - takes seconds, after all checks

        studies = list(self.comparison.studies.values())
        try:  # does nothing if Ray runs
            self.session.enter_context(ray_session(place, studies, allow_mixed_versions=mixed))
        except RayStartError as error:
            remedy = "The members are computed in this process, with the same numbers"
            self.options.tell(f"{error}. {remedy}")
            self.without_ray = True

    def _export(self, record: ComparisonRecord) -> ComparisonResult:
        """Write tables and figures of the members that finished, and return the result."""
        if all(entry.error is not None for entry in record.members):
            raise StudyError(
                f"every member failed; the first, {record.members[0].label}:"
                f" {record.members[0].error}"
            )
        self.lock.check()
        result = ComparisonResult.open(self.directory.path)
        export_comparison(result, self.directory.results)
        write_comparison_report(result)
        return result
