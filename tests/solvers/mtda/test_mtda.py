"""MTDA against roots of the weighted difference, direct ascents and null-space LDA; its
alternation.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from task_sets import concatenate, dense_scatters, leading, make_tasks

from raysel.core.errors import ConfigError
from raysel.numerics.discriminants import scatter_range, shrunken
from raysel.solvers.mtda.mtda import MTDA, turn_to_total, update_map


def problems_of(seed, sizes=((40, 6, 4), (30, 5, 3), (35, 7, 4))):
    reduced = [scatter_range(X, y, len(set(y))) for X, y in make_tasks(seed, sizes)]
    return [shrunken(found.between, found.total, 0.0) for found in reduced]


def orthonormal(rows, columns, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((rows, columns)))[0]


def dense(problem, ratio):
    """S_b - x S_t from the factor and the eigenvalues, S_t = diag(total) + overlap S_b."""
    B = problem.between @ problem.between.T
    return B - ratio * (np.diag(problem.total) + problem.overlap * B)


def test_no_ascent_exceeds_an_updated_map():
    (problem, *_), common = problems_of(0), orthonormal(4, 2)
    A = dense(problem, 0.3)
    W = update_map(problem, 0.3, common)
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)

    def loss(flat):
        U = np.linalg.qr(flat.reshape(6, 4))[0] @ common
        return -np.trace(U.T @ A @ U)

    rng = np.random.default_rng(1)
    reached = max(-minimize(loss, rng.standard_normal(24)).fun for _ in range(5))
    assert np.trace(common.T @ W.T @ A @ W @ common) == pytest.approx(reached, abs=1e-7)


def test_turning_leaves_the_space_and_diagonalises_the_total_scatter():
    problem, *_ = problems_of(4)
    W = orthonormal(6, 4)
    turned = turn_to_total(problem, W)
    np.testing.assert_allclose(turned @ turned.T, W @ W.T, atol=1e-10)
    inner = turned.T @ (dense(problem, 0.0) - dense(problem, 1.0)) @ turned  # S_t
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), atol=1e-10)
    assert (np.diff(np.diag(inner)) <= 1e-12).all()


def reference(tasks, sizes, weights):
    """The root of the weighted difference and the projectors there, in the full spaces (S_t
    positive definite).
    """
    scatters = [dense_scatters(X, y) for X, y in tasks]

    def root(ratio):
        parts = (
            w * leading(B - ratio * T, d)[0]
            for w, (B, T), d in zip(weights, scatters, sizes, strict=True)
        )
        return sum(parts)

    ratio = brentq(root, 0.0, 1.0, xtol=1e-15, rtol=1e-14)
    bases = [leading(B - ratio * T, d)[1] for (B, T), d in zip(scatters, sizes, strict=True)]
    return ratio, [U @ U.T for U in bases]


def projectors(mtda):
    return [U @ U.T for U in mtda.projections_]


# --- the optimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [None, 2, [1, 4, 3]])
def test_exact_is_the_root_of_the_difference(seed, sizes):
    tasks = make_tasks(seed)
    weights = [1 / np.trace(dense_scatters(X, y)[1]) for X, y in tasks]
    wanted = {None: [3, 2, 4], 2: [2, 2, 2]}[sizes] if not isinstance(sizes, list) else sizes
    ratio, expected = reference(tasks, wanted, weights)
    mtda = MTDA(n_components=sizes).fit_tasks(tasks)
    assert mtda.converged_
    assert mtda.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    for found, P in zip(projectors(mtda), expected, strict=True):
        np.testing.assert_allclose(found, P, atol=1e-10)


@pytest.mark.parametrize("weights", ["uniform", [0.2, 3.0, 1.0]])
def test_weights_enter_the_ratio(weights):
    tasks = make_tasks(0)
    numbers = [1.0] * 3 if weights == "uniform" else weights
    mtda = MTDA(task_weights=weights).fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(
        reference(tasks, [3, 2, 4], numbers)[0], abs=1e-10
    )
    expected = (numbers @ mtda.numerators_) / (numbers @ mtda.denominators_)
    assert mtda.objective_path_[-1] == pytest.approx(expected, abs=1e-12)


def test_no_start_of_gradient_ascent_exceeds_the_optimum():
    tasks = make_tasks(1, sizes=((40, 6, 3), (30, 5, 3)))
    scatters = [dense_scatters(X, y) for X, y in tasks]
    best = MTDA(task_weights="uniform").fit_tasks(tasks).objective_path_[-1]
    starts = 300
    rng = np.random.default_rng(0)
    U = [np.linalg.qr(rng.standard_normal((starts, len(B), 2)))[0] for B, _ in scatters]

    def traces(bases):
        N = sum(
            np.einsum("sik,ij,sjk->s", V, B, V) for V, (B, _) in zip(bases, scatters, strict=True)
        )
        D = sum(
            np.einsum("sik,ij,sjk->s", V, T, V) for V, (_, T) in zip(bases, scatters, strict=True)
        )
        return N, D

    reached = np.zeros(starts)
    for _ in range(400):
        N, D = traces(U)
        reached = np.maximum(reached, N / D)
        gradients = [
            (B @ V - (N / D)[:, None, None] * (T @ V))
            for V, (B, T) in zip(U, scatters, strict=True)
        ]
        U = [np.linalg.qr(V + 0.3 * G)[0] for V, G in zip(U, gradients, strict=True)]
    assert reached.max() <= best + 1e-12
    assert np.median(reached) > best - 1e-3  # the ascent does climb


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=25)
def test_the_ratio_rises_and_stays_within_0_and_1(seed, shrinkage):
    mtda = MTDA(shrinkage=shrinkage).fit_tasks(make_tasks(seed, sizes=((12, 9, 3), (20, 4, 2))))
    path = mtda.objective_path_
    assert (np.diff(path) >= -1e-12).all()
    assert path[0] >= 0
    assert path[-1] <= 1 + 1e-12


def test_shrinkage_replaces_the_within_class_scatter():
    tasks = make_tasks(2)
    shrinkage = 0.3
    mtda = MTDA(shrinkage=shrinkage).fit_tasks(tasks)

    def root(ratio):
        value = 0.0
        for (X, y), d in zip(tasks, [3, 2, 4], strict=True):
            B, T = dense_scatters(X, y)
            W = (1 - shrinkage) * (T - B) + shrinkage * np.trace(T - B) / len(B) * np.eye(len(B))
            value += leading(B - ratio * (B + W), d)[0] / np.trace(T)
        return value

    assert mtda.objective_path_[-1] == pytest.approx(brentq(root, 0, 1, xtol=1e-15), abs=1e-10)


# --- more features than samples --------------------------------------------------------------


def test_with_more_features_than_samples_the_solution_is_null_space_lda():
    tasks = make_tasks(4, sizes=((20, 60, 4), (18, 45, 3)))
    mtda = MTDA().fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(1.0, abs=1e-10)
    for (X, y), found in zip(tasks, projectors(mtda), strict=True):
        B, T = dense_scatters(X, y)
        range_ = scipy.linalg.orth(T, rcond=1e-10)
        null = range_ @ scipy.linalg.null_space(range_.T @ (T - B) @ range_, rcond=1e-10)
        assert null.shape[1] == len(set(y)) - 1
        np.testing.assert_allclose(found, null @ null.T, atol=1e-9)
        np.testing.assert_allclose(found @ (T - B) @ found, 0, atol=1e-12)


def test_fewer_components_than_the_null_space_holds_take_its_largest_between_class_scatter():
    X, y = make_tasks(6, sizes=((20, 60, 5),))[0]
    B, T = dense_scatters(X, y)
    range_ = scipy.linalg.orth(T, rcond=1e-10)
    null = range_ @ scipy.linalg.null_space(range_.T @ (T - B) @ range_, rcond=1e-10)
    expected = null @ leading(null.T @ B @ null, 2)[1]
    found = MTDA(n_components=2).fit(X, y).projections_[0]
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)


# --- invariances -----------------------------------------------------------------------------


def test_the_units_of_a_task_change_nothing():
    tasks = make_tasks(8)
    scaled = [(X * factor, y) for (X, y), factor in zip(tasks, [1e-3, 1.0, 1e4], strict=True)]
    before, after = MTDA().fit_tasks(tasks), MTDA().fit_tasks(scaled)
    assert after.objective_path_[-1] == pytest.approx(before.objective_path_[-1], abs=1e-10)
    for P, Q in zip(projectors(before), projectors(after), strict=True):
        np.testing.assert_allclose(P, Q, atol=1e-9)
    assert MTDA(task_weights="uniform").fit_tasks(scaled).objective_path_[-1] != pytest.approx(
        MTDA(task_weights="uniform").fit_tasks(tasks).objective_path_[-1], abs=1e-3
    )


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_rotating_shifting_and_reordering_change_the_projection_alike(seed, random):
    tasks = make_tasks(seed, sizes=((30, 6, 3), (15, 20, 4)))
    rng = np.random.default_rng(random.randrange(10**6))
    turns = [scipy.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0] for X, _ in tasks]
    orders = [rng.permutation(len(y)) for _, y in tasks]
    moved = [
        ((X @ Q + rng.standard_normal(len(Q)))[order], y[order])
        for (X, y), Q, order in zip(tasks, turns, orders, strict=True)
    ]
    before, after = MTDA().fit_tasks(tasks), MTDA().fit_tasks(moved)
    assert after.objective_path_[-1] == pytest.approx(before.objective_path_[-1], abs=1e-9)
    for P, R, Q in zip(projectors(before), projectors(after), turns, strict=True):
        np.testing.assert_allclose(R, Q.T @ P @ Q, atol=1e-5)


def test_scores_are_weighted_row_norms():
    tasks = make_tasks(9)
    mtda = MTDA().fit_tasks(tasks)
    for (X, y), U, scores in zip(tasks, mtda.projections_, mtda.task_scores_, strict=True):
        B, T = dense_scatters(X, y)
        values = np.diag(U.T @ B @ U) / np.diag(U.T @ T @ U)
        np.testing.assert_allclose(scores, np.sqrt(((U * values) ** 2).sum(axis=1)), rtol=1e-9)
    np.testing.assert_array_equal(mtda.scores_, np.concatenate(mtda.task_scores_))


# --- the alternation -------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [None, 2])
@pytest.mark.parametrize("seed", range(5))
def test_alternating_rises_to_the_optimum(seed, n_components):
    tasks = make_tasks(seed)
    exact = MTDA(n_components=n_components).fit_tasks(tasks)
    mended = MTDA(n_components=n_components, method="alternating", random_state=seed).fit_tasks(
        tasks
    )
    steps = np.diff(mended.objective_path_)
    assert (steps >= -1e-14).all()
    assert (steps > 1e-9).sum() >= 3
    assert mended.objective_path_[-1] == pytest.approx(exact.objective_path_[-1], abs=1e-8)
    for P, Q in zip(projectors(mended), projectors(exact), strict=True):
        np.testing.assert_allclose(P, Q, atol=1e-6)
    assert mended.objective_path_[0] != pytest.approx(exact.objective_path_[0], abs=1e-6)


def test_printed_descends_and_ends_below_the_optimum():
    descents = steps = 0
    short = []
    for seed in range(5):
        tasks = make_tasks(seed)
        exact = MTDA(n_components=2).fit_tasks(tasks).objective_path_[-1]
        with pytest.warns(UserWarning, match="printed"):
            path = (
                MTDA(
                    n_components=2,
                    method="printed",
                    intermediate_dim=5,
                    max_iter=30,
                    random_state=seed,
                )
                .fit_tasks(tasks)
                .objective_path_
            )
        assert path.max() <= exact + 1e-12
        short.append(exact - path[-1])
        descents, steps = descents + (np.diff(path) < -1e-6).sum(), steps + len(path) - 1
    assert 0.2 < descents / steps < 0.7
    assert min(short) > 1e-3  # the mended alternation ends within 1e-8 of it


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"intermediate_dim": 5}, "intermediate_dim=5 has no effect for method='exact': remove it"),
        (
            {"method": "alternating", "intermediate_dim": 10},
            "intermediate_dim=10 must lie between .* rank 9 of task 'task1'",
        ),
        (
            {"method": "printed", "intermediate_dim": 2, "n_components": 3},
            r"intermediate_dim=2 must lie between n_components \(3\)",
        ),
        (
            {"task_weights": [1, 2]},
            r"task_weights=\[1, 2\] must be 3 non-negative numbers, one for each task",
        ),
        ({"method": "newton"}, "'method' parameter of MTDA must be"),
    ],
)
@pytest.mark.filterwarnings("ignore:method='printed'")
def test_parameters_that_do_not_fit_are_refused(params, message):
    tasks = make_tasks(0)
    with pytest.raises(ConfigError, match=message):
        MTDA(**params).fit_tasks(tasks)
    X, y, widths = concatenate(tasks)
    with pytest.raises(ValueError, match=message.replace("task1", "t1")):
        MTDA(tasks=widths, **params).fit(X, y)


def test_a_dropped_task_is_reported():
    strong, weak = make_tasks(0, sizes=((60, 5, 3), (60, 5, 3)))
    noise = weak[0] * np.array([1e4, 1e4, 1e4, 1.0, 1.0])
    shuffled = np.random.default_rng(0).permutation(weak[1])
    with pytest.warns(UserWarning, match="task 'task1' was dropped"):
        mtda = MTDA().fit_tasks([strong, (noise, shuffled)])
    assert mtda.retained_[1] < 1e-6 < mtda.retained_[0]
