"""Precision of SMML's ranking of planted features and modalities, against the linear SVM with
either penalty.

OPENBLAS_NUM_THREADS=1 python planted.py [DRAWS]

Each method's parameters are chosen by its own mean score over four folds of 100 samples; its
ranking is that of the fit to all 100, its score that on 1000 others.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from raysel.baselines.linear_svm import LinearSVM
from raysel.data.scaling import ModalityScaler
from raysel.data.synthetic import make_multimodal_classification
from raysel.evaluation.splitters import split
from raysel.numerics.metrics import metric as named_metric
from raysel.numerics.rankings import descending_order
from raysel.solvers.smml.smml import SMML

HERE = Path(__file__).parent
WIDTHS = {"a": 30, "b": 40, "noise": 150, "also noise": 30}
PLANTED = {"a": 8, "b": 6}
SETTINGS = {
    "own noise": {},
    "shared noise": {"shared": 0.7},
    "labels": {"multilabel": True},
}
FRACTIONS = (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5)


def methods():
    """All configurations, by the method's name."""
    costs = 10.0 ** np.arange(-3, 4)
    return {
        "SMML": [SMML(WIDTHS, a, b, tol=1e-3) for a in FRACTIONS[:5] for b in FRACTIONS],
        "SMML, G1 only": [SMML(WIDTHS, a, 0, tol=1e-3) for a in FRACTIONS],
        "SMML, L21 only": [SMML(WIDTHS, 0, b, tol=1e-3) for b in FRACTIONS],
        "linear SVM, l1": [LinearSVM(C, "l1", random_state=0) for C in costs],
        "linear SVM, l2 (plain concatenation)": [LinearSVM(C, "l2", random_state=0) for C in costs],
    }


def chosen(models, X, y, folds, metric):
    """The model of the best mean score over the folds, ties to the simpler."""
    scores = np.zeros(len(models))
    for train, test in folds:
        scaler = ModalityScaler(WIDTHS).fit(X[train])
        X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
        prepared = models[0].prepare(X_train, y[train])
        for i, model in enumerate(models):
            for _ in model.iterate(X_train, y[train], prepared):
                pass
            scores[i] += metric(y[test], model.predict(X_test)) / len(folds)
    return models[
        min(range(len(models)), key=lambda i: (-round(scores[i], 12), models[i].complexity_key()))
    ]


def draws(n_draws):
    """One row a setting, draw and method."""
    for setting, options in SETTINGS.items():
        metric = named_metric("macro_f1" if options.get("multilabel") else "accuracy")
        for draw in range(n_draws):
            data, mask = make_multimodal_classification(
                WIDTHS,
                PLANTED,
                n_samples=1100,
                n_classes=4,
                noise=1.6,
                random_state=draw,
                **options,
            )
            X, y = data.X[:100], data.y[:100]
            folds = split(y, 4, groups=None, random_state=draw, where="folds")
            scaler = ModalityScaler(WIDTHS).fit(X)
            for method, models in methods().items():
                model = chosen(models, X, y, folds, metric).fit(scaler.transform(X), y)
                score = metric(data.y[100:], model.predict(scaler.transform(data.X[100:])))
                best = descending_order(model.scores_)[: mask.sum()]
                norms = [
                    np.linalg.norm(model.scores_[columns])
                    for columns in data.layout.slices().values()
                ]
                first, only = min(norms[:2]) > max(norms[2:]), max(norms[2:]) == 0
                yield setting, draw, method, mask[best].mean(), first, only, score


def main() -> None:
    """Print the table; write planted.csv beside this file."""
    rows = list(draws(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
    header = (
        "setting",
        "draw",
        "method",
        "precision",
        "modalities_first",
        "modalities_only",
        "score",
    )
    with (HERE / "planted.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(
            [*row[:3], *(f"{value:.6g}" for value in map(float, row[3:]))] for row in rows
        )
    print(
        "| data | method | precision | modalities first | and only these | score"
        " |\n|---|---|---|---|---|---|"
    )
    for setting in SETTINGS:
        for method in methods():
            values = np.array(
                [row[3:] for row in rows if (row[0], row[2]) == (setting, method)], dtype=float
            )
            means = " | ".join(f"{mean:.2f}" for mean in values[:, 1:3].mean(axis=0))
            precision = f"{values[:, 0].mean():.3f} ± {values[:, 0].std(ddof=1):.3f}"
            print(f"| {setting} | {method} | {precision} | {means} | {values[:, 3].mean():.3f} |")


if __name__ == "__main__":
    main()
