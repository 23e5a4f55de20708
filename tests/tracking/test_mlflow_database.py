"""Rows and files that raysel writes without MLflow: those that MLflow's own client and code write."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
import yaml
from sklearn.pipeline import make_pipeline

from raysel.base.model_types import trusted_types
from raysel.base.models import load_model, save_model, types_within
from raysel.baselines.univariate_filters import FisherScore
from raysel.data.scaling import UnitScaler
from raysel.evaluation.records import TrialRecord
from raysel.tracking import journal_upload, mlflow_database, mlflow_store
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records
from raysel.tracking.journal_upload import tracking_status, upload_study
from raysel.tracking.mlflow_client import Point, RunData
from raysel.tracking.mlflow_database import DatabaseClient
from raysel.tracking.mlflow_model_files import write_model_folder
from raysel.tracking.mlflow_runs import StudyRuns
from raysel.tracking.records import StudyRecord

#: Columns with the time at which a row was written.
TIMES = re.compile("creation|last_update|deleted_time")
#: Ids, and the hash of a description, which holds ids.
ID = re.compile(r"(m-)?[0-9a-f]{32}|(?<=')[0-9a-f]{16}(?= \d)")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MLflow puts the files of new experiments


def rows_of(path):
    """All rows of a store by table, sorted, with what a run is in place of its id."""
    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute("SELECT run_uuid, value FROM tags WHERE key = 'raysel.key'")
        known = {run: key.replace(":", " ") for run, key in keys}
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        found = {}
        for table in tables:
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            found[table] = sorted(
                repr(
                    [(n, value) for n, value in zip(names, row, strict=True) if not TIMES.search(n)]
                )
                for row in cursor
            )
    return {
        table: Counter(ID.sub(lambda match: known.get(match[0], "id"), row) for row in rows)
        for table, rows in found.items()
    }


def test_a_study_by_sql_is_row_by_row_that_of_mlflows_client(finished_study, tmp_path, monkeypatch):
    directory = StudyDirectory(finished_study.study)
    names = {"register": "few digits"}
    for _ in range(2):  # the second time nothing is added
        assert upload_study(directory, None, "sqlite:///sql.db", names=names)
    files = Counter(path.name for path in tmp_path.rglob("artifacts/*"))
    monkeypatch.setattr(DatabaseClient, "of", lambda *_: None)
    assert upload_study(directory, None, "sqlite:///client.db", names=names)
    by_sql, by_client = rows_of(tmp_path / "sql.db"), rows_of(tmp_path / "client.db")
    assert by_sql == by_client
    assert sum(by_sql["runs"].values()) == 10
    assert sum(by_sql["logged_model_metrics"].values()) > 0
    assert files["MLmodel"] == 1
    assert (
        Counter(path.name for path in tmp_path.rglob("artifacts/*")) == files + files
    )  # the client's lie beside them


def test_a_step_that_is_logged_again_is_there_once_and_the_last_step_is_the_runs_figure(tmp_path):
    """Rows of the two tables of metrics after overlapping calls, as MLflow's client leaves them."""
    from mlflow.entities import Metric  # noqa: PLC0415 - takes seconds
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.create_experiment("few")
    ours = DatabaseClient.of(f"sqlite:///{tmp_path}/mlflow.db", "few")
    assert ours.experiment("few", {}) == (experiment, {})
    batches = [
        [
            ("a", 2.0, 10, 1),
            ("a", float("nan"), 20, 2),
            ("b", float("inf"), 5, 0),
            ("a", 7.0, 10, 1),
        ],
        [("a", 2.0, 10, 1), ("a", 3.0, 20, 2), ("a", -1.0, 30, 0), ("b", float("-inf"), 5, 0)],
    ]
    by_sql = ours.create_run(experiment, "one", 1, {"mlflow.user": "me"})
    by_client = client.create_run(experiment, 1, {"mlflow.user": "me"}, "one").info.run_id
    for batch in batches:
        ours.log(by_sql, RunData([Point(*values) for values in batch], {"p": "1"}, {"t": "2"}))
        client.log_batch(by_client, [Metric(*values) for values in batch])
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        for table in ("metrics", "latest_metrics"):
            text = f"SELECT key, value, timestamp, step, is_nan FROM {table} WHERE run_uuid = ? ORDER BY 1, 2, 3, 4"
            assert (
                connection.execute(text, (by_sql,)).fetchall()
                == connection.execute(text, (by_client,)).fetchall()
            )
    client.delete_run(by_sql)
    with pytest.raises(LookupError, match=r"the run .* was deleted"):
        ours.log(by_sql, RunData([], {"q": "1"}, {}))


def test_trials_of_one_transaction_are_all_there_or_none(finished_study, tmp_path, monkeypatch):
    """A failure in the middle leaves the store as it was, and the next attempt logs each trial once."""
    directory = StudyDirectory(finished_study.study)
    assert upload_study(directory, None, "sqlite:///whole.db")
    logged = StudyRuns._log_fit
    failures = iter(["database is locked"])

    def fail(self, record):
        logged(self, record)
        if isinstance(record, TrialRecord) and (text := next(failures, "")):
            raise sqlite3.OperationalError(text)

    monkeypatch.setattr(StudyRuns, "_log_fit", fail)
    monkeypatch.setattr(journal_upload, "LOCKED_SECONDS", 0.0)
    assert not upload_study(directory, None, "sqlite:///other.db")
    assert tracking_status(directory)["locked"]
    assert sum(rows_of(tmp_path / "other.db")["runs"].values()) == 1  # the study's own
    assert upload_study(directory, None, "sqlite:///other.db")
    assert rows_of(tmp_path / "other.db") == rows_of(tmp_path / "whole.db")


@pytest.mark.parametrize("named", [True, False])
def test_the_folder_of_a_model_is_that_of_mlflows_own_code(finished_study, tmp_path, named):
    import mlflow.sklearn  # noqa: PLC0415 - takes seconds
    import pandas as pd  # noqa: PLC0415
    from mlflow.models import infer_signature  # noqa: PLC0415

    directory = StudyDirectory(finished_study.study)
    study = next(
        record for record in read_records(directory.journal) if isinstance(record, StudyRecord)
    )
    samples = np.load(directory.model_example)
    file = directory.model
    if not named:
        X = np.random.default_rng(0).normal(size=(30, samples.shape[1]))
        file = save_model(
            make_pipeline(UnitScaler(), FisherScore()).fit(X, np.arange(30) % 2),
            tmp_path / "own.skops",
        )
        samples[0, 0] = np.nan
    np.save(tmp_path / "example.npy", samples)
    write_model_folder(tmp_path / "ours", file, tmp_path / "example.npy", study)
    model = load_model(file)
    example = pd.DataFrame(samples, columns=list(study.feature_names)) if named else samples
    ours = yaml.safe_load((tmp_path / "ours" / "MLmodel").read_text())
    requirements = (tmp_path / "ours" / "requirements.txt").read_text().split("\n")
    mlflow.sklearn.save_model(
        model,
        tmp_path / "theirs",
        serialization_format="skops",
        skops_trusted_types=sorted(types_within(file) & trusted_types()),
        signature=infer_signature(example),
        input_example=example,
        pip_requirements=requirements,
        metadata={"raysel_study": study.id, "data_hash": study.data_hash},
    )
    theirs = yaml.safe_load((tmp_path / "theirs" / "MLmodel").read_text())
    for described in (ours, theirs):
        described["signature"]["inputs"] = json.loads(described["signature"]["inputs"])
        for key in ("model_uuid", "utc_time_created", "model_size_bytes"):
            assert described.pop(key)
    left_out = {key: value for key, value in theirs.items() if key not in ours}
    assert not any(left_out.values())  # null or false
    assert ours == {key: theirs[key] for key in ours}
    names, others = ({p.name for p in (tmp_path / at).iterdir()} for at in ("ours", "theirs"))
    assert names == others | {"model.skops.hmac"}
    for name in (
        "conda.yaml",
        "python_env.yaml",
        "input_example.json",
        "serving_input_example.json",
    ):
        one, other = ((tmp_path / side / name).read_text() for side in ("ours", "theirs"))
        assert yaml.safe_load(one) == yaml.safe_load(other), name
    assert requirements == (tmp_path / "theirs" / "requirements.txt").read_text().split("\n")


def test_migrations_that_are_written_otherwise_leave_the_store_to_mlflows_client(
    tmp_path, monkeypatch
):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    MlflowClient(f"sqlite:///{tmp_path}/mlflow.db").search_experiments()
    assert DatabaseClient.of(f"sqlite:///{tmp_path}/mlflow.db", "few")
    monkeypatch.setattr(mlflow_database, "schema_version", lambda: None)
    assert DatabaseClient.of(f"sqlite:///{tmp_path}/mlflow.db", "few") is None
    monkeypatch.setattr(mlflow_store, "schema_version", lambda: None)
    assert not mlflow_store._is_half_made(tmp_path / "mlflow.db")
