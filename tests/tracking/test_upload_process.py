"""The upload beside a study: MLflow may be slow, dead, locked, die or answer anything; the
journal stays the truth.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from mlflow_servers import directory_for, free_port, keys_of, local_study, runs_in

from raysel.core.credentials import HIDDEN, keep_credentials
from raysel.core.errors import DirectoryError
from raysel.tracking import journal_upload, upload_process
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory
from raysel.tracking.journal import read_journal, read_records
from raysel.tracking.journal_upload import replay, tracking_status, upload_study
from raysel.tracking.upload_process import MLflowUploader
from raysel.tune import main

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

SECRET = "Sw0rdf1sh"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return local_study(tmp_path_factory.mktemp("local"))


@pytest.fixture
def directory_of(local, tmp_path):
    """Makes a directory with the journal of the finished study, or its first records, for
    another store.
    """

    def make(uri: str, name: str = "other", most: int | None = None) -> StudyDirectory:
        return directory_for(uri, tmp_path / name, local.study, most)

    return make


def wait_for(uploader: MLflowUploader, condition: Callable[[dict], object]) -> dict:
    while not condition(status := tracking_status(uploader._directory)):
        assert uploader._process.poll() is None
        time.sleep(0.1)
    return status


def assert_uploaded(uri: str, directory: StudyDirectory) -> None:
    """Each run is there once."""
    assert runs_in(uri, directory.path.name) == keys_of(list(read_records(directory.journal)))


def assert_same_numbers(study: Path, like: Path) -> None:
    assert (study / "ranking" / "ranking.csv").read_bytes() == (
        like / "ranking" / "ranking.csv"
    ).read_bytes()
    one, other = (
        json.loads((path / "ranking" / "manifest.json").read_text()) for path in (study, like)
    )
    assert (one["scores"], one["winners"]) == (other["scores"], other["winners"])


# --- servers that answer anything ----------------------------------------------------------


def answer(status: str, body: bytes, length: int | None = None) -> Callable[[socket.socket], None]:
    length = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
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
def answering(
    reply: Callable[[socket.socket], None], heard: list[bytes] | None = None
) -> Iterator[str]:
    """Address, with credentials, of a server that replies alike to every request, and keeps what
    it heard.
    """
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
                    threading.Thread(
                        target=serve, args=(listening.accept()[0],), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://ada:{SECRET}@127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            answer("500 Error", b'{"error_code": "INTERNAL_ERROR"}'),
            "answered 500, an error of the server",
        ),
        (answer("503 Busy", b"<html>"), "answered 503, an error of the server"),
        (
            answer("200 OK", b"<html><body>Welcome</body></html>"),
            "gave an answer that is not MLflow's",
        ),
        (
            answer("200 OK", b'{"experiment": {"experiment_id'),
            "gave an answer that is not MLflow's",
        ),
        (answer("200 OK", b"\x00\xff" * 500), "gave an answer that is not MLflow's"),
        (answer("200 OK", b'{"exp', length=500), "gave an answer that is damaged"),
        (endless_header, "gave an answer that is damaged"),
        (lambda line: line.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), "gave an answer that is damaged"),
        (silent, "did not answer in time"),
        (reset, "closed the Connection without an answer"),
        (
            answer("401 Unauthorized", b"You are not authenticated."),
            "answered 401: ..MLFLOW_TRACKING_USERNAME",
        ),
        (answer("403 Forbidden", b"Permission denied"), "answered 403: ..MLFLOW_TRACKING_USERNAME"),
        (answer("403 Forbidden", b"Invalid Host header"), "answered 403: ..--allowed-hosts"),
        (answer("404 Not Found", b"nothing\x1b[2J here"), "answered 404: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_wrong_answer_is_named_in_one_line(directory_of, monkeypatch, reply, message):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0" if reply is silent else "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    with answering(reply) as uri:
        directory = directory_of(uri)
        assert not upload_study(directory, None)
    status = tracking_status(directory)
    assert status["error"].startswith(f"MLflow at {uri.replace(f'ada:{SECRET}@', '')} ")
    for part in message.split(".."):
        assert part in status["error"]
    assert status["error"].isprintable()
    assert len(status["error"]) < 400
    assert (status["logged"], status["complete"], status["locked"]) == (0, False, False)
    for path in directory.path.iterdir():
        assert SECRET not in path.read_text()


MAIN = "from raysel.tracking.upload_process import main"


def test_the_process_leaves_the_processors_to_others():
    """The uploads of other tests do not, because beside many processes they would take minutes."""
    leaves, uploads = upload_process._PROGRAM.split(MAIN)
    assert uploads == "\nraise SystemExit(main())\n"
    command = [sys.executable, "-c", f"{leaves}print(os.nice(0))"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, start_new_session=True
    )
    assert int(told.stdout) == min(os.nice(0) + 10, 19)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="a kernel without groups")
def test_a_process_that_is_waited_for_has_its_share_of_the_processors_again():
    leaves, _ = upload_process._PROGRAM.split(MAIN)
    command = [sys.executable, "-c", f"{leaves}print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.readline()
        group = Path(f"/proc/{process.pid}/autogroup")
        before = group.read_text().split()[-1]
        upload_process.share_processors(process.pid)
        after = group.read_text().split()[-1]
        process.communicate(b"\n")
    assert (before, after) == ("10", "0")


@pytest.mark.slow
@pytest.mark.usefixtures("own_upload_process")
@pytest.mark.parametrize("of_comparison", [False, True])
def test_credentials_are_sent_that_neither_the_arguments_nor_a_file_have(
    directory_of, monkeypatch, of_comparison
):
    for name in ("URI", "USERNAME", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.setattr(upload_process, "_PROGRAM", f"{MAIN}; raise SystemExit(main())")
    heard: list[bytes] = []
    with answering(answer("500 Error", b""), heard) as uri:
        directory = directory_of(uri)
        if of_comparison:
            members = (MemberEntry("A", "a", "smr", False), MemberEntry("B", "b", "smr", False))
            with directory.open(0) as lock:
                ComparisonRecord("id", "c", "A", "c", keep_credentials(uri), 0.0, members).write(
                    directory, lock
                )
        uploader = MLflowUploader(directory)
        wait_for(uploader, lambda status: status["error"])
        for name in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{uploader._process.pid}/{name}").read_bytes()
        uploader.finish(patience=0)
    sent = base64.b64encode(f"ada:{SECRET}".encode())
    assert heard
    assert all(b"Authorization: Basic " + sent in request for request in heard)
    for path in directory.path.iterdir():
        assert SECRET not in path.read_text()


@pytest.mark.slow
def test_a_server_without_an_end_is_left_and_that_is_said(directory_of, monkeypatch):
    with answering(drops) as uri:
        uploader = MLflowUploader(directory_of(uri))
        before = time.monotonic()
        told: list[str] = []
        monkeypatch.setattr(upload_process, "TOLD_SECONDS", 1.0)
        status = uploader.finish(patience=2, say=told.append)
        assert time.monotonic() - before < 30
    assert status == tracking_status(uploader._directory)
    place = uri.replace(f"ada:{SECRET}@", "")
    assert told[-1] == f"still waiting for MLflow at {place}, which has 0 records so far"
    assert status["error"] == f"MLflow at {place} gave no answer for 2 s"
    assert (status["complete"], status["logged"]) == (False, 0)
    assert uploader._process.returncode is not None


@pytest.mark.slow
def test_a_study_that_cannot_upload_ends_with_the_same_numbers(local, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(local.study.parent)
    with answering(answer("401 Unauthorized", b"You are not authenticated.")) as uri:
        config = yaml.safe_load(Path("few.yaml").read_text()) | {"tracking": {"uri": uri}}
        (tmp_path / "named.yaml").write_text(yaml.safe_dump(config))
        words = [str(tmp_path / "named.yaml"), "--output", str(tmp_path / "study")]
        assert main(words) == 0
        place = uri.replace(f"ada:{SECRET}@", "")
        out, err = capfd.readouterr()
        told = " ".join(out.split())
        assert "not all runs are uploaded: " in told
        assert f"To upload: raysel tune --replay {tmp_path / 'study'}" in told
        assert f"MLflow at {place} answered 401: " in told
        assert (
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
            in told
        )
        monkeypatch.setattr("raysel.core.credentials._kept", {})  # another process
        assert main(["--replay", str(tmp_path / "study")]) == 1
        out, err = (one + other for one, other in zip((out, err), capfd.readouterr(), strict=True))
        assert f"MLflow at {place} answered 401: " in " ".join(err.split())
        assert SECRET not in out + err
        for path in (tmp_path / "study").rglob("*"):
            assert path.is_dir() or SECRET.encode() not in path.read_bytes()
        assert f"http://{HIDDEN}@" in (tmp_path / "study" / "config.yaml").read_text()
    assert_same_numbers(tmp_path / "study", local.study)
    kinds = [record["kind"] for record in read_journal(tmp_path / "study" / "journal.jsonl")]
    assert kinds == ["study", *["trial"] * 6, "search", *["refit"] * 3, "noise", "end"]


# --- real stores ---------------------------------------------------------------------------


class Server:
    """A real MLflow server on a store of its own, that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.uri, self.store, self._folder = (
            f"http://127.0.0.1:{port}",
            f"sqlite:///{folder}/server.db",
            folder,
        )
        self._command = [
            *(
                sys.executable,
                "-m",
                "mlflow",
                "server",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--workers",
                "1",
            ),
            *(
                "--backend-store-uri",
                self.store,
                "--artifacts-destination",
                str(folder / "artifacts"),
            ),
        ]
        self.start()

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # As in mlflow-compose.yaml: without the dozen processes of jobs for language models.
        environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._process = subprocess.Popen(
            self._command, cwd=self._folder, env=environment, start_new_session=True, **quiet
        )
        while self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        pytest.fail("the MLflow server ended by itself")

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@pytest.fixture
def server(tmp_path):
    found = Server(tmp_path)
    yield found
    found.kill()


@pytest.mark.slow
def test_a_stopped_uploader_and_a_server_that_dies_midway_cost_nothing_but_their_own_runs(
    server, directory_of, monkeypatch
):
    monkeypatch.setenv(
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1"
    )  # as raysel sets it where the user does not
    directory = directory_of(server.uri, "again", most=3)
    uploader = MLflowUploader(directory)
    try:
        wait_for(uploader, lambda status: status["logged"] >= 1)
        assert not uploader.finish(patience=0)["complete"]  # stopped wherever it is
        uploader = MLflowUploader(directory)
        wait_for(uploader, lambda status: status["logged"] >= 3)
        server.kill()
        directory_of(server.uri, "again")
        status = uploader.finish()
        assert (status["complete"], status["logged"], bool(status["error"])) == (False, 3, True)
        assert uploader._process.returncode is not None
        server.start()
        assert replay(directory, server.uri)["complete"]
    finally:
        uploader.stop()
    assert_uploaded(server.store, directory)


@pytest.mark.slow
def test_a_store_that_another_program_has_locked_gets_everything_once(directory_of, tmp_path):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    MlflowClient(uri).search_experiments()  # makes the tables
    directory = directory_of(uri)
    with sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        uploader = MLflowUploader(directory)
        status = wait_for(uploader, lambda status: status.get("locked"))
        assert status["error"].startswith(
            f"MLflow at {uri} is locked by another program that writes to it; wait"
        )
        writer.execute("COMMIT")
    assert uploader.finish()["complete"]
    assert_uploaded(uri, directory)


@pytest.mark.slow
@pytest.mark.parametrize("is_freed", [True, False])
def test_a_replay_waits_for_a_locked_store_and_says_so(
    directory_of, tmp_path, monkeypatch, is_freed
):
    from raysel.tracking.mlflow_store import _new_content  # noqa: PLC0415 - takes seconds

    monkeypatch.setattr("raysel.tracking.mlflow_client._TIMEOUT", 0.05)
    monkeypatch.setattr(journal_upload, "_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(journal_upload, "TOLD_SECONDS", 0.1)
    monkeypatch.setattr(journal_upload, "LOCKED_SECONDS", 600.0 if is_freed else 0.5)
    store = tmp_path / "mlflow.db"
    store.write_bytes(_new_content())
    uri, told, freed = f"sqlite:///{store}", [], threading.Event()
    directory = directory_of(uri)
    is_locked = f"MLflow at {uri} is locked by another program that writes to it"

    with sqlite3.connect(store, isolation_level=None, check_same_thread=False) as writer:
        writer.execute("BEGIN EXCLUSIVE")

        def say(text: str) -> None:
            told.append(text)
            if is_freed and is_locked in text and not freed.is_set():
                writer.execute("COMMIT")
                freed.set()

        status = replay(directory, uri, say=say)
    assert told[-1].startswith(f"still waiting for MLflow at {uri}, which has ")
    assert status["complete"] == is_freed
    if is_freed:
        assert any(f"which has 0 records so far: {is_locked}" in text for text in told)
        assert_uploaded(uri, directory)
    else:
        assert is_locked in status["error"]


@pytest.mark.slow
def test_studies_that_make_the_same_store_at_once_all_get_it(tmp_path, directory_of):
    uri = f"sqlite:///{tmp_path}/new/mlflow.db"
    directories = [directory_of(uri, name) for name in "ab"]
    for uploader in [MLflowUploader(directory) for directory in directories]:
        assert uploader._process.wait() == 0
    for directory in directories:
        assert tracking_status(directory)["complete"], tracking_status(directory)
        assert_uploaded(uri, directory)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["mlflow.db"]


@pytest.mark.slow
@pytest.mark.usefixtures("prompt_uploads")
def test_it_does_not_outlive_its_driver(tmp_path, directory_of):
    directory = directory_of(
        f"sqlite:///{tmp_path}/mlflow.db", most=3
    )  # no end: with its driver alive it would wait
    script = f"""
from pathlib import Path
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.upload_process import MLflowUploader
print(MLflowUploader(StudyDirectory(Path({str(directory.path)!r})))._process.pid, flush=True)
input()
"""
    driver = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    # At once, before it can have seen its driver alive: it still logs what is there, and ends.
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.1)
    status = json.loads(directory.tracking.read_text())
    assert (status["logged"], status["complete"]) == (3, False)


def test_a_damaged_line_is_named_by_the_upload(tmp_path, directory_of):
    directory = directory_of(f"sqlite:///{tmp_path}/mlflow.db", most=1)
    with directory.journal.open("ab") as file:
        file.write(b"damaged\n")
    with pytest.raises(DirectoryError):
        upload_study(directory, None)
