"""Every selector of scikit-learn ranks the features, of classes and of a quantity, as it selects
them.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import feature_selection
from sklearn.base import clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_selection import (
    RFE,
    RFECV,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectorMixin,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from raysel import NestedSearch
from raysel.base.adapter import ScikitLearnMethod
from raysel.base.feature_scores import feature_scores
from raysel.core.errors import ConfigError

OF_CLASSES = make_classification(
    60, 6, n_informative=2, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
)
OF_QUANTITY = make_regression(60, 6, n_informative=2, noise=1.0, random_state=0)
NO_FEATURE_CONSTANT = np.zeros(6, dtype=bool)


def selectors(model, score_func):
    return [
        SelectKBest(score_func, k=2),
        SelectPercentile(score_func, percentile=34),
        SelectFpr(score_func),
        SelectFdr(score_func),
        SelectFwe(score_func),
        GenericUnivariateSelect(score_func, mode="k_best", param=2),
        RFE(model, n_features_to_select=2),
        RFECV(model, cv=2),
        SelectFromModel(model),
        SelectFromModel(model, importance_getter="coef_", norm_order=np.inf),
        SequentialFeatureSelector(model, n_features_to_select=2, cv=2),
        VarianceThreshold(0.9),
    ]


CASES = {
    "classes": (OF_CLASSES, selectors(LogisticRegression(), f_classif)),
    "quantity": (OF_QUANTITY, selectors(Ridge(), f_regression)),
}
EACH = [
    pytest.param(CASES[kind][0], one, id=f"{kind} {type(one).__name__}")
    for kind in CASES
    for one in CASES[kind][1]
]


def test_all_selectors_of_scikit_learn_are_tested():
    public = {
        cls
        for cls in map(vars(feature_selection).get, feature_selection.__all__)
        if isinstance(cls, type) and issubclass(cls, SelectorMixin) and cls is not SelectorMixin
    }  # fmt: skip
    assert public == {type(one) for _, some in CASES.values() for one in some}


@pytest.mark.parametrize(("data", "selector"), EACH)
def test_the_features_that_a_selector_keeps_are_the_best(data, selector):
    X, y = data
    support = clone(selector).fit(X, y).get_support()
    assert support.sum() > 0
    for made in (selector, make_pipeline("passthrough", selector)):
        method = ScikitLearnMethod(made).fit(X, y)
        best = np.argsort(-method.scores_, kind="stable")[: support.sum()]
        assert sorted(best) == np.flatnonzero(support).tolist()
        assert not hasattr(method, "predict") or isinstance(selector, RFE)
    assert (method.scores_[~support] == 0).all()  # of the pipeline, which does without them


def test_ranks_are_those_of_the_elimination_and_the_weights_of_the_rest():
    X, y = OF_QUANTITY
    fitted = RFE(Ridge(), n_features_to_select=3).fit(X, y)
    name, scores = feature_scores(fitted, NO_FEATURE_CONSTANT)
    weights = np.zeros(6)
    weights[fitted.support_] = np.abs(fitted.estimator_.coef_)
    expected = np.lexsort((-weights, fitted.ranking_))
    assert name == "ranking_"
    np.testing.assert_array_equal(np.argsort(-scores), expected)
    assert ScikitLearnMethod(RFE(Ridge())).fit(X, y).score_scale == "place"


def test_a_filter_before_a_predictor_does_not_rank():
    X, y = OF_CLASSES
    assert (
        feature_scores(
            make_pipeline(VarianceThreshold(), KNeighborsClassifier()).fit(X, y),
            NO_FEATURE_CONSTANT,
        )
        is None
    )
    kept = make_pipeline(VarianceThreshold(0.9), LogisticRegression()).fit(X, y)
    assert feature_scores(kept, NO_FEATURE_CONSTANT)[0] == "coef_"


@pytest.mark.parametrize(
    "selector",
    [
        SelectKBest(f_regression, k=2),
        pytest.param(SelectFromModel(Ridge()), marks=pytest.mark.slow),
        make_pipeline(StandardScaler(), SelectFdr(f_regression)),
    ],
    ids=["univariate", "model", "pipeline"],
)
def test_a_search_for_a_quantity_finds_what_it_depends_on(selector):
    X, y, weights = make_regression(60, 6, n_informative=2, noise=1.0, random_state=0, coef=True)
    search = NestedSearch(selector, n_features=[2], outer=3, inner=2).fit(X, y)
    assert set(np.flatnonzero(search.ranking_ <= 2)) == set(np.flatnonzero(weights))
    assert search.score_ > 0.7
    assert np.corrcoef(search.predict(X), y)[0, 1] > 0.9


def test_joined_features_have_the_score_of_their_cluster():
    """Behind a filter, with a constant feature in a cluster, and before one that keeps a few."""
    X, y = OF_CLASSES
    X = np.column_stack([X, X[:, ::-1] + 0.1, np.ones(len(X))])
    ward = FeatureAgglomeration(4)
    pipeline = make_pipeline(
        VarianceThreshold(), StandardScaler(), ward, SelectKBest(k=2), LogisticRegression()
    )
    name, scores = feature_scores(pipeline.fit(X, y), np.ptp(X, axis=0) == 0)
    Z = StandardScaler().fit_transform(X[:, :12])
    labels = FeatureAgglomeration(4).fit(Z).labels_
    pooled = np.column_stack([Z[:, labels == label].mean(axis=1) for label in range(4)])
    best = np.sort(np.argsort(-f_classif(pooled, y)[0])[:2])
    weights = np.zeros(4)
    model = LogisticRegression().fit(pooled[:, best], y)
    weights[best] = np.linalg.norm(model.coef_, axis=0)
    assert name == "coef_"
    np.testing.assert_allclose(scores, [*weights[labels], 0.0])


def test_the_number_of_clusters_is_searched():
    X, y = OF_CLASSES
    X = X.repeat(3, axis=1) + 0.1 * np.random.default_rng(0).normal(size=(60, 18))
    pipeline = make_pipeline(FeatureAgglomeration(), SelectKBest(k=1))
    space = {"featureagglomeration__n_clusters": [2, 6]}
    search = NestedSearch(
        pipeline, space, n_features=[3, 9], scoring_estimator="knn", outer=3, inner=2
    ).fit(X, y)
    best = search.ranking_.argsort()[:3] // 3
    assert len(set(best.tolist())) == 1


def test_scores_of_classes_are_not_taken_for_those_of_a_quantity():
    with pytest.raises(ConfigError, match="SelectKBest scores by f_classif, which is for classes"):
        NestedSearch(SelectKBest(k=2), n_features=[2], outer=3, inner=2).fit(*OF_QUANTITY)
