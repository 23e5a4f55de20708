"""The dual barrier method: its Hessians against finite differences, its optimum and zeros
against a conic solver.
"""

from __future__ import annotations

import numpy as np
import pytest
from smml_reference import conic_optimum, posed_problem

from raysel.numerics.block_norms import FeatureNorm, ModalityNorm
from raysel.solvers.smml.barrier import DualBarrier, _add_inverse, _apply_inverse, _rooms
from raysel.solvers.smml.problem import Certificate

WIDTHS = (6, 1, 5)
GAMMAS = [(0.1, 0.1), (0.3, 0.02), (0.2, 0.0), (0.0, 0.2), (1e-3, 1e-3)]


def barrier_of(problem):
    return DualBarrier(problem, Certificate(problem))


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("gammas", GAMMAS)
def test_it_ends_at_the_conic_optimum_with_its_zeros(gammas, n):
    X, y, problem = posed_problem(0, *gammas, n=n)
    optimum, W = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    gaps = []
    for certificate in barrier_of(problem).rounds():
        gaps.append(certificate.gap)
        if certificate.gap < 1e-7:
            break
    assert gaps[-1] < 1e-7
    assert len(gaps) < 80  # steps depend little on the data and the gammas
    assert certificate.objective == pytest.approx(optimum, rel=2e-6)
    coef, _ = problem.prepared.coefficients(certificate.solution.W, certificate.solution.bias)
    np.testing.assert_allclose(coef, W, atol=2e-2 * np.abs(W).max())
    if n == 40 and max(gammas) >= 0.1:
        assert (coef == 0).any()
        assert np.abs(W[coef == 0]).max() < 1e-3 * np.abs(W).max()


@pytest.mark.parametrize("gammas", GAMMAS)
def test_every_point_is_inside(gammas):
    _, _, problem = posed_problem(1, *gammas)
    barrier = barrier_of(problem)
    for _ in barrier.rounds():
        assert (barrier._alpha > 0).all()
        assert (barrier._alpha < 1).all()
        np.testing.assert_allclose((barrier._alpha * barrier._signs).sum(axis=1), 0, atol=1e-6)
        total = (barrier._alpha * barrier._signs) @ problem.prepared.X
        np.testing.assert_allclose(sum(barrier._parts()), total, atol=1e-6 * np.abs(total).max())
        for penalty, part in zip(problem.penalties, barrier._parts(), strict=True):
            assert (penalty.norms(part) < penalty.weights).all()


@pytest.mark.parametrize(
    "penalty",
    [FeatureNorm(np.linspace(1, 2, 6)), ModalityNorm(np.array([2.0, 1.5]), np.array([4, 2]))],
)
def test_the_inverse_hessian_is_that_of_the_logarithms(penalty):
    rng = np.random.default_rng(0)
    part = 0.4 * rng.standard_normal((2, 6))

    def gradient(flat):
        moved = flat.reshape(2, 6)
        return (2.0 * moved / penalty.spread(_rooms(penalty, moved))).ravel()

    step = 1e-6
    hessian = np.array(
        [
            (gradient(part.ravel() + step * e) - gradient(part.ravel() - step * e)) / (2 * step)
            for e in np.eye(12)
        ]
    )
    room = _rooms(penalty, part)
    norms = penalty.norms(part)
    np.testing.assert_allclose(room, penalty.weights**2 - norms**2)
    matrix = np.zeros((2, 6, 2, 6))
    _add_inverse(matrix, penalty, part, room)
    np.testing.assert_allclose(matrix.reshape(12, 12) @ hessian, np.eye(12), atol=1e-6)
    right = rng.standard_normal((2, 6))
    applied = _apply_inverse(penalty, part, room, right)
    np.testing.assert_allclose(applied.ravel(), matrix.reshape(12, 12) @ right.ravel(), atol=1e-12)


def test_the_gradient_vanishes_at_the_centre():
    # The barrier function as its docstring writes it, its slope by finite differences along
    # feasible directions.
    _, _, problem = posed_problem(3, n=15)
    barrier, X = barrier_of(problem), problem.prepared.X
    for _ in range(60):
        barrier._newton()  # mu stays where it began

    def value(alpha, V):
        parts = (alpha * barrier._signs) @ X - V, V
        logs = sum(
            np.log(_rooms(penalty, part)).sum()
            for penalty, part in zip(problem.penalties, parts, strict=True)
        )
        return alpha.sum() + barrier._mu * (np.log(alpha).sum() + np.log(1 - alpha).sum() + logs)

    rng, best = np.random.default_rng(0), value(barrier._alpha, barrier._V)
    for _ in range(20):
        direction, along = (
            rng.standard_normal(barrier._alpha.shape),
            rng.standard_normal(barrier._V.shape),
        )
        direction -= barrier._signs * (direction * barrier._signs).mean(axis=1, keepdims=True)
        direction, along = (1e-4 * part / np.abs(part).max() for part in (direction, along))
        direction *= np.minimum(barrier._alpha, 1 - barrier._alpha).min()
        along *= min(
            np.sqrt(_rooms(p, q)).min()
            for p, q in zip(problem.penalties, barrier._parts(), strict=True)
        )
        assert value(barrier._alpha + direction, barrier._V + along) <= best + 1e-10 * abs(best)
