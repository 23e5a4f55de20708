"""The process beside the study: MLflow may be slow, dead, die or hang; the journal stays the truth."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow_servers import keys_of, runs_in

from raysel.core.errors import DirectoryError
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, last_study, read_journal, read_records
from raysel.tracking.journal_upload import replay, tracking_status, upload_study
from raysel.tracking.records import Record
from raysel.tracking.upload_process import MLflowUploader
from raysel.tune import main

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def journal_of(finished_study):
    """The finished study's records, as those of another study for another store; its files are not copied."""

    def make(uri: str, name: str = "again") -> list[Record]:
        first, *rest = read_records(finished_study.study / "journal.jsonl")
        return [replace(first, id=name, experiment=name, uri=uri), *rest]

    return make


def write(directory: StudyDirectory, records: list[Record]) -> None:
    directory.path.mkdir(exist_ok=True)
    with Journal(directory.journal) as journal:
        for record in records:
            journal.append(record)


class Server:
    """A real MLflow server on a store of its own, that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.uri, self.store, self._folder = f"http://127.0.0.1:{port}", f"sqlite:///{folder}/server.db", folder
        self._command = [
            *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            *("--backend-store-uri", self.store, "--artifacts-destination", str(folder / "artifacts")),
        ]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("server"))
    yield found
    found.kill()


@pytest.fixture
def slow(server):
    """The same server behind a line that takes its time with each call."""

    class Line(BaseHTTPRequestHandler):
        seconds = 1.5

        def pass_on(self):
            time.sleep(self.seconds)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            call = urllib.request.Request(server.uri + self.path, body, dict(self.headers), method=self.command)
            try:
                with urllib.request.urlopen(call) as answer:
                    status, content = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, content = error.code, error.read()
            with contextlib.suppress(OSError):  # who asked may have gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = pass_on  # noqa: N815 - their names

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Line) as line:
        threading.Thread(target=line.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{line.server_address[1]}"
        line.shutdown()


@pytest.mark.slow
def test_a_slow_server_is_not_waited_for_and_told_the_rest_later(tmp_path, server, slow, journal_of):
    records = journal_of(slow, "slow")
    directory = StudyDirectory(tmp_path / "study")
    write(directory, records)
    follower = MLflowUploader(directory)
    while tracking_status(follower._directory)["logged"] < 1:
        assert follower._process.poll() is None
        time.sleep(0.1)
    time.sleep(0.7)  # in the middle of its next call
    told = follower.finish(patience=0.5)
    assert not told["complete"]
    assert 1 <= told["logged"] < len(records)
    assert replay(directory, server.uri)["complete"]
    assert runs_in(server.store, "slow") == keys_of(records)


@pytest.mark.slow
def test_a_server_that_dies_midway_costs_nothing_but_its_own_runs(tmp_path, server, journal_of):
    records = journal_of(server.uri)
    directory = StudyDirectory(tmp_path / "study")
    follower = None
    try:
        write(directory, records[:3])
        follower = MLflowUploader(directory)
        while tracking_status(follower._directory)["logged"] < 3:
            assert follower._process.poll() is None
            time.sleep(0.1)
        server.kill()
        write(directory, records[3:])
        told = follower.finish()
        assert not told["complete"]
        assert told["error"]
        assert told["logged"] == 3
        assert follower._process.returncode is not None
        assert list(read_records(directory.journal)) == records
        server.start()
        assert upload_study(directory, None)
        assert tracking_status(follower._directory)["complete"]
    finally:
        if follower is not None:
            follower.stop()
    assert runs_in(server.store, "again") == keys_of(records)


@pytest.mark.slow
def test_a_study_whose_server_is_not_there_ends_with_the_same_numbers(finished_study, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(finished_study.study.parent)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    assert main(["few.yaml", "--output", str(tmp_path / "study")]) == 0
    said = capsys.readouterr()
    assert "not all runs are uploaded: " in said.out
    assert "Connection" in said.out
    told = " ".join(said.out.split())
    assert f"To upload: python -m raysel.tune --replay {tmp_path / 'study'}" in told
    assert (tmp_path / "study" / "ranking" / "ranking.csv").read_bytes() == (
        finished_study.study / "ranking" / "ranking.csv"
    ).read_bytes()
    dead, alive = (
        json.loads((study / "ranking" / "manifest.json").read_text())
        for study in (tmp_path / "study", finished_study.study)
    )
    assert dead["scores"] == alive["scores"]
    assert dead["winners"] == alive["winners"]
    kinds = [record["kind"] for record in read_journal(tmp_path / "study" / "journal.jsonl")]
    assert kinds == ["study", *["trial"] * 6, "search", *["refit"] * 3, "noise", "end"]


def test_a_server_that_never_answers_is_given_up(tmp_path, journal_of):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        directory = StudyDirectory(tmp_path / "study")
        write(directory, journal_of(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        follower = MLflowUploader(directory)
        silent.accept()  # it has asked
        told = follower.finish(patience=0.5)
    assert (told["complete"], told["logged"]) == (False, 0)
    assert follower._process.returncode is not None


@pytest.mark.slow
def test_studies_that_make_the_same_store_at_once_all_get_it(tmp_path, journal_of):
    uri = f"sqlite:///{tmp_path}/new/mlflow.db"
    directories, followers = [StudyDirectory(tmp_path / name) for name in "abc"], []
    for directory in directories:
        records = journal_of(uri, directory.path.name)
        write(directory, records)
        followers.append(MLflowUploader(directory))
    for follower in followers:
        assert follower._process.wait() == 0
        assert tracking_status(follower._directory)["complete"], tracking_status(follower._directory)
    for directory in directories:
        assert runs_in(uri, directory.path.name) == keys_of(records)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["mlflow.db"]


@pytest.mark.slow
def test_it_does_not_outlive_its_driver(tmp_path, journal_of, finished_study):
    records = journal_of(next(read_records(finished_study.study / "journal.jsonl")).uri, "orphan")
    directory = StudyDirectory(tmp_path / "study")
    write(directory, records[:3])  # no end: with its driver alive it would wait
    script = f"""
from pathlib import Path
from raysel.core.errors import DirectoryError
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.upload_process import MLflowUploader
print(MLflowUploader(StudyDirectory(Path({str(directory.path)!r})))._process.pid, flush=True)
input()
"""
    driver = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    # At once, before it can have seen its driver alive: it still logs what is there, and ends.
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.1)
    status = json.loads(directory.tracking.read_text())
    assert (status["logged"], status["complete"]) == (3, False)


def test_the_last_study_is_found_without_parsing_other_records(tmp_path, journal_of):
    directory = StudyDirectory(tmp_path / "study")
    first = journal_of("sqlite:///a.db")[0]
    write(directory, [first])
    with directory.journal.open("ab") as file:
        file.write(b"damaged\n")
    again = replace(first, uri="sqlite:///b.db")
    write(directory, [again])
    assert last_study(directory.journal) == again
    directory.journal.write_bytes(b'{"kind":"end"}\n')
    with pytest.raises(DirectoryError, match="has no record of a study"):
        last_study(directory.journal)


def test_a_damaged_line_is_named_by_the_upload(tmp_path, journal_of):
    directory = StudyDirectory(tmp_path / "study")
    write(directory, journal_of(f"sqlite:///{tmp_path}/mlflow.db")[:1])
    with directory.journal.open("ab") as file:
        file.write(b"damaged\n")
    with pytest.raises(DirectoryError, match=r"journal\.jsonl, line 2: damaged"):
        upload_study(directory, None)
