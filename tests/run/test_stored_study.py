"""A study of samples that stay in their file finds what it finds of the same samples in memory."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes
from small_studies import Watcher, raw_config, run_offline, run_on_ray, run_serially, timeless

import raysel
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError, DirectoryError, StudyError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.study.definition import Study

SMR = {"name": "smr", "params": {"max_iter": 5, "rank": 2}, "space": {"alpha": [0.01, 0.1]}}
NATIVE = {"estimator": "native"}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Read a Parquet file of the digits 50 rows at a time."""
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 65 * 50)


@pytest.fixture(scope="module")
def few():
    """Images of four digits, in the order of the classes."""
    digits = load_dataset("digits")
    rows = np.concatenate([np.flatnonzero(digits.y == name)[:90] for name in range(4)])
    return Dataset(digits.X[rows], digits.y[rows], digits.layout, "few")


@pytest.fixture
def folder(few, tmp_path):
    save_dataset(few, tmp_path / "few.parquet")
    return tmp_path


def config(path, **changes):
    return raw_config(
        path, **{"solver": SMR, "evaluation": NATIVE, "dataset__in_memory": False} | changes
    )


def study_of(path, **changes):
    return Study.prepare(config_from_dict(config(path, **changes)))


def assert_same_findings(path, folder, **changes):
    """Run the study both ways: what is fitted differs by the rounding of another order of sums
    alone.
    """
    runs = []
    for in_memory in (False, True):
        study = study_of(path, dataset__in_memory=in_memory, **changes)
        runs.append(run_serially(study, folder / f"{in_memory}")[:2])
    (stored, refits), (whole, own_refits) = runs
    assert list(stored) == list(whole)
    for trial, fold in product(whole, ("outer0", "outer1", "final")):
        fits = (trials[trial]["folds"][fold]["inner"] for trials in (stored, whole))
        for mine, theirs in zip(*fits, strict=True):
            np.testing.assert_allclose(mine["objective"], theirs["objective"], rtol=1e-9)
            np.testing.assert_allclose(mine["scores"], theirs["scores"][-1:], rtol=1e-9)
    for mine, theirs in zip(refits, own_refits, strict=True):
        assert mine.record.params == theirs.record.params
        for scores in ("test_scores", "training_scores", "inner_score"):
            np.testing.assert_allclose(
                getattr(mine.record, scores), getattr(theirs.record, scores), rtol=1e-9
            )
        np.testing.assert_allclose(
            mine.record.feature_scores, theirs.record.feature_scores, rtol=1e-10, atol=1e-10
        )
    return [refit.record for refit in refits]


@pytest.mark.parametrize("scaling", ["zscore", pytest.param("row_unit", marks=pytest.mark.slow)])
def test_smr_finds_what_it_finds_in_memory(folder, scaling):
    *outer, _ = assert_same_findings(folder / "few.parquet", folder, dataset__scaling=scaling)
    assert min(record.test_score for record in outer) > 0.9


@pytest.mark.parametrize(
    "solver",
    [SMR | {"name": "smr_regressor"}, {"name": "gbr_regressor", "space": {"alpha": [0.1, 10.0]}}],
)
def test_regression_finds_what_it_finds_in_memory(tmp_path, solver):
    X, y = load_diabetes(return_X_y=True)
    save_dataset(Dataset(X, y, Tensor((2, 5)), "diabetes"), tmp_path / "diabetes.parquet")
    changes = {"solver": solver, "dataset__task": "regression"}
    *outer, _ = assert_same_findings(tmp_path / "diabetes.parquet", tmp_path, **changes)
    assert min(record.test_score for record in outer) > 0.3


@pytest.mark.slow
def test_a_whole_study_leaves_what_it_leaves_in_memory(folder, few):
    whole, stored = (
        run_offline(
            config(folder / "few.parquet", dataset__in_memory=in_memory), folder / f"{in_memory}"
        )
        for in_memory in (True, False)
    )
    assert stored.test_scores == whole.test_scores
    mine, theirs = (result.ranking().to_frame() for result in (stored, whole))
    assert list(mine["feature"]) == list(theirs["feature"])
    np.testing.assert_allclose(mine["score"], theirs["score"], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(stored.model.predict(few.X), whole.model.predict(few.X))
    for name in ("mean_sample.npy", "model_example.npy"):
        mine, theirs = (np.load(folder / f"{in_memory}" / name) for in_memory in (False, True))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    mine, theirs = (
        json.loads((folder / f"{in_memory}" / "preview.json").read_text())
        for in_memory in (False, True)
    )
    assert mine.keys() == theirs.keys()
    assert mine["counts"] == theirs["counts"]
    np.testing.assert_allclose(mine["values"], theirs["values"], rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"solver": {"name": "rfs", "space": {"alpha": [0.1]}}},
            "dataset.in_memory: rfs .* use one of smr, ",
        ),
        (
            {"evaluation": {"estimator": "knn", "n_features": [4]}},
            "dataset.in_memory: .*estimator knn .* native",
        ),
        ({"search__early_stopping": "asha"}, "dataset.in_memory: search.early_stopping"),
        ({"dataset__prepare": ["encode"]}, "is prepared, which is done in memory"),
        ({"cv__groups": "equal samples"}, "dataset.in_memory: cv.groups: equal samples"),
        (
            {"dataset__classes": [0, 1]},
            "dataset.in_memory: .* training set has 45 samples and few 64 features",
        ),
        ({"dataset": {"source": "digits", "in_memory": False}}, "digits is built in, and no file"),
    ],
)
def test_what_needs_the_samples_in_memory_is_refused_before_anything_is_written(
    folder, changes, message
):
    with pytest.raises((ConfigError, DataError), match=message):
        raysel.run_study(
            config(folder / "few.parquet", **changes), output=folder / "study", progress=False
        )
    assert not (folder / "study").exists()


def test_samples_given_in_memory_do_not_stay_in_a_file(few, tmp_path):
    raw = raw_config(evaluation=NATIVE, dataset={"in_memory": False})
    with pytest.raises(ConfigError):
        raysel.run_study(raw, X=few.X, y=few.y, output=tmp_path / "study", progress=False)


def test_a_study_in_memory_keeps_the_hash_of_its_configuration(folder):
    whole = study_of(folder / "few.parquet", dataset__in_memory=True).config.to_dict()
    assert "in_memory" not in whole["dataset"]
    assert study_of(folder / "few.parquet").config.to_dict()["dataset"]["in_memory"] is False


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_an_interrupted_study_resumes_to_the_same_numbers_unless_its_file_has_changed(folder, few):
    raw = config(folder / "few.parquet")
    with pytest.raises(KeyboardInterrupt):
        raysel.run_study(raw, output=folder / "study", progress=Watcher(9))
    save_dataset(Dataset(few.X[::-1], few.y[::-1], few.layout, "few"), folder / "other.parquet")
    with pytest.raises(DirectoryError, match="their content has changed"):
        raysel.resume_study(
            folder / "study",
            overrides={"dataset.path": str(folder / "other.parquet")},
            progress=False,
        )
    resumed = raysel.resume_study(folder / "study", progress=False)
    whole = raysel.run_study(raw, output=folder / "whole", progress=False)
    assert resumed.test_scores == whole.test_scores
    assert resumed.final.feature_scores == whole.final.feature_scores
    assert [timeless(trial.to_json()) for trial in resumed.records] == [
        timeless(t.to_json()) for t in whole.records
    ]


def test_a_file_that_changes_while_the_study_runs_is_named(folder, few):
    study = study_of(folder / "few.parquet")
    (folder / "few.parquet").unlink()
    save_dataset(Dataset(few.X[:200], few.y[:200], few.layout, "few"), folder / "few.parquet")
    with pytest.raises(StudyError):
        run_serially(study, folder / "study")


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_workers_of_ray_read_the_file_to_the_same_numbers(folder):
    """Of an Arrow file whose blocks are those that it was written in, for this process and the
    workers alike.
    """
    content = pq.read_table(folder / "few.parquet")
    with pa.ipc.new_file(folder / "few.arrow", content.schema) as writer:
        writer.write_table(content, max_chunksize=37)
    study = study_of(folder / "few.arrow", search={"max_concurrent": 1})
    assert len(list(study.dataset.X.row_blocks())) == 10
    (mine, refits, _), (theirs, own_refits, _) = (
        run_on_ray(study, folder / "ray"),
        run_serially(study, folder / "serial"),
    )
    assert mine == theirs
    assert [timeless(refit.record.to_json()) for refit in refits] == [
        timeless(refit.record.to_json()) for refit in own_refits
    ]


@pytest.mark.slow
def test_permuted_labels_give_chance(few, tmp_path):
    """Inner scores too, of one configuration; fitted to the validation or test set as well they
    would be far above.
    """
    test, inner, training = [], [], []
    for seed in range(8):
        y = np.random.default_rng(seed).permutation(few.y)
        save_dataset(Dataset(few.X, y, few.layout, "permuted"), tmp_path / f"{seed}.parquet")
        solver = SMR | {"space": {"alpha": [0.01]}}
        study = study_of(
            tmp_path / f"{seed}.parquet", solver=solver, cv={"outer": 2, "inner": 2, "final": False}
        )
        _, refits, _ = run_serially(study, tmp_path / f"{seed}")
        test += [refit.record.test_score for refit in refits]
        inner += [refit.record.inner_score for refit in refits]
        training += [refit.record.training_scores[0] for refit in refits]
    assert np.mean(training) > 0.4
    for scores in (test, inner):
        assert abs(np.mean(scores) - 0.25) < 0.03
