"""Stability and mean ranks over the folds of one cross-validation against those over separate
samples, simulated.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import stdtrit
from sklearn.model_selection import StratifiedKFold

from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.numerics.rankings import nogueira_stability, selection_ranks

D, INFORMATIVE, TOP = 20, 5, 5


def draw(generator: np.random.Generator, n: int) -> tuple[FloatArray, LabelArray]:
    """Two classes of n / 2 samples, whose means differ in the first features."""
    y = np.repeat([0, 1], n // 2)
    shift = np.where(np.arange(D) < INFORMATIVE, 0.3, 0.0)
    return generator.standard_normal((n, D)) + y[:, None] * shift, y


def fold_ranks(X: FloatArray, y: LabelArray) -> FloatArray:
    """Ranks of the features by the absolute difference of the class means."""
    return selection_ranks(np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)))


def selections(ranks: FloatArray) -> BoolArray:
    """The best features of each row."""
    return ranks <= TOP


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator, folds = np.random.default_rng(arguments.seed), arguments.folds
    size = arguments.samples - arguments.samples // folds

    # The truth: samples of the training sets' size that share nothing.
    apart = np.array([fold_ranks(*draw(generator, size)) for _ in range(20_000)])
    true_rank = apart.mean(axis=0)
    true_stability = nogueira_stability(selections(apart)).value

    values, covered_rank, spreads = [], [], []
    for _ in range(arguments.draws):
        X, y = draw(generator, arguments.samples)
        splitter = StratifiedKFold(folds, shuffle=True, random_state=int(generator.integers(2**31)))
        ranks = np.array([fold_ranks(X[train], y[train]) for train, _ in splitter.split(X, y)])
        values.append(nogueira_stability(selections(ranks)).value)
        mean, sd = ranks.mean(axis=0), ranks.std(axis=0, ddof=1)
        margin = stdtrit(folds - 1, 0.975) * sd / np.sqrt(folds)
        covered_rank.append(np.abs(mean - true_rank) <= margin)
        spreads.append(sd)
    print(
        f"{arguments.draws} draws of {arguments.samples} samples, {D} features, {folds} folds, top"
        f" {TOP}"
    )
    print("| | folds of one sample | samples that share nothing |")
    print("|---|---|---|")
    print(f"| stability, mean | {np.mean(values):.2f} | {true_stability:.2f} |")
    print(
        f"| SD of a feature's rank, mean | {np.mean(spreads):.2f} |"
        f" {apart.std(axis=0, ddof=1).mean():.2f} |"
    )
    print(
        "| 95 % interval of the mean rank covers that of the right column |"
        f" {np.mean(covered_rank):.2f} | .95 wanted |"
    )


if __name__ == "__main__":
    main()
