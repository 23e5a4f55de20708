"""The event log of a running study: journal, counts and listeners."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import StudyError
from raysel.tracking.journal import Journal
from raysel.tracking.log import Progress, StudyLog


def make_log(folder, total: int, *listeners) -> StudyLog:
    return StudyLog(Journal(folder / "journal.jsonl"), Progress(total, "accuracy"), folder / "progress.json", listeners)


class Notebook:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.seen, self.said, self.open = [], [], False

    def __enter__(self):
        self.open = True

    def __exit__(self, *_):
        self.open = False

    def show(self, progress) -> None:
        assert self.open
        self.seen.append((progress.phase, progress.finished, progress.running, progress.failed, progress.best))

    def message(self, text) -> None:
        self.said.append(text)


@given(
    outcomes=st.lists(st.booleans(), min_size=1, max_size=12),
    scores=st.lists(st.floats(0, 1), min_size=12, max_size=12),
)
@settings(max_examples=25)
def test_the_counts_are_those_of_the_trials(tmp_path_factory, outcomes, scores):
    folder = tmp_path_factory.mktemp("log")
    expected = {"finished": 0, "running": 0, "failed": 0, "total": len(outcomes)}
    best, listener = None, Notebook()
    with make_log(folder, len(outcomes), listener) as log:
        assert json.loads((folder / "progress.json").read_text()) == expected
        for fails, score in zip(outcomes, scores, strict=False):
            log.trial_started()
            log.trial_ended(fails, None if fails else score)
            expected["failed" if fails else "finished"] += 1
            best = best if fails else max(score, best or 0.0)
            assert json.loads((folder / "progress.json").read_text()) == expected
    assert listener.seen[-1] == ("", expected["finished"], 0, expected["failed"], best)
    assert not listener.open


def test_the_counts_are_written_when_a_study_fails(tmp_path):
    with suppress(StudyError), make_log(tmp_path, 9) as log:
        log.trial_started()
        log.trial_started()
        log.trial_ended(failed=False)
        raise StudyError("ended")
    expected = {"finished": 1, "running": 0, "failed": 0, "total": 9}
    assert json.loads((tmp_path / "progress.json").read_text()) == expected


def test_counts_that_cannot_be_written_neither_end_a_study_nor_hide_its_error(tmp_path):
    folder, listener = tmp_path / "gone", Notebook()
    journal = Journal(tmp_path / "journal.jsonl")
    with StudyLog(journal, Progress(9, "accuracy"), folder / "progress.json", [listener]) as log:
        log.enter_phase("refitting")
        log.message("a sentence")
        log.trial_started()
        log.trial_ended(failed=False)
    assert listener.seen[-1][:2] == ("refitting", 1)
    assert listener.said == ["a sentence"]


def test_trials_of_an_earlier_run_count_and_take_no_time():
    progress = Progress(6, "accuracy")

    class Ended:
        def __init__(self, status: str) -> None:
            self.status = status

    progress.begin([Ended("finished"), Ended("failed"), Ended("null")])
    assert (progress.finished, progress.failed, progress.n_ended) == (2, 1, 3)
    assert progress.seconds_left is None
    for left in (2.0, 1.0, None):
        progress.start_trial()
        progress.end_trial(False, None, seconds=1.0)
        assert progress.seconds_left == left


def test_a_listener_that_cannot_start_stops_those_before_it(tmp_path):
    class Broken(Notebook):
        def __enter__(self):
            raise OSError("no terminal")

    first = Notebook()
    with suppress(OSError), make_log(tmp_path, 3, first, Broken()):
        raise AssertionError("not reached")
    assert not first.open
