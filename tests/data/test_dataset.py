"""The Dataset value: what it refuses, what it keeps, and its hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Matrix, Tasks, Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.targets import Labels
from raysel.data.task_blocks import TaskBlocks

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
        ({"y": [0.5, 1, 0, 1], "target": "classes"}, ["0.5", "whole numbers or text"]),
        (
            {"y": ["a", "b", "a", "b"], "target": "quantities"},
            ["y holds a", "no number", "dataset.task"],
        ),
        ({"y": [0.5, np.nan, 0, 1], "target": "quantities"}, ["NaN or infinite in row 1"]),
        ({"y": [[0.5, 1], [0, 1], [2, 1], [1, 1]]}, ["quantity number 1", "one value only"]),
        ({"target": "numbers"}, ["target='numbers'", "quantities"]),
        ({"y": [np.nan, 1, 0, 1]}, ["nan"]),
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
    refused(None, "data set 'toy'", *culprits, read=lambda _, **changes: make(**changes), **changes)


def test_is_immutable_and_copies_only_what_other_code_can_write():
    mine, labels = X.copy(), Y.copy()
    data = make(X=mine, y=labels)
    mine[0, 0], labels[0] = 99, 1
    assert (data.X[0, 0], data.y[0]) == (0, 0)
    for array in (data.X, data.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert mine.flags.writeable
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
    hashes = {
        make(y=Y.astype(kind)).content_hash for kind in (np.uint8, np.int32, np.float64, np.bool_)
    }
    assert hashes == {make().content_hash}
    text, indicator = (
        make(y=["b", "a", "c", "a"]),
        make(y=[[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]),
    )
    assert (text.classes.tolist(), text.target == Labels()) == (["a", "b", "c"], False)
    assert (indicator.classes.tolist(), indicator.target == Labels()) == (["0", "1", "2"], True)


def test_hash_tells_everything_apart_but_the_name():
    one = {"groups": [0, 0, 1, 1]}
    assert make(**one, name="other").content_hash == make(**one).content_hash
    others = [
        {"groups": None},
        {"groups": [0, 1, 1, 1]},
        {"groups": ["0", "0", "1", "1"]},
        {"X": with_cell(3, 2, np.nextafter(11.0, 12))},
        {"y": [0, 1, 1, 0]},
        {"y": ["0", "1", "0", "1"]},
        {"layout": Matrix(3, 1), "feature_names": make().feature_names},
        {"feature_names": ("a", "b", "c")},
    ]
    assert len({make(**one | other).content_hash for other in [{}, *others]}) == len(others) + 1


@pytest.mark.slow
def test_hash_is_the_same_in_another_process():
    code = (
        "import numpy as np; from raysel.data.dataset import Dataset; from raysel.data.layouts"
        " import Tensor; print(Dataset(np.arange(12.0).reshape(4, 3), list('abab'),"
        " Tensor((3,))).content_hash)"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == make(y=list("abab")).content_hash


# Several data sets joined as tasks


def part(n, layout, seed=0, groups=False, words=False):
    X, y = np.random.default_rng(seed).standard_normal((n, layout.n_features)), np.arange(n) % 3
    y = np.array(["cat", "dog", "a bird"])[y] if words else y
    return Dataset(X, y, layout, groups=np.arange(n) // 2 if groups else None)


@given(
    sizes=st.lists(
        st.tuples(st.integers(4, 9), st.integers(1, 4), st.integers(1, 3)), min_size=2, max_size=4
    ),
    grouped=st.booleans(),
)
@settings(max_examples=40)
def test_every_sample_keeps_its_values_its_label_and_its_group(sizes, grouped):
    tasks = {
        f"t{i}": part(n, Matrix(h, w), seed=i, groups=grouped, words=i == 1)
        for i, (n, h, w) in enumerate(sizes)
    }
    joined = join_tasks(tasks)
    assert joined.n_samples == sum(n for n, _, _ in sizes)
    assert len(joined.classes) == 3 * len(tasks)  # equal labels of two tasks stay apart
    assert joined.layout.to_json()["tasks"] == [
        [f"t{i}", [h, w]] for i, (_, h, w) in enumerate(sizes)
    ]
    row = column = 0
    padded = joined.X.dense()
    for i, (name, data) in enumerate(tasks.items()):
        rows, columns = slice(row, row + data.n_samples), slice(column, column + data.n_features)
        assert np.shares_memory(joined.X.blocks[i], data.X)  # no sample is copied
        np.testing.assert_array_equal(padded[rows, columns], data.X)
        assert np.isnan(np.delete(padded[rows], np.r_[columns], axis=1)).all()
        assert joined.y[rows].tolist() == [f"{name}/{label}" for label in data.y]
        assert set(joined.tasks[rows]) == {i}
        if grouped:
            assert joined.groups[rows].tolist() == [f"{name}/{group}" for group in data.groups]
        assert joined.feature_names[columns] == tuple(
            f"{name}/{feature}" for feature in data.feature_names
        )
        row, column = rows.stop, columns.stop
    assert (joined.groups is None) == (not grouped)
    assert part(4, Tensor((2,))).tasks is None


def test_the_hash_is_that_of_the_padded_array():
    """Studies of earlier versions, which kept such an array, go on."""
    data = [part(700, Tensor((900,)), 0, groups=True), part(500, Matrix(30, 40), 1, groups=True)]
    joined = join_tasks({"a": data[0], "b": data[1]})
    X = np.full((1200, 2100), np.nan)
    X[:700, :900], X[700:, 900:] = data[0].X, data[1].X
    described = {
        "layout": {"kind": "tasks", "tasks": [["a", 900], ["b", [30, 40]]]},
        "feature_names": [
            f"{t}/{name}" for t, one in zip("ab", data, strict=True) for name in one.feature_names
        ],
        "label_names": [],
        "shapes": [[1200, 2100], [1200]],
        "y": [f"{t}/{label}" for t, one in zip("ab", data, strict=True) for label in one.y],
        "groups": [
            f"{t}/{group}" for t, one in zip("ab", data, strict=True) for group in one.groups
        ],
    }
    text = json.dumps(described, sort_keys=True).encode()
    assert joined.content_hash == hashlib.sha256(text + X.tobytes()).hexdigest()


VECTOR, PAIR = part(6, Tensor((3,))), part(6, Tensor((2,)), seed=1)
JOINED = join_tasks({"a": VECTOR, "b": PAIR})
BROKEN = TaskBlocks(
    (VECTOR.X, with_cell(2, 1, np.inf)[:, 1:].repeat([2, 1, 2, 1], axis=0)), JOINED.tasks
)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("groups", [False, True])
def test_a_file_holds_the_blocks_only_in_any_order_and_gives_all_of_it_back(
    tmp_path, suffix, groups
):
    joined, order = (
        join_tasks({f"t{i}": part(40, Matrix(6, 7), i, groups) for i in range(5)}),
        np.arange(200) * 7 % 200,
    )
    in_order = joined.groups[order] if groups else None
    mixed = dataclasses.replace(joined, X=joined.X[order], y=joined.y[order], groups=in_order)
    path = tmp_path / f"joined{suffix}"
    for data in (joined, mixed):
        save_dataset(data, path)
        back = load_dataset(path)
        assert back.content_hash == data.content_hash
        assert back.X.dense().tobytes() == data.X.dense().tobytes()
        assert (back.layout, back.y.tolist()) == (data.layout, data.y.tolist())
    assert mixed.content_hash != joined.content_hash
    # 5 tasks of 42 columns: with their NaN the samples would take five times the values' bytes.
    assert 0.9 / 5 < path.stat().st_size / joined.X.dense().nbytes < 1 / 3
    refused(path, "holds several tasks and their shapes", shape=[210])


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"a": PAIR}, "tasks holds 1 data set(s): give at least two"),
        ({}, "tasks holds 0 data set(s): give at least two"),
        ({"a/b": PAIR, "c": PAIR}, "'a/b' contains '/'"),
        ({"a": part(6, Tensor((2,)), groups=True), "c": PAIR}, "only a of the tasks have groups"),
        (
            {"a": PAIR, "c": make(y=np.eye(4, 2, dtype=int))},
            "task c has an indicator as y; several tasks take one class",
        ),
        ({"one": JOINED, "two": PAIR}, "a data set that has several tasks itself"),
    ],
)
def test_what_is_no_set_of_tasks_is_refused(tasks, message):
    refused(tasks, message, read=join_tasks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": JOINED.X.dense()}, "the layout Tasks requires TaskBlocks"),
        ({"layout": Tensor((5,))}, "X is of type TaskBlocks and the layout is Tensor"),
        ({"X": BROKEN}, "2 values that are NaN or infinite, the first in row 9, column 3"),
    ],
)
def test_values_and_layout_of_tasks_must_fit(changes, message):
    refused(JOINED, message, read=dataclasses.replace, **changes)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            ["a/0", "a/1", "b/0", "b/0"],
            r"task 'b' holds one class only \(b/0\); every task needs at least two classes",
        ),
        (["a/0", "a/0", "a/0", "a/1"], r"task 'a' holds one class only \(a/0\)"),
        ([0, 1, 0, 1], "task 'a' has the label 0; write 'a/0'"),
        (["a/0", "a/1", "a/0", "a/1"], "task 'b' has the label a/0; write 'b/a/0'"),
        (np.eye(4, 2, dtype=int), "one label for each sample, not an indicator"),
    ],
)
def test_a_file_of_several_tasks_must_tell_their_classes_apart(y, message):
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 3.0], [np.nan, 4.0]])
    with pytest.raises(DataError, match=message):
        Dataset(TaskBlocks.from_dense(X, Tasks({"a": 1, "b": 1})), y, Tasks({"a": 1, "b": 1}))
    three = Tasks({"a": 1, "b": 1, "c": 1})
    with pytest.raises(DataError):
        Dataset(
            TaskBlocks.from_dense(np.insert(X, 2, np.nan, axis=1), three),
            ["a/0", "a/1", "b/0", "b/1"],
            three,
        )


def test_a_feature_is_constant_in_the_samples_of_its_own_task():
    X = JOINED.X.dense()
    X[:6, 1], X[6:, 4], X[6, 3] = 7.0, 0.0, X[7, 3]
    constant = dataclasses.replace(JOINED, X=TaskBlocks.from_dense(X, JOINED.layout)).constant
    assert constant.tolist() == [False, True, False, False, True]
    assert not JOINED.constant.any()


A, B = {"name": "a", "source": "iris"}, {"name": "b", "source": "wine"}


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"tasks": [A]}, "dataset.tasks"),
        ({"tasks": [A, A]}, "the task a is named twice"),
        ({"tasks": [A | {"name": "a/b"}, B]}, "name"),
        ({"tasks": [A | {"name": ""}, B]}, "name"),
        ({"tasks": [A | {"path": "x.npz"}, B]}, "exactly one of"),
        ({"tasks": [{"name": "a"}, B]}, "exactly one of"),
        ({"tasks": [{"name": "a", "sorce": "iris"}, B]}, "did you mean `source`"),
        *(
            ({"tasks": [A, B], **other}, "dataset")
            for other in (
                {"path": "x.npz"},
                {"shape": [2, 2]},
                {"modalities": {"m": 4}},
                {"exclude_labels": ["x"]},
            )
        ),
    ],
)
def test_a_configuration_names_each_task_once_with_one_origin_in_place_of_a_file(dataset, message):
    with pytest.raises(ConfigError, match=message):
        config_from_dict({"name": "demo", "dataset": dataset, "solver": {"name": "mtda"}})


def test_the_order_of_the_tasks_is_that_of_the_columns():
    one, other = (
        config_from_dict({"name": "demo", "dataset": {"tasks": tasks}, "solver": {"name": "mtda"}})
        for tasks in ([A, B], [B, A])
    )
    assert one.hash != other.hash
