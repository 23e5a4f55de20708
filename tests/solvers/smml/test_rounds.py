"""The rounds of both solvers in turn: ADMM's first, the barrier method's where they are late, without end."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from smml_random import posed, posed_problem, random_problem
from smml_reference import conic_optimum

from raysel.solvers.smml.admm import ConsensusADMM
from raysel.solvers.smml.walk import _switch, solving_rounds


def stalling():
    """A problem of gammas so small that ADMM alone is still far off when it is the barrier method's turn."""
    X, y, widths, gamma1, gamma2 = random_problem(18, largest=1e-3)
    return X, y, list(widths.values()), posed(X, y, list(widths.values()), gamma1, gamma2)


def test_the_first_rounds_are_those_of_admm():
    _, _, problem = posed_problem(0)
    rounds = zip(islice(solving_rounds(problem), 20), ConsensusADMM(problem).rounds(), strict=False)
    for found, alone in rounds:
        assert (found.objective, found.gap) == (alone.objective, alone.gap)
        np.testing.assert_array_equal(found.solution.W, alone.solution.W)


def test_where_admm_stalls_the_barrier_method_goes_on_from_its_certificate():
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


def test_it_goes_on_where_rounding_ends_the_barrier_method():
    *_, problem = stalling()
    assert len(list(islice(solving_rounds(problem), _switch(problem) + 400))) == _switch(problem) + 400


def cost(n, d, c):
    """Multiplications of fifty Newton steps over those of a round of ADMM, from the two modules' own words."""
    newton = n * d**2 * c + (d * c) ** 3 / 3
    return 50 * newton / (13 * (2 * n * d + min(n, d) ** 2) * c)


@pytest.mark.parametrize(("n", "d", "c"), [(10, 3, 2), (40, 30, 3), (100, 60, 4), (30, 400, 3)])
def test_the_switch_is_where_admm_has_cost_as_much_within_limits(n, d, c):
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    problem = posed(rng.standard_normal((n, d)), y, [d], 0.1, 0.1)
    expected = np.clip(cost(*problem.prepared.X.shape, len(problem.prepared.signs)), 30, 1000)
    assert _switch(problem) == int(expected)


def test_without_memory_for_the_barrier_method_admm_has_no_end():
    rng = np.random.default_rng(0)
    y = np.arange(8) % 4
    assert _switch(posed(rng.standard_normal((8, 1250)), y, [1250], 0.1, 0.1)) is not None
    assert _switch(posed(rng.standard_normal((8, 1251)), y, [1251], 0.1, 0.1)) is None
