"""Weights of tasks, and the warnings of those that have no say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from task_sets import concatenate, dense_scatters, make_tasks, matrix_tasks, task_samples_of

from raysel.core.errors import ConfigError
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import TaskBlocks
from raysel.solvers.mtda.aligned_mtda import AlignedMTDA
from raysel.solvers.mtda.bilinear_mtda import BilinearMTDA
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA
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
    with pytest.warns(
        UserWarning,
        match=r"1 of 5 classes with a single sample \(e.g. 9\): they do not contribute to",
    ):
        assert resolve_weights("uniform", some, TRACES[:1]).tolist() == [1.0]


def test_invalid_weights_of_tasks_are_refused():
    invalid = [
        [1, 2],
        [1, -1, 1],
        [0, 0, 0],
        [np.nan, 1, 1],
        [np.inf, 1, 1],
        ["a", "b", "c"],
        [[1, 1, 1]],
        None,
    ]
    for weights in invalid:
        with pytest.raises(ConfigError):
            given_weights(weights, 3)


def test_only_a_dropped_task_of_low_ratio_is_warned_of():
    with pytest.warns(
        UserWarning, match="lost was dropped by the joint ratio: its projection retains 1.0e-07"
    ) as told:
        warn_of_dropped_tasks(["lost", "fine"], np.array([1e-7, 0.3]), np.array([0.1, 0.2]), 0.5)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_dropped_tasks(["telling"], np.array([1e-7]), np.array([0.45]), 0.5)


TASKS, SHAPES = matrix_tasks(5)
MAPS = [np.eye(30, 12), np.eye(28, 12)]
VARIANTS = [
    MTDA(SHAPES),
    AlignedMTDA(SHAPES, aligned=MAPS),
    AlignedMTDA(SHAPES, aligned=MAPS, share="within"),
    BilinearMTDA(SHAPES, bilinear=(2, 2), random_state=0),
    SemiSupervisedMTDA(SHAPES, graph_weight=1.0),
]


@pytest.fixture(params=VARIANTS, ids=lambda variant: repr(variant)[:28])
def variant(request):
    return type(request.param)(**request.param.get_params())


def test_the_objective_is_the_weighted_ratio_of_the_traces(variant):
    variant.set_params(task_weights=[0.3, 2.0]).fit_tasks(TASKS)
    numerator, denominator = variant.task_weights_ @ np.stack(
        [variant.numerators_, variant.denominators_], axis=1
    )
    if isinstance(variant, AlignedMTDA) and variant.share == "within":
        assert numerator > 0  # its denominator pools the scatter within classes over the tasks
    else:
        assert variant.objective_path_[-1] == pytest.approx(numerator / denominator, abs=1e-10)
    for (X, y), U, between in zip(TASKS, variant.projections_, variant.numerators_, strict=True):
        assert between == pytest.approx(np.trace(U.T @ dense_scatters(X, y)[0] @ U), rel=1e-8)
    assert (variant.retained_ > 0).all()
    assert (variant.retained_ <= 1 + 1e-12).all()
    assert variant.task_weights_.tolist() == [0.3, 2.0]


def test_blocks_are_fitted_and_predicted_as_the_padded_array(variant):
    X, y, _ = concatenate(TASKS)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.char.add(np.where(np.isnan(X[order, 0]), "b/", "a/"), y[order].astype(str))
    blocks = TaskBlocks.from_dense(X, Tasks(SHAPES))
    by_array = type(variant)(**variant.get_params()).fit(X, y)
    variant.fit(blocks, y)
    np.testing.assert_array_equal(variant.scores_, by_array.scores_)
    for samples in (X, blocks):
        np.testing.assert_array_equal(variant.predict(samples), by_array.predict(X))
