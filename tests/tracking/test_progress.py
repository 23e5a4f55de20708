"""The time left of a running study, on simulated trials."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.tracking.log import Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def simulate(trials, slots, start_up=0.0, pause=0.0, known=True):
    """Run (duration, parameters) on slots; yield the time left by the estimate and the true one after each end."""
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
def test_trials_of_one_duration_end_within_one_duration_of_the_estimate(duration, slots, n, start_up, known):
    shown = simulate([(duration, {})] * n, slots, start_up, known=known)
    assert shown[-1][0] is None
    for left, true in shown[:-1]:
        assert abs(left - true) <= duration * (1 + 1e-9) + 1e-9


@given(slots=st.integers(1, 4), seed=st.integers(0, 1000))
@settings(max_examples=30)
def test_trials_whose_cost_depends_on_one_parameter_are_told_by_it(slots, seed):
    rng = np.random.default_rng(seed)
    rank = rng.permutation(np.repeat([1, 2, 10], 20))
    alpha = rng.choice([0.1, 0.2, 0.5, 1.0], size=60)
    trials = [(float(r), {"rank": int(r), "alpha": float(a)}) for r, a in zip(rank, alpha, strict=True)]
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
