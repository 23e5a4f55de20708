"""The order of features over folds of which one has a sparse winner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold
from trap import Outcome, Trap

from raysel.baselines.linear_svm import LinearSVM
from raysel.core.arrays import FloatArray, LabelArray
from raysel.evaluation.feature_ranking import FeatureRanking

_GENES, _TELLING = 4000, 25


def expression(seed: int) -> tuple[FloatArray, LabelArray]:
    """Make 5 modules of 5 telling genes, and a batch that agrees with the class and shifts other
    genes.
    """
    generator = np.random.default_rng(seed)
    y = np.arange(160) % 2
    batch = np.where(generator.random(160) < 0.65, y, 1 - y)
    X = generator.standard_normal((160, _GENES))
    factors = generator.standard_normal((160, 5)) + 1.5 * y[:, None]
    X[:, :_TELLING] *= np.sqrt(0.3)
    X[:, :_TELLING] += np.sqrt(0.7) * np.repeat(factors, 5, axis=1)
    X[:, _TELLING : _TELLING + _GENES // 10] += 0.8 * batch[:, None]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def attempt(seed: int, _: Path) -> Outcome:
    """Rank the genes on five folds, one of which has an l1 winner, and count those that tell
    among the first.
    """
    X, y = expression(seed)
    splits = StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
    penalties = [("l2", 0.003)] * 4 + [("l1", 0.1)]
    folds = [
        LinearSVM(C=C, penalty=penalty, random_state=0).fit(X[train], y[train]).scores_
        for (train, _), (penalty, C) in zip(splits, penalties, strict=True)
    ]
    ranking = FeatureRanking.from_folds(
        LinearSVM(C=0.003, random_state=0).fit(X, y).scores_,
        folds,
        feature_names=[f"gene {i}" for i in range(_GENES)],
        fold_names=[f"outer{i}" for i in range(5)],
        n_selected=20,
    )
    first = ranking.to_table()["index"].to_numpy()[:_TELLING]
    n_telling = int((first < _TELLING).sum())
    by_mean = np.argsort(ranking.fold_ranks.mean(axis=0), kind="stable")[:_TELLING]
    words = f"{n_telling} of the first 25 tell; by the mean rank {(by_mean < _TELLING).sum()}"
    return Outcome(n_telling >= _TELLING - 1, {"said": words})


TRAPS = {
    "one sparse fold": Trap("at least 24 of the 25 telling genes stand first", attempt),
}
