"""ADMM on few features: its optimum against a conic solver, its certificate on all features, and
when it is used.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from smml_reference import conic_optimum, posed

from raysel.solvers.smml import walk
from raysel.solvers.smml.admm import ConsensusADMM
from raysel.solvers.smml.walk import solving_rounds
from raysel.solvers.smml.working_set import WorkingSetADMM, restricted, saves_time

WIDTHS, EVEN = [4, 20, 36], [20, 20, 20]


def correlated(n=50, scale=1.0, widths=WIDTHS, seed=0):
    """Features that follow a few directions, the more the narrower their modality, and the
    classes that these tell.
    """
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((n, 4))
    X = directions @ rng.standard_normal((4, sum(widths))) + 0.5 * rng.standard_normal(
        (n, sum(widths))
    )
    y = (directions @ rng.standard_normal((4, 3)) + 0.3 * rng.standard_normal((n, 3))).argmax(
        axis=1
    )
    return scale * X / np.sqrt(np.repeat(widths, widths)), y


def solved(solver, gap=1e-6, most=600):
    for certificate in islice(solver.rounds(), most):
        if certificate.gap <= gap:
            break
    return certificate


@pytest.mark.parametrize(
    ("gammas", "n"),
    [((0.0, 0.05), 20), ((0.0, 0.3), 80), ((0.02, 0.1), 80), ((0.2, 0.2), 20), ((0.3, 0.02), 80)],
)
def test_it_ends_at_the_conic_optimum_and_is_certified_on_all_features(gammas, n):
    X, y = correlated(n, widths=EVEN)
    problem = posed(X, y, EVEN, *gammas)
    optimum, W = conic_optimum(X, y, EVEN, problem.gamma1, problem.gamma2)
    solver = WorkingSetADMM(problem)
    sizes, values = [solver.kept.sum()], []
    for certificate in islice(solver.rounds(), 600):
        # No bound of the set's own problem, whose optimum is higher, may pass for one of the whole
        # problem.
        assert certificate.bound <= optimum * (1 + 1e-7)
        assert certificate.objective >= optimum * (1 - 1e-7)
        sizes.append(solver.kept.sum())
        values.append(certificate.objective)
        if certificate.gap <= 1e-6:
            break
    assert certificate.gap <= 1e-6
    assert (np.diff(sizes) >= 0).all()
    assert sizes[0] == 6
    assert n == 20 or sizes[-1] > 6
    assert (np.diff(values) <= 0).all()
    assert certificate.solution.W.shape == W.shape
    whole = problem.solution(certificate.solution.W)
    assert whole.objective(problem.gamma1, problem.gamma2) == pytest.approx(
        certificate.objective, rel=1e-12
    )
    coef, _ = problem.prepared.coefficients(certificate.solution.W, certificate.solution.bias)
    np.testing.assert_allclose(coef, W, atol=2e-2 * np.abs(W).max())


@pytest.mark.parametrize("gammas", [(0.0, 0.1), (0.01, 0.1), (0.05, 0.3)])
def test_it_finds_what_admm_finds_on_all_features_and_leaves_most_of_them_out(gammas):
    X, y = correlated(60)
    problem = posed(X, y, WIDTHS, *gammas)
    plain, solver = solved(ConsensusADMM(problem)), WorkingSetADMM(problem)
    found = solved(solver)
    assert found.objective == pytest.approx(plain.objective, rel=2e-6)
    supports = [
        np.abs(c.solution.W).max(axis=0) > 1e-3 * np.abs(c.solution.W).max() for c in (found, plain)
    ]
    np.testing.assert_array_equal(*supports)
    assert solver.kept[supports[1]].all()
    assert solver.kept.mean() < 0.5


def test_the_order_of_features_does_not_matter():
    X, y = correlated(60)
    rng = np.random.default_rng(1)
    starts = np.cumsum([0, *WIDTHS[:-1]])
    order = np.concatenate(
        [a + rng.permutation(width) for a, width in zip(starts, WIDTHS, strict=True)]
    )
    one, other = posed(X, y, WIDTHS, 0.02, 0.1), posed(X[:, order], y, WIDTHS, 0.02, 0.1)
    solvers = WorkingSetADMM(one), WorkingSetADMM(other)
    np.testing.assert_array_equal(solvers[0].kept[order], solvers[1].kept)
    found = [solved(solver) for solver in solvers]
    np.testing.assert_array_equal(solvers[0].kept[order], solvers[1].kept)
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-6)
    W = found[0].solution.W[:, order]
    np.testing.assert_allclose(found[1].solution.W, W, atol=1e-2 * np.abs(W).max())


def test_a_set_of_most_features_becomes_all_of_them():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    problem = posed(X, rng.integers(0, 3, 40), WIDTHS, 0.0, 0.01)
    solver = WorkingSetADMM(problem)
    sizes = [solver.kept.sum()] + [solver.kept.sum() for _ in islice(solver.rounds(), 40)]
    assert solver.certificate.gap <= 1e-4
    assert sizes[-1] == 60
    assert max(size for size in sizes if size < 60) <= 30
    assert restricted(problem, solver.kept) is problem


def test_a_problem_restricted_to_some_features_is_posed_in_the_same_units():
    X, y = correlated()
    problem = posed(X, y, WIDTHS, 0.1, 0.1)
    kept = np.zeros(60, dtype=bool)
    kept[[1, 2, 30, 31, 59]] = True  # none of the second modality
    part = restricted(problem, kept)
    W = np.random.default_rng(0).standard_normal((3, 5))
    whole = np.zeros((3, 60))
    whole[:, kept] = W
    one, other = part.solution(W), problem.solution(whole)
    assert one.objective(1.0, 2.0) == pytest.approx(other.objective(1.0, 2.0), rel=1e-12)
    np.testing.assert_allclose(one.bias, other.bias)
    np.testing.assert_allclose(part.prepared.X, problem.prepared.X[:, kept])


LARGE = [100, 500, 1000]  # widths: with 300 samples and 3 classes large enough to save time


@pytest.fixture(scope="module")
def large():
    return correlated(300, widths=LARGE)


def at(problem, first, second):
    prepared = problem.prepared
    return replace(problem, gamma1=first * prepared.gamma1_max, gamma2=second * prepared.gamma2_max)


def test_the_rule_asks_for_size_sparse_rows_and_few_directions(large):
    X, y = large
    problem = posed(X, y, LARGE, 0.01, 0.1)
    assert saves_time(problem)
    assert saves_time(at(problem, 0.0, 0.1))
    assert not saves_time(at(problem, 0.1, 0.0))
    assert not saves_time(at(problem, 0.1, 0.1))
    assert not saves_time(at(problem, 0.0, 0.001))
    assert not saves_time(posed(X[:100], y[:100], LARGE, 0.01, 0.1))
    for factor, order in ((7.0, np.arange(1600)), (1.0, np.r_[:100, 599:99:-1, 1599:599:-1])):
        assert saves_time(posed(factor * X[:, order], y, LARGE, 0.01, 0.1))
    noise = np.random.default_rng(0).standard_normal(X.shape)
    assert not saves_time(posed(noise, y, LARGE, 0.01, 0.1))
    assert saves_time(
        posed(np.hstack([X[:, :100], 1e-3 * noise[:, 100:]]), y, LARGE, 0.0, 0.1)
    )  # few can matter
    assert not saves_time(posed(np.zeros_like(X), y, LARGE, 0.01, 0.1))


def test_the_rule_decides_and_where_it_says_no_nothing_changes(large, monkeypatch):
    problem = posed(*large, LARGE, 0.01, 0.1)
    used = [next(solving_rounds(problem)).objective]
    monkeypatch.setattr(walk, "saves_time", lambda _: False)
    used.append(next(solving_rounds(problem)).objective)
    assert used == [
        next(solver(problem).rounds()).objective for solver in (WorkingSetADMM, ConsensusADMM)
    ]
    assert used[0] != used[1]
