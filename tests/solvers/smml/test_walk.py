"""The rounds of both solvers in turn: ADMM's first, the barrier method's where they are late,
without end.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from smml_reference import conic_optimum, indicator, objective, posed, posed_problem, random_problem

from raysel.solvers.smml.admm import ConsensusADMM
from raysel.solvers.smml.problem import Certificate, MultimodalProblem
from raysel.solvers.smml.walk import Walk, _switch, _without_hinge, solving_rounds


def stalling():
    """A problem of gammas so small that ADMM alone is still far off when it is the barrier
    method's turn.
    """
    X, y, widths, gamma1, gamma2 = random_problem(18, largest=1e-3)
    return X, y, list(widths.values()), posed(X, y, list(widths.values()), gamma1, gamma2)


def test_the_first_rounds_are_those_of_admm():
    _, _, problem = posed_problem(0)
    rounds = zip(islice(solving_rounds(problem), 20), ConsensusADMM(problem).rounds(), strict=False)
    for found, alone in rounds:
        assert (found.objective, found.gap) == (alone.objective, alone.gap)
        np.testing.assert_array_equal(found.solution.W, alone.solution.W)


def test_the_barrier_method_takes_over_where_admm_stalls():
    X, y, widths, problem = stalling()
    switch = _switch(problem)
    found, gaps = [], []
    for certificate in islice(solving_rounds(problem), switch + 60):
        found.append(certificate)
        gaps.append(certificate.gap)
    assert all(certificate is found[0] for certificate in found)
    assert (np.diff(gaps) <= 0).all()
    assert gaps[switch - 1] > 1e-3
    assert gaps[-1] < 1e-6
    optimum, _ = conic_optimum(X, y, widths, problem.gamma1, problem.gamma2)
    assert found[-1].objective == pytest.approx(optimum, rel=1e-6)
    *_, alone = islice(ConsensusADMM(problem).rounds(), switch + 60)
    assert alone.gap > 1e-3


def test_admm_continues_where_rounding_ends_the_barrier_method():
    *_, problem = stalling()
    assert (
        len(list(islice(solving_rounds(problem), _switch(problem) + 400))) == _switch(problem) + 400
    )


def test_without_memory_for_the_barrier_method_admm_has_no_end():
    rng = np.random.default_rng(0)
    y = np.arange(8) % 4
    assert _switch(posed(rng.standard_normal((8, 1250)), y, [1250], 0.1, 0.1)) is not None
    assert _switch(posed(rng.standard_normal((8, 1251)), y, [1251], 0.1, 0.1)) is None


WIDTHS = [12, 1, 15]
TOL = 1e-3


def separable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 28))
    return X, (X[:, [0, 3, 20]] + 0.1 * rng.standard_normal((24, 3))).argmax(axis=1)


def overlapping():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 28))
    return X, (
        X[:, [0, 20]] @ rng.standard_normal((2, 3)) + 2 * rng.standard_normal((40, 3)) > 0.5
    ).astype(int)


def at(prepared, first, second):
    return MultimodalProblem(prepared, first * prepared.gamma1_max, second * prepared.gamma2_max)


@pytest.mark.parametrize(
    ("pair", "source", "n_solves"),
    [
        ((0.7, 0.3), "zero", 0),
        ((0.2, 0.1), "solved", 1),
        ((0.2, 0.0), "solved", 1),
        ((0.01, 0.01), "diagonal", 1),
        ((0.0, 1e-3), "diagonal", 1),
        ((0.5, 1e-4), "negligible", 1),
        ((1e-4, 0.4), "negligible", 1),
    ],
)
def test_each_model_is_optimal_within_its_gap_and_named_after_its_proof(pair, source, n_solves):
    X, y = separable()
    problem = posed(X, y, WIDTHS, *pair)
    walk = Walk(problem.prepared, TOL, 2000)
    certificate, found = walk.find(problem)
    assert (found, walk.n_solves) == (source, n_solves)
    assert certificate.problem is problem
    assert certificate.gap <= TOL
    coef, intercept = problem.prepared.coefficients(
        certificate.solution.W, certificate.solution.bias
    )
    own = objective(X, y, WIDTHS, problem.gamma1, problem.gamma2, coef, intercept)
    optimum, _ = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    assert own == pytest.approx(certificate.objective, rel=1e-8)
    assert optimum * (1 - 1e-6) <= own <= optimum * (1 + certificate.gap + 1e-6)


def test_what_is_kept_saves_the_solves_of_a_ray_and_of_a_limit():
    X, y = separable()
    prepared = posed(X, y, WIDTHS, 0.1, 0.1).prepared
    walk = Walk(prepared, TOL, 2000)
    first, _ = walk.find(at(prepared, 0.01, 0.01))
    solves, rounds = walk.n_solves, walk.n_rounds
    for share in (0.5, 0.1, 1e-3):
        certificate, source = walk.find(at(prepared, 0.01 * share, 0.01 * share))
        assert source == "diagonal"
        np.testing.assert_array_equal(certificate.solution.W, first.solution.W)
    assert (walk.n_solves, walk.n_rounds) == (solves, rounds)
    walk.find(at(prepared, 0.4, 0.0))
    solves = walk.n_solves
    assert walk.find(at(prepared, 0.4, 1e-5))[1] == "negligible"
    assert walk.n_solves == solves


def test_a_model_without_hinge_loss_has_every_margin_and_holds_along_its_ray():
    X, y = separable()
    problem = posed(X, y, WIDTHS, 0.01, 0.01)
    for certificate in solving_rounds(problem):
        if certificate.gap <= 1e-4:
            break
    found = _without_hinge(certificate, TOL)
    coef, intercept = problem.prepared.coefficients(found.solution.W, found.solution.bias)
    assert (indicator(y) * (X @ coef.T + intercept)).min() >= 1 - 1e-9
    # It is the solver's, class by class, enlarged by no more than it takes.
    factors = found.solution.W.sum(axis=1) / certificate.solution.W.sum(axis=1)
    np.testing.assert_allclose(
        found.solution.W, factors[:, None] * certificate.solution.W, rtol=1e-9
    )
    assert (factors >= 1 - 1e-12).all()
    roomy = Certificate(problem)
    roomy.solution = problem.solution(3.0 * found.solution.W)
    kept = _without_hinge(roomy, np.inf)
    np.testing.assert_allclose(kept.solution.W, roomy.solution.W, rtol=1e-12)  # it is never reduced
    below = replace(problem, gamma1=problem.gamma1 / 50, gamma2=problem.gamma2 / 50)
    ray = Certificate(below)
    ray.offer(found.solution)
    ray.offer_dual(found.dual)
    assert ray.gap <= TOL
    optimum, _ = conic_optimum(X, y, WIDTHS, below.gamma1, below.gamma2)
    assert ray.objective <= optimum * (1 + TOL)
    assert _without_hinge(certificate, 0.0) is None  # dearer than the gap allows


def test_classes_that_overlap_have_no_model_without_hinge_loss():
    X, y = overlapping()
    X, y = (
        np.vstack([X, X[:1]]),
        np.vstack([y, 1 - y[:1]]),
    )  # the same sample with and without every label
    problem = posed(X, y, WIDTHS, 1e-4, 1e-4)
    for certificate in solving_rounds(problem):
        if certificate.gap <= TOL:
            break
    assert _without_hinge(certificate, np.inf) is None
    assert Walk(problem.prepared, TOL, 2000).find(problem)[1] == "solved"


def test_max_iter_bounds_the_rounds_of_a_solve():
    X, y = overlapping()
    problem = posed(X, y, WIDTHS, 0.05, 0.05)
    walk = Walk(problem.prepared, 1e-12, 3)
    certificate, _ = walk.find(problem)
    assert walk.n_rounds <= 3 * walk.n_solves
    *_, expected = islice(solving_rounds(problem), 3)
    np.testing.assert_array_equal(certificate.solution.W, expected.solution.W)
