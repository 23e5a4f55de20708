"""Verdicts against chance on noise with unequal classes, and intervals over draws from one pool of
samples.

Run: python experiments/claims/chance-level/run.py; it writes noise.csv and draws.csv beside itself
(a minute of CPU time).
"""

from __future__ import annotations

import contextlib
import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from raysel.config import load_config
from raysel.evaluation.neighbours import knn_path
from raysel.evaluation.splitters import draw_per_class
from raysel.execution.serial import SerialExecutor
from raysel.numerics.inference import paired_comparison
from raysel.results.scores import Reference, references
from raysel.study.definition import Study
from raysel.testing.checks import run_by

SEEDS, N_POOL_DRAWS, EACH = 6, 3000, 10
PLANS = {"knn, accuracy": ("knn", "accuracy"), "linear SVM, accuracy": ("linear_svm", "accuracy")}
PLANS["knn, balanced_accuracy"] = ("knn", "balanced_accuracy")


def noise(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each study of noise: 170 and 30 samples of 20 features that tell nothing."""
    for name, (classifier, metric) in PLANS.items():
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            X, y = rng.standard_normal((200, 20)), rng.permutation(np.repeat([0, 1], [170, 30]))
            config = {
                "name": "noise",
                "seed": seed,
                "dataset": {"path": "noise.npz", "scaling": "zscore"},
                "solver": {"name": "fisher_score"},
                "evaluation": {
                    "classifier": classifier,
                    "n_neighbors": 15,
                    "n_features": [2, 5, 10],
                    "metric": metric,
                },
                "cv": {"outer": 5, "inner": 3, "final": False},
            }
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                np.savez("noise.npz", X=X, y=y)
                study = Study.prepare(load_config(config))
                outer = [
                    refit.record
                    for refit in run_by(SerialExecutor(study), study, Path(folder)).refits
                ]
            chance, scores = (
                references(outer, metric)["chance"],
                [refit.test_score for refit in outer],
            )
            guess = [refit.references["stratified guess"][0] for refit in outer]
            paired = paired_comparison(scores, guess, chance.paired.ratio)
            stratified = Reference(
                name="chance",
                scores=guess,
                paired=paired,
                curve=guess,
                recorded="stratified guess",
            )
            yield {
                "study": name,
                "seed": seed,
                "score": np.mean(scores),
                "stratified guess": stratified.mean,
                "verdict by the stratified guess": stratified.verdict,
                "chance": chance.mean,
                "the better guess": chance.recorded,
                "verdict by the better guess": chance.verdict,
            }


def draws(n: int) -> Iterator[dict[str, Any]]:
    """Yield how often intervals over draws of digits hold the mean over all draws, and exclude
    chance, 0.1.
    """
    X, y = load_digits(return_X_y=True)
    for train_per_class in (4, 20):
        scores, sizes = [], []
        for seed in range(n):
            train, test = draw_per_class(y, train_per_class, groups=None, random_state=seed)
            predicted = knn_path(X[train], y[train], X[test], np.arange(64), [64])[0]
            scores.append(np.mean(predicted == y[test]))
            sizes.append(len(test) / len(train))
        for kind in ("corrected", "plain"):
            found = [
                getattr(paired_comparison(own, np.zeros(EACH), sizes[0]), kind)
                for own in np.reshape(scores, (-1, EACH))
            ]
            ends = np.array([(test.lower, test.upper) for test in found]).clip(0.0, 1.0)
            truth = np.mean(scores)
            yield {
                "training samples a class": train_per_class,
                "n_test/n_train": sizes[0],
                "interval": kind,
                "holds the mean over all draws": np.mean(
                    (ends[:, 0] <= truth) & (truth <= ends[:, 1])
                ),
                "lies above chance": np.mean(ends[:, 0] > 0.1),
                "mean width": np.mean(ends[:, 1] - ends[:, 0]),
            }


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write and print rows as CSV."""
    shown = [{k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        for target in (file, sys.stdout):
            table = csv.DictWriter(target, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(shown)


if __name__ == "__main__":
    here = Path(__file__).parent
    write(here / "noise.csv", list(noise(SEEDS)))
    write(here / "draws.csv", list(draws(N_POOL_DRAWS)))
