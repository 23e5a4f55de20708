"""Methods that are solved in one step say so, and pretend no iterations."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from raysel.base.registry import OWN, solver_capabilities, solver_class

ONE_SHOT = [name for name in OWN if not solver_capabilities(name).iterates]


def test_the_methods_that_are_solved_in_one_step():
    assert set(ONE_SHOT) >= {"pca", "lda", "linear_svm"}
    assert not {"smr", "smml", "mtda", "trace_ratio_lda", "aggregate"} & set(ONE_SHOT)


@pytest.mark.parametrize("name", ONE_SHOT)
def test_iterate_yields_once(name):
    X, y = load_iris(return_X_y=True)
    solver = solver_class(name)()
    assert solver.max_steps == 1
    objectives = list(solver.iterate(X, y))
    assert objectives == solver.objective_path_.tolist()
    assert (len(objectives), solver.n_iter_, solver.converged_) == (1, 1, True)


@pytest.mark.parametrize("name", ["pca", "lda"])
def test_what_has_no_iterations_has_no_tolerance(name):
    assert not hasattr(solver_class(name)(), "max_iter")
    assert not hasattr(solver_class(name)(), "tol")


def test_a_ranking_needs_a_fit_and_scores():
    for name in ("fisher_score", "nearest_neighbor"):
        with pytest.raises(NotFittedError):
            _ = solver_class(name)().ranking_
    iris = load_iris(return_X_y=True)
    assert sorted(solver_class("fisher_score")().fit(*iris).ranking_) == [1, 2, 3, 4]
    assert not hasattr(solver_class("nearest_neighbor")().fit(*iris), "ranking_")
