"""Every reader meets the suite of readers, and every suffix has its cases."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from matlab73 import savemat73
from PIL import Image

from raysel.data import loading
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import save_dataset
from raysel.data.targets import Labels
from raysel.testing import parametrize, reader_checks
from raysel.testing.readers import data_sets


def named_arrays(dataset):
    """The arrays of a data set under the names that .npz and .mat files have."""
    layout = dataset.layout
    if isinstance(layout, Modalities):
        columns = layout.slices().values()
        arrays = {f"view_{i}": dataset.X[:, own] for i, own in enumerate(columns)}
        arrays["view_names"] = np.array(list(layout.modalities))
    else:
        arrays = {"X": dataset.X.reshape(len(dataset.X), *layout.shape)}
    groups = {} if dataset.groups is None else {"groups": dataset.groups}
    return {**arrays, ("Y" if dataset.target == Labels() else "y"): dataset.y, **groups}


def write_npz(dataset, path):
    np.savez(path, **named_arrays(dataset))


def write_mat(dataset, path):
    scipy.io.savemat(path, named_arrays(dataset))


def write_hdf5(dataset, path):
    with h5py.File(path, "w") as file:
        for name, values in named_arrays(dataset).items():
            file[name] = values.tolist() if values.dtype.kind == "U" else values


def write_mat73(dataset, path):
    savemat73(path, named_arrays(dataset))


def write_npy(dataset, path):
    np.save(path, dataset.X.reshape(len(dataset.X), *dataset.layout.shape))
    np.save(path.with_name("labels.npy"), dataset.y)


def write_images(dataset, path):
    """Grey TIFF images of floating-point numbers in a folder for each class."""
    for i, (x, label) in enumerate(zip(dataset.X, dataset.y, strict=True)):
        folder = path / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x.reshape(dataset.layout.shape).astype(np.float32)).save(
            folder / f"{i}.tif"
        )


def frame(dataset):
    """The data set as a table."""
    layout = dataset.layout
    names = [f"p{i}" for i in range(dataset.n_features)]
    if isinstance(layout, Modalities):
        names = [f"{name}.{i}" for name, width in layout.modalities.items() for i in range(width)]
    table = pd.DataFrame(dataset.X, columns=names)
    if dataset.target == Labels():
        table = table.assign(**{f"y.label{i}": column for i, column in enumerate(dataset.y.T)})
    else:
        table = table.assign(y=dataset.y)
    return table if dataset.groups is None else table.assign(groups=dataset.groups)


def write_csv(dataset, path):
    frame(dataset).to_csv(path, index=False)


def write_tabs(dataset, path):
    frame(dataset).to_csv(path, index=False, sep="\t")


def write_decimal_comma(dataset, path):
    frame(dataset).to_csv(path, index=False, sep=";", decimal=",")


def write_blanks(dataset, path):
    path.write_text(frame(dataset).to_string(index=False))


def write_parquet(dataset, path):
    frame(dataset).to_parquet(path)


def write_feather(dataset, path):
    frame(dataset).to_feather(path)


WRITERS = {
    ".npz": write_npz,
    ".mat": write_mat,
    ".csv": write_csv,
    ".tsv": write_tabs,
    ".txt": write_decimal_comma,
    ".data": write_blanks,
    ".parquet": write_parquet,
    ".arrow": write_feather,
    ".feather": write_feather,
}


HDF5_WRITERS = {".h5": write_hdf5, ".hdf5": write_hdf5}


def test_every_suffix_has_a_case():
    assert {*WRITERS, *HDF5_WRITERS, ".npy"} == set(loading._READERS)


@parametrize(check for suffix, write in WRITERS.items() for check in reader_checks(suffix, write))
def test_files_of_other_programs(check):
    check()


@parametrize(reader_checks(".h5", write_hdf5), slow=lambda check: "cut_short" in check.name)
def test_hdf5_files(check):
    check()


@pytest.mark.slow
@parametrize([*reader_checks(".mat", write_mat73), *reader_checks(".hdf5", write_hdf5)])
def test_files_of_matlab_73_and_of_the_other_suffix(check):
    check()


@parametrize(
    reader_checks(
        ".npy",
        write_npy,
        holds={
            name: data for name, data in data_sets().items() if name not in {"modalities", "groups"}
        },
        labels="labels.npy",
    )
)
def test_arrays_with_a_file_of_labels(check):
    check()


def sorted_images():
    """Images in the order of their classes, as a folder holds them."""
    data = data_sets()["matrices"]
    rows = np.argsort(data.y, kind="stable")
    names = np.array(["ant", "bee", "cat"])
    return {
        "text labels": Dataset(data.X[rows], names[data.y[rows]], data.layout, "suite"),
        "numbers": Dataset(data.X[rows], data.y[rows], data.layout, "suite"),
    }


@parametrize(reader_checks("", write_images, holds=sorted_images()))
def test_folders_of_images(check):
    check()


def own_data_sets():
    """Those of the suite, and those that only files of raysel's hold."""
    data = data_sets()
    parts = {"first": data["vectors"], "second": data["matrices"]}
    cube = Dataset(data["vectors"].X, data["vectors"].y, Tensor((3, 1, 2)), "suite")
    return {**data, "a cube": cube}, join_tasks(parts, "suite")


@parametrize(
    check
    for suffix in (".parquet", ".arrow", ".feather")
    for check in reader_checks(suffix, save_dataset, holds=own_data_sets()[0], groups=None)
)
def test_files_of_raysels(check):
    check()


def test_several_tasks_come_back(tmp_path):
    joined = own_data_sets()[1]
    for suffix in (".parquet", ".arrow"):
        save_dataset(joined, tmp_path / f"joined{suffix}")
        found = loading.load_dataset(tmp_path / f"joined{suffix}")
        assert (found.content_hash, found.layout, found.name) == (
            joined.content_hash,
            joined.layout,
            "suite",
        )
