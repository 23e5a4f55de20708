"""Columns that are joined: parcels against scikit-learn's clusters, clusters against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import FeatureAgglomeration
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.config.preparation import step_from_yaml
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Layout, MaskedVolume, Matrix, Modalities, Tensor
from raysel.data.preparation.joining import ClusterMeans, ParcelMeans
from raysel.data.preparation.making import make_preparation
from raysel.data.preparation.outputs import Outputs, select_columns
from raysel.data.preparation.preparation import Preparation

RNG = np.random.default_rng(0)


def preparation(layout: Layout, *steps, names=None, confounds=()) -> Preparation:
    names = names or [f"x{i}" for i in range(layout.n_features)]
    made = make_preparation([step_from_yaml(step) for step in steps], names, layout, {}, confounds)
    assert made is not None
    return made


def groups(joined_to: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(joined_to == f).tolist()) for f in joined_to}


@parametrize_with_checks([ParcelMeans(), ClusterMeans()])
def test_they_follow_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("layout", [Matrix(6, 7), Tensor((3, 4, 5)), Tensor((40,))])
@pytest.mark.parametrize("number", [1, 5, 12])
def test_parcels_are_those_of_scikit_learn(layout, number):
    X, new = RNG.normal(size=(30, layout.n_features)), RNG.normal(size=(8, layout.n_features))
    made = preparation(layout, {"parcels": number}).fit(X)
    graph = grid_to_graph(*(*layout.shape, 1)[: max(2, len(layout.shape))])
    theirs = FeatureAgglomeration(number, connectivity=graph).fit(X)
    assert groups(made.joined_to_) == groups(theirs.labels_)
    expected = theirs.transform(new)[:, theirs.labels_[made.origin_]]
    np.testing.assert_allclose(made.transform(new), expected, atol=1e-12)
    assert made.outputs.sizes(np.arange(layout.n_features), [layout.n_features]) == [number]


def test_parcels_keep_to_a_mask_and_leave_out_constant_cells():
    """A gap of the mask divides the volume, and so does a plane of constant cells."""
    mask = np.ones((4, 6, 5), dtype=bool)
    mask[:, 2] = False
    varies = np.ones_like(mask)
    varies[:, :, 3] = False
    X = RNG.normal(size=(30, mask.sum()))
    X[:, ~varies[mask]] = 2.0
    made = preparation(MaskedVolume(mask), {"parcels": 9}).fit(X)
    left_out = np.flatnonzero(~varies[mask])
    assert not np.isin(made.origin_, left_out).any()
    np.testing.assert_array_equal(made.joined_to_[left_out], left_out)
    graph = grid_to_graph(4, 6, 5, mask=mask & varies).toarray().astype(bool)
    place = np.full(mask.sum(), -1)
    place[varies[mask]] = np.arange(len(graph))
    pieces = np.zeros(mask.shape, dtype=int)
    pieces[:, 3:] += 1
    pieces[:, :, 4:] += 2
    for members in groups(made.joined_to_):
        own = np.array(sorted(members))
        if len(own) == 1:
            continue
        assert len(np.unique(pieces[mask][own])) == 1
        connected = np.linalg.matrix_power(graph[np.ix_(place[own], place[own])].astype(float), 20)
        assert (connected > 0).all()
    scores = np.arange(1.0, 1 + len(made.origin_))
    of_features = made.outputs.joint_scores(scores, scale="squared")
    assert (of_features[left_out] == 0).all()
    assert (of_features[varies[mask]] > 0).all()


def test_clusters_are_those_of_scipy_with_their_signs():
    factors = RNG.normal(size=(50, 4)).repeat(3, axis=1)
    X = factors * RNG.choice([-3.0, 1.0], 12) + 0.4 * RNG.normal(size=(50, 12)) + 5
    X = np.column_stack([X[:, RNG.permutation(12)], np.full(50, 7.0)])
    made = preparation(Tensor((13,)), {"clusters": 0.6}).fit(X)
    r = np.corrcoef(X[:, :12].T)
    distances = squareform(1 - np.abs(r), checks=False)
    labels = fcluster(linkage(distances, "complete"), 0.4, "distance")
    assert groups(made.joined_to_[:12]) == groups(labels)
    assert len(made.origin_) == len(np.unique(labels)) + 1
    Z = (X[:, :12] - X[:, :12].mean(axis=0)) / X[:, :12].std(axis=0)
    for column, first in zip(made.transform(X).T, made.origin_.tolist(), strict=True):
        members = np.flatnonzero(made.joined_to_ == first)
        expected = X[:, first]
        if len(members) > 1:
            expected = np.mean([np.sign(r[first, m]) * Z[:, m] for m in members], axis=0)
        np.testing.assert_allclose(column, expected, atol=1e-12)


def test_a_column_of_joined_features_has_the_name_of_the_first():
    X = RNG.normal(size=(30, 4))
    X[:, 3] = -X[:, 1]
    made = preparation(Tensor((4,)), "clusters", names=["a", "b", "c", "d"]).fit(X)
    assert made.get_feature_names_out().tolist() == ["a", "b +1", "c"]


def test_joined_features_share_their_columns():
    outputs = Outputs(np.array([0, 2, 5]), 6, joined_to=np.array([0, 0, 2, 0, 2, 5]))
    scores = outputs.joint_scores(np.array([3.0, 1.0, 2.0]), scale="effect")
    assert scores.tolist() == [3.0, 3.0, 1.0, 3.0, 1.0, 2.0]
    order = np.array([1, 3, 5, 4, 2])
    assert outputs.columns(order).tolist() == [0, 2, 1]
    assert outputs.sizes(order, [0, 1, 2, 3, 4, 5]) == [0, 1, 1, 2, 3, 3]
    chosen = np.isin(np.arange(6), [3, 5])
    assert select_columns(chosen, outputs.origin, outputs.joined_to).tolist() == [True, False, True]


def test_steps_before_and_after_work_on_joined_columns():
    """Clusters of parcels; a later step that names a member takes the column of its parcel."""
    X = RNG.normal(size=(40, 6)).repeat(4, axis=1) + 0.1 * RNG.normal(size=(40, 24))
    X[:, 12:16] = X[:, 4:8]
    made = preparation(Tensor((24,)), {"parcels": 6}, {"clusters": 0.9}).fit(X)
    expected = np.repeat([0, 4, 8, 4, 16, 20], 4)
    np.testing.assert_array_equal(made.joined_to_, expected)
    clipped = preparation(
        Tensor((24,)), {"parcels": 6}, {"clip": [0.2, 0.8], "columns": ["x6"]}
    ).fit(X)
    low, high = np.quantile(X[:, 4:8].mean(axis=1), [0.2, 0.8])
    np.testing.assert_allclose(
        clipped.transform(X)[:, 1], np.clip(X[:, 4:8].mean(axis=1), low, high)
    )


def test_confounds_are_joined_with_nothing():
    X = RNG.normal(size=(40, 3))[:, [0, 0, 1, 0]] + 0.01 * RNG.normal(size=(40, 4))
    made = preparation(Tensor((4,)), "clusters", "residualise", confounds=["x3"]).fit(X)
    assert made.joined_to_.tolist() == [0, 0, 2, 3]
    assert made.origin_.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("layout", "steps", "words"),
    [
        (Matrix(2, 3), [{"parcels": 7}], "there are 6 cells to join; give a whole number"),
        (
            Matrix(2, 3),
            [{"drop_near_constant": 0.9}, {"parcels": 2}],
            "joins 6 cells and gets 5 columns. Put it before",
        ),
        (
            Modalities({"a": 2, "b": 4}),
            ["clusters"],
            r"columns of the modalities a and b; .*\{clusters: ..., columns: \{modality: a\}\}",
        ),
        (
            Tensor((6,)),
            [{"impute": {"indicator": True}}, "clusters"],
            "takes one column of each feature, and 'x1' has 2. Put it before",
        ),
        (Tensor((6,)), ["clusters"], r"NaN.* Put \{impute: median\} before it"),
    ],
)
def test_what_cannot_be_joined_is_refused(layout, steps, words):
    X = RNG.normal(size=(30, 6))
    X[:, 0] = 1.0
    if words.startswith(("takes", "NaN")):
        X[3, 1] = np.nan
    with pytest.raises((ConfigError, DataError), match=words):
        preparation(layout, *steps).fit(X)
