"""Files of arrays as strangers have them: any names, labels in a file of their own, samples
last, MATLAB 7.3.
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from matlab73 import savemat73
from refusals import refused
from sklearn.datasets import load_digits

from raysel.data.formats import isolated
from raysel.data.formats.array_files import open_arrays
from raysel.data.formats.isolated_child import RefusedError, hdf5_array, hdf5_names
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.data.targets import Labels

RNG = np.random.default_rng(0)
N = 10
IMAGES = RNG.integers(0, 256, (N, 3, 2)).astype(np.uint8)
FLAT = IMAGES.reshape(N, -1)
LABELS = np.arange(N) % 3
WORDS = np.array(["ant", "bee", "camel"])[LABELS]
PEOPLE = np.arange(N) // 2


pytestmark = pytest.mark.usefixtures("here")


# Labels in a file of their own


def lines(*cells):
    return "".join(f"{cell}\n" for cell in cells)


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.mat", "y.csv", "y.txt"])
@pytest.mark.parametrize("y", [LABELS, WORDS])
def test_labels_of_any_format_beside_an_array(name, y):
    np.save("X.npy", IMAGES)
    np.save("y.npy", y)
    np.savez("y.npz", y=y, other=FLAT)
    scipy.io.savemat("y.mat", {"labels": y})
    if name.endswith(("csv", "txt")):
        Path(name).write_text(lines(*y), encoding="utf-8")
    data = load_dataset("X.npy", labels=name)
    assert data.layout == Matrix(3, 2)
    np.testing.assert_array_equal(data.X, FLAT)
    np.testing.assert_array_equal(data.y, y)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_table_of_labels_names_its_columns(sign):
    np.savez("X.npz", X=FLAT)
    rows = [f"s{i},{WORDS[i]},{PEOPLE[i]}" for i in range(N)]
    Path("t.csv").write_text(lines("id,kind,person", *rows).replace(",", sign), encoding="utf-8")
    data = load_dataset("X.npz", labels="t.csv", label="kind", groups="person")
    assert (data.y.tolist(), data.groups.tolist(), data.label) == (
        WORDS.tolist(),
        PEOPLE.tolist(),
        "kind",
    )
    refused("X.npz", "t.csv", "id, kind, person", "dataset.label", labels="t.csv")
    refused("X.npz", "no column sort", "id, kind, person", labels="t.csv", label="sort")


@pytest.mark.parametrize(
    ("text", "label", "y"),
    [
        (lines("diagnosis", *LABELS), "diagnosis", LABELS.tolist()),
        (lines(*(["New York", "Paris"] * 5)), None, ["New York", "Paris"] * 5),
    ],
)
def test_one_column_with_a_line_of_names_or_with_spaces(text, label, y):
    np.save("X.npy", FLAT)
    Path("y.csv").write_text(text, encoding="utf-8")
    data = load_dataset("X.npy", labels="y.csv")
    assert (data.y.tolist(), data.label) == (y, label)


@pytest.mark.parametrize(
    ("text", "culprits"),
    [
        (lines(*range(7)), ["y.csv", "7 lines for 10 samples"]),  # X has 6 columns
        (lines(*"abcabca"), ["y.csv", "7 lines for 10 samples"]),
        (lines(*(["a,b"] * N)), ["2 columns without names"]),
        (lines("k,k", *(["a,b"] * N)), ["same name"]),
        (lines("k,v", *(["a,b"] * (N - 1)), "a,"), ["no value for sample 9"]),
        (lines("k,v", *(['a,"b'] * N)), ["damaged"]),
        ("\n\n", ["y.csv"]),
        ("", ["empty (0 bytes)"]),
    ],
)
def test_a_text_of_labels_that_cannot_be_used(text, culprits):
    np.save("X.npy", FLAT)
    Path("y.csv").write_text(text, encoding="utf-8")
    refused("X.npy", *culprits, labels="y.csv", label="v" if "v" in text else None)


def test_labels_that_are_missing_unknown_or_there_twice():
    np.save("X.npy", FLAT)
    refused("X.npy", "X.npy", "dataset.labels")
    refused("X.npy", "y.npy", labels="y.npy")
    for name in ("y.doc", "t.csv"):
        Path(name).write_text("a,y\n1,0\n2,1\n")
    refused("X.npy", "y.doc", "unknown format", ".csv", labels="y.doc")
    np.save("y.npy", LABELS)
    np.savez("d.npz", X=FLAT, gnd=LABELS)
    refused("d.npz", "d.npz has labels of its own, the array gnd", labels="y.npy")
    refused("t.csv", "t.csv is a table: add the labels to it as a column", labels="y.npy")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was loaded",))


def test_pickled_objects_are_never_loaded():
    bomb = np.array([Bomb()] * N, dtype=object)
    np.save("y.npy", LABELS)
    np.save("X.npy", bomb)
    np.savez("y.npz", X=FLAT, y=bomb)
    np.savez("x.npz", X=bomb, y=LABELS)
    Path("raw.npy").write_bytes(pickle.dumps(Bomb()))
    with zipfile.ZipFile("raw.npz", "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Bomb()))
        archive.write("y.npy")
    refused("X.npy", "X.npy", "pickled", labels="y.npy")
    refused("y.npz", "array y", "pickled", "y.astype(str)")
    refused("x.npz", "array X", "pickled")
    refused("raw.npy", "raw.npy", "damaged", labels="y.npy")
    refused("raw.npz", "damaged")
    np.save("X.npy", FLAT)
    np.save("y.npy", np.array(["a", None] * 5, dtype=object))
    refused("X.npy", "y.npy", "pickled", labels="y.npy")


# Arrays of any names


EEG, MEG = RNG.standard_normal((N, 4)), RNG.standard_normal((N, 2))
CODES = np.eye(3)[LABELS]
NO_LABELS = {
    "X": FLAT,
    "weight": RNG.random(N),
    "who": PEOPLE,
    "kind": WORDS,
    "row": np.arange(N),
    "short": LABELS[:5],
}


@pytest.mark.parametrize(
    ("arrays", "label", "layout", "note"),
    [
        (
            {"meg": MEG, "eeg": EEG, "age": PEOPLE, "y": LABELS},
            "y",
            Modalities({"meg": 2, "eeg": 4}),
            "not used: age",
        ),
        (
            {"a": FLAT, "b": MEG, "codes": CODES[:, [2, 0, 1]], "target": LABELS, "Y": CODES},
            "target",
            Modalities({"a": 6, "b": 2}),
            "repeat the labels are left out: codes, Y",
        ),
        (
            {"images": IMAGES, "target": WORDS.astype("S")},
            None,
            Matrix(3, 2),
            "images (10, 3, 2) is taken as X",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_arrays_of_any_names_are_samples_or_modalities_in_the_files_order(
    arrays, label, layout, note, suffix
):
    np.savez("a.npz", **arrays)
    scipy.io.savemat("a.mat", arrays | {"target": WORDS} if label is None else arrays)
    data = load_dataset(f"a.{suffix}", label=label)
    assert data.layout == layout
    names = layout.slices() or ["images"]
    np.testing.assert_array_equal(
        data.X, np.hstack([arrays[name].reshape(N, -1) for name in names])
    )
    assert data.y.tolist() == (WORDS if label is None else LABELS).tolist()
    assert any(note in one for one in data.notes)


def test_a_descriptor_that_lacks_a_row_is_refused_and_not_left_out():
    np.savez("a.npz", meg=MEG, eeg=EEG[:-1], y=LABELS)
    refused("a.npz", "eeg has 9 rows", "10 labels")


@pytest.mark.parametrize(
    ("arrays", "culprits", "options"),
    [
        (
            {"images": IMAGES, "others": IMAGES, "y": LABELS},
            ["images (10, 3, 2), others (10, 3, 2)", "X"],
            {},
        ),
        (NO_LABELS, ["no array y", "dataset.label; it may be who or kind."], {}),
        ({"X": FLAT, "label": LABELS, "target": LABELS}, ["label and target", "dataset.label"], {}),
        ({"X": FLAT, "label": LABELS}, ["no array kind for the labels"], {"label": "kind"}),
    ],
)
def test_arrays_of_which_the_samples_or_labels_are_open(arrays, culprits, options):
    np.savez("a.npz", **arrays)
    refused("a.npz", *culprits, **options)


def test_labels_and_groups_of_unusual_names_are_given():
    np.savez("a.npz", **NO_LABELS)
    data = load_dataset("a.npz", label="kind", groups="who")
    assert (data.label, data.y.tolist(), data.groups.tolist()) == (
        "kind",
        WORDS.tolist(),
        PEOPLE.tolist(),
    )


# Samples on the last axis


@pytest.mark.parametrize("shape", [(3, 2), (7,), (2, 3, 4)])
def test_samples_on_the_last_axis_are_turned(shape):
    X = RNG.random((N, *shape))
    scipy.io.savemat("a.mat", {"X": np.moveaxis(X, 0, -1), "y": LABELS + 1})
    data = load_dataset("a.mat")
    assert data.layout == Tensor(shape)
    np.testing.assert_array_equal(data.X, X.reshape(N, -1))
    assert any("last axis" in note for note in data.notes)


def test_an_axis_that_is_not_plain_is_refused_or_noted():
    for shape, *culprits in (
        ((3, N, N), "(n, h, w)"),
        ((3, N, 2), "(n, h, w)"),
        ((3, 4), "3 rows", "10"),
    ):
        np.savez("a.npz", X=RNG.random(shape), y=LABELS)
        refused("a.npz", *culprits)
    cube = RNG.random((N, 3, N))
    np.savez("c.npz", X=cube, y=LABELS)
    data = load_dataset("c.npz")
    np.testing.assert_array_equal(data.X, cube.reshape(N, -1))
    assert any("first and last axis" in note for note in data.notes)


# HDF5 and MATLAB 7.3


VARIABLES = {
    "double": RNG.random((4, 3)),
    "single": RNG.random((2, 3, 4)).astype(np.float32),
    "small": RNG.integers(0, 9, (2, 3, 4, 5)).astype(np.uint8),
    "row": np.arange(5.0)[None],
    "column": np.arange(5, dtype=np.int32)[:, None],
    "number": np.array([[3.5]]),
    "logical": np.array([[True, False], [False, False], [True, True]]),
    "words": WORDS,
    "word": np.array(["zwölf"]),
    "sparse": scipy.sparse.random(6, 5, 0.3, "csc", rng=RNG),
    "zero": scipy.sparse.csc_matrix((3, 4)),
}


def test_a_file_of_matlab_73_reads_as_one_of_version_7():
    scipy.io.savemat("v7.mat", VARIABLES)
    savemat73(Path("v73.mat"), VARIABLES)
    with open_arrays(Path("v7.mat")) as old, open_arrays(Path("v73.mat")) as new:
        assert sorted(old.names) == sorted(new.names)
        for name in VARIABLES:
            expected, found = np.asarray(old.get(name)), np.asarray(new.get(name))
            np.testing.assert_array_equal(found, expected, strict=name != "logical", err_msg=name)


@pytest.mark.parametrize("suffix", ["mat", "h5", "npz"])
def test_a_file_without_arrays_or_samples_is_refused_for_that(suffix):
    def write(**arrays):
        if suffix == "h5":
            with h5py.File("a.h5", "w") as file:
                for name, values in arrays.items():
                    file[name] = values
            return
        save = scipy.io.savemat if suffix == "mat" else lambda path, kept: np.savez(path, **kept)
        save(f"a.{suffix}", arrays)

    write()
    refused(f"a.{suffix}", f"a.{suffix} holds no arrays")
    write(X=np.empty((0, 6)), y=np.empty(0))
    refused(f"a.{suffix}", "X is empty, of shape (0, 6)")


def test_a_struct_alone_is_named():
    scipy.io.savemat("a.mat", {"data": {"X": FLAT, "y": LABELS}})
    refused("a.mat", "data is a cell array or a struct")


def test_cells_of_matlab_are_refused_by_name():
    savemat73(Path("a.mat"), {"X": FLAT, "y": [LABELS, LABELS]})
    scipy.io.savemat("b.mat", {"X": IMAGES, "y": np.array(["a", "bcd"] * 5, dtype=object)})
    for name in ("a.mat", "b.mat"):
        refused(name, name, "y is a cell array")


def test_arrays_in_groups_of_hdf5_are_named_by_their_path():
    with h5py.File("a.h5", "w") as file:
        file["train/pixels"], file["train/kind"] = IMAGES, WORDS.tolist()
        file["kinds"] = WORDS.astype("S")
    data = load_dataset("a.h5", label="train/kind")
    assert (data.layout, data.y.tolist()) == (Matrix(3, 2), WORDS.tolist())
    assert load_dataset("a.h5", label="kinds").y.tolist() == WORDS.tolist()
    refused("a.h5", "dataset.label; it may be kinds or train/kind.")


def test_data_in_other_files_are_not_read():
    with h5py.File("other.h5", "w") as file:
        file["secret"] = FLAT
    Path("raw").write_bytes(FLAT.tobytes())
    layout = h5py.VirtualLayout(FLAT.shape, FLAT.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "secret", FLAT.shape)
    with h5py.File("a.h5", "w") as file:
        file["y"], file["plain"], file["refs"] = (
            LABELS,
            FLAT,
            np.array([file.ref] * N, h5py.ref_dtype),
        )
        file["linked"], file["soft"] = (
            h5py.ExternalLink("other.h5", "/secret"),
            h5py.SoftLink("/linked"),
        )
        file["away"] = h5py.ExternalLink("other.h5", "/")
        file.create_dataset("outside", FLAT.shape, FLAT.dtype, external=[("raw", 0, FLAT.nbytes)])
        file.create_virtual_dataset("virtual", layout)
        file["loop"] = file["/"]
    with h5py.File("a.h5") as file:
        assert set(hdf5_names(file)) >= {
            "y",
            "plain",
            "linked",
            "soft",
            "outside",
            "virtual",
            "away",
        }
        np.testing.assert_array_equal(hdf5_array(file, "plain", 10**9), FLAT)
        for name in ("linked", "soft", "away", "outside", "virtual", "refs"):
            with pytest.raises(RefusedError, match=name):
                hdf5_array(file, name, 10**9)
    assert load_dataset("a.h5").n_features == 6  # the one array that is read is X
    with h5py.File("a.h5", "a") as file:
        file["X"] = h5py.ExternalLink("other.h5", "/secret")
    refused("a.h5", "X is a link to /secret", "not followed")


def test_an_array_that_claims_more_than_is_stored_is_refused():
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("X", (N, 10**9), "f8", chunks=(1, 10**4), compression="gzip")
        file["y"] = LABELS
    refused("a.h5", "a.h5", "X claims 80000000000 bytes, of which the file holds 0")


def test_without_h5py_it_is_named(monkeypatch):
    savemat73(Path("a.mat"), {"X": FLAT, "y": LABELS})
    monkeypatch.setitem(isolated.sys.modules, "h5py", None)
    refused("a.mat", "a.mat", "pip install 'raysel[hdf5]'")


# One label in each row


def test_a_label_in_each_row_is_taken_for_classes():
    np.savez("b.npz", X=FLAT, Y=CODES.astype(int) * 2 - 1, label_names=["ant", "bee", "camel"])
    assert load_dataset("b.npz").y.tolist() == WORDS.tolist()
    assert any("exactly one 1 in each row" in note for note in load_dataset("b.npz").notes)
    assert set(load_dataset("b.npz", exclude_classes=["bee"]).y) == {"ant", "camel"}
    refused("b.npz", "exclude_classes", exclude_labels=["bee"])
    Path("t.csv").write_text(lines("a,y.ant,y.bee", "1,1,0", "2,0,1", "3,1,0"), encoding="utf-8")
    assert load_dataset("t.csv").y.tolist() == ["ant", "bee", "ant"]


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=4, max_size=8))
@settings(max_examples=30, derandomize=True)
def test_only_rows_of_one_label_are_classes(tmp_path_factory, rows):
    Y = np.array(
        [*rows, [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    )  # no label is constant unless all rows have it
    path = tmp_path_factory.mktemp("rows") / "a.npz"
    np.savez(path, X=np.arange(2.0 * len(Y)).reshape(-1, 2), Y=Y)
    data = load_dataset(path)
    assert (data.target == Labels()) == any(sum(row) != 1 for row in Y.tolist())


# Column-major order


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (6, 1), (2, 3, 4), (4, 1, 3, 2)])
def test_columns_in_order_f_are_those_of_reshape(shape):
    X = RNG.random((N, int(np.prod(shape))))
    names = [f"p{i}" for i in range(X.shape[1])]
    pd.DataFrame(X, columns=names).assign(y=LABELS).to_csv("t.csv", index=False)
    data = load_dataset("t.csv", shape=shape, order="F")
    expected = np.stack([row.reshape(shape, order="F") for row in X])
    np.testing.assert_array_equal(data.X.reshape(N, *shape), expected)
    np.testing.assert_array_equal(data.feature_names, np.reshape(names, shape, order="F").ravel())
    np.savez("a.npz", X=X, y=LABELS)
    same = load_dataset("a.npz", shape=shape, order="F")
    np.testing.assert_array_equal(same.X, data.X)
    assert same.feature_names == tuple(Tensor(shape).default_names())
    images = X.reshape(N, *shape)  # which are turned
    np.savez("b.npz", X=images, y=LABELS)
    turned = load_dataset("b.npz", order="F")
    assert turned.layout == Tensor(shape[::-1])
    np.testing.assert_array_equal(
        turned.X.reshape(N, *shape[::-1]), images.transpose(0, *range(len(shape), 0, -1))
    )


@pytest.mark.parametrize(
    ("source", "culprits", "options"),
    [
        ("digits.npz", ["64 columns", "give shape", "[8, 8] or [4, 16] or [2, 32]"], {}),
        ("digits.npz", ["[8, 8] or"], {"shape": [64]}),
        ("digits.npz", ["modalities"], {"modalities": {"a": 32, "b": 32}}),
        ("iris", ["4 columns", "[2, 2] or"], {}),
    ],
)
def test_order_f_needs_a_shape(source, culprits, options):
    np.savez("digits.npz", X=load_digits().data, y=load_digits().target)
    refused(source, *culprits, order="F", **options)
