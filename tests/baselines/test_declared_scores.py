"""Tests that the scores of methods are what their capabilities say: of each feature alone, or
places.
"""

import numpy as np
import pytest

from raysel.base.registry import OWN, solver_class
from raysel.baselines.univariate_filters import FisherScore
from raysel.data.layouts import Matrix, Modalities, Tensor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8))
CLASSES = np.arange(60) % 2
QUANTITY = RNG.normal(size=60)


def labels_of(method):
    return CLASSES if "classes" in method.capabilities.targets else QUANTITY


def made(name):
    method = solver_class(name)()
    if "random_state" in method.get_params():
        method.set_params(random_state=0)
    return method


FILTERS = [
    name
    for name in OWN
    if OWN[name].partition(":")[0].endswith("_filters") and name != "random_ranking"
]


@pytest.mark.parametrize("name", FILTERS)
def test_scores_of_univariate_filters_depend_on_no_other_feature(name):
    method = made(name)
    y = labels_of(method)
    scores = method.fit(X, y).scores_
    others = X.copy()
    others[:, 3:] = 5.0 * y[:, None] + RNG.normal(size=(60, 5))  # which all tell
    same = np.allclose(method.fit(others, y).scores_[:3], scores[:3], rtol=1e-6)
    assert same == method.univariate


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "variance"])
def test_the_largest_of_places_is_the_same_for_all_labels(name):
    method = made(name)
    y = labels_of(method)
    largest = {method.fit(X, RNG.permutation(y)).scores_.max() for _ in range(5)}
    assert (len(largest) == 1) == (method.score_scale == "place")


def test_fisher_scores_of_a_set_are_places_and_depend_on_the_other_features():
    ratio, of_set = FisherScore(), FisherScore(criterion="set")
    assert (ratio.univariate, ratio.score_scale) == (True, "squared")
    assert (of_set.univariate, of_set.score_scale) == (False, "place")
    assert of_set.fit(X, CLASSES).scores_.max() == X.shape[1]


STRUCTURED = [name for name in OWN if solver_class(name).unstructured(Matrix(2, 4))]


@pytest.mark.parametrize("name", STRUCTURED)
def test_without_structure_the_arrangement_of_the_features_does_not_matter(name):
    cls = solver_class(name)
    takes_matrices = "shape" in cls.layout_parameters
    layout = Matrix(2, 4) if takes_matrices else Modalities({"a": 3, "b": 5})
    order = RNG.permutation(8)

    def scores(columns, **params):
        exact = {"tol": 1e-9} if "tol" in cls().get_params() else {}
        model = cls.from_layout(layout, **exact, **params)
        return model.fit(X[:, columns], labels_of(model)).scores_

    def depends_on_order(**params):
        return not np.allclose(
            scores(order, **params), scores(slice(None), **params)[order], rtol=1e-3, atol=1e-4
        )

    assert not depends_on_order(**cls.unstructured(layout))
    assert depends_on_order()


def test_an_array_of_more_axes_has_its_own_largest_rank():
    assert solver_class("smr").unstructured(Tensor((3, 4, 2))) == {"rank": 6}
    assert solver_class("smr_regressor").unstructured(Tensor((9,))) == {"rank": 1}
    assert solver_class("smr").unstructured(Modalities({"a": 3})) == {}
