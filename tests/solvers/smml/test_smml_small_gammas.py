"""SMML at small gammas and on awkward data: it ends within its gap, and the gap tells the truth."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smml_random import random_problem
from smml_reference import conic_optimum, objective

from raysel.solvers.smml.barrier import DualBarrier
from raysel.solvers.smml.problem import Certificate
from raysel.solvers.smml.smml import SMML


def check(seeds, **gammas):
    for seed in seeds:
        X, y, widths, gamma1, gamma2 = random_problem(seed, **gammas)
        smml = SMML(widths, gamma1, gamma2).fit(X, y)
        assert smml.converged_, seed
        assert smml.n_iter_ <= smml.max_iter
        sizes = list(widths.values())
        own = objective(X, y, sizes, smml.gamma1_, smml.gamma2_, smml.coef_, smml.intercept_)
        assert own == pytest.approx(smml.objective_path_[-1], rel=1e-7)
        optimum, _ = conic_optimum(X, y, sizes, smml.gamma1_, smml.gamma2_)
        # Clarabel itself errs by some 1e-6 where both gammas are tiny.
        assert own <= optimum * (1 + smml.dual_gap_ + 3e-6), seed


def test_every_random_problem_ends_within_tol():
    check(range(40))


def test_small_gammas_end_within_tol():
    check(range(1000, 1040), largest=1e-3)


@pytest.mark.slow
def test_many_random_problems_end_within_tol():
    check(range(40, 240))
    check(range(1040, 1240), largest=1e-2)


def test_one_feature_that_tells_nothing():
    # Three labels, one feature, gamma2 so small that ADMM alone ends with a gap of 0.3.
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 1)), rng.integers(0, 2, (25, 3))
    for fraction in (1e-5, 1e-4, 1e-3):
        smml = SMML(gamma1=0, gamma2=fraction).fit(X, Y)
        assert smml.dual_gap_ <= 1e-4
        optimum, _ = conic_optimum(X, Y, [1], 0, smml.gamma2_)
        assert smml.objective_path_[-1] <= optimum * (1 + 1e-4 + 1e-7)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**16))
def test_the_barrier_method_alone_certifies_within_few_steps(seed):
    X, y, widths, gamma1, gamma2 = random_problem(seed)
    smml = SMML(widths, gamma1, gamma2)
    problem = smml.problem(smml.prepare(X, y))
    if problem.is_zero_solution:
        return
    for certificate in islice(DualBarrier(problem, Certificate(problem)).rounds(), 150):
        if certificate.gap <= 1e-5:
            break
    assert certificate.gap <= 1e-5
    found, _ = problem.prepared.coefficients(certificate.solution.W, certificate.solution.bias)
    again = SMML(widths, gamma1, gamma2, tol=1e-5).fit(X, y)  # by ADMM, as a rule
    assert certificate.objective == pytest.approx(again.objective_path_[-1], rel=1.1e-5)
    assert found.shape == again.coef_.shape
