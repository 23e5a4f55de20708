"""Algorithm 1: its machines against a conic solver, its descent and its limit, what it leaves
out.
"""

from __future__ import annotations

from itertools import islice

import cvxpy as cp
import numpy as np
import pytest
from smml_reference import conic_optimum, indicator, posed, posed_problem

from raysel.solvers.smml.reweighted import ReweightedSVM

WIDTHS = (6, 1, 5)


@pytest.mark.parametrize("gammas", [(0.1, 0.2), (0.2, 0.0), (0.0, 0.2)])
def test_the_machines_solve_the_svm_of_the_metric(gammas):
    X, y, problem = posed_problem(0, *gammas, n=20)
    machines, rng = ReweightedSVM(problem), np.random.default_rng(0)
    a, r = rng.uniform(0.2, 2.0, (3, 3)), rng.uniform(0.2, 2.0, 12)
    machines._norms = a, r
    alpha, W = machines._solve_machines()
    coef, _ = problem.prepared.coefficients(W, np.zeros(3))
    columns, gamma1, gamma2 = np.repeat(a, WIDTHS, axis=1), problem.gamma1, problem.gamma2
    for j, sign in enumerate(indicator(y).T):
        eta = columns[j] * r / (gamma1 * r + gamma2 * columns[j])
        w, b = cp.Variable(12), cp.Variable()
        hinge = cp.sum(cp.pos(1 - cp.multiply(sign, (X - X.mean(axis=0)) @ w + b)))
        optimum = cp.Problem(
            cp.Minimize(hinge + cp.sum(cp.multiply(1 / eta, cp.square(w))) / 2)
        ).solve(cp.CLARABEL)
        np.testing.assert_allclose(coef[j], w.value, atol=1e-4 * np.abs(w.value).max())
        dual = alpha[j].sum() - ((alpha[j] * sign) @ (X - X.mean(axis=0))) ** 2 @ eta / 2
        assert dual == pytest.approx(optimum, rel=1e-5)
        assert 0 <= alpha[j].min() <= alpha[j].max() <= 1
        assert alpha[j] @ sign == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("gammas", "n"), [((0.1, 0.1), 40), ((0.2, 0.0), 12), ((0.0, 0.2), 12)])
def test_it_descends_to_the_conic_optimum(gammas, n):
    X, y, problem = posed_problem(7, *gammas, n=n)
    optimum, _ = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    machines, path = ReweightedSVM(problem), []
    for certificate in islice(machines.rounds(), 200):
        path.append(machines.smoothed_objective)
        assert certificate.objective <= path[-1] * (1 + 1e-9)
        assert certificate.gap >= certificate.objective / optimum - 1 - 1e-7
        if certificate.gap < 1e-4:
            break
    assert certificate.gap < 1e-4
    assert (np.diff(path) <= 1e-7 * path[0]).all()
    assert certificate.objective == pytest.approx(optimum, rel=1.1e-4)
    assert machines.n_subproblems == 3 * len(path)


def test_what_it_descends_is_the_objective_with_smoothed_norms():
    _, _, problem = posed_problem(2)
    machines, W = ReweightedSVM(problem), np.random.default_rng(0).standard_normal((3, 12))
    machines._reweigh(W, 0.1)
    coef, _ = problem.prepared.coefficients(W, np.zeros(3))
    blocks = np.array(
        [np.linalg.norm(part, axis=1) for part in np.split(coef, np.cumsum(WIDTHS)[:-1], axis=1)]
    )
    rows = np.linalg.norm(coef, axis=0)
    penalty = problem.gamma1 * np.sqrt(blocks**2 + (0.1 * blocks.max()) ** 2).sum()
    penalty += problem.gamma2 * np.sqrt(rows**2 + (0.1 * rows.max()) ** 2).sum()
    hinge = problem.solution(W).objective(0.0, 0.0)
    assert machines.smoothed_objective == pytest.approx(hinge + penalty, rel=1e-12)
    # The smoothing never grows, however large the norms become.
    machines._reweigh(10.0 * W, 0.1)
    floors = machines._norms[0] ** 2 - (10.0 * blocks.T) ** 2
    np.testing.assert_allclose(floors, (0.1 * blocks.max()) ** 2, rtol=1e-9)


def test_a_feature_that_tells_nothing_ends_as_an_exact_zero():
    X, y, _ = posed_problem(3, n=40)
    rng = np.random.default_rng(0)
    X[:, 7:] = rng.standard_normal((40, 5))
    problem = posed(X, y, WIDTHS, 0.3, 0.3)
    *_, certificate = islice(ReweightedSVM(problem).rounds(), 60)
    _, W = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    zero = np.linalg.norm(W, axis=0) < 1e-6 * np.abs(W).max()
    assert zero.any()
    assert not certificate.solution.W[:, zero].any()


def test_zero_coefficients_can_return():
    # W = 0 exactly, as where all machines find nothing, must not fix the metric at zero.
    _, _, problem = posed_problem(5)
    machines = ReweightedSVM(problem)
    machines._reweigh(np.zeros((3, 12)), 0.1)
    assert all((part > 0).all() for part in machines._norms)
