"""Data sets of data frames of pandas, polars and PyArrow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import refusals

from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix
from raysel.data.loading import load_dataset

FRAME = pd.DataFrame(
    {
        "a": [1.5, 2, 3, 4],
        "b": pd.array([1, 2, 3, 4], dtype="Int64"),
        "who": ["u", "u", "v", "v"],
        "diagnosis": pd.Categorical(["ad", "cn", "ad", "cn"]),
    }
)
X = [[1.5, 1], [2, 2], [3, 3], [4, 4]]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "polars text": (
        lambda frame: pl.from_pandas(frame).with_columns(pl.col("diagnosis").cast(pl.String))
    ),
    "arrow": pa.Table.from_pandas,
    "stream": lambda frame: Stream(pl.from_pandas(frame)),
}


class Stream:
    """A frame of some other library."""

    def __init__(self, frame):
        self.__arrow_c_stream__ = frame.__arrow_c_stream__


def refused(frame, *culprits, **options):
    refusals.refused(frame, *culprits, read=Dataset.from_frame, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_gives_the_same_data_set(kind):
    frame = KINDS[kind](FRAME)
    result = Dataset.from_frame(frame, "diagnosis", groups="who", name="study")
    np.testing.assert_array_equal(result.X, X)
    assert result.feature_names == ("a", "b")
    assert result.y.tolist() == ["ad", "cn", "ad", "cn"]
    assert result.groups.tolist() == ["u", "u", "v", "v"]
    assert (result.label, result.name, result.notes) == ("diagnosis", "study", ())
    assert Dataset.from_frame(frame, "diagnosis", drop=["who"]).groups is None
    refused(frame, "no column y, label, target or class", "'diagnosis' or 'who'")
    refused(frame, "column 'who' holds 'u' in row 0", "drop", label="diagnosis")
    refused(frame, "did you mean `diagnosis`?", label="Diagnose")


@pytest.mark.parametrize("index", [["who"], ["who", "a"], None])
@pytest.mark.parametrize("stored", [False, True])
def test_an_index_of_pandas_is_no_feature_but_may_be_the_groups(index, stored, tmp_path):
    frame = FRAME.iloc[[2, 0, 1]].drop(columns="who") if index is None else FRAME.set_index(index)

    def read(**options):
        if not stored:
            return Dataset.from_frame(frame, "diagnosis", **options)
        frame.to_parquet(tmp_path / "t.parquet")
        return load_dataset(tmp_path / "t.parquet", label="diagnosis", **options)

    result = read()
    assert list(result.feature_names) == [name for name in ("a", "b") if name not in (index or ())]
    assert any("index" in note for note in result.notes)
    if index is not None:
        assert read(groups="who").groups.tolist() == FRAME.who.tolist()


def test_labels_and_groups_apart():
    features = FRAME[["a", "b"]]
    for y in (
        FRAME.diagnosis,
        FRAME.diagnosis.tolist(),
        FRAME.diagnosis.to_numpy(),
        pl.Series("diagnosis", ["ad", "cn"] * 2),
    ):
        result = Dataset.from_frame(features, y=y, groups=FRAME.who)
        assert result.y.tolist() == ["ad", "cn", "ad", "cn"]
        assert result.groups.tolist() == ["u", "u", "v", "v"]
        np.testing.assert_array_equal(result.X, X)
    assert Dataset.from_frame(features, y=FRAME.b).y.dtype == np.int64
    several = pd.DataFrame({"sky": [0, 1, 1, 0], "cow": [1, 1, 0, 0]})
    assert Dataset.from_frame(features, y=several).label_names == ("sky", "cow")
    refused(features, "different indices", "y.to_numpy()", y=FRAME.diagnosis[::-1])
    refused(features, "no value in row 1", y=["ad", None, "ad", "cn"])
    assert Dataset.from_frame(features, y=pd.array([1, 2, None, 1], dtype="Int64")).y.tolist() == [
        1,
        2,
        1,
    ]
    refused(features, "4 rows but y has 3", y=[0, 1, 0])
    refused(FRAME, "both given", y=[0, 1, 0, 1], label="diagnosis")
    refused(features, "label is the name of a column, not Series", label=FRAME.diagnosis)


def test_columns_of_numbers_are_named_by_numbers():
    frame = pd.DataFrame(np.arange(20).reshape(4, 5))
    result = Dataset.from_frame(frame, label=4, groups=3, drop=[0])
    assert (result.feature_names, result.label) == (("1", "2"), "4")
    np.testing.assert_array_equal(result.groups, frame[3])


def test_options_of_load_dataset_hold_for_frames():
    frame = pd.DataFrame(np.arange(24.0).reshape(6, 4)).assign(y=list("abcabc"))
    result = Dataset.from_frame(frame, shape=[2, 2], order="F", exclude_classes=["c"])
    assert result.layout == Matrix(2, 2)
    assert result.feature_names == ("0", "2", "1", "3")
    assert result.classes.tolist() == ["a", "b"]


def column(values):
    return pd.DataFrame({"a": values, "y": [0, 1, 0]})


@pytest.mark.parametrize(
    ("frame", "culprits"),
    [
        (column([1, "x", 3.0]), ["column a"]),
        (column(["x", "y", "z"]), ["column 'a' holds 'x' in row 0"]),
        (column([1.0, None, 3.0]), ["1 value is missing", "row 1", "'a' (1 of 3)"]),
        (column(pd.to_datetime(["2020", "2021", "2022"])), ["column 'a'", "2020-01-01"]),
        (column([1 + 2j, 1, 1]), ["column a"]),
        (column([[1], [2], [3]]), ["column 'a'"]),
        (column(pd.arrays.SparseArray([0, 0, 1])), ["column 'a' is sparse"]),
        (column([None, None, None]), ["3 values are missing"]),
        (pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "y"]), ["'a', 'a'"]),
        (pd.DataFrame({"y": [0, 1]}), ["empty"]),
        (pd.DataFrame(), ["no column"]),
        (np.eye(3), ["ndarray", "Dataset(X, y, layout)"]),
        (pl.from_pandas(FRAME).lazy(), ["LazyFrame"]),
        (pl.Series([1.0, 2.0]), ["cannot be used"]),
        (
            pd.DataFrame({"a": [1.0, 2], "y": pd.array([0, None], dtype="Int64")}),
            ["'y' has no value in row 1"],
        ),
    ],
)
def test_frames_and_columns_that_cannot_be_used(frame, culprits):
    refused(frame, *culprits)


@pytest.mark.parametrize(
    "frame", [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME), np.eye(3)]
)
def test_load_dataset_names_what_to_call(frame):
    call = (
        "not ndarray; call Dataset(X, y, "
        if isinstance(frame, np.ndarray)
        else "call Dataset.from_frame(frame, "
    )
    refusals.refused(frame, call)


def test_files_of_polars(tmp_path):
    frame = pl.from_pandas(FRAME.drop(columns="who"))
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_ipc(tmp_path / "p.arrow")
    frame.write_csv(tmp_path / "p.csv", separator="\t")
    hashes = {load_dataset(path, label="diagnosis").content_hash for path in tmp_path.iterdir()}
    assert hashes == {Dataset.from_frame(frame, "diagnosis").content_hash}
