"""What is written is read back, to the last bit."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


@st.composite
def datasets(draw):
    n = draw(st.integers(2, 6))
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    d = int(np.prod(shape))
    dtype = draw(st.sampled_from([np.float64, np.float32, np.uint8, np.int64]))
    finite = {"allow_nan": False, "allow_infinity": False} if np.dtype(dtype).kind == "f" else {}
    X = draw(hnp.arrays(dtype, (n, d), elements=hnp.from_dtype(np.dtype(dtype), **finite)))
    labels = st.sampled_from([st.integers(-(2**63), 2**63 - 1), WORDS])

    def values(least):
        return draw(st.lists(draw(labels), min_size=n, max_size=n).filter(least))

    if draw(st.booleans()):
        y = values(lambda v: len(set(v)) > 1)
    else:
        y = draw(
            hnp.arrays(np.uint8, (n, 3), elements=st.integers(0, 1)).filter(
                lambda v: np.ptp(v, axis=0).all()
            )
        )
    groups = values(lambda _: True) if draw(st.booleans()) else None
    names = (
        tuple(draw(st.lists(WORDS, min_size=d, max_size=d, unique=True)))
        if draw(st.booleans())
        else ()
    )
    described = {
        "label": draw(st.none() | WORDS),
        "notes": tuple(draw(st.lists(WORDS, max_size=2))),
    }
    return Dataset(X, y, Tensor(shape), draw(WORDS.filter(bool)), groups, names, **described)


@settings(max_examples=30)
@given(datasets(), st.sampled_from([".parquet", ".arrow", ".feather"]))
def test_round_trip_is_exact(data, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"d{suffix}")
        save_dataset(data, path)
        back = load_dataset(path)
        assert list(path.parent.iterdir()) == [path]
        assert back.X.tobytes() == data.X.tobytes()  # the sign of zero included
        for field in ("y", "groups"):
            mine, theirs = getattr(data, field), getattr(back, field)
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert mine.dtype.kind == theirs.dtype.kind
                np.testing.assert_array_equal(mine, theirs)
        assert (back.layout, back.feature_names, back.name) == (
            data.layout,
            data.feature_names,
            data.name,
        )
        assert (back.label, back.notes) == (data.label, data.notes)
        assert back.content_hash == data.content_hash


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "d.arrow"
    save_dataset(load_dataset("iris"), path)
    before = path.read_bytes()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.ipc.RecordBatchFileWriter.write_table", no_space)
    with pytest.raises(DataError):
        save_dataset(load_dataset("digits"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_refuses_other_suffixes_and_missing_folders(tmp_path):
    with pytest.raises(DataError, match=r"\.parquet, \.arrow"):
        save_dataset(load_dataset("iris"), tmp_path / "d.npz")
    with pytest.raises(DataError):
        save_dataset(load_dataset("iris"), tmp_path / "no" / "d.parquet")


def test_damage_in_a_parquet_file_is_found(tmp_path):
    path = tmp_path / "d.parquet"
    save_dataset(load_dataset("digits"), path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    path.write_bytes(damaged)
    refused(path, "damaged")
