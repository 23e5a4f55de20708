"""The files hold the ranking to the last bit, and appear whole or not at all."""

from __future__ import annotations

import io
import json
import sys
from csv import reader

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from raysel.core.errors import ConfigError, StudyError
from raysel.core.files import write_result
from raysel.data.layouts import Matrix, Modalities, Tasks, Tensor
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.ranking_files import (
    FORMATS,
    mask_content,
    selection_mask,
    write_manifest,
    write_ranking,
)


@pytest.fixture
def ranking():
    rng = np.random.default_rng(0)
    scores = rng.random(size=(4, 6)) * 10.0 ** rng.integers(-300, 300, size=(4, 6))
    names = ["plain", "with, comma", 'with "quotes"', "with\nline", "größe", "  spaces "]
    return FeatureRanking.from_folds(
        scores[0],
        list(scores[1:]),
        feature_names=names,
        fold_names=["outer0", "outer1", "outer2"],
        n_selected=2,
        coordinates=Matrix(2, 3).coordinates(),
    )


def test_csv_and_parquet_hold_the_same_table_to_the_last_bit(ranking, tmp_path):
    csv, parquet = write_ranking(ranking, tmp_path)
    assert (csv.name, parquet.name) == ("ranking.csv", "ranking.parquet")
    table = pyarrow.parquet.read_table(parquet)
    assert table.equals(ranking.to_table())
    with csv.open(newline="", encoding="utf-8") as file:
        header, *rows = reader(file)
    assert header == table.column_names
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        values = table[name].to_pylist()
        assert [type(values[0])(cell) for cell in cells] == values
    assert pd.read_csv(csv)["feature"].tolist() == table["feature"].to_pylist()
    scores = ranking.scores[ranking.recommended_order].tolist()
    assert [float(row[header.index("score")]) for row in rows] == scores


def test_a_manifest_is_canonical_json(tmp_path):
    manifest = {
        "b": np.float64(0.1),
        "a": {"z": np.arange(2), "y": (True, None)},
        "nan": float("nan"),
        "ö": np.int64(3),
    }
    path = write_manifest(tmp_path / "manifest.json", manifest)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == {
        "a": {"y": [True, None], "z": [0, 1]},
        "b": 0.1,
        "nan": None,
        "ö": 3,
    }
    shuffled = dict(reversed(manifest.items()))
    assert write_manifest(tmp_path / "other.json", shuffled).read_text(encoding="utf-8") == text


def test_a_manifest_of_what_json_cannot_hold_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(TypeError, match="set"):
        write_manifest(tmp_path / "manifest.json", {"a": {1, 2}})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_what_stood_there_and_leaves_nothing_beside(tmp_path, monkeypatch):
    path = write_result(tmp_path / "file", b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        StudyError, match=r"file cannot be written: .* device; the previous file is kept"
    ):
        write_result(path, b"new")
    with pytest.raises(StudyError):
        write_result(tmp_path / "first", b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_and_npz_hold_the_table_too(ranking, tmp_path):
    paths = write_ranking(ranking, tmp_path, ["npz", "json"])
    assert [path.name for path in paths] == ["ranking.npz", "ranking.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"ranking.npz", "ranking.json"}
    table = ranking.to_table().to_pydict()
    rows = json.loads(paths[1].read_text(encoding="utf-8"))
    assert [list(row) for row in rows] == [list(table)] * 6
    assert {name: [row[name] for row in rows] for name in table} == table
    assert (
        pd.read_json(io.StringIO(paths[1].read_text(encoding="utf-8")))["feature"].tolist()
        == table["feature"]
    )
    with np.load(paths[0], allow_pickle=False) as columns:
        assert list(columns) == list(table)
        for name, values in table.items():
            assert columns[name].tolist() == values


def test_one_fold_leaves_the_spread_open(tmp_path):
    lone = FeatureRanking.from_folds(
        [1.0, 2.0], [[2.0, 1.0]], feature_names="ab", fold_names=["o"], n_selected=1
    )
    csv, parquet, plain = write_ranking(lone, tmp_path, ["csv", "parquet", "json"])
    assert pd.read_csv(csv)["rank_sd"].isna().all()
    assert np.isnan(pyarrow.parquet.read_table(parquet)["rank_sd"].to_numpy()).all()
    assert [row["rank_sd"] for row in json.loads(plain.read_text())] == [None, None]


def test_the_same_ranking_gives_the_same_bytes(ranking, tmp_path):
    (tmp_path / "again").mkdir()
    pairs = zip(
        write_ranking(ranking, tmp_path, FORMATS),
        write_ranking(ranking, tmp_path / "again", FORMATS),
        strict=True,
    )
    assert all(first.read_bytes() == second.read_bytes() for first, second in pairs)
    with pytest.raises(StudyError):
        write_ranking(ranking, tmp_path / "nowhere")


@pytest.mark.parametrize("formats", [[], ["csv", "xlsx"], [""]])
def test_unknown_formats_are_refused_and_nothing_written(ranking, tmp_path, formats):
    with pytest.raises(ConfigError, match="choose from csv, parquet, json, npz"):
        write_ranking(ranking, tmp_path, formats)
    assert list(tmp_path.iterdir()) == []


def ranked(layout, n=3):
    scores = np.random.default_rng(0).random(layout.n_features)
    names, best = layout.default_names(), np.argsort(-scores)[:n]
    return (
        FeatureRanking.from_folds(
            scores, [scores], feature_names=names, fold_names=["o"], n_selected=n
        ),
        best,
    )


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (Matrix(3, 4), (3, 4)),
        (Tensor((2, 3, 4)), (2, 3, 4)),
        (Tensor((7,)), (7,)),
        (Tasks({"a": (2, 2), "b": 3}), (7,)),
        (Modalities({"a": 2, "b": 3}), (5,)),
    ],
)
def test_a_mask_has_the_shape_of_a_sample_and_its_file_reads_back(layout, shape):
    ranking, best = ranked(layout)
    mask = selection_mask(ranking, layout)
    assert (mask.shape, mask.dtype) == (shape, bool)
    assert set(np.flatnonzero(mask.ravel())) == set(best)
    read = np.load(io.BytesIO(mask_content("mask.npy", mask)), allow_pickle=False)
    assert read.dtype == bool
    np.testing.assert_array_equal(read, mask)
    # It selects the columns of a sample of that shape.
    sample = np.arange(layout.n_features).reshape(shape)
    assert set(sample[mask]) == set(best)


@pytest.mark.parametrize("shape", [(8, 8), (4, 5, 6), (2, 3, 2, 2)])
def test_nibabel_reads_the_nifti_file(shape, tmp_path):
    nibabel = pytest.importorskip("nibabel")
    layout = Tensor(shape)
    mask = selection_mask(ranked(layout)[0], layout)
    content = mask_content(tmp_path / "mask.nii.gz", mask)
    assert content == mask_content("other.nii.gz", mask)
    (tmp_path / "mask.nii.gz").write_bytes(content)
    image = nibabel.load(tmp_path / "mask.nii.gz")
    assert image.shape == shape
    assert image.get_data_dtype() == np.uint8
    np.testing.assert_array_equal(np.asarray(image.dataobj), mask)
    np.testing.assert_array_equal(image.affine, np.eye(4))


def test_without_nibabel_the_command_that_installs_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"pip install 'raysel\[neuro\]'"):
        mask_content("mask.nii.gz", np.ones((2, 2), dtype=bool))


@pytest.mark.parametrize("name", ["mask.png", "mask", "mask.nii", "npy"])
def test_another_format_is_refused(name):
    with pytest.raises(ConfigError, match=r"must end in \.npy or \.nii\.gz"):
        mask_content(name, np.ones((2, 2), dtype=bool))


@pytest.mark.parametrize("shape", [(5,), (1,) * 8, (2, 40_000)])
def test_a_shape_that_nifti_cannot_hold_is_refused(shape):
    with pytest.raises(ConfigError):
        mask_content("mask.nii.gz", np.ones(shape, dtype=bool))
