"""Columns that are a quantity in disguise are remarked on, and honest columns are not."""

from __future__ import annotations

import numpy as np
import pytest
from planted_leaks import OF_QUANTITY, sorted_by_class, table, with_columns
from scipy.stats import chatterjeexi
from sklearn import datasets

from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset
from raysel.study.inspection.parts import parts
from raysel.study.inspection.quantity_columns import (
    _pair,
    _roughness,
    near_quantities,
)
from raysel.study.inspection.remarks import data_remarks

DIABETES = load_dataset("diabetes")
CLEAN = {
    "diabetes": lambda _: datasets.load_diabetes(return_X_y=True),
    "regression": lambda seed: datasets.make_regression(120, 30, noise=10, random_state=seed),
    "regression without noise": lambda seed: datasets.make_regression(120, 30, random_state=seed),
    "wide": lambda seed: datasets.make_regression(80, 300, noise=1, random_state=seed),
    "friedman1": lambda seed: datasets.make_friedman1(120, random_state=seed),
    "friedman2": lambda seed: datasets.make_friedman2(120, random_state=seed),
    "friedman3": lambda seed: datasets.make_friedman3(120, random_state=seed),
    "counts": lambda seed: _counts(np.random.default_rng(seed)),
}


def _counts(rng):
    """Small whole numbers, half of them 0, beside a quantity of such."""
    zeros = rng.random((200, 6)) < 0.5
    X = np.where(zeros, 0, rng.poisson(20, (200, 6)))
    return X, np.where(zeros[:, 0] & (rng.random(200) < 0.9), 0, X[:, 0] // 2 + rng.poisson(9, 200))


def of_quantity(data):
    return [remark for remark in data_remarks(data) if "unless the values were known" in remark]


@pytest.mark.parametrize("what", OF_QUANTITY)
def test_a_quantity_in_disguise_is_remarked_on_once(what):
    plant, words = OF_QUANTITY[what]
    plain = table(DIABETES.X, DIABETES.y, DIABETES.feature_names)
    (remark,) = of_quantity(plant(plain, np.random.default_rng(0)))
    assert words in remark
    assert len(remark.partition("\n")[0].split()) <= 25


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CLEAN)
def test_no_false_alarm_on_honest_tables_in_any_order(name, seed):
    X, y = CLEAN[name](seed)
    for order in (slice(None), np.argsort(y, kind="stable")):
        data = Dataset(X[order], y[order].astype(float), Tensor((X.shape[1],)), target="quantities")
        (part,) = parts(data)
        assert near_quantities(part, set()) == []


def test_two_disguises_beside_each_other_are_both_named():
    y = DIABETES.y
    planted = {"square": (y - y.mean()) ** 2, "group": np.digitize(y, [80, 150, 220])}
    said = " ".join(of_quantity(with_columns(DIABETES, planted)))
    assert "'square'" in said
    assert "'group'" in said


def test_the_quantity_of_several_that_a_column_tells_is_named():
    y = np.stack([DIABETES.y, np.random.default_rng(0).permutation(DIABETES.y)], axis=1)
    X = np.column_stack([DIABETES.X, y[:, 1] > np.median(y[:, 1])])
    data = Dataset(
        X, y, Tensor((X.shape[1],)), label_names=("sugar", "weight"), target="quantities"
    )
    (remark,) = of_quantity(data)
    assert "tells the quantity 'weight'" in remark


def test_roughness_is_one_less_chatterjees_xi():
    rng = np.random.default_rng(0)
    y, n = rng.normal(size=400), 400
    X = np.stack([y**2, np.round(y + rng.normal(size=n)), rng.normal(size=n), y > 0.3], axis=1)
    both = [
        max(chatterjeexi(x, y).statistic, chatterjeexi(y, x).statistic) for x in X.T.astype(float)
    ]
    found = _roughness(X.astype(float), np.arange(n), y)
    assert found == pytest.approx(1 - np.array(both), abs=0.12)  # of ties it takes the mean rank
    assert found[[0, 2]] == pytest.approx(1 - np.array(both)[[0, 2]], abs=0.01)


def test_the_pair_found_is_that_of_least_squares_over_all_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 7)) * [1, 10, 1e-3, 1, 1e5, 1, 1]
    y = X[:, 1] - 3e-5 * X[:, 4] + 0.1 * rng.normal(size=100)
    left = {}
    for i in range(7):
        for j in range(i):
            A = np.column_stack([X[:, [j, i]], np.ones(100)])
            left[j, i] = ((y - A @ np.linalg.lstsq(A, y)[0]) ** 2).sum()
    assert _pair(X, y) == min(left, key=left.get)
    assert _pair(X, y + 10 * rng.normal(size=100)) is None


def test_classes_are_not_taken_for_a_quantity():
    (part,) = parts(sorted_by_class(load_dataset("wine")))
    assert part.y.dtype.kind == "i"
    assert of_quantity(load_dataset("wine")) == []
