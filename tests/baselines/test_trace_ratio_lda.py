"""LDA by trace ratio against the root of the dense trace difference, and against MTDA of one task."""

from __future__ import annotations

import numpy as np
import pytest
from task_sets import assert_same_spaces, best_ratio, dense_scatters, make_task

from raysel.baselines.trace_ratio_lda import TraceRatioLDA
from raysel.solvers.mtda.mtda import MTDA


@pytest.mark.parametrize("size", [1, 2, 3])
def test_it_is_the_root_of_the_trace_difference(size):
    X, y = make_task(20 + size)
    ratio, bases = best_ratio([dense_scatters(X, y)], [size], [1.0])
    found = TraceRatioLDA(n_components=size).fit(X, y)
    assert found.ratios_ == pytest.approx([ratio], abs=1e-10)
    assert_same_spaces(found.projections_, bases, atol=1e-7)


def test_trace_ratio_lda_is_mtda_of_one_task():
    tasks = [make_task(4), make_task(5, n=40, D=7, c=3)]
    alone = TraceRatioLDA().fit_tasks(tasks)
    for task, ratio, U in zip(tasks, alone.ratios_, alone.projections_, strict=True):
        single = MTDA().fit(*task)
        assert ratio == pytest.approx(single.objective_path_[-1], abs=1e-12)
        np.testing.assert_allclose(U @ U.T, single.projections_[0] @ single.projections_[0].T, atol=1e-8)
