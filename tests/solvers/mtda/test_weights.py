"""Weights of tasks, and the warnings of those that have no say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from task_sets import make_tasks, task_samples_of

from raysel.core.errors import ConfigError
from raysel.solvers.mtda.shared_ratio import given_weights, resolve_weights, warn_of_dropped_tasks

TRACES = np.array([2.0, 4.0, 0.5])


def test_weights_are_inverse_traces_ones_or_those_given():
    samples = task_samples_of(make_tasks(0))
    assert resolve_weights("inverse_trace", samples, TRACES).tolist() == [0.5, 0.25, 2.0]
    assert resolve_weights("uniform", samples, TRACES).tolist() == [1.0, 1.0, 1.0]
    assert resolve_weights([0, 3, 1], samples, TRACES).tolist() == [0.0, 3.0, 1.0]


def test_a_task_of_single_samples_weighs_nothing_unless_all_are_such():
    tasks = make_tasks(0)
    alone = (tasks[2][0][:6], np.arange(6))
    samples = task_samples_of([*tasks[:2], alone])
    with pytest.warns(UserWarning, match=r"task 't2' has 6 of 6 classes .* its weight is set to 0"):
        assert resolve_weights("uniform", samples, TRACES).tolist() == [1.0, 1.0, 0.0]
    with pytest.warns(UserWarning, match="its weight is set to 0"):
        assert resolve_weights("uniform", task_samples_of([alone]), TRACES[:1]).tolist() == [1.0]
    some = task_samples_of([(tasks[0][0], np.concatenate([tasks[0][1][:-1], [9]]))])
    with pytest.warns(UserWarning, match=r"1 of 5 classes with a single sample \(e.g. 9\): they do not contribute to"):
        assert resolve_weights("uniform", some, TRACES[:1]).tolist() == [1.0]


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, -1, 1], [0, 0, 0], [np.nan, 1, 1], [np.inf, 1, 1], ["a", "b", "c"], [[1, 1, 1]], None]
)
def test_what_is_no_weight_a_task_is_refused(weights):
    with pytest.raises(ConfigError, match="must be 3 non-negative numbers, one for each task, not all zero"):
        given_weights(weights, 3)


def test_only_a_task_that_keeps_nothing_and_tells_nothing_is_warned_of():
    with pytest.warns(UserWarning, match="lost was dropped by the joint ratio: its projection retains 1.0e-07") as told:
        warn_of_dropped_tasks(["lost", "fine"], np.array([1e-7, 0.3]), np.array([0.1, 0.2]), 0.5)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_dropped_tasks(["telling"], np.array([1e-7]), np.array([0.45]), 0.5)
