"""What raysel asks of an MLflow store, and its answers in plain values, by MLflow's own client."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# MLflow reads them when it is imported, or later.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines a run
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # long: the upload is in the background

from mlflow import MlflowException
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Param,
    Run,
    RunTag,
    ViewType,
)
from mlflow.tracking import MlflowClient

from raysel.tracking.mlflow_notes import NOTE
from raysel.tracking.mlflow_store import STORE_LOST, store_file

_BATCH = 1000  # MLflow's own limit
#: Seconds to wait for another program's transaction.
_TIMEOUT = 20.0


class Point(NamedTuple):
    """Value of a metric at a step; `timestamp` in milliseconds since the epoch."""

    key: str
    value: float
    timestamp: int
    step: int = 0


class RunData(NamedTuple):
    """What is logged to a run at once; its metrics may name a model and a data set."""

    points: Sequence[Point]
    params: Mapping[str, str]
    tags: Mapping[str, str]
    model_id: str | None = None
    dataset: tuple[str | None, str | None] = (None, None)


class DatasetEntry(NamedTuple):
    """Data set as MLflow lists it; `source`, `schema` and `profile` are JSON."""

    name: str
    digest: str
    source: str
    schema: str
    profile: str


@dataclass(frozen=True)
class StoredRun:
    """Run as a store has it."""

    id: str
    status: str
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)


class Client:
    """Access to one store; times are in milliseconds since the epoch."""

    def __init__(self, uri: str) -> None:
        self._store = store_file(uri)
        if self._store is not None:
            _check_unlocked(self._store)
        self._client = MlflowClient(uri)
        self._id_of_store: tuple[int, int] | None = None
        #: What a user must know of the experiment that was opened; empty if there is nothing.
        self.notice = ""

    def experiment(self, name: str, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return id and tags of an experiment, created or restored if need be."""
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return self._client.create_experiment(name, tags=dict(tags)), dict(tags)
            except MlflowException:  # another study may have created it meanwhile
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        self._check_store()
        if self._store is not None and found.artifact_location.startswith("/"):
            self.notice = _note_on_files(name, Path(found.artifact_location), self._store)
        return found.experiment_id, dict(found.tags)

    def experiment_tags(self, experiment_id: str) -> dict[str, str]:
        """Return the tags of an experiment."""
        return dict(self._client.get_experiment(experiment_id).tags)

    def tag_experiment(self, experiment_id: str, key: str, value: str) -> None:
        """Set a tag of an experiment."""
        self._client.set_experiment_tag(experiment_id, key, value)

    def runs(self, experiment_id: str, tag: str, value: str) -> Iterable[StoredRun]:
        """Yield the runs of an experiment with a tag, newest first, without deleted ones."""
        token = None
        while True:
            page = self._client.search_runs(
                [experiment_id],
                f"tags.`{tag}` = '{value}'",
                run_view_type=ViewType.ACTIVE_ONLY,
                max_results=1000,
                page_token=token,
            )
            yield from map(_stored, page)
            token = page.token
            if not token:
                return

    def run(self, run_id: str) -> StoredRun:
        """Return a run."""
        return _stored(self._client.get_run(run_id))

    def create_run(
        self, experiment_id: str, name: str, started: int, tags: Mapping[str, str]
    ) -> str:
        """Create a run and return its id."""
        self._check_store()
        return str(self._client.create_run(experiment_id, started, dict(tags), name).info.run_id)

    def update_run(self, run_id: str, status: str, ended: int | None = None) -> None:
        """Set the status of a run, and its end if it is given."""
        if ended is None:
            self._client.update_run(run_id, status=status)
        else:
            self._client.set_terminated(run_id, status, ended)

    def tag_run(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run."""
        for key, value in tags.items():
            self._client.set_tag(run_id, key, value)

    def delete_run(self, run_id: str) -> None:
        """Mark a run as deleted."""
        self._client.delete_run(run_id)

    def log(self, run_id: str, data: RunData) -> None:
        """Log metrics, parameters and tags of a run."""
        self._check_store()
        metrics = [Metric(*point, data.model_id, *data.dataset) for point in data.points]
        params, tags = (
            [Param(*item) for item in data.params.items()],
            [RunTag(*item) for item in data.tags.items()],
        )
        # As much as possible in one request: requests are slow whatever their size.
        room = _BATCH - len(params) - len(tags)
        self._client.log_batch(run_id, metrics[:room], params, tags, synchronous=True)
        for start in range(room, len(metrics), _BATCH):
            self._client.log_batch(run_id, metrics[start : start + _BATCH], synchronous=True)

    def log_files(self, run_id: str, paths: Iterable[Path]) -> None:
        """Upload files to a run; MLflow would write them for a run that was deleted, too."""
        if self._client.get_run(run_id).info.lifecycle_stage == "deleted":
            raise LookupError(f"the run {run_id} was deleted")
        for path in paths:
            self._client.log_artifact(run_id, str(path))

    def link_dataset(self, run_id: str, dataset: DatasetEntry) -> None:
        """Link a run to the data set that its model is trained on; a run is linked once."""
        inputs = self._client.get_run(run_id).inputs
        linked = getattr(inputs, "dataset_inputs", ())  # None where there is none
        if any(each.dataset.digest == dataset.digest for each in linked):
            return
        name, digest, *described = dataset
        tags = [InputTag("mlflow.data.context", "training")]
        self._client.log_inputs(
            run_id, [DatasetInput(Dataset(name, digest, "local", *described), tags)]
        )

    def find_model(self, experiment_id: str, tags: Mapping[str, str]) -> tuple[str, bool] | None:
        """Return the id of a logged model with these tags, and whether it is complete; or None."""
        wanted = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        models = list(self._client.search_logged_models([experiment_id], wanted))
        if not models:
            return None
        return str(models[0].model_id), models[0].status == LoggedModelStatus.READY

    def create_model(
        self,
        experiment_id: str,
        name: str,
        run_id: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
    ) -> str:
        """Create a logged model, whose files follow, and return its id."""
        model = self._client.create_logged_model(
            experiment_id, name, run_id, dict(tags), dict(params)
        )
        return str(model.model_id)

    def complete_model(self, model_id: str, folder: Path) -> None:
        """Upload the files of a logged model and mark it as complete."""
        self._client.log_model_artifacts(model_id, str(folder))
        self._client.finalize_logged_model(model_id, LoggedModelStatus.READY)

    def link_model(self, run_id: str, model_id: str) -> None:
        """Link a run to the logged model that it made; a run is linked once."""
        outputs = self._client.get_run(run_id).outputs
        linked = getattr(outputs, "model_outputs", ())  # None where there is none
        if model_id not in [each.model_id for each in linked]:
            self._client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])

    def tag_model(self, model_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a logged model."""
        self._client.set_logged_model_tags(model_id, dict(tags))

    def _check_store(self) -> None:
        """Raise LookupError if the store's file is another than before."""
        if self._store is None:
            return
        try:
            found = self._store.stat()
        except OSError as error:
            raise LookupError(STORE_LOST) from error
        now = found.st_dev, found.st_ino
        self._id_of_store = self._id_of_store or now
        if now != self._id_of_store:
            raise LookupError(STORE_LOST)


def _stored(run: Run) -> StoredRun:
    return StoredRun(run.info.run_id, run.info.status, dict(run.data.tags), dict(run.data.params))


def holds_only_others(uri: str, name: str, study_id: str) -> bool:
    """Return whether an experiment is described or has runs, and none of a study."""
    store = store_file(uri)
    if store is not None and not store.exists():  # which MLflow would make
        return False
    try:
        client = MlflowClient(uri)
        found = client.get_experiment_by_name(name)
        if found is None:
            return False
        experiment = [found.experiment_id]
        plain = re.fullmatch(r"[\w-]+", study_id)  # a stranger's may be any text
        for tag in ("raysel.study", "raysel.comparison") if plain else ():
            if client.search_runs(experiment, f"tags.`{tag}` = '{study_id}'", max_results=1):
                return False
        others = client.search_runs(experiment, max_results=1)
    except Exception:  # servers and databases raise many kinds of errors, which the upload names  # noqa: BLE001
        return False
    return bool(others or NOTE in found.tags)


def _check_unlocked(store: Path) -> None:
    """Raise the error of a locked database, for which MLflow would wait minutes."""
    if not store.is_file():
        return
    with closing(sqlite3.connect(store, timeout=_TIMEOUT, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise  # MLflow meets the others again, and says what they mean


def _note_on_files(experiment: str, place: Path, store: Path) -> str:
    """Say where files go if a store was copied; raise LookupError if it was moved.

    MLflow keeps the absolute path of an experiment's files in the store.
    """
    other = "give it another experiment by --set tracking.experiment=NAME"
    if not place.parent.parent.exists():
        raise LookupError(f"keeps files in {place} (experiment {experiment})")
    beside = store.parent / "mlruns" / place.name
    if place != beside and beside.exists():
        return (
            f"MLflow's store {store} was copied: files of the experiment {experiment} still go to"
            f" {place}. To keep a study's files here, {other}"
        )
    return ""
