"""A study from its first file to its last: directory, journal, Ray, results, export."""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console

from raysel import __version__
from raysel.config import dump_config
from raysel.cv.records import RefitRecord
from raysel.cv.traces import trace_table
from raysel.errors import ConfigError, DirectoryError, StudyError
from raysel.metrics.ranks import ranks
from raysel.ranking import save_model
from raysel.search.outcome import EXPORTED, Outcome
from raysel.search.study import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.files import write_atomically, write_json_atomically
from raysel.tracking.follower import Follower
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress

_VERSIONS_OF = ("ray", "mlflow", "numpy", "scipy", "scikit-learn", "pyarrow")


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
    uri = study.config.tracking.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
    if uri.startswith("sqlite:///") and uri != "sqlite:///:memory:":
        return f"sqlite:///{Path(uri.removeprefix('sqlite:///')).absolute()}"
    return uri


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
    ConfigError
        If a trial needs more CPUs than this machine has.
    DirectoryError
        If the directory holds a study, or nothing can be written there. Neither has started Ray.
    StudyError
        If Ray cannot be reached, no configuration has a score, or a refit or the disk fails.
    """
    wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
    if address is None and wanted > there:
        raise ConfigError(f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine.")
    needed = 2**20 + 64 * len(study.configurations) * study.n_inner * 10
    directory, hold = StudyDirectory.create(path, needed)
    uri = tracking_uri(study)
    begun = _describe(study, uri)
    with hold, _begin(study, directory, begun) as journal:
        follower = Follower(directory)
        progress = Progress(directory.progress, study.n_trials, study.config.evaluation.metric, console)
        with progress:
            try:
                _compute(study, directory, journal, address, progress)
                progress.enter("writing the ranking")
                outcome = Outcome.read(directory)
                outcome.export(directory.ranking)
                journal.append(_end("finished", begun["started"], outcome))
            except BaseException as error:
                status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                with suppress(StudyError):  # the disk may be what failed
                    journal.append(_end(status, begun["started"]))
                progress.enter("telling MLflow the rest")
                follower.finish(patience=5)
                raise
            progress.enter("telling MLflow the rest")
            return Finished(outcome, follower.finish(), uri)


def _begin(study: Study, directory: StudyDirectory, begun: Mapping[str, Any]) -> Journal:
    """Write what is known before anything is computed: all of it, or nothing."""
    try:
        write_atomically(directory.config, dump_config(study.config))
        write_json_atomically(directory.plan, study.plan.to_json())
        journal = Journal(directory.journal)
        journal.append(dict(begun))
    except (OSError, StudyError) as error:
        for file in (directory.config, directory.plan, directory.journal):
            file.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise DirectoryError(
            f"{directory.path} cannot be written: {reason}. Choose another directory with --output."
        ) from error
    return journal


def _compute(
    study: Study, directory: StudyDirectory, journal: Journal, address: str | None, progress: Progress
) -> None:
    progress.enter("starting Ray")
    from raysel.search.runtime import ray_session  # noqa: PLC0415 - Ray only once all is checked

    with ray_session(address):
        from raysel.search.engine import run_study  # noqa: PLC0415

        records, refits = run_study(study, journal, progress)
    try:
        pa.parquet.write_table(trace_table(records, study.evaluation.labels), directory.traces)
        save_model(refits[-1].model, directory.model)
        directory.folds.mkdir(exist_ok=True)
        for refit in refits:
            table = _fold_table(study, refit.record)
            pa.csv.write_csv(table, directory.folds / f"{refit.record.fold}.csv")
    except OSError as error:
        raise StudyError(f"{directory.path} cannot be written: {error.strerror}.") from error
    for refit in refits:
        journal.append(_refit_entry(study, directory, refit.record))


def _describe(study: Study, uri: str) -> dict[str, Any]:
    """The journal's first record: what the study is."""
    config = study.config.to_dict()
    data = study.dataset
    hashes = {"config_hash": study.config.hash, "data_hash": data.content_hash}
    versions = {"raysel": __version__, "python": platform.python_version()}
    return {
        "kind": "study",
        "id": uuid.uuid4().hex,
        "name": study.config.name,
        "experiment": study.config.tracking.experiment or study.config.name,
        "uri": uri,
        "started": time.time(),
        "config": config,
        **hashes,
        "versions": versions | {name: version(name) for name in _VERSIONS_OF},
        "params": dict(_flat(config)) | hashes | {"raysel_version": __version__},
        "metric": study.config.evaluation.metric,
        "folds": [fold.name for fold in study.plan.folds],
        "n_samples": data.n_samples,
        "n_trials": len(study.configurations),
        "layout": data.layout.to_json(),
        "feature_names": list(data.feature_names),
        "constant": np.flatnonzero(np.ptp(data.X, axis=0) == 0).tolist(),
    }


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _refit_entry(study: Study, directory: StudyDirectory, record: RefitRecord) -> dict[str, Any]:
    metric = study.config.evaluation.metric
    metrics = {f"inner_{metric}": record.inner_score}
    if record.test_score is not None:
        metrics[f"test_{metric}"] = record.test_score
        scores = zip(study.evaluation.labels, record.test_scores, strict=False)
        metrics |= {f"test_{metric}_{label}": score for label, score in scores}
    artifacts = [str((directory.folds / f"{record.fold}.csv").relative_to(directory.path))]
    return {
        "kind": "refit",
        **record.to_json(),
        "metrics": metrics,
        "curves": {"objective": record.objective},
        "artifacts": artifacts,
    }


def _fold_table(study: Study, record: RefitRecord) -> pa.Table:
    scores = np.array(record.feature_scores)
    rank = ranks(scores)
    order = np.argsort(rank)
    columns = {
        "feature": np.array(study.dataset.feature_names),
        **study.dataset.layout.coordinates(),
        "score": scores,
        "rank": rank,
    }
    return pa.table({name: values[order] for name, values in columns.items()})


def _end(status: str, started: float, outcome: Outcome | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": "end", "status": status, "started": started, "ended": time.time()}
    if outcome is None:
        return entry | {"metrics": {}, "artifacts": [], "model_artifacts": [], "note": f"The study was {status}."}
    metric, directory = outcome.result.metric, outcome.directory
    summary = outcome.result.summary()
    stability = outcome.ranking().stability.value
    metrics = {
        f"test_{metric}": summary["test_mean"],
        f"test_{metric}_std": summary["test_std"],
        f"inner_{metric}": float(np.mean(summary["inner"])),
        **({"stability": stability} if np.isfinite(stability) else {}),
    }
    own = (directory.config, directory.plan, directory.traces)
    exported = [directory.ranking / name for name in EXPORTED]
    return entry | {
        "metrics": metrics,
        "note": outcome.markdown(),
        "artifacts": [str(path.relative_to(directory.path)) for path in (*own, directory.ranking / "ranking.png")],
        "model_artifacts": [str(path.relative_to(directory.path)) for path in exported],
    }
