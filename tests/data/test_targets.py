"""Kinds of labels: what is found by itself, what the key says, and what is read back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes, load_linnerud

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.targets import Quantities, find_target, target_from_json
from raysel.numerics.metrics import metric

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(30, 3)), columns=list("abc")).assign(
    weight=RNG.normal(70, 9, size=30), visits=RNG.integers(0, 4, size=30)
)


def kind(y, **keys):
    return Dataset(RNG.normal(size=(len(y), 2)), y, Tensor((2,)), **keys).target.kind


@pytest.mark.parametrize(
    ("y", "target"),
    [
        ([0, 1, 0, 1], "classes"),
        ([0.0, 1.0, 2.0, 1.0], "classes"),
        (["a", "b"], "classes"),
        (np.repeat(np.arange(20), 2), "classes"),  # two images of each of twenty persons
        ([[0, 1], [1, 0], [1, 1]], "labels"),
        ([0.5, 1, 0, 1], "quantities"),
        (load_diabetes().target, "quantities"),
        (load_linnerud().target, "quantities"),
        (np.arange(20)[::-1], "quantities"),
        (np.arange(20), "classes"),  # the numbers of the rows, which are refused as such
    ],
)
def test_the_kind_is_found_from_the_values(y, target):
    assert kind(y) == target


def test_the_key_overrides_what_is_found():
    assert kind([0, 1, 2, 1], target="quantities") == "quantities"
    assert kind(np.arange(20), target="classes") == "classes"
    y = load_dataset("diabetes", task="classification")
    assert (y.target.kind, y.notes) == ("classes", ())
    found, said = load_dataset("diabetes"), load_dataset("diabetes", task="regression")
    assert "predicted as a quantity" in found.notes[0]
    assert said.notes == ()
    assert found.content_hash == said.content_hash != y.content_hash


@pytest.mark.parametrize("label", ["weight", ["weight", "visits"]])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", None])
def test_quantities_are_read_and_come_back_from_a_file(tmp_path, monkeypatch, name, label):
    monkeypatch.chdir(tmp_path)
    if name is None:
        data = Dataset.from_frame(FRAME, label)
    else:
        FRAME.to_csv(name, index=False) if name == "a.csv" else FRAME.to_parquet(name)
        data = load_dataset(name, label=label)
    np.testing.assert_allclose(data.y, FRAME[label], rtol=1e-15)
    assert data.feature_names == tuple(name for name in FRAME if name not in np.atleast_1d(label))
    assert data.label_names == (() if label == "weight" else tuple(label))
    save_dataset(data, "kept.arrow")
    again = load_dataset("kept.arrow")
    assert (again.content_hash, again.target, again.label_names) == (
        data.content_hash,
        Quantities(),
        data.label_names,
    )


def test_samples_without_a_quantity_are_left_out_of_all_and_said():
    frame = FRAME.assign(who=np.arange(30) // 2)
    frame.loc[3, "weight"] = np.nan
    frame.loc[[7, 9], "visits"] = np.nan
    by_label = Dataset.from_frame(frame, ["weight", "visits"], groups="who", drop_unlabelled=True)
    by_array = Dataset.from_frame(
        frame[list("abc")], y=frame[["weight", "visits"]], groups=frame.who
    )
    kept = frame.dropna()
    assert "3 rows have no label and are left out (rows 3, 7, 9, counted from 0)" in by_label.notes
    assert (
        "3 of 30 samples are left out, as their label is missing: rows 3, 7, 9 (counted from 0)"
        in by_array.notes
    )
    for data in (by_label, by_array):
        np.testing.assert_array_equal(data.X, kept[list("abc")])
        np.testing.assert_array_equal(data.y, kept[["weight", "visits"]])
        np.testing.assert_array_equal(data.groups, kept.who)


def test_an_infinite_value_among_fractions_is_named_with_its_row():
    with pytest.raises(DataError, match=r"y holds inf in row 3 \(counted from 0\)"):
        Dataset(np.eye(5), np.array([44.4, 1.5, 2.5, np.inf, 3.5]), Tensor((5,)))


def test_classes_that_look_like_quantities_come_back_from_a_file(tmp_path):
    y = np.arange(20)[::-1]
    data = Dataset(RNG.normal(size=(20, 2)), y, Tensor((2,)), target="classes")
    save_dataset(data, tmp_path / "kept.arrow")
    again = load_dataset(tmp_path / "kept.arrow")
    assert (again.target, again.content_hash) == (data.target, data.content_hash)


@pytest.mark.parametrize(
    "y", [np.array(["a", "b", "a"]), np.array([[0, 1], [1, 0], [1, 1]]), np.array([0.5, 1, 2])]
)
def test_a_target_is_known_by_the_form_of_y_and_by_its_name(y):
    data = Dataset(np.eye(3), y, Tensor((3,)))
    assert find_target(data.y) == find_target(data.y[:1]) == data.target
    assert target_from_json(data.target.to_json()) == data.target
    assert Dataset(np.eye(3), y, Tensor((3,)), target=data.target).content_hash == data.content_hash


def test_a_file_of_an_unknown_target_is_refused(tmp_path):
    data = Dataset(np.eye(4), [0, 1, 0, 1], Tensor((4,)))
    save_dataset(data, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    ((key, described),) = table.schema.metadata.items()
    changed = {key: described.replace(b'"classes"', b'"ranks"')}
    pq.write_table(table.replace_schema_metadata(changed), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="'ranks' must be classes, labels or quantities"):
        load_dataset(tmp_path / "a.parquet")


#: y of each target as it is stored, with groups of three samples.
STORED = {
    "classes": np.repeat([3, 7, 5], 20),
    "names": np.repeat(["a", "b"], 30),
    "labels": np.stack([np.arange(60) % k == 0 for k in (2, 3, 5)], axis=1).astype(np.int64),
    "quantity": np.random.default_rng(1).normal(size=60),
    "quantities": np.random.default_rng(2).normal(size=(60, 2)),
}
GROUPS = np.arange(60) // 3


@pytest.mark.parametrize("name", STORED)
def test_what_holds_of_every_target(name):
    y = STORED[name]
    target = find_target(y)
    again, note = target.convert(target.to_array(y), "data", "y", is_asked=True)
    np.testing.assert_array_equal(again, y)
    assert note is None
    for groups in (None, GROUPS):
        pairs = target.folds(y, 3, groups=groups, random_state=0, where="cv.outer")
        tests = [test for _, test in pairs]
        assert sorted(np.concatenate(tests)) == list(range(60))
        for train, test in pairs:
            assert sorted([*train, *test]) == list(range(60))
            assert groups is None or not set(groups[train]) & set(groups[test])
        first, second = target.halves(y, groups=groups, random_state=0)
        assert not set(first) & set(second)
    codes = target.codes(y)
    for i, j in [(0, 1), (0, 30), (5, 59), (20, 40)]:
        assert (codes[i] == codes[j]) == np.array_equal(y[i], y[j])
    assert len(target.counts(y)) in (0, target.count(y))


@pytest.mark.parametrize("name", STORED)
def test_no_guess_is_better_than_knowing_y(name):
    y = STORED[name]
    target = find_target(y)
    measure = metric(target.default_metric)
    known, nothing = target.known(y), np.zeros((60, 1))
    best = measure(y, target.ideal(measure, y), known)
    assert best == measure.range[1]
    for guess in target.guesses(measure):
        model = target.constant(guess, measure, y).fit(nothing, y)
        assert measure(y, measure.output(model, nothing, y), known) < best
