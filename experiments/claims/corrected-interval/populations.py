"""Populations with known truth, models that are quick to train, and metrics of each kind of
label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysel.data.targets import find_target
from raysel.numerics.metrics import average_precision, metric

#: Samples, their labels, and their groups or None.
Sample = tuple[np.ndarray, np.ndarray, np.ndarray | None]
#: Takes labels, outputs of a model, and what it knows of its training labels.
Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Population:
    """Samples of a population, a model, and a guess that reads no feature."""

    draw: Callable[[np.random.Generator, int], Sample]
    #: Output of a model, trained on the first two, for the third.
    model: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    metrics: Mapping[str, Score]


def _noise(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    e = rng.standard_normal(n)
    return {
        "normal": lambda: e,
        "lognormal": lambda: np.exp(e),
        "t, 3 df": lambda: rng.standard_t(3, n),
        "2 % outliers": lambda: np.where(rng.random(n) < 0.02, 10 * e, e),
    }[kind]()


def quantity(kind: str, signal: float, size: int = 1) -> Population:
    """A quantity of three of ten features, in groups of a size with a normal effect each."""

    def draw(rng: np.random.Generator, n: int) -> Sample:
        X = rng.standard_normal((n, 10))
        y = signal * X[:, :3].sum(axis=1) + _noise(kind, rng, n)
        if size == 1:
            return X, y, None
        groups = np.arange(n) // size
        return X, y + rng.standard_normal(len(np.unique(groups)))[groups], groups

    return Population(draw, ridge, QUANTITIES)


def classes(share: float, shift: float, size: int = 1, nearest: bool = False) -> Population:
    """Two classes whose means differ in three of ten features, or in six of 30."""
    d, told = (30, 6) if nearest else (10, 3)

    def draw(rng: np.random.Generator, n: int) -> Sample:
        y = np.zeros(n, dtype=np.int64)
        while min(y.sum(), n - y.sum()) < 10:  # two of each class in every fold
            y = np.repeat(rng.random(-(-n // size)) < share, size)[:n].astype(np.int64)
        X = rng.standard_normal((n, d))
        X[:, :told] += shift * y[:, None]
        groups = None if size == 1 else np.arange(n) // size
        if groups is not None:
            X += rng.standard_normal((groups[-1] + 1, d))[groups]
        return X, y, groups

    return Population(draw, nearest_of_best if nearest else discriminant, CLASSES)


def labels(shift: float) -> Population:
    """Four labels with shares of .5 to .1, each told by two of ten features."""
    shares = np.array([0.5, 0.4, 0.2, 0.1])

    def draw(rng: np.random.Generator, n: int) -> Sample:
        y = np.zeros((n, 4), dtype=np.int64)
        while y.sum(axis=0).min() < 10:
            y = (rng.random((n, 4)) < shares).astype(np.int64)
        X = rng.standard_normal((n, 10))
        X[:, :8] += shift * np.repeat(y, 2, axis=1)
        return X, y, None

    def model(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
        return np.stack([discriminant(X, column, X_test) for column in y.T], axis=1)

    return Population(draw, model, LABELS)


def ridge(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Predictions of ridge regression with alpha 1."""
    mean, centred = X.mean(axis=0), X - X.mean(axis=0)
    gram = centred.T @ centred + np.eye(X.shape[1])
    return (X_test - mean) @ np.linalg.solve(gram, centred.T @ (y - y.mean())) + y.mean()


def discriminant(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Log odds of linear discriminant analysis."""
    one, zero, share = X[y == 1].mean(axis=0), X[y == 0].mean(axis=0), y.mean()
    centred = X - np.where((y == 1)[:, None], one, zero)
    covariance = centred.T @ centred / (len(y) - 2) + 0.05 * np.eye(X.shape[1])
    weights = np.linalg.solve(covariance, one - zero)
    return (X_test - (one + zero) / 2) @ weights + np.log(share / (1 - share))


def nearest_of_best(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Vote of the nearest neighbour on the five best features by their t statistic, as log odds
    of +-1.
    """
    one, zero = X[y == 1], X[y == 0]
    spread = one.var(axis=0) / len(one) + zero.var(axis=0) / len(zero)
    t = np.abs(one.mean(axis=0) - zero.mean(axis=0)) / np.sqrt(spread)
    best = np.argsort(-t)[:5]
    distances = ((X_test[:, None, best] - X[:, best]) ** 2).sum(axis=2)
    return np.where(y[distances.argmin(axis=1)] == 1, 1.0, -1.0)


def _share(y: np.ndarray, odds: np.ndarray) -> np.ndarray:
    right = 1 / (1 + np.exp(-odds))
    return np.where(y == 1, right, 1 - right)


def _auc(y: np.ndarray, odds: np.ndarray, _: Any = None) -> float:
    above = np.subtract.outer(odds[y == 1], odds[y == 0])
    return float((np.sign(above).mean() + 1) / 2) if above.size else float("nan")


def _f1(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    total = y.sum(axis=0) + predicted.sum(axis=0)
    return 2 * (y * predicted).sum(axis=0) / np.maximum(total, 1)


def _balanced(y: np.ndarray, odds: np.ndarray, _: Any = None) -> float:
    return float(np.mean([((odds > 0) == y)[y == c].mean() for c in (0, 1) if (y == c).any()]))


#: The odds are cut to predictions at 0; MAE to median absolute error are negative.
QUANTITIES: Mapping[str, Score] = {
    "MAE": metric("neg_mae"),
    "RMSE": metric("neg_rmse"),
    "R2": metric("out_of_sample_r2"),
    "median error": lambda y, p, _: -float(np.median(np.abs(y - p))),
    "Pearson": metric("pearson"),
}
CLASSES: Mapping[str, Score] = {
    "accuracy": lambda y, odds, _: float(((odds > 0) == y).mean()),
    "balanced accuracy": _balanced,
    "log loss": lambda y, odds, _: float(np.log(_share(y, odds)).mean()),
    "Brier": lambda y, odds, _: -float(((1 - _share(y, odds)) ** 2).mean()),
    "F1": lambda y, odds, _: float(_f1(y, (odds > 0).astype(np.int64))),
    "AUC": _auc,
    "average precision": lambda y, odds, _: float(average_precision(y[:, None], odds[:, None])[0]),
}
LABELS: Mapping[str, Score] = {
    "subset accuracy": lambda y, odds, _: float(((odds > 0) == y).all(axis=1).mean()),
    "Hamming": lambda y, odds, _: -float(((odds > 0) != y).mean()),
    "macro F1": lambda y, odds, _: float(_f1(y, (odds > 0).astype(np.int64)).mean()),
    "micro F1": lambda y, odds, _: float(_f1(y.ravel(), (odds > 0).astype(np.int64).ravel())),
    "mean average precision": lambda y, odds, _: metric("mean_average_precision")(y, odds),
}


def guess(y: np.ndarray, n: int) -> np.ndarray:
    """Output of the guess that reads no feature: the mean of a quantity, the log odds of the
    shares.
    """
    mean = np.asarray(y.mean(axis=0), dtype=np.float64)
    odds = mean if y.dtype.kind == "f" else np.log(mean / (1 - mean))
    return np.broadcast_to(odds, (n, *np.shape(odds))).copy()


def known(y: np.ndarray) -> np.ndarray:
    """What a metric knows of the training labels."""
    return find_target(y).known(y)
