"""First attempts with an own file that failed: the message names what to set, and what it names
works.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from small_studies import write_digits

import raysel
from raysel.core.errors import DataError
from raysel.run.api import prepare_study
from raysel.tune import main

TABLE = ["--set", "solver={name: rfs}", "--set", "evaluation.n_features=[2, 4]"]


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """A table of 13 columns without labels, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    return load_wine(as_frame=True).data


def said(capsys, *arguments):
    assert main(["digits-smr", *arguments, "--dry-run"]) == 2
    return capsys.readouterr().err


def dataset(path="t.csv", **keys):
    given = [f"dataset.path={path}", *(f"dataset.{key}={value}" for key, value in keys.items())]
    return [word for setting in given for word in ("--set", setting)]


def test_a_plain_table_over_the_builtin_study_is_mended_at_one_go(wine, capsys):
    wine.assign(y=load_wine().target).to_csv("t.csv", index=False)
    message = said(capsys, *dataset())
    assert "2 settings do not fit t:" in message
    assert "dataset.shape" in message
    features = re.search(r"evaluation\.n_features: \[[\d, ]+\]", message)[0].replace(": ", "=")
    solver = re.search(r"solver: \{name: \w+\}", message)[0].replace(": ", "=", 1)
    assert features == "evaluation.n_features=[4, 8, 13]"
    study = prepare_study("digits-smr", ["dataset.path=t.csv", features, solver])
    assert study.dataset.n_features == 13


def test_a_class_of_one_sample_names_the_key_that_leaves_it_out(wine, capsys):
    wine.assign(y=["lonely one", *["ä", "b"] * 88, "ä"]).to_csv("t.csv", index=False)
    message = said(capsys, *dataset(), *TABLE)
    assert "class lonely one has 1 sample, too few for cv.outer=3 folds" in message
    key = re.search(r'dataset\.exclude_classes: (\["lonely one"\])', message)[1]
    assert main(["digits-smr", *dataset(exclude_classes=key), *TABLE, "--dry-run"]) == 0
    wine.assign(y=["c", "c", *["a", "b"] * 88]).to_csv("t.csv", index=False)
    message = said(capsys, *dataset(), *TABLE)
    assert "set at most 2 folds, or leave out its samples by dataset.exclude_classes" in message
    message = said(capsys, *dataset(), *TABLE, "--set", "cv.outer=2")
    assert (
        "inner folds of outer0: cv.inner=3 folds; leave out its samples by dataset.exclude_classes:"
        ' ["c"]' in message
    )
    message = said(capsys, *dataset(), *TABLE, "--set", "cv={train_per_class: 2, repeats: 2}")
    assert 'set dataset.exclude_classes: ["c"]' in message


@pytest.mark.parametrize("values", [np.arange(178), [f"sample {i}" for i in range(178)]])
def test_a_label_with_a_value_a_row_is_said_to_be_none(wine, capsys, values):
    wine.assign(y=values).to_csv("t.csv", index=False)
    message = said(capsys, *dataset(), *TABLE)
    assert "so have 178 of the 178 classes" in message
    assert "dataset.label" in message


def test_a_quantity_as_label_is_refused_where_classes_are_asked_for(wine, capsys):
    quantity = np.linspace(0.5, 2, 178)
    wine.assign(y=quantity).to_csv("t.csv", index=False)
    np.savez("t.npz", X=wine.to_numpy(), y=quantity)
    for path in ("t.csv", "t.npz"):
        message = said(capsys, *dataset(path, task="classification"), *TABLE)
        assert "a quantity is predicted where dataset.task is regression or left out" in message
        assert main(["digits-smr", *dataset(path), *TABLE, "--dry-run"]) == 0


def test_another_name_of_the_label_and_text_among_the_features_name_their_keys(wine, capsys):
    wine.assign(ward="north", Befund=load_wine().target).to_csv("t.csv", index=False)
    assert "label" in said(capsys, *dataset(), *TABLE)
    assert "'ward'" in said(capsys, *dataset(label="Befund"), *TABLE)
    assert "drop" in said(capsys, *dataset(label="Befund"), *TABLE)
    assert main(["digits-smr", *dataset(label="Befund", drop="[ward]"), *TABLE, "--dry-run"]) == 0


def test_numbers_as_text_are_classes(wine, capsys):
    wine.assign(y=[f"{c}.0" for c in load_wine().target]).to_csv("t.csv", index=False)
    assert main(["digits-smr", *dataset(), *TABLE, "--dry-run"]) == 0
    assert "classes     3, 48 to 71 samples each: 0 (59), 1 (71), 2 (48)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "solver", ["smr", "gbr", "two_dimensional_lda", "multilinear_lda", "bilinear_mtda"]
)
def test_colour_images_are_taken_by_methods_of_any_order(tmp_path, solver):
    write_digits(tmp_path / "grey.npz")
    with np.load(tmp_path / "grey.npz") as stored:
        images, y = np.stack([stored["X"]] * 3, axis=-1), stored["y"]
    config = {"name": "c", "solver": {"name": solver}, "cv": {"outer": 2, "inner": 2}}
    taken = prepare_study(config, X=images, y=y)
    assert taken.dataset.layout == raysel.Tensor((8, 8, 3))


def test_images_given_to_an_estimator_name_reshape_and_shape(tmp_path):
    write_digits(tmp_path / "few.npz")
    with np.load(tmp_path / "few.npz") as stored:
        X, y = stored["X"], stored["y"]
    with pytest.raises(
        ValueError, match=r"dim 3.*X\.reshape\(len\(X\), -1\), and set shape=\(8, 8\)"
    ):
        raysel.SMR().fit(X, y)
    with pytest.raises(ValueError, match=r"dim 3.*X\.reshape\(len\(X\), -1\)\.$"):
        raysel.SMML().fit(X, y)
    with pytest.raises(ValueError, match=r"dim 3.*X\.reshape\(len\(X\), -1\)\.$"):
        raysel.MTDA().fit(X, y)
    model = raysel.SMR(shape=(8, 8), max_iter=2).fit(X.reshape(len(X), -1), y)
    with pytest.raises(ValueError, match=r"X\.reshape\(len\(X\), -1\)"):
        model.predict(X)


def test_few_samples_of_two_classes_run_with_as_many_folds(wine, capsys):
    few = pd.concat([wine[:5], wine[-5:]]).assign(y=["a"] * 5 + ["b"] * 5)
    few.to_csv("t.csv", index=False)
    message = said(capsys, *dataset(), *TABLE, "--set", "cv.outer=6")
    assert "class a has 5 samples" in message
    assert "at most 5 folds" in message
    assert "exclude_classes" not in message  # nothing would be left
    assert (
        main(["digits-smr", *dataset(), *TABLE, "--set", "cv={outer: 5, inner: 4}", "--dry-run"])
        == 0
    )


def test_labels_of_the_wrong_length_or_shape_are_named():
    X = np.random.default_rng(0).normal(size=(8, 3))
    config = {"name": "c", "solver": {"name": "fisher_score"}, "evaluation": {"n_features": [2]}}
    with pytest.raises(DataError, match="X has 8 rows but y has 7"):
        prepare_study(config, X=X, y=[0, 1] * 3 + [0])
