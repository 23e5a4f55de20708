"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path

import pytest

from raysel.core.files import (
    atomic_write,
    read_again,
    remove_temporary_files,
    result_path,
    write_text_atomically,
)


def test_a_reader_never_sees_part_of_a_file(tmp_path):
    path = tmp_path / "progress.json"
    write_text_atomically(path, json.dumps({"n": 0, "pad": ""}), durable=False)
    done, seen, faults = threading.Event(), set(), []

    def read() -> None:
        while not done.is_set():
            try:
                value = json.loads(path.read_text())
                assert len(value["pad"]) == value["n"]
                seen.add(value["n"])
            except (OSError, ValueError, AssertionError) as fault:
                faults.append(fault)

    reader = threading.Thread(target=read)
    reader.start()
    number = 0
    while number < 300 or (len(seen) < 3 and not faults and number < 100_000):
        number += 1
        size = 50 * (number % 400)
        write_text_atomically(path, json.dumps({"n": size, "pad": "x" * size}), durable=False)
    done.set()
    reader.join()
    assert not faults
    assert len(seen) >= 3
    assert [p.name for p in tmp_path.iterdir()] == ["progress.json"]


def test_a_file_that_cannot_be_renewed_keeps_its_text(tmp_path):
    path = tmp_path / "kept.json"
    write_text_atomically(path, "old ü")
    with pytest.raises(UnicodeEncodeError):
        write_text_atomically(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old ü"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.json"]


@pytest.mark.parametrize("name", ["progress.json", "a[b]*.json", "x" * 250])
def test_temporary_files_of_others_are_removed_and_nothing_else(tmp_path, name):
    path = tmp_path / name
    kept = {
        path,
        tmp_path / ".lock.0123456789abcdef",
        tmp_path / ".progress.json",
        tmp_path / f".z{name[:100]}",
    }
    for other in kept:
        other.write_text("kept")
    with pytest.raises(FileNotFoundError), atomic_write(path):
        remove_temporary_files(path)
    assert set(tmp_path.iterdir()) == kept
    assert path.read_text() == "kept"


def test_a_rename_whose_answer_was_lost_counts(tmp_path, monkeypatch):
    rename = Path.replace

    def twice(self, target):
        rename(self, target)
        raise FileNotFoundError(2, "the repeated call found nothing")

    monkeypatch.setattr(Path, "replace", twice)
    write_text_atomically(tmp_path / "plan.json", "new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]
    monkeypatch.setattr(
        Path, "replace", lambda *_: rename(tmp_path / "nothing", tmp_path / "plan.json")
    )
    with pytest.raises(FileNotFoundError):
        write_text_atomically(tmp_path / "plan.json", "newer")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]


def test_what_was_replaced_on_the_file_server_is_read_once_more():
    for number, times in ((errno.ESTALE, 2), (errno.EIO, 1)):
        tries = []

        def read(number=number, tries=tries):
            tries.append(1)
            raise OSError(number, "each time")

        with pytest.raises(OSError, match="each time"):
            read_again(read)
        assert len(tries) == times


def test_results_of_a_job_are_not_written_to_its_copy_of_the_working_directory(
    tmp_path, monkeypatch
):
    copy = tmp_path / "working_dir_files" / "_ray_pkg_0123456789abcdef"
    copy.mkdir(parents=True)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert result_path("study") == Path("study")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    assert result_path("study") == tmp_path / "home" / "study"
    assert result_path(tmp_path / "study") == tmp_path / "study"
    monkeypatch.chdir(tmp_path)
    assert result_path("study") == Path("study")


@pytest.mark.parametrize("place", [".", "/"])
def test_a_place_without_a_name_is_a_folder_and_no_fault(place):
    with pytest.raises(IsADirectoryError), atomic_write(Path(place)):
        pass
