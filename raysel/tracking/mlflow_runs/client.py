"""Tables of an MLflow store: made by one client at a time, and in a sqlite file whole or not at all."""

from __future__ import annotations

import getpass
import itertools
import json
import math
import os
import posixpath
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import mlflow.store
import sqlalchemy
from alembic.script import ScriptDirectory
from mlflow import MlflowException
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag, ViewType
from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH
from mlflow.tracking import MlflowClient

from raysel.core.files import atomic_write, remove_temporary_files
from raysel.core.printing import escaped
from raysel.tracking.locks import schema_lock
from raysel.tracking.mlflow_view import RunView

#: Key of the lock in a PostgreSQL database; any number that other programs do not use.
_KEY = 0x7261_7973_656C  # "raysel"
#: Table of the version of the others.
_VERSION = "alembic_version"
#: Condition by table that tells rows from those that MLflow writes as it makes a store.
_ROWS = {"experiments": "experiment_id > 0", "workspaces": "name <> 'default'"}
#: Seconds without a change after which no other program, e.g. `mlflow ui`, is making the store.
_QUIET_SECONDS = 5.0


@contextmanager
def tables_lock(uri: str) -> Iterator[str]:
    """Let one client of raysel at a time create or upgrade the tables of a store."""
    if not uri.startswith("postgresql"):
        with schema_lock(uri):
            name = sqlalchemy.make_url(uri).database if uri.startswith("sqlite:///") else None
            yield _made(Path(name)) if name and not name.startswith((":memory:", "file:")) else ""
        return
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.pool.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # the end of the session releases the lock
        connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": _KEY})
        yield ""


def _made(store: Path) -> str:
    """Make a store that is missing or half made, which MLflow could never complete; say if one was moved aside."""
    said = ""
    if _stays_half_made(store):
        aside = next(path for i in itertools.count(1) if not (path := Path(f"{store}.half-made-{i}")).exists())
        store.rename(aside)
        said = (
            f"MLflow's database {store} was half made, as by a program that was killed, and held no runs: it was moved "
            f"to {aside.name}, which can be removed, and made anew"
        )
    if not _has_content(store):
        content = _new_content()
        remove_temporary_files(store)
        if not _has_content(store):  # another program may have made it meanwhile
            with atomic_write(store, durable=True) as temporary:
                temporary.write_bytes(content)
    return said


def _new_content() -> bytes:
    """Content of the file of a new store."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415 - a second, for new stores only

    store = SqlAlchemyStore("sqlite:///:memory:", DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH)
    with store.engine.connect() as connection:
        content: bytes = connection.connection.dbapi_connection.serialize()
    return content


def _stays_half_made(store: Path) -> bool:
    before, since = None, time.monotonic()
    while _is_half_made(store):
        if (now := store.stat().st_mtime_ns) != before:
            before, since = now, time.monotonic()
        if time.monotonic() - since >= _QUIET_SECONDS:
            return True
        time.sleep(0.1)
    return False


def _is_half_made(store: Path) -> bool:
    """Return whether a store lacks tables of this MLflow, and holds nothing but what MLflow writes as it makes one."""
    if not _has_content(store):
        return False
    try:
        with closing(sqlite3.connect(store)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found if not name.startswith("sqlite_")}
            if names and not names & {"experiments", "_alembic_tmp_experiments"}:
                return False  # of another program
            for name in names - {_VERSION}:
                if connection.execute(f'SELECT 1 FROM "{name}" WHERE {_ROWS.get(name, "1")} LIMIT 1').fetchone():  # noqa: S608
                    return False
            version = connection.execute(f"SELECT * FROM {_VERSION}").fetchone() if _VERSION in names else None  # noqa: S608
    except sqlite3.DatabaseError:  # locked, damaged or no database, as MLflow says then
        return False
    scripts = ScriptDirectory(str(Path(mlflow.store.__path__[0], "db_migrations")))
    return version != (scripts.get_current_head(),)


def _has_content(store: Path) -> bool:
    return store.exists() and store.stat().st_size > 0


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
        own = {"mlflow.source.name": "raysel.tune", "mlflow.user": _user()}
        run = self.client.create_run(self.id, int(started * 1000), {**tags, **own}, escaped(name)[:_NAME_LENGTH])
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
        keys = allowed_keys(view.params)
        params = [Param(keys[name], logged_param(value)) for name, value in view.params.items()]
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
        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                self.tags = dict(_KIND)
                return self.client.create_experiment(name, tags=_KIND)
            except MlflowException:  # another study may have created it meanwhile
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        self.tags = dict(found.tags)
        if found.lifecycle_stage == "deleted":
            self.client.restore_experiment(found.experiment_id)
        return found.experiment_id


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
