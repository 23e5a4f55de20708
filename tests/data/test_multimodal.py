"""Several modalities a sample and several labels a sample, from every kind of file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from raysel.core.errors import DataError
from raysel.data.formats.writers import save_dataset
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import load_dataset

X = np.arange(24.0).reshape(4, 6) ** 1.5
Y = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]])
Y_NAMES = ["grass", "sky", "cow"]


@pytest.fixture
def views(tmp_path):
    path = tmp_path / "views.npz"
    np.savez(path, view_0=X[:, :2], view_1=X[:, 2:], view_names=["hog", "lbp"], Y=Y, label_names=Y_NAMES)
    return path


def test_views_become_modalities_in_the_order_of_their_numbers(views):
    data = load_dataset(views)
    assert data.layout == Modalities({"hog": 2, "lbp": 4})
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, Y)
    assert data.label_names == tuple(Y_NAMES)
    assert data.feature_names[1:3] == ("hog[1]", "lbp[0]")


def test_more_than_ten_views_are_not_sorted_as_words(tmp_path):
    arrays = {f"view_{i}": np.full((4, 1), float(i)) + np.arange(4.0)[:, None] for i in range(12)}
    np.savez(tmp_path / "many.npz", y=[0, 1, 0, 1], **arrays)
    assert load_dataset(tmp_path / "many.npz").X[0].tolist() == list(range(12))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_round_trip_keeps_modalities_labels_and_hash(views, tmp_path, suffix):
    data = load_dataset(views)
    save_dataset(data, tmp_path / f"kept{suffix}")
    again = load_dataset(tmp_path / f"kept{suffix}")
    assert again.content_hash == data.content_hash
    assert (again.layout, again.label_names) == (data.layout, data.label_names)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["{}.{}", "{}[{}]"])
def test_column_prefixes_name_modalities_and_labels(tmp_path, suffix, name):
    columns = [name.format("hog", i) for i in range(2)] + [name.format("lbp", i) for i in range(4)]
    table = pd.DataFrame(X, columns=columns)
    for label, column in zip(Y_NAMES, Y.T, strict=True):
        table.insert(1, f"y.{label}", column)
    path = tmp_path / f"table.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    data = load_dataset(path)
    assert data.layout == Modalities({"hog": 2, "lbp": 4})
    np.testing.assert_array_equal(data.X, X)
    assert set(data.label_names) == set(Y_NAMES)
    for label, column in zip(data.label_names, data.y.T, strict=True):
        np.testing.assert_array_equal(column, Y[:, Y_NAMES.index(label)])


def test_plain_column_names_stay_a_plain_table(tmp_path):
    table = pd.DataFrame(X, columns=["hog.0", "hog.1", "age", "lbp.0", "lbp.1", "lbp.2"]).assign(y=[0, 1, 0, 1])
    table.to_csv(tmp_path / "plain.csv", index=False)
    assert load_dataset(tmp_path / "plain.csv").layout == Tensor((6,))


def test_declared_modalities_must_add_up(tmp_path):
    np.savez(tmp_path / "flat.npz", X=X, y=[0, 1, 0, 1])
    assert load_dataset(tmp_path / "flat.npz", modalities={"a": 5, "b": 1}).layout == Modalities({"a": 5, "b": 1})
    with pytest.raises(DataError, match=r"7 columns in total.*6 features.*sum to 6"):
        load_dataset(tmp_path / "flat.npz", modalities={"a": 5, "b": 2})


def test_a_modality_named_twice_is_refused(tmp_path):
    np.savez(tmp_path / "twice.npz", view_0=X[:, :2], view_1=X[:, 2:], view_names=["hog", "hog"], y=[0, 1, 0, 1])
    with pytest.raises(DataError, match="hog twice"):
        load_dataset(tmp_path / "twice.npz")


def test_views_of_different_samples_are_refused(tmp_path):
    np.savez(tmp_path / "odd.npz", view_0=X, view_1=X[:3], y=[0, 1, 0, 1])
    with pytest.raises(DataError, match=r"view_1 has shape \(3, 6\)"):
        load_dataset(tmp_path / "odd.npz")


def test_signs_are_an_indicator_too(tmp_path):
    np.savez(tmp_path / "signs.npz", X=X, Y=2 * Y - 1)
    np.testing.assert_array_equal(load_dataset(tmp_path / "signs.npz").y, Y)


def test_neither_labels_nor_indicator_is_refused(tmp_path):
    np.savez(tmp_path / "counts.npz", X=X, Y=3 * Y)
    with pytest.raises(DataError, match="0/1 indicator"):
        load_dataset(tmp_path / "counts.npz")


def test_labels_are_excluded_by_name(views):
    data = load_dataset(views, exclude_labels=["sky"])
    assert data.label_names == ("grass", "cow")
    np.testing.assert_array_equal(data.y, Y[:, [0, 2]])
    with pytest.raises(DataError, match=r"no label sy; did you mean sky\?"):
        load_dataset(views, exclude_labels=["sy"])


def test_a_label_without_positives_or_negatives_is_named(tmp_path):
    lacking = Y.copy()
    lacking[:, 1] = 0
    np.savez(tmp_path / "lacking.npz", X=X, Y=lacking, label_names=Y_NAMES)
    with pytest.raises(DataError, match=r"same value of label sky.*exclude_labels"):
        load_dataset(tmp_path / "lacking.npz")
    assert load_dataset(tmp_path / "lacking.npz", exclude_labels=["sky"]).label_names == ("grass", "cow")


@pytest.mark.parametrize(
    ("name", "n", "widths", "n_classes"),
    [
        ("MSRCv1_6v.npz", 210, [1302, 48, 512, 100, 256, 200], 7),
        ("Handwritten_mfeat.npz", 2000, [240, 76, 216, 47, 64, 6], 10),
        ("MSRCv2_6v_multilabel.npz", 591, [48, 256, 100, 1230, 512, 1302], 23),
        ("Scene_multilabel.npz", 2407, [49] * 6, 6),
    ],
)
def test_real_files_are_what_their_readme_says(real_data, name, n, widths, n_classes):
    data = load_dataset(real_data(name))
    assert (data.n_samples, list(data.layout.modalities.values()), len(data.classes)) == (n, widths, n_classes)
