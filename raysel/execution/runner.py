"""A study from its first file to its last: directory, journal, Ray, results, export."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console

from raysel.base.models import save_model
from raysel.config import dump_config
from raysel.cv.records import TrialRecord
from raysel.cv.selection import select_winner
from raysel.errors import ConfigError, DirectoryError, StudyError
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.execution.signals import was_terminated
from raysel.execution.trial_plan import trial_plan
from raysel.files import write_text_atomically
from raysel.metrics.ranks import selection_ranks
from raysel.study.definition import Study
from raysel.study.entries import end_entry, refit_entry, search_entry, study_entry
from raysel.study.result import Outcome
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress
from raysel.tracking.traces import trace_table
from raysel.tracking.uploader import MLflowUploader
from raysel.tracking.uri import absolute_uri


@dataclass(frozen=True)
class Finished:
    """What a run leaves behind.

    Parameters
    ----------
    outcome : Outcome
    tracking : mapping
        How far MLflow was told: ``complete``, ``error``, ``experiment_id``, ``study_run_id``.
    uri : str
        MLflow's.
    """

    outcome: Outcome
    tracking: Mapping[str, Any]
    uri: str


def tracking_uri(study: Study) -> str:
    """The study's MLflow address: configured, else ``$MLFLOW_TRACKING_URI``, else a file here."""
    return absolute_uri(study.config.tracking.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db")


def check_start(study: Study, path: Path, kept: StoredStudy | None, *, address: str | None) -> None:
    """Refuse, before anything is computed, what `run` or `resume` would refuse; the directory is made if need be.

    Parameters
    ----------
    study : Study
    path : Path
        The study's directory.
    kept : StoredStudy or None
        What an earlier run has left there.
    address : str or None
        Of a Ray cluster.

    Raises
    ------
    ConfigError
        If a trial needs more CPUs than this machine has, or nobody answers at the address, or MLflow's is of no kind.
    DirectoryError
        If the directory is in use or cannot be written, or what it holds is not of this study.
    """
    _check_resources(study, address)
    if kept:
        kept.directory.open(_needed_bytes(study)).close()
        kept.check(study, _begun_again(study, kept))
    else:
        tracking_uri(study)
        StudyDirectory.create(path, _needed_bytes(study))[1].close()


def run(study: Study, path: Path, *, address: str | None, console: Console) -> Finished:
    """Run a study in a new directory.

    Parameters
    ----------
    study : Study
    path : Path
        Becomes the study's directory.
    address : str or None
        Of a Ray cluster; None starts Ray on this machine.
    console : Console
        For the progress line.

    Returns
    -------
    Finished

    Raises
    ------
    ConfigError, DirectoryError
        As `check_start`. Neither has started Ray.
    StudyError
        If Ray does not start, no configuration has a score, or a refit or the disk fails.
    """
    _check_resources(study, address)
    directory, hold = StudyDirectory.create(path, _needed_bytes(study))
    begun = study_entry(study, id_=uuid.uuid4().hex, uri=tracking_uri(study), started=time.time())
    with hold, _begin(study, directory, begun) as journal:
        return _run(study, directory, journal, begun, None, address, console)


def resume(study: Study, kept: StoredStudy, *, address: str | None, console: Console) -> Finished:
    """Go on with a study that was interrupted, or add to one that has grown.

    Parameters
    ----------
    study : Study
        With the directory's own plan.
    kept : StoredStudy
    address : str or None
        Of a Ray cluster; None starts Ray on this machine.
    console : Console

    Returns
    -------
    Finished
        As an undisturbed study would have given it.

    Raises
    ------
    ConfigError, DirectoryError
        As `check_start`.
    StudyError
        As `run`.
    """
    _check_resources(study, address)
    with kept.directory.open(_needed_bytes(study)):
        kept = StoredStudy.read(kept.directory)  # what it holds now that nobody else writes to it
        begun = _begun_again(study, kept)
        kept.check(study, begun)
        try:
            kept.directory.beginning.unlink(missing_ok=True)
            write_text_atomically(kept.directory.config, dump_config(study.config))
        except OSError as error:
            raise DirectoryError(f"{kept.directory.path} cannot be written: {error.strerror}.") from error
        with Journal(kept.directory.journal) as journal:
            journal.append(begun)
            return _run(study, kept.directory, journal, begun, kept, address, console)


def _check_resources(study: Study, address: str | None) -> None:
    if address is not None and study.config.search.executor == "serial":
        raise ConfigError(f"search.executor serial computes in this process and takes no cluster ({address}): use ray.")
    if address is None:
        wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
        if wanted > there:
            raise ConfigError(f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine.")
    elif address not in ("auto", "local"):
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigError(
                f"--address {address}: no Ray answers there ({error}); give the HOST:PORT of a cluster that is up, "
                "or leave --address out to start Ray here."
            ) from error


def _begun_again(study: Study, kept: StoredStudy) -> dict[str, Any]:
    """The study's entry, under the id and at the MLflow that it had."""
    before, chosen = kept.study, study.config.tracking.uri
    uri = before["uri"] if chosen == before["config"].get("tracking", {}).get("uri") else tracking_uri(study)
    return study_entry(study, id_=before["id"], uri=uri, started=before["started"])


def _needed_bytes(study: Study) -> int:
    return 2**20 + 64 * study.n_configurations * study.n_inner * 10


def _begin(study: Study, directory: StudyDirectory, begun: Mapping[str, Any]) -> Journal:
    """Write what is known before anything is computed: all of it, or nothing."""
    files = (directory.config, directory.plan, directory.journal)
    try:
        directory.beginning.touch()
        for file in files:
            file.unlink(missing_ok=True)
        write_text_atomically(directory.config, dump_config(study.config))
        write_text_atomically(directory.plan, json.dumps(study.plan.to_json()))
        journal = Journal(directory.journal)
        journal.append(dict(begun))
        directory.beginning.unlink()
    except (OSError, StudyError) as error:
        for file in (*files, directory.beginning):
            file.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise DirectoryError(
            f"{directory.path} cannot be written: {reason}. Choose another directory with --output."
        ) from error
    return journal


def _run(
    study: Study,
    directory: StudyDirectory,
    journal: Journal,
    begun: Mapping[str, Any],
    kept: StoredStudy | None,
    address: str | None,
    console: Console,
) -> Finished:
    follower = MLflowUploader(directory)
    progress = Progress(directory.progress, study.n_trials, study.config.evaluation.metric, console)
    with progress:
        try:
            _compute(study, directory, journal, kept, address, progress)
            progress.enter("writing the ranking")
            outcome = Outcome.read(directory, ended=False)
            outcome.export(directory.ranking)
            journal.append(end_entry("finished", begun["started"], outcome))
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            with suppress(StudyError):  # the disk may be what failed
                journal.append(end_entry(status, begun["started"]))
            if not was_terminated():  # then seconds count, and the follower goes on alone
                progress.enter("telling MLflow the rest")
                follower.finish(patience=5)
            raise
        progress.enter("telling MLflow the rest")
        return Finished(outcome, follower.finish(), begun["uri"])


def _compute(
    study: Study,
    directory: StudyDirectory,
    journal: Journal,
    kept: StoredStudy | None,
    address: str | None,
    progress: Progress,
) -> None:
    work = trial_plan(study, kept.trials if kept else ())
    progress.begin(work.records)
    with _executor(study, address) as executor:
        cut = executor.run_trials(work, journal, progress) if work.n_left else False
        if cut:
            progress.say(f"search.time_budget is used up: {work.n_left} of {study.n_trials} trials were not made")
        journal.append(search_entry(study, len(work.records), cut))
        records = work.finish(journal)
        progress.enter("refitting the winners")
        winners = _winners(study, directory, records, kept)
        try:
            pa.parquet.write_table(trace_table(records, study.evaluation.labels), directory.traces)
            directory.folds.mkdir(exist_ok=True)
            for record, model in executor.run_refits(winners) if winners else ():
                if not record.test_scores and not study.findings.untrusted:
                    save_model(model, directory.model)
                if record.feature_scores is not None:
                    table = _fold_table(study, record.feature_scores)
                    pa.csv.write_csv(table, directory.fold_table(record.fold))
                journal.append(refit_entry(study, directory, record))
        except OSError as error:
            raise StudyError(f"{directory.path} cannot be written: {error.strerror}.") from error


def _executor(study: Study, address: str | None) -> Executor:
    if study.config.search.executor == "serial":
        return SerialExecutor(study)
    # Ray is imported once everything is checked, for it takes seconds.
    from raysel.distributed.executor import RayExecutor  # noqa: PLC0415

    return RayExecutor(study, address)


def _winners(
    study: Study, directory: StudyDirectory, records: list[TrialRecord], kept: StoredStudy | None
) -> list[tuple[Any, TrialRecord]]:
    """Each outer fold with its winner, but for those whose refit an earlier run has left."""
    complexity_key, found = study.complexity_key(records), []
    for fold in study.plan.folds:
        winner = select_winner(records, fold.name, complexity_key)
        entry = kept.refits.get(fold.name) if kept else None
        files = [directory.fold_table(fold.name)] if study.findings.ranks else []
        files += [] if len(fold.test) or study.findings.untrusted else [directory.model]
        if entry is None or entry["trial"] != winner.id or not all(file.exists() for file in files):
            found.append((fold, winner))
    return found


def _fold_table(study: Study, feature_scores: list[float]) -> pa.Table:
    scores = np.array(feature_scores)
    rank = selection_ranks(np.where(study.dataset.constant, 0.0, scores))
    order = np.argsort(rank, kind="stable")
    columns = {
        "feature": np.array(study.dataset.feature_names),
        **study.dataset.layout.coordinates(),
        "score": scores,
        "rank": rank,
    }
    return pa.table({name: values[order] for name, values in columns.items()})
