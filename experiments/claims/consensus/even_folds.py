"""Consensus of an even number of folds, of which some have a sparse winner.

Run: python experiments/claims/consensus/even_folds.py; it prints the shares of the page (two
minutes).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.numerics.rankings import consensus_places, selection_ranks

#: Features, those that tell, and how many a sparse fold gives a score.
N_FEATURES, N_TELLING, N_SPARSE = 2000, 25, 10
N_REPEATS = 200


def fold_scores(rng: np.random.Generator, n_folds: int, n_sparse: int) -> Iterator[np.ndarray]:
    """Yield the scores of each fold: a part that the folds share, as their samples, and one of
    its own.
    """
    shared = rng.standard_normal(N_FEATURES)
    shared[:N_TELLING] += 3.0
    for fold in range(n_folds):
        scores = np.abs(0.8 * shared + 0.6 * rng.standard_normal(N_FEATURES))
        least = np.sort(scores)[-N_SPARSE] if fold < n_sparse else 0.0
        yield np.where(scores >= least, scores, 0.0)


def found(n_folds: int, n_sparse: int) -> dict[str, float]:
    """Share of the telling features among as many first ones, by rule, mean over the repeats."""
    rng = np.random.default_rng([n_folds, n_sparse])
    shares: dict[str, list[float]] = {}
    for _ in range(N_REPEATS):
        scores = np.array(list(fold_scores(rng, n_folds, n_sparse)))
        ranks = np.array([selection_ranks(row) for row in scores])
        n_scored = (scores > 0).sum(axis=1)
        known = np.where(ranks <= n_scored[:, None], ranks, N_FEATURES)
        in_order, mean = np.sort(known, axis=0), known.mean(axis=0)
        orders = {
            "median": np.argsort(consensus_places(ranks, n_scored), kind="stable"),
            "lower median": np.lexsort((mean, in_order[(n_folds - 1) // 2])),
            "upper median": np.lexsort((mean, in_order[n_folds // 2])),
            "mean": np.argsort(mean, kind="stable"),
        }
        for name, order in orders.items():
            shares.setdefault(name, []).append(float((order[:N_TELLING] < N_TELLING).mean()))
    return {name: float(np.mean(values)) for name, values in shares.items()}


def main() -> None:
    """Print the share of each rule for each number of folds and of sparse ones."""
    for n_folds in (2, 4, 6):
        for n_sparse in range(n_folds + 1):
            rules = found(n_folds, n_sparse)
            print(n_folds, n_sparse, *(f"{name} {value:.3f}" for name, value in rules.items()))


if __name__ == "__main__":
    main()
