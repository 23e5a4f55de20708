"""Tables of NIfTI files: the voxels of a mask are read, and what does not fit is refused by name."""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import refusals
from small_volumes import SHAPE, write_volumes

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
