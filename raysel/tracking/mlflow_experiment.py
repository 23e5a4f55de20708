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

from raysel.core.printing import escaped
from raysel.tracking.mlflow_client import Client, DatasetEntry, Point, RunData, StoredRun
from raysel.tracking.mlflow_store import tables_lock
from raysel.tracking.mlflow_view import RunView

#: Tag of a run that MLflow shows below another one: the id of that run.
PARENT = "mlflow.parentRunId"

#: Makes MLflow show the pages for training runs instead of those for language models.
_KIND = {"mlflow.experimentKind": "custom_model_development"}
_PARAM_LENGTH = 6000  # MLflow's own limits
_NAME_LENGTH = 250
_DATASET_LENGTH = 500


class MLflowExperiment:
    """One experiment of an MLflow store; created or restored if need be."""

    def __init__(self, uri: str, name: str) -> None:
        with tables_lock(uri) as notice:
            self.client = Client(uri)
            self.id, self.tags = self.client.experiment(name, _KIND)
        self.notice = "; ".join(filter(None, [notice, self.client.notice]))

    def search(self, tag: str, value: str) -> Iterable[StoredRun]:
        """Yield the active runs of the experiment with a tag, newest first."""
        return self.client.runs(self.id, tag, value)

    def create_run(self, name: str, started: float, tags: Mapping[str, str]) -> str:
        """Create a run and return its id."""
        source = {"mlflow.source.name": "raysel.tune", "mlflow.user": _user()}
        return self.client.create_run(
            self.id, escaped(name)[:_NAME_LENGTH], int(started * 1000), {**tags, **source}
        )

    def log(
        self,
        run_id: str,
        view: RunView,
        model_id: str | None = None,
        data: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Log metrics, parameters and tags of a run; metrics to four digits, objectives to all."""
        started, ended = int(view.started * 1000), int(view.ended * 1000)
        values = {
            key: math.nan if value is None else _readable(value)
            for key, value in view.metrics.items()
        }
        keys = allowed_keys([*values, *view.curves, *view.by_number])
        points = [Point(keys[name], value, ended) for name, value in values.items()]
        for name, curve in view.curves.items():
            step = (ended - started) / len(curve)
            exact = name.startswith("objective")  # whose last digits tell whether it still falls
            shown = curve if exact else [_readable(value) for value in curve]
            points += [
                Point(keys[name], value, started + int(step * (i + 1)), i)
                for i, value in enumerate(shown)
            ]
        for name, by_number in view.by_number.items():
            points += [
                Point(keys[name], _readable(value), ended, number)
                for number, value in by_number.items()
            ]
        params = {key: logged_param(value) for key, value in with_allowed_keys(view.params).items()}
        tags = {key: escaped(value)[-_PARAM_LENGTH:] for key, value in view.tags.items()}
        self.client.log(run_id, RunData(points, params, tags, model_id, data))

    def log_artifacts(self, run_id: str, paths: Sequence[Path]) -> None:
        """Upload files to a run."""
        self.client.log_files(run_id, paths)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the experiment; those that it has already cost no request."""
        for key, value in tags.items():
            if self.tags.get(key) != value:
                self.client.tag_experiment(self.id, key, value)
                self.tags[key] = value

    def log_dataset(
        self, run_id: str, name: str, digest: str, source: Mapping[str, str], shape: tuple[int, int]
    ) -> None:
        """Link a run, once, to the data set that it is fitted on."""
        n_samples, n_features = shape
        tensor = {"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, n_features]}}
        dataset = DatasetEntry(
            escaped(name)[:_DATASET_LENGTH],
            digest,
            json.dumps(dict(source)),
            json.dumps({"mlflow_tensorspec": {"features": json.dumps([tensor]), "targets": None}}),
            json.dumps({"num_rows": n_samples, "num_elements": n_samples * n_features}),
        )
        self.client.link_dataset(run_id, dataset)


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
    if (
        posixpath.normpath(key) != key or key == "." or key.startswith(("/", ".."))
    ):  # MLflow takes a key for a path
        key = f"_{key.replace('/', '_')}"[:_NAME_LENGTH]
    return key


def _readable(value: float) -> float:
    """Round to four digits, because MLflow's tables show all; the journal has the exact value."""
    if float(value).is_integer():
        return value
    return float(f"{value:.4g}")


def logged_param(value: Any) -> str:
    """Return a parameter's value as it is logged."""
    return escaped(str(value))[:_PARAM_LENGTH]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, e.g. in a container
        return str(os.getuid())
