"""Cells that are no numbers come back as they were, and estimators that take none are refused."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from raysel import SMR
from raysel.base.cells import Cells, allows_nan, own_cells
from raysel.core.errors import DataError

FRAME = pd.DataFrame(
    {
        "age": [61.5, np.nan, 1e300, -0.0, 2.0**60],
        "sex": ["w", None, "m", "w", ""],
        "stage": pd.Categorical(
            ["ii", "i", None, "i", "ii"], categories=["i", "ii", "iii"], ordered=True
        ),
        "visits": pd.array([3, None, 2**60 + 1, 0, 3], dtype="Int64"),
        "day": pd.to_datetime(["2024-05-01", None, "2023-01-31", "2024-05-01", "2024-05-02"]),
        "alive": [True, False, True, True, False],
        "count": np.array([1, 2, 3, 4, 5], dtype=np.int32),
        "mixed": [1, "1", 1.5, np.nan, None],
    }
)
ARRAY = np.array(
    [[1.5, "a", None], [np.nan, "b", 2], [1.5, np.nan, 2.5], [True, "a", None]], dtype=object
)
GAPS = np.array([[0.1, np.nan, np.nan], [np.nan, 2.0, np.nan], [0.1, -3.0, np.nan]])


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [4, 1], [2], []], ids=str)
def test_the_rows_of_a_frame_come_back(rows):
    cells, numbers = Cells.of(FRAME)
    assert np.isfinite(numbers).all()
    back = cells.restored(numbers[rows])
    pd.testing.assert_frame_equal(back, FRAME.iloc[rows].reset_index(drop=True))
    assert [type(cell) for cell in back["mixed"]] == [type(FRAME["mixed"][row]) for row in rows]
    assert copy.deepcopy(cells) is cells


def test_integers_that_floats_cannot_hold_come_back():
    ids = np.array([[2**60, 1], [2**60 + 1, 2], [2**60, 3]])
    for samples in (ids, ids.astype(np.uint64), pd.DataFrame(ids)):
        cells, numbers = Cells.of(samples)
        np.testing.assert_array_equal(np.asarray(cells.restored(numbers)), np.asarray(samples))


def calls_of(function, *args):
    """Number of calls of Python functions and built-in ones that a function takes."""
    counted = 0

    def count(_frame, event, _arg):
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_columns_of_one_type_are_restored_together_however_many_they_are(gaps):
    counts = []
    for n_columns in (30, 3000):
        rng = np.random.default_rng(0)
        values = rng.standard_normal((6, n_columns))
        values[rng.random(values.shape) < gaps] = np.nan
        frame = pd.DataFrame(values).assign(sex=list("wmwmwm"), age=np.arange(6))
        estimator = make_pipeline(ColumnTransformer([]), LinearSVC())
        cells, numbers = own_cells(estimator, frame)
        pd.testing.assert_frame_equal(cells.restored(numbers), frame)
        counts.append(calls_of(cells.restored, numbers))
    assert counts[1] < 1.5 * counts[0]


def test_columns_of_numbers_are_looked_at_by_their_values_and_the_medians_of_these():
    for samples, columns in ((FRAME, ["age", "visits"]), (pd.DataFrame(GAPS), [0, 1, 2])):
        cells, numbers = Cells.of(samples)
        filled = pd.DataFrame(cells.filled(numbers), columns=samples.columns)
        values = samples[columns].astype(np.float64).astype("float64")
        expected = values.fillna(values.median()).fillna(0.0)
        np.testing.assert_array_equal(filled[columns], expected)
    others = ["sex", "stage", "day", "alive", "count", "mixed"]
    cells, numbers = Cells.of(FRAME)
    kept = pd.DataFrame(numbers, columns=FRAME.columns)[others]
    np.testing.assert_array_equal(
        pd.DataFrame(cells.filled(numbers), columns=FRAME.columns)[others], kept
    )
    with_text, numbers = Cells.of(ARRAY)
    np.testing.assert_array_equal(with_text.filled(numbers)[:, 2], [2.25, 2.0, 2.5, 2.25])
    np.testing.assert_array_equal(with_text.filled(numbers)[:, 1], numbers[:, 1])


def test_a_frame_of_polars_keeps_the_names_of_its_columns():
    table = pl.DataFrame({"age": [61.5, None, 2.0], "sex": ["w", None, "m"]})
    cells, numbers = own_cells(make_pipeline(OneHotEncoder(), LinearSVC()), table)
    back = cells.restored(numbers)
    assert back.columns.tolist() == ["age", "sex"]
    assert back["sex"].tolist()[::2] == ["w", "m"]
    assert back.isna().to_numpy().tolist() == [[False, False], [True, True], [False, False]]


@pytest.mark.parametrize(
    "array", [ARRAY, GAPS, GAPS.astype(np.float32)], ids=["objects", "numbers", "single"]
)
def test_the_rows_of_an_array_come_back(array):
    cells, numbers = Cells.of(array)
    assert np.isfinite(numbers).all()
    back = cells.restored(numbers[::-1])[::-1]
    assert back.dtype == array.dtype
    for got, given in zip(back.flat, array.flat, strict=True):
        assert type(got) is type(given)
        assert (
            got == given or (got is None and given is None) or (np.isnan(got) and np.isnan(given))
        )


def test_numbers_keep_their_order_with_the_empty_cells_last():
    _, numbers = Cells.of(np.array([[3.0], [np.nan], [-1.0], [3.0], [2.0]]))
    assert numbers.ravel().tolist() == [2, 3, 0, 2, 1]


@pytest.mark.parametrize(
    "samples",
    [
        np.eye(3),
        np.eye(3).tolist(),
        np.eye(3, dtype=object),
        csr_array(np.eye(3)),
        FRAME[["alive", "count"]],
        np.ones(3),
    ],
    ids=["array", "list", "objects", "sparse", "frame", "one axis"],
)
def test_samples_of_numbers_stay_as_they_are(samples):
    cells, same = own_cells(LinearSVC(), samples)
    assert cells is None
    assert same is samples


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LinearSVC(), False),
        (DecisionTreeClassifier(), True),
        (make_pipeline(SimpleImputer(), LinearSVC()), True),
        (
            make_pipeline(
                "passthrough", make_pipeline(SimpleImputer(), StandardScaler()), LinearSVC()
            ),
            True,
        ),
        (make_pipeline(ColumnTransformer([("all", SimpleImputer(), [0])]), LinearSVC()), True),
        (make_pipeline(SimpleImputer(missing_values=-1), LinearSVC()), False),
        (SMR(shape=(1, 3)), False),
    ],
)
def test_empty_cells_are_for_estimators_that_take_them(estimator, expected):
    assert allows_nan(estimator) == expected
    if expected:
        assert own_cells(estimator, GAPS)[0] is not None
        return
    with pytest.raises(
        DataError,
        match=r"X holds NaN.*3 of 3 columns, the first is 0.* takes none: fill them first",
    ):
        own_cells(estimator, GAPS)


def test_text_is_not_for_methods_of_numbers():
    with pytest.raises(DataError, match="X holds text, and SMR takes numbers"):
        own_cells(SMR(shape=(1, 1)), FRAME[["sex"]].dropna())
    assert (
        own_cells(make_pipeline(OneHotEncoder(), LinearSVC()), ARRAY[:, 1:2][[0, 1]])[0] is not None
    )
