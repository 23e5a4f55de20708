"""Nested cross-validation by scikit-learn alone, of the same kind of classifier as a drafted study has."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from raysel.config import StudyConfig

_METRICS = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}


def reference_scores(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, config: StudyConfig) -> np.ndarray:
    """Score of each outer fold: F-test and classifier on tables and images, ridge-like SVM on modalities."""
    name, sizes = config.evaluation.classifier, list(config.evaluation.n_features)
    steps: list[tuple[str, Any]] = [] if name == "knn" else [("scale", StandardScaler())]
    grid: dict[str, Any] = {}
    if name == "native":
        steps.append(("classify", LinearSVC(dual=True, max_iter=5000)))
        grid = {"classify__C": [1e-4, 1e-3, 1e-2, 1e-1]}
    else:
        classify = KNeighborsClassifier(config.evaluation.n_neighbors) if name == "knn" else LinearSVC(dual=False)
        steps += [("select", SelectKBest(f_classif)), ("classify", classify)]
        grid = {"select__k": sizes}
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    scores = []
    with warnings.catch_warnings(action="ignore"):
        for train, test in splitter(config.cv.outer, shuffle=True, random_state=1).split(X, y, groups):
            inner = splitter(config.cv.inner, shuffle=True, random_state=1)
            splits = list(inner.split(X[train], y[train], None if groups is None else groups[train]))
            search = GridSearchCV(Pipeline(steps), grid, cv=splits, scoring=config.evaluation.metric)
            predicted = search.fit(X[train], y[train]).predict(X[test])
            scores.append(_METRICS[config.evaluation.metric](y[test], predicted))
    return np.array(scores)
