"""A fit that stops at max_iter warns, and only such a fit; methods that are solved in one step."""

from __future__ import annotations

import warnings

import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from raysel.base.registry import OWN, solver_capabilities, solver_class
from raysel.baselines.aggregate import Aggregate
from raysel.baselines.linear_projections import LDA, PCA, TraceRatioLDA
from raysel.baselines.linear_svm import LinearSVM
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR

ITERATIVE = [
    SMR(shape=(8, 8), rank=2),
    SMML(modalities={"top": 32, "bottom": 32}, tol=1e-3),
    LinearSVM(C=1.0, random_state=0),
    MTDA(),
    TraceRatioLDA(),
    Aggregate(),
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:150] / 16, y[:150]


@pytest.mark.parametrize("solver", ITERATIVE, ids=lambda solver: type(solver).__name__)
def test_a_fit_that_stops_at_max_iter_warns(solver, digits):
    name = type(solver).__name__
    solver.set_params(max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.fit(*digits)
    found = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(found) == 1
    assert found[0].startswith(f"{name} did not reach tol={solver.tol:g} in ")
    assert found[0].endswith("increase max_iter or tol.")
    assert not solver.converged_
    if isinstance(solver, SMML):  # whose tol is of the gap, not of the objective's decrease
        assert f"(relative duality gap {solver.dual_gap_:.1e})" in found[0]


@pytest.mark.parametrize(
    "solver",
    [*ITERATIVE, LDA(), PCA(), SMR(shape=(8, 8), alpha=1.0)],
    ids=lambda solver: type(solver).__name__,
)
def test_a_fit_that_reaches_tol_does_not(solver, digits):
    if "max_iter" in solver.get_params():
        solver.set_params(max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        solver.fit(*digits)
    assert solver.converged_


ONE_SHOT = [name for name in OWN if not solver_capabilities(name).iterates]


def test_the_methods_that_are_solved_in_one_step():
    assert set(ONE_SHOT) >= {"pca", "lda", "linear_svm"}
    assert not {"smr", "smml", "mtda", "trace_ratio_lda", "aggregate"} & set(ONE_SHOT)


def test_a_ranking_needs_a_fit_and_scores():
    for name in ("fisher_score", "nearest_neighbor"):
        with pytest.raises(NotFittedError):
            _ = solver_class(name)().ranking_
    iris = load_iris(return_X_y=True)
    assert sorted(solver_class("fisher_score")().fit(*iris).ranking_) == [1, 2, 3, 4]
    assert not hasattr(solver_class("nearest_neighbor")().fit(*iris), "ranking_")
