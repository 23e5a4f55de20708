"""The counts of a study, for programs and for people."""

from __future__ import annotations

import io
import json
import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from raysel.errors import StudyError
from raysel.files import write_json_atomically, write_text_atomically
from raysel.tracking import progress as progress_module
from raysel.tracking.progress import Progress


def plain() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, soft_wrap=True)


def test_a_reader_never_sees_part_of_a_file(tmp_path):
    path = tmp_path / "progress.json"
    write_json_atomically(path, {"n": 0, "pad": ""})
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
        write_json_atomically(path, {"n": size, "pad": "x" * size})
    done.set()
    reader.join()
    assert not faults
    assert len(seen) >= 3
    assert [p.name for p in tmp_path.iterdir()] == ["progress.json"]


def test_a_file_that_cannot_be_renewed_keeps_its_text(tmp_path):
    path = tmp_path / "kept.json"
    write_text_atomically(path, "old ü")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json_atomically(path, float("nan"))
    with pytest.raises(UnicodeEncodeError):
        write_text_atomically(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old ü"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.json"]


@given(
    outcomes=st.lists(st.booleans(), min_size=1, max_size=12),
    scores=st.lists(st.floats(0, 1), min_size=12, max_size=12),
)
@settings(max_examples=25, deadline=None)
def test_the_counts_are_those_of_the_trials(tmp_path_factory, outcomes, scores):
    path = tmp_path_factory.mktemp("progress") / "progress.json"
    console = plain()
    expected = {"finished": 0, "running": 0, "failed": 0, "total": len(outcomes)}
    best = None
    with Progress(path, len(outcomes), "accuracy", console) as progress:
        assert json.loads(path.read_text()) == expected
        for fails, score in zip(outcomes, scores, strict=False):
            progress.update(running=1)
            progress.update(finished=not fails, failed=fails, running=-1, score=None if fails else score)
            expected["failed" if fails else "finished"] += 1
            best = best if fails else max(score, best or 0.0)
        assert json.loads(path.read_text()) == expected  # all are done: written at once
        line = progress.line()
    assert json.loads(path.read_text()) == expected
    assert line.startswith(f"{len(outcomes)}/{len(outcomes)} trials · 0 running · {expected['failed']} failed")
    assert (f"best val_accuracy {best:.3f}" in line) if best is not None else ("best" not in line)
    assert "left" not in line


def test_the_counts_are_written_on_the_way_out_of_a_study_that_fails(tmp_path):
    path = tmp_path / "progress.json"
    with suppress(StudyError), Progress(path, 9, "accuracy", plain()) as progress:
        progress.update(running=2)
        progress.update(running=-1, finished=1)
        raise StudyError("ended")
    assert json.loads(path.read_text()) == {"finished": 1, "running": 0, "failed": 0, "total": 9}


def test_counts_that_find_no_room_neither_end_a_study_nor_hide_what_does(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    with Progress(folder / "p.json", 9, "accuracy", plain()) as progress:
        (folder / "p.json").unlink()
        folder.rmdir()
        progress.enter("refitting")
        progress.update(finished=1)
    assert progress.finished == 1


def test_plain_lines_without_escape_codes_where_there_is_no_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "_LOG_EVERY_SECONDS", 0.0)
    console = plain()
    with Progress(tmp_path / "p.json", 4, "accuracy", console) as progress:
        progress.enter("starting Ray")
        progress.enter("")
        progress.update(finished=1, failed=1, running=1, score=0.5)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "starting Ray"
    assert lines[-1].startswith("2/4 trials · 1 running · 1 failed · best val_accuracy 0.500 · about ")
    assert all(character.isprintable() for line in lines for character in line)


def test_one_live_line_on_a_terminal_is_gone_in_the_end(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    with Progress(tmp_path / "p.json", 2, "accuracy", console) as progress:
        progress.enter("starting Ray " + "." * 200)  # longer than the terminal is wide: cut, not wrapped
        progress.enter("")
        for _ in range(2):
            progress.update(finished=1, score=0.25)
    shown = console.file.getvalue()
    assert "starting Ray" in shown
    assert "2/2 trials" in shown
    assert "\n\n" not in shown
    assert shown.count("\n") <= 1
    assert shown.rstrip().endswith("\x1b[2K")  # the line is wiped
