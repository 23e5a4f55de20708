"""Half-steps and traces of matrix-valued tasks against dense Kronecker products and a direct
ascent.
"""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from scipy.optimize import minimize
from task_sets import (
    assert_same_spaces,
    dense_scatters,
    leading,
    make_task,
    matrix_tasks,
    small_but_telling,
    task_samples_of,
)

from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Tasks, Tensor
from raysel.solvers.mtda.bilinear_mtda import BilinearMTDA, alternate_modes, array_task, climb
from raysel.solvers.mtda.mtda import MTDA


@pytest.fixture(scope="module")
def reduced():
    tasks, shapes = matrix_tasks(0)
    return tasks, [
        array_task(t, s) for t, s in zip(task_samples_of(tasks), shapes.values(), strict=True)
    ]


def orthonormal(rows, columns, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((rows, columns)))[0]


def test_traces_and_embeddings_are_those_of_the_kronecker_product(reduced):
    tasks, matrices = reduced
    for (X, y), matrix, (a, b) in zip(tasks, matrices, ((6, 5), (7, 4)), strict=True):
        factors = [orthonormal(a, 3), orthonormal(b, 2, 1)]
        U = matrix.lift(factors)
        np.testing.assert_allclose(
            U, np.kron(matrix.bases[0] @ factors[0], matrix.bases[1] @ factors[1])
        )
        B, T = dense_scatters(X, y)
        np.testing.assert_allclose(
            matrix.traces(factors), [np.trace(U.T @ B @ U), np.trace(U.T @ T @ U)]
        )
        np.testing.assert_allclose(matrix.embed(factors), (X - X.mean(axis=0)) @ U, atol=1e-10)
        np.testing.assert_allclose(
            matrix.column_ratios(factors), np.diag(U.T @ B @ U) / np.diag(U.T @ T @ U)
        )


def test_constant_rows_and_columns_are_left_out():
    (X, y), *_ = matrix_tasks(1)[0]
    images = X.reshape(-1, 6, 5).copy()
    images[:, 2], images[:, :, 4] = 7.0, -1.0
    (task,) = task_samples_of([(images.reshape(len(y), -1), y)])
    matrix = array_task(task, (6, 5))
    assert matrix.samples.shape == (50, 5, 4)
    assert np.abs(matrix.bases[0][2]).max() < 1e-12 > np.abs(matrix.bases[1][4]).max()
    (flat,) = task_samples_of([(np.ones((4, 6)), np.array([0, 0, 1, 1]))])
    with pytest.raises(DataError):
        array_task(flat, (2, 3))


def test_the_best_of_many_climbs_is_that_of_a_direct_ascent(reduced):
    _, (matrix, _) = reduced
    ratio, n = 0.2, len(matrix.samples)

    def loss(flat):
        L, R = np.linalg.qr(flat[:12].reshape(6, 2))[0], np.linalg.qr(flat[12:].reshape(5, 2))[0]
        between, total = (
            ((L.T @ part @ R) ** 2).sum() / n for part in (matrix.classes, matrix.samples)
        )
        return ratio * total - between

    rng = np.random.default_rng(0)
    ascended = max(-minimize(loss, rng.standard_normal(22)).fun for _ in range(10))
    climbed = [climb(matrix, [orthonormal(5, 2, seed)], (2, 2), ratio) for seed in range(10)]
    values = [value for value, _ in climbed]
    assert max(values) == pytest.approx(ascended, abs=1e-6)
    for value, (L, R) in climbed:
        between, total = matrix.traces([L, R])
        assert value == pytest.approx(between - ratio * total, abs=1e-9)


def test_the_shared_ratio_never_falls(reduced):
    _, matrices = reduced
    weights = np.array([0.3, 1.0])
    steps = islice(
        alternate_modes(matrices, [(2, 2)] * 2, weights, 3, np.random.RandomState(0)), 15
    )
    ratios = []
    for ratio, factors in steps:
        between, total = weights @ np.array(
            [m.traces(f) for m, f in zip(matrices, factors, strict=True)]
        )
        assert ratio == pytest.approx(between / total)
        ratios.append(ratio)
    assert (np.diff(ratios) >= -1e-12).all()


def test_the_projection_is_a_kronecker_product_at_a_stationary_point():
    tasks, shapes = matrix_tasks(0)
    model = BilinearMTDA(shapes, bilinear=(2, 3), random_state=0).fit_tasks(tasks)
    assert model.converged_
    assert (np.diff(model.objective_path_) >= -1e-12).all()
    assert model.objective_path_[-1] <= MTDA(n_components=6).fit_tasks(tasks).objective_path_[-1]
    weights = [1 / np.trace(dense_scatters(X, y)[1]) for X, y in tasks]
    numerators, denominators = [], []
    for (X, y), U, (a, b) in zip(tasks, model.projections_, shapes.values(), strict=True):
        np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-10)
        # U[(i, j), (p, q)] = L[i, p] R[j, q]: of rank one once i, p and j, q are put together
        values = np.linalg.svd(
            U.reshape(a, b, 2, 3).transpose(0, 2, 1, 3).reshape(a * 2, b * 3), compute_uv=False
        )
        np.testing.assert_allclose(values[1:], 0, atol=1e-10)
        B, T = dense_scatters(X, y)
        numerators.append(np.trace(U.T @ B @ U))
        denominators.append(np.trace(U.T @ T @ U))
        blocks = U.reshape(a, b, 2, 3)
        R = np.linalg.svd(
            blocks[:, :, 0, :].transpose(1, 0, 2).reshape(b, -1), full_matrices=False
        )[0][:, :3]
        fixed = np.kron(np.eye(a), R)
        difference = fixed.T @ (B - model.objective_path_[-1] * T) @ fixed
        summed = np.einsum("iqjq->ij", difference.reshape(a, 3, a, 3))
        reached = np.trace(U.T @ (B - model.objective_path_[-1] * T) @ U)
        assert leading(summed, 2)[0] == pytest.approx(reached, abs=1e-5)  # no better L for this R
    np.testing.assert_allclose(model.numerators_, numerators)
    np.testing.assert_allclose(model.denominators_, denominators)
    ratio = (weights @ np.array(numerators)) / (weights @ np.array(denominators))
    assert model.objective_path_[-1] == pytest.approx(ratio, abs=1e-12)
    np.testing.assert_allclose(
        model.embeddings_[1], model.transform_task(1, tasks[1][0]), atol=1e-10
    )


def test_matrices_of_one_column_are_vectors():
    tasks = [make_task(9), make_task(10, D=8)]
    model = BilinearMTDA({"a": (10, 1), "b": (8, 1)}, bilinear=(2, 1), random_state=0).fit_tasks(
        tasks
    )
    exact = MTDA(n_components=2).fit_tasks(tasks)
    assert model.objective_path_[-1] == pytest.approx(exact.objective_path_[-1], abs=1e-10)
    assert_same_spaces(model.projections_, exact.projections_, atol=1e-7)
    one = BilinearMTDA(random_state=0).fit(*tasks[0])
    assert_same_spaces(one.projections_, MTDA().fit(*tasks[0]).projections_, atol=1e-6)


def test_more_starts_never_end_lower():
    tasks, shapes = matrix_tasks(1)
    few = BilinearMTDA(shapes, bilinear=(1, 1), n_init=1, random_state=0).fit_tasks(tasks)
    many = BilinearMTDA(shapes, bilinear=(1, 1), n_init=20, random_state=0).fit_tasks(tasks)
    assert many.objective_path_[-1] >= few.objective_path_[-1] - 1e-9


def test_the_default_size_is_what_tells_the_classes_of_the_least_task():
    tasks, shapes = matrix_tasks(2)  # of 4 and 3 classes
    model = BilinearMTDA(shapes, random_state=0).fit_tasks(tasks)
    assert [U.shape for U in model.projections_] == [(30, 4), (28, 4)]
    alone = BilinearMTDA({"first": (6, 5), "second": (28, 1)}, random_state=0).fit_tasks(tasks)
    assert [U.shape[1] for U in alone.projections_] == [
        2,
        2,
    ]  # one column leaves one direction there


def test_the_data_supply_the_shapes():
    assert BilinearMTDA.from_layout(Matrix(6, 5), bilinear=(2, 2)).shape == (6, 5)
    assert BilinearMTDA.from_layout(Tensor((30,))).shape is None
    assert BilinearMTDA.from_layout(Tasks({"a": (6, 5), "b": (7, 4)})).tasks == {
        "a": (6, 5),
        "b": (7, 4),
    }
    tasks, _ = matrix_tasks(3)
    by_shape = BilinearMTDA(shape=(6, 5), bilinear=(2, 2), random_state=0).fit(*tasks[0])
    assert by_shape.ranks_.tolist() == [[6, 5]]


@pytest.mark.parametrize("scale", [1e-5, 1e-9])
def test_a_telling_feature_of_small_scale_is_found(scale):
    shapes = {"a": (4, 1), "b": (1, 4)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BilinearMTDA(shapes, bilinear=(1, 1)).fit_tasks(
            [small_but_telling(seed, scale) for seed in (0, 1)]
        )
    assert model.ranks_.tolist() == [[4, 1], [1, 4]]
    for i in (0, 1):
        X, y = small_but_telling(i + 2, scale)
        assert (model.predict_task(i, X) == y).mean() > 0.9
    with pytest.warns(LinAlgWarning):
        BilinearMTDA(shapes, bilinear=(1, 1)).fit_tasks(
            [small_but_telling(seed, 1e-17) for seed in (0, 1)]
        )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bilinear": (2,)}, r"bilinear=\(2,\) must be two positive whole numbers"),
        ({"bilinear": (1.5, 2)}, "must be two positive whole numbers"),
        ({"bilinear": (2, 3)}, r"bilinear=\(2, 3\) does not fit task 'a' of shape \(5, 2\)"),
        ({"components": (2, 2), "bilinear": (2, 2)}, "former name of components"),
        (
            {"tasks": {"a": (5, 2), "b": (2, 2, 2)}, "components": (2, 2)},
            "must be 3 positive whole numbers",
        ),
        ({"tasks": {"a": (5, 2), "b": 8}, "components": (9, 2)}, r"\(9, 2\) does not fit task 'a'"),
        ({"shape": (5, 2)}, "is for one task; give shape=None, and the shapes in tasks"),
        ({"tasks": None, "shape": (5, 2)}, r"shape=\(5, 2\) does not fit the 18 columns"),
        (
            {"tasks": None, "shape": (9, 2), "bilinear": (2, 3)},
            r"does not fit samples of shape \(9, 2\)",
        ),
    ],
)
def test_parameters_that_do_not_fit_the_layout_are_refused_before_the_fit(params, message):
    with pytest.raises(ConfigError, match=message):
        BilinearMTDA(**{"tasks": {"a": (5, 2), "b": (4, 2)}, **params}).check(18)


def test_the_factors_of_tensors_are_stationary_and_tasks_may_differ_in_order():
    X, y = make_task(3, n=60, D=24, c=4)
    other, labels = make_task(4, n=50, D=7)
    model = BilinearMTDA({"a": (4, 3, 2), "b": 7}, components=(2, 2, 1), random_state=0).fit_tasks(
        [(X, y), (other, labels)]
    )
    assert (np.diff(model.objective_path_) >= -1e-12).all()
    assert model.ranks_.tolist() == [[4, 3, 2], [7, 1, 1]]
    U, ratio = model.projections_[0], model.objective_path_[-1]
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-10)
    B, T = dense_scatters(X, y)
    reached = np.trace(U.T @ (B - ratio * T) @ U)
    cells = U.reshape(4, 3, 2, 2, 2, 1)
    spans = []  # of each axis, from the dense projection
    for q in range(3):
        unfolded = np.moveaxis(cells, (q, q + 3), (0, 1)).reshape(cells.shape[q], -1)
        spans.append(np.linalg.svd(unfolded)[0][:, : cells.shape[q + 3]])
    np.testing.assert_allclose(
        np.kron(np.kron(spans[0], spans[1]), spans[2])
        @ np.kron(np.kron(spans[0], spans[1]), spans[2]).T,
        U @ U.T,
        atol=1e-9,
    )
    for q in range(3):  # no better factor of one axis for those of the others
        fixed = [
            np.eye(side) if axis == q else span
            for axis, (side, span) in enumerate(zip((4, 3, 2), spans, strict=True))
        ]
        K = np.kron(np.kron(fixed[0], fixed[1]), fixed[2])
        shape = [A.shape[1] for A in fixed]
        difference = np.moveaxis(
            (K.T @ (B - ratio * T) @ K).reshape(*shape, *shape), (q, q + 3), (0, 1)
        )
        summed = np.einsum(
            "ijaabb->ij",
            difference.reshape(
                shape[q],
                shape[q],
                *(shape[a] for a in range(3) if a != q),
                *(shape[a] for a in range(3) if a != q),
            ).transpose(0, 1, 2, 4, 3, 5),
        )
        assert leading(summed, cells.shape[q + 3])[0] == pytest.approx(reached, abs=1e-5)
    wide = BilinearMTDA(shape=(4, 1, 3, 2), components=(2, 1, 2, 1), random_state=0).fit(X, y)
    alone = BilinearMTDA(shape=(4, 3, 2), components=(2, 2, 1), random_state=0).fit(X, y)
    assert wide.objective_path_[-1] == pytest.approx(alone.objective_path_[-1], rel=1e-6)
