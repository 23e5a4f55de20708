"""A directory is held by one study or comparison, and nothing in it is ever written over."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raysel.core.errors import DirectoryError, StudyError
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory, newest_study

RECORD = ComparisonRecord(
    id="a",
    name="few",
    reference="ℓ₂,₁",
    experiment="few",
    uri="sqlite:///mlflow.db",
    started=1.5,
    members=(
        MemberEntry("ℓ₂,₁", "l2-1", "rfs", False),
        MemberEntry("MCGF", "dfs", "mcgf", True, "it failed", True),
    ),
)


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_new_directory_is_made_with_its_parents_and_files_of_others_are_left(tmp_path):
    directory, lock = StudyDirectory.create(tmp_path / "a" / "b", 1)
    with lock:
        assert directory.path.is_dir()
    (directory.path / "notes.txt").write_text("mine")
    StudyDirectory.create(tmp_path / "a" / "b", 1)[
        1
    ].close()  # nothing was begun there: it is free again
    assert (directory.path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["config.yaml", "plan.json", "journal.jsonl", "model.skops", "ranking/ranking.csv"]
)
def test_a_directory_that_holds_a_study_is_refused_and_not_changed(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("what a study left")
    before = contents(tmp_path)
    with pytest.raises(StudyError, match=r"already holds a study.*output directory"):
        StudyDirectory.create(tmp_path, 1)
    assert contents(tmp_path) == before
    (tmp_path / ".beginning").touch()  # it was killed while the first files were written
    StudyDirectory.create(tmp_path, 1)[1].close()


@pytest.mark.slow
def test_a_directory_in_use_by_another_process_is_refused_until_that_process_ends(tmp_path):
    script = (
        "import sys; from pathlib import Path; from raysel.tracking.directory import"
        f" StudyDirectory\ndirectory, hold = StudyDirectory.create(Path({str(tmp_path)!r}),"
        " 1)\ndirectory.config.write_text('name: first'); print('held', flush=True);"
        " sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            before = contents(tmp_path)
            with pytest.raises(
                StudyError,
                match=f"a study is running in {re.escape(str(tmp_path))}.*output directory",
            ):
                StudyDirectory.create(tmp_path, 1)
            assert contents(tmp_path) == before
        finally:
            holder.kill()
    (tmp_path / "config.yaml").unlink()
    StudyDirectory.create(tmp_path, 1)[1].close()  # killed, it holds nothing any more


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    places = {
        tmp_path / "file": "file: File exists",
        tmp_path / "file" / "below": r"nothing can be written to .*file/below: Not a directory",
        Path("/proc/study"): "nothing can be written to /proc/study: No such file",
    }
    for place, message in places.items():
        with pytest.raises(StudyError, match=message):
            StudyDirectory.create(place, 1)
    with pytest.raises(
        StudyError, match=r"No space left on device .*MiB are needed.*output directory"
    ):
        StudyDirectory.create(tmp_path / "study", 2**62)
    assert contents(tmp_path) == {"file": b""}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StudyError, match="Permission denied"):
        StudyDirectory.create(tmp_path / "study", 1)


def test_the_newest_study_is_found_here_and_below(tmp_path):
    with pytest.raises(
        StudyError, match=f"no study at or below {re.escape(str(tmp_path))}; give the directory"
    ):
        newest_study(tmp_path)
    now, names = time.time(), ["new", "raysel-studies/middle", ".", "raysel-studies/old"]
    for age, name in enumerate(names):
        journal = tmp_path / name / "journal.jsonl"
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.touch()
        os.utime(journal, (now - age, now - age))
    for name in names:
        assert newest_study(tmp_path) == tmp_path / name
        (tmp_path / name / "journal.jsonl").unlink()
    assert re.fullmatch(r"raysel-studies/digits-\d{8}-\d{6}", str(StudyDirectory.default("digits")))


def test_a_list_of_members_is_read_back_and_never_overwritten(tmp_path):
    directory, lock = StudyDirectory.create(tmp_path, 0)
    with lock:
        with pytest.raises(DirectoryError):
            StudyDirectory.create(tmp_path, 0)
        RECORD.write(directory, lock)
    assert ComparisonRecord.read(directory) == RECORD
    assert directory.member("dfs").path == tmp_path / "dfs"
    with pytest.raises(DirectoryError):
        StudyDirectory.create(tmp_path, 0)
    raw = json.loads(directory.members.read_text())
    assert raw["schema"] == 1
    for entry in raw["members"]:
        del entry["transductive"]  # as version 0.5 wrote it
    assert [member.transductive for member in ComparisonRecord.from_json(raw).members] == [
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds no comparison"),
        ("{", "is damaged"),
        ("[]", "its schema is not 1"),
        ('{"schema": 2}', "its schema is not 1"),
        ('{"schema": 1}', "'id': Field required"),
        (
            json.dumps(RECORD.to_json() | {"members": [{"label": "x"}]}),
            "'members.0.folder': Field required",
        ),
        (
            json.dumps(
                RECORD.to_json()
                | {"members": [RECORD.to_json()["members"][0] | {"transductive": "perhaps"}]}
            ),
            "'members.0.transductive': Input should be",
        ),
    ],
)
def test_a_damaged_list_is_named(tmp_path, text, message):
    directory = StudyDirectory(tmp_path)
    if text is not None:
        directory.members.write_text(text)
    with pytest.raises(DirectoryError, match=message):
        ComparisonRecord.read(directory)
