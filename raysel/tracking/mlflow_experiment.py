"""Experiment of an MLflow store: its runs created, found and logged within MLflow's limits."""

from __future__ import annotations

import getpass
import json
import math
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow import MlflowException
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag, ViewType
from mlflow.tracking import MlflowClient

from raysel.core.printing import escaped
from raysel.tracking.mlflow_store import tables_lock
from raysel.tracking.mlflow_view import RunView

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines a run
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # long, because the upload runs in the background

#: Tag of a run that MLflow shows below another one: the id of that run.
PARENT = "mlflow.parentRunId"

#: Makes MLflow show the pages for training runs instead of those for language models.
_KIND = {"mlflow.experimentKind": "custom_model_development"}
_BATCH = 1000  # MLflow's own limits
_PARAM_LENGTH = 6000
_NAME_LENGTH = 250
_DATASET_LENGTH = 500


class MLflowExperiment:
    """One experiment of an MLflow store; created if it does not exist, restored if it was deleted."""

    def __init__(self, uri: str, name: str) -> None:
        with tables_lock(uri) as self.notice:
            self.client = MlflowClient(uri)
            self.tags: dict[str, str] = {}
            self.id = self._find(name)

    def search(self, filter_string: str) -> Iterable[Run]:
        """Yield the active runs of the experiment that match a filter, newest first."""
        token = None
        while True:
            page = self.client.search_runs(
                [self.id], filter_string, run_view_type=ViewType.ACTIVE_ONLY, max_results=1000, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def create_run(self, name: str, started: float, tags: Mapping[str, str]) -> str:
        """Create a run and return its id."""
        source = {"mlflow.source.name": "raysel.tune", "mlflow.user": _user()}
        run = self.client.create_run(self.id, int(started * 1000), {**tags, **source}, escaped(name)[:_NAME_LENGTH])
        return str(run.info.run_id)

    def log(
        self,
        run_id: str,
        view: RunView,
        model_id: str | None = None,
        data: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Log the metrics, parameters and tags of a run; metrics have four digits, but objectives by iteration all."""
        started, ended = int(view.started * 1000), int(view.ended * 1000)
        values = {key: math.nan if value is None else _readable(value) for key, value in view.metrics.items()}
        keys = allowed_keys([*values, *view.curves, *view.by_number])
        points = [Metric(keys[name], value, ended, 0, model_id, *data) for name, value in values.items()]
        for name, curve in view.curves.items():
            step = (ended - started) / len(curve)
            exact = name.startswith("objective")  # whose last digits tell whether it still falls
            shown = curve if exact else [_readable(value) for value in curve]
            points += [Metric(keys[name], value, started + int(step * (i + 1)), i) for i, value in enumerate(shown)]
        for name, by_number in view.by_number.items():
            points += [Metric(keys[name], _readable(value), ended, number) for number, value in by_number.items()]
        params = [Param(key, logged_param(value)) for key, value in with_allowed_keys(view.params).items()]
        tags = [RunTag(key, escaped(value)[-_PARAM_LENGTH:]) for key, value in view.tags.items()]
        # As much as possible in one request: requests are slow whatever their size.
        room = _BATCH - len(params) - len(tags)
        self.client.log_batch(run_id, points[:room], params, tags, synchronous=True)
        for start in range(room, len(points), _BATCH):
            self.client.log_batch(run_id, points[start : start + _BATCH], synchronous=True)

    def log_artifacts(self, run_id: str, paths: Sequence[Path]) -> None:
        """Upload files to a run."""
        for path in paths:
            self.client.log_artifact(run_id, str(path))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the experiment; those that it has already cost no request."""
        for key, value in tags.items():
            if self.tags.get(key) != value:
                self.client.set_experiment_tag(self.id, key, value)
                self.tags[key] = value

    def log_dataset(
        self, run_id: str, name: str, digest: str, source: Mapping[str, str], shape: tuple[int, int]
    ) -> None:
        """Link a run to the data set that it is fitted on, of which nothing is copied; a run is linked once."""
        inputs = self.client.get_run(run_id).inputs
        if any(linked.dataset.digest == digest for linked in (inputs.dataset_inputs if inputs else [])):
            return
        n_samples, n_features = shape
        tensor = {"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, n_features]}}
        dataset = Dataset(
            escaped(name)[:_DATASET_LENGTH],
            digest,
            "local",
            json.dumps(dict(source)),
            json.dumps({"mlflow_tensorspec": {"features": json.dumps([tensor]), "targets": None}}),
            json.dumps({"num_rows": n_samples, "num_elements": n_samples * n_features}),
        )
        self.client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])])

    def _find(self, name: str) -> str:
        experiment = self.client.get_experiment_by_name(name)
        if experiment is None:
            try:
                self.tags = dict(_KIND)
                return self.client.create_experiment(name, tags=_KIND)
            except MlflowException:  # another study may have created it meanwhile
                experiment = self.client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        self.tags = dict(experiment.tags)
        if experiment.lifecycle_stage == "deleted":
            self.client.restore_experiment(experiment.experiment_id)
        return experiment.experiment_id


def allowed_keys(names: Iterable[str]) -> dict[str, str]:
    """Find a key that MLflow accepts for each name of a parameter or metric."""
    names = list(dict.fromkeys(names))
    near = {name: _near(name) for name in names}
    keys = {name: name for name in names if near[name] == name}
    taken = set(keys)
    for name in names:
        if name not in keys:
            key, count = near[name], 1
            while key in taken:
                count += 1
                key = f"{near[name][: _NAME_LENGTH - 10]}_{count}"
            keys[name] = key
            taken.add(key)
    return keys


def with_allowed_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the keys that MLflow accepts for their names."""
    keys = allowed_keys(values)
    return {keys[name]: value for name, value in values.items()}


def _near(name: str) -> str:
    key = re.sub(r"[^\w\-. :/]", "_", name)[:_NAME_LENGTH]
    if posixpath.normpath(key) != key or key == "." or key.startswith(("/", "..")):  # MLflow takes a key for a path
        key = f"_{key.replace('/', '_')}"[:_NAME_LENGTH]
    return key


def _readable(value: float) -> float:
    """Round to four digits, because MLflow's tables show all; the journal has the exact value."""
    return value if float(value).is_integer() else float(f"{value:.4g}")


def logged_param(value: Any) -> str:
    """Return a parameter's value as it is logged."""
    return escaped(str(value))[:_PARAM_LENGTH]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, e.g. in a container
        return str(os.getuid())
