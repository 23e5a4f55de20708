"""Copies among the columns, which take permutation importance from each other."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from small_studies import raw_config

from raysel.base.importance import PermutationImportance
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.run.api import prepare_study
from raysel.study.inspection.column_copies import column_copies, column_copy_remarks

RNG = np.random.default_rng(0)
N = 120
OWN = RNG.normal(size=(N, 3))
Y = (OWN[:, 0] > 0).astype(np.int64)
COPIES = {
    "equal": lambda x: x,
    "of another unit": lambda x: 1e-9 * x + 3,
    "negative": lambda x: -x,
    "monotone": np.exp,
    "rounded": lambda x: x.round(2),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_groups_are_those_that_were_planted(copy):
    X = np.column_stack(
        [OWN, copy(OWN[:, 0]), np.ones(N), copy(OWN[:, 2]), copy(OWN[:, 0]), np.zeros(N)]
    )
    assert [group.tolist() for group in column_copies(X)] == [[0, 3, 6], [2, 5]]
    assert column_copies(OWN) == []


def test_groups_across_blocks_of_columns_do_not_depend_on_the_order():
    X = RNG.normal(size=(N, 700))
    X[:, 650], X[:, 3] = X[:, 1], X[:, 699]
    assert {tuple(group.tolist()) for group in column_copies(X)} == {(1, 650), (3, 699)}
    order = RNG.permutation(700)
    found = {tuple(sorted(order[group].tolist())) for group in column_copies(X[:, order])}
    assert found == {(1, 650), (3, 699)}


def test_a_copy_takes_the_importance_that_the_remark_warns_of():
    model = PermutationImportance(LogisticRegression())
    alone = model.fit(OWN, Y).feature_importances_[0]
    X = np.column_stack([OWN, OWN[:, 0]])
    assert model.fit(X, Y).feature_importances_[[0, 3]].max() < 0.75 * alone
    (remark,) = column_copy_remarks(Dataset(X, Y, Tensor((4,)), feature_names=("a", "b", "c", "d")))
    first, second = remark.split("\n")
    assert len(first.split()) <= 25
    assert second.endswith(": a, d.")


@pytest.mark.parametrize("importance", ["permutation", None])
def test_only_a_study_that_ranks_by_permutation_says_so(importance):
    solver = {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 5}}
    raw = raw_config(
        evaluation__n_features=[2],
        solver=solver | ({"importance": importance} if importance else {}),
    )
    del raw["dataset"]["path"]
    labels = (OWN[:, 0] + RNG.normal(size=N) > 0).astype(np.int64)
    study = prepare_study(raw, X=np.column_stack([OWN, OWN[:, 0]]), y=labels)
    assert any(
        "permutation importance" in remark for remark in study.data_remarks.questioning
    ) == bool(importance)
