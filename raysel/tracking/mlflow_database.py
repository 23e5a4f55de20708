"""An MLflow store in a sqlite file whose tables are known: many runs in a transaction, and MLflow is not imported."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import time
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from raysel.core.files import atomic_write
from raysel.tracking.mlflow_client import DatasetEntry, RunData, StoredRun
from raysel.tracking.mlflow_store import VERSION, schema_version

#: Columns of the tables that are written; where there are others, MLflow's client is asked.
_COLUMNS = {
    "experiments": "experiment_id name artifact_location lifecycle_stage creation_time last_update_time workspace",
    "experiment_tags": "key value experiment_id",
    "runs": "run_uuid name source_type source_name entry_point_name user_id status start_time end_time source_version "
    "lifecycle_stage artifact_uri experiment_id deleted_time",
    "tags": "key value run_uuid",
    "params": "key value run_uuid",
    "metrics": "key value timestamp run_uuid step is_nan",
    "latest_metrics": "key value timestamp step is_nan run_uuid",
    "datasets": "dataset_uuid experiment_id name digest dataset_source_type dataset_source dataset_schema "
    "dataset_profile",
    "inputs": "input_uuid source_type source_id destination_type destination_id step",
    "input_tags": "input_uuid name value",
    "logged_models": "model_id experiment_id name artifact_location creation_timestamp_ms last_updated_timestamp_ms "
    "status lifecycle_stage model_type source_run_id status_message",
    "logged_model_params": "model_id experiment_id param_key param_value",
    "logged_model_tags": "model_id experiment_id tag_key tag_value",
    "logged_model_metrics": "model_id metric_name metric_timestamp_ms metric_step metric_value experiment_id run_id "
    "dataset_uuid dataset_name dataset_digest",
}
#: Variables that make MLflow write other rows.
_OTHER_ROWS = ("MLFLOW_ENABLE_WORKSPACES", "_MLFLOW_SERVER_ARTIFACT_ROOT")
#: Seconds to wait for another program's transaction, as MLflow does.
_TIMEOUT = 20
_PENDING, _READY = 1, 2  # status of a logged model
_LONGEST_TAG = 8000


class DatabaseClient:
    """`raysel.tracking.mlflow_client.Client` by SQL; writes the rows that MLflow's client would write."""

    at_once = 50  # some hundredths of a second, for which other programs cannot write

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._within, self._path, self.notice = connection, False, path, ""
        weakref.finalize(self, connection.close)

    @classmethod
    def of(cls, uri: str, experiment: str) -> Self | None:
        """Return a client of a store, unless its tables are others or the files of the experiment lie elsewhere."""
        path = Path(uri.removeprefix("sqlite:///"))
        if (
            not uri.startswith("sqlite:///")
            or "?" in uri
            or not path.is_file()
            or any(map(os.environ.get, _OTHER_ROWS))
        ):
            return None
        connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            if _is_known(connection):
                found = connection.execute(
                    "SELECT artifact_location FROM experiments WHERE name = ? AND workspace = 'default'",
                    (experiment,),
                ).fetchone()
                if found is None or _is_path(found[0]):
                    return cls(connection, path)
        except sqlite3.Error as error:
            connection.close()
            if "locked" in str(error):  # MLflow would try again for minutes, without a word
                raise
            return None  # MLflow's client meets the error again, and says what it means
        connection.close()
        return None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._within:
            yield
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._within = True
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            self._within = False
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def experiment(self, name: str, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        with self.transaction():
            found = self._one(
                "SELECT experiment_id, lifecycle_stage FROM experiments WHERE name = ? AND workspace = 'default'",
                name,
            )
            if found is None:
                number = self._new_experiment(name)
                for key, value in tags.items():
                    self.tag_experiment(number, key, value)
                return number, dict(tags)
            number = str(found[0])
            if found[1] == "deleted":
                self._run(
                    "UPDATE experiments SET lifecycle_stage = 'active', last_update_time = ? WHERE experiment_id = ?",
                    *(_now(), number),
                )
        place = self._place("experiments", "artifact_location", "experiment_id", number)
        self.notice = _note_on_files(name, place, self._path)
        return number, self.experiment_tags(number)

    def _new_experiment(self, name: str) -> str:
        now = _now()
        added = self._run(
            "INSERT INTO experiments (name, lifecycle_stage, creation_time, last_update_time, workspace)"
            " VALUES (?, 'active', ?, ?, 'default')",
            *(name, now, now),
        )
        place = str(Path.cwd() / "mlruns" / str(added.lastrowid))
        self._run(
            "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?",
            place,
            added.lastrowid,
        )
        return str(added.lastrowid)

    def experiment_tags(self, experiment_id: str) -> dict[str, str]:
        return dict(
            self._run(
                "SELECT key, value FROM experiment_tags WHERE experiment_id = ?", experiment_id
            )
        )

    def tag_experiment(self, experiment_id: str, key: str, value: str) -> None:
        self._fill("experiment_tags", [(key, value, experiment_id)], "OR REPLACE")

    def runs(self, experiment_id: str, tag: str, value: str) -> Iterable[StoredRun]:
        found = self._run(
            "SELECT runs.run_uuid, status FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid AND tags.key = ?"
            " WHERE tags.value = ? AND experiment_id = ? AND lifecycle_stage = 'active'"
            " ORDER BY start_time DESC, runs.run_uuid",
            *(tag, value, experiment_id),
        )
        return [StoredRun(run, status, self._tags(run)) for run, status in found.fetchall()]

    def run(self, run_id: str) -> StoredRun:
        status = self._one("SELECT status FROM runs WHERE run_uuid = ?", run_id)
        params = dict(self._run("SELECT key, value FROM params WHERE run_uuid = ?", run_id))
        return StoredRun(run_id, status[0], self._tags(run_id), params)

    def _tags(self, run_id: str) -> dict[str, str]:
        return dict(self._run("SELECT key, value FROM tags WHERE run_uuid = ?", run_id))

    def create_run(
        self, experiment_id: str, name: str, started: int, tags: Mapping[str, str]
    ) -> str:
        run_id = uuid.uuid4().hex
        with self.transaction():
            place = self._place("experiments", "artifact_location", "experiment_id", experiment_id)
            user, files = tags.get("mlflow.user", "unknown"), str(place / run_id / "artifacts")
            row = (
                run_id,
                name,
                "UNKNOWN",
                "",
                "",
                user,
                "RUNNING",
                started,
                None,
                "",
                "active",
                files,
                experiment_id,
            )
            self._fill("runs", [(*row, None)])
            self._set_tags(run_id, {**tags, "mlflow.runName": name})
        return run_id

    def update_run(self, run_id: str, status: str, ended: int | None = None) -> None:
        self._run(
            "UPDATE runs SET status = ?, end_time = coalesce(?, end_time) WHERE run_uuid = ?",
            status,
            ended,
            run_id,
        )

    def tag_run(self, run_id: str, tags: Mapping[str, str]) -> None:
        with self.transaction():
            self._set_tags(run_id, tags)

    def _set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        self._fill(
            "tags",
            [(key, value[:_LONGEST_TAG], run_id) for key, value in tags.items()],
            "OR REPLACE",
        )

    def delete_run(self, run_id: str) -> None:
        self._run(
            "UPDATE runs SET lifecycle_stage = 'deleted', deleted_time = ? WHERE run_uuid = ?",
            _now(),
            run_id,
        )

    def log(self, run_id: str, data: RunData) -> None:
        with self.transaction():
            self._place("runs", "artifact_uri", "run_uuid", run_id)
            self._fill(
                "params", [(key, value, run_id) for key, value in data.params.items()], "OR IGNORE"
            )
            rows = [
                (p.key, _stored(p.value), p.timestamp, run_id, p.step, math.isnan(p.value))
                for p in dict.fromkeys(data.points)
            ]
            self._fill("metrics", rows, "OR IGNORE")
            latest = {
                key: row for key, *row in sorted(rows, key=lambda row: (row[4], row[2], row[1]))
            }
            self._fill(
                "latest_metrics",
                [
                    (key, value, at, step, is_nan, run)
                    for key, (value, at, run, step, is_nan) in latest.items()
                ],
                then=" ON CONFLICT (key, run_uuid) DO UPDATE SET (value, timestamp, step, is_nan) ="
                " (excluded.value, excluded.timestamp, excluded.step, excluded.is_nan)"
                " WHERE (excluded.step, excluded.timestamp, excluded.value) > (step, timestamp, value)",
            )
            if data.model_id is not None:
                (experiment,) = self._one(
                    "SELECT experiment_id FROM runs WHERE run_uuid = ?", run_id
                )
                of_model = [
                    (data.model_id, key, at, step, value, experiment, run, None, *data.dataset)
                    for key, value, at, run, step, _ in rows
                ]
                self._fill("logged_model_metrics", of_model, "OR IGNORE")
            self._set_tags(run_id, data.tags)

    def log_file(self, run_id: str, path: Path) -> None:
        _copy(path, self._place("runs", "artifact_uri", "run_uuid", run_id) / path.name)

    def link_dataset(self, run_id: str, dataset: DatasetEntry) -> None:
        name, digest, *described = dataset
        with self.transaction():
            (experiment,) = self._one("SELECT experiment_id FROM runs WHERE run_uuid = ?", run_id)
            row = (uuid.uuid4().hex, experiment, name, digest, "local", *described)
            self._fill("datasets", [row], "OR IGNORE")
            (known,) = self._one(
                "SELECT dataset_uuid FROM datasets WHERE experiment_id = ? AND name = ? AND digest = ?",
                *(experiment, name, digest),
            )
            link = uuid.uuid4().hex
            added = self._fill("inputs", [(link, "DATASET", known, "RUN", run_id, 0)], "OR IGNORE")
            if added.rowcount:
                self._fill("input_tags", [(link, "mlflow.data.context", "training")])

    def find_model(self, experiment_id: str, tags: Mapping[str, str]) -> tuple[str, bool] | None:
        found = self._run(
            "SELECT model_id, status FROM logged_models WHERE experiment_id = ? AND lifecycle_stage = 'active'"
            " ORDER BY creation_timestamp_ms DESC",
            experiment_id,
        )
        for model_id, status in found.fetchall():
            set_ = self._run(
                "SELECT tag_key, tag_value FROM logged_model_tags WHERE model_id = ?", model_id
            )
            if tags.items() <= dict(set_).items():
                return model_id, status == _READY
        return None

    def create_model(
        self,
        experiment_id: str,
        name: str,
        run_id: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
    ) -> str:
        model_id, now = f"m-{uuid.uuid4().hex}", _now()
        with self.transaction():
            place = self._place("experiments", "artifact_location", "experiment_id", experiment_id)
            files = str(place / "models" / model_id / "artifacts")
            row = (
                model_id,
                experiment_id,
                name,
                files,
                now,
                now,
                _PENDING,
                "active",
                None,
                run_id,
                None,
            )
            self._fill("logged_models", [row])
            for table, items in (("logged_model_params", params), ("logged_model_tags", tags)):
                self._fill(table, [(model_id, experiment_id, *item) for item in items.items()])
        return model_id

    def complete_model(self, model_id: str, folder: Path) -> None:
        place = self._place("logged_models", "artifact_location", "model_id", model_id)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _copy(path, place / path.relative_to(folder))
        self._run(
            "UPDATE logged_models SET status = ?, last_updated_timestamp_ms = ? WHERE model_id = ?",
            *(_READY, _now(), model_id),
        )

    def link_model(self, run_id: str, model_id: str) -> None:
        row = (uuid.uuid4().hex, "RUN_OUTPUT", run_id, "MODEL_OUTPUT", model_id, 0)
        self._fill("inputs", [row], "OR IGNORE")

    def tag_model(self, model_id: str, tags: Mapping[str, str]) -> None:
        with self.transaction():
            (experiment,) = self._one(
                "SELECT experiment_id FROM logged_models WHERE model_id = ?", model_id
            )
            self._fill(
                "logged_model_tags",
                [(model_id, experiment, *item) for item in tags.items()],
                "OR REPLACE",
            )

    def _place(self, table: str, column: str, key: str, value: str) -> Path:
        """Folder of an experiment, a run or a model that has not been deleted."""
        found = self._one(
            f"SELECT {column} FROM {table} WHERE {key} = ? AND lifecycle_stage = 'active'",  # noqa: S608
            value,
        )
        if found is None:
            raise LookupError(
                f"the {table.removesuffix('s').replace('_', ' ')} {value} was deleted"
            )
        return Path(found[0])

    def _fill(
        self, table: str, rows: Sequence[tuple[Any, ...]], conflict: str = "", then: str = ""
    ) -> sqlite3.Cursor:
        """Insert rows with the values of all columns, in the order of `_COLUMNS`."""
        names = _COLUMNS[table].split()
        marks = ", ".join("?" * len(names))
        text = f"INSERT {conflict} INTO {table} ({', '.join(names)}) VALUES ({marks}){then}"  # noqa: S608
        return self._connection.executemany(text, rows)

    def _run(self, text: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(text, values)

    def _one(self, text: str, *values: Any) -> Any:
        return self._run(text, *values).fetchone()


def _is_known(connection: sqlite3.Connection) -> bool:
    """Whether a store has all tables of the installed MLflow, and those that are written no other columns."""
    if connection.execute(f"SELECT * FROM {VERSION}").fetchall() != [(schema_version(),)]:  # noqa: S608
        return False
    columns = {
        table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table in _COLUMNS
    }
    return all(columns[table] == set(names.split()) for table, names in _COLUMNS.items())


def _is_path(location: str) -> bool:
    """Whether the files of an experiment lie in a folder of this machine, and not at a URI."""
    return location.startswith("/")


def _note_on_files(experiment: str, place: Path, store: Path) -> str:
    """Say where the files of an experiment go if its store was copied; raise LookupError if it was moved from there.

    MLflow keeps the absolute path of an experiment's files in the store.
    """
    other = "give it another experiment by --set tracking.experiment=NAME"
    if not place.parent.parent.exists():
        raise LookupError(f"keeps files in {place} (experiment {experiment})")
    beside = store.parent / "mlruns" / place.name
    if place != beside and beside.exists():
        return (
            f"MLflow's store {store} keeps the files of the experiment {experiment} in {place}, as before it was "
            f"copied, and not beside it: to keep a study's files here, {other}"
        )
    return ""


def _stored(value: float) -> float:
    """Return a metric as a column of numbers holds it: NaN as 0 beside its mark, infinity as the largest number."""
    return (
        0.0
        if math.isnan(value)
        else max(-math.nextafter(math.inf, 0), min(value, math.nextafter(math.inf, 0)))
    )


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as temporary:
        shutil.copy2(source, temporary)


def _now() -> int:
    return int(time.time() * 1000)
