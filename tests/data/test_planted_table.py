"""What the generated table says of its genes is so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from raysel.core.errors import ConfigError
from raysel.data.loading import load_dataset
from raysel.data.planted_table import BATCH, NOISE, PLANTED, PROXY, make_gene_table

N = 30_000


@pytest.fixture(scope="module")
def large():
    """Genes without empty cells, plates, classes and roles of many samples."""
    raw, roles = make_gene_table(N, empty=0.0, random_state=1)
    values = np.asarray(raw.X)
    return values[:, :-1], values[:, -1], raw.y, np.array(list(roles.values()))


def unexplained(X, codes):
    """Columns less the mean of each level."""
    levels = np.unique(codes)
    means = np.array([X[codes == level].mean(axis=0) for level in levels])
    return X - means[np.searchsorted(levels, codes)]


def test_each_gene_has_one_role():
    _, roles = make_gene_table(60, n_modules=12, n_planted=4, random_state=0)
    counts = {role: list(roles.values()).count(role) for role in (PLANTED, PROXY, BATCH, NOISE)}
    assert counts == {PLANTED: 4, PROXY: 36, BATCH: 20, NOISE: 60}


def test_planted_genes_tell_the_classes_and_noise_does_not(large):
    X, _, y, roles = large
    F, _ = f_classif(X, y)
    assert F[roles == PLANTED].min() > 1000
    # 99.9999 % of F(2, N - 3) lie below 13.9: none of 180 genes lies above.
    assert F[roles == NOISE].max() < 13.9


def test_a_proxy_tells_nothing_that_its_leader_does_not(large):
    X, _, y, roles = large
    modules = X.reshape(N, -1, 10)
    leaders = modules[:, :, :1]
    slopes = (modules * leaders).sum(0) / (leaders**2).sum(0)
    rest = (modules - slopes * leaders).reshape(N, -1)
    assert f_classif(X[:, roles == PROXY], y)[0].min() > 500
    assert f_classif(rest[:, roles == PROXY], y)[0].max() < 13.9


def test_genes_of_the_batch_follow_the_plate_and_the_class_only_through_it(large):
    X, plates, y, roles = large
    batch = X[:, roles == BATCH]
    assert f_classif(batch, plates)[0].min() > 20
    assert f_classif(batch, y)[0].max() > 100
    within = unexplained(batch, plates)
    # The class that remains within a plate is told by the genes no more than by noise.
    for plate in np.unique(plates):
        assert f_classif(within[plates == plate], y[plates == plate])[0].max() < 13.9


def test_it_is_loaded_as_a_table_with_a_batch_and_empty_cells():
    data = load_dataset(
        "planted-genes", unprepared=True, confounds=["plate"], params={"n_samples": 90}
    )
    assert data.n_samples == 90
    assert data.layout.n_features == 301
    assert data.categories == {"plate": ("P1", "P2", "P3")}
    assert 0.01 < np.isnan(data.X).mean() < 0.03
    same = load_dataset(
        "planted-genes", unprepared=True, confounds=["plate"], params={"n_samples": 90}
    )
    assert same.content_hash == data.content_hash


@pytest.mark.parametrize(
    ("params", "culprit"),
    [({"n_planted": 29}, "n_planted"), ({"n_classes": 1}, "n_classes"), ({"empty": 1.0}, "empty")],
)
def test_parameters_that_cannot_be_are_refused(params, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make_gene_table(**params)
