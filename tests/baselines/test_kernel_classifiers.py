"""What the kernel classifiers share, and the kernel SVM against scikit-learn's; photographs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import draw, kernels_of, signs_of
from scipy.spatial.distance import pdist
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from small_studies import run_offline
from splits import trial_split

from raysel.base.models import load_model
from raysel.base.registry import build_solver
from raysel.baselines.gaussian_process import GaussianProcess
from raysel.baselines.kernel_classifiers import (
    KernelSVM,
    kernel_matrix,
    squared_distances,
    take_pairs,
)
from raysel.baselines.lp_boost import LPBoost
from raysel.baselines.mkl import MKL
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.scaling import make_scaler
from raysel.results import texts
from raysel.results.export import manifest

NAMES = {"kernel_svm": {}, "mkl": {"norm": 2}, "lp_boost": {"C": 1.0}, "gaussian_process": {}}


def fitted_state(model):
    return {key: value for key, value in vars(model).items() if key.endswith("_")}


@pytest.mark.parametrize("name", NAMES)
def test_held_out_samples_have_no_part_in_a_fit(name):
    X, y, modalities = draw(n=50)
    layout, train, held_out = Modalities(modalities), np.arange(35), np.arange(35, 50)
    scrambled = X.copy()
    scrambled[held_out] = 1e3 * np.random.default_rng(1).standard_normal((15, X.shape[1]))
    states = []
    for samples in (X, scrambled):
        model = build_solver(name, layout, NAMES[name], 0)
        scaler = make_scaler("zscore", layout)
        data = trial_split(samples, y, train, held_out, scaler, model)
        for _ in model.iterate(data.X_train, data.y_train, data.prepared):
            pass
        states.append(fitted_state(model))
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        np.testing.assert_array_equal(value, states[1][key])
    widths = [X.shape[1]] if name == "kernel_svm" else list(modalities.values())
    stops = np.cumsum(widths)
    expected = [
        1 / pdist(data.X_train[:, b - w : b], "sqeuclidean").mean()
        for w, b in zip(widths, stops, strict=True)
    ]
    np.testing.assert_allclose(states[0]["kernel_gammas_"], expected)
    np.testing.assert_array_equal(
        states[0]["support_vectors_"], data.X_train[states[0]["support_"]]
    )


@pytest.mark.parametrize(
    "model",
    [KernelSVM(tol=1e-7), MKL(norm=1, tol=1e-6), MKL(loss="squared", norm=1), GaussianProcess()],
)
def test_one_label_a_sample_scores_as_its_indicator(model):
    X, y, _ = draw(n=40)
    single = model.fit(X, y).decision_function(X)
    indicator = model.fit(X, (y[:, None] == np.arange(3)).astype(int)).decision_function(X)
    np.testing.assert_allclose(single, indicator, atol=1e-4)


def test_predictions_in_batches_are_those_of_one(monkeypatch):
    X, y, modalities = draw(n=45)
    model = MKL(modalities, norm=1).fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr("raysel.baselines.kernel_classifiers._BATCH_ENTRIES", 100)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)


def test_pairs_and_their_matrix():
    X, _, _ = draw()
    kernel = kernels_of(X, [X.shape[1]])[0]
    np.testing.assert_array_equal(kernel_matrix(take_pairs(kernel)), kernel)
    np.testing.assert_allclose(squared_distances(X, X[:3]), squared_distances(X)[:, :3], atol=1e-12)
    np.testing.assert_allclose(take_pairs(squared_distances(X)), pdist(X, "sqeuclidean"))


@pytest.mark.parametrize("name", NAMES)
def test_a_training_set_that_is_too_large_is_refused_with_its_size(name):
    model = build_solver(name, Modalities({"a": 4, "b": 6}), NAMES[name])
    with pytest.raises(
        ConfigError, match=r"needs about \d+\.\d GiB for the [12] kernel\(s\) of 24000 training"
    ):
        model.check_training(np.zeros(24000))
    with pytest.raises(ConfigError):
        model.prepare(np.zeros((6001, 10)), np.arange(6001) % 2)
    model.check_training(np.zeros(6000))


@pytest.mark.usefixtures("without_report")
def test_a_study_records_the_kernel_weights_of_its_winners(tmp_path):
    X, y, modalities = draw(n=60)
    save_dataset(Dataset(X, y, Modalities(modalities), "few"), tmp_path / "few.arrow")
    config = {
        "name": "few",
        "dataset": {"path": str(tmp_path / "few.arrow")},
        "solver": {"name": "mkl", "params": {"norm": 2}},
        "evaluation": {"classifier": "native"},
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
    }
    result = run_offline(config, tmp_path / "out")
    described = manifest(result)["modality_scores"]
    assert list(described) == ["outer0", "outer1", "outer2", "final"]
    model = load_model(tmp_path / "out" / "model.skops")[-1]
    assert described["final"] == dict(zip(modalities, model.modality_scores_.tolist(), strict=True))
    first = np.mean([described[f"outer{i}"][next(iter(modalities))] for i in range(3)])
    assert texts.modalities(result.facts).startswith(f"{next(iter(modalities))} {first:.3g}, ")


def test_modalities_must_cover_the_columns():
    X, y, _ = draw()
    with pytest.raises(ConfigError):
        MKL({"a": 2, "b": 3}).fit(X, y)
    with pytest.raises(ConfigError):
        MKL({"a": 0, "b": 9}).fit(X, y)


def test_the_modalities_of_a_data_set_are_named():
    X, y, modalities = draw()
    for name, params in NAMES.items():
        model = build_solver(name, Modalities(modalities), params, 0).fit(X, y)
        assert model.modality_names_ == (["all"] if name == "kernel_svm" else list(modalities))


def msrc(real_data, name, **options):
    dataset = load_dataset(str(real_data(name)), **options)
    return (
        dataset.X,
        dataset.y,
        dict(dataset.layout.modalities),
        make_scaler("zscore", dataset.layout),
    )


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda _: KernelSVM(C=10.0), 0.95),
        (lambda m: MKL(m, norm=2, C=10.0), 0.98),
        (lambda m: MKL(m, loss="squared"), 0.98),
        (GaussianProcess, 0.98),
        pytest.param(lambda m: MKL(m, C=10.0), 0.98, marks=pytest.mark.slow),
        pytest.param(lambda m: LPBoost(m, C=10.0, random_state=0), 0.98, marks=pytest.mark.slow),
    ],
)
def test_photographs_are_classified_as_well_as_published(real_data, make, least):
    X, y, modalities, scaler = msrc(real_data, "MSRCv1_6v.npz")
    scores = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = make(modalities).fit(scaler.fit_transform(X[train]), y[train])
        scores.append(model.score(scaler.transform(X[test]), y[test]))
    assert np.mean(scores) >= least


@settings(max_examples=10)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([0.01, 1.0, 10.0]),
)
def test_it_is_one_against_rest_of_svc(seed, n_classes, C, gamma):
    X, y, _ = draw(n=30, n_classes=n_classes, seed=seed)
    others = X + 0.5
    ours = KernelSVM(C, gamma, tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=C, kernel="precomputed", tol=1e-6))
    theirs.fit(kernels_of(X, [X.shape[1]], gamma)[0], y)
    expected = theirs.decision_function(kernels_of(X, [X.shape[1]], gamma, others)[0])
    np.testing.assert_allclose(ours.decision_function(others), expected, atol=1e-4)


def test_the_absolute_width_is_that_of_svc():
    X, y, _ = draw(n=40)
    ours = KernelSVM(2.0, 0.3, "absolute", tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=2.0, gamma=0.3, tol=1e-6)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_several_labels_are_several_machines():
    X, y, _ = draw(n=40)
    Y = np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y), X[:, 0] > 0]).astype(int)
    ours = KernelSVM(2.0, 0.3, "absolute", tol=1e-6).fit(X, Y)
    theirs = OneVsRestClassifier(SVC(C=2.0, gamma=0.3, tol=1e-6)).fit(X, Y[:, [0, 3]])
    np.testing.assert_allclose(
        ours.decision_function(X)[:, [0, 3]], theirs.decision_function(X), atol=1e-4
    )
    np.testing.assert_array_equal(ours.decision_function(X)[:, 1:3], np.tile([-1.0, 1.0], (40, 1)))
    np.testing.assert_array_equal(ours.predict(X)[:, 1:3], Y[:, 1:3])


def test_only_constant_labels_need_no_machine():
    X, y, _ = draw()
    Y = np.column_stack([np.zeros_like(y), np.ones_like(y)])
    model = KernelSVM().fit(X, Y)
    assert model.support_vectors_.shape == (0, X.shape[1])
    np.testing.assert_array_equal(model.predict(X), Y)


def test_the_objective_is_the_primal_one():
    X, y, _ = draw(n=40)
    model, kernel, signs = (
        KernelSVM(0.5, tol=1e-8).fit(X, y),
        kernels_of(X, [X.shape[1]])[0],
        signs_of(y),
    )
    dual = np.zeros(signs.shape)
    dual[:, model.support_] = model.dual_coef_
    quadratic = 0.5 * np.trace(dual @ kernel @ dual.T)
    losses = np.maximum(0, 1 - signs * model.decision_function(X).T).sum()
    np.testing.assert_allclose(model.objective_path_, [quadratic + 0.5 * losses], rtol=1e-9)
    np.testing.assert_allclose(
        model.objective_path_, [(dual * signs).sum() - quadratic], rtol=1e-4
    )  # the dual one


def test_samples_far_from_the_origin_keep_their_distances():
    X, y, _ = draw(n=40)
    near, far = KernelSVM(tol=1e-6).fit(X, y), KernelSVM(tol=1e-6).fit(X + 1e6, y)
    np.testing.assert_allclose(
        far.decision_function(X + 1e6 + 0.1), near.decision_function(X + 0.1), atol=1e-4
    )
