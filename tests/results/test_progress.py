"""The progress line of a study."""

from __future__ import annotations

import io

from rich.console import Console

from raysel.results import progress as progress_module
from raysel.results.progress import ProgressLine, progress_line
from raysel.tracking.journal import Journal
from raysel.tracking.log import Progress, StudyLog


def make_log(folder, total: int, console: Console) -> StudyLog:
    journal = Journal(folder / "journal.jsonl")
    return StudyLog(
        journal, Progress(total, "accuracy"), folder / "progress.json", [ProgressLine(console)]
    )


def test_plain_lines_without_escape_codes_where_there_is_no_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "_LOG_EVERY_SECONDS", 0.0)
    console = Console(file=io.StringIO(), force_terminal=False, soft_wrap=True)
    with make_log(tmp_path, 4, console) as log:
        log.enter_phase("starting Ray")
        log.enter_phase("")
        log.message("a sentence")
        for failed, score in ((False, 0.5), (True, None)):
            log.trial_started()
            log.trial_ended(failed, score)
        log.trial_started()
    lines = console.file.getvalue().splitlines()
    assert "starting Ray" in lines
    assert "a sentence" in lines
    assert lines[-1].startswith(
        "2/4 trials · 1 running · 1 failed · best inner accuracy 0.500 · about "
    )
    assert all(character.isprintable() for line in lines for character in line)


def test_what_is_counted_is_one_line_of_a_log_at_first():
    console = Console(file=io.StringIO(), force_terminal=False, soft_wrap=True)
    with ProgressLine(console) as line:
        for n in range(3):
            line.show(Progress(3, "", finished=n, unit="halves"))
    assert console.file.getvalue().splitlines() == ["0/3 halves"]


def test_one_live_line_on_a_terminal_is_gone_in_the_end(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    with make_log(tmp_path, 2, console) as log:
        log.enter_phase(
            "starting Ray " + "." * 200
        )  # longer than the terminal is wide: cut, not wrapped
        log.enter_phase("")
        for _ in range(2):
            log.trial_started()
            log.trial_ended(failed=False, score=0.25)
    shown = console.file.getvalue()
    assert "starting Ray" in shown
    assert "2/2 trials" in shown
    assert "\n\n" not in shown
    assert shown.count("\n") <= 1
    assert shown.rstrip().endswith("\x1b[2K")  # the line is wiped


def test_no_time_is_left_once_all_trials_have_ended():
    assert (
        progress_line(Progress(2, "accuracy", finished=2, best=0.25))
        == "2/2 trials · best inner accuracy 0.250"
    )
