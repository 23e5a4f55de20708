"""Worker processes of joblib that are killed: what they lose is computed again, and what always
dies fails alone.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
from killed_workers import Killed, die_of
from small_studies import make_study, write_digits

from raysel import NestedSearch
from raysel.execution.processes import KILLED, ProcessExecutor


def search(fate: str, n_jobs: int) -> NestedSearch:
    """A search in which one configuration of three has the fate."""
    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).normal(size=(60, 5)) + y[:, None]
    space = {"C": [0.01, 0.1, 1.0]}
    method = Killed(fate=fate, driver=os.getpid())
    return NestedSearch(method, space, outer=2, inner=2, n_jobs=n_jobs).fit(X, y)


@pytest.mark.slow
def test_a_killed_worker_costs_no_trial(tmp_path):
    serial, parallel = (search(str(tmp_path / "once"), n_jobs) for n_jobs in (1, 2))
    assert (tmp_path / "once").exists()
    assert parallel.scores_.tolist() == serial.scores_.tolist()
    frames = [found.study_.trials().drop(columns="seconds") for found in (serial, parallel)]
    pd.testing.assert_frame_equal(
        *(frame.sort_values("trial", ignore_index=True) for frame in frames)
    )


@pytest.mark.slow
def test_a_task_whose_worker_always_dies_fails_alone(tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    task = partial(die_of, 2, os.getpid(), None)
    with ProcessExecutor(study, 2) as executor, pytest.warns(match="a worker process was killed"):
        ends = list(executor.run_tasks(task, range(4)))
    assert sorted((end.argument, end.value, end.error) for end in ends if not end.error) == [
        (0, 0, ""),
        (1, 1, ""),
        (3, 9, ""),
    ]
    assert [(end.argument, end.error) for end in ends if end.error] == [(2, KILLED)]
