"""Data and studies in stores that run here: S3 as moto serves it, Google Cloud Storage as an
emulator does.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.fs
import pytest
import yaml
from mlflow_servers import free_port
from small_studies import NoUpload, raw_config, run_offline, timeless, write_digits

from raysel import load_dataset, open_study, select, tune
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import DataError, DirectoryError, StudyError
from raysel.core.storage import mirror as mirrors
from raysel.core.storage.location import parse_location
from raysel.core.storage.transfer import entries
from raysel.core.storage.working_copy import running_at
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.launch import output_directory, working_folder
from raysel.study.definition import Study

pytestmark = pytest.mark.slow

#: The command on a file, whose six trials start a second apart so that a signal finds some ended
#: and some to come.
SLOW_STUDY = f"""
import sys, time
sys.path.append("{Path(__file__).parents[2]}")
import bare_process
from raysel import tune
from raysel.core.storage import mirror
from raysel.execution.trial_plan import TrialPlan
propose = TrialPlan.propose
TrialPlan.propose = lambda plan: (time.sleep(1), propose(plan))[1]
mirror.INTERVAL = 0.2
tune.main(["one.yaml"])
"""
SECRET = "SECRETofTESTS"


class S3:
    """A server of S3 in a process of its own, on the same port whenever it is started, with an
    empty bucket.
    """

    def __init__(self) -> None:
        self.port = free_port()

    def start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        store = pyarrow.fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        wait_for(lambda: answers(lambda: store.create_dir("bucket")), self.process)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def s3(tmp_path_factory) -> Iterator[S3]:
    """A server that the environment names, with credentials of no account."""
    server = S3()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", "NAMEofTESTS")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        patch.setenv("RAYSEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("RAYSEL_DATA", raising=False)
        server.start()
        yield server
        server.stop()


def answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except OSError:
        return False
    return True


def wait_for(condition: Callable[[], bool], process: subprocess.Popen | None = None) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.05)


def put(uri: str, content: bytes) -> None:
    location = parse_location(uri)
    with location.open().open_output_stream(location.path) as stream:
        stream.write(content)


def get(uri: str) -> bytes:
    location = parse_location(uri)
    try:
        return location.open().open_input_stream(location.path).read()
    except FileNotFoundError:
        return b""


def names(uri: str) -> list[str]:
    location = parse_location(uri)
    return [entry.name for entry in entries(location.open(), location)]


def trials(journal: bytes) -> list[dict]:
    records = [json.loads(line) for line in journal.splitlines()]
    return [timeless(record) for record in records if record["kind"] == "trial"]


def test_a_study_that_is_killed_resumes_from_s3_in_a_clean_folder(
    s3,  # noqa: ARG001
    tmp_path,
    monkeypatch,
    capsys,
):
    write_digits(tmp_path / "few.npz")
    put("s3://bucket/data/few.npz", (tmp_path / "few.npz").read_bytes())
    raw = raw_config("s3://bucket/data/few.npz", output="s3://bucket/studies/one")
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "one.yaml").write_text(yaml.safe_dump(raw))
    log = (tmp_path / "first.log").open("w")
    driver = subprocess.Popen(
        [sys.executable, "-c", SLOW_STUDY], cwd=tmp_path / "first", stdout=log, stderr=log
    )
    journal = "s3://bucket/studies/one/journal.jsonl"
    wait_for(lambda: bool(trials(get(journal))), driver)
    with pytest.raises(
        DirectoryError,
    ):
        working_folder("s3://bucket/studies/one", new=False).__enter__()
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = len(trials(get(journal)))
    assert 1 <= done < 6, (tmp_path / "first.log").read_text()
    (tmp_path / "second").mkdir()
    monkeypatch.chdir(tmp_path / "second")
    assert tune.main(["--resume", "s3://bucket/studies/one"]) == 0
    out = capsys.readouterr().out
    assert f"{done} of 6 trials are done" in out or f"{done} of 6 trials is done" in out
    assert "study   s3://bucket/studies/one\n" in out
    reference = run_offline(raw_config(tmp_path / "few.npz"), tmp_path / "reference")
    found = trials(get(journal))
    assert sorted(found, key=lambda trial: trial["id"]) == sorted(
        trials(reference.directory.journal.read_bytes()), key=lambda trial: trial["id"]
    )
    assert (
        get("s3://bucket/studies/one/ranking/ranking.csv")
        == (reference.directory.ranking / "ranking.csv").read_bytes()
    )
    assert {name for name in names("s3://bucket/studies/one") if name != "tracking.json"} == {
        path.relative_to(reference.path).as_posix()
        for path in reference.path.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert (
        open_study("s3://bucket/studies/one").stored.study.data_hash
        == reference.stored.study.data_hash
    )
    assert [
        name for name in names("s3://bucket") if SECRET.encode() in get(f"s3://bucket/{name}")
    ] == []
    assert select.main(["s3://bucket/studies/one", "--top", "2", "--format", "csv"]) == 0
    assert get("s3://bucket/studies/one/selection-top2/ranking.csv").count(b"\n") > 2


def test_a_store_that_dies_costs_no_finished_work(s3, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mirrors, "INTERVAL", 0.2)
    monkeypatch.setattr(mirrors, "PATIENCE", 0.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    write_digits(tmp_path / "few.npz")
    study = Study.prepare(config_from_dict(raw_config(tmp_path / "few.npz")))
    said: list[str] = []
    uri = "s3://bucket/studies/two"
    with (  # noqa: PT012 - the error comes at the end of the inner context
        pytest.raises(StudyError, match="not everything is in") as caught,
        running_at(uri, refused=(), say=said.append) as path,
    ):
        s3.stop()
        course.run(study, path, SerialExecutor(study), start_upload=NoUpload)
        wait_for(lambda: bool(said))
    s3.start()
    (told,) = said
    assert f"{uri} cannot be written: the store does not answer" in told
    assert open_study(path).status == "finished"
    command = str(caught.value).partition("to copy them: raysel ")[2]
    assert run_command(shlex.split(command)) == 0
    assert "copied to s3://bucket/studies/two" in capsys.readouterr().out
    assert open_study(uri).status == "finished"


def test_credentials_in_uris_reach_nothing(s3, tmp_path, monkeypatch, caplog):  # noqa: ARG001
    write_digits(tmp_path / "few.npz")
    put("s3://bucket/data/few.npz", (tmp_path / "few.npz").read_bytes())
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    keys = f"NAMEofTESTS:{SECRET}"
    raw = raw_config(f"s3://{keys}@bucket/data/few.npz", output=f"s3://{keys}@bucket/studies/three")
    study = Study.prepare(config_from_dict(raw))
    with working_folder(output_directory(study.config), new=True) as path:
        course.run(study, path, SerialExecutor(study), start_upload=NoUpload)
    with pytest.raises(DataError) as caught:
        load_dataset(f"s3://{keys}@bucket/data/none.npz")
    assert SECRET not in caplog.text + str(caught.value)
    objects = names("s3://bucket/studies/three")
    assert "journal.jsonl" in objects
    assert [
        name for name in objects if SECRET.encode() in get(f"s3://bucket/studies/three/{name}")
    ] == []


def test_a_store_in_trouble_is_named_soon_and_with_its_mend(s3, monkeypatch):  # noqa: ARG001
    dead = f"?endpoint_override=127.0.0.1:{free_port()}&scheme=http&region=us-east-1"
    rows = {
        "s3://none/few.npz": "there is no bucket none",
        "s3://bucket/none.npz": "there is no data file s3://bucket/none.npz",
        f"s3://bucket/few.npz{dead}": "the store does not answer",
    }
    for uri, said in rows.items():
        with pytest.raises(DataError, match=said):
            load_dataset(uri)
    with (
        pytest.raises(DirectoryError),
        running_at("s3://none/study", refused=()),
    ):
        pytest.fail("entered")
    put("s3://bucket/public/few.csv", b"a,b,y\n1,2,u\n2,4,v\n1,5,u\n2,3,v\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert load_dataset("s3://bucket/public/few.csv?anonymous=true").n_samples == 4


def test_google_cloud_storage_holds_data_and_study(tmp_path, monkeypatch):
    server_of = pytest.importorskip("gcp_storage_emulator.server").create_server
    monkeypatch.setenv("RAYSEL_CACHE", str(tmp_path / "cache"))
    write_digits(tmp_path / "few.npz")
    port = free_port()
    server = server_of("127.0.0.1", port, in_memory=True, default_bucket="bucket")
    server.start()
    try:
        options = f"?anonymous=true&endpoint_override=127.0.0.1:{port}&scheme=http"
        put(f"gs://bucket/data/few.npz{options}", (tmp_path / "few.npz").read_bytes())
        uri = f"gs://bucket/studies/one{options}"
        study = Study.prepare(
            config_from_dict(raw_config(f"gs://bucket/data/few.npz{options}", output=uri))
        )
        with working_folder(output_directory(study.config), new=True) as path:
            course.run(study, path, SerialExecutor(study), start_upload=NoUpload)
        reference = run_offline(raw_config(tmp_path / "few.npz"), tmp_path / "reference")
        assert (
            get(f"gs://bucket/studies/one/ranking/ranking.csv{options}")
            == (reference.directory.ranking / "ranking.csv").read_bytes()
        )
        assert open_study(uri).stored.study.data_hash == reference.stored.study.data_hash
        with pytest.raises(DirectoryError):
            working_folder(uri, new=True).__enter__()
        with pytest.raises(DataError):
            load_dataset(f"gs://none/few.npz{options}")
        with pytest.raises(DirectoryError):
            running_at(f"gs://none/study{options}", refused=()).__enter__()
    finally:
        server.stop()
