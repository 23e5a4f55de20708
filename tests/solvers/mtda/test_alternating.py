"""The alternation's updates against a direct ascent and dense eigendecompositions."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from task_sets import make_tasks

from raysel.core.errors import ConfigError
from raysel.numerics.scatter import scatter_range
from raysel.numerics.trace_ratio import maximize_trace_ratio, shared_ratio, shrunken
from raysel.solvers.mtda.mtda import alternate, common_width, turn_to_total, update_common, update_map

WEIGHTS = np.array([1.0, 0.4, 2.0])


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


def test_an_updated_common_projection_leads_the_sum():
    problems, sizes = problems_of(1), [2, 2, 2]
    maps = [orthonormal(len(p.total), 4, i) for i, p in enumerate(problems)]
    found = update_common(problems, 0.4, maps, orthonormal(4, 2), sizes, WEIGHTS)
    summed = sum(w * W.T @ dense(p, 0.4) @ W for w, p, W in zip(WEIGHTS, problems, maps, strict=True))
    leading = np.linalg.eigh(summed)[1][:, -2:]
    np.testing.assert_allclose(found @ found.T, leading @ leading.T, atol=1e-10)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [1, 2, 3]])
def test_the_ratio_never_falls_and_ends_at_the_optimum_of_equal_sizes(sizes):
    problems = problems_of(2)
    steps = list(islice(alternate(problems, sizes, WEIGHTS, 4, np.random.RandomState(0)), 200))
    ratios = [ratio for ratio, _ in steps]
    assert (np.diff(ratios) >= -1e-13).all()
    assert [V.shape[1] for V in steps[-1][1]] == sizes
    for V in steps[-1][1]:
        np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    assert ratios[-1] == pytest.approx(shared_ratio(problems, steps[-1][1], WEIGHTS))
    best = list(islice(maximize_trace_ratio(problems, sizes, WEIGHTS), 20))[-1][0]
    assert ratios[-1] <= best + 1e-12
    if len(set(sizes)) == 1:
        assert ratios[-1] == pytest.approx(best, abs=1e-8)


def test_as_printed_the_ratio_falls_at_times():
    steps = islice(alternate(problems_of(3), [2] * 3, WEIGHTS, 4, np.random.RandomState(0), printed=True), 30)
    assert (np.diff([ratio for ratio, _ in steps]) < -1e-6).any()


def test_turning_leaves_the_space_and_diagonalises_the_total_scatter():
    problem, *_ = problems_of(4)
    W = orthonormal(6, 4)
    turned = turn_to_total(problem, W)
    np.testing.assert_allclose(turned @ turned.T, W @ W.T, atol=1e-10)
    inner = turned.T @ (dense(problem, 0.0) - dense(problem, 1.0)) @ turned  # S_t
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), atol=1e-10)
    assert (np.diff(np.diag(inner)) <= 1e-12).all()


def test_the_common_width_lies_between_components_and_ranks():
    problems, names = problems_of(5), ["a", "b", "c"]
    assert common_width(None, [2, 1, 2], problems, names) == 4  # halfway from 2 to 5, rounded up
    assert common_width(5, [2, 1, 2], problems, names) == 5
    for wanted in (1, 6):
        with pytest.raises(ConfigError, match=rf"intermediate_dim={wanted} must lie .* \(2\) and the rank 5 of b"):
            common_width(wanted, [2, 1, 2], problems, names)
