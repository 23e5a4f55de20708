"""Every scorer of scikit-learn, of every judge: its own figure of the stored models, or refused in one line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import get_scorer, get_scorer_names
from small_studies import NoUpload, raw_config

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.study.definition import Study

LOGISTIC = {"name": "sklearn.linear_model.LogisticRegression", "space": {"C": [0.01, 1.0]}}
FOREST = {
    "name": "sklearn.ensemble.RandomForestClassifier",
    "params": {"n_estimators": 5},
    "space": {"max_depth": [1, 3]},
}
JUDGES = {"knn": {"estimator": "knn", "n_neighbors": 3}, "linear_svm": {"estimator": "linear_svm", "C": [0.01, 1.0]}}
JUDGES |= {"logistic": {"estimator": LOGISTIC}, "forest": {"estimator": FOREST}, "native": {"estimator": "native"}}

KINDS = ("two classes", "text", "three classes", "labels")
#: Names that are for quantities, by the module of scikit-learn that has them.
OF_QUANTITIES = {name for name in get_scorer_names() if get_scorer(name)._score_func.__module__.endswith("_regression")}
OF_PROBABILITIES = {name for name in get_scorer_names() if get_scorer(name)._response_method == "predict_proba"}


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


def study_of(path: Path, judge: str, **evaluation) -> Study:
    sizes = {} if judge == "native" else {"n_features": [1, 2, 4]}
    scored = {**JUDGES[judge], **sizes, "choose_n": "best", "references": False, **evaluation}
    raw = raw_config(path, solver={"name": "linear_svm"}, evaluation=scored, dataset__scaling="zscore")
    return Study.prepare(config_from_dict(raw))


def run(study: Study, folder: Path):
    return course.run(study, folder, SerialExecutor(study), (), NoUpload)


def accepted(path: Path, judge: str, names) -> list[str]:
    """The names that a study takes; the others are refused in one line that names metric and key."""
    taken = []
    for name in names:
        try:
            study_of(path, judge, report=[name])
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
    ("two classes", "logistic"): ["roc_auc", "average_precision", "neg_log_loss", "f1", "positive_likelihood_ratio"],
    ("three classes", "knn"): ["roc_auc_ovr", "top_k_accuracy", "neg_brier_score", "f1_macro", "d2_log_loss_score"],
}


@pytest.mark.parametrize(("kind", "judge"), QUICK)
def test_a_scorer_gives_scikit_learns_figure_of_the_stored_models(kind, judge, tmp_path):
    X, y = write(tmp_path / "few.npz", kind)
    study = study_of(tmp_path / "few.npz", judge, report=QUICK[kind, judge])
    require_figures_of_the_models(study, run(study, tmp_path / "run"), QUICK[kind, judge], X, y)


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_every_scorer_gives_scikit_learns_figure_or_is_refused_in_one_line(kind, judge, tmp_path):
    X, y = write(tmp_path / "few.npz", kind)
    names = [name for name in get_scorer_names() if name != "accuracy"]
    taken = accepted(tmp_path / "few.npz", judge, names)
    assert not OF_QUANTITIES & set(taken)
    assert (kind == "labels" or judge not in ("linear_svm", "native")) or not OF_PROBABILITIES & set(taken)
    study = study_of(tmp_path / "few.npz", judge, report=taken)
    result = run(study, tmp_path / "run")
    require_figures_of_the_models(study, result, ["accuracy", *taken], X, y)
    # What is refused, although it is not for quantities, gives no figure by scikit-learn either.
    rows, model = study.plan.outer[0].test, result.fold_model("outer0")
    refused = set(names) - set(taken) - OF_QUANTITIES - {"top_k_accuracy"}  # of two classes always 1
    if kind == "labels":  # scikit-learn takes probabilities of labels for those of classes, which add up to 1
        refused -= OF_PROBABILITIES
    assert [name for name in refused if np.isfinite(figure(name, model, X[rows], y[rows]))] == []
