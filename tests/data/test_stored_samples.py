"""Samples that stay in their file are, for all who use them, the array that is read into memory."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.scaling import make_scaler, scale_in_place, scale_training
from raysel.data.stored_samples import StoredSamples
from raysel.numerics.least_squares import least_squares_data, one_hot, standardised

RNG = np.random.default_rng(0)
N, D = 41, 6
X = RNG.standard_normal((N, D)) * np.geomspace(1e-3, 1e3, D) + 5.0
X[:, 2], X[7] = 4.0, 0.0
X[7, 2] = 4.0
Y, GROUPS = np.array(["cn", "ad", "mci"])[np.arange(N) % 3], np.arange(N) // 2


@dataclass(frozen=True)
class Pieces:
    """An array as the content of a file that is read in blocks of some lengths."""

    values: np.ndarray
    lengths: tuple[int, ...]

    @property
    def shape(self):
        return self.values.shape

    def blocks(self):
        return iter(np.split(self.values, np.cumsum(self.lengths)[:-1]))


def table(values, y=Y, **more):
    return pa.table({f"f{i}": column for i, column in enumerate(values.T)} | {"y": y} | more)


def write(path, content):
    """Write a table in chunks of 7 rows, the last of which is shorter."""
    if path.endswith(".parquet"):
        pq.write_table(content, path, row_group_size=7)
        return
    with pa.ipc.new_file(path, content.schema) as writer:
        writer.write_table(content, max_chunksize=7)


def both(path, **options):
    return load_dataset(path, in_memory=False, **options), load_dataset(path, **options)


@pytest.fixture(autouse=True)
def _five_rows(here, monkeypatch):  # noqa: ARG001 - an empty working directory
    """Read five rows of the tables here at a time, fewer than the file keeps together; the last
    is read by itself.
    """
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 5 * (D + 2))


@pytest.fixture
def stored():
    write("x.parquet", table(X, person=GROUPS))
    return load_dataset("x.parquet", groups="person", in_memory=False)


def assert_same(stored, data):
    assert stored.content_hash == data.content_hash
    assert (stored.layout, stored.feature_names, stored.label_names) == (
        data.layout,
        data.feature_names,
        data.label_names,
    )
    assert (stored.name, stored.label, stored.notes, stored.target) == (
        data.name,
        data.label,
        data.notes,
        data.target,
    )
    np.testing.assert_array_equal(stored.y, data.y)
    assert stored.y.dtype == data.y.dtype
    np.testing.assert_array_equal(stored.constant, data.constant)
    assert isinstance(stored.X, StoredSamples)
    assert stored.X.array().tobytes() == data.X.tobytes()
    assert stored.X.nbytes == 0


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_a_table_is_that_in_memory(suffix):
    write(f"x.{suffix}", table(X, person=GROUPS))
    stored, data = both(f"x.{suffix}", groups="person")
    assert_same(stored, data)
    np.testing.assert_array_equal(stored.groups, GROUPS)
    assert len(list(stored.X.row_blocks())) > N // 7
    assert stored.constant.tolist() == [False, False, True, False, False, False]


def test_batches_that_a_process_maps_are_those_in_memory(monkeypatch):
    monkeypatch.setattr("raysel.data.formats.tables._READ_WHOLE", 100)
    names = pa.array(Y).dictionary_encode()
    write("x.arrow", table(X, names, person=GROUPS, note=[f"row {i}" for i in range(N)]))
    stored, data = both("x.arrow", groups="person", drop=["note"])
    assert stored.X.source.mapped
    assert stored.y.tolist() == data.y.tolist()
    np.testing.assert_array_equal(stored.X.array(), data.X)
    next(stored.X.row_blocks())  # and no more: the process ends


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_digits_from_save_dataset_are_those_in_memory(suffix, monkeypatch):
    digits = load_dataset("digits")
    save_dataset(digits, f"digits.{suffix}")
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 65 * 100)
    stored, data = both(f"digits.{suffix}")
    assert_same(stored, data)
    assert stored.content_hash == digits.content_hash
    assert len(list(stored.X.row_blocks())) == 18


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "y", [RNG.integers(0, 2, (N, 2)), RNG.standard_normal((N, 2))], ids=["labels", "quantities"]
)
def test_a_row_that_is_read_by_itself_keeps_its_labels(suffix, y):
    save_dataset(Dataset(X, y, Tensor((2, 3)), label_names=("a", "b")), f"x.{suffix}")
    assert_same(*both(f"x.{suffix}"))


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (3, 2)},
        {"modalities": {"a": 2, "b": 4}},
        {"classes": ["mci", "cn"]},
        {"exclude_classes": ["cn"]},
        {"drop": ["f1", "f4"], "label": "y"},
        {"label": "f5", "drop": ["y"]},
        {"label": ["f0", "f5"], "drop": ["y"]},
    ],
    ids=str,
)
def test_choices_are_those_in_memory(options):
    write("x.parquet", table(X))
    assert_same(*both("x.parquet", **options))


def test_samples_without_a_label_are_left_out_as_in_memory():
    """All those of the second block among them."""
    y = np.arange(N) % 2.0
    y[[5, 6, 7, 8, 9, 23]] = np.nan
    write("x.parquet", table(X, y))
    stored, data = both("x.parquet")
    assert_same(stored, data)
    assert len(stored.X) == N - 6


def test_columns_of_pandas_and_without_a_name_are_those_in_memory():
    frame = pd.DataFrame(
        X, columns=["", *"abcde"], index=pd.Index(np.arange(N) * 3, name="id")
    ).assign(y=Y)
    write("x.parquet", pa.Table.from_pandas(frame))
    assert_same(*both("x.parquet"))


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(3, 30, 4),
        slice(None, None, -1),
        np.arange(N) % 3 == 1,
        np.array([40, 0, 17, 16, 18, 5]),
        np.array([-1, 3]),
        np.array([], dtype=int),
    ],
    ids=repr,
)
def test_rows_are_those_of_the_array(stored, rows):
    chosen = stored.X[rows]
    assert (len(chosen), chosen.shape) == (len(X[rows]), X[rows].shape)
    np.testing.assert_array_equal(chosen.array(), X[rows])
    np.testing.assert_array_equal(chosen[1:][::-1].array(), X[rows][1:][::-1])


@given(st.data())
def test_rows_of_rows_are_those_of_the_array_however_it_is_cut(data):
    n = data.draw(st.integers(1, 20))
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))
    values = np.arange(3.0 * sum(lengths)).reshape(-1, 3)
    chosen, array = StoredSamples(Pieces(values, tuple(lengths))), values
    for _ in range(3):
        if not len(array):
            return
        rows = np.array(data.draw(st.lists(st.integers(0, len(array) - 1), unique=True)), dtype=int)
        chosen, array = chosen[rows], array[rows]
        np.testing.assert_array_equal(chosen.array(), array)
        positions = np.concatenate([part for part, _ in chosen.row_blocks()] or [rows])
        np.testing.assert_array_equal(np.sort(positions), np.arange(len(array)))
    if len(array):
        np.testing.assert_array_equal(
            chosen.computed(lambda block: block[:, :2].sum(axis=1)), array[:, :2].sum(axis=1)
        )


def test_an_index_outside_is_refused(stored):
    with pytest.raises(IndexError):
        stored.X[np.array([N])]


@pytest.mark.parametrize(
    "rows", [slice(None), np.random.default_rng(1).permutation(N)[:23]], ids=["all", "some"]
)
def test_the_summary_is_that_of_numpy(stored, rows):
    summary, array = stored.X[rows].summary, X[rows]
    assert summary.n_samples == len(array)
    np.testing.assert_array_equal(summary.smallest, array.min(axis=0))
    np.testing.assert_array_equal(summary.largest, array.max(axis=0))
    np.testing.assert_allclose(summary.mean, array.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(summary.variance, array.var(axis=0), rtol=1e-13)
    np.testing.assert_array_equal(summary.constant, np.ptp(array, axis=0) == 0)
    assert summary.variance[2] == 0.0  # exactly


@given(st.integers(0, 2**16), st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_the_summary_keeps_the_digits_of_what_varies_little_beside_its_mean(seed, lengths):
    drawn = np.random.default_rng(seed).standard_normal((sum(lengths), 3))
    values = np.round(drawn * 2**20) / 2**20 + [
        1e6,
        -1e6,
        0.0,
    ]  # exact, so that the offset changes no deviation
    summary = StoredSamples(Pieces(values, tuple(lengths))).summary
    np.testing.assert_allclose(
        summary.variance, (values - [1e6, -1e6, 0.0]).var(axis=0), rtol=1e-9, atol=1e-18
    )


@pytest.mark.parametrize(
    "name", ["unit", "zscore", "minmax", "zscore_sqrt_width", "row_unit", "none"]
)
def test_scaled_samples_are_those_scaled_in_memory(stored, name):
    """Training and test set; of the file's blocks some have samples of both, and some of one
    alone.
    """
    order = np.random.default_rng(2).permutation(N)
    train, test = order[order >= 6][:25], np.append(order[order < 6], order[order >= 6][25:])
    layout = Modalities({"a": 2, "b": 4})
    scaler, own = make_scaler(name, layout), make_scaler(name, layout)
    expected = scale_training(own, X[train])
    np.testing.assert_allclose(
        scale_training(scaler, stored.X[train]).array(), expected, rtol=1e-12, atol=1e-12
    )
    scaled = scale_in_place(scaler, stored.X[test])
    np.testing.assert_allclose(scaled.array(), own.transform(X[test]), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scaled[3:].array(), scaled.array()[3:])
    for attribute in ("n_samples_seen_", "n_features_in_"):
        assert getattr(scaler, attribute, None) == getattr(own, attribute, None)


def test_another_process_reads_the_file_itself(stored):
    scaled = scale_training(make_scaler("zscore"), stored.X[5:30])
    stored.X.summary  # noqa: B018 - which is not sent along
    copy = pickle.loads(pickle.dumps(scaled))
    np.testing.assert_array_equal(copy.array(), scaled.array())
    assert pickle.loads(pickle.dumps(stored)).content_hash == stored.content_hash
    assert len(pickle.dumps(stored.X)) < X.nbytes


def test_the_excerpt_has_samples_of_each_class(monkeypatch):
    y = np.where(np.arange(N) == 20, "rare", Y)
    write("x.parquet", table(X, y))
    stored, data = both("x.parquet")
    monkeypatch.setattr("raysel.data.dataset._EXCERPT", 8 * D * 10)
    excerpt = stored.excerpt
    assert data.excerpt is data
    assert 10 <= excerpt.n_samples <= 10 + 4
    assert excerpt.classes.tolist() == data.classes.tolist()
    of_row = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    assert [of_row[row.tobytes()] for row in excerpt.X] == excerpt.y.tolist()


def test_what_needs_an_array_says_so(stored):
    for use in (
        lambda data: np.asarray(data.X),
        lambda data: np.mean(data.X, axis=0),
        lambda data: join_tasks({"a": data, "b": data}),
        lambda data: save_dataset(data, "again.parquet"),
    ):
        with pytest.raises(
            DataError, match=r"x\.parquet stays in its file \(dataset\.in_memory: false\)"
        ):
            use(stored)


def named_row(message):
    """Row of the file that a message names."""
    return int(re.search(r"in row (\d+)", message)[1])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_cell_without_a_number_is_named_by_its_row_in_the_file(suffix):
    for value in (np.nan, np.inf):
        values = X.copy()
        values[33, 4] = value
        write(f"x.{suffix}", table(values))
        assert named_row(refused(f"x.{suffix}", "'f4'", in_memory=False)) == 33
        cells = pa.FixedShapeTensorArray.from_numpy_ndarray(values.reshape(-1, 2, 3))
        write(f"t.{suffix}", pa.table({"X": cells, "y": Y}))
        assert named_row(refused(f"t.{suffix}", "'r1c1'", in_memory=False)) == 33


@pytest.mark.parametrize("column", ["y", "person"])
def test_a_missing_label_or_group_is_named_by_its_row_in_the_file(column):
    values = pa.array([None if row == 33 else row // 20 for row in range(N)])
    write("x.parquet", table(X, **({"person": GROUPS} | {column: values})))
    message = refused(
        "x.parquet", f"column '{column}' has no value in row", groups="person", in_memory=False
    )
    assert named_row(message) == 33


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_file_that_changes_is_refused_and_named(suffix):
    path = f"x.{suffix}"
    write(path, table(X))
    stored = load_dataset(path, in_memory=False)
    for content in (
        table(X[:30], Y[:30]),
        table(np.vstack([X, X]), np.tile(Y, 2)),
        table(X[:, :5]),
    ):
        write(path, content)
        with pytest.raises(DataError):
            stored.X.array()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_damaged_or_missing_file_is_refused_and_named(suffix, here):
    path = here / f"x.{suffix}"
    write(str(path), table(X))
    stored = load_dataset(path, in_memory=False)
    whole = path.read_bytes()
    for n_bytes in (0, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        refused(path, path.name, in_memory=False)
        with pytest.raises(DataError):
            stored.X.array()
    path.unlink()
    refused(path, path.name, in_memory=False)
    with pytest.raises(DataError):
        stored.X.array()


def test_what_does_not_stay_in_a_file_is_refused():
    write("x.parquet", table(X))
    pd.DataFrame(X).assign(y=Y).to_csv("x.csv")
    np.savez("x.npz", X=X, y=Y)
    one = Dataset(X, Y, Tensor((D,)))
    save_dataset(join_tasks({"a": one, "b": one}), "tasks.parquet")
    write("empty.parquet", table(X[:0], Y[:0]))
    for source, culprits, options in (
        ("x.csv", ["in_memory", "Parquet and Arrow", "x.csv"], {}),
        ("x.npz", ["in_memory", "Parquet and Arrow", "x.npz"], {}),
        ("digits", ["in_memory", "digits", "built in"], {}),
        ("planted-tensor", ["in_memory", "planted-tensor"], {}),
        ("tasks.parquet", ["in_memory", "several tasks"], {}),
        ("nowhere.parquet", ["there is no data file nowhere.parquet"], {}),
        ("x.parquet", ["order", "in_memory"], {"order": "F", "shape": (2, 3)}),
        ("x.parquet", ["only", "in_memory"], {"only": ["a"], "modalities": {"a": 2, "b": 4}}),
        ("x.parquet", ["labels", "in_memory"], {"labels": "x.csv"}),
        ("x.parquet", ["drop_unlabelled", "in_memory"], {"drop_unlabelled": True}),
        ("x.parquet", ["in_memory", "x.parquet"], {"unprepared": True}),
        ("x.parquet", ["X is empty"], {"drop": [f"f{i}" for i in range(D)]}),
        ("empty.parquet", ["empty.parquet", "no rows"], {}),
    ):
        refused(source, *culprits, in_memory=False, **options)


@st.composite
def training_sets(draw):
    """Features of unlike sizes far from 0, of which some are constant, in a file's order and cut
    into blocks.
    """
    lengths = draw(
        st.lists(st.integers(1, 15), min_size=1, max_size=8).filter(
            lambda lengths: sum(lengths) > 1
        )
    )
    n, d = sum(lengths), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.standard_normal((n, d)) * np.geomspace(0.1, 10.0, d) + draw(
        st.sampled_from([0.0, 1e6])
    )
    for column in draw(st.sets(st.integers(0, d - 1), max_size=d - 1)):
        values[:, column] = values[0, column]
    if np.ptp(values, axis=0).max() == 0:
        values[0] += 1.0
    order = rng.permutation(n)[: draw(st.integers(2, n))]
    y = (
        np.arange(len(order)) % 3
        if draw(st.booleans())
        else rng.standard_normal((len(order), 2)) + 1e3
    )
    return StoredSamples(Pieces(values, tuple(lengths)))[order], values[order], y, rng


@settings(max_examples=60)
@given(training_sets())
def test_the_least_squares_of_blocks_are_those_of_the_array(drawn):
    stored, array, y, rng = drawn
    encode = one_hot if y.ndim == 1 else standardised
    found, own = (least_squares_data(samples, y, encode) for samples in (stored, array))
    np.testing.assert_array_equal(found.constant, own.constant)
    np.testing.assert_allclose(found.X_mean, own.X_mean, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found.Y_mean, own.Y_mean, atol=1e-14)
    if np.ptp(array, axis=0).max() == 0:  # of a selection whose features are all constant
        assert not found.X.any()
        return
    assert found.scale == own.scale
    assert found.alpha_max == pytest.approx(own.alpha_max, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.XY, own.XY, rtol=1e-9, atol=1e-9)
    assert not found.X[found.constant].any()
    assert not found.XY[:, found.constant].any()
    assert found.X.shape[1] <= min(array.shape)
    for size in (0.0, 1.0, 100.0):
        P = size * rng.standard_normal(own.XY.shape)
        losses = [((P @ data.X - data.Y) ** 2).sum() + data.residual for data in (found, own)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-9, abs=1e-9)


def test_least_squares_of_blocks_tell_features_apart_despite_a_large_condition_number():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 400))
    values = np.stack([one, one + 1e-9 * other], axis=1)
    y = np.stack([other, rng.standard_normal(400)], axis=1)
    found = least_squares_data(StoredSamples(Pieces(values, (100,) * 4)), y, standardised)
    P = np.linalg.lstsq(found.X.T, found.Y.T, rcond=None)[0].T
    assert ((P[0] @ found.X - found.Y[0]) ** 2).sum() < 1e-9
