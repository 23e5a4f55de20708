"""Precision on planted blocks: how many of the cells that tell the classes apart are among as
many of the best.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.claims.tensors.unfolded import UnfoldedSMR
from experiments.experiment import Experiment, Row
from raysel import SMR
from raysel.baselines.rfs import RFS
from raysel.baselines.univariate_filters import FisherScore
from raysel.core.arrays import FloatArray, IntArray
from raysel.data.synthetic import make_tensor_classification
from raysel.evaluation.splitters import split
from raysel.numerics.rankings import descending_order

SHAPE, BLOCK = (8, 8, 6), (3, 3, 2)
#: Standard deviation of the noise, where the mean square of a class in the block is 1; samples of
#: each of three classes; rank of the blocks; draws.
NOISES, PER_CLASS, RANKS, DRAWS = (0.7, 1.0, 1.4), (10, 20, 40), (1, 3), 20
ALPHAS, TRIED_RANKS = (0.03, 0.1, 0.3), (1, 3)
#: Columns of the result that are precisions; that of the matrices is of the one that the inner
#: folds choose.
ORDER_3, ORDER_2, VECTOR = "SMR order 3", "SMR order 2", "SMR of vectors"
METHODS = (ORDER_3, ORDER_2, VECTOR, "RFS", "Fisher score")
UNFOLDINGS = tuple(f"order 2, axis {axis}" for axis in (1, 2, 3))


def models(alphas: Sequence[float], ranks: Sequence[int]) -> dict[str, list[Any]]:
    """All configurations, by the method's name."""
    few = {"max_iter": 30, "tol": 1e-4}
    grid = list(itertools.product(alphas, ranks))
    return {
        ORDER_3: [SMR(SHAPE, alpha, rank, **few) for alpha, rank in grid],
        **{
            name: [UnfoldedSMR(SHAPE, alpha, rank, axis=axis, **few) for alpha, rank in grid]
            for axis, name in enumerate(UNFOLDINGS, start=1)
        },
        VECTOR: [SMR(alpha=alpha, **few) for alpha in alphas],
        "RFS": [RFS(alpha) for alpha in alphas],
        "Fisher score": [FisherScore()],
    }


def planted(
    *,
    noise: float,
    per_class: int,
    rank: int,
    draw: int,
    alphas: Sequence[float],
    ranks: Sequence[int],
) -> Iterator[Row]:
    """Yield a row: the precision of each method, with the parameters that three inner folds
    choose.
    """
    started = time.process_time()
    data, mask = make_tensor_classification(
        SHAPE, BLOCK, 3, per_class, rank, noise, random_state=draw
    )
    X, y = np.asarray(data.X), np.asarray(data.y)
    folds = split(y, 3, groups=None, random_state=draw, where="folds")
    row: Row = {}
    inner = {}
    for name, listed in models(alphas, ranks).items():
        best, inner[name] = chosen(listed, X, y, folds)
        follow(best, X, y, best.prepare(X, y))
        row[name] = float(mask[descending_order(best.scores_)[: mask.sum()]].mean())
    row[ORDER_2] = row[max(UNFOLDINGS, key=inner.__getitem__)]
    yield row | {"cpu_seconds": time.process_time() - started}


def chosen(
    listed: Sequence[Any], X: FloatArray, y: IntArray, folds: Sequence[tuple[IntArray, IntArray]]
) -> tuple[Any, float]:
    """Return the model of the best mean accuracy of its own prediction, ties to the simpler, and
    that accuracy.
    """
    if len(listed) == 1:
        return listed[0], np.nan
    scores = np.zeros(len(listed))
    for train, test in folds:
        prepared = listed[0].prepare(X[train], y[train])
        for i, model in enumerate(listed):
            follow(model, X[train], y[train], prepared)
            scores[i] += np.mean(model.predict(X[test]) == y[test]) / len(folds)
    best = min(
        range(len(listed)), key=lambda i: (-round(scores[i], 12), listed[i].complexity_key())
    )
    return listed[best], float(scores[best])


def follow(model: Any, X: FloatArray, y: IntArray, prepared: Any) -> None:
    """Fit a model, without the warning of iterations that end by their number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in model.iterate(X, y, prepared):
            pass


def measure(experiment: Experiment) -> pd.DataFrame:
    """One row a draw: its setting, and the precision of each method."""
    settings = itertools.product(range(DRAWS), NOISES, PER_CLASS, RANKS)
    grids: Row = {"alphas": ALPHAS, "ranks": TRIED_RANKS}
    if experiment.fast:
        settings = itertools.product(range(2), (1.0,), (10,), (1, 3))
        grids = {"alphas": (0.03, 0.1), "ranks": (1,)}
    units = [
        {"noise": noise, "per_class": per_class, "rank": rank, "draw": draw}
        for draw, noise, per_class, rank in settings
    ]
    table = experiment.measure(planted, units, **grids)
    return table[["noise", "per_class", "rank", "draw", *METHODS, *UNFOLDINGS, "cpu_seconds"]]
