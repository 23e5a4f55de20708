"""Consensus ADMM: its projection against least squares, its optimum against a conic solver, its
rebalancing.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from smml_reference import conic_optimum, posed_problem

from raysel.solvers.smml.admm import ConsensusADMM

WIDTHS = (6, 1, 5)
GAMMAS = [(0.1, 0.1), (0.3, 0.02), (0.2, 0.0), (0.0, 0.2)]


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("gammas", GAMMAS)
def test_it_ends_at_the_conic_optimum(gammas, n):
    X, y, problem = posed_problem(0, *gammas, n=n)
    optimum, W = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    gaps, values = [], []
    for certificate in islice(ConsensusADMM(problem).rounds(), 600):
        gaps.append(certificate.gap)
        values.append(certificate.objective)
        assert certificate.objective / optimum - 1 - 1e-7 <= certificate.gap
        if certificate.gap < 1e-6:
            break
    assert gaps[-1] < 1e-6
    assert values[-1] == pytest.approx(optimum, rel=2e-6)
    assert (np.diff(gaps) <= 0).all()
    assert (np.diff(values) <= 0).all()
    coef, _ = problem.prepared.coefficients(certificate.solution.W, certificate.solution.bias)
    np.testing.assert_allclose(coef, W, atol=2e-2 * np.abs(W).max())


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("gammas", GAMMAS)
def test_the_projection_is_the_nearest_consensus(gammas, n):
    _, _, problem = posed_problem(1, *gammas, n=n)
    admm, X = ConsensusADMM(problem), problem.prepared.X
    admm.tau = 0.7
    admm._factor()
    admm._reflected[:] = np.random.default_rng(0).standard_normal(admm._reflected.shape)
    admm._project()
    target, *copies = admm._parts(admm._reflected)
    scores, *weights = admm._parts(admm._projected)
    # min ||W X' + b - target||^2 + tau sum ||W - copy||^2 as one least-squares problem for [W, b].
    root = np.sqrt(0.7)
    design = np.vstack(
        [np.hstack([X, np.ones((n, 1))])]
        + [np.hstack([root * np.eye(12), np.zeros((12, 1))])] * len(copies)
    )
    right = np.vstack([target.T] + [root * copy.T for copy in copies])
    found = np.linalg.lstsq(design, right)[0].T
    for W in weights:
        np.testing.assert_allclose(W, found[:, :12], atol=1e-9)
    np.testing.assert_allclose(scores, found[:, :12] @ X.T + found[:, 12:], atol=1e-9)


@pytest.mark.parametrize("gammas", GAMMAS)
def test_rebalancing_changes_neither_the_proximal_point_nor_its_multipliers(gammas):
    _, _, problem = posed_problem(2, *gammas)
    admm = ConsensusADMM(problem)
    admm.rho *= 300.0  # far off, so that it is rebalanced
    for _ in range(5):
        admm._update()

    def point_and_multipliers():
        ahead = np.empty_like(admm._s)
        admm._proximal(admm._s, ahead)
        dual = admm._parts(admm._s - ahead)
        return ahead, np.concatenate(
            [
                (scale * part).ravel()
                for scale, part in zip(
                    [admm.rho] + [admm.rho * admm.tau] * (len(dual) - 1), dual, strict=True
                )
            ]
        )

    before, rho = point_and_multipliers(), admm.rho
    admm._balance(before[0].copy())
    assert admm.rho != rho
    for one, other in zip(before, point_and_multipliers(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    inverse = np.linalg.inv(
        problem.prepared.X.T @ problem.prepared.X + len(problem.penalties) * admm.tau * np.eye(12)
    )
    np.testing.assert_allclose(admm._inverse, inverse, atol=1e-9)
