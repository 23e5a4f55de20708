"""The event log of a running study: journal, counts, listeners and, on simulated trials, the
time left.
"""

from __future__ import annotations

import heapq
import json
import math
from contextlib import suppress
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import StudyError
from raysel.tracking.journal import Journal
from raysel.tracking.log import Progress, StudyLog


def make_log(folder, total: int, *listeners) -> StudyLog:
    return StudyLog(
        Journal(folder / "journal.jsonl"),
        Progress(total, "accuracy"),
        folder / "progress.json",
        listeners,
    )


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
        self.seen.append(
            (progress.phase, progress.finished, progress.running, progress.failed, progress.best)
        )

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
    every_change = patch("raysel.tracking.log._PERIOD", -1.0)
    with every_change, make_log(folder, len(outcomes), listener) as log:
        assert json.loads((folder / "progress.json").read_text()) == expected
        for fails, score in zip(outcomes, scores, strict=False):
            log.trial_started()
            log.trial_ended(fails, None if fails else score)
            expected["failed" if fails else "finished"] += 1
            best = best if fails else max(score, best or 0.0)
            assert json.loads((folder / "progress.json").read_text()) == expected
    assert listener.seen[-1] == ("", expected["finished"], 0, expected["failed"], best)
    assert not listener.open


@patch("raysel.tracking.log._PERIOD", math.inf)
def test_the_counts_are_written_when_a_study_fails_if_they_can_be(tmp_path):
    listener = Notebook()
    for folder in (tmp_path, tmp_path / "gone"):
        progress, journal = Progress(9, "accuracy"), Journal(tmp_path / "journal.jsonl")
        with (
            suppress(StudyError),
            StudyLog(journal, progress, folder / "progress.json", [listener]) as log,
        ):
            log.enter_phase("refitting")
            log.message("a sentence")
            log.trial_started()
            log.trial_started()
            log.trial_ended(failed=False)
            raise StudyError("ended")
    expected = {"finished": 1, "running": 0, "failed": 0, "total": 9}
    assert json.loads((tmp_path / "progress.json").read_text()) == expected
    assert listener.seen[-1][:2] == ("refitting", 1)
    assert listener.said == ["a sentence"] * 2


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


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def simulate(trials, slots, start_up=0.0, pause=0.0, known=True):
    """Run (duration, parameters) on slots; yield the time left by the estimate and the true one
    after each end.
    """
    clock = Clock()
    progress = Progress(len(trials), "accuracy", clock=clock)
    progress.begin([], None, [params for _, params in trials] if known else ())
    queue = list(enumerate(trials))
    running: list[tuple[float, int]] = []

    def start(delay):
        i, (duration, _) = queue.pop(0)
        progress.start_trial()
        heapq.heappush(running, (clock.now + delay + duration, i))

    for _ in range(min(slots, len(queue))):
        start(start_up)
    shown = []
    while running:
        clock.now, i = heapq.heappop(running)
        progress.end_trial(False, 0.5, trials[i][0], trials[i][1])
        if queue:
            start(pause)
        shown.append((progress.seconds_left, clock.now))
    end = clock.now
    return [(left, end - now) for left, now in shown]


@given(
    duration=st.floats(0.01, 100),
    slots=st.integers(1, 8),
    n=st.integers(2, 60),
    start_up=st.floats(0, 50),
    known=st.booleans(),
)
@settings(max_examples=60)
def test_trials_of_one_duration_end_within_one_duration_of_the_estimate(
    duration, slots, n, start_up, known
):
    shown = simulate([(duration, {})] * n, slots, start_up, known=known)
    assert shown[-1][0] is None
    for left, true in shown[:-1]:
        assert abs(left - true) <= duration * (1 + 1e-9) + 1e-9


@given(slots=st.integers(1, 4), seed=st.integers(0, 1000))
@settings(max_examples=8)
def test_trials_whose_cost_depends_on_one_parameter_are_told_by_it(slots, seed):
    rng = np.random.default_rng(seed)
    rank = rng.permutation(np.repeat([1, 2, 10], 20))
    alpha = rng.choice([0.1, 0.2, 0.5, 1.0], size=60)
    trials = [
        (float(r), {"rank": int(r), "alpha": float(a)}) for r, a in zip(rank, alpha, strict=True)
    ]
    shown = simulate(trials, slots)
    for left, true in shown[20:-1]:  # after 20 of 60 each value has been seen
        assert abs(left - true) <= 0.15 * true + 10


def test_the_time_between_trials_counts_and_that_before_the_first_does_not():
    shown = simulate([(0.01, {})] * 100, slots=2, start_up=60.0, pause=0.05)
    for left, true in shown[10:-5]:
        assert left == pytest.approx(true, rel=0.2, abs=0.1)
    assert shown[0][0] < 3


def test_one_trial_that_took_long_moves_the_estimate_little():
    trials = [(1.0, {})] * 200
    trials[5] = (80.0, {})
    shown = simulate(trials, slots=2, known=False)
    for left, true in shown[:-1]:
        # While the other slot is held, nobody knows for how long.
        assert abs(left - true) <= (2.0 if true < 55 else 80.0)


def test_best_is_remembered_and_only_raised():
    class Ended:
        status = "finished"

    progress = Progress(4, "accuracy")
    progress.begin([Ended(), Ended()], best=0.9)
    assert progress.best == 0.9
    for score, best in ((0.8, 0.9), (0.95, 0.95)):
        progress.start_trial()
        progress.end_trial(False, score, 1.0)
        assert progress.best == best
    assert progress.seconds_left is None
