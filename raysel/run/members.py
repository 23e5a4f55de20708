"""Run of a study or a comparison, new or resumed: the members one after the other, then tables
and figures.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raysel.config import load_comparison
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
from raysel.run.course import ShowResult
from raysel.run.definition import Comparison, naming
from raysel.run.launch import check_resources, cluster_address, make_executor, with_known_executor
from raysel.run.options import DEFAULTS, RunOptions
from raysel.run.recording import mlflow_uri, resumed_record, started_uri, usable_store
from raysel.study.definition import Study
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


def run(
    comparison: Comparison,
    path: Path,
    options: RunOptions = DEFAULTS,
    show: ShowResult | None = None,
) -> Any:
    """Run a study or a comparison in a new directory, and return its result."""
    _check_resources(comparison, options.address)
    if comparison.is_study:
        study = with_known_executor(comparison.first, options)
        executor = make_executor(study, options)
        return course.run(study, path, executor, options.listeners, show=show)
    own, uri = comparison.first.own, mlflow_uri(comparison.first.config)
    comparison = comparison.with_data_at(StudyDirectory(path).data)
    course.check_upload(comparison.first.config, uri)
    record = comparison.record(id_=uuid.uuid4().hex, uri=uri, started=now())
    _note_store(comparison, record)
    with create(path, comparison.folders.values(), own) as lock:
        directory = StudyDirectory(path)
        with course.first_files(
            directory, comparison.config, comparison.first.plan, own, directory.members
        ):
            record.write(directory, lock)
        return _Course(comparison, directory, lock, options).run(record)


def resume(
    comparison: Comparison,
    directory: StudyDirectory,
    options: RunOptions = DEFAULTS,
    show: ShowResult | None = None,
) -> Any:
    """Resume a study or a comparison, whose finished members are kept, others resumed, failed
    ones tried again.
    """
    _check_resources(comparison, options.address)
    if comparison.is_study:
        study = with_known_executor(
            comparison.first, options, lambda: StoredStudy.read(directory).n_trials
        )
        executor = make_executor(study, options)
        return course.resume(study, directory, executor, options.listeners, show=show)
    with directory.open(_NEEDED_BYTES) as lock:
        before = ComparisonRecord.read(directory)
        for label, folder in comparison.folders.items():
            with naming(label):
                stored = state_of(directory.member(folder))
                if stored is not None:
                    study = comparison.studies[label]
                    stored.check(study, resumed_record(study, stored.study))
        config = comparison.first.config
        named = next(iter(load_comparison(directory.config).members.values())).tracking.uri
        uri = started_uri(config, named, before.uri)
        if config.tracking.mlflow:
            uri = usable_store(config, uri, before.uri, directory.path)
        course.check_upload(config, uri)
        record = comparison.record(id_=before.id, uri=uri, started=before.started)
        if config.tracking.mlflow and record.experiment == record.name:
            check_experiment(uri, record.name, record.id, directory.path)
        if config.tracking.mlflow:
            _note_store(comparison, record)
        course.write_config(directory, comparison.config)
        record.write(directory, lock)
        return _Course(comparison, directory, lock, options).run(record)


def create(path: Path, folders: Iterable[str], own: Dataset | None = None) -> FileLock:
    """Create the directory of a new comparison and lock it."""
    written = 0 if own is None else own.X.nbytes
    directory, lock = StudyDirectory.create(path, _NEEDED_BYTES + written, data=own is not None)
    for member in map(
        directory.member, folders
    ):  # its numbers would be taken for those of the new comparison
        if member.journal.exists():
            lock.close()
            raise DirectoryError(
                f"{member.path} already holds a study; nothing was overwritten. Choose another"
                " output directory."
            )
    return lock


def state_of(member: StudyDirectory) -> StoredStudy | None:
    """Return the stored study of a member; None if it has not started."""
    return (
        StoredStudy.read(member)
        if member.journal.exists() and not member.incomplete.exists()
        else None
    )


@dataclass
class _Course:
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
            uploader = None
            if uploads:
                tell = self.options.tell
                started = course.uploading(MLflowUploader(self.directory), tell, tell)
                uploader = stack.enter_context(started)
            with self.session:
                for number, entry in enumerate(record.members):
                    record = self._run_member(number, entry, record, uploader)
            return self._export(record)

    def _run_member(
        self,
        number: int,
        entry: MemberEntry,
        record: ComparisonRecord,
        uploader: MLflowUploader | None,
    ) -> ComparisonRecord:
        """Run or resume a member unless it has finished, and return the record with its error,
        if it failed.
        """
        study, member = self.comparison.studies[entry.label], self.directory.member(entry.folder)
        head = f"{entry.label} ({number + 1} of {len(record.members)})"
        stored, error = state_of(member), None
        is_whole = stored is not None and stored.status == "finished" and not stored.has_lost
        if stored is not None and is_whole and stored.is_of(study):
            if uploader is not None and not tracking_status(member)["complete"]:
                uploader.follow(member)
            return record
        with suppress(ConfigError):  # every pilot fit fails, and so will every trial
            study = with_known_executor(
                study, self.options, lambda: stored.n_trials if stored else 0
            )
        self._start_ray(study)
        self.options.tell(
            f"{head}: {study.config.solver.name},"
            f" {counted(study.n_configurations, 'configuration')}"
        )
        try:
            executor: Executor = SerialExecutor(replace(study, own=None))
            if not self.without_ray:
                executor = make_executor(study, self.options)
            follow = None if uploader is None else uploader.follow
            if stored is None:
                result = course.run(study, member.path, executor, self.options.listeners, follow)
            else:
                result = course.resume(study, member, executor, self.options.listeners, follow)
            self.options.tell(
                f"{head}: test {result.metric} {result.test_mean:.3f} ± {result.test_sd:.3f} (SD)"
            )
        except (HeadLostError, StorageError):  # lost to all members
            raise
        except RayselError as failure:
            error = str(failure)
        except (Exception, SystemExit) as failure:  # a method that fails must not end the others  # noqa: BLE001
            error = without_credentials(f"{type(failure).__name__}: {failure}")
        if error is not None:
            self.options.tell(f"{head} failed: {error}")
        members = (
            *record.members[:number],
            replace(entry, error=error),
            *record.members[number + 1 :],
        )
        record = replace(record, members=members)
        record.write(self.directory, self.lock)
        return record

    def _start_ray(self, study: Study) -> None:
        """Start or join Ray before the first member that computes on it; the others use the same
        session.
        """
        if study.executor == "serial" or self.without_ray:
            return
        place, mixed = (
            cluster_address(study, self.options.address),
            self.options.allow_mixed_versions,
        )
        if not self.has_ray:
            self.options.tell("joining the cluster" if place else "starting Ray")
            self.has_ray = True
        from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - takes seconds, after all checks

        studies = list(self.comparison.studies.values())
        try:  # does nothing if Ray runs
            self.session.enter_context(ray_session(place, studies, allow_mixed_versions=mixed))
        except RayStartError as error:
            self.options.tell(
                f"{error}. The members are computed in this process, with the same numbers"
            )
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


def _note_store(comparison: Comparison, record: ComparisonRecord) -> None:
    note_place(record.uri)
    for study in comparison.studies.values():
        names = names_in_mlflow(vars(study.config.tracking), record.name)
        note_names({"experiment": record.name, **names}, record.id)


def _check_resources(comparison: Comparison, address: str | None) -> None:
    for label, study in comparison.studies.items():
        with nullcontext() if comparison.is_study else naming(label):
            check_resources(study, address)
