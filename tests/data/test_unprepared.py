"""Data with empty cells and columns of text: read where they are asked for, refused with the
mend elsewhere.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refused

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset

FRAME = pd.DataFrame(
    {
        "age": [61.0, None, 70, 52, 33, 44],
        "sex": ["w", "m", None, "m", "w", "m"],
        "alive": pd.array([True, None, False, True, True, False], dtype="boolean"),
        "y": ["ad", "cn"] * 3,
    }
)
LABELS = FRAME.y.tolist()
EXPECTED = np.array(
    [[61, 1, 1], [np.nan, 0, np.nan], [70, np.nan, 0], [52, 0, 1], [33, 1, 1], [44, 0, 0]]
)


def writers(folder):
    FRAME.to_csv(folder / "a.csv", index=False)
    FRAME.to_csv(folder / "b.tsv", sep="\t", index=False, na_rep="NA")
    FRAME.to_parquet(folder / "c.parquet")
    FRAME.astype({"sex": "category"}).to_feather(folder / "d.feather", compression="uncompressed")
    return sorted(folder.iterdir())


def test_every_format_and_frame_gives_the_same_cells(tmp_path):
    read = [load_dataset(path, unprepared=True) for path in writers(tmp_path)]
    read += [Dataset.from_frame(frame, unprepared=True) for frame in (FRAME, pl.from_pandas(FRAME))]
    for data in read:
        np.testing.assert_array_equal(data.X, EXPECTED)
        assert data.unprepared
        assert data.categories == {"sex": ("m", "w")}
        assert data.constant.tolist() == [False] * 3
    assert len({data.content_hash for data in read}) == 1
    save_dataset(read[0], tmp_path / "saved.parquet")
    back = load_dataset(tmp_path / "saved.parquet", unprepared=True)
    assert back.content_hash == read[0].content_hash
    assert back.categories == read[0].categories
    other = Dataset(
        EXPECTED, LABELS, Tensor((3,)), categories={"x1": ("male", "w")}, unprepared=True
    )
    same = Dataset(EXPECTED, LABELS, Tensor((3,)), categories={"x1": ("m", "w")}, unprepared=True)
    assert other.content_hash != same.content_hash


def test_complete_data_are_the_same_whether_asked_or_not():
    whole = FRAME.assign(age=[1.0, 2, 3, 4, 5, 6])[["age", "y"]]
    asked, plain = (Dataset.from_frame(whole, unprepared=flag) for flag in (True, False))
    assert not asked.unprepared
    assert asked.content_hash == plain.content_hash
    assert asked.filled is asked.X


def test_what_is_looked_at_has_no_gap():
    data = Dataset.from_frame(FRAME, unprepared=True)
    filled = data.filled
    assert filled[:, 0].tolist() == [61, 52, 70, 52, 33, 44]  # the median of the five
    assert filled[:, 1].tolist() == [1, 0, 2, 0, 1, 0]  # a category of its own
    joined = join_tasks({"a": data, "b": load_dataset("iris")})
    assert joined.categories == {"a/sex": ("m", "w")}
    assert joined.unprepared
    assert not np.isnan(joined.filled.blocks[0]).any()
    assert (
        data.parts()[""].T.tolist() == filled[:, [0, 2]].T.tolist()
    )  # the codes of text are no numbers
    assert {name: part.shape[1] for name, part in joined.parts().items()} == {"a": 2, "b": 4}


def test_without_being_asked_they_are_refused_with_the_mend(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.drop(columns="sex").to_csv("gap.csv", index=False)
    FRAME[["sex", "y"]].dropna().to_csv("text.csv", index=False)
    refused(
        "gap.csv", "2 values are missing", "'age' (1 of 6)", "dataset.prepare: [{impute: median}]"
    )
    refused("text.csv", "column 'sex' holds 'w' in row 0", "dataset.prepare: [encode]")
    with pytest.raises(DataError):
        Dataset(EXPECTED, LABELS, Tensor((3,)))
    infinite = np.where(np.isnan(EXPECTED), np.inf, EXPECTED)
    with pytest.raises(DataError):
        Dataset(infinite, LABELS, Tensor((3,)), unprepared=True)
    with pytest.raises(DataError, match=r"x1.*2 categories"):
        Dataset(EXPECTED + 1, LABELS, Tensor((3,)), categories={"x1": ("m", "w")}, unprepared=True)


def test_text_of_many_values_is_no_category(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.assign(name=list("abcdef")).to_csv("t.csv", index=False)
    refused("t.csv", "'name' holds 6 different texts in 6 cells", "cv.groups", unprepared=True)


def test_rows_without_a_label_are_left_out_and_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": [1, 2, 3, 4.0], "y": [0, None, 1, 0]})
    frame.to_csv("t.csv", index=False)
    refused("t.csv", "'y' has no value in row 1", "dataset.drop_unlabelled: true")
    for data in (
        load_dataset("t.csv", drop_unlabelled=True),
        Dataset.from_frame(frame, drop_unlabelled=True),
    ):
        assert data.X.ravel().tolist() == [1, 3, 4]
        assert data.y.tolist() == [0, 1, 0]
        assert data.notes == ("1 row has no label and is left out (row 1, counted from 0)",)
