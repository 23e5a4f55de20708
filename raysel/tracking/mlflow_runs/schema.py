"""Tables of an MLflow store: made by one client at a time, and in a sqlite file whole or not at all."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import mlflow.store
import sqlalchemy
from alembic.script import ScriptDirectory
from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH

from raysel.files import atomic_write, remove_temporary_files
from raysel.tracking.locks import schema_lock

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
