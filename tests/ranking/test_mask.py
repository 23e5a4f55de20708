"""Masks of the selected features: their shape, and files that other programs read."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from raysel.core.errors import ConfigError
from raysel.data.layouts import Matrix, Modalities, Tasks, Tensor
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.ranking_files import mask_content, selection_mask


def ranked(layout, n=3):
    scores = np.random.default_rng(0).random(layout.n_features)
    names, best = layout.default_names(), np.argsort(-scores)[:n]
    return FeatureRanking.from_folds(scores, [scores], feature_names=names, fold_names=["o"], n_selected=n), best


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
    with pytest.raises(ConfigError, match=r"name the file \*\.npy"):
        mask_content("mask.nii.gz", np.ones(shape, dtype=bool))
