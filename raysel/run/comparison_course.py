"""Run of a comparison in its directory, new or resumed: its members one after the other, then tables and figures."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from raysel.config import ComparisonConfig, dump_config, load_comparison
from raysel.core.clock import now
from raysel.core.credentials import without_credentials
from raysel.core.errors import (
    ConfigError,
    DataError,
    DirectoryError,
    HeadLostError,
    RayselError,
    RayStartError,
    StudyError,
)
from raysel.core.files import write_text_atomically
from raysel.data.dataset import Dataset
from raysel.data.formats.writers import save_dataset
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.execution.signals import sigterm_as_interrupt, was_terminated
from raysel.results.comparison.export import export_comparison, write_comparison_report
from raysel.results.comparison.tables import ComparisonResult
from raysel.results.progress import counted
from raysel.run import course
from raysel.run.comparison_definition import Comparison
from raysel.run.launch import check_resources, cluster_address, make_executor
from raysel.run.recording import mlflow_uri, resumed_record
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import ComparisonRecord, MemberEntry
from raysel.tracking.comparisons.uploader import ComparisonUploader
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.locks import FileLock
from raysel.tracking.log import Listener
from raysel.tracking.places import check_place, is_same_place, names_in_mlflow, note_names, note_place
from raysel.tracking.uploader import tracking_status
from raysel.tracking.uri import check_store


def run(
    comparison: Comparison,
    path: Path,
    address: str | None,
    listeners: Sequence[Listener] = (),
    *,
    allow_mixed_versions: bool = False,
) -> ComparisonResult:
    """Run a comparison in a new directory."""
    _check_resources(comparison, address)
    directory, own = ComparisonDirectory(path), comparison.first.own
    comparison = comparison.with_data_at(directory.data)
    uri = mlflow_uri(comparison.first.config)
    check_store(uri)
    record = comparison.record(id_=uuid.uuid4().hex, uri=uri, started=now())
    _note_places(comparison, record)
    with directory.create(comparison.folders.values(), n_bytes=0 if own is None else own.X.nbytes) as lock:
        _write_first_files(comparison, directory, record, own, lock)
        return _Course(comparison, directory, lock, address, listeners, allow_mixed_versions).run(record)


def resume(
    comparison: Comparison,
    directory: ComparisonDirectory,
    address: str | None,
    listeners: Sequence[Listener] = (),
    *,
    allow_mixed_versions: bool = False,
) -> ComparisonResult:
    """Resume a comparison: members that have finished are kept, others resumed, those that failed tried again."""
    _check_resources(comparison, address)
    with directory.open() as lock:
        before = directory.read()
        for label, folder in comparison.folders.items():
            _check_member(label, comparison.studies[label], directory.member(folder))
        same = _named_uri(comparison.config) == _named_uri(load_comparison(directory.config))
        uri = before.uri if same else mlflow_uri(comparison.first.config)
        if not is_same_place(uri, mlflow_uri(comparison.first.config)):
            check_place("tracking.uri", uri, directory.path)
        check_store(uri)
        record = comparison.record(id_=before.id, uri=uri, started=before.started)
        _note_places(comparison, record)
        try:
            directory.incomplete.unlink(missing_ok=True)
            write_text_atomically(directory.config, dump_config(comparison.config))
        except OSError as error:
            raise DirectoryError(f"{directory.path} cannot be written: {error.strerror}.") from error
        directory.write(record, lock)
        return _Course(comparison, directory, lock, address, listeners, allow_mixed_versions).run(record)


def state_of(member: StudyDirectory) -> StoredStudy | None:
    """Return the stored study of a member; None if it has not started."""
    return StoredStudy.read(member) if member.journal.exists() and not member.incomplete.exists() else None


class _Course:
    """One run of a comparison in its directory."""

    def __init__(
        self,
        comparison: Comparison,
        directory: ComparisonDirectory,
        lock: FileLock,
        address: str | None,
        listeners: Sequence[Listener],
        allow_mixed_versions: bool,
    ) -> None:
        self._comparison, self._directory, self._lock = comparison, directory, lock
        self._allow_mixed_versions = allow_mixed_versions
        self._address, self._listeners = address, listeners
        self._session, self._has_ray, self._without_ray = ExitStack(), False, False

    def run(self, record: ComparisonRecord) -> ComparisonResult:
        """Run the members that have not finished, write tables and figures, and upload all."""
        with sigterm_as_interrupt():
            uploader = ComparisonUploader(self._directory)
            try:
                with self._session:
                    for number, entry in enumerate(record.members):
                        record = self._run_member(number, entry, record, uploader)
                result = self._export(record)
            except BaseException:
                if not was_terminated():  # SIGKILL may follow SIGTERM soon; the uploader finishes by itself
                    self._say("uploading remaining runs to MLflow")
                    uploader.finish(patience=5)
                raise
            uploader.finish()
            return result

    def _run_member(
        self, number: int, entry: MemberEntry, record: ComparisonRecord, uploader: ComparisonUploader
    ) -> ComparisonRecord:
        """Run or resume a member unless it has finished, and return the record with its error, if it failed."""
        study, member = self._comparison.studies[entry.label], self._directory.member(entry.folder)
        head = f"{entry.label} ({number + 1} of {len(record.members)})"
        stored, error = state_of(member), None
        if stored is not None and stored.status == "finished" and stored.is_of(study):
            if not tracking_status(member)["complete"]:
                uploader.follow(member)
            return record
        self._start_ray(study)
        self._say(f"{head}: {study.config.solver.name}, {counted(study.n_configurations, 'configuration')}")
        try:
            executor: Executor = SerialExecutor(replace(study, own=None))
            if not self._without_ray:
                executor = make_executor(study, self._address, allow_mixed_versions=self._allow_mixed_versions)
            if stored is None:
                result = course.run(study, member.path, executor, self._listeners, uploader.follow)
            else:
                result = course.resume(study, stored, executor, self._listeners, uploader.follow)
            self._say(f"{head}: test {result.metric} {result.test_mean:.3f} ± {result.test_sd:.3f} (SD)")
        except HeadLostError:  # lost to all members
            raise
        except RayselError as failure:
            error = str(failure)
        except (Exception, SystemExit) as failure:  # a method that fails must not end the others  # noqa: BLE001
            error = without_credentials(f"{type(failure).__name__}: {failure}")
        if error is not None:
            self._say(f"{head} failed: {error}")
        members = (*record.members[:number], replace(entry, error=error), *record.members[number + 1 :])
        record = replace(record, members=members)
        self._directory.write(record, self._lock)
        return record

    def _start_ray(self, study: Study) -> None:
        """Start or join Ray before the first member that computes on it; the others use the same session."""
        if study.config.search.executor == "serial" or self._without_ray:
            return
        if not self._has_ray:
            self._say("joining the cluster" if cluster_address(study, self._address) else "starting Ray")
            self._has_ray = True
        from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - takes seconds, after all checks

        place, mixed = cluster_address(study, self._address), self._allow_mixed_versions
        studies = list(self._comparison.studies.values())
        try:  # does nothing if Ray runs
            self._session.enter_context(ray_session(place, studies, allow_mixed_versions=mixed))
        except RayStartError as error:
            self._say(f"{error}. The members are computed in this process, with the same numbers")
            self._without_ray = True

    def _export(self, record: ComparisonRecord) -> ComparisonResult:
        """Write tables and figures of the members that finished, and return the result."""
        if all(entry.error is not None for entry in record.members):
            raise StudyError(f"every member failed; the first, {record.members[0].label}: {record.members[0].error}")
        self._lock.check()
        result = ComparisonResult.open(self._directory.path)
        export_comparison(result, self._directory.results)
        write_comparison_report(result)
        return result

    def _say(self, text: str) -> None:
        for listener in self._listeners:
            listener.message(text)


def _note_places(comparison: Comparison, record: ComparisonRecord) -> None:
    note_place(record.uri)
    for study in comparison.studies.values():
        note_names(names_in_mlflow(vars(study.config.tracking), record.name), record.id)


def _named_uri(config: ComparisonConfig) -> str | None:
    return next(iter(config.members.values())).tracking.uri


def _check_resources(comparison: Comparison, address: str | None) -> None:
    for label, study in comparison.studies.items():
        try:
            check_resources(study, address)
        except ConfigError as error:
            raise ConfigError(f"compare.{label}: {error}") from error


def _check_member(label: str, study: Study, member: StudyDirectory) -> None:
    """Check that a member that has started can be resumed."""
    try:
        stored = state_of(member)
        if stored is not None:
            stored.check(study, resumed_record(study, stored.study))
    except DirectoryError as error:
        raise DirectoryError(f"compare.{label}: {error}") from error


def _write_first_files(
    comparison: Comparison,
    directory: ComparisonDirectory,
    record: ComparisonRecord,
    own: Dataset | None,
    lock: FileLock,
) -> None:
    """Write configuration, folds, own data and list of members; if one fails, all are removed."""
    files = [directory.config, directory.plan, directory.members, *([directory.data] if own is not None else [])]
    try:
        directory.incomplete.touch()
        write_text_atomically(directory.config, dump_config(comparison.config))
        write_text_atomically(directory.plan, json.dumps(comparison.first.plan.to_json()))
        if own is not None:
            save_dataset(own, directory.data)
        directory.write(record, lock)
        directory.incomplete.unlink()
    except (OSError, StudyError, DataError) as error:
        for file in (*files, directory.incomplete):
            file.unlink(missing_ok=True)
        cause = error.__cause__ if isinstance(error, DataError) else error
        reason = cause.strerror if isinstance(cause, OSError) else error
        raise DirectoryError(
            f"{directory.path} cannot be written: {reason}. Choose another output directory."
        ) from error
