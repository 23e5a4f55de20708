"""MLflow's store: its tables, made whole by one client at a time, and its errors."""

from __future__ import annotations

import itertools
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path

from raysel.core.credentials import bare_uri, without_credentials
from raysel.core.files import atomic_write, remove_temporary_files
from raysel.tracking.locks import schema_lock

#: Key of the lock in a PostgreSQL database; any number that other programs do not use.
_KEY = 0x7261_7973_656C  # "raysel"
#: Table of the version of the others.
VERSION = "alembic_version"
#: Condition by table that tells rows from those that MLflow writes before it has made all tables.
_ROWS = {"workspaces": "name <> 'default'"}
#: Seconds without a change after which no other program, e.g. `mlflow ui`, is making the store.
_QUIET_SECONDS = 5.0
_OF_SERVER = (
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, or give"
    " them in tracking.uri"
)
_OF_DATABASE = "set PGUSER and PGPASSWORD, or write them to ~/.pgpass, or give them in tracking.uri"
_LONGEST = 300
_STATUS = re.compile(r"failed with error code (\d{3})|too many (\d{3}) error responses")
_ANEW = "move it away and upload each study again (raysel tune --replay DIR)"
_UPGRADE = "run `mlflow db upgrade` on a copy and put that in its place"
_LOCKED = "database is locked"
_OTHER_TABLES = (
    r"(table|index) \S+ already exists|duplicate column|no such (table|column|index)|out-of-date"
)
#: Version of the tables in MLflow's and Alembic's errors.
_FOUND = re.compile(r"found version (\w+)|locate revision identified by '(\w+)'")
_MOVED = "SQLITE_READONLY_DBMOVED"
#: Text of an error of our own.
STORE_LOST = "the file of the store was deleted or replaced"
_ELSEWHERE = "put it back, or use another experiment (--replay DIR --set tracking.experiment=NAME)"
_AGAIN = "upload the study again (raysel tune --replay DIR)"
#: Patterns in the text of an error and what they mean, with the remedy.
_MEANINGS: Sequence[tuple[str, str]] = (
    (
        (
            "password authentication failed|no password supplied|Access denied for"
            " user|authentication failed for user"
        ),
        f"refused the user or the password; {_OF_DATABASE}",
    ),
    (_LOCKED, "is locked by another program that writes to it; wait until that has ended"),
    (
        _OTHER_TABLES,
        (
            "has other tables than this version of MLflow, may hold runs and is left as it is;"
            f" {_UPGRADE}, or {_ANEW}"
        ),
    ),
    (
        r"experiment \S+ (was deleted|must be in the 'active' state)|No Experiment with id=",
        f"has no longer the experiment, which was deleted while the study ran; {_AGAIN}",
    ),
    (
        r"run \S+ (was deleted|must be in the 'active' state)|Run with id=\S+ not found",
        f"has no longer a run of the study, which was deleted while it ran; {_AGAIN}",
    ),
    (
        r"keeps files in .* \(experiment .*\)",
        (
            "was moved: the folder of its experiment's files is gone and is not made anew;"
            f" {_ELSEWHERE}"
        ),
    ),
    (
        f"{_MOVED}|{STORE_LOST}",
        f"was deleted, moved or replaced while the study ran; put it back, or {_AGAIN}",
    ),
    (
        "readonly database|Read-only file system",
        f"cannot be written, as it or its folder is read-only; change that, and {_AGAIN}",
    ),
    (
        "file is not a database|disk image is malformed",
        f"is damaged, or no database; restore it from a copy, or {_ANEW}",
    ),
    (
        "No space left on device|disk is full",
        "has no room left on its disk; make room, and upload the study again",
    ),
    (
        "not in a valid JSON format",
        "gave an answer that is not MLflow's; check that tracking.uri names an MLflow server",
    ),
    ("[Tt]imed out|TimeoutError", "did not answer in time"),
    ("Connection refused", "cannot be reached: Connection refused; check that it runs"),
    (
        (
            "Failed to resolve|Name or service not known|could not translate host name|nodename nor"
            " servname"
        ),
        "cannot be reached: Connection failed, because the name of the host is not known",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED|SSLError",
        "has no certificate that this machine trusts; set MLFLOW_TRACKING_SERVER_CERT_PATH",
    ),
    (
        "IncompleteRead|LineTooLong|HTTPException|got more than|InvalidChunkLength|BadStatusLine",
        "gave an answer that is damaged; check that tracking.uri names an MLflow server",
    ),
    (
        "Connection aborted|ConnectionReset|RemoteDisconnected|closed the connection",
        "closed the Connection without an answer",
    ),
    (
        "NewConnectionError|ConnectionError|could not connect|connection to server",
        "cannot be reached: Connection failed",
    ),
)


def store_file(uri: str) -> Path | None:
    """Return the file of a store in SQLite; None if it is in memory, or another store."""
    name = uri.removeprefix("sqlite:///").partition("?")[0]
    if not uri.startswith("sqlite:///") or not name or name.startswith((":memory:", "file:")):
        return None
    return Path(name)


def with_store_file(uri: str, file: Path) -> str:
    """Return the URI of a store in SQLite with another file."""
    _, mark, options = uri.partition("?")
    return f"sqlite:///{file}{mark}{options}"


@contextmanager
def tables_lock(uri: str) -> Iterator[str]:
    """Let one client of raysel at a time create or upgrade the tables of a store."""
    if store := store_file(uri):
        with schema_lock(store):
            yield _made(store)
        return
    if not uri.startswith("postgresql"):
        yield ""
        return
    import sqlalchemy  # noqa: PLC0415 - MLflow's libraries take seconds to import

    engine = sqlalchemy.create_engine(
        uri, poolclass=sqlalchemy.pool.NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:  # the end of the session releases the lock
        connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": _KEY})
        yield ""


def _made(store: Path) -> str:
    """Make a store that is missing or half made, and say if one was moved aside."""
    notice = ""
    if _stays_half_made(store):
        aside = next(
            path
            for i in itertools.count(1)
            if not (path := Path(f"{store}.half-made-{i}")).exists()
        )
        store.rename(aside)
        notice = (
            f"MLflow's database {store} was half made and held no runs: it was made anew, and the"
            f" old one moved to {aside.name}, which can be removed"
        )
    if not _has_content(store):
        content = _new_content()
        remove_temporary_files(store)
        if not _has_content(store):  # another program may have made it meanwhile
            with atomic_write(store, durable=True) as temporary:
                temporary.write_bytes(content)
    return notice


def _new_content() -> bytes:
    """Content of the file of a new store, which MLflow makes elsewhere."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds to import

    with tempfile.TemporaryDirectory(prefix="raysel-mlflow-") as folder:
        store = Path(folder, "mlflow.db")
        MlflowClient(f"sqlite:///{store}").search_experiments()
        return store.read_bytes()


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
    """Return whether a store lacks tables of this MLflow, and holds no runs."""
    if not _has_content(store):
        return False
    try:
        with closing(sqlite3.connect(store)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in tables if not name.startswith("sqlite_")}
            if names and not names & {"experiments", "_alembic_tmp_experiments"}:
                return False  # of another program
            for name in names - {VERSION}:
                if connection.execute(
                    f'SELECT 1 FROM "{name}" WHERE {_ROWS.get(name, "1")} LIMIT 1'  # noqa: S608
                ).fetchone():
                    return False
            version = None
            if VERSION in names:
                version = connection.execute(f"SELECT * FROM {VERSION}").fetchone()  # noqa: S608
    except sqlite3.DatabaseError:  # locked, damaged or no database, as MLflow says then
        return False
    if schema_version() is None or (version is not None and _is_later(*version)):
        return False
    return version != (schema_version(),)


def other_version(store: Path) -> str:
    """Say that another version of MLflow wrote a store, and what to do; empty if not.

    MLflow would upgrade some stores of earlier versions in the background, without a word or a
    copy.
    """
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as found:
            found.execute("PRAGMA busy_timeout = 0")
            found.execute("SELECT 1 FROM experiments, runs LIMIT 1")  # another program has none
            (version,) = found.execute(f"SELECT * FROM {VERSION}").fetchone() or ("",)  # noqa: S608
    except sqlite3.Error:  # new, in use or no store of MLflow: the upload says more
        return ""
    if _is_later(version):
        return _later_version()
    if not _is_earlier(version) or _is_half_made(store):
        return ""
    return (
        "was made by an earlier version of MLflow: copy it, then upgrade it by python -m mlflow db"
        f" upgrade sqlite:///{store.absolute()}"
    )


def _later_version() -> str:
    here = _installed().version
    return (
        f"was made by a later version of MLflow than {here}, which is installed: install that"
        " version"
    )


def _installed() -> Distribution:
    return distribution("mlflow")


@cache
def schema_version() -> str | None:
    """Return the installed MLflow's version of the tables: the migration that none follows.

    None where the migrations are not written as expected.
    """
    last = _migrations("revision") - _migrations("down_revision")
    if len(last) != 1:
        return None
    return min(last)


def _is_later(version: str) -> bool:
    """Return whether the installed MLflow does not know a version of the tables."""
    known = schema_version()
    return bool(version) and known is not None and version not in _migrations("revision")


def _is_earlier(version: str) -> bool:
    """Return whether MLflow has a migration from a version of the tables to a later one."""
    return version in _migrations("down_revision")


@cache
def _migrations(name: str) -> frozenset[str]:
    """Return the versions that the migrations of the installed MLflow make, or that they follow."""
    folder = Path(str(_installed().locate_file("mlflow/store/db_migrations/versions")))
    pattern = re.compile(rf'^{name} = "(\w+)"', re.MULTILINE)
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    return frozenset(itertools.chain.from_iterable(map(pattern.findall, texts)))


def _has_content(store: Path) -> bool:
    return store.exists() and store.stat().st_size > 0


def failure_sentence(error: Exception, uri: str) -> str:
    """Return what MLflow answered and what to do about it, without credentials."""
    of_sqlite = getattr(error, "orig", error)  # as SQLAlchemy keeps it
    text = f"{error} {getattr(of_sqlite, 'sqlite_errorname', '')}".strip()
    place = f"MLflow at {bare_uri(uri)}"
    groups = itertools.chain.from_iterable(match.groups() for match in _STATUS.finditer(text))
    if status := next(filter(None, groups), ""):
        return f"{place} answered {_status_sentence(status, text)}"
    if _is_being_made(text, uri):
        return f"{place} was being made by another program, e.g. an MLflow server; {_AGAIN}"
    if (found := _FOUND.search(text)) and _is_later(found[1] or found[2]):
        return f"{place} {_later_version()}, or use another store (--set tracking.uri=URI)"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return f"{place} {meaning}"
    return f"{place} failed: {type(error).__name__}: {_one_line(without_credentials(text))}"


def _is_being_made(text: str, uri: str) -> bool:
    """Return whether an error is of tables that another program makes, or left half made."""
    store = store_file(uri)
    if store is None or not store.is_file() or not re.search(_OTHER_TABLES, text):
        return False
    return _is_half_made(store)


def is_locked(error: Exception, uri: str) -> bool:
    """Return whether another program has locked the database or makes its tables now."""
    return _LOCKED in str(error) or _is_being_made(str(error), uri)


def _status_sentence(status: str, text: str) -> str:
    if status == "401":
        return f"401: the user name and password, or the token, are missing or wrong; {_OF_SERVER}"
    if status == "403" and "Host header" in text:
        return (
            "403: it does not accept the name of its host in tracking.uri; add that name to its"
            " --allowed-hosts"
        )
    if status == "403":
        return f"403: it does not allow this user to write; {_OF_SERVER} of one who may"
    if status.startswith("5"):
        return f"{status}, an error of the server; its log says more"
    body = text.partition("Response body: ")[2]
    return ": ".join(filter(None, [status, _one_line(without_credentials(body))]))


def _one_line(text: str) -> str:
    """First printable characters of a text that may be anything."""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST]).strip()
