"""Coverage of the stability's interval and chance range for independent samples and for folds, simulated."""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.model_selection import StratifiedKFold

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.metrics.chance import stability_at_chance
from raysel.metrics.rank_overlap import overlap_at_chance, persistence, rank_biased_overlap
from raysel.metrics.stability import nogueira_stability

D, INFORMATIVE, TOP, CONSTANT = 40, 8, 8, 8
SAMPLES, FOLDS = 100, 5


def data(generator: np.random.Generator, n: int, shift: float) -> tuple[FloatArray, LabelArray]:
    """Two classes whose means differ in the first features."""
    y = np.repeat([0, 1], n // 2)
    return generator.standard_normal((n, D)) + np.outer(y, shift * (np.arange(D) < INFORMATIVE)), y


def order(X: FloatArray, y: LabelArray) -> LabelArray:
    """Features by the absolute difference of the class means, best first."""
    return np.argsort(-np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)))


def sets(orders: LabelArray) -> BoolArray:
    """Mask of the best features of each order."""
    Z = np.zeros((len(orders), D), dtype=bool)
    np.put_along_axis(Z, orders[:, :TOP], True, axis=1)
    return Z


def population_stability(Z: BoolArray) -> float:
    """Stability of infinitely many sets, of which these are many."""
    p = Z.mean(axis=0)
    return float(1 - np.mean(p * (1 - p)) / (p.mean() * (1 - p.mean())))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator, draws = np.random.default_rng(arguments.seed), arguments.draws

    print("| difference of the means | true stability | M = 3 | 5 | 10 | 30 | 100 |")
    print("|---|---|---|---|---|---|---|")
    for shift in (0.0, 0.3, 0.6):
        pool = sets(np.array([order(*data(generator, 80, shift)) for _ in range(30_000)]))
        true, cells = population_stability(pool), []
        for m in (3, 5, 10, 30, 100):
            found = (nogueira_stability(pool[generator.integers(len(pool), size=m)]) for _ in range(draws))
            cells.append(f"{np.mean([s.lower <= true <= s.upper for s in found]):.3f}")
        print(f"| {shift} | {true:.2f} | {' | '.join(cells)} |")

    print("\n| random rankings of | M = 3 | 5 | 10 | 30 |")
    print("|---|---|---|---|---|")
    for choosable in (D, D - CONSTANT):
        cells = []
        for m in (3, 5, 10, 30):
            chance = stability_at_chance([TOP] * m, D, choosable)
            values = np.array(
                [
                    nogueira_stability(sets(np.array([generator.permutation(choosable) for _ in range(m)]))).value
                    for _ in range(draws)
                ]
            )
            inside = np.mean((chance.lower - 1e-9 <= values) & (values <= chance.upper + 1e-9))
            cells.append(f"{inside:.3f} ({np.mean(values):+.3f}, exact {chance.mean:+.3f})")
        print(f"| {choosable} of {D} features | {' | '.join(cells)} |")

    p = persistence(TOP)
    print(f"\n| {FOLDS} folds of {SAMPLES} samples | stability | above the chance range | RBO | RBO at chance |")
    print("|---|---|---|---|---|")
    chance = stability_at_chance([TOP] * FOLDS, D)
    for shift in (0.0, 0.3, 0.6):
        values, overlaps = [], []
        for _ in range(draws // 5):
            X, y = data(generator, SAMPLES, shift)
            splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=int(generator.integers(2**31)))
            orders = np.array([order(X[train], y[train]) for train, _ in splitter.split(X, y)])
            values.append(nogueira_stability(sets(orders)).value)
            pairs = [(i, j) for i in range(FOLDS) for j in range(i)]
            overlaps.append(np.mean([rank_biased_overlap(orders[i], orders[j], p) for i, j in pairs]))
        above = np.mean(np.array(values) > chance.upper)
        at_chance = overlap_at_chance(D, D, D, p)
        print(
            f"| difference {shift} | {np.mean(values):.2f} | {above:.2f} | {np.mean(overlaps):.2f} | {at_chance:.2f} |"
        )


if __name__ == "__main__":
    main()
