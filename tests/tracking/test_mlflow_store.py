"""A program that is killed, or a disk that is full, while MLflow's sqlite store is made: the
next upload works.
"""

from __future__ import annotations

import errno
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from small_studies import make_study, write_digits

from raysel.core.errors import ConfigError
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.tracking.mlflow_store import store_file
from raysel.tracking.places import absolute_uri, check_store, note_place, place_now
from raysel.tracking.server_address import unreachable

#: Makes a store in children, kills each at another moment, and opens the store again as raysel
#: does.
KILLS = """
import os, signal, sys, time

# Loaded before the time is taken.
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient

from raysel.tracking import mlflow_store as schema
from raysel.tracking.mlflow_experiment import MLflowExperiment

schema._QUIET_SECONDS = 0.1
EMPTY = schema._new_content()


def by_raysel(uri):
    MLflowExperiment(uri, "few")


def again(uri):
    schema._new_content = lambda: EMPTY  # it takes a second to make another
    MLflowExperiment(uri, "few")


def by_mlflow(uri):
    MlflowClient(uri).search_experiments()


def run(make, uri, seconds=None):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            make(uri)
            status = 0
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for make, folder in ((by_raysel, "raysel"), (by_mlflow, "mlflow")):
    os.mkdir(folder)
    started = time.monotonic()
    run(make, f"sqlite:///{folder}/whole.db")
    longest, killed, i = time.monotonic() - started, 0, 0
    # MLflow makes tables all the time, raysel moves a whole store into place at the end.
    shares = (0.3, 0.85)
    while killed < len(shares):
        i, moment = i + 1, shares[killed] * longest
        if run(make, f"sqlite:///{folder}/{i}.db", moment) == -signal.SIGKILL:
            killed += 1
        else:
            longest = moment  # it took less than the first
        assert run(again, f"sqlite:///{folder}/{i}.db") == 0, (folder, i)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A whole store without runs, as MLflow makes it."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    path = tmp_path_factory.mktemp("store") / "whole.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def half_made(store, tmp_path):
    """A store as a kill before its last migration leaves it."""
    path = tmp_path / "mlflow.db"
    path.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM experiments")
        connection.execute("UPDATE alembic_version SET version_num = '75868b020152'")
    return path


def open_store(path):
    from raysel.tracking.mlflow_experiment import MLflowExperiment  # noqa: PLC0415 - takes seconds

    return MLflowExperiment(f"sqlite:///{path}", "few")


@pytest.mark.slow
def test_a_store_works_after_a_kill_early_or_late_in_its_making(tmp_path):
    command = [sys.executable, "-c", KILLS]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # Raysel's own store is whole or not there.
    assert {path.parent.name for path in tmp_path.glob("*/*.half-made-1")} == {"mlflow"}


@pytest.mark.slow
def test_a_half_made_store_is_moved_aside_and_that_is_said(half_made, monkeypatch):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    monkeypatch.setattr("raysel.tracking.mlflow_store._QUIET_SECONDS", 0.0)
    before = half_made.read_bytes()
    opened = open_store(half_made)
    assert f"{half_made} was half made" in opened.notice
    assert "moved to mlflow.db.half-made-1" in opened.notice
    assert half_made.with_name("mlflow.db.half-made-1").read_bytes() == before
    assert sorted(path.name for path in half_made.parent.iterdir()) == [
        "mlflow.db",
        "mlflow.db.half-made-1",
    ]
    assert MlflowClient(f"sqlite:///{half_made}").get_experiment(opened.id).name == "few"
    assert open_store(half_made).notice == ""


def test_a_store_with_runs_that_cannot_be_used_is_left_and_the_mend_named(half_made):
    from mlflow import MlflowException  # noqa: PLC0415 - takes seconds

    from raysel.tracking.mlflow_store import failure_sentence  # noqa: PLC0415

    with closing(sqlite3.connect(half_made)) as connection, connection:
        connection.execute("INSERT INTO runs (run_uuid) VALUES ('a')")
    before = half_made.read_bytes()
    with pytest.raises(MlflowException) as caught:
        open_store(half_made)
    said = failure_sentence(caught.value, f"sqlite:///{half_made}")
    assert "run `mlflow db upgrade` on a copy" in said
    assert "raysel tune --replay DIR" in said
    assert half_made.read_bytes() == before
    assert sorted(path.name for path in half_made.parent.iterdir()) == ["mlflow.db"]


@pytest.mark.parametrize(
    "text",
    ["table experiments already exists", "no such table: runs", "Detected out-of-date database"],
)
def test_a_store_that_a_server_is_making_is_to_be_uploaded_to_again(half_made, text):
    from raysel.tracking.mlflow_store import failure_sentence, is_locked  # noqa: PLC0415

    uri, error = f"sqlite:///{half_made}", sqlite3.OperationalError(text)
    said = failure_sentence(error, uri)
    assert "was being made by another program" in said
    assert "--replay DIR" in said
    assert "move it away" not in said
    assert is_locked(error, uri)
    assert not is_locked(sqlite3.OperationalError("no such function: f"), uri)
    with closing(sqlite3.connect(half_made)) as connection, connection:
        connection.execute("INSERT INTO runs (run_uuid) VALUES ('a')")
    assert "move it away" in failure_sentence(error, uri)
    assert not is_locked(error, uri)


def test_a_database_of_another_program_is_no_half_made_store(tmp_path):
    from raysel.tracking.mlflow_store import _is_half_made  # noqa: PLC0415 - takes seconds

    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        connection.execute("CREATE TABLE addresses (name TEXT)")
    assert not _is_half_made(tmp_path / "own.db")
    (tmp_path / "text").write_text("no database\n" * 100)
    assert not _is_half_made(tmp_path / "text")


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_no_store(tmp_path, monkeypatch):
    def full(path, content):
        path.open("wb").write(content[:4096])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            open_store(tmp_path / "mlflow.db")
    assert not list(tmp_path.iterdir())
    assert open_store(tmp_path / "mlflow.db").notice == ""


def test_a_store_that_cannot_be_written_is_refused_before_anything_is_computed(
    tmp_path, monkeypatch
):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir("/proc")  # where root cannot write either
    with pytest.raises(
        ConfigError,
        match=r"MLflow's store /proc/mlflow\.db cannot be written: .*; set tracking\.uri",
    ):
        course.run(study, tmp_path / "study", SerialExecutor(study))
    assert not (tmp_path / "study").exists()
    (tmp_path / "mlflow.db").mkdir()
    with pytest.raises(ConfigError):
        check_store(f"sqlite:///{tmp_path}/mlflow.db")
    with pytest.raises(
        ConfigError,
    ):
        check_store("sqlite:////proc/x/y/m.db")
    with pytest.raises(ConfigError):
        check_store(f"sqlite:///{tmp_path}/few.npz/below/m.db")
    check_store(f"sqlite:///{tmp_path}/new/folder/m.db")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "uri",
    ["./mlruns", "mlruns", "mlflow.db", "file:mlruns", "FILE:///tmp/mlruns", "localhost:5000"],
)
def test_a_folder_as_a_store_is_refused_before_a_study_as_mlflow_refuses_it(uri, monkeypatch):
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - takes seconds
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(MlflowException):
        MlflowClient(uri).search_experiments()
    with pytest.raises(ConfigError, match=r"sqlite:///mlflow\.db"):
        check_store(absolute_uri(uri))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    check_store(absolute_uri(uri))


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("sqlite:////a/m.db", "/a/m.db"),
        ("sqlite:////a/m.db?timeout=5", "/a/m.db"),
        ("sqlite:///:memory:", None),
        ("sqlite:///file:m.db?mode=memory&uri=true", None),
        ("http://localhost:5000", None),
        ("postgresql://host/db", None),
    ],
)
def test_only_a_store_in_sqlite_has_a_file(uri, file):
    assert store_file(uri) == (file and Path(file))


def give_version(store: Path, version: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("INSERT INTO runs (run_uuid) VALUES ('a')")
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))


@pytest.mark.parametrize("way", ["later", "earlier", "earlier, and without runs"])
def test_a_store_of_another_version_of_mlflow_is_refused_before_a_study(way, store, tmp_path):
    import mlflow  # noqa: PLC0415 - takes seconds
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    shutil.copy(store, tmp_path / "mlflow.db")
    scripts = ScriptDirectory(str(Path(mlflow.__file__).parent / "store" / "db_migrations"))
    check_store(f"sqlite:///{tmp_path}/mlflow.db")
    head = scripts.get_revision(scripts.get_current_head())
    give_version(tmp_path / "mlflow.db", "f" * 12 if way == "later" else head.down_revision)
    way, _, without_runs = way.partition(",")
    if without_runs:
        with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection, connection:
            connection.execute("DELETE FROM runs")
    before = (tmp_path / "mlflow.db").read_bytes()
    mend = {"later": "install that version", "earlier": "python -m mlflow db upgrade sqlite:///"}
    with pytest.raises(ConfigError) as caught:
        check_store(f"sqlite:///{tmp_path}/mlflow.db")
    assert f"was made by a{'n' if way == 'earlier' else ''} {way} version" in str(caught.value)
    assert mend[way] in str(caught.value)
    assert (tmp_path / "mlflow.db").read_bytes() == before


def test_a_store_of_a_later_version_of_mlflow_is_not_moved_aside_though_it_has_no_runs(
    store, tmp_path
):
    from mlflow import MlflowException  # noqa: PLC0415 - takes seconds

    from raysel.tracking.mlflow_store import failure_sentence  # noqa: PLC0415

    shutil.copy(store, tmp_path / "mlflow.db")
    give_version(tmp_path / "mlflow.db", "f" * 12)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection, connection:
        connection.execute("DELETE FROM runs")
    before = (tmp_path / "mlflow.db").read_bytes()
    with pytest.raises(MlflowException) as caught:
        open_store(tmp_path / "mlflow.db")
    said = failure_sentence(caught.value, f"sqlite:///{tmp_path}/mlflow.db")
    assert "was made by a later version of MLflow" in said
    assert (tmp_path / "mlflow.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]


def test_the_version_of_a_store_in_use_or_of_another_program_is_not_asked(store, tmp_path):
    shutil.copy(store, tmp_path / "mlflow.db")
    give_version(tmp_path / "mlflow.db", "f" * 12)
    with closing(sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        check_store(f"sqlite:///{tmp_path}/mlflow.db")
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('aaaa')")
    check_store(f"sqlite:///{tmp_path}/own.db")


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        *(("http://", "names no host"), ("https:///mlflow", "names no host")),
        *(("http://:5000", "names no host"), ("http://h:port", "is no address")),
        *(("http://h:99999", "is no address"), ("http://[::1", "is no address")),
        ("postgresql+psycopg2://h:port/x", "is no address"),
        ("postgresql+unheard://h/x", "names no database"),
        ("mysql+pymysql://h/x", "needs the module pymysql, which is not installed"),
    ],
)
def test_a_server_that_no_uri_can_reach_is_refused_before_a_study(uri, why):
    with pytest.raises(ConfigError, match=f"MLFLOW_TRACKING_URI.*{why}"):
        check_store(uri)


def test_a_server_that_is_not_reached_now_is_named_and_the_study_runs():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        for scheme in ("http", "postgresql+psycopg2"):
            assert "(Connection refused)" in unreachable(f"{scheme}://{address}/mlflow")
        listening.listen()
        assert not unreachable(f"http://{address}")
    for host in ("no.such.host.invalid", "a" * 70):
        assert "cannot be reached now" in unreachable(f"http://{host}")
    for uri in ("sqlite:///mlflow.db", "postgresql:///mlflow", "databricks"):
        assert not unreachable(uri)


def test_other_stores_are_no_folders(tmp_path):
    others = ("databricks", "http://127.0.0.1:5000", "postgresql+psycopg2://host/db")
    for uri in (*others, f"sqlite:///{tmp_path}/mlflow.db"):
        check_store(uri)
    with pytest.raises(ConfigError, match="too few slashes"):
        check_store("sqlite://mlflow.db")


def test_a_store_that_was_moved_makes_no_old_folder_anew(store, tmp_path, monkeypatch):
    from raysel.tracking.mlflow_store import failure_sentence  # noqa: PLC0415 - takes seconds

    for name in ("old", "copied", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "old")
    shutil.copy(store, "mlflow.db")
    (tmp_path / "report.html").touch()
    first = open_store(Path("mlflow.db").absolute())
    run = first.client.create_run(first.id, "few", 0, {})
    first.client.log_files(run, [tmp_path / "report.html"])
    shutil.copytree("mlruns", tmp_path / "copied" / "mlruns")
    shutil.copy("mlflow.db", tmp_path / "copied")
    del first
    copied = open_store(tmp_path / "copied" / "mlflow.db")
    assert str(tmp_path / "old" / "mlruns" / "1") in copied.notice
    assert "tracking.experiment=NAME" in copied.notice
    assert not open_store(tmp_path / "old" / "mlflow.db").notice
    monkeypatch.chdir(tmp_path / "copied")
    shutil.move(tmp_path / "old", tmp_path / "elsewhere" / "moved")
    moved = tmp_path / "elsewhere" / "moved" / "mlflow.db"
    with pytest.raises(LookupError) as caught:
        open_store(moved)
    assert "was moved: the folder of its" in failure_sentence(caught.value, f"sqlite:///{moved}")
    assert not (tmp_path / "old").exists()


def test_a_store_is_found_beside_a_study_that_was_moved_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for folder in ("old/studies/one", "new/studies/one", "alone"):
        (tmp_path / folder).mkdir(parents=True)
    uri = f"sqlite:///{tmp_path}/old/mlflow.db"
    for place in ("new/studies/one", "alone"):
        assert place_now(uri, tmp_path / place) == uri  # the folder is there
    shutil.rmtree(tmp_path / "old")
    with pytest.raises(ConfigError):
        place_now(uri, tmp_path / "alone")
    note_place(uri)
    with pytest.raises(ConfigError, match=r"no longer there.*Give the store again"):
        place_now(uri, tmp_path / "alone")
    (tmp_path / "new" / "mlflow.db").touch()
    assert place_now(uri, tmp_path / "new/studies/one") == f"sqlite:///{tmp_path}/new/mlflow.db"
    for other in ("http://127.0.0.1:5000", "sqlite:///:memory:", "postgresql://host/db"):
        assert place_now(other, tmp_path) == other


@pytest.mark.parametrize("way", ["store", "store, before a run", "folder", "experiment", "run"])
def test_what_was_deleted_while_a_study_ran_is_named(way, store, tmp_path):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    from raysel.tracking.mlflow_client import RunData  # noqa: PLC0415
    from raysel.tracking.mlflow_store import failure_sentence  # noqa: PLC0415

    path = tmp_path / "runs" / "mlflow.db"
    path.parent.mkdir()
    shutil.copy(store, path)
    uri = f"sqlite:///{path}"
    (tmp_path / "report.html").touch()
    experiment, theirs = open_store(path), MlflowClient(uri)
    client = experiment.client
    run = client.create_run(experiment.id, "few", 0, {})
    if way == "experiment":
        theirs.delete_experiment(experiment.id)
    elif way == "run":
        theirs.delete_run(run)
    else:
        shutil.rmtree(path.parent) if way == "folder" else path.unlink()
    calls = {
        "store": lambda: client.log(run, RunData([], {}, {"a": "b"})),
        "store, before a run": lambda: client.create_run(experiment.id, "few", 0, {}),
        "experiment": lambda: client.create_run(experiment.id, "few", 0, {}),
        "run": lambda: client.log_files(run, [tmp_path / "report.html"]),
    }
    wanted = {"store": "was deleted, moved or replaced", "experiment": "the experiment, which was"}
    wanted |= dict.fromkeys(("folder", "store, before a run"), wanted["store"])
    wanted |= {"run": "a run of the study, which was deleted"}
    with pytest.raises(Exception, match=r".") as caught:
        calls["store" if way == "folder" else way]()
    assert wanted[way] in failure_sentence(caught.value, uri)
    if way.startswith("store"):
        assert not path.exists()
