"""Studies at URIs: run, resumed, opened, selected; two drivers, a store that fails, files of
strangers.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_studies import NoUpload, raw_config, run_offline, timeless, write_digits

from raysel import open_study, select
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import DirectoryError, StudyError
from raysel.core.storage import mirror as mirrors
from raysel.core.storage.location import parse_location
from raysel.core.storage.mirror import MARKERS, Claim, states
from raysel.core.storage.working_copy import opened_at, running_at, shown_place
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.launch import working_folder
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Temporary folders of this test only."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished study."""
    folder = tmp_path_factory.mktemp("finished")
    write_digits(folder / "few.npz")
    run_offline(raw_config(folder / "few.npz"), folder / "study")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in states(folder)}


def run_at(uri: str, raw: dict) -> None:
    study = Study.prepare(config_from_dict(raw))
    with working_folder(uri, new=True) as path:
        course.run(study, path, SerialExecutor(study), start_upload=NoUpload)


def test_a_study_written_to_a_uri_is_that_of_a_directory(finished, tmp_path):
    uri = (tmp_path / "store" / "there").as_uri()
    run_at(uri, raw_config(finished / "few.npz"))
    there, here = tmp_path / "store" / "there", finished / "study"
    assert states(there).keys() == states(here).keys()
    assert (there / "ranking" / "ranking.csv").read_bytes() == (
        here / "ranking" / "ranking.csv"
    ).read_bytes()
    assert [
        path.name for path in there.iterdir() if path.name.startswith(".")
    ] == []  # no lock, no marker
    result = open_study(uri)
    assert result.status == "finished"
    assert shown_place(result.path) == uri
    assert [timeless(t.to_json()) for t in result.stored.trials] == [
        timeless(t.to_json()) for t in open_study(here).stored.trials
    ]


def test_a_resumed_study_is_that_of_an_undisturbed_one(finished, tmp_path):
    there = tmp_path / "store" / "there"
    shutil.copytree(finished / "study", there)
    lines = (there / "journal.jsonl").read_text().splitlines(keepends=True)
    trials = [i for i, line in enumerate(lines) if json.loads(line)["kind"] == "trial"]
    (there / "journal.jsonl").write_text(
        "".join(lines[: trials[2]]) + '{"kind": "tri'
    )  # killed within the third
    (there / "model.skops").unlink()
    with working_folder(there.as_uri(), new=False) as path:
        stored = StoredStudy.read(StudyDirectory(path))
        study = Study.prepare(
            config_from_dict(raw_config(finished / "few.npz")), StudyDirectory(path).plan
        )
        course.resume(study, stored.directory, SerialExecutor(study), start_upload=NoUpload)
    ids = [record.id for record in open_study(there).stored.trials]
    assert len(ids) == len(set(ids)) == len(trials)
    for name in ("ranking/ranking.csv", "folds/outer0.csv"):
        assert (there / name).read_bytes() == (finished / "study" / name).read_bytes()


@pytest.mark.slow
def test_select_and_report_write_to_the_uri(finished, tmp_path, capsys, temporary):
    there = tmp_path / "store" / "there"
    shutil.copytree(finished / "study", there)
    journal = (there / "journal.jsonl").stat().st_mtime_ns
    assert select.main([there.as_uri(), "--top", "3", "--format", "csv"]) == 0
    assert f"{there.as_uri()}/selection-top3/ranking.csv" in capsys.readouterr().out
    assert (there / "selection-top3" / "ranking.csv").is_file()
    assert run_command(["report", there.as_uri()]) == 0
    assert capsys.readouterr().out == f"{there.as_uri()}/report.html\n"
    assert (there / "report.html").is_file()
    assert (there / "journal.jsonl").stat().st_mtime_ns == journal  # not copied back
    assert list(temporary.iterdir()) == []


def test_a_new_study_replaces_none(finished, tmp_path):
    there = tmp_path / "store" / "there"
    shutil.copytree(finished / "study", there)
    before = contents(there)
    with pytest.raises(DirectoryError):
        run_at(there.as_uri(), raw_config(finished / "few.npz"))
    assert contents(there) == before
    assert not (there / MARKERS).exists()


@pytest.mark.parametrize("uri", ["s3://bucket", "abfss://a/b", "file:///proc/no-such-folder/study"])
def test_a_place_that_cannot_be_used_is_refused_at_once(uri):
    with (
        pytest.raises(DirectoryError, match=r"whole bucket|no reader|cannot be written"),
        running_at(uri, refused=()),
    ):
        pytest.fail("entered")


def test_there_is_no_study_where_nothing_is(tmp_path):
    uri = (tmp_path / "none").as_uri()
    for attempt in (lambda: open_study(uri), lambda: running_at(uri).__enter__()):
        with pytest.raises(DirectoryError, match=f"{uri} holds no study"):
            attempt()
    assert not (tmp_path / "none").exists()


def test_errors_name_the_uri_and_not_the_copy(finished, tmp_path):
    there = tmp_path / "there"
    shutil.copytree(finished / "study", there)
    (there / "journal.jsonl").write_text("no journal\n")
    with pytest.raises(DirectoryError, match=there.as_uri()), opened_at(there.as_uri()) as path:
        open_study(path)


# --- markers -------------------------------------------------------------------------------


def test_two_drivers_do_not_write_to_one_uri(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "INTERVAL", 0.02)
    uri = (tmp_path / "there").as_uri()
    with running_at(uri, refused=()) as path:
        (path / "journal.jsonl").write_text("{}\n")
        wait_for((tmp_path / "there" / "journal.jsonl").exists)
        with pytest.raises(
            DirectoryError, match=f"a study is running in {uri} .process {os.getpid()} on "
        ):
            running_at(uri).__enter__()
        with pytest.raises(DirectoryError):
            running_at(uri, refused=()).__enter__()
    with running_at(uri) as path:
        assert (path / "journal.jsonl").read_text() == "{}\n"


def claimed_by(folder: Path, **changes: object) -> Path:
    """The marker of another driver, which died without a word."""
    location = parse_location(folder.as_uri())
    Claim(location.open(), location)
    (marker,) = (folder / MARKERS).iterdir()
    marker.write_text(json.dumps(json.loads(marker.read_text()) | changes))
    return marker


def test_a_dead_driver_is_known_on_this_machine_at_once_and_on_another_by_the_clock_of_the_store(
    tmp_path,
):
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    marker = claimed_by(tmp_path / "here", pid=dead.pid, start="1")
    with running_at((tmp_path / "here").as_uri(), refused=()):
        assert not marker.exists()
    marker = claimed_by(tmp_path / "there", machine="another")
    with pytest.raises(DirectoryError):
        running_at((tmp_path / "there").as_uri(), refused=()).__enter__()
    long_ago = time.time() - mirrors.DEAD_AFTER - 5
    os.utime(marker, (long_ago, long_ago))
    with running_at((tmp_path / "there").as_uri(), refused=()):
        assert not marker.exists()


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"pid": "x", "host": ["\\u001b[31m"]}', "\x1b]0;title\x07" * 9, "[" * 4096],
)
def test_a_marker_of_a_stranger_is_read_safely(tmp_path, content):
    marker = claimed_by(tmp_path / "there", machine="another")
    marker.write_text(content)
    with pytest.raises(DirectoryError, match=r"process [?] on [?]") as caught:
        running_at((tmp_path / "there").as_uri(), refused=()).__enter__()
    assert str(caught.value).isprintable()


def test_a_driver_that_was_taken_for_dead_stops_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "RENEWAL", 0.0)
    there, said = tmp_path / "there", []
    with (  # noqa: PT012 - the error comes at the end of the inner context
        pytest.raises(StudyError),
        running_at(there.as_uri(), refused=(), say=said.append) as path,
    ):
        for marker in (there / MARKERS).iterdir():
            marker.unlink()
        (path / "journal.jsonl").write_text("{}\n")
    assert not (there / "journal.jsonl").exists()
    assert "another driver" in said[0]
    assert (path / "journal.jsonl").read_text() == "{}\n"


# --- the copy while the study runs -----------------------------------------------------------


def wait_for(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_files_are_copied_while_the_study_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "INTERVAL", 0.02)
    there = tmp_path / "there"
    with running_at(there.as_uri(), refused=()) as path:
        (path / "journal.jsonl").write_text('{"n": 1}\n{"n": 2')
        (path / ".lock").touch()
        (path / ".plan.json.17").write_text("half")
        (path / "folds").mkdir()
        (path / "folds" / "outer0.csv").write_text("a")
        (path / "link").symlink_to("/etc/hostname")
        wait_for(lambda: states(there).keys() == {"journal.jsonl", "folds/outer0.csv"})
        assert (there / "journal.jsonl").read_text() == '{"n": 1}\n'  # whole lines only
        (path / "folds" / "outer0.csv").unlink()
        wait_for(lambda: states(there).keys() == {"journal.jsonl"})


def test_a_store_that_fails_and_comes_back_is_said_once_each(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "INTERVAL", 0.02)
    there, said = tmp_path / "there", []
    with running_at(there.as_uri(), refused=(), say=said.append) as path:
        there.rename(tmp_path / "away")
        there.write_text("no folder")
        (path / "a.json").write_text("{}")
        wait_for(lambda: said)
        time.sleep(0.2)
        there.unlink()
        (tmp_path / "away").rename(there)
        wait_for(lambda: len(said) == 2)
    assert "cannot be written" in said[0]
    assert str(path) in said[0]
    assert "is written again" in said[1]
    assert contents(there) == {"a.json": b"{}"}


def test_what_a_store_that_failed_lacks_is_named_with_the_command_that_copies_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(mirrors, "PATIENCE", 0.0)
    monkeypatch.setattr(mirrors, "_AGAIN", 0.0)
    there = tmp_path / "there"
    with (  # noqa: PT012 - the error comes at the end of the inner context
        pytest.raises(StudyError, match=r"journal\.jsonl missing") as caught,
        running_at(there.as_uri(), refused=()) as path,
    ):
        (path / "journal.jsonl").write_text("{}\n")
        there.rename(tmp_path / "away")
        there.write_text("no folder")
    command = str(caught.value).partition("to copy them: raysel ")[2].split()
    there.unlink()
    assert run_command(command) == 0
    assert capsys.readouterr().out == f"1 file copied to {there.as_uri()}\n"
    assert contents(there) == {"journal.jsonl": b"{}\n"}
    assert run_command(["upload", str(tmp_path / "none"), there.as_uri()]) == 2
    assert run_command(["upload", str(path), "here"]) == 2


def test_a_study_with_links_is_not_fetched_nor_written(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "PATIENCE", 0.0)
    monkeypatch.setattr(mirrors, "_AGAIN", 0.0)
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (there / "journal.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(DirectoryError):
        open_study(there.as_uri())
    (there / "journal.jsonl").unlink()
    (there / "config.yaml").write_text("{}")
    with (  # noqa: PT012 - the error comes at the end of the inner context
        pytest.raises(StudyError),
        running_at(there.as_uri()) as path,
    ):
        (there / "ranking").symlink_to(tmp_path / "elsewhere")
        (path / "ranking").mkdir()
        (path / "ranking" / "ranking.csv").write_text("a")
    assert list((tmp_path / "elsewhere").iterdir()) == []
