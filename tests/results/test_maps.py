"""Maps of volumes read back by nibabel: the value of each voxel, the header and the space."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from small_studies import raw_config, run_offline
from small_volumes import write_volumes

import raysel
from raysel.core.errors import DataError
from raysel.data.formats.nifti import read_mask
from raysel.data.layouts import MaskedVolume, Matrix, WithConfounds, layout_from_json
from raysel.results.maps import FeatureMap, write_maps

nibabel = pytest.importorskip("nibabel")
N_PERMUTATIONS, TOP = 19, 10


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """Volumes whose mask is in MNI space."""
    volumes = write_volumes(tmp_path_factory.mktemp("volumes"))
    mask = nibabel.load(volumes.mask_file)
    mask.set_sform(volumes.affine, "mni")
    mask.header.set_xyzt_units("mm")
    nibabel.save(mask, volumes.mask_file)
    return volumes


@pytest.fixture(scope="module")
def study(volumes, tmp_path_factory):
    raw = raw_config(
        dataset=volumes.dataset,
        solver={"name": "fisher_score"},
        evaluation={"classifier": "knn", "n_features": [TOP], "references": False},
    )
    path = run_offline(raw, tmp_path_factory.mktemp("studies") / "study").path
    options = {"progress": False, "executor": "serial"}
    raysel.permutation_test(path, permutations=N_PERMUTATIONS, **options)
    raysel.stability_selection(path, subsamples=20, **options)
    return raysel.open_study(path)


def by_place(names, values, shape):
    """Put values into a volume by the indices in the names of the voxels."""
    volume = np.full(shape, np.nan)
    for name, value in zip(names, values, strict=True):
        volume[tuple(map(int, re.match(r"i(\d+)j(\d+)k(\d+)", name).groups()))] = value
    return volume


@pytest.mark.parametrize(
    ("file", "table", "column", "limits"),
    [
        ("ranking/scores", "ranking/ranking", "score", None),
        ("ranking/selected", "ranking/ranking", "rank", (0, 1)),
        ("ranking/selection_frequency", "ranking/ranking", "selection_frequency", (0, 1)),
        ("stability/selection_probability", "stability/selection", "selection_probability", (0, 1)),
        ("stability/selected", "stability/selection", "selected", (0, 1)),
        ("permutation/neg_log10_p_value", "permutation/features", "p_value", (0, np.log10(20))),
        (
            "permutation/neg_log10_p_value_fwer",
            "permutation/features",
            "p_value_fwer",
            (0, np.log10(20)),
        ),
    ],
)
def test_each_voxel_has_the_value_of_the_table(file, table, column, limits, study, volumes):
    image = nibabel.load(study.path / f"{file}.nii.gz")
    rows = pd.read_parquet(study.path / f"{table}.parquet")
    values = rows[column].to_numpy(dtype=float)
    if column == "rank":
        values = (values <= TOP).astype(float)
    if "log10" in file:
        values = -np.log10(values)
    wanted = by_place(rows["feature"], values, volumes.mask.shape)
    if file.endswith("selected"):
        wanted = np.nan_to_num(wanted)  # no voxel outside of the mask is selected
    found = image.get_fdata()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert not np.array_equal(found, found[::-1], equal_nan=True)  # left and right differ
    header = image.header
    low, high = limits or (0, values.max())
    assert (float(header["cal_min"]), float(header["cal_max"])) == pytest.approx((low, high))
    assert header["descrip"].item().startswith(b"raysel: ")
    assert (b"-log10 p" in header["descrip"].item()) == ("log10" in file)


@pytest.mark.parametrize("file", ["ranking/scores", "stability/selected"])
def test_a_map_lies_in_the_space_of_the_mask(file, study, volumes):
    image, mask = nibabel.load(study.path / f"{file}.nii.gz"), nibabel.load(volumes.mask_file)
    np.testing.assert_array_equal(image.affine, mask.affine)
    assert image.shape == mask.shape
    assert int(image.header["sform_code"]) == int(mask.header["sform_code"]) == 4
    assert image.header.get_xyzt_units()[0] == "mm"


@pytest.mark.parametrize("codes", [(0, 0), (0, 1), (1, 0), (2, 2), (5, 1)])
def test_unit_and_codes_of_a_mask_are_those_of_its_maps(codes, tmp_path):
    mask = np.zeros((4, 5, 6), dtype=np.uint8)
    mask[1, 1:4, 2] = 1
    affine = np.diag([-2.0, 3.0, 4.0, 1.0])
    image = nibabel.Nifti1Image(mask, affine)
    image.header.set_xyzt_units("micron")
    image.set_sform(affine, codes[0])
    image.set_qform(affine, codes[1])
    nibabel.save(image, tmp_path / "mask.nii.gz")
    layout = read_mask(tmp_path / "mask.nii.gz")
    values = np.array([0.5, 1.0, 2.0])
    (path,) = write_maps([FeatureMap("map", values, "some values")], layout, tmp_path)
    before, written = nibabel.load(tmp_path / "mask.nii.gz"), nibabel.load(path)
    np.testing.assert_allclose(written.affine, before.affine)
    assert int(written.header["sform_code"]) == (codes[0] or codes[1])
    if any(codes):
        assert written.header.get_xyzt_units()[0] == "micron"
    assert written.get_fdata()[1, 1:4, 2].tolist() == values.tolist()


def test_the_name_of_the_space_changes_no_hash_and_is_kept():
    mask = np.ones((2, 2, 2), dtype=bool)
    aligned, mni = MaskedVolume(mask), MaskedVolume(mask, space="mni")
    assert aligned.to_json() == aligned.hashed() == mni.hashed()
    for layout in (aligned, mni, WithConfounds(mni, 2)):
        assert layout_from_json(layout.to_json()) == layout
        assert layout_from_json(layout.to_json()).space == layout.space
    assert WithConfounds(mni, 2).hashed() == WithConfounds(aligned, 2).hashed()
    with pytest.raises(DataError, match="space 'moon'"):
        MaskedVolume(mask, space="moon")


def test_samples_without_a_place_in_space_have_no_maps(tmp_path):
    assert write_maps([FeatureMap("map", np.zeros(4), "zeros")], Matrix(2, 2), tmp_path) == []
    assert list(tmp_path.iterdir()) == []
