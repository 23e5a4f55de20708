"""Sparse matrices, which are refused with what they are and how to save them, whatever their
files are called.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import refusals
import scipy.io
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from raysel.data.dataset import Dataset
from raysel.data.loading import load_dataset

X = scipy.sparse.random_array((12, 7), density=0.4, rng=0, format="csr")
Y = np.arange(12) % 2
PARTS = ("data", "indices", "indptr")

pytestmark = pytest.mark.usefixtures("here")


def refused(*arguments, **options):
    """The refusal, which names all of these in one sentence that is read once."""
    said = refusals.refused(*arguments, **options)
    assert max(len(sentence.split()) for sentence in said.split(". ")) <= 25, said
    return said


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize("labels", [None, "labels.npy"])
def test_what_scipy_saves(kind, labels):
    scipy.sparse.save_npz("X.npz", X.asformat(kind))
    np.save("labels.npy", Y)
    refused("X.npz", "X.npz is a sparse matrix", "load_npz", labels=labels)


@pytest.mark.parametrize("labels", [None, "labels.npy"])
def test_arrays_of_a_matrix_in_files_of_their_own(labels):
    for part in PARTS:
        np.save(f"cells_{part}.npy", getattr(X, part))
    np.save("labels.npy", Y)
    for part in PARTS:
        refused(f"cells_{part}.npy", "is a sparse matrix", "csr_matrix((data,", labels=labels)


def test_arrays_of_a_matrix_in_one_file():
    np.savez("parts.npz", **{part: getattr(X, part) for part in PARTS}, y=Y)
    refused("parts.npz", "is a sparse matrix", "csr_matrix((data,")


@pytest.mark.parametrize("group", ["X", "matrix"])
def test_a_group_of_hdf5(group):
    with h5py.File("cells.h5", "w") as file:
        for part in PARTS:
            file[f"{group}/{part}"] = getattr(X, part)
        file["y"] = Y
        if group == "X":
            file["obsm/X_pca"] = np.ones((12, 2))
    refused("cells.h5", f"{group} is a sparse matrix", "csr_matrix((data,")


def test_a_sparse_matrix_beside_the_samples_is_left_alone():
    dense = np.random.default_rng(0).normal(size=(12, 3))
    np.savez("both.npz", expression=dense, y=Y, **{f"g_{p}": getattr(X, p) for p in PARTS})
    np.testing.assert_array_equal(load_dataset("both.npz").X, dense)


@pytest.mark.parametrize("place", ["X.mtx", "X.mtx.gz", "X.txt", "folder"])
def test_matrix_market(place):
    Path("folder").mkdir()
    scipy.io.mmwrite("written", X)
    text = Path("written.mtx").read_bytes()
    for name in ("X.mtx", "X.txt", "folder/matrix.mtx"):
        Path(name).write_bytes(text)
    Path("X.mtx.gz").write_bytes(gzip.compress(text))
    Path("folder/barcodes.tsv").write_text("a\n")
    refused(place, "is a sparse matrix in Matrix Market", "scipy.io.mmread")


@pytest.mark.parametrize("name", ["X.svm", "X.libsvm", "X.txt", "X.data"])
@pytest.mark.parametrize("comment", [None, "written here"])
def test_svmlight(name, comment):
    dump_svmlight_file(X, Y, name, comment=comment)
    refused(name, "is a sparse matrix in SVMlight", "load_svmlight_file")


def test_times_are_no_sparse_matrix():
    Path("times.txt").write_text("1 12:30\n2 13:45\n1 14:00\n2 15:10\n")
    assert "sparse matrix" not in refused("times.txt", "column")


def test_labels_and_frames():
    np.save("X.npy", X.toarray())
    scipy.sparse.save_npz("y.npz", X != 0)
    refused("X.npy", "y.npz is a sparse matrix", "as y", labels="y.npz")
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=list("abcdefg")).assign(y=Y)
    refused(frame, "'a' is sparse", "to_dense()", read=Dataset.from_frame, label="y")


@pytest.mark.parametrize("labels", ["labels.npy", "labels.csv"])
def test_an_array_of_one_axis_is_no_samples(labels):
    np.save("X.npy", np.arange(12.0))
    np.save("labels.npy", Y)
    Path("labels.csv").write_text("\n".join(map(str, Y)))
    assert "IndexError" not in refusals.refused("X.npy", "a row for each sample", labels=labels)
