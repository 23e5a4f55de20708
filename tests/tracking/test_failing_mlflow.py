"""MLflow that answers errors, garbage or nothing, or whose database is locked: the study ends and says what to do."""

from __future__ import annotations

import base64
import json
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow_servers import keys_of, local_study, runs_in

from raysel.core.credentials import HIDDEN, keep_credentials
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory
from raysel.tracking.journal import Journal, read_records
from raysel.tracking.journal_upload import tracking_status, upload_study
from raysel.tracking.upload_process import MLflowUploader
from raysel.tune import main

SECRET = "Sw0rdf1sh"


def answer(status: str, body: bytes, length: int | None = None) -> Callable[[socket.socket], None]:
    said = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Length: {said}\r\nConnection: close\r\n\r\n"
    return lambda line: line.sendall(head.encode() + body)


def endless_header(line: socket.socket) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        line.sendall(b"a" * 65536)


def reset(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(line: socket.socket) -> None:
    line.recv(1)  # until the client gives up


def drops(line: socket.socket) -> None:
    """Never silent for long, and never done."""
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        line.sendall(b" ")
        time.sleep(0.1)


@contextmanager
def server(reply: Callable[[socket.socket], None], heard: list[bytes] | None = None) -> Iterator[str]:
    """Address, with credentials, of a server that replies alike to every request, and keeps what it heard."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(line: socket.socket) -> None:
            with line, suppress(OSError):
                asked = b""
                while b"\r\n\r\n" not in asked:
                    if not (part := line.recv(65536)):
                        return
                    asked += part
                if heard is not None:
                    heard.append(asked)
                reply(line)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://ada:{SECRET}@127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory):
    return local_study(tmp_path_factory.mktemp("local"))


@pytest.fixture
def directory_of(finished_study, tmp_path):
    """A directory with the journal of the finished study, for another store."""

    def make(uri: str) -> StudyDirectory:
        directory = StudyDirectory(tmp_path / "study")
        directory.path.mkdir()
        first, *rest = read_records(finished_study.study / "journal.jsonl")
        with Journal(directory.journal) as journal:
            for record in (replace(first, id="other", experiment="other", uri=keep_credentials(uri)), *rest):
                journal.append(record)
        return directory

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer("500 Error", b'{"error_code": "INTERNAL_ERROR"}'), "answered 500, an error of the server"),
        (answer("503 Busy", b"<html>"), "answered 503, an error of the server"),
        (answer("200 OK", b"<html><body>Welcome</body></html>"), "gave an answer that is not MLflow's"),
        (answer("200 OK", b'{"experiment": {"experiment_id'), "gave an answer that is not MLflow's"),
        (answer("200 OK", b"\x00\xff" * 500), "gave an answer that is not MLflow's"),
        (answer("200 OK", b'{"exp', length=500), "gave an answer that is damaged"),
        (endless_header, "gave an answer that is damaged"),
        (lambda line: line.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), "gave an answer that is damaged"),
        (silent, "did not answer in time"),
        (reset, "closed the Connection without an answer"),
        (answer("401 Unauthorized", b"You are not authenticated."), "answered 401: ..MLFLOW_TRACKING_USERNAME"),
        (answer("403 Forbidden", b"Permission denied"), "answered 403: ..MLFLOW_TRACKING_USERNAME"),
        (answer("403 Forbidden", b"Invalid Host header"), "answered 403: ..--allowed-hosts"),
        (answer("404 Not Found", b"nothing\x1b[2J here"), "answered 404: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_wrong_answer_is_said_in_one_plain_line(directory_of, monkeypatch, reply, said):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0" if reply is silent else "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    with server(reply) as uri:
        directory = directory_of(uri)
        assert not upload_study(directory, None)
    status = tracking_status(directory)
    place = uri.replace(f"ada:{SECRET}@", "")
    assert status["error"].startswith(f"MLflow at {place} ")
    for part in said.split(".."):
        assert part in status["error"]
    assert status["error"].isprintable()
    assert len(status["error"]) < 400
    assert (status["logged"], status["complete"], status["locked"]) == (0, False, False)
    for path in directory.path.iterdir():
        assert SECRET not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("of_comparison", [False, True])
def test_the_uploader_sends_credentials_that_neither_its_arguments_nor_a_file_have(
    directory_of, monkeypatch, of_comparison
):
    for name in ("URI", "USERNAME", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    heard: list[bytes] = []
    with server(answer("500 Error", b""), heard) as uri:
        directory = directory_of(uri)
        if of_comparison:
            members = (MemberEntry("A", "a", "smr", False), MemberEntry("B", "b", "smr", False))
            with directory.open(0) as lock:
                ComparisonRecord("id", "c", "A", "c", keep_credentials(uri), 0.0, members).write(directory, lock)
        uploader = MLflowUploader(directory)
        while not tracking_status(directory)["error"]:
            assert uploader._process.poll() is None
            time.sleep(0.1)
        for name in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{uploader._process.pid}/{name}").read_bytes()
        uploader.finish(patience=0)
    sent = base64.b64encode(f"ada:{SECRET}".encode())
    assert heard
    assert all(b"Authorization: Basic " + sent in request for request in heard)
    for path in directory.path.iterdir():
        assert SECRET not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("reply", [silent, drops])
def test_a_server_without_an_end_is_left_and_that_is_said(directory_of, reply):
    with server(reply) as uri:
        uploader = MLflowUploader(directory_of(uri))
        before = time.monotonic()
        status = uploader.finish(patience=2)
        assert time.monotonic() - before < 30
    assert status == tracking_status(uploader._directory)
    assert status["error"] == "MLflow gave no answer for 2 s"
    assert not status["complete"]


@pytest.mark.slow
def test_a_study_that_may_not_upload_ends_with_the_same_numbers_and_names_the_variables(
    finished_study, monkeypatch, tmp_path, capfd
):
    monkeypatch.chdir(finished_study.study.parent)
    with server(answer("401 Unauthorized", b"You are not authenticated.")) as uri:
        assert main(["few.yaml", "--output", str(tmp_path / "study"), "--set", f"tracking.uri={uri}"]) == 0
        place = uri.replace(f"ada:{SECRET}@", "")
        said = capfd.readouterr()
        told = " ".join(said.out.split())
        assert f"not all runs are uploaded: MLflow at {place} answered 401: " in told
        assert "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN" in told
        assert f"To upload: python -m raysel.tune --replay {tmp_path / 'study'}" in told
        monkeypatch.setattr("raysel.core.credentials._kept", {})  # another process
        assert main(["--replay", str(tmp_path / "study")]) == 1
        again = capfd.readouterr()
        assert f"MLflow at {place} answered 401: " in " ".join(again.err.split())
    assert SECRET not in said.out + said.err + again.out + again.err
    dead, alive = (
        json.loads((study / "ranking" / "manifest.json").read_text())
        for study in (tmp_path / "study", finished_study.study)
    )
    assert dead["scores"] == alive["scores"]
    assert dead["winners"] == alive["winners"]
    for path in (tmp_path / "study").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    assert f"http://{HIDDEN}@" in (tmp_path / "study" / "config.yaml").read_text()


@pytest.mark.slow
def test_a_store_that_another_program_has_locked_gets_everything_once(directory_of, tmp_path):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    MlflowClient(uri).search_experiments()  # makes the tables
    directory = directory_of(uri)
    with sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        uploader = MLflowUploader(directory)
        while not (status := tracking_status(directory)).get("locked"):
            assert uploader._process.poll() is None
            time.sleep(0.1)
        assert status["error"].startswith(f"MLflow at {uri} is locked by another program that writes to it; wait")
        writer.execute("COMMIT")
    assert uploader.finish()["complete"]
    assert runs_in(uri, "other") == keys_of(list(read_records(directory.journal)))
