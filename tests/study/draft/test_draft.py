"""`init_study`: what it writes, what it refuses, and what it leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_iris, load_wine
from small_volumes import write_volumes

import raysel
from raysel.config import load_config
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import join_tasks
from raysel.study.definition import Study
from raysel.study.draft.draft import init_study


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    return tmp_path


def write_iris(path="iris.csv", **columns):
    frame = pd.DataFrame(load_iris().data, columns=["a", "b", "c", "d"])
    frame.assign(**{"y": load_iris().target} | columns).to_csv(path, index=False)


def test_what_is_written_is_the_text_and_its_configuration(here):
    write_iris()
    draft = raysel.init_study("iris.csv", output="study.yaml")
    assert draft.path.read_text(encoding="utf-8") == draft.text
    assert init_study("iris.csv").path is None
    lines = repr(draft).splitlines()
    assert lines[0] == f"Draft({draft.config.name})"
    told = [line for doubt in draft.doubts for line in doubt.splitlines()]
    assert [line[12:].removeprefix("- ") for line in lines[1:]] == [*draft.findings.values(), *told]
    assert sorted(path.name for path in here.iterdir()) == ["iris.csv", "study.yaml"]
    assert load_config("study.yaml") == draft.config
    assert "#" in draft.text
    keys = [
        line for line in draft.text.splitlines() if ":" in line and not line.strip().startswith("#")
    ]
    lines = draft.text.splitlines()
    for line in keys:
        explained = "   # " in line or lines[lines.index(line) - 1].strip().startswith("#")
        assert explained or line.endswith(":"), line


@pytest.mark.parametrize(
    "columns", [{}, {"e": ["u", "v", "w"] * 50}, {"e": [np.nan, 1.5, 2.5] * 50}, {"id": range(150)}]
)
def test_the_data_that_were_drafted_for_are_those_that_the_study_reads(columns):
    write_iris(**columns)
    init_study("iris.csv", output="study.yaml")
    config = load_config("study.yaml")
    again = Study.prepare(config)
    steps = bool(config.dataset.prepare)
    read = raysel.load_dataset("iris.csv", drop=config.dataset.drop, unprepared=True)
    given = Study.prepare(config, read=read)
    assert steps == read.unprepared == again.dataset.unprepared
    assert given.dataset.content_hash == again.dataset.content_hash
    assert given.data_remarks == again.data_remarks


def test_a_file_of_labels_beside_what_has_its_labels_itself_is_refused_with_what_to_do(here):
    pytest.importorskip("nibabel")
    write_iris()
    Path("clinic.csv").write_text("id,dx\n1,a\n", encoding="utf-8")
    for label in ("a", "b"):
        Path("faces", label).mkdir(parents=True)
        Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(f"faces/{label}/0.png")
    write_volumes(here / "data")
    for place, words in (
        ("iris.csv", "iris.csv is a table: add the labels to it as a column"),
        ("data/scans.csv", "scans.csv is a table of volumes: add the labels to it as a column"),
        ("faces", "faces has a folder for each class, which names it: leave labels out"),
    ):
        with pytest.raises(DataError, match=words):
            init_study(place, labels="clinic.csv")


def test_a_table_of_volumes_is_drafted_as_volumes_not_as_the_columns_beside_them(here):
    pytest.importorskip("nibabel")
    planted = write_volumes(here / "data")
    draft = init_study("data/scans.csv", output="study.yaml")
    assert (draft.config.dataset.source, draft.config.dataset.mask) == ("nifti", "data/mask.nii.gz")
    assert Study.prepare(load_config("study.yaml")).dataset.n_features == planted.mask.sum()
    assert draft.findings["data"].endswith("features, volumes")
    frame = pd.read_csv(planted.table)
    site = np.array(["Oslo", "Rome"])[np.arange(len(frame)) % 2]
    frame.assign(age=60.5 + np.arange(len(frame)) % 7, site=site).to_csv(
        "data/aged.csv", index=False
    )
    (doubt,) = [
        text for text in init_study("data/aged.csv").doubts if text.startswith("confounds: ")
    ]
    assert doubt.startswith("confounds: age, site may tell the label")
    lines = planted.table.read_text(encoding="utf-8").splitlines()
    lines[3], lines[5] = (
        f",{lines[3].split(',', 1)[1]}",
        lines[5].replace("control", "").replace("patient", ""),
    )
    (here / "data/some.csv").write_text("\n".join(lines), encoding="utf-8")
    draft = init_study("data/some.csv", output="some.yaml")
    assert (
        "drop_unlabelled: 2 rows have no label or no volume and are left out (rows 2, 4"
        in " ".join(draft.doubts)
    )
    assert Study.prepare(load_config("some.yaml")).dataset.n_samples == len(lines) - 3
    planted.mask_file.rename(here / "data/cortex.nii.gz")
    with pytest.raises(DataError, match="name it by --mask"):
        init_study("data/scans.csv")
    assert (
        init_study("data/scans.csv", mask="data/cortex.nii.gz").config.dataset.mask
        == "data/cortex.nii.gz"
    )


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("there.yaml", "exists and is not overwritten"),
        ("study", "name it study.yaml"),
        ("missing/study.yaml", "no folder missing; create it first"),
        ("folder", "folder/iris-study.yaml"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_data_are_read(here, output, words):
    (here / "folder").mkdir()
    (here / "there.yaml").write_text("mine")
    with pytest.raises(ConfigError, match=words):
        init_study("iris.csv", output=output)
    assert (here / "there.yaml").read_text() == "mine"


def test_a_relative_path_stays_so_in_the_working_directory_only(here):
    (here / "data").mkdir()
    write_iris(here / "data" / "iris.csv")
    assert init_study("data/iris.csv", output="study.yaml").config.dataset.path == "data/iris.csv"
    elsewhere = init_study("data/iris.csv", output="data/study.yaml").config
    assert elsewhere.dataset.path == str(here / "data" / "iris.csv")


def test_a_class_of_one_sample_is_left_out_with_a_doubt():
    write_iris(y=[7, *load_iris().target[1:]])
    draft = init_study("iris.csv")
    assert draft.config.dataset.exclude_classes == (7,)
    assert any("exclude_classes" in doubt for doubt in draft.doubts)
    assert len(Study.prepare(draft.config).dataset.y) == 149


@pytest.mark.parametrize("values", [load_iris().target, (load_iris().target + 3) % 5])
def test_the_label_in_a_second_column_is_left_out_with_a_doubt_and_groups_bound_the_folds(values):
    subject = np.concatenate(
        [50 * c + np.arange(50) // 13 for c in range(3)]
    )  # four subjects a class
    write_iris(grade=values, subject=subject)
    draft = init_study("iris.csv")
    assert draft.config.dataset.drop == ("grade",)
    assert any("grade" in doubt for doubt in draft.doubts)
    assert (draft.config.cv.groups, draft.config.cv.outer) == ("subject", 4)


def test_wide_tables_colour_images_and_indicators_get_methods_that_take_them():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    np.savez("genes.npz", X=rng.normal(size=(40, 900)) + y[:, None] * (np.arange(900) < 5), y=y)
    config = init_study("genes.npz").config
    assert (config.solver.name, config.dataset.shape, config.evaluation.n_features[-1]) == (
        "linear_svm",
        None,
        900,
    )
    np.savez("colour.npz", X=rng.random((30, 6, 6, 3)), y=np.arange(30) % 3)
    np.savez("labels.npz", X=rng.random((30, 6)), Y=rng.integers(0, 2, (30, 3)))
    assert init_study("colour.npz").config.solver.name == "smr"
    labels = init_study("labels.npz").config
    assert (labels.solver.name, labels.evaluation.metric) == ("smml", "macro_f1")


def test_labels_beside_an_array_are_found(here):
    for X, y in (("X.npy", "y.npy"), ("wine_X.npy", "wine_y.npy")):
        np.save(here / X, load_wine().data)
        np.save(here / y, load_wine().target)
        assert init_study(X).config.dataset.labels == y
    (here / "studies").mkdir()
    elsewhere = init_study("X.npy", output="studies/study.yaml").config.dataset
    assert (elsewhere.path, elsewhere.labels) == (str(here / "X.npy"), str(here / "y.npy"))


def test_the_only_array_that_may_be_the_labels_is_taken_with_a_doubt(here):
    X, code = load_wine(return_X_y=True)
    np.savez(here / "wine.npz", cells=X, cultivar=code, subject=np.repeat(np.arange(89), 2))
    draft = init_study("wine.npz")
    assert (draft.config.dataset.label, draft.config.cv.groups) == ("cultivar", "subject")
    assert any(doubt.startswith("label: cultivar was taken") for doubt in draft.doubts)
    np.savez(here / "two.npz", cells=X, cultivar=code, year=code % 2)
    with pytest.raises(DataError, match="it may be cultivar or year"):
        init_study("two.npz")


def test_points_in_names_as_r_writes_them_make_no_modalities():
    names = ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width", "Species"]
    load_iris(as_frame=True).frame.set_axis(names, axis=1).to_csv("iris.csv")
    draft = init_study("iris.csv")
    assert (draft.config.solver.name, draft.config.dataset.shape) == ("linear_svm", (4,))
    assert any(doubt.startswith("shape") and "Sepal, Petal" in doubt for doubt in draft.doubts)


def test_a_table_without_features_is_refused_and_so_are_several_tasks(here):
    pd.DataFrame({"site": ["red", "blue"] * 10, "y": [0, 0, 1, 1] * 5}).to_csv(
        here / "words.csv", index=False
    )
    with pytest.raises(DataError, match=r"site \(text"):
        init_study("words.csv")
    tasks = {name: raysel.load_dataset(name) for name in ("iris", "wine")}
    raysel.save_dataset(join_tasks(tasks, "both"), here / "both.arrow")
    with pytest.raises(DataError, match="several tasks"):
        init_study("both.arrow")
