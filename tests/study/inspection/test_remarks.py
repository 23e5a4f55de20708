"""What is said of a data set is there, counted right, and named with its remedy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_leaks import NEARLY, REMARKED, subjects, table, with_columns
from sklearn.datasets import load_digits

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Matrix, Tensor
from raysel.data.loading import load_dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.leaks import inspect
from raysel.study.inspection.parts import equal_rows, near_rows
from raysel.study.inspection.remarks import constant_remarks, data_remarks

WINE = load_dataset("wine")


def the(remarks: list[str], words: str) -> str:
    (found,) = [remark for remark in remarks if words in remark]
    return found


def test_what_may_leak_is_remarked_on_one_line():
    for plant, words in REMARKED.values():
        remarks = data_remarks(plant(table(WINE.X, WINE.y), np.random.default_rng(0)))
        assert "cv.groups" in the(remarks, words)
        for remark in remarks:  # one sentence, and at most one line of figures
            first, *figures = remark.split("\n")
            assert len(first.split()) <= 25
            assert first.endswith(".")
            assert not re.search(r"\. [A-Z]", first)
            assert len(figures) <= 1


@pytest.mark.parametrize(
    "name",
    [
        "wine",
        pytest.param("digits", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("what", NEARLY)
def test_what_nearly_tells_the_label_is_remarked_on_and_nothing_else_is(name, what):
    data = load_dataset(name)
    plant, words = NEARLY[what]
    before = data_remarks(table(data.X, data.y))
    remarks = data_remarks(plant(table(data.X, data.y), np.random.default_rng(0)))
    the(remarks, words)
    assert len(
        [remark for remark in remarks if "tell" in remark or "order of the rows" in remark]
    ) == 1 + sum("tells nothing of the label" in remark for remark in before)


def test_samples_that_are_left_out_because_their_label_is_missing_are_counted(tmp_path):
    y = np.where(np.arange(90) % 3 == 0, np.nan, np.arange(90) % 2)
    np.savez(tmp_path / "some.npz", X=np.random.default_rng(0).normal(size=(90, 5)), y=y)
    assert data_remarks(load_dataset(tmp_path / "some.npz"))[0].startswith(
        "30 of 90 samples are left out"
    )


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from([-0.0, 0.0, 1.0]), st.integers(0, 2)), min_size=1, max_size=12
    )
)
def test_equal_rows_are_those_that_compare_equal(rows):
    X = np.array(rows, dtype=float)
    ids = equal_rows(X)
    assert np.array_equal(ids[:, None] == ids, (X[:, None] == X).all(axis=2))


def test_rows_of_small_whole_numbers_are_told_apart_and_numbered_in_their_order():
    cells = np.indices((60, 60, 4)).reshape(3, -1).T.astype(float)
    assert np.array_equal(equal_rows(cells), np.arange(len(cells)))
    twice = np.concatenate([cells[::-1], cells])
    ids = np.arange(len(cells))
    assert np.array_equal(equal_rows(twice), np.concatenate([ids, ids[::-1]]))


def test_rows_with_the_same_key_are_told_apart(monkeypatch):
    drawn = []

    def keys_of_first_column(X, rng):
        drawn.append(rng.integers(2**63))
        return X[:, 0 : len(drawn)] @ np.array([1.0, 8.0])[: len(drawn)]

    monkeypatch.setattr("raysel.study.inspection.parts._row_keys", keys_of_first_column)
    X = np.indices((3, 4)).reshape(2, -1).T.astype(float)
    assert np.array_equal(equal_rows(X), np.arange(12))
    assert len(set(drawn)) == 2


def test_test_samples_with_a_copy_in_training_are_counted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    X[50:] = X[:10]
    y[50] = 1 - y[0]
    data = table(X, y)
    plan = NestedPlan.make(y, outer=3, inner=2, repeats=2, groups=None, seed=0)
    with_copy, otherwise = set(), set()
    for fold in plan.outer:
        for i in fold.test:
            copies = [j for j in fold.train if np.array_equal(X[i], X[j])]
            if copies:
                with_copy.add(i)
                otherwise |= {i} if all(y[j] != y[i] for j in copies) else set()
    said = the(data_remarks(data, plan), "equal to another")
    assert said.startswith(
        "20 of 60 samples are equal to another in all features, some of them with different labels"
    )
    assert f"{len(with_copy)} test samples have one in their training set" in said
    assert f"{len(otherwise)} of them with another label" in said
    groups = np.concatenate([np.arange(50), np.arange(10)])
    whole = NestedPlan.make(y, outer=3, inner=2, repeats=1, groups=groups, seed=0)
    grouped = Dataset(X, y, Tensor((4,)), groups=groups)
    assert the(data_remarks(grouped, whole), "equal").endswith(
        "; no test sample has one in its training set."
    )


def test_equal_rows_of_few_columns_with_few_values_are_no_copies():
    rng = np.random.default_rng(0)
    data = table(rng.integers(3, size=(200, 4)), np.arange(200) % 2)
    assert data_remarks(data) == []


@pytest.mark.parametrize(
    ("share", "noise"), [(0.02, 0.01), (0.5, 0.01), (1.0, 0.01), (0.5, 0.1), (1.0, 0.1)]
)
def test_twins_are_found_however_many_they_are(share, noise):
    rng = np.random.default_rng(0)
    rows = rng.choice(WINE.n_samples, round(share * WINE.n_samples), replace=False)
    twins = WINE.X[rows] + noise * WINE.X.std(axis=0) * rng.normal(
        size=(len(rows), WINE.n_features)
    )
    X = np.vstack([WINE.X, twins])
    found = set(map(tuple, near_rows(X, equal_rows(X), scale=True).pairs.tolist()))
    true = {(row, WINE.n_samples + i) for i, row in enumerate(rows.tolist())}
    assert len(found & true) >= 0.9 * len(true)
    assert len(found - true) <= 0.02 * len(X)


@pytest.mark.parametrize("n_features", [10, 400])
def test_near_pairs_are_found_by_brute_force_too(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, n_features)) * rng.uniform(1, 50, size=n_features)
    X[80:] = X[:10] + 1e-5
    found = near_rows(X, equal_rows(X), scale=True)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=2))
    expected = np.argwhere(np.triu(distances < 1e-3, 1))
    assert found.pairs.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "bound",
    [
        {"MOST_QUERIES": 60},
        {"_MOST_DISTANCES": 60 * 120, "_FEWEST_QUERIES": 10},
        {"_MOST_DISTANCES": 120, "_FEWEST_QUERIES": 60},
    ],
)
def test_more_samples_than_are_searched_are_drawn_from(monkeypatch, bound):
    for name, value in bound.items():
        monkeypatch.setattr(f"raysel.study.inspection.parts.{name}", value)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    X[60:] = X[:60] + 1e-7 * rng.normal(size=(60, 8))
    data = table(X, np.arange(120) % 2)
    (inspected,) = inspect(data)
    assert inspected.near.n_searched == 60
    assert inspect(data)[0] is inspected  # once for a data set
    assert "among 60 samples that were searched" in the(data_remarks(data), "nearly equal")


def test_constant_columns_are_counted_in_each_task():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    first, second = rng.normal(size=(30, 6)), rng.normal(size=(30, 3))
    first[:, :5], second[:, 1] = 1.0, 2.0
    remarks = constant_remarks(join_tasks({"one": table(first, y), "two": table(second, y)}))
    assert list(remarks) == [
        "Task one: 5 of 6 columns are constant, which tells nothing of the label, e.g. c0, c1, c2.",
        "Task two: 1 of 3 columns is constant, which tells nothing of the label: c1.",
    ]


def test_columns_are_named_with_their_remedies():
    rng, n = np.random.default_rng(0), WINE.n_samples
    order, wine = np.argsort(WINE.y, kind="stable"), table(WINE.X, WINE.y)
    ids = {"ID": rng.permutation(10**6)[:n], "time": np.cumsum(rng.exponential(size=n))}
    remarks = data_remarks(with_columns(table(WINE.X[order], WINE.y[order]), ids))
    assert "dataset.drop" in the(remarks, "Column 'ID' has another whole number in each row")
    assert "dataset.drop" in the(remarks, "Column 'time' has values in the order of the rows")
    assert len(remarks) == 2
    groups = {
        name: rng.integers(20, size=n)
        for name in ("patient", "patient_age", "SubjectNr", "person_w")
    }
    data = with_columns(wine, groups)
    assert "2 columns (patient, SubjectNr) have few samples a value" in the(
        data_remarks(data), "cv.groups"
    )
    own = Dataset(
        data.X, data.y, data.layout, groups=groups["patient"], feature_names=data.feature_names
    )
    assert data_remarks(own) == []
    alone = Dataset(WINE.X, WINE.y, WINE.layout, groups=np.arange(n))
    assert "cv.groups" in the(data_remarks(alone), "Each sample is a group of its own")
    in_class = data_remarks(with_columns(wine, {"super": WINE.y // 2}))
    assert the(in_class, "one value in each class").startswith("Column 'super'")
    kept = data_remarks(with_columns(wine, {"s": subjects(WINE.y, 30)}))
    assert "dataset.keep" in the(kept, "Column 's' determines the label")


def test_a_column_of_numbers_that_a_few_cells_make_text_is_named_with_them():
    weights = [*map(str, range(19))] * 3 + ["?kg", "<5", None]
    frame = pd.DataFrame({"weight": weights, "town": [*"abcd"] * 15, "y": np.arange(60) % 2})
    remark = the(data_remarks(Dataset.from_frame(frame, "y", unprepared=True)), "is read as text")
    assert remark.startswith(
        "Column 'weight' is read as text of 21 values because of '<5', '?kg' in 2 of 60 cells"
    )
    frame["weight"] = [*map(str, range(58)), "?kg", "<5"]
    with pytest.raises(
        DataError, match=r"'weight' holds numbers, but '\?kg', '<5' in 2 of 60 cells: set these"
    ):
        Dataset.from_frame(frame, "y", unprepared=True)


def test_pixels_of_two_digits_are_neither_subjects_nor_in_the_order_of_the_file():
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == label)[:20] for label in (1, 7)])
    for grey in (X[rows], X[rows] > 7):
        for layout in (Tensor((64,)), Matrix(8, 8)):
            remarks = data_remarks(Dataset(grey.astype(float), y[rows], layout))
            assert all(re.search("separate|constant|in each class", remark) for remark in remarks)
