"""The Dataset value: what it refuses, what it keeps, and its hash."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Tensor

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


def make(**changes):
    return Dataset(**{"X": X, "y": Y, "layout": Tensor((3,)), "name": "toy"} | changes)


def with_cell(row, column, value):
    changed = X.copy()
    changed[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("changes", "culprits"),
    [
        ({"X": with_cell(2, 1, np.nan)}, ["1 values", "NaN", "row 2", "column 1", "'x1'"]),
        ({"X": with_cell(0, 2, -np.inf)}, ["infinite", "row 0", "column 2"]),
        ({"X": np.full((4, 3), np.nan)}, ["12 values", "row 0", "column 0"]),
        ({"X": X.reshape(4, 3, 1)}, ["(4, 3, 1)"]),
        ({"X": X[0]}, ["(3,)"]),
        ({"X": X[:0], "y": Y[:0]}, ["empty"]),
        ({"X": X[:, :0]}, ["empty"]),
        ({"X": X.astype(object)}, ["object"]),
        ({"X": X.astype(str)}, ["dtype <U"]),
        ({"X": X + 1j}, ["complex"]),
        ({"y": Y[:3]}, ["4 rows", "y has 3"]),
        ({"y": np.array(["a", 1, None, 2], dtype=object)}, ["y has dtype object"]),
        ({"y": [0.5, 1, 0, 1]}, ["0.5", "whole numbers or text"]),
        ({"y": [np.nan, 1, 0, 1]}, ["nan"]),
        ({"y": np.uint64([2**64 - 1, 0, 1, 2])}, [str(2**64 - 1)]),
        ({"y": np.ones(4)}, ["one class only", "1"]),
        ({"y": 3}, ["y has shape ()"]),
        ({"y": Y[:, None]}, ["(4, 1)"]),
        ({"y": [[0, 1], [1, 0], [0, 2], [1, 1]]}, ["0/1 indicator"]),
        ({"y": [[0, 1], [1, 1], [0, 1], [1, 1]]}, ["same value of label 1", "exclude_labels"]),
        ({"groups": [1, 2, 3]}, ["groups has 3"]),
        ({"groups": np.ones((4, 2))}, ["groups has shape (4, 2)"]),
        ({"layout": Matrix(2, 2)}, ["3 columns", "4 features"]),
        ({"feature_names": ("a", "b")}, ["2 feature names", "3 columns"]),
        ({"feature_names": ("a", "b", "a")}, ["2 features are called 'a'"]),
    ],
)
def test_refuses_what_cannot_be_used(changes, culprits):
    with pytest.raises(DataError, match="data set 'toy'") as caught:
        make(**changes)
    for culprit in culprits:
        assert culprit in str(caught.value)


def test_is_immutable_and_apart_from_the_array_it_was_given():
    mine, labels = X.copy(), Y.copy()
    data = make(X=mine, y=labels)
    mine[0, 0], labels[0] = 99, 1
    assert data.X[0, 0] == 0
    assert data.y[0] == 0
    for array in (data.X, data.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert mine.flags.writeable


def test_does_not_copy_what_nobody_can_write():
    mine = X.copy()
    mine.flags.writeable = False
    assert np.shares_memory(make(X=mine).X, mine)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
def test_keeps_numbers_as_contiguous_float64(dtype, order):
    given_array = np.asarray(X % 2, dtype=dtype, order=order)
    data = make(X=given_array)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, X % 2)


def test_labels_of_any_number_type_are_whole_numbers_and_text_stays_text():
    hashes = {make(y=Y.astype(kind)).content_hash for kind in (np.uint8, np.int32, np.float64, np.bool_)}
    assert hashes == {make().content_hash}
    data = make(y=["b", "a", "c", "a"])
    assert data.classes.tolist() == ["a", "b", "c"]
    assert not data.is_multilabel


def test_admits_an_indicator():
    data = make(y=[[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
    assert data.is_multilabel
    assert data.classes.tolist() == ["0", "1", "2"]


def test_hash_tells_everything_apart_but_the_name():
    one = make(groups=[0, 0, 1, 1])
    assert make(groups=[0, 0, 1, 1], name="other").content_hash == one.content_hash
    others = [
        make(),
        make(groups=[0, 1, 1, 1]),
        make(groups=["0", "0", "1", "1"]),
        make(groups=[0, 0, 1, 1], X=with_cell(3, 2, np.nextafter(11.0, 12))),
        make(groups=[0, 0, 1, 1], y=[0, 1, 1, 0]),
        make(groups=[0, 0, 1, 1], y=["0", "1", "0", "1"]),
        make(groups=[0, 0, 1, 1], layout=Matrix(3, 1), feature_names=one.feature_names),
        make(groups=[0, 0, 1, 1], feature_names=("a", "b", "c")),
    ]
    assert len({one.content_hash, *(other.content_hash for other in others)}) == len(others) + 1


def test_hash_is_the_same_in_another_process():
    code = (
        "import numpy as np; from raysel.data.dataset import Dataset; from raysel.data.layouts import Tensor; "
        "print(Dataset(np.arange(12.0).reshape(4, 3), list('abab'), Tensor((3,))).content_hash)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {make(y=list("abab")).content_hash}
