"""An MLflow store that MLflow's own client is asked for: a server, or any database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

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

from raysel.tracking.mlflow_client import DatasetEntry, RunData, StoredRun
from raysel.tracking.mlflow_notes import NOTE

_BATCH = 1000  # MLflow's own limit


class ServerClient:
    """`raysel.tracking.mlflow_client.Client` by MLflow's client."""

    at_once = 1  # a request each, so that the upload is seen to go on

    notice = ""

    def __init__(self, uri: str) -> None:
        self._client = MlflowClient(uri)

    def transaction(self) -> AbstractContextManager[object]:
        return nullcontext()

    def experiment(self, name: str, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
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
        return found.experiment_id, dict(found.tags)

    def experiment_tags(self, experiment_id: str) -> dict[str, str]:
        return dict(self._client.get_experiment(experiment_id).tags)

    def tag_experiment(self, experiment_id: str, key: str, value: str) -> None:
        self._client.set_experiment_tag(experiment_id, key, value)

    def runs(self, experiment_id: str, tag: str, value: str) -> Iterable[StoredRun]:
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
        return _stored(self._client.get_run(run_id))

    def create_run(
        self, experiment_id: str, name: str, started: int, tags: Mapping[str, str]
    ) -> str:
        return str(self._client.create_run(experiment_id, started, dict(tags), name).info.run_id)

    def update_run(self, run_id: str, status: str, ended: int | None = None) -> None:
        if ended is None:
            self._client.update_run(run_id, status=status)
        else:
            self._client.set_terminated(run_id, status, ended)

    def tag_run(self, run_id: str, tags: Mapping[str, str]) -> None:
        for key, value in tags.items():
            self._client.set_tag(run_id, key, value)

    def delete_run(self, run_id: str) -> None:
        self._client.delete_run(run_id)

    def log(self, run_id: str, data: RunData) -> None:
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

    def log_file(self, run_id: str, path: Path) -> None:
        self._client.log_artifact(run_id, str(path))

    def link_dataset(self, run_id: str, dataset: DatasetEntry) -> None:
        inputs = self._client.get_run(run_id).inputs
        if any(
            linked.dataset.digest == dataset.digest
            for linked in (inputs.dataset_inputs if inputs else [])
        ):
            return
        name, digest, *described = dataset
        tags = [InputTag("mlflow.data.context", "training")]
        self._client.log_inputs(
            run_id, [DatasetInput(Dataset(name, digest, "local", *described), tags)]
        )

    def find_model(self, experiment_id: str, tags: Mapping[str, str]) -> tuple[str, bool] | None:
        wanted = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        models = list(self._client.search_logged_models([experiment_id], wanted))
        return (
            (str(models[0].model_id), models[0].status == LoggedModelStatus.READY)
            if models
            else None
        )

    def create_model(
        self,
        experiment_id: str,
        name: str,
        run_id: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
    ) -> str:
        model = self._client.create_logged_model(
            experiment_id, name, run_id, dict(tags), dict(params)
        )
        return str(model.model_id)

    def complete_model(self, model_id: str, folder: Path) -> None:
        self._client.log_model_artifacts(model_id, str(folder))
        self._client.finalize_logged_model(model_id, LoggedModelStatus.READY)

    def link_model(self, run_id: str, model_id: str) -> None:
        outputs = self._client.get_run(run_id).outputs
        if model_id not in [
            output.model_id for output in (outputs.model_outputs if outputs else [])
        ]:
            self._client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])

    def tag_model(self, model_id: str, tags: Mapping[str, str]) -> None:
        self._client.set_logged_model_tags(model_id, dict(tags))


def _stored(run: Run) -> StoredRun:
    return StoredRun(run.info.run_id, run.info.status, dict(run.data.tags), dict(run.data.params))


def holds_only_others(uri: str, name: str, study_id: str) -> bool:
    """Return whether an experiment is described or has runs, and none of a study or comparison; False if unknown."""
    file = uri.removeprefix("sqlite:///").partition("?")[0]
    if uri.startswith("sqlite:///") and not Path(file).exists():  # which MLflow would make
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
