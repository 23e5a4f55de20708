"""A trial fit is the fit that follows: with its random state, and without a trace in NumPy's
global generator.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from raysel import NestedSearch
from raysel.run.api import prepare_study

X, Y = load_iris(return_X_y=True)
X, Y = (X - X.mean(axis=0))[::3], Y[::3]
STATES: list[int] = []


class Seeded(LogisticRegression):
    """Logistic regression that wants an integer as random state, and draws from NumPy's global
    generator.
    """

    def __init__(self, C=1.0, random_state=0):
        super().__init__(C=C, random_state=random_state)
        if not isinstance(random_state, int):
            raise TypeError(f"random_state={random_state} is no integer")

    def fit(self, X, y, sample_weight=None):
        STATES.append(self.random_state)
        np.random.random(3)  # noqa: NPY002
        return super().fit(X, y, sample_weight)


@pytest.fixture
def untouched():
    STATES.clear()
    before = np.random.get_state()  # noqa: NPY002
    yield
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("as_estimator", [False, True])
def test_the_checks_fit_with_the_state_of_the_smallest_training_set(as_estimator):
    name = f"{__name__}.Seeded"
    scored = {"estimator": name, "n_features": [2]} if as_estimator else {"estimator": "native"}
    study = prepare_study(
        {
            "name": "seeded",
            "solver": {"name": "rfs" if as_estimator else name},
            "evaluation": scored,
            "cv": {"outer": 3, "inner": 2},
        },
        X=X,
        y=Y,
    )
    fold, number = study.smallest
    smallest = min(len(inner.train) for each in study.plan.folds for inner in each.inner)
    assert len(fold.inner[number].train) == smallest
    assert [fold.random_state(study.config.seed, number)] == STATES


class Recorded(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        STATES.append(self.random_state)
        return super().fit(X, y, sample_weight)


@pytest.mark.usefixtures("untouched")
def test_the_state_of_the_trial_fit_comes_again_in_the_search():
    NestedSearch(Recorded(), {"C": [1.0]}, outer=2, inner=2).fit(X, Y)
    assert None not in STATES
    assert STATES[0] in STATES[1:]
