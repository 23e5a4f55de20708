"""Loading: every format gives the same data set; whatever cannot be used is refused in one
sentence.
"""

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
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.data.loading import load_dataset, save_dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 3, 2)).astype(np.uint8)
LABELS, GROUPS = np.arange(10) % 3, np.arange(10) // 2


pytestmark = pytest.mark.usefixtures("here")


def test_content_hash_does_not_depend_on_the_format():
    table = pd.DataFrame(IMAGES.reshape(10, -1), columns=[f"p{i}" for i in range(6)]).assign(
        y=LABELS, person=GROUPS
    )
    np.savez("x.npz", X=IMAGES, y=LABELS, person=GROUPS)
    scipy.io.savemat("x.mat", {"X": IMAGES, "y": LABELS, "person": GROUPS})
    table.to_csv("x.csv", index=False)
    table.to_parquet("x.parquet")
    table.to_feather("x.arrow")
    hashes = set()
    for suffix in ("npz", "mat", "csv", "parquet", "arrow"):
        data = load_dataset(f"x.{suffix}", groups="person", shape=(3, 2))
        names = Matrix(3, 2).default_names()
        hashes.add(
            Dataset(data.X, data.y, data.layout, "any", data.groups, tuple(names)).content_hash
        )
    assert len(hashes) == 1


def test_arrays_of_any_order_become_a_tensor_in_c_order():
    volumes = RNG.standard_normal((6, 2, 3, 4))
    np.savez("v.npz", X=volumes, y=np.arange(6) % 2)
    data = load_dataset("v.npz")
    assert data.layout == Tensor((2, 3, 4))
    np.testing.assert_array_equal(
        data.X, volumes[(slice(None), *data.layout.coordinates().values())]
    )
    assert load_dataset("v.npz", shape=[6, 4]).layout == Matrix(6, 4)


@pytest.mark.parametrize("turned", [(10, 1), (1, 10)])
def test_mat_labels_may_be_a_row_or_a_column(turned):
    scipy.io.savemat(
        "m.mat", {"fea": IMAGES.reshape(10, -1), "gnd": LABELS.astype(float).reshape(turned)}
    )
    data = load_dataset("m.mat")
    np.testing.assert_array_equal(data.y, LABELS)
    assert data.y.dtype == np.int64


def test_a_tensor_column_of_another_program_is_read():
    table = pa.table(
        {"X": pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES), "label": pa.array(LABELS)}
    )
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
    constant = {
        name
        for name, column in zip(digits.feature_names, digits.X.T, strict=True)
        if np.ptp(column) == 0
    }
    assert constant == {"r0c0", "r4c0", "r4c7"}
    wine = load_dataset("wine")
    assert wine.feature_names == tuple(load_wine().feature_names)
    np.testing.assert_array_equal(wine.y, load_wine().target)
    for name in ("iris", "breast_cancer"):
        assert load_dataset(name).name == name


def test_a_file_is_looked_up_here_and_then_in_raysel_data(tmp_path, monkeypatch):
    refused("no.npz", str(tmp_path / "no.npz"), "$RAYSEL_DATA", "not set", "arrays X and y")
    store = tmp_path / "store"
    store.mkdir()
    monkeypatch.setenv("RAYSEL_DATA", str(store))
    refused("no.npz", str(tmp_path / "no.npz"), str(store / "no.npz"))
    for place in (store / "d.npz", tmp_path / "d.npz"):
        np.savez(place, X=IMAGES, y=LABELS)
        assert find_data_file("d.npz") == place


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


def test_what_cannot_be_loaded_is_named():
    np.savez("a.npz", age=LABELS, y=LABELS)
    np.savez("d.npz", X=IMAGES, y=LABELS)
    np.savez("short.npz", X=IMAGES, y=LABELS[:9])
    np.savez("flat.npz", X=GROUPS, y=LABELS)
    scipy.io.savemat("a.mat", {"pixels": IMAGES, "person": LABELS, "row": np.arange(10)})
    scipy.io.savemat("b.mat", {"X": IMAGES})
    for source, culprits, options in (
        ("digist", ["Did you mean digits?"], {}),
        ("faces.xyz", ["faces.xyz", ".npz", ".parquet"], {}),
        ("digits", ["no array 'person'"], {"groups": "person"}),
        ("wine", ["drop is for data files"], {"drop": ["alcohol"]}),
        ("d.npz", ["[4, 2] has 8 cells", "6 features", "[2, 3] or [1, 6]"], {"shape": [4, 2]}),
        ("d.npz", ["positive whole numbers"], {"shape": [-3, -2]}),
        ("digits", ["[8, 8] or [4, 16] or [2, 32]"], {"shape": [8, 9]}),
        ("a.npz", ["no array X", "age, y"], {}),
        ("a.mat", ["no array y", "pixels, person, row", "dataset.label; it may be person."], {}),
        ("b.mat", ["no array y", "dataset.labels"], {}),
        ("d.npz", ["no array person for the groups"], {"groups": "person"}),
        ("short.npz", ["10 rows", "9"], {}),
        ("flat.npz", ["X is of shape (10,)"], {}),
    ):
        refused(source, *culprits, **options)


# Several modalities and several labels a sample

X = np.arange(24.0).reshape(4, 6) ** 1.5
Y = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
Y_NAMES = ["grass", "sky", "cow"]
VIEWS = {
    "view_0": X[:, :2],
    "view_1": X[:, 2:],
    "view_names": ["hog", "lbp"],
    "Y": Y,
    "label_names": Y_NAMES,
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_views_become_modalities_which_are_stored_with_the_labels(suffix):
    np.savez("views.npz", **VIEWS)
    data = load_dataset("views.npz")
    assert data.layout == Modalities({"hog": 2, "lbp": 4})
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, Y)
    assert (data.label_names, data.feature_names[1:3]) == (tuple(Y_NAMES), ("hog[1]", "lbp[0]"))
    save_dataset(data, f"kept.{suffix}")
    again = load_dataset(f"kept.{suffix}")
    assert (again.content_hash, again.layout, again.label_names) == (
        data.content_hash,
        data.layout,
        data.label_names,
    )


def test_more_than_ten_views_are_not_sorted_as_words():
    arrays = {f"view_{i}": np.full((4, 1), float(i)) + np.arange(4.0)[:, None] for i in range(12)}
    np.savez("many.npz", y=[0, 1, 0, 1], **arrays)
    assert load_dataset("many.npz").X[0].tolist() == list(range(12))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["{}.{}", "{}[{}]"])
def test_column_prefixes_name_modalities_and_labels(suffix, name):
    columns = [name.format("hog", i) for i in range(2)] + [name.format("lbp", i) for i in range(4)]
    table = pd.DataFrame(X, columns=columns)
    for label, column in zip(Y_NAMES, Y.T, strict=True):
        table.insert(1, f"y.{label}", column)
    path = f"table.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    data = load_dataset(path)
    assert data.layout == Modalities({"hog": 2, "lbp": 4})
    np.testing.assert_array_equal(data.X, X)
    assert set(data.label_names) == set(Y_NAMES)
    np.testing.assert_array_equal(
        data.y, Y[:, [Y_NAMES.index(label) for label in data.label_names]]
    )


def test_modalities_and_labels_that_are_stated():
    np.savez("flat.npz", X=X, y=[0, 1, 0, 1])
    assert load_dataset("flat.npz", modalities={"a": 5, "b": 1}).layout == Modalities(
        {"a": 5, "b": 1}
    )
    np.savez("signs.npz", X=X, Y=2 * Y - 1)
    np.testing.assert_array_equal(load_dataset("signs.npz").y, Y)
    np.savez("views.npz", **VIEWS | {"Y": Y * [1, 0, 1]})
    data = load_dataset("views.npz", exclude_labels=["sky"])
    assert data.label_names == ("grass", "cow")
    np.testing.assert_array_equal(data.y, Y[:, [0, 2]])


@pytest.mark.parametrize(
    ("changes", "culprits", "options"),
    [
        ({"view_names": ["hog", "hog"]}, ["hog twice"], {}),
        ({"view_1": X[:3]}, ["view_1 has shape (3, 6)"], {}),
        ({"Y": 3 * Y}, ["0/1 indicator"], {}),
        ({"Y": Y * [1, 0, 1]}, ["same value of label sky", "exclude_labels"], {}),
        ({}, ["no label sy; did you mean `sky`?"], {"exclude_labels": ["sy"]}),
        ({}, ["7 columns in total", "6 features", "sum to 6"], {"modalities": {"a": 5, "b": 2}}),
    ],
)
def test_views_that_cannot_be_used(changes, culprits, options):
    np.savez("views.npz", **VIEWS | changes)
    refused("views.npz", *culprits, **options)
