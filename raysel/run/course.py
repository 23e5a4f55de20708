"""Run of a study in its directory, new or resumed, from its first file to its last."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.base.models import save_model
from raysel.config import ComparisonConfig, StudyConfig, dump_config, load_config
from raysel.config.loading import Overrides, Source
from raysel.core.errors import ConfigError, DataError, DirectoryError, RayselError, StudyError
from raysel.core.files import remove_results, write_result, write_text_atomically
from raysel.core.machine import now
from raysel.core.trust import hash_file, key_problem
from raysel.data.dataset import Dataset
from raysel.data.loading import save_dataset
from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import dense
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.plan import NestedPlan, OuterFold
from raysel.evaluation.ranking_files import csv_content
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.evaluation.scoring_estimators import LINEAR_SVM
from raysel.execution.executor import Executor
from raysel.execution.signals import sigterm_as_interrupt, was_terminated
from raysel.numerics.rankings import selection_ranks
from raysel.results.description import Preview
from raysel.results.export import export_result
from raysel.results.result import StudyResult
from raysel.results.tables import trace_table
from raysel.run.definition import Planned
from raysel.run.launch import make_executor, with_known_executor
from raysel.run.options import DEFAULTS, RunOptions, ShowResult
from raysel.run.recording import end_record, mlflow_uri, resumed_record, study_record
from raysel.run.steps import noise_record, search, winners
from raysel.study.background import write_image, write_mean_sample
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, last_end
from raysel.tracking.locks import FileLock
from raysel.tracking.log import Listener, Progress, StudyLog
from raysel.tracking.places import (
    check_experiment,
    check_store,
    missing_credentials,
    note_data,
    note_store,
)
from raysel.tracking.records import StudyRecord
from raysel.tracking.server_address import unreachable
from raysel.tracking.upload_process import PATIENCE, MLflowUploader, Upload

#: Number of samples that are stored as an example of what the model takes.
_N_EXAMPLES = 3
#: Function that starts the upload of a study's journal to MLflow.
StartUpload: TypeAlias = Callable[[StudyDirectory], Upload]
UploadT = TypeVar("UploadT", bound=Upload)


class OneStudy(Planned[StudyConfig, StudyResult]):
    """A single study, whose files lie in the directory itself."""

    what = "study"

    @classmethod
    def of(cls, study: Study) -> Self:
        """Plan a study that is checked already."""
        return cls(study.config, {study.config.name: study}, {study.config.name: "."})

    @classmethod
    def of_prepared(cls, planned: Study | Planned[Any, Any]) -> Self:
        """Plan a study that was prepared."""
        if not isinstance(planned, Study):
            raise ConfigError("a prepared comparison is run by run_comparison.")
        return cls.of(planned)

    @classmethod
    def of_config(
        cls, config: StudyConfig, resumed: StudyDirectory | None = None, own: Dataset | None = None
    ) -> Self:
        """Load the data, draw the folds, and check everything."""
        return cls.of(Study.prepare(config, resumed.plan if resumed else None, own=own))

    @staticmethod
    def load(source: Source, overrides: Overrides = (), *, own_data: bool = False) -> StudyConfig:
        """Read, override and validate a study's configuration."""
        return load_config(source, overrides, own_data=own_data)

    @staticmethod
    def check(directory: StudyDirectory) -> None:
        """Check that a directory has the journal of a study."""
        StoredStudy.read(directory)

    def run(self, path: Path, options: RunOptions = DEFAULTS) -> StudyResult:
        """Run the study in a new directory."""
        self.check_resources(options)
        study = with_known_executor(self.first, options)
        executor = make_executor(study, options)
        return run(study, path, executor, options.listeners, show=options.show)

    def resume(self, directory: StudyDirectory, options: RunOptions = DEFAULTS) -> StudyResult:
        """Resume the study in its directory."""
        self.check_resources(options)
        study = with_known_executor(
            self.first, options, lambda: StoredStudy.read(directory).n_trials
        )
        executor = make_executor(study, options)
        return resume(study, directory, executor, options.listeners, show=options.show)


def check_directory(study: Study, path: Path, stored: StoredStudy | None) -> None:
    """Raise what `run` or `resume` would raise before they compute; make a new directory."""
    if stored:
        stored.directory.open(_needed_bytes(study)).close()
        record = resumed_record(study, stored.study, stored.directory.path)
        stored.check(study, record)
        check_upload(study.config, record.uri)
    else:
        check_upload(study.config, mlflow_uri(study.config))
        StudyDirectory.create(path, _needed_bytes(study))[1].close()


def check_upload(config: StudyConfig, uri: str) -> None:
    """Check that MLflow's store can be written, unless the study is not uploaded."""
    if config.tracking.mlflow:
        check_store(uri)


def upload_doubts(uri: str) -> Iterator[str]:
    """Yield what keeps MLflow's store from being uploaded to now, a sentence each."""
    yield from filter(None, (missing_credentials(uri), unreachable(uri)))


def run(
    study: Study,
    path: Path,
    executor: Executor,
    listeners: Sequence[Listener] = (),
    start_upload: StartUpload | None = MLflowUploader,
    show: ShowResult | None = None,
    *,
    keep_models: bool = False,
) -> StudyResult:
    """Run a study in a new directory; the result can hold the models in memory as well.

    Nothing is uploaded if ``start_upload`` is None, or ``tracking.mlflow`` is false.
    """
    own, uri = study.own, mlflow_uri(study.config)
    if start_upload is not None:
        check_upload(study.config, uri)
    directory, lock = StudyDirectory.create(path, _needed_bytes(study), data=own is not None)
    study = study.with_data_at(directory.data)
    record = study_record(study, id_=uuid.uuid4().hex, uri=uri, started=now())
    note_data(study.config)
    note_store(study.config, record.uri, record.id)
    with lock, _new_journal(study, directory, record=record, own=own, lock=lock) as journal:
        course = _StudyCourse(
            study, directory, executor=executor, stored=None, record=record, keep_models=keep_models
        )
        return course.run(journal, listeners, start_upload, show)


def resume(
    study: Study,
    directory: StudyDirectory,
    executor: Executor,
    listeners: Sequence[Listener] = (),
    start_upload: StartUpload | None = MLflowUploader,
    show: ShowResult | None = None,
) -> StudyResult:
    """Resume a study that was interrupted, or extend one that has more configurations now."""
    with directory.open(_needed_bytes(study)) as lock:
        stored = StoredStudy.read(directory)
        record = resumed_record(study, stored.study, directory.path)
        stored.check(study, record)
        check_upload(study.config, record.uri)
        uploaded = start_upload is not None and study.config.tracking.mlflow
        if uploaded and record.experiment == record.name:
            check_experiment(record.uri, record.name, record.id, directory.path)
        note_data(study.config)
        if study.config.tracking.mlflow:  # else only the directory may name the store
            note_store(study.config, record.uri, record.id)
        write_config(directory, study.config)
        with Journal(directory.journal, lock) as journal:
            journal.append(record)
            return _StudyCourse(
                study, directory, executor=executor, stored=stored, record=record
            ).run(journal, listeners, start_upload, show)


@contextmanager
def uploading(
    uploader: UploadT, enter: Callable[[str], None], say: Callable[[str], None]
) -> Iterator[UploadT]:
    """Finish an upload when the context ends, and say what is waited for."""
    try:
        yield uploader
    except BaseException:
        if not was_terminated():  # SIGKILL may follow SIGTERM soon; the uploader finishes by itself
            enter(_uploading_words(5))
            uploader.finish(patience=5)
        raise
    enter(f"the results are written; {_uploading_words(PATIENCE)}")
    uploader.finish(say=say)


def _uploading_words(patience: float) -> str:
    """Say what is waited for, and how long at most."""
    return f"uploading the last runs to MLflow, which stops after {patience:.0f} s without progress"


@dataclass
class _StudyCourse:
    """One run of a study in its directory."""

    study: Study
    directory: StudyDirectory
    executor: Executor
    stored: StoredStudy | None
    record: StudyRecord
    keep_models: bool = False
    models: dict[str, FeaturePipeline] = field(default_factory=dict)

    def run(
        self,
        journal: Journal,
        listeners: Sequence[Listener],
        start_upload: StartUpload | None,
        show: ShowResult | None,
    ) -> StudyResult:
        """Compute trials, refits and result, and record the end of the run."""
        if not self.study.config.tracking.mlflow:
            start_upload = None
        progress = Progress(self.study.n_trials, self.study.config.evaluation.metric)
        before = None
        if self.stored:
            before = last_end(self.directory.journal)
        with (
            sigterm_as_interrupt(),
            StudyLog(journal, progress, self.directory.progress, listeners) as log,
        ):
            upload: AbstractContextManager[object] = nullcontext()
            if start_upload is not None:
                for doubt in upload_doubts(self.record.uri):
                    log.message(doubt)
            if self.study.findings.storable and (problem := key_problem()):
                log.message(f"the models will not be trusted: {problem}")
            if start_upload is not None:
                upload = uploading(start_upload(self.directory), log.enter_phase, log.message)
            with upload:
                try:
                    result = self._compute(log)
                    log.record(end_record("finished", self.record.started, result, before))
                except BaseException as error:
                    status = "failed"
                    if isinstance(error, KeyboardInterrupt):
                        status = "interrupted"
                    with suppress(StudyError):  # the disk may have failed
                        log.record(end_record(status, self.record.started))
                    raise
                if show is not None:
                    show(result)
            return result

    def _compute(self, log: StudyLog) -> StudyResult:
        """Compute what is missing, write all files of the result, and return it."""
        with self.executor:
            records = search(self.study, self.executor, log, self.stored)
            self._refit_winners(records, log)
        if self.study.findings.ranks and (self.stored is None or self.stored.noise is None):
            log.record(noise_record(self.study, winners(self.study, records)))
        result = StudyResult(
            replace(StoredStudy.read(self.directory), status="finished"), self.models
        )
        log.enter_phase("writing the results")
        write_mean_sample(self.study.dataset, self.directory.mean_sample)
        if self.study.background is not None:
            write_image(self.study.background, self.directory.background)
        export_result(result, self.directory.ranking)
        self._write_report(result, log)
        return result

    def _refit_winners(self, records: list[TrialRecord], log: StudyLog) -> None:
        """Refit each outer fold's winner, and write traces, models, fold rankings and records."""
        study, directory = self.study, self.directory
        log.enter_phase("refitting the winners")
        chosen = self._to_refit(records)
        n_tied = {fold.name: n for fold, _, n in chosen}
        try:
            pa.parquet.write_table(trace_table(records, study.evaluation.labels), directory.traces)
            directory.folds.mkdir(exist_ok=True)
            refits: Iterable[tuple[RefitRecord, FeaturePipeline]] = ()
            if chosen:
                refits = self.executor.run_refits([(fold, winner) for fold, winner, _ in chosen])
            for number, (record, model) in enumerate(refits, start=1):
                if not self._save_model(record.fold, model, log) or self.keep_models:
                    self.models[record.fold] = model
                if record.feature_scores is not None:
                    table = _fold_table(study, record.feature_scores)
                    write_result(directory.fold_table(record.fold), csv_content(table))
                record.n_tied = n_tied[record.fold]
                log.record(record)
                log.enter_phase(f"refitting the winners: {number} of {len(chosen)}")
            if study.config.cv.final and not self._has_cells:
                # It is NaN in the features of other tasks.
                example = dense(study.dataset.excerpt.X[:_N_EXAMPLES])
                np.save(directory.model_example, example, allow_pickle=False)
        except OSError as error:
            raise StudyError(f"{directory.path} cannot be written: {error.strerror}.") from error

    @property
    def _is_native(self) -> bool:
        return self.study.evaluation.is_native

    @property
    def _has_cells(self) -> bool:
        """Whether the estimator gets the samples as they are."""
        return isinstance(self.study.dataset.X, TableRows)

    def _save_model(self, fold: str, model: Any, log: StudyLog) -> bool:
        """Write a fold's model, and return whether the file holds all of it.

        It lacks the method, or there is none, where a file cannot hold the method.
        """
        path = self.directory.fold_model(fold)
        if self._has_cells:  # the estimator itself takes the samples as they are
            model = model.method.estimator_
        if not self.study.findings.storable:
            remove_results([path, hash_file(path)])  # those of an earlier winner
            return False
        if not self.study.findings.untrusted:
            try:
                save_model(model, path)
            except DataError as error:  # the model contains a type that the trial fit did not
                left_out = "lacks the fitted method"
                if self._is_native:
                    left_out = "is not written"
                log.message(f"{path.name} {left_out}: {error}")
            else:
                return True
        if self._is_native:
            remove_results([path, hash_file(path)])  # those of an earlier winner
        else:
            save_model(model.without_method(), path)
        return False

    def _write_report(self, result: StudyResult, log: StudyLog) -> None:
        try:
            data, config = self.study.dataset, self.study.config
            Preview.of(data).write(self.directory.preview)
            from raysel.results.page.report import write_final_report  # noqa: PLC0415 - loads matplotlib

            if config.pictures != ():
                from raysel.results.displays.preview_data import (  # noqa: PLC0415 - loads matplotlib
                    preview_orders,
                    preview_parts,
                    write_preview_parts,
                )

                parts = preview_parts(data.excerpt, preview_orders(config.to_dict()["dataset"]))
                write_preview_parts(parts, self.directory.preview_parts)
            write_final_report(result)
        except OSError as error:
            raise StudyError(
                f"{self.directory.path} cannot be written: {error.strerror}."
            ) from error
        except RayselError:
            raise
        except Exception as error:  # noqa: BLE001 - a figure that cannot be drawn must not fail a finished study
            log.message(f"report.html is not written: {type(error).__name__}: {error}")

    def _to_refit(self, records: list[TrialRecord]) -> list[tuple[OuterFold, TrialRecord, int]]:
        """Return outer folds with winners and ties, except those whose refit is stored."""
        known: Mapping[str, RefitRecord] = {}
        if self.stored:
            known = self.stored.refits
        chosen = winners(self.study, records)
        return [one for one in chosen if not self._is_refitted(known.get(one[0].name), *one[1:])]

    def _is_refitted(self, refit: RefitRecord | None, winner: TrialRecord, n_tied: int) -> bool:
        """Return whether a stored refit is that of a winner, and its files are there."""
        if refit is None or (refit.trial, refit.n_tied) != (winner.id, n_tied):
            return False
        files = []
        if refit.feature_scores is not None:
            files.append(self.directory.fold_table(refit.fold))
        if self.study.findings.storable:
            files.append(self.directory.fold_model(refit.fold))
        return all(file.exists() for file in files)


def write_config(directory: StudyDirectory, config: StudyConfig | ComparisonConfig) -> None:
    """Write the configuration that a study or a comparison is resumed with."""
    try:
        directory.incomplete.unlink(missing_ok=True)
        write_text_atomically(directory.config, dump_config(config))
    except OSError as error:
        raise DirectoryError(f"{directory.path} cannot be written: {error.strerror}.") from error


@contextmanager
def first_files(
    directory: StudyDirectory,
    config: StudyConfig | ComparisonConfig,
    plan: NestedPlan,
    own: Dataset | None,
    last: Path,
) -> Iterator[None]:
    """Write configuration, folds and own data before the last file; all of them, or none."""
    files = [directory.config, directory.plan, last]
    if own is not None:
        files.append(directory.data)
    try:
        directory.incomplete.touch()
        for file in files:
            file.unlink(missing_ok=True)
        write_text_atomically(directory.config, dump_config(config))
        write_text_atomically(directory.plan, json.dumps(plan.to_json()))
        if own is not None:
            save_dataset(own, directory.data)
        yield
        directory.incomplete.unlink()
    except (OSError, StudyError, DataError, DirectoryError) as error:
        for file in (*files, directory.incomplete):
            file.unlink(missing_ok=True)
        reason: object = error
        if isinstance(error, DataError | DirectoryError) and isinstance(error.__cause__, OSError):
            reason = error.__cause__.strerror
        elif isinstance(error, OSError):
            reason = error.strerror
        raise DirectoryError(
            f"{directory.path} cannot be written: {reason}. Choose another output directory."
        ) from error


def _new_journal(
    study: Study,
    directory: StudyDirectory,
    record: StudyRecord,
    own: Dataset | None = None,
    lock: FileLock | None = None,
) -> Journal:
    """Write the first files of a study and return its journal with its first record."""
    with first_files(directory, study.config, plan=study.plan, own=own, last=directory.journal):
        journal = Journal(directory.journal, lock)
        journal.append(record)
    return journal


def _needed_bytes(study: Study) -> int:
    """Estimate the size of the journal and of the models, which may hold their training samples."""
    evaluation, X = study.evaluation, study.dataset.X
    # Of the estimators of other packages it is not known what they hold.
    share = 1.0
    if evaluation.estimator == LINEAR_SVM:
        share = 0.0
    elif not evaluation.is_native:
        share = min(evaluation.n_features[-1] / X.shape[1], 1.0)
    n_classes = len(study.dataset.classes)
    # For each feature its name, scores, scaling and the method's coefficients of each class.
    of_a_model = 2**16 + 8 * X.shape[1] * (20 + n_classes) + int(share * X.nbytes)
    outputs = 12 * len(X) * (n_classes + 1) * study.config.cv.repeats
    trials = 64 * study.n_configurations * study.n_inner * 10
    needed = 2**20 + outputs + trials + len(study.plan.folds) * of_a_model
    if study.own is not None:
        needed += study.own.X.nbytes
    return needed


def _fold_table(study: Study, feature_scores: Sequence[float]) -> pa.Table:
    """Return the ranking of an outer fold's winner, best feature first."""
    columns: dict[str, Any] = {
        "feature": np.array(study.dataset.feature_names),
        **study.dataset.layout.coordinates(),
    }
    scores = np.array(feature_scores)
    rank = selection_ranks(scores)
    n_candidates = len(scores) - study.dataset.layout.n_beside  # confounds have no row
    order = np.argsort(rank[:n_candidates], kind="stable")
    columns |= {"score": scores, "rank": rank}
    return pa.table({name: values[order] for name, values in columns.items()})
