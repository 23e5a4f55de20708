"""Tables of NIfTI files: the voxels of a mask are read, and what does not fit is refused by
name.
"""

from __future__ import annotations

import gzip
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import refusals
from small_volumes import SHAPE, write_volumes

from raysel.core.errors import DataError
from raysel.data.layouts import MaskedVolume, layout_from_json
from raysel.data.loading import load_dataset

nibabel = pytest.importorskip("nibabel")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_volumes(tmp_path_factory.mktemp("volumes"), n=6)


@pytest.fixture
def folder(written, tmp_path):
    """A copy of the files that a test may change."""
    shutil.copytree(written.table.parent, tmp_path / "folder")
    return tmp_path / "folder"


def load(folder: Path, **options):
    options = {"mask": folder / "mask.nii.gz", "label": "diagnosis"} | options
    return load_dataset(folder / "scans.csv", **options)


def refused(folder: Path, *culprits: str, **options) -> None:
    refusals.refused(folder, *culprits, read=load, **options)


def save(values, path, affine, kind=nibabel.Nifti1Image):
    nibabel.save(kind(values, affine), path)


def test_the_features_are_the_voxels_of_the_mask(written):
    data = load(written.table.parent, groups="site")
    np.testing.assert_array_equal(data.X, written.values[:, written.mask])
    assert data.y.tolist() == written.y.tolist()
    assert data.groups.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_array_equal(data.layout.mask, written.mask)
    np.testing.assert_allclose(data.layout.affine, written.affine, rtol=1e-6)
    assert (data.name, data.label) == ("scans", "diagnosis")
    assert any("age" in note and "site" not in note for note in data.notes)


def test_voxels_are_named_by_indices_and_positions_as_nibabel_computes_them(written):
    data = load(written.table.parent)
    indices = np.argwhere(written.mask)
    places = nibabel.affines.apply_affine(written.affine, indices)
    for name, index, place in zip(data.feature_names, indices, places, strict=True):
        cell, _, position = name.partition(" (")
        assert cell == "i{}j{}k{}".format(*index)
        x, y, z, unit, *side = position.removesuffix(")").split()
        np.testing.assert_allclose([float(x), float(y), float(z)], place, atol=0.0501)
        assert (unit, side) == ("mm", {-1: ["L"], 0: [], 1: ["R"]}[int(np.sign(float(x)))])


@pytest.mark.parametrize("codes", ["RAS", "LAS", "PSR", "IRP"])
def test_pictures_name_the_directions_of_nibabel(codes):
    ornt = nibabel.orientations.axcodes2ornt(codes)
    affine = nibabel.orientations.inv_ornt_aff(ornt, (8, 9, 7)) @ np.diag([2.0, 3.0, 4.0, 1.0])
    layout = MaskedVolume(np.ones((8, 9, 7), bool), affine)
    named = zip("ijk", nibabel.aff2axcodes(affine), strict=True)
    assert layout.axis_labels() == [f"{axis} (to {to})" for axis, to in named]
    for axis in range(3):
        index = np.zeros(3)
        index[axis] = 5
        place = nibabel.affines.apply_affine(affine, index)
        world = "LRPAIS".index(nibabel.aff2axcodes(affine)[axis]) // 2
        said = layout.slice_label(axis, 5).removesuffix(" L").removesuffix(" R")
        assert said == f"{'ijk'[axis]} = 5, {'xyz'[world]} = {place[world]:g} mm"
    slanted = affine.copy()
    slanted[:3, :3] = (
        slanted[:3, :3] @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    )
    assert MaskedVolume(layout.mask, slanted).slice_label(2, 5) == "k = 5"  # no single position


def test_a_header_that_knows_no_place_gives_no_position_and_other_units_are_named(folder):
    for name in ("mask", *(f"scans/{i}" for i in range(6))):
        image = nibabel.load(folder / f"{name}.nii.gz")
        image.header.set_xyzt_units("micron")
        nibabel.save(image, folder / f"{name}.nii.gz")
    assert " um" in load(folder).feature_names[0]
    for name in ("mask", *(f"scans/{i}" for i in range(6))):
        image = nibabel.load(folder / f"{name}.nii.gz")
        nowhere = nibabel.Nifti1Image(np.asarray(image.dataobj), None, image.header)
        nowhere.set_sform(None, 0)
        nowhere.set_qform(None, 0)
        nibabel.save(nowhere, folder / f"{name}.nii.gz")
    data = load(folder)
    assert all(name.isalnum() for name in data.feature_names)
    assert data.layout.axis_labels() == ["i", "j", "k"]
    assert layout_from_json(data.layout.to_json()) == data.layout
    with pytest.raises(DataError, match="unit 'mile'"):
        MaskedVolume(data.layout.mask, None, "mile")


def test_the_hash_of_data_is_that_of_the_names_before_0_9(written):
    data = load(written.table.parent)
    former = tuple(f"a0_{i}a1_{j}a2_{k}" for i, j, k in np.argwhere(written.mask))
    assert replace(data, feature_names=former).content_hash == data.content_hash
    other = tuple(f"v{name}" for name in former)
    assert replace(data, feature_names=other).content_hash != data.content_hash


@pytest.mark.parametrize("kind", ["parquet", "feather", "semicolons", "tabs", "absolute paths"])
def test_other_tables_give_the_same(written, folder, kind):
    table, path = pd.read_csv(folder / "scans.csv"), folder / "other.csv"
    if kind in ("parquet", "feather"):
        path = folder / f"other.{kind}"
        (table.to_parquet if kind == "parquet" else table.to_feather)(path)
    elif kind == "absolute paths":
        table.assign(scan=[str(folder / name) for name in table["scan"]]).to_csv(path, index=False)
    else:
        table.to_csv(path, index=False, sep={"semicolons": ";", "tabs": "\t"}[kind])
    data = load_dataset(path, mask=folder / "mask.nii.gz", label="diagnosis")
    assert data.content_hash == load(written.table.parent).content_hash


def test_slope_and_intercept_a_fourth_axis_nifti_2_and_plain_files(folder, written):
    scans, values = (
        folder / "scans",
        (np.arange(np.prod(SHAPE)) % 100).astype(np.int16).reshape(SHAPE),
    )
    save(written.values[1][..., None], scans / "1.nii.gz", written.affine)
    save(written.values[2], scans / "2.nii.gz", written.affine, nibabel.Nifti2Image)
    save(written.values[3], scans / "3.nii", written.affine)
    stored = bytearray(nibabel.Nifti1Image(values, written.affine).to_bytes())
    stored[112:120] = np.array([0.5, -3.0], "<f4").tobytes()  # scl_slope and scl_inter
    (scans / "0.nii.gz").write_bytes(gzip.compress(bytes(stored)))
    text = (folder / "scans.csv").read_text().replace("scans/3.nii.gz", "scans/3.nii")
    (folder / "scans.csv").write_text(text)
    data = load(folder)
    np.testing.assert_array_equal(data.X[1:], written.values[1:, written.mask])
    np.testing.assert_array_equal(data.X[0], 0.5 * values[written.mask] - 3.0)


def test_volumes_that_do_not_fit_are_refused(folder, written):
    scan, volume, affine = folder / "scans" / "4.nii.gz", written.values[4], written.affine
    moved, broken = affine.copy(), volume.copy()
    moved[0, 3] += 1
    broken[tuple(np.argwhere(written.mask)[:3].T)] = broken[
        tuple(np.argwhere(~written.mask)[:5].T)
    ] = np.nan
    for values, place, *culprits in (
        (volume[:-1], affine, "mask.nii.gz", "(7, 9, 7)", "(8, 9, 7)"),
        (volume, moved, "mask.nii.gz", f"{moved[0, 3]:.6g}", f"{affine[0, 3]:.6g}", "resample"),
        (np.stack([volume, volume], -1), affine, "8 x 9 x 7 x 2"),
        (broken, affine, f"in 3 of the {written.mask.sum()} voxels"),
        (volume.astype(np.complex64), affine, "complex64"),
    ):
        save(values, scan, place)
        refused(folder, "4.nii.gz", *culprits)
    scan.unlink()
    refused(folder, "row 4", "scans/4.nii.gz", "no file")


def test_masks_that_cannot_be_used_are_refused(folder, written):
    mask = folder / "mask.nii.gz"
    for values, culprit in (
        (np.zeros(SHAPE, np.uint8), "no voxel above 0"),
        (
            np.where(written.mask, 1.0, np.nan).astype(np.float32),
            f"NaN in {(~written.mask).sum()} voxels",
        ),
        (np.ones((8, 9), np.uint8), "8 x 9"),
    ):
        save(values, mask, written.affine)
        refused(folder, "mask.nii.gz", culprit)
    refused(folder, "no data file", "other.nii.gz", mask=folder / "other.nii.gz")
    refused(folder, "scans.csv", "no NIfTI file by its name", mask=folder / "scans.csv")


def test_tables_that_do_not_name_files_and_labels_are_refused(folder):
    table = pd.read_csv(folder / "scans.csv")

    def write(**columns):
        table.assign(**columns).to_csv(folder / "scans.csv", index=False)

    refused(folder, "column group", groups="group")
    refused(folder, "column sex", label="sex")
    refused(
        folder,
        "label",
        "no column diagnoses for the labels; did you mean `diagnosis`?",
        label="diagnoses",
    )
    refused(folder, "drop names the column 'diagnosis' of the labels", drop=["diagnosis"])
    refused(folder, "holds the labels", "diagnosis, site", label=None)
    assert load(folder, label=None, drop=["age", "site"]).label == "diagnosis"
    refused(folder, "leave shape", shape=[8, 9, 7])
    write(again=table["scan"])
    refused(folder, "scan and again")
    assert load(folder, drop=["again"]).n_samples == 6
    write(scan=["a.img"] * 6)
    refused(folder, "no column of NIfTI files")
    write(diagnosis=["a", None] * 3)
    refused(folder, "'diagnosis' has no value in row 1")


def test_damaged_files_are_refused(folder):
    scan = folder / "scans" / "2.nii.gz"
    whole = scan.read_bytes()
    plain = gzip.decompress(whole)

    def head(**fields):
        header = nibabel.Nifti1Header(plain[:348])
        for name, value in fields.items():
            header[name] = value
        return gzip.compress(header.binaryblock + plain[348:])

    for content, culprit in (
        (b"", "empty"),
        (whole[:200], "cannot be read"),
        (gzip.compress(plain[:-100]), "truncated"),
        (whole[:-6] + bytes(2) + whole[-4:], "CRC"),
        (b"no volume", "cannot be read"),
        (gzip.compress(b"no volume" * 99), "no valid header"),
        (gzip.compress(plain[:344] + b"ni1" + plain[347:]), "no valid header"),
        (gzip.compress(plain + bytes(2**25)), "more bytes"),
        (head(dim=[3, 30000, 9, 7, 1, 1, 1, 1]), "truncated"),
        (head(dim=[3, 30000, 30000, 30000, 1, 1, 1, 1]), "claims"),
        (head(dim=[3, -8, 9, 7, 1, 1, 1, 1]), "2.nii.gz"),
        (head(vox_offset=1e12), "begin at byte"),
        (head(srow_x=[np.nan] * 4), "affine"),
    ):
        scan.write_bytes(content)
        refused(folder, "2.nii.gz", culprit)


def test_without_nibabel_its_command_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)  # as if it were not installed
    refused(folder, "pip install 'raysel[neuro]'")
