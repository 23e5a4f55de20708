"""A study's directory is held by one study, and nothing in it is ever written over."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raysel.core.errors import StudyError
from raysel.tracking.directory import StudyDirectory, newest_study


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_new_directory_is_made_with_its_parents(tmp_path):
    directory, hold = StudyDirectory.create(tmp_path / "a" / "b", 1)
    with hold:
        assert directory.path.is_dir()
    StudyDirectory.create(tmp_path / "a" / "b", 1)[1].close()  # nothing was begun there: it is free again


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    StudyDirectory.create(tmp_path, 1)[1].close()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["config.yaml", "plan.json", "journal.jsonl", "model.skops", "ranking/ranking.csv"])
def test_a_directory_that_holds_a_study_is_refused_and_not_changed(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("what a study left")
    before = contents(tmp_path)
    with pytest.raises(StudyError, match=r"already holds a study.*output directory"):
        StudyDirectory.create(tmp_path, 1)
    assert contents(tmp_path) == before


def test_what_a_study_killed_at_its_beginning_has_left_is_no_study(tmp_path):
    for name in (".beginning", "config.yaml", "plan.json"):
        (tmp_path / name).write_text("")
    StudyDirectory.create(tmp_path, 1)[1].close()


def test_a_directory_in_use_by_another_process_is_refused_until_that_process_ends(tmp_path):
    script = (
        "import sys; from pathlib import Path; from raysel.tracking.directory import StudyDirectory\n"
        f"directory, hold = StudyDirectory.create(Path({str(tmp_path)!r}), 1)\n"
        "directory.config.write_text('name: first'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            before = contents(tmp_path)
            with pytest.raises(StudyError, match=f"a study is running in {re.escape(str(tmp_path))}.*output directory"):
                StudyDirectory.create(tmp_path, 1)
            assert contents(tmp_path) == before
        finally:
            holder.kill()
    (tmp_path / "config.yaml").unlink()
    StudyDirectory.create(tmp_path, 1)[1].close()  # killed, it holds nothing any more


def test_no_room_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(StudyError, match=r"No space left on device .*MiB are needed.*output directory"):
        StudyDirectory.create(tmp_path / "study", 2**62)
    assert contents(tmp_path) == {}


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="file: File exists"):
        StudyDirectory.create(tmp_path / "file", 1)
    with pytest.raises(StudyError, match=r"nothing can be written to .*file/below: Not a directory"):
        StudyDirectory.create(tmp_path / "file" / "below", 1)
    with pytest.raises(StudyError, match="nothing can be written to /proc/study: No such file"):
        StudyDirectory.create(Path("/proc/study"), 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StudyError, match="Permission denied"):
        StudyDirectory.create(tmp_path / "study", 1)


def test_the_newest_study_is_found_here_and_below(tmp_path):
    with pytest.raises(StudyError, match=f"no study at or below {re.escape(str(tmp_path))}; give the directory"):
        newest_study(tmp_path)
    now = time.time()
    for age, name in enumerate(["new", "raysel-studies/middle", ".", "raysel-studies/old"]):
        journal = tmp_path / name / "journal.jsonl"
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.touch()
        os.utime(journal, (now - age, now - age))
    assert newest_study(tmp_path) == tmp_path / "new"
    for found, following in [
        ("new", "raysel-studies/middle"),
        ("raysel-studies/middle", "."),
        (".", "raysel-studies/old"),
    ]:
        (tmp_path / found / "journal.jsonl").unlink()
        assert newest_study(tmp_path) == tmp_path / following


def test_the_default_directory_tells_name_and_time():
    assert re.fullmatch(r"raysel-studies/digits-\d{8}-\d{6}", str(StudyDirectory.default("digits")))
