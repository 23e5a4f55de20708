"""Integers that floats cannot hold: as labels and groups they are compared as integers, of
features it is said.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.feather import write_feather

from raysel import tune
from raysel.cli.main import main as run_command
from raysel.config.schema import DatasetConfig
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.targets import Quantities
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


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", [np.uint64, object])
def test_features_in_their_file_are_named_as_those_in_memory(suffix, kind, monkeypatch):
    """The first rows that are read hold none, and others another column each."""
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 5 * 5)
    large = [Decimal(2**63 + 2 * i) if kind is object else 2**63 + 2 * i for i in range(N)]
    first = pd.Series([0] * 8 + large[8:16] + [0] * 8, dtype=kind)
    second = pd.Series([0] * 16 + large[16:], dtype=kind)
    columns = {"second": second, "first": first, "y": [0, 1] * (N // 2), "a": X[:, 0]}
    table = pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)
    write = pq.write_table if suffix == ".parquet" else write_feather
    write(table, f"data{suffix}")
    stored, data = (load_dataset(f"data{suffix}", in_memory=kept) for kept in (False, True))
    assert stored.notes == data.notes
    assert "columns 'second', 'first' hold" in stored.notes[-1]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tensors_in_their_file_are_named_as_those_in_memory(suffix, monkeypatch):
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 5 * 5)
    values = np.zeros((N, 2, 2), dtype=np.int64)
    values[-1] = 2**62 + 1
    cells = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    table = pa.table({"X": cells, "y": [0, 1] * (N // 2)})
    write = pq.write_table if suffix == ".parquet" else write_feather
    write(table, f"data{suffix}")
    stored, data = (load_dataset(f"data{suffix}", in_memory=kept) for kept in (False, True))
    assert stored.notes == data.notes
    assert data.notes[-1].startswith("column 'X' holds whole numbers")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("start", STARTS)
def test_labels_and_groups_of_a_file_are_those_in_memory(suffix, start, monkeypatch):
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 5 * 5)
    values = [Decimal(start + i % 12) for i in range(N)]
    columns = {"y": values, "group": values[::-1], "a": X[:, 0]}
    table = pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)
    write = pq.write_table if suffix == ".parquet" else write_feather
    write(table, f"data{suffix}")
    stored, data = (
        load_dataset(f"data{suffix}", groups="group", in_memory=kept, task="classification")
        for kept in (False, True)
    )
    np.testing.assert_array_equal(stored.y, data.y)
    assert [int(group) for group in stored.groups] == [int(value) for value in values[::-1]]


def test_modalities_and_confounds_beside_floats_are_named():
    y, large = np.arange(N) % 2, 2**60 + 3 * np.arange(2 * N).reshape(N, 2)
    for arrays in ({"a": X, "b": large}, {"b": large.astype(np.uint64), "a": large}):
        np.savez("data.npz", **arrays, y=y)
        data = load_dataset("data.npz")
        assert "'b[0]', 'b[1]'" in " ".join(data.notes)
        kept = load_dataset("data.npz", only=["b"])
        assert "columns 'b[0]', 'b[1]' hold" in kept.notes[-1]
    np.savez("data.npz", a=X, b=large, y=y)
    assert BEYOND_FLOATS not in " ".join(load_dataset("data.npz", only=["a"]).notes)
    np.savez("data.npz", X=large, age=X[:, 0], y=y)
    assert BEYOND_FLOATS in load_dataset("data.npz", confounds=["age"]).notes[-1]


@pytest.mark.parametrize("kind", [np.uint64, np.int64])
def test_a_quantity_that_floats_make_constant_is_refused_for_what_it_is(kind):
    start = 2**64 - 100 if kind is np.uint64 else 2**63 - 100
    ids = np.array([start + i for i in range(N)], dtype=kind)[::-1]
    with pytest.raises(
        DataError, match=f"the label y holds {BEYOND_FLOATS}: subtract the least value"
    ):
        Dataset(X, ids, Tensor((2,)), label="y")
    spread = np.array([start - 2**60 + 3 * 2**50 * i + 1 for i in range(N)], dtype=kind)
    data = Dataset(X, spread[::-1], Tensor((2,)), label="y")
    assert data.target == Quantities()
    assert [remark for remark in data_remarks(data) if BEYOND_FLOATS in remark]


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
    assert data.target == Quantities()
    np.testing.assert_array_equal(data.y, np.array(values, dtype=np.float64))


def test_each_command_says_once_which_features_floats_round(capsys):
    ids = [2**62 + 3 * i**2 + 1 for i in range(2 * N)]
    a = np.random.default_rng(0).normal(size=2 * N)
    frame = pd.DataFrame({"a": a, "b": a**2, "count": ids, "label": ["u", "v"] * N})
    frame.to_csv("data.csv", index=False)
    assert run_command(["init", "data.csv", "--output", "study.yaml"]) == 0
    assert capsys.readouterr().out.count("'count' holds whole numbers") == 1
    assert tune.main(["study.yaml", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("'count' holds whole numbers") == 1
