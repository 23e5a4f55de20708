"""Readers: every format gives the same data set; whatever cannot be used is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
from refusals import refused
from sklearn.datasets import load_digits, load_wine

from raysel.data.dataset import Dataset
from raysel.data.formats.files import find_data_file
from raysel.data.layouts import Matrix, Tensor
from raysel.data.loading import load_dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 3, 2)).astype(np.uint8)
LABELS = np.arange(10) % 3
GROUPS = np.arange(10) // 2


pytestmark = pytest.mark.usefixtures("here")


def write_plain(path, y=LABELS):
    """The images as a plain file of each format: tables without a shape, arrays with one."""
    table = pd.DataFrame(IMAGES.reshape(10, -1), columns=[f"p{i}" for i in range(6)]).assign(y=y, person=GROUPS)
    match path.suffix:
        case ".npz":
            np.savez(path, X=IMAGES, y=y, person=GROUPS)
        case ".mat":
            scipy.io.savemat(path, {"X": IMAGES, "y": y, "person": GROUPS})
        case ".csv":
            table.to_csv(path, index=False)
        case ".parquet":
            table.to_parquet(path)
        case ".arrow" | ".feather":
            table.to_feather(path)


FORMATS = [".npz", ".mat", ".csv", ".parquet", ".arrow", ".feather"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_tables_keep_their_column_names_and_text_labels(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    write_plain(path, y=np.array(["cat", "dog"] * 5))
    data = load_dataset(path, groups="person")
    assert data.feature_names == tuple(f"p{i}" for i in range(6))
    assert data.layout == Tensor((6,))
    assert data.y.tolist() == ["cat", "dog"] * 5


def test_content_hash_does_not_depend_on_the_format(tmp_path):
    hashes = set()
    for suffix in FORMATS:
        path = tmp_path / f"x{suffix}"
        write_plain(path)
        data = load_dataset(path, groups="person", shape=(3, 2))
        names = Matrix(3, 2).default_names()
        hashes.add(Dataset(data.X, data.y, data.layout, "any", data.groups, tuple(names)).content_hash)
    assert len(hashes) == 1


def test_arrays_of_any_order_become_a_tensor_in_c_order(tmp_path):
    volumes = RNG.standard_normal((6, 2, 3, 4))
    np.savez(tmp_path / "v.npz", X=volumes, y=np.arange(6) % 2)
    data = load_dataset("v.npz")
    assert data.layout == Tensor((2, 3, 4))
    coordinates = tuple(data.layout.coordinates().values())
    np.testing.assert_array_equal(data.X, volumes[(slice(None), *coordinates)])
    assert load_dataset("v.npz", shape=[6, 4]).layout == Matrix(6, 4)


@pytest.mark.parametrize("turned", [(10, 1), (1, 10)])
def test_mat_labels_may_be_a_row_or_a_column(turned):
    scipy.io.savemat("m.mat", {"fea": IMAGES.reshape(10, -1), "gnd": LABELS.astype(float).reshape(turned)})
    data = load_dataset("m.mat")
    np.testing.assert_array_equal(data.y, LABELS)
    assert data.y.dtype == np.int64


def test_categories_and_an_index_of_a_pandas_table_are_understood():
    table = pd.DataFrame({"a": [1.5, 2, 3], "target": pd.Categorical(["u", "v", "u"])}, index=[7, 8, 10])
    table.to_parquet("t.parquet")
    data = load_dataset("t.parquet")
    assert data.feature_names == ("a",)
    assert data.y.tolist() == ["u", "v", "u"]


def test_a_tensor_column_of_somebody_else_is_read():
    X = pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)
    table = pa.table({"X": X, "label": pa.array(LABELS)})
    with pa.ipc.new_file("other.arrow", table.schema) as writer:
        writer.write_table(table)
    data = load_dataset("other.arrow")
    assert data.layout == Matrix(3, 2)
    np.testing.assert_array_equal(data.X, IMAGES.reshape(10, -1))


def test_builtin_sets():
    digits = load_dataset("digits")
    assert digits.layout == Matrix(8, 8)
    np.testing.assert_array_equal(digits.X, load_digits().data)
    # The border pixels that are known to be blank in all 1797 images.
    constant = {name for name, column in zip(digits.feature_names, digits.X.T, strict=True) if np.ptp(column) == 0}
    assert constant == {"r0c0", "r4c0", "r4c7"}
    wine = load_dataset("wine")
    assert wine.feature_names == tuple(load_wine().feature_names)
    np.testing.assert_array_equal(wine.y, load_wine().target)
    for name in ("iris", "breast_cancer"):
        assert load_dataset(name).name == name


def test_a_file_is_looked_up_here_and_then_in_raysel_data(tmp_path, monkeypatch):
    store = tmp_path / "store"
    store.mkdir()
    write_plain(store / "d.npz")
    monkeypatch.setenv("RAYSEL_DATA", str(store))
    assert find_data_file("d.npz") == store / "d.npz"
    write_plain(tmp_path / "d.npz")
    assert find_data_file("d.npz") == tmp_path / "d.npz"


def test_a_missing_file_names_both_places_and_the_format(tmp_path, monkeypatch):
    refused("no.npz", str(tmp_path / "no.npz"), "$RAYSEL_DATA", "not set", "(n, h, w)")
    monkeypatch.setenv("RAYSEL_DATA", str(tmp_path / "store"))
    refused("no.npz", str(tmp_path / "no.npz"), str(tmp_path / "store" / "no.npz"))
    refused(tmp_path / "no.mat", str(tmp_path / "no.mat"))


@pytest.mark.parametrize("name", ["ORL.npz", "UMIST.npz", "USPS.npz"])
def test_a_missing_face_or_digit_set_comes_with_its_recipe(name):
    refused(name, f'np.savez("{name}"', "faces" if "USPS" not in name else "digits")


def test_the_recipe_for_orl_makes_a_file_that_loads(monkeypatch):
    """Run the printed lines with a stand-in for the download, which CI cannot reach."""
    message = refused("ORL.npz", "fetch_olivetti_faces")
    lines = [line.strip() for line in message.splitlines() if line.startswith("    ")]
    faces = type("Faces", (), {"images": RNG.random((400, 64, 64)), "target": np.arange(400) // 10})
    monkeypatch.setattr("sklearn.datasets.fetch_olivetti_faces", lambda: faces)
    exec("\n".join(lines), {})
    data = load_dataset("ORL.npz")
    assert (data.layout, len(data.classes)) == (Matrix(32, 32), 40)
    assert data.X[3, 32 * 5 + 7] == pytest.approx(faces.images[3, 10:12, 14:16].mean())


def test_unknown_names_and_suffixes():
    refused("digist", "Did you mean digits?")
    refused("faces.xyz", "faces.xyz", ".npz", ".parquet")
    refused("digits", "no array 'person'", groups="person")
    refused("wine", "drop is for data files", drop=["alcohol"])


def test_a_shape_must_multiply_to_the_number_of_features():
    np.savez("d.npz", X=IMAGES, y=LABELS)
    refused("d.npz", "[4, 2] has 8 cells", "6 features", "[2, 3] or [1, 6]", shape=[4, 2])
    refused("d.npz", "positive whole numbers", shape=[-3, -2])
    refused("digits", "[8, 8] or [4, 16] or [2, 32]", shape=[8, 9])


def test_arrays_that_are_missing_or_do_not_fit_are_named():
    np.savez("a.npz", age=LABELS, y=LABELS)
    refused("a.npz", "no array X", "age, y")
    scipy.io.savemat("a.mat", {"pixels": IMAGES, "person": LABELS, "row": np.arange(10)})
    refused("a.mat", "no array y", "pixels, person, row", "dataset.label; it may be person.")
    scipy.io.savemat("b.mat", {"X": IMAGES})
    refused("b.mat", "no array y", "dataset.labels")
    np.savez("b.npz", X=IMAGES, y=LABELS)
    refused("b.npz", "no array person for the groups", groups="person")
    np.savez("short.npz", X=IMAGES, y=LABELS[:9])
    refused("short.npz", "10 rows", "9")
    np.savez("flat.npz", X=np.arange(10.0), y=LABELS)
    refused("flat.npz", "X is of shape (10,)")
