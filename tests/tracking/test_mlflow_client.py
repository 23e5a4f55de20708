"""Uploads by MLflow's client: what people delete and restore between them, failures midway, the
folder of a model.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

import raysel
from raysel.core.errors import DataError
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import last_study
from raysel.tracking.journal_upload import tracking_status, upload_study


@pytest.fixture
def uri(tmp_path, monkeypatch):
    """A new store, and MLflow's files beside it."""
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/mlflow.db"


@pytest.fixture
def directory(finished_study):
    return StudyDirectory(finished_study.study)


@pytest.fixture
def client(uri):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    return MlflowClient(uri)


def runs(client, *, deleted=False):
    """Id of each run by its key, with the number of its metrics' values."""
    from mlflow.entities import ViewType  # noqa: PLC0415

    state = ViewType.DELETED_ONLY if deleted else ViewType.ACTIVE_ONLY
    experiment = client.get_experiment_by_name("few").experiment_id
    found = client.search_runs([experiment], run_view_type=state)
    return {
        run.data.tags["raysel.key"]: (
            run.info.run_id,
            sum(len(client.get_metric_history(run.info.run_id, key)) for key in run.data.metrics),
        )
        for run in found
    }


@pytest.mark.slow
def test_what_is_deleted_and_restored_between_uploads_is_there_once(directory, uri, client):
    assert upload_study(directory, None, uri)
    whole = runs(client)
    assert len(whole) == 10
    for _ in range(2):
        client.delete_experiment(client.get_experiment_by_name("few").experiment_id)
        assert upload_study(directory, None, uri)
        assert runs(client) == whole
        assert runs(client, deleted=True) == {}
    trial = next(key for key in whole if key.startswith("trial"))
    client.delete_run(whole[trial][0])
    assert upload_study(directory, None, uri)
    again = runs(client)
    assert {key for key in whole if again[key] != whole[key]} == {trial}
    assert again[trial][1] == whole[trial][1]
    client.restore_run(whole[trial][0])  # by hand: two runs of one trial, of which one stays
    assert upload_study(directory, None, uri)
    assert {key: n for key, (_, n) in runs(client).items()} == {
        key: n for key, (_, n) in whole.items()
    }


def test_a_failure_midway_leaves_no_trial_twice(directory, uri, client, monkeypatch):
    from raysel.tracking.mlflow_runs import StudyRuns  # noqa: PLC0415

    close = StudyRuns._close_run
    failures = iter(["the connection was reset"])

    def fail(self, key, *arguments):
        if key.startswith("trial") and (text := next(failures, "")):
            raise ConnectionError(text)
        close(self, key, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(StudyRuns, "_close_run", fail)
        assert not upload_study(directory, None, uri)
    assert "the connection was reset" in tracking_status(directory)["error"]
    before = runs(client)
    assert len(before) == 2  # of the study and of the trial, whose values are there
    assert upload_study(directory, None, uri)
    after = runs(client)
    assert len(after) == 10
    assert {key: after[key] for key in before if key.startswith("trial")} == {
        key: value for key, value in before.items() if key.startswith("trial")
    }


def test_the_folder_of_a_model_is_read_by_mlflow_and_trusted_by_raysel(directory, tmp_path):
    import mlflow.sklearn  # noqa: PLC0415

    from raysel.tracking.mlflow_model import write_model_folder  # noqa: PLC0415

    study = last_study(directory.journal)
    write_model_folder(tmp_path / "model", directory.model, directory.model_example, study)
    X = np.load(directory.model_example)
    model = raysel.load_model(tmp_path / "model" / "model.skops")
    there = mlflow.sklearn.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(there.predict(X), model.predict(X))
    described = yaml.safe_load((tmp_path / "model" / "MLmodel").read_text())
    assert described["metadata"] == {"raysel_study": study.id, "data_hash": study.data_hash}
    assert described["signature"]["outputs"] is None  # no model is run
    names = [column["name"] for column in json.loads(described["signature"]["inputs"])]
    assert names == list(study.feature_names)
    requirements = (tmp_path / "model" / "requirements.txt").read_text().split("\n")
    assert {line.partition("==")[0] for line in requirements} >= {"mlflow", "raysel", "skops"}
    (tmp_path / "model" / "model.skops.hmac").unlink()
    with pytest.raises(DataError):
        raysel.load_model(tmp_path / "model" / "model.skops")
