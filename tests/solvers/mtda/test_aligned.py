"""The ratios of mapped tasks against a direct ascent over all orthonormal bases, and what maps must be."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from task_sets import dense_scatters, make_task, task_samples_of

from raysel.core.errors import ConfigError, DataError
from raysel.solvers.mtda.aligned_mtda import check_maps, column_traces, map_tasks, pooled_within, shared_projection

TASKS = [make_task(0, n=40, D=5, c=3), make_task(1, n=30, D=4, c=3)]
WEIGHTS = np.array([0.7, 2.0])


def mapped_tasks(width=4):
    rng = np.random.default_rng(2)
    maps = [rng.standard_normal((5, width)), rng.standard_normal((4, width))]
    samples = task_samples_of(TASKS)
    return samples, map_tasks(samples, maps), [dense_scatters(X @ W, y) for (X, y), W in zip(TASKS, maps, strict=True)]


def ascend(value, shape, starts=8):
    """The largest value over orthonormal bases, from random starts by quasi-Newton steps."""
    rng = np.random.default_rng(3)

    def loss(flat):
        return -value(np.linalg.qr(flat.reshape(shape))[0])

    return max(-minimize(loss, rng.standard_normal(shape).ravel()).fun for _ in range(starts))


def test_no_ascent_exceeds_the_shared_projection():
    samples, mapped, parts = mapped_tasks()
    rank, steps = shared_projection(samples, mapped, WEIGHTS, 2, 0.0)
    ratio, bases = list(islice(steps, 12))[-1]
    B, T = (sum(w * part[i] for w, part in zip(WEIGHTS, parts, strict=True)) for i in (0, 1))
    assert rank == 4
    assert bases[0] is bases[1]
    assert ratio == pytest.approx(np.trace(bases[0].T @ B @ bases[0]) / np.trace(bases[0].T @ T @ bases[0]))
    assert ratio == pytest.approx(ascend(lambda P: np.trace(P.T @ B @ P) / np.trace(P.T @ T @ P), (4, 2)), abs=1e-7)


def test_no_ascent_exceeds_the_pooled_within_class_scatter():
    samples, mapped, parts = mapped_tasks()
    rank, steps = pooled_within(samples, mapped, WEIGHTS, 2, 0.0)
    ratio, bases = list(islice(steps, 12))[-1]
    within = sum(len(y) * (T - B) for (_, y), (B, T) in zip(TASKS, parts, strict=True)) / 70

    def value(V):
        pairs = zip(WEIGHTS, parts, (np.linalg.qr(V[:4])[0], np.linalg.qr(V[4:])[0]), strict=True)
        traces = [w * np.array([np.trace(U.T @ B @ U), np.trace(U.T @ (B + within) @ U)]) for w, (B, _), U in pairs]
        between, total = sum(traces)
        return between / total

    assert rank == 4
    assert ratio == pytest.approx(value(np.concatenate(bases)), abs=1e-10)
    assert ratio == pytest.approx(ascend(value, (8, 2)), abs=1e-6)


def test_column_traces_are_those_of_the_dense_matrices():
    X, y = TASKS[0]
    (task,) = task_samples_of(TASKS[:1])
    between, total = column_traces(task, X - X.mean(axis=0))
    B, T = dense_scatters(X, y)
    np.testing.assert_allclose([between, total], [np.diag(B), np.diag(T)], rtol=1e-12)


def test_samples_are_centred_and_mapped():
    samples, mapped, _ = mapped_tasks()
    for (X, _), W, mean, Z in zip(TASKS, mapped.maps, mapped.means, mapped.samples, strict=True):
        np.testing.assert_allclose(mean, X.mean(axis=0))
        np.testing.assert_allclose(Z, (X - X.mean(axis=0)) @ W, atol=1e-12)
    bases = [np.eye(4, 2), np.eye(4, 2)[::-1]]
    np.testing.assert_allclose(mapped.lift(bases)[1], mapped.maps[1] @ bases[1])
    plain = map_tasks(samples, None)
    np.testing.assert_allclose(plain.samples[0], TASKS[0][0] - TASKS[0][0].mean(axis=0))
    assert plain.lift(bases) == bases


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([np.eye(5)], "aligned has 1 maps for 2 tasks"),
        ([np.eye(5), np.eye(4)], r"aligned maps b by an array of shape \(4, 4\); give one of shape \(4, 5\)"),
        ([np.eye(4), np.eye(4)], r"aligned maps a by an array of shape \(4, 4\); give one of shape \(5, 4\)"),
        ([np.ones(5), np.eye(4, 5)], r"aligned maps a by an array of shape \(5,\)"),
        ([np.ones((5, 0)), np.ones((4, 0))], r"aligned maps a by an array of shape \(5, 0\)"),
        ([np.eye(5), np.full((4, 5), np.inf)], "aligned maps b by an array that holds NaN or infinity"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, message):
    with pytest.raises(ConfigError, match=message):
        check_maps(maps, ["a", "b"], [5, 4])
    assert [W.shape for W in check_maps([np.eye(5).tolist(), np.eye(4, 5)], ["a", "b"], [5, 4])] == [(5, 5), (4, 5)]


def test_a_map_to_one_point_is_refused():
    with pytest.raises(DataError, match="task 't1': aligned maps all samples to one point"):
        map_tasks(task_samples_of(TASKS), [np.eye(5, 4), np.zeros((4, 4))])
