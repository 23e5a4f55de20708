"""Every scorer of scikit-learn, of every estimator: its own figure of the stored models, or refused
in one line.
"""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    precision_score,
)
from sklearn.preprocessing import StandardScaler
from small_studies import NoUpload, raw_config

import raysel
from raysel.cli.plan import describe, notes
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.outputs import TestOutputs
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.scoring_estimators import scoring_estimator_class
from raysel.execution.serial import SerialExecutor
from raysel.results.displays.curves import Calibration, PrecisionRecallCurves, RocCurves
from raysel.run import course
from raysel.run.course import OneStudy
from raysel.study.checks import imported_code
from raysel.study.definition import Study

LOGISTIC = {"name": "sklearn.linear_model.LogisticRegression", "space": {"C": [0.01, 1.0]}}
FOREST = {
    "name": "sklearn.ensemble.RandomForestClassifier",
    "params": {"n_estimators": 5},
    "space": {"max_depth": [1, 3]},
}
ESTIMATORS = {
    "knn": {"estimator": "knn", "n_neighbors": 3},
    "linear_svm": {"estimator": "linear_svm", "C": [0.01, 1.0]},
}
ESTIMATORS |= {
    "logistic": {"estimator": LOGISTIC},
    "forest": {"estimator": FOREST},
    "native": {"estimator": "native"},
}

#: Names that are for quantities, by the module of scikit-learn that has them.
OF_QUANTITIES = {
    name
    for name in get_scorer_names()
    if get_scorer(name)._score_func.__module__.endswith("_regression")
}
OF_PROBABILITIES = {
    name for name in get_scorer_names() if get_scorer(name)._response_method == "predict_proba"
}


def labels(kind: str, X: np.ndarray) -> np.ndarray:
    if kind == "labels":
        return (X[:, :3] + np.random.default_rng(1).standard_normal((len(X), 3)) > 0).astype(int)
    n = 3 if kind == "three classes" else 2
    y = np.arange(len(X)) % n
    return np.array(["yes", "no"])[y] if kind == "text" else y


def write(
    path: Path, kind: str, n: int = 72, shift: float = 1.0, permute: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((n, 6))
    y = labels(kind, X)
    if y.ndim == 1:
        X[:, :2] += shift * (np.unique(y, return_inverse=True)[1][:, None] == [0, 1])
    if permute is not None:
        y = np.random.default_rng(permute).permutation(y)
    np.savez(path, X=X, y=y)
    return X, y


def study_of(path: Path, scoring: str, final: bool = False, **evaluation) -> Study:
    sizes = {} if scoring == "native" else {"n_features": [1, 4]}
    default = {"metric": "accuracy", "choose_n": "best", "references": False}
    scored = {**ESTIMATORS[scoring], **sizes, **default, **evaluation}
    raw = raw_config(
        path, solver={"name": "linear_svm"}, evaluation=scored, dataset__scaling="zscore"
    )
    raw["cv"]["final"] = final
    return Study.prepare(config_from_dict(raw))


def run(study: Study, folder: Path):
    return course.run(study, folder, SerialExecutor(study), (), NoUpload)


def accepted(path: Path, scoring: str, names) -> list[str]:
    """The names that a study takes; the others are refused in one line that names metric and
    key.
    """
    taken = []
    for name in names:
        try:
            study_of(path, scoring, report=[name])
        except ConfigError as refused:
            message = str(refused)
            assert "\n" not in message
            assert message.startswith(f"evaluation.report: {name} ")
        else:
            taken.append(name)
    return taken


def require_figures_of_the_models(study: Study, result, names, X, y, scorers=None):
    for fold in study.plan.outer:
        refit = next(refit for refit in result.refits if refit.fold == fold.name)
        model = result.fold_model(fold.name)
        for name in names:
            scorer = (scorers or {}).get(name) or get_scorer(name)
            with warnings.catch_warnings(action="ignore"):
                expected = scorer(model, X[fold.test], y[fold.test])
            found = refit.test_score if name == study.evaluation.metric else refit.reported(name)
            assert found == expected, name


def figure(name, model, X, y) -> float:
    """What scikit-learn's scorer gives; NaN if it gives none."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return float(get_scorer(name)(model, X, y))
    except (ValueError, AttributeError, IndexError, TypeError):
        return float("nan")


QUICK = {
    ("two classes", "logistic"): [
        "roc_auc",
        "average_precision",
        "neg_log_loss",
        "f1",
        "positive_likelihood_ratio",
    ],
    ("three classes", "knn"): [
        "roc_auc_ovr",
        "top_k_accuracy",
        "neg_brier_score",
        "f1_macro",
        "d2_log_loss_score",
    ],
}


@pytest.mark.parametrize(("kind", "scoring"), QUICK)
def test_a_scorer_gives_scikit_learns_figure_of_the_stored_models(kind, scoring, tmp_path):
    X, y = write(tmp_path / "few.npz", kind)
    study = study_of(tmp_path / "few.npz", scoring, report=QUICK[kind, scoring])
    require_figures_of_the_models(study, run(study, tmp_path / "run"), QUICK[kind, scoring], X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scoring"),
    [
        *(("two classes", scoring) for scoring in ("logistic", "native")),
        *(("three classes", scoring) for scoring in ("knn", "forest")),
        *(("labels", scoring) for scoring in ("knn", "linear_svm", "forest")),
    ],
)
def test_every_scorer_gives_scikit_learns_figure_or_is_refused_in_one_line(kind, scoring, tmp_path):
    X, y = write(tmp_path / "few.npz", kind)
    names = [name for name in get_scorer_names() if name != "accuracy"]
    taken = accepted(tmp_path / "few.npz", scoring, names)
    assert not OF_QUANTITIES & set(taken)
    assert (
        kind == "labels" or scoring not in ("linear_svm", "native")
    ) or not OF_PROBABILITIES & set(taken)
    study = study_of(tmp_path / "few.npz", scoring, report=taken)
    result = run(study, tmp_path / "run")
    require_figures_of_the_models(study, result, ["accuracy", *taken], X, y)
    # What is refused, although it is not for quantities, gives no figure by scikit-learn either.
    rows, model = study.plan.outer[0].test, result.fold_model("outer0")
    refused = (
        set(names) - set(taken) - OF_QUANTITIES - {"top_k_accuracy"}
    )  # of two classes always 1
    if (
        kind == "labels"
    ):  # scikit-learn takes probabilities of labels for those of classes, which add up to 1
        refused -= OF_PROBABILITIES
    assert [name for name in refused if np.isfinite(figure(name, model, X[rows], y[rows]))] == []


TEXT = {
    "f1": make_scorer(f1_score, pos_label="yes"),
    "precision": make_scorer(precision_score, pos_label="yes"),
    "average_precision": make_scorer(
        average_precision_score, response_method="decision_function", pos_label="yes"
    ),
    "roc_auc": get_scorer("roc_auc"),
    "neg_brier_score": make_scorer(
        brier_score_loss, greater_is_better=False, response_method="predict_proba", pos_label="yes"
    ),
}


def test_the_second_class_is_the_positive_one_also_of_text(tmp_path):
    X, y = write(tmp_path / "few.npz", "text")
    study = study_of(tmp_path / "few.npz", "logistic", metric="f1", report=list(TEXT)[1:])
    require_figures_of_the_models(study, run(study, tmp_path / "run"), TEXT, X, y, TEXT)
    assert (
        "The positive class of F1, precision, average precision, ROC AUC and neg brier score is yes"
        in " ".join(" ".join(describe(OneStudy.of(study), None)).split())
    )


OWN = """
from sklearn.metrics import fbeta_score, log_loss, make_scorer
def hits(y_true, y_pred): return float((y_true == y_pred).sum())
def three(estimator, X, y): return 1.0
twice = make_scorer(fbeta_score, beta=2)
loss = make_scorer(
    log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1]
)
"""


def test_scorers_of_ones_own_by_dotted_name(tmp_path, monkeypatch):
    (tmp_path / "own_scores.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    X, y = write(tmp_path / "few.npz", "two classes")
    module = importlib.import_module("own_scores")
    names = ["own_scores.hits", "own_scores.twice", "own_scores.loss"]
    study = study_of(tmp_path / "few.npz", "forest", metric=names[0], report=names[1:])
    scorers = dict(zip(names, [make_scorer(module.hits), module.twice, module.loss], strict=True))
    require_figures_of_the_models(study, run(study, tmp_path / "run"), names, X, y, scorers)
    assert [name for _, name in imported_code(study.config)] == names
    with pytest.raises(
        ConfigError,
        match=r"own_scores.three takes estimator, X, y; write the dotted name of a func",
    ):
        study_of(tmp_path / "few.npz", "forest", metric="own_scores.three")


@pytest.mark.parametrize(
    ("scoring", "evaluation", "message"),
    [
        (
            "linear_svm",
            {"metric": "neg_log_loss"},
            r"neg_log_loss needs probabilities, which .* linear_svm does not give",
        ),
        (
            "native",
            {"metric": "neg_log_loss"},
            r"neg_log_loss needs probabilities, and linear_svm .* has no predict_proba",
        ),
        (
            "knn",
            {"metric": "roc_auc_ovr", "report": ["r2"]},
            r"evaluation.report: r2 is for quantities, and y has 2 cl",
        ),
        (
            "knn",
            {"estimator": "sklearn.linear_model.Ridge"},
            r"estimator: sklearn.linear_model.Ridge is a regressor; use a",
        ),
        (
            "knn",
            {"estimator": "sklearn.svm.LinearSVR2"},
            r"evaluation.estimator: sklearn.svm has no 'LinearSVR2'",
        ),
        (
            "knn",
            {"estimator": {"name": "sklearn.svm.SVC", "params": {"D": 1}}},
            r"sklearn.svm.SVC cannot be constructed: .*D",
        ),
        (
            "knn",
            {"estimator": {"name": "sklearn.svm.SVC", "space": {"C": [1, -1]}}},
            r"SVC \(C=-1\) cannot be constructed: .*C",
        ),
        (
            "knn",
            {"estimator": "sklearn.svm.SVC", "report": ["neg_brier_score"]},
            r"needs probabilities, and sklearn.svm.S",
        ),
        ("knn", {"classifier": "knn"}, r"`classifier` is the former name of `estimator`; keep one"),
    ],
)
def test_what_does_not_apply_is_refused_before_anything_is_fitted(
    scoring, evaluation, message, tmp_path
):
    write(tmp_path / "few.npz", "two classes")
    with pytest.raises(ConfigError, match=message):
        study_of(tmp_path / "few.npz", scoring, **evaluation)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "balanced_accuracy"])
def test_a_class_that_is_missing_in_a_fold_is_named(metric, tmp_path):
    _, y = write(tmp_path / "few.npz", "two classes")
    whole = NestedPlan.make(y, outer=2, inner=2, repeats=1, groups=None, seed=0).to_json()
    held_out = whole["folds"][1]["inner"][0]
    held_out["validation"] = [row for row in held_out["validation"] if y[row]]
    (tmp_path / "plan.json").write_text(json.dumps(whole))
    cv = {"plan": str(tmp_path / "plan.json")}
    raw = raw_config(tmp_path / "few.npz", solver={"name": "linear_svm"}, cv=cv)
    raw["evaluation"] = {"estimator": "knn", "n_features": [2], "metric": metric}
    if metric == "balanced_accuracy":
        assert Study.prepare(config_from_dict(raw)).evaluation.metric == metric
        return
    message = (
        rf"metric: {metric} is undefined where .* outer1's inner fold 0 validation samples have no"
        r" .* class 0\. Set"
    )
    with pytest.raises(ConfigError, match=message):
        Study.prepare(config_from_dict(raw))


RESPONSES = {"predict": "f1_macro", "decision_function": "roc_auc", "predict_proba": "neg_log_loss"}


@pytest.mark.slow
@pytest.mark.parametrize("metric", RESPONSES.values())
def test_permuted_labels_give_chance(metric, tmp_path):
    """The mean over four permutations lies no more than three standard errors above chance."""
    excess = []
    for seed in range(4):
        write(tmp_path / "few.npz", "two classes", permute=seed, shift=3.0)
        study = study_of(tmp_path / "few.npz", "logistic", metric=metric, references=True)
        excess.append(paired(run(study, tmp_path / f"run{seed}")))
    mean, error = np.mean(excess), np.std(excess, ddof=1) / np.sqrt(len(excess))
    assert mean < 3 * error
    write(tmp_path / "few.npz", "two classes", shift=3.0)  # while true labels do not
    study = study_of(tmp_path / "few.npz", "logistic", metric=metric, references=True)
    assert paired(run(study, tmp_path / "true")) > 3 * error


def paired(result) -> float:
    return float(result.references["chance"].paired.mean)


@pytest.mark.slow
def test_chance_is_the_better_of_the_constant_and_the_stratified_guess(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 20])
    X = rng.standard_normal((80, 6))
    np.savez(tmp_path / "few.npz", X=X, y=y)
    for metric, constant in (
        ("f1", {"strategy": "constant", "constant": 1}),  # always the rare, positive class
        ("accuracy", {"strategy": "most_frequent"}),
        ("neg_log_loss", {"strategy": "prior"}),
        ("roc_auc", {"strategy": "prior"}),
    ):
        study = study_of(tmp_path / "few.npz", "logistic", metric=metric, references=True)
        result = run(study, tmp_path / metric)
        expected = []
        for fold in study.plan.outer:
            dummy = DummyClassifier(**constant).fit(X[fold.train], y[fold.train])
            expected.append(get_scorer(metric)(dummy, X[fold.test], y[fold.test]))
        chance = result.references["chance"]
        assert chance.scores == pytest.approx(expected)
        name = {"f1": "best constant class", "accuracy": "most frequent class"}
        assert chance.recorded == name.get(metric, "class shares")
        if metric not in name:  # a stratified guess cannot be better than the shares themselves
            assert not result.facts.guesses
            continue
        stratified, best = sorted(result.facts.guesses.values())
        assert stratified < best == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("scoring", ["logistic", pytest.param("forest", marks=pytest.mark.slow)])
def test_the_space_of_an_estimator_is_chosen_by_the_inner_folds_alone(scoring, tmp_path):
    """By scikit-learn's grid search, and with scrambled test rows nothing that is chosen or
    fitted changes.
    """
    X, y = write(tmp_path / "few.npz", "two classes", shift=0.7)
    study = study_of(tmp_path / "few.npz", scoring, metric="roc_auc")
    result = run(study, tmp_path / "run")
    estimator = ESTIMATORS[scoring]["estimator"]
    (parameter, values), *_ = estimator["space"].items()
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        scores = np.zeros((len(fold.inner), len(values), 2))
        for i, inner in enumerate(fold.inner):
            scaler = StandardScaler().fit(X[inner.train])
            state = fold.random_state(study.config.seed, i)
            svm = study.solver({}, state).fit(scaler.transform(X[inner.train]), y[inner.train])
            for j, value in enumerate(values):
                for k, n in enumerate((1, 4)):
                    best = np.sort(np.argsort(-svm.scores_, kind="stable")[:n])
                    model = scoring_estimator_class(estimator["name"])(
                        **{**estimator.get("params", {}), parameter: value, "random_state": state}
                    ).fit(scaler.transform(X[inner.train])[:, best], y[inner.train])
                    Z = scaler.transform(X[inner.validation])[:, best]
                    scores[i, j, k] = get_scorer("roc_auc")(model, Z, y[inner.validation])
        means = scores.mean(axis=0).round(12)
        assert refit.settings == [{parameter: values[j]} for j in means.argmax(axis=0)]
        assert refit.inner_curve == pytest.approx(means.max(axis=0))
    test = study.plan.outer[0].test
    scrambled = X.copy()
    scrambled[test] = np.random.default_rng(5).permutation(X[test].ravel()).reshape(X[test].shape)
    np.savez(tmp_path / "few.npz", X=scrambled, y=y)
    again = run(study_of(tmp_path / "few.npz", scoring, metric="roc_auc"), tmp_path / "again")
    here, there = result.outer[0], again.outer[0]
    for name in (
        "settings",
        "inner_curve",
        "inner_score",
        "feature_scores",
        "n_features",
        "training_scores",
    ):
        assert getattr(here, name) == getattr(there, name)
    fixed = np.random.default_rng(7).standard_normal((20, X.shape[1]))
    models = [study.fold_model("outer0") for study in (result, again)]
    np.testing.assert_array_equal(models[0].predict_proba(fixed), models[1].predict_proba(fixed))
    assert here.test_scores != there.test_scores


def test_outputs_of_the_test_samples_are_those_of_the_stored_model(tmp_path):
    for kind, scoring, shape in (
        ("two classes", "logistic", 1),
        ("three classes", "knn", 3),
        ("labels", "forest", 3),
    ):
        X, y = write(tmp_path / f"{shape}.npz", kind)
        study = study_of(tmp_path / f"{shape}.npz", scoring, metric="accuracy")
        result = run(study, tmp_path / kind)
        for fold, refit in zip(study.plan.outer, result.outer, strict=True):
            model, found = result.fold_model(fold.name), TestOutputs.from_json(refit.outputs)
            truth = (
                y[fold.test]
                if kind == "labels"
                else np.searchsorted(model.classes_, y[fold.test])[:, None]
            )
            np.testing.assert_array_equal(found.truth, truth)
            given = model.predict_proba(X[fold.test])
            given = (
                np.stack([column[:, 1] for column in given], axis=1)
                if isinstance(given, list)
                else given
            )
            expected = given[:, 1:] if shape == 1 else given
            np.testing.assert_allclose(
                found.values["predict_proba"], expected, rtol=1e-6, atol=1e-7
            )
        for curve in (RocCurves, PrecisionRecallCurves, Calibration):
            shown = curve.from_facts(result.facts)
            assert len(shown.samples) == shape
            if curve is RocCurves and kind == "two classes":
                areas = [
                    get_scorer("roc_auc")(result.fold_model(f.name), X[f.test], y[f.test])
                    for f in study.plan.outer
                ]
                assert [
                    curve.summarise(s.truth, s.score) for s in shown.samples["1"]
                ] == pytest.approx(areas)
                pooled = shown.frame().query("samples == 'pooled'")
                lines = [line for line in shown.plot().lines if line.get_linewidth() == 2.0]
                np.testing.assert_array_equal(lines[0].get_xdata(), pooled["false_positive_rate"])
                np.testing.assert_array_equal(lines[0].get_ydata(), pooled["true_positive_rate"])


@pytest.mark.parametrize(
    "damage",
    [
        {"n": 0},
        {"truth": "!"},
        {"truth": None},
        {"predict_proba": "AAAA"},
        {"other": ""},
        {"n": 10**9},
    ],
    ids=str,
)
def test_damaged_outputs_are_refused(damage):
    good = TestOutputs(np.ones((4, 1)), {"predict_proba": np.full((4, 1), 0.5)}).to_json()
    assert TestOutputs.from_json(good).values["predict_proba"].tolist() == [[0.5]] * 4
    with pytest.raises(ValueError, match="'outputs'"):
        TestOutputs.from_json({**good, **damage})


def test_a_scoring_estimator_that_cannot_be_stored_leaves_no_model_and_the_plan_says_so(
    tmp_path, monkeypatch
):
    (tmp_path / "own_estimator.py").write_text(
        "from sklearn.linear_model import LogisticRegression as L\nclass H: pass\nclass J(L):\n"
        "    def fit(self, X, y): self.h_ = H(); return super().fit(X, y)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path / "few.npz", "two classes")
    study = study_of(tmp_path / "few.npz", "knn", final=True, estimator="own_estimator.J")
    assert (study.findings.storable, study.findings.untrusted) == (False, ("own_estimator.H",))
    assert (
        "model.skops will not be written, because a file cannot hold own_estimator.H:"
        in " ".join(notes(study))
    )
    result = run(study, tmp_path / "run")
    assert not result.directory.model.exists()
    X = study.dataset.X
    assert result.fold_model("outer0").predict(X).shape == study.dataset.y.shape
    with pytest.raises(DataError, match=r"no model of outer0: a file cannot hold own_estimator\.H"):
        raysel.open_study(result.path).fold_model("outer0")
    assert imported_code(study.config) == [("evaluation.estimator", "own_estimator.J")]
