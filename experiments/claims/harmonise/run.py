"""What is left of a batch by each way to take it out, how features of it rank, and what that
costs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from raysel.config.preparation import step_from_yaml
from raysel.core.arrays import FloatArray, IntArray
from raysel.data.layouts import Tensor
from raysel.data.preparation.making import make_preparation
from raysel.data.preparation.preparation import Preparation

N, D, NEW, FOLDS = 160, 8000, 500, 4
#: Five modules of five genes that tell the class, and the columns behind them that the batch
#: shifts.
MODULES, GENES, TELLING, SHIFTED = 5, 5, 25, 800
CORRELATION, EFFECT = 0.7, 1.0
#: Numbers of best features in which features of the batch are counted.
TOPS = (10, 25, 40)
#: Share of each batch's samples that are of its own class; .5 is no confounding.
SHARES = (0.5, 0.7, 0.9)
WAYS: dict[str, tuple[list[Any], list[str]]] = {
    "left alone": ([], []),
    "harmonise": ([{"harmonise": "batch"}], []),
    "residualise": (["residualise"], ["batch"]),
}
METHODS: dict[str, Callable[[FloatArray, IntArray], FloatArray]] = {
    "linear_svm": lambda Z, y: np.abs(LinearSVC(C=0.003).fit(Z, y).coef_[0]),
    "f_test": lambda Z, y: f_classif(Z, y)[0],
}
COLUMNS = (
    "share",
    "way",
    "method",
    "telling in 25",
    *(f"batch in {n}" for n in TOPS),
    "shift left",
    "batch told",
    "score",
    "on new samples",
)


def samples(
    rng: np.random.Generator, n: int, share: float, shift: FloatArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Samples with the batch as last column, their class and their batch."""
    y = rng.permutation(np.arange(n) % 2)
    batch = np.where(rng.random(n) < share, y, 1 - y)
    X = rng.normal(size=(n, D))
    for first in range(0, TELLING, GENES):
        own = X[:, first : first + GENES]
        own *= np.sqrt(1 - CORRELATION)
        own += np.sqrt(CORRELATION) * rng.normal(size=(n, 1)) + EFFECT * y[:, None]
    X[:, TELLING : TELLING + SHIFTED] += shift * batch[:, None]
    return np.column_stack([X, batch]), y, batch


def preparation(way: str) -> Preparation:
    """The unfitted steps of a way; the column of the batch is no feature in any."""
    steps, confounds = WAYS[way]
    names = [*(f"g{i}" for i in range(D)), "batch"]
    made = make_preparation(
        [step_from_yaml(step) for step in [*steps, {"drop_near_constant": 0.99}]],
        names,
        Tensor((D + 1,)),
        {},
        confounds,
    )
    assert made is not None
    made.no_features = np.array([D])
    return made


class Ranked:
    """A preparation and z-scores of training samples, and by each method the 25 best features
    with an SVM on them.
    """

    def __init__(self, way: str, X: FloatArray, y: IntArray) -> None:
        self.preparation, self.scaler = preparation(way), StandardScaler()
        Z = self.scaler.fit_transform(self.preparation.fit_transform(X, y))
        self.orders = {name: np.argsort(-scores(Z, y)) for name, scores in METHODS.items()}
        self.svms = {
            name: LinearSVC(C=0.1, max_iter=10_000).fit(Z[:, order[:TELLING]], y)
            for name, order in self.orders.items()
        }
        self.training = Z

    def transform(self, X: FloatArray) -> FloatArray:
        """Prepare and scale samples."""
        return self.scaler.transform(self.preparation.transform(X))

    def scores(self, X: FloatArray, y: IntArray) -> dict[str, float]:
        """Share of samples that are classified correctly by the best features of each method."""
        Z = self.transform(X)
        return {
            name: svm.score(Z[:, self.orders[name][:TELLING]], y) for name, svm in self.svms.items()
        }


def held_out(
    way: str, X: FloatArray, y: IntArray, batch: IntArray
) -> tuple[dict[str, float], float]:
    """Mean score over the folds by each method, and balanced accuracy by which a linear SVM
    tells the batch.
    """
    scores, recalls = [], []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = Ranked(way, X[train], y[train])
        scores.append(model.scores(X[test], y[test]))
        svm = LinearSVC(C=0.003, class_weight="balanced").fit(model.training, batch[train])
        right = svm.predict(model.transform(X[test])) == batch[test]
        recalls.append([right[batch[test] == one].mean() for one in (0, 1)])
    means = {name: float(np.mean([each[name] for each in scores])) for name in METHODS}
    return means, float(np.mean(recalls))


def rows(share: float, way: str, seeds: int) -> Iterator[dict[str, str]]:
    """Yield a row for each method: means over the seeds."""
    found: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        shift = rng.normal(size=SHIFTED)
        X, y, batch = samples(rng, N, share, shift)
        new_X, new_y, _ = samples(rng, NEW, 0.5, shift)
        prepared = preparation(way).fit_transform(X, y)[:, TELLING : TELLING + SHIFTED]
        apart = prepared[batch == 1].mean(axis=0) - prepared[batch == 0].mean(axis=0)
        scores, told = held_out(way, X, y, batch)
        model = Ranked(way, X, y)
        on_new = model.scores(new_X, new_y)
        for method, values in found.items():
            order = model.orders[method]
            of_batch = (order >= TELLING) & (order < TELLING + SHIFTED)
            counts = [int(of_batch[:n].sum()) for n in TOPS]
            telling = int((order[:TELLING] < TELLING).sum())
            left = float(np.sqrt(np.mean(apart**2)))
            values.append([telling, *counts, left, told, scores[method], on_new[method]])
    for method, values in found.items():
        means = np.mean(values, axis=0)
        shown = [*(f"{mean:.1f}" for mean in means[:4]), *(f"{mean:.3f}" for mean in means[4:])]
        yield dict(zip(COLUMNS, (f"{share}", way, method, *shown), strict=True))


def main() -> None:
    """Print a table, and write results.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    path = Path(__file__).with_name("results.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for share in SHARES:
            for way in WAYS:
                for row in rows(share, way, seeds):
                    table.writerow(row)
                    print(f"| {' | '.join(row.values())} |", flush=True)


if __name__ == "__main__":
    main()
