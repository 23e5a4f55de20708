"""Integers that floats cannot hold: as labels and groups they are compared as integers, of features it is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from raysel import init, tune
from raysel.config.schema import DatasetConfig
from raysel.data.dataset import Dataset
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.whole_numbers import BEYOND_FLOATS
from raysel.study.inputs import OwnData
from raysel.study.inspection.remarks import data_remarks

N = 24
X = np.random.default_rng(0).normal(size=(N, 2))
STARTS = [2**53, 2**63 - 100, 2**63 + 100, 2**64 - 100, 2**70, -(2**63)]

pytestmark = pytest.mark.usefixtures("here")


def from_table(y, groups, suffix):
    kind = object if suffix == ".csv" else np.array(y + groups).dtype
    columns = {"y": np.array(y, dtype=kind), "group": np.array(groups, dtype=kind)}
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})
    frame.to_csv("data.csv", index=False)
    if suffix == ".csv":
        return load_dataset("data.csv", groups="group")
    frame.to_parquet("data.parquet")
    return load_dataset("data.parquet", groups="group")


def from_labels(y, groups, suffix):
    np.save("X.npy", X)
    pd.DataFrame({"y": y, "group": groups}, dtype=object).to_csv(f"y{suffix}", index=False)
    return load_dataset("X.npy", labels=f"y{suffix}", groups="group")


def from_memory(y, groups, kind):
    if kind == "object":
        y, groups = (np.array(values, dtype=object) for values in (y, groups))
    return OwnData(X=X, y=y, groups=groups).dataset(DatasetConfig(path="unused"), None)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("read", "how"),
    [
        (from_table, ".csv"),
        (from_table, ".parquet"),
        (from_labels, ".csv"),
        (from_memory, "list"),
        (from_memory, "object"),
    ],
)
def test_labels_and_groups_are_compared_as_integers(read, how, start):
    if how == ".parquet" and start == 2**70:
        pytest.skip("NumPy has no such integers")
    y = [start + i % 2 for i in range(N)]
    groups = [start + i // 4 for i in range(N)]
    data = read(y, groups, how)
    for found, given in ((data.y, y), (data.groups, groups)):
        assert [int(value) for value in found] == given


@pytest.mark.parametrize("start", STARTS[1:4])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_features_that_floats_round_are_named(start, suffix):
    ids = [start + i for i in range(N)]
    frame = pd.DataFrame({"a": X[:, 0], "serial": ids, "small": range(N), "y": [0, 1] * (N // 2)})
    write = frame.to_csv if suffix == ".csv" else frame.to_parquet
    write(f"data{suffix}", index=False)
    data = load_dataset(f"data{suffix}")
    (said,) = [remark for remark in data_remarks(data) if BEYOND_FLOATS in remark]
    assert said.startswith("Column 'serial' holds")
    assert len(said.split()) <= 25
    save_dataset(data, "kept.parquet")
    assert said in data_remarks(load_dataset("kept.parquet"))


def test_an_array_of_such_integers_is_named_and_others_are_not():
    y = [0, 1] * (N // 2)
    large = np.array([[2**53 + 1 + i, i] for i in range(N)])
    data = OwnData(X=large, y=y).dataset(DatasetConfig(path="unused"), None)
    assert any(BEYOND_FLOATS in note for note in data.notes)
    for held in (large - 2**53, large.astype(np.float64), large[:, 1:] * 2**40):
        data = OwnData(X=held, y=y).dataset(DatasetConfig(path="unused"), None)
        assert not any(BEYOND_FLOATS in note for note in data.notes)
    frame = pd.DataFrame({"area": X[:, 0] * 1e20, "y": y})
    assert not Dataset.from_frame(frame, "y").notes


def test_large_quantities_remain_numbers():
    values = [10**20 * (i + 1) for i in range(N)]
    pd.DataFrame({"a": X[:, 0], "y": values}, dtype=object).to_csv("data.csv", index=False)
    data = load_dataset("data.csv")
    assert data.is_regression
    np.testing.assert_array_equal(data.y, np.array(values, dtype=np.float64))


def test_each_command_says_once_which_features_floats_round(capsys):
    ids = [2**62 + 3 * i**2 + 1 for i in range(2 * N)]
    a = np.random.default_rng(0).normal(size=2 * N)
    frame = pd.DataFrame({"a": a, "b": a**2, "count": ids, "label": ["u", "v"] * N})
    frame.to_csv("data.csv", index=False)
    assert init.main(["data.csv", "--output", "study.yaml"]) == 0
    assert capsys.readouterr().out.count("'count' holds whole numbers") == 1
    assert tune.main(["study.yaml", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("'count' holds whole numbers") == 1
