"""What a fit from another start finds: compared for the final model alone, of methods with local optima."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from small_studies import raw_config, run_offline, write_digits

from raysel.baselines.dfs import DFS
from raysel.baselines.least_squares import BilinearRegression
from raysel.baselines.rfs import RFS
from raysel.evaluation.refit import other_start
from raysel.results import texts
from raysel.results.remarks import Remark, format_remarks
from raysel.solvers.smr.smr import SMR


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True, n_class=5)
    return X[:150] / 16.0, y[:150]


@pytest.mark.parametrize(
    "solver",
    [
        SMR((8, 8), rank=2, alpha=0.01),
        SMR((8, 8), rank=2, p=0.5),
        SMR((8, 8), rank=8, p=0.5),
        SMR((8, 8), rank=2, init="identity"),
        SMR((8, 8), rank=2, init="random", random_state=3),
        BilinearRegression((8, 8)),
        DFS(),
    ],
    ids=repr,
)
def test_the_best_features_of_two_starts_are_compared(solver, digits):
    solver.fit(*digits)
    other = solver.another_start()
    assert solver.capabilities.local_optimum
    assert other.get_params().keys() == solver.get_params().keys()
    other.fit(*digits)
    length = min(len(other.objective_path_), len(solver.objective_path_))
    assert (other.objective_path_[:length] != solver.objective_path_[:length]).any()
    actual = other_start(solver, *digits, solver.scores_, 10)
    theirs = set(np.argsort(-other.scores_, kind="stable")[:10])
    assert actual["shared"] == len(theirs & set(np.argsort(-solver.scores_, kind="stable")[:10]))
    assert solver.objective_path_[-1] * (1 + actual["excess"]) == pytest.approx(
        other.objective_path_[-1]
    )


def test_multistart_takes_its_two_best_starts(digits):
    for p in (1.0, 0.5):
        best = SMR((8, 8), rank=2, p=p, tol=0.0, max_iter=60).fit(*digits)
        second = best.another_start().fit(*digits)
        # None of the other starts, iterated by itself, ends below both.
        lower, upper = sorted([best.objective_path_[-1], second.objective_path_[-1]])
        assert (
            lower
            <= SMR((8, 8), rank=2, p=p, init="identity", tol=0.0, max_iter=60)
            .fit(*digits)
            .objective_path_[-1]
        )
        assert upper <= lower * 1.05


def test_where_the_problem_is_convex_no_start_matters(digits):
    for solver in (SMR((8, 8), rank=8), RFS(), BilinearRegression((64, 1))):
        solver.fit(*digits)
        assert solver.another_start() is None
        assert other_start(solver, *digits, solver.scores_, 10) is None


def test_a_study_compares_the_final_model_s_starts_and_says_local_optimum(tmp_path):
    write_digits(tmp_path / "few.npz")
    result = run_offline(raw_config(tmp_path / "few.npz"), tmp_path / "study")
    assert all(refit.other_start is None for refit in result.outer)
    actual = result.final.other_start
    assert 0 <= actual["shared"] <= actual["n"] == result.final.n_features
    assert texts.convergence(result.facts).endswith("converged to a local optimum")
    (sentence,) = format_remarks([Remark("local_optimum", actual)])
    assert f"{actual['shared']} of the {actual['n']} best features are the same" in sentence
    assert sentence in result.remarks()
