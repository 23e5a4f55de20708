"""Studies of joined features: scores of loops in scikit-learn, rankings, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.cluster import FeatureAgglomeration
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.feature_selection import f_classif
from sklearn.neighbors import KNeighborsClassifier
from small_studies import Watcher, run_offline, run_on_ray, run_serially

import raysel
from raysel.base.models import load_model
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, StudyError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Layout, MaskedVolume, Matrix, Tensor
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study
from raysel.testing.checks import compute, study_log, timeless

SHAPE, N, N_PARCELS, SIZES = (10, 12), 64, 14, [3, 15, 40]
#: Cells in which the second class is brighter.
BLOB = np.zeros(SHAPE, dtype=bool)
BLOB[3:7, 2:6] = True


def images(seed: int = 0, height: float = 0.35) -> tuple[np.ndarray, np.ndarray]:
    """Smooth noise, with a blob in the second class and a row of constant cells."""
    y = np.arange(N) % 2
    X = gaussian_filter(np.random.default_rng(seed).normal(size=(N, *SHAPE)), (0, 1, 1))
    X[y == 1] += height * BLOB
    X[:, -1] = 1.0
    return X, y


def raw_study(**changes: Any) -> dict[str, Any]:
    return {
        "name": "parcels",
        "seed": 1,
        "dataset": {
            "path": "data.arrow",
            "prepare": [{"parcels": N_PARCELS}],
            "scaling": "none",
        },
        "solver": {"name": "fisher_score"},
        "evaluation": {
            "estimator": "knn",
            "n_neighbors": 3,
            "n_features": SIZES,
            "references": False,
        },
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
        **changes,
    }


def study_of(X: np.ndarray, y: np.ndarray, layout: Layout | None = None, **changes: Any) -> Study:
    if layout is None:
        layout = Matrix(*SHAPE)
    data = Dataset(X.reshape(len(X), -1), y, layout, unprepared=True)
    return Study.prepare(config_from_dict(raw_study(**changes)), own=data)


def computed(study: Study, folder: Any) -> tuple[list[Any], list[Any]]:
    with study_log(folder, study) as log:
        return compute(SerialExecutor(study), study, log)


def scores_by_hand(X: np.ndarray, y: np.ndarray, train: Any, test: Any) -> list[float]:
    """Accuracy on test samples of the parcels that hold the best cells, for each number."""
    cells = X.reshape(len(X), -1)
    varies = np.ptp(cells[train], axis=0) > 0
    graph = grid_to_graph(*SHAPE, mask=varies.reshape(SHAPE))
    ward = FeatureAgglomeration(N_PARCELS, connectivity=graph).fit(cells[train][:, varies])
    parcel = np.full(cells.shape[1], -1)
    parcel[varies] = ward.labels_
    Z = ward.transform(cells[:, varies])
    f = f_classif(Z[train], y[train])[0]
    order = np.argsort(-np.where(parcel >= 0, f[parcel], 0.0), kind="stable")
    found = []
    for n in SIZES:
        kept = np.unique(parcel[order[:n]])
        knn = KNeighborsClassifier(3).fit(Z[train][:, kept], y[train])
        found.append(knn.score(Z[test][:, kept], y[test]))
    return found


def test_scores_are_those_of_loops_in_scikit_learn(tmp_path):
    X, y = images()
    study = study_of(X, y)
    (record,), refits = computed(study, tmp_path)
    for fold, refit in zip(study.plan.folds, refits, strict=True):
        for inner, fit in zip(fold.inner, record.folds[fold.name].inner, strict=True):
            expected = scores_by_hand(X, y, inner.train, inner.validation)
            np.testing.assert_allclose(fit.scores[-1], expected)
        if len(fold.test):
            expected = scores_by_hand(X, y, fold.train, fold.test)
            np.testing.assert_allclose(refit.record.test_scores, expected)
    final = np.array(refits[-1].record.feature_scores).reshape(SHAPE)
    assert (final[-1] == 0).all()
    assert final[BLOB].mean() > 2 * final[:-1][~BLOB[:-1]].mean()


def test_a_number_of_parcels_that_is_searched_is_that_of_the_best_inner_score(tmp_path):
    X, y = images(1)
    numbers = [4, 14, 40]
    searched = {"name": "fisher_score", "space": {"parcels": numbers}}
    data = {"path": "data.arrow", "prepare": ["parcels"], "scaling": "none"}
    study = study_of(X, y, dataset=data, solver=searched)
    records, refits = computed(study, tmp_path / "searched")
    alone = {}
    for number in numbers:
        fixed = {**data, "prepare": [{"parcels": number}]}
        alone[number] = computed(study_of(X, y, dataset=fixed), tmp_path / str(number))
    for record in records:
        (one,), _ = alone[record.params["parcels"]]
        for name, trace in record.folds.items():
            assert trace.last_scores.tolist() == one.folds[name].last_scores.tolist()
    for place, refit in enumerate(refits):
        number = refit.record.params["parcels"]
        inner = {n: refits_of[place].record.inner_score for n, (_, refits_of) in alone.items()}
        assert inner[number] == max(inner.values())
        expected = alone[number][1][place].record
        assert refit.record.test_scores == expected.test_scores
        assert refit.record.feature_scores == expected.feature_scores
        assert len(refit.model.preparation.origin_) == number


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_gives_the_same_numbers(tmp_path):
    X, y = images(1)
    study = study_of(
        X,
        y,
        dataset={"path": "data.arrow", "prepare": ["parcels"], "scaling": "none"},
        solver={"name": "fisher_score", "space": {"parcels": [4, 14]}},
    )
    trials, refits, _ = run_serially(study, tmp_path / "serial")
    on_ray = run_on_ray(study, tmp_path / "ray")
    assert on_ray[0] == trials
    for one, other in zip(on_ray[1], refits, strict=True):
        assert timeless(one.record.to_json()) == timeless(other.record.to_json())


def test_numbers_of_parcels_that_cannot_be_are_refused():
    X, y = images()
    data = {"path": "data.arrow", "prepare": ["parcels"]}
    for values in ([5, 121], [2.5]):
        searched = {"name": "fisher_score", "space": {"parcels": values}}
        with pytest.raises(ConfigError, match="there are 120 cells to join; give a whole number"):
            study_of(X, y, dataset=data, solver=searched)
    svm = {"name": "linear_svm", "space": {"parcels": [5], "C": [0.1, 1.0]}}
    with pytest.raises(ConfigError, match="keeps to one preparation, and parcels is searched"):
        study_of(X, y, dataset=data, solver=svm, search={"method": "path"})


def test_mirrored_images_have_mirrored_scores(tmp_path):
    X, y = images(2)
    plain, mirrored = (
        computed(study_of(samples, y), tmp_path / name)[1]
        for name, samples in (("plain", X), ("mirrored", X[:, :, ::-1]))
    )
    for one, other in zip(plain, mirrored, strict=True):
        scores = np.array(other.record.feature_scores).reshape(SHAPE)[:, ::-1].ravel()
        np.testing.assert_allclose(one.record.feature_scores, scores, rtol=1e-9)


@pytest.mark.slow
def test_permuted_labels_give_chance(tmp_path):
    means = []
    for seed in range(4):
        X, y = images(seed)
        y = np.random.default_rng(seed).permutation(y)
        refits = computed(study_of(X, y, cv={"outer": 4, "inner": 2}), tmp_path / str(seed))[1]
        means += [np.mean(refit.record.test_scores) for refit in refits[:4]]
    assert abs(np.mean(means) - 0.5) < 4 * 0.5 / np.sqrt(4 * N)


def test_a_masked_volume_ranks_the_cells_of_its_mask(tmp_path):
    mask = np.ones((5, 6, 4), dtype=bool)
    mask[:, 3] = False
    y = np.arange(60) % 2
    X = np.random.default_rng(3).normal(size=(60, mask.sum()))
    inside = np.zeros(mask.shape, dtype=bool)
    inside[1:4, :3, 1:3] = True
    X[y == 1] += 0.8 * inside[mask]
    _, refits = computed(study_of(X, y, MaskedVolume(mask)), tmp_path)
    best = np.argsort(-np.array(refits[-1].record.feature_scores))[:10]
    assert inside[mask][best].mean() > 0.7


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_a_study_in_files_resumes_and_its_model_takes_cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = images(4)
    np.savez("images.npz", X=X, y=y)
    raw = raw_study(cv={"outer": 2, "inner": 2})
    raw["dataset"] = {"path": "images.npz", "prepare": [{"parcels": N_PARCELS}]}
    result = run_offline(raw, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        raysel.run_study(raw, output="cut", progress=Watcher(3))
    resumed = raysel.resume_study("cut", progress=False)
    assert resumed.test_scores == result.test_scores
    assert resumed.final.feature_scores == result.final.feature_scores
    model = load_model(result.path / "model.skops")
    cells = X.reshape(N, -1)
    selected = model.transform(cells)
    assert model.get_feature_names_out().shape == (selected.shape[1],)
    assert (model.predict(cells) == y).mean() > 0.6
    again = model.fit(cells, y)
    np.testing.assert_array_equal(again.transform(cells), selected)
    np.testing.assert_array_equal(again.selector.scores_, result.final.feature_scores)
    with pytest.raises(StudyError, match="claim those of a study without parcels"):
        raysel.claim_features(result.path, progress=False)
    test = raysel.permutation_test(result.path, permutations=3, progress=False)
    assert not test.claims_features
    halves = raysel.stability_selection(result.path, top=15, subsamples=4, progress=False)
    assert halves.counts.max() <= 4
    assert halves.counts.sum() == 4 * 15


@pytest.mark.slow
def test_permutation_importance_permutes_a_parcel_at_once(tmp_path):
    X, y = images(5, height=0.8)
    solver = {"name": "sklearn.naive_bayes.GaussianNB", "importance": "permutation"}
    refits = computed(study_of(X, y, solver=solver), tmp_path)[1]
    record, model = refits[0].record, refits[0].model
    scores, joined_to = np.array(record.feature_scores), model.preparation.joined_to_
    np.testing.assert_array_equal(scores, scores[joined_to])
    importances = model.method.estimator_.feature_importances_
    assert len(importances) == N_PARCELS
    np.testing.assert_array_equal(scores[model.preparation.origin_], importances)
    assert scores[BLOB.ravel()].mean() > scores[~BLOB.ravel()].mean()


def test_all_features_are_a_reference_of_all_parcels(tmp_path):
    X, y = images(6)
    evaluation = {**raw_study()["evaluation"], "references": True}
    study = study_of(X, y, evaluation=evaluation)
    refits = computed(study, tmp_path)[1]
    for fold, refit in zip(study.plan.outer, refits, strict=False):
        Z = refit.model.preparation.transform(X.reshape(N, -1))
        knn = KNeighborsClassifier(3).fit(Z[fold.train], y[fold.train])
        assert refit.record.references["all features"] == [knn.score(Z[fold.test], y[fold.test])]


def test_methods_of_arrays_are_refused():
    X, y = images()
    for name in ("smr", "smoothed_f_test", "two_dimensional_lda"):
        solver = {"name": name, "params": {}, "space": {}}
        with pytest.raises(ConfigError, match="takes samples that are arrays"):
            study_of(X, y, solver=solver)


def test_correlated_columns_rank_together(tmp_path):
    rng = np.random.default_rng(7)
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 6)).repeat(3, axis=1) + 0.3 * rng.normal(size=(N, 18))
    X[:, 3:6] += y[:, None]
    X[:, 4] *= -2
    raw = raw_study()
    raw["dataset"]["prepare"] = ["clusters"]
    raw["evaluation"]["n_features"] = [3, 6]
    study = study_of(X, y, Tensor((18,)), **raw)
    _, refits = computed(study, tmp_path)
    for refit in refits:
        scores = np.array(refit.record.feature_scores).reshape(6, 3)
        np.testing.assert_array_equal(scores, np.repeat(scores[:, :1], 3, axis=1))
        assert scores[:, 0].argmax() == 1
        assert refit.model.preparation.get_feature_names_out()[1].endswith("+2")
