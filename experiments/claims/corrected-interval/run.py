"""Coverage of the corrected and the plain interval of a mean score, and of the difference of two, by simulation.

Data sets are drawn from a known population, so the expectation that an interval is to cover is known: the mean over
all data sets. Run: python experiments/claims/corrected-interval/run.py; it writes coverage.csv beside itself (2
minutes of CPU time).
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from raysel.evaluation.neighbours import knn_path
from raysel.numerics.inference import corrected_interval, paired_comparison
from raysel.numerics.rankings import descending_order

N_SETS, N_FEATURES, N_BEST = 1000, 30, 5
#: Number of samples, and distance of the two classes' means in each of the six features that differ.
POPULATIONS = {"n=60": (60, 0.9), "n=150": (150, 0.7), "null, n=100": (100, 0.0)}
PLANS = {
    "3 folds": lambda seed: RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=seed),
    "5 folds": lambda seed: RepeatedStratifiedKFold(n_splits=5, n_repeats=1, random_state=seed),
    "10 folds": lambda seed: RepeatedStratifiedKFold(n_splits=10, n_repeats=1, random_state=seed),
    "5 x 5 folds": lambda seed: RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=seed),
    "10 draws, half for training": lambda seed: StratifiedShuffleSplit(
        10, test_size=0.5, random_state=seed
    ),
}


def draw(n: int, distance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of normal samples whose means differ in six features."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, N_FEATURES))
    X[:, :6] += distance * y[:, None]
    return X, y


def scores(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[float, float]:
    """Accuracy of the 1-nearest neighbour on the best features by F-test, and on all."""
    orders = descending_order(f_classif(X[train], y[train])[0]), np.arange(N_FEATURES)
    found = [
        np.mean(knn_path(X[train], y[train], X[test], order, [n])[0] == y[test])
        for order, n in zip(orders, (N_BEST, N_FEATURES), strict=True)
    ]
    return found[0], found[1]


def coverage() -> Iterator[dict[str, object]]:
    """Yield a row of figures for each population and plan."""
    for population, (n, distance) in POPULATIONS.items():
        for plan, make in PLANS.items():
            runs, ratios = [], []
            for seed in range(N_SETS):
                X, y = draw(n, distance, np.random.default_rng([seed, n]))
                folds = list(make(seed).split(X, y))
                runs.append([scores(X, y, *fold) for fold in folds])
                ratios.append(np.mean([len(test) / len(train) for train, test in folds]))
            values = np.array(runs)  # (n_sets, n_runs, 2)
            truth = values[..., 0].mean(), (values[..., 0] - values[..., 1]).mean()
            row: dict[str, object] = {"population": population, "plan": plan, "data_sets": N_SETS}
            row["mean_score"], row["mean_difference"] = (f"{value:.4f}" for value in truth)
            for name, ratio in (("corrected", ratios), ("plain", [0.0] * N_SETS)):
                own = [corrected_interval(v[:, 0], r) for v, r in zip(values, ratio, strict=True)]
                row[f"score_{name}"] = covered([(i.lower, i.upper) for i in own], truth[0])
                row[f"width_{name}"] = (
                    f"{np.mean([i.upper - i.lower for i in own if i.lower is not None]):.3f}"
                )
                pairs = [
                    paired_comparison(v[:, 0], v[:, 1], r).corrected
                    for v, r in zip(values, ratio, strict=True)
                ]
                row[f"difference_{name}"] = covered(
                    [(p.lower, p.upper) if p else (None, None) for p in pairs], truth[1]
                )
            yield row


def covered(bounds: list[tuple[float | None, float | None]], truth: float) -> str:
    """Share of the intervals that hold the true value; there is none where all runs are equal."""
    known = [low <= truth <= high for low, high in bounds if low is not None and high is not None]
    return f"{np.mean(known):.3f}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = []
    for row in coverage():
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    with Path(__file__).with_name("coverage.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
