"""Samples with cells that are no numbers are rows of a table, and estimators that take none are
refused.
"""

from __future__ import annotations

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
from raysel.base.cells import allows_nan, own_cells
from raysel.core.errors import DataError
from raysel.data.table_rows import TableRows

FRAME = pd.DataFrame({"sex": ["w", None, "m"], "alive": [True, False, True], "count": [1, 2, 3]})
ARRAY = np.array(
    [[1.5, "a", None], [np.nan, "b", 2], [1.5, np.nan, 2.5], [True, "a", None]], dtype=object
)
GAPS = np.array([[0.1, np.nan, np.nan], [np.nan, 2.0, np.nan], [0.1, -3.0, np.nan]])


def test_a_frame_of_polars_keeps_the_names_of_its_columns():
    table = pl.DataFrame({"age": [61.5, None, 2.0], "sex": ["w", None, "m"]})
    back = own_cells(make_pipeline(OneHotEncoder(), LinearSVC()), table).cells
    assert back.columns.tolist() == ["age", "sex"]
    assert back["sex"].tolist()[::2] == ["w", "m"]
    assert back.isna().to_numpy().tolist() == [[False, False], [True, True], [False, False]]


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
    assert own_cells(LinearSVC(), samples) is samples


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
        assert isinstance(own_cells(estimator, GAPS), TableRows)
        return
    with pytest.raises(
        DataError,
    ):
        own_cells(estimator, GAPS)


def test_text_is_not_for_methods_of_numbers():
    with pytest.raises(DataError, match="X holds text, and SMR takes numbers"):
        own_cells(SMR(shape=(1, 1)), FRAME[["sex"]].dropna())
    texts = own_cells(make_pipeline(OneHotEncoder(), LinearSVC()), ARRAY[:, 1:2][[0, 1]])
    assert texts.cells.tolist() == [["a"], ["b"]]
