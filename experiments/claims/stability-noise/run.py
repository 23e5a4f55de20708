"""Stability of rankings over the folds of a cross-validation beside the level of noise, with and
without a signal.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from raysel.base.registry import build_solver
from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.layouts import Tensor
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.references import PERMUTATIONS, f_values, noise_stability
from raysel.numerics.rankings import selection_ranks, stability_at_every_n
from raysel.run.stability import draw_halves

SAMPLES, D, TOP = 100, 40, 8
#: Difference of the class means in the first features, in standard deviations.
SHIFTS = {"noise": 0.0, "a weak signal": 0.4, "a signal": 0.8}
FOLDS, PAIRS = (3, 5, 10), 20
METHODS = {"F-test": None, "SMR": "smr", "ReliefF": "relieff"}


def data(generator: np.random.Generator, shift: float) -> tuple[FloatArray, LabelArray]:
    """Two classes whose means differ in as many features as are selected."""
    y = np.arange(SAMPLES) % 2
    X = generator.standard_normal((SAMPLES, D)) + np.outer(y, shift * (np.arange(D) < TOP))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def scores(name: str | None, X: FloatArray, y: LabelArray) -> FloatArray:
    """Scores of the features by a method."""
    return (
        f_values(X, [y])[0]
        if name is None
        else build_solver(name, Tensor((D,)), {}, 0).fit(X, y).scores_
    )


def stability(name: str | None, X: FloatArray, y: LabelArray, sets: Sequence[LabelArray]) -> float:
    """Stability of a method's best features over training sets."""
    ranks = np.array([selection_ranks(scores(name, X[own], y[own])) for own in sets])
    return float(stability_at_every_n(ranks, np.full(len(sets), D))[TOP - 1])


def over_folds(draws: int, seed: int, shift: float, folds: int) -> str:
    """Mean level of noise, and of each method the mean stability and how often it is above."""
    generator, levels = np.random.default_rng(seed), []
    found: dict[str, list[tuple[float, bool]]] = {name: [] for name in METHODS}
    for draw in range(draws):
        X, y = data(generator, shift)
        plan = NestedPlan.make(y, outer=folds, inner=2, repeats=1, groups=None, seed=draw)
        sets = [fold.train for fold in plan.outer]
        labels = [generator.permutation(y) for _ in range(PERMUTATIONS)]
        noise = noise_stability(X, labels, sets)[:, TOP - 1]
        levels.append(noise.mean())
        for name, solver in METHODS.items():
            value = stability(solver, X, y, sets)
            found[name].append((value, value > noise.max()))
    means = [np.mean(own, axis=0) for own in found.values()]
    return " | ".join(
        [f"{np.mean(levels):.2f}", *(f"{value:.2f}, {above:.0%}" for value, above in means)]
    )


def over_halves(draws: int, seed: int, shift: float) -> str:
    """Mean stability of each method over pairs of disjoint halves."""
    generator = np.random.default_rng(seed)
    means: dict[str, list[float]] = {name: [] for name in METHODS}
    for draw in range(draws):
        X, y = data(generator, shift)
        pairs = [draw_halves(y, None, draw * PAIRS + i) for i in range(PAIRS)]
        for name, solver in METHODS.items():
            means[name].append(float(np.mean([stability(solver, X, y, pair) for pair in pairs])))
    return " | ".join(["0", *(f"{np.mean(own) + 0.0:.2f}" for own in means.values())])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{arguments.draws} draws of {SAMPLES} samples, {D} features, top {TOP}")
    print(
        "| labels | over | level of noise |",
        " | ".join(f"{name}: mean, above noise" for name in METHODS),
        "|",
    )
    print("|" + "---|" * (3 + len(METHODS)))
    for what, shift in SHIFTS.items():
        for folds in FOLDS:
            cells = over_folds(arguments.draws, arguments.seed, shift, folds)
            print(f"| {what} | {folds} folds | {cells} |", flush=True)
        cells = over_halves(max(arguments.draws // 5, 1), arguments.seed, shift)
        print(f"| {what} | {PAIRS} pairs of halves | {cells} |", flush=True)


if __name__ == "__main__":
    main()
