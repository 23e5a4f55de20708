"""Studies of samples in memory: the same numbers as from a file, and a directory that needs
nothing else.
"""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer
from small_studies import NoUpload, raw_config, run_offline, write_digits

import raysel
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.loading import load_dataset, save_dataset
from raysel.execution.serial import SerialExecutor
from raysel.run import course as runner
from raysel.run import members
from raysel.run.api import prepare_comparison, prepare_study
from raysel.run.launch import make_executor
from raysel.study.inputs import OwnData
from raysel.tracking.directory import StudyDirectory


def without_data(**changes):
    raw = raw_config(**changes)
    raw["dataset"].pop("path", None)
    return raw


def compared(raw, **members):
    """The configuration as that of a comparison of solvers; of a tuple, on these modalities
    only.
    """
    keys = {
        label: {"solver": {"name": name}} | ({"dataset": {"only": list(only)}} if only else {})
        for label, (name, *only) in members.items()
    }
    return {key: value for key, value in raw.items() if key != "solver"} | {"compare": keys}


def run_own(raw, folder, **samples):
    study = prepare_study(raw, **samples)
    return runner.run(study, folder, make_executor(study), start_upload=NoUpload)


@pytest.fixture
def digits(tmp_path):
    """Images and labels of a file, and the file."""
    write_digits(tmp_path / "few.npz")
    with np.load(tmp_path / "few.npz") as stored:
        return stored["X"], stored["y"], tmp_path / "few.npz"


def outcome(result):
    """All numbers of a study."""
    refits = [
        (r.fold, r.params, r.inner_score, r.test_score, r.feature_scores) for r in result.refits
    ]
    inner = [
        (r.id, name, t.scores)
        for r in result.records
        for f in r.folds.values()
        for name, t in enumerate(f.inner)
    ]
    return refits, sorted(inner)


def test_arrays_give_the_numbers_of_a_file_bit_by_bit(tmp_path, digits):
    X, y, file = digits
    small = {"solver__space": {"rank": [1, 2]}}
    of_file = run_offline(raw_config(file, **small), tmp_path / "file")
    own = run_own(without_data(**small), tmp_path / "own", X=X, y=y)
    assert outcome(own) == outcome(of_file)
    assert own.stored.study.data_hash == of_file.stored.study.data_hash
    assert own.stored.study.data_files == {"dataset.path": str(tmp_path / "own/data.arrow")}
    assert own.stored.study.layout == {"kind": "tensor", "shape": [8, 8]}


def test_the_directory_alone_serves_to_prepare_the_study_again_even_if_it_was_moved(
    tmp_path, digits
):
    X, y, _ = digits
    keys = {"scaling": "zscore", "shape": [4, 16], "order": "F", "exclude_classes": [3]}
    study = prepare_study(
        without_data(dataset=keys, solver={"name": "fisher_score"}), X=X.reshape(-1, 64), y=y
    )
    result = runner.run(study, tmp_path / "own", SerialExecutor(study), start_upload=NoUpload)
    stored = yaml.safe_load((tmp_path / "own/config.yaml").read_text())
    path = str(tmp_path / "own/data.arrow")
    assert stored["dataset"] == {"path": path, "scaling": "zscore", "exclude_labels": []}
    again = prepare_study(None, resumed=result.directory)
    assert (
        again.dataset.content_hash == study.dataset.content_hash == load_dataset(path).content_hash
    )
    assert again.config.hash == result.stored.study.config_hash
    raw = without_data(dataset=keys, solver={"name": "fisher_score"})
    assert prepare_study(raw, resumed=result.directory).config == again.config
    shutil.move(tmp_path / "own", tmp_path / "moved")
    moved = prepare_study(None, resumed=StudyDirectory(tmp_path / "moved"))
    assert moved.dataset.content_hash == study.dataset.content_hash
    (tmp_path / "own").mkdir()
    save_dataset(load_dataset("digits"), path)  # another study in the former place
    moved = prepare_study(None, resumed=StudyDirectory(tmp_path / "moved"))
    assert moved.dataset.content_hash == study.dataset.content_hash


def test_a_builtin_study_that_names_data_is_resumed_by_its_name(tmp_path, digits):
    X, y, _ = digits
    small = {"solver.space": {"rank": [1]}, "evaluation.n_features": [8]}
    study = prepare_study("orl-smr", small, X=X, y=y)
    StudyDirectory.create(tmp_path / "orl", 0)[1].close()
    directory = StudyDirectory(tmp_path / "orl")
    directory.plan.write_text(json.dumps(study.plan.to_json()))
    save_dataset(study.own, directory.data)
    assert (
        prepare_study("orl-smr", small, resumed=directory).dataset.content_hash
        == study.dataset.content_hash
    )


def test_keys_of_the_configuration_hold_for_arrays_as_for_a_file(tmp_path, digits):
    X, y, _ = digits
    np.savez(tmp_path / "flat.npz", X=X.reshape(len(X), -1), y=y)
    for keys in (
        {"shape": [4, 16], "order": "F"},
        {"modalities": {"a": 40, "b": 24}, "only": ["b"]},
        {"classes": [0, 2]},
        {"exclude_classes": [1]},
    ):
        raw = raw_config(tmp_path / "flat.npz", solver={"name": "fisher_score"}, dataset={**keys})
        of_file = prepare_study({**raw, "dataset": {"path": str(tmp_path / "flat.npz"), **keys}})
        own = prepare_study({**raw, "dataset": keys}, X=X.reshape(len(X), -1), y=y)
        assert own.dataset.content_hash == of_file.dataset.content_hash
        assert own.plan.to_json() == of_file.plan.to_json()


def test_groups_and_text_labels_are_taken(digits):
    X, y, _ = digits
    groups = np.arange(len(y)) // 4
    names = np.array([f"class {c}" for c in y], dtype=object)
    study = prepare_study(without_data(), X=X, y=names.tolist(), groups=groups)
    assert study.dataset.classes.tolist() == ["class 0", "class 1", "class 2", "class 3"]
    for fold in study.plan.outer:
        assert not set(groups[fold.train]) & set(groups[fold.test])
    same = prepare_study(without_data(), X=X, y=names, groups=[f"g{g:02d}" for g in groups])
    assert same.plan.to_json() == study.plan.to_json()


def table(kind):
    """A frame of 24 rows with names, text labels, groups and an identifier, and what it holds."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(24, 4))
    columns = {
        "patient": [f"p{i}" for i in range(24)],
        **{f"gene {i}": values[:, i].tolist() for i in range(4)},
        "diagnosis": ["healthy", "ill"] * 12,
        "family": [i // 3 for i in range(24)],
    }
    return pytest.importorskip(kind).DataFrame(columns), values


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_gives_what_its_table_gives(kind, tmp_path):
    frame, values = table(kind)
    (
        frame.to_csv(tmp_path / "t.csv", index=False)
        if kind == "pandas"
        else frame.write_csv(tmp_path / "t.csv")
    )
    raw = raw_config(solver={"name": "fisher_score"}, evaluation__n_features=[2, 4])
    raw["dataset"] = {"drop": ["patient"], "scaling": "zscore"}
    own = prepare_study(raw, X=frame, label="diagnosis", groups="family")
    keys = {
        "dataset.path": str(tmp_path / "t.csv"),
        "dataset.label": "diagnosis",
        "cv.groups": "family",
    }
    of_file = prepare_study(raw, keys)
    assert own.dataset.content_hash == of_file.dataset.content_hash
    assert own.plan.to_json() == of_file.plan.to_json()
    assert own.dataset.feature_names == tuple(f"gene {i}" for i in range(4))
    np.testing.assert_array_equal(own.dataset.X, values)
    assert own.config.cv.groups is None
    by_config = prepare_study(raw, {"dataset.label": "diagnosis", "cv.groups": "family"}, X=frame)
    assert by_config.dataset.content_hash == own.dataset.content_hash


def test_labels_and_groups_beside_a_frame_are_taken():
    frame, _ = table("pandas")
    genes = frame[[f"gene {i}" for i in range(4)]]
    raw = raw_config(solver={"name": "fisher_score"}, evaluation__n_features=[2], dataset={})
    whole = prepare_study(
        {**raw, "dataset": {"drop": ["patient"]}}, X=frame, label="diagnosis", groups="family"
    )
    beside = prepare_study(raw, X=genes, y=frame["diagnosis"], groups=frame["family"])
    arrays = prepare_study(raw, X=genes.to_numpy(), y=frame["diagnosis"], groups=frame["family"])
    assert beside.dataset.content_hash == whole.dataset.content_hash
    assert arrays.dataset.label == "diagnosis"
    np.testing.assert_array_equal(arrays.dataset.X, beside.dataset.X)
    with pytest.raises(DataError, match="diagnosis"):
        prepare_study(raw, X=frame, label="diagnosi")


def test_equal_samples_are_groups_as_those_of_a_file_are(tmp_path, digits):
    X, y = (np.concatenate([values, values[::9]]) for values in digits[:2])
    np.savez(tmp_path / "data.npz", X=X, y=y)
    cv = {"groups": "equal samples", "outer": 2, "inner": 2}
    ours = prepare_study(without_data(cv=cv), X=X, y=y)
    files = prepare_study(raw_config(tmp_path / "data.npz", cv=cv))
    assert np.array_equal(ours.dataset.groups, files.dataset.groups)
    assert ours.plan.to_json() == files.plan.to_json()
    raw = raw_config(
        tmp_path / "data.npz", cv=cv, solver={"name": "mtda"}, evaluation={"estimator": "native"}
    )
    raw["dataset"] = {
        "tasks": [{"name": name, "path": str(tmp_path / "data.npz")} for name in ("a", "b")]
    }
    groups = prepare_study(raw).dataset.groups
    one, other = np.split(np.unique(groups, return_inverse=True)[1], 2)
    for task in (one, other):
        assert np.array_equal(
            task[:, None] == task, files.dataset.groups[:, None] == files.dataset.groups
        )
    assert not set(one) & set(other)


def test_a_data_set_is_taken_and_the_callers_array_stays_his(digits):
    X, y, file = digits
    given = load_dataset(file)
    assert prepare_study(without_data(), data=given).dataset.content_hash == given.content_hash
    study = prepare_study(without_data(), X=X, y=y)
    X += 1.0
    assert study.dataset.content_hash == given.content_hash


def test_a_builtin_study_runs_on_own_samples(digits):
    X, y, _ = digits
    for name in ("digits-smr", "orl-smr"):  # of a source, and of a path
        study = prepare_study(
            name, {"solver.space": {"rank": [1]}, "evaluation.n_features": [8]}, X=X, y=y
        )
        assert study.dataset.n_samples == len(X)
        assert study.config.dataset.source is None


def test_a_comparison_shares_the_samples(digits):
    X, y, file = digits
    raw = compared(raw_config(file), all=("fisher_score",), b=("fisher_score", "b"))
    raw["dataset"] = {"modalities": {"a": 40, "b": 24}}
    own = prepare_comparison(raw, X=X, y=y)
    of_file = prepare_comparison(raw, {"dataset.path": str(file)})
    for label, study in of_file.studies.items():
        assert own.studies[label].dataset.content_hash == study.dataset.content_hash
    assert own.first.own is own.studies["b"].own
    assert (
        own.with_data_at(Path("/x/data.arrow")).studies["b"].config.dataset.path == "/x/data.arrow"
    )


def test_columns_to_keep_may_be_of_a_modality_that_a_member_leaves_out(tmp_path):
    draw = np.random.default_rng(0).random
    columns = {
        "a.row": np.arange(60.0),
        "a.x": draw(60),
        "b.x": draw(60),
        "b.z": draw(60),
        "y": np.arange(60) % 3,
    }
    header, path = ",".join(columns), tmp_path / "few.csv"
    np.savetxt(
        path, np.column_stack([*columns.values()]), delimiter=",", header=header, comments=""
    )
    raw = raw_config(path, evaluation={"n_features": [1]})
    raw = compared(raw, all=("fisher_score",), b=("fisher_score", "b"))
    with pytest.raises(DataError):
        prepare_comparison(raw)
    raw["dataset"]["keep"] = ["a.row"]
    assert list(prepare_comparison(raw).studies) == ["all", "b"]


def test_a_comparison_is_prepared_again_from_its_directory_with_a_configuration_without_data(
    tmp_path, digits
):
    X, y, _ = digits
    raw = without_data(dataset={"exclude_classes": [3], "order": "F", "shape": [4, 16]})
    raw = compared(raw, F=("fisher_score",), V=("variance",))
    new = prepare_comparison(raw, X=X.reshape(-1, 64), y=y)
    directory, own = StudyDirectory(tmp_path / "both"), new.first.own
    placed = new.with_data_at(directory.data)
    with members.create(directory.path, placed.folders.values(), own) as lock:
        record = placed.record(id_="0" * 32, uri="sqlite:///mlflow.db", started=0.0)
        with runner.first_files(
            directory, placed.config, placed.first.plan, own, directory.members
        ):
            record.write(directory, lock)  # and then its process is killed
    again = prepare_comparison(raw, resumed=directory)
    assert again.first.dataset.content_hash == new.first.dataset.content_hash
    assert (
        again.first.config
        == prepare_comparison(None, resumed=directory).first.config
        == placed.first.config
    )


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_a_comparison_of_arrays_runs_and_resumes_from_its_directory(tmp_path, digits):
    X, y, _ = digits
    raw = compared(without_data(), F=("fisher_score",), T=("t_test",))
    ran = raysel.run_comparison(raw, X=X, y=y, output=tmp_path / "both", progress=False)
    assert set(ran.studies) == {"F", "T"}
    shutil.move(tmp_path / "both", tmp_path / "moved")
    more = {"compare.V": {"solver": {"name": "variance"}}}
    assert set(
        raysel.resume_comparison(tmp_path / "moved", None, more, progress=False).studies
    ) == {"F", "T", "V"}
    again = raysel.resume_comparison(tmp_path / "moved", raw, more, progress=False)
    assert set(again.studies) == {"F", "T", "V"}
    assert (
        raysel.permutation_test(tmp_path / "moved" / "f", permutations=3, progress=False)
        is not None
    )


X, Y = np.arange(24.0).reshape(6, 4), np.array([0, 1] * 3)


def test_arguments_that_exclude_each_other_are_refused():
    for samples, message in (
        ({"y": Y}, "X is missing"),
        ({"X": X}, "y is missing"),
        ({"X": "wine.csv", "y": Y}, r"a file is named by dataset\.path"),
        ({"X": X, "y": "diagnosis"}, "label='diagnosis' names a column"),
        ({"X": X, "label": "y"}, "X is an array; give the labels as y"),
        ({"X": X, "y": Y, "groups": "patient"}, "X is an array; give the groups themselves"),
        ({"X": X, "y": Y, "label": "y"}, "leave one of the two out"),
        ({"data": X}, "data is of type ndarray; give a Dataset, or X and y"),
        ({"X": X, "data": load_dataset("iris")}, "leave X out"),
        ({"X": load_dataset("iris")}, "give it as data"),
    ):
        with pytest.raises(ConfigError, match=message):
            OwnData(**samples)


def test_unusable_samples_are_refused_with_the_mend():
    for samples, message in (
        ({"X": [[1.0], [2.0, 3.0]], "y": Y}, "X is no array"),
        ({"X": X.astype(str), "y": Y}, "real numbers"),
        ({"X": X, "y": Y[:5]}, "X has 6 rows but y has 5"),
        ({"X": X, "y": ["a", None] * 3}, "y has no value in row 1"),
        ({"X": X, "y": np.array(["a", 1] * 3, dtype=object)}, "y mixes text with other values"),
        ({"X": X, "y": Y, "groups": [1, None] * 3}, "groups has no value in row 1"),
        ({"X": X * np.nan, "y": Y}, "NaN or infinite"),
        ({"X": X[:, 0], "y": Y}, r"give a non-empty array of shape \(n, d\)"),
        ({"X": csr_array(X), "y": Y}, r"give X\.toarray\(\)"),
        ({"X": X, "y": csr_array(X != 0)}, r"give y\.toarray\(\)"),
    ):
        with pytest.raises(DataError, match=message):
            prepare_study(without_data(), **samples)


def test_a_configuration_that_names_data_too_is_refused():
    tasks = [{"name": "a", "source": "iris"}, {"name": "b", "source": "wine"}]
    for dataset, overrides, message in (
        ({"path": "few.npz"}, {}, r"dataset\.path names data, and the samples are given in memory"),
        ({"tasks": tasks}, {}, r"dataset\.tasks names data"),
        (
            {},
            {"dataset.path": "few.npz"},
            r"override dataset\.path: the samples are given in memory",
        ),
        ({"labels": "y.npy"}, {}, r"dataset\.labels is for files"),
        ({"label": "diagnosis"}, {}, r"dataset\.label names columns of a table"),
        ({}, {"cv.groups": "patient"}, r"cv\.groups names columns of a table.*give groups"),
        ({"scalings": "unit"}, {}, "did you mean `scaling`"),
    ):
        with pytest.raises(ConfigError, match=message):
            prepare_study({**raw_config(), "dataset": dataset}, overrides, X=X, y=Y)


def test_prepared_studies_take_no_samples(tmp_path, digits):
    X, y, _ = digits
    study = prepare_study(without_data(), X=X, y=y)
    with pytest.raises(ConfigError, match="a prepared study has its data"):
        raysel.run_study(study, X=X, y=y, progress=False)
    with pytest.raises(ConfigError, match="holds the data of the study to resume"):
        prepare_study(None, X=X, y=y, resumed=StudyDirectory(tmp_path))


def test_a_full_disk_and_a_taken_place_are_refused_as_of_any_study(tmp_path, digits, monkeypatch):
    X, y, _ = digits
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/data.arrow").write_text("mine")
    with pytest.raises(DirectoryError):
        run_own(without_data(), tmp_path / "taken", X=X, y=y)
    assert (tmp_path / "taken/data.arrow").read_text() == "mine"

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("raysel.data.loading.pa.OSFile", full)
    with pytest.raises(
        DirectoryError,
        match=r"full cannot be written: No space left on device\. Choose another output",
    ):
        run_own(without_data(), tmp_path / "full", X=X, y=y)
    assert {file.name for file in (tmp_path / "full").iterdir()} <= {".lock"}


@pytest.mark.slow
def test_columns_of_different_units_are_brought_to_one_scale_unless_the_user_says_otherwise(
    tmp_path,
):
    """The areas of a cell are 200 000 times as wide as its fractal dimension: scaled as one,
    they alone are chosen.
    """
    frame = load_breast_cancer(as_frame=True).frame
    raw = without_data(
        solver={"name": "smr", "space": {"alpha": [0.01, 0.1]}}, cv={"outer": 2, "inner": 2}
    )
    raw["evaluation"] = {
        "classifier": "linear_svm",
        "n_features": [2, 5, 10],
        "C": 1.0,
        "references": False,
    }
    raw["pictures"] = []

    def prepared(**section):
        return prepare_study({**raw, "dataset": section}, X=frame, label="target")

    default, unit = (
        run_own({**raw, "dataset": keys}, tmp_path / name, X=frame, label="target")
        for name, keys in (("default", {}), ("unit", {"scaling": "unit"}))
    )
    assert default.test_mean > 0.94
    assert unit.test_mean < 0.93
    assert default.config["dataset"]["scaling"] == "zscore"  # stored as resolved
    assert "scaling: zscore" in default.directory.config.read_text()
    assert prepared().config.hash == prepared(scaling="zscore").config.hash
    words = (
        "standard deviations differ by a factor of 2.15e+05 ('worst area' to 'fractal dimension"
        " error')"
    )
    assert words not in (default.path / "ranking/manifest.json").read_text()
    assert (unit.path / "ranking/manifest.json").read_text().count(words) == 1
    assert words in prepared(scaling="none").scale_remarks[0]
