"""False alarms and coverage of the paired tests of two equally good methods, under the
resamplings of raysel.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from raysel.evaluation.splitters import split
from raysel.numerics.inference import paired_comparison

#: Number of samples, of features of each method, and the difference of the two classes' means in
#: each feature.
POOL, FEATURES, SHIFT = 100, 5, 0.5
STUDIES = 2000
#: Pools on which draws are repeated, times that each is, and draws that give the truth of a pool.
POOLS, REPEATED, TRUTH_DRAWS = 40, 50, 2000
COLUMNS = ["resampling", "runs", "n_test/n_train", "false alarms: plain", "false alarms: corrected"]


def pool(rng: np.random.Generator, n: int = POOL) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Samples with the features of two methods, which are equally informative, and their
    classes.
    """
    y = np.arange(n) % 2 == 1
    return rng.normal(size=(2, n, FEATURES)) + SHIFT * y[:, None], y


def difference(
    X: NDArray[np.float64], y: NDArray[np.bool_], train: NDArray[np.int64], test: NDArray[np.int64]
) -> float:
    """Accuracy of the nearest class mean on the one method's features minus that on the other's."""
    one, zero = X[:, train[y[train]]].mean(axis=1), X[:, train[~y[train]]].mean(axis=1)
    sides = np.einsum("mnf,mf->mn", X[:, test] - ((one + zero) / 2)[:, None], one - zero)
    accuracy = ((sides > 0) == y[test]).mean(axis=1)
    return float(accuracy[0] - accuracy[1])


def stratified(
    y: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Samples of each class in random order."""
    return rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(~y))


def k_folds(
    y: NDArray[np.bool_], k: int, repeats: int, rng: np.random.Generator
) -> Iterator[tuple]:
    """Training and test samples of repeated stratified k-fold cross-validation."""
    for _ in range(repeats):
        parts = [
            np.concatenate(pair)
            for pair in zip(*(np.array_split(c, k) for c in stratified(y, rng)), strict=True)
        ]
        for i, test in enumerate(parts):
            yield np.concatenate(parts[:i] + parts[i + 1 :]), test


def draws(
    y: NDArray[np.bool_], per_class: int, repeats: int, rng: np.random.Generator
) -> Iterator[tuple]:
    """Training samples of each class drawn at random; all others are tested."""
    for _ in range(repeats):
        both = stratified(y, rng)
        yield (
            np.concatenate([c[:per_class] for c in both]),
            np.concatenate([c[per_class:] for c in both]),
        )


def compared(X, y, splits):
    """Paired comparison over the splits."""
    pairs = list(splits)
    d = [difference(X, y, train, test) for train, test in pairs]
    ratio = float(np.mean([len(test) / len(train) for train, test in pairs]))
    return paired_comparison(d, np.zeros(len(d)), ratio)


def false_alarms() -> list[dict[str, object]]:
    """Share of studies, each of a new pool, in which a test rejects at 0.05 although the methods
    are equal.
    """
    rows = []
    for name, splits in {
        "5 folds": lambda y, rng: k_folds(y, 5, 1, rng),
        "10 folds": lambda y, rng: k_folds(y, 10, 1, rng),
        "5 folds, 4 repeats": lambda y, rng: k_folds(y, 5, 4, rng),
        "25 a class, 20 draws": lambda y, rng: draws(y, 25, 20, rng),
        "5 a class, 20 draws": lambda y, rng: draws(y, 5, 20, rng),
    }.items():
        rng = np.random.default_rng(0)
        alarms, found = np.zeros(2), None
        for _ in range(STUDIES):
            X, y = pool(rng)
            found = compared(X, y, splits(y, rng))
            tests = (found.plain, found.corrected)
            alarms += [test is not None and test.p_value < 0.05 for test in tests]
        plain, corrected = alarms / STUDIES
        values = (
            name,
            len(found.differences),
            round(found.ratio, 2),
            round(plain, 3),
            round(corrected, 3),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def heavy_tails() -> list[dict[str, object]]:
    """Share of studies of two equal ridge regressions, 40 samples each, that the corrected test
    rejects at 0.05.
    """
    rows = []
    for kind, metric, repeats in product(("normal", "lognormal", "t, 3 df"), ("R2", "MAE"), (1, 5)):
        if repeats == 1 and kind != "normal":
            continue
        n_studies = 600 if kind == "normal" else 400
        alarms = 0
        for study in range(n_studies):
            rng = np.random.default_rng([study, 40, 5])
            X = rng.standard_normal((40, 6))
            y = 0.5 * X.sum(axis=1) + noise(kind, rng, 40)
            found = paired_comparison(*ridge_scores(X, y, metric, study, repeats), 0.25).corrected
            alarms += found is not None and found.p_value < 0.05
        folds = f"5 folds, {repeats} repeats" if repeats > 1 else "5 folds"
        rows.append(
            {
                "noise": kind,
                "metric": metric,
                "resampling": folds,
                "studies": n_studies,
                "false alarms: corrected": round(alarms / n_studies, 3),
            }
        )
    return rows


def noise(kind: str, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Noise of a quantity."""
    e = rng.standard_normal(n)
    if kind == "t, 3 df":
        return rng.standard_t(3, n)
    return np.exp(e) if kind == "lognormal" else e


def ridge_scores(
    X: NDArray[np.float64], y: NDArray[np.float64], metric: str, seed: int, repeats: int
) -> tuple[list[float], list[float]]:
    """Scores of ridge regression on the first three features and on the last three, in each
    fold.
    """
    scores: tuple[list[float], list[float]] = [], []
    for repeat in range(repeats):
        folds = split(y, 5, groups=None, random_state=100 * seed + repeat, where="cv.outer")
        for train, test in folds:
            for own, columns in zip(scores, (slice(0, 3), slice(3, 6)), strict=True):
                model = Ridge(1.0).fit(X[train, columns], y[train])
                error = y[test] - model.predict(X[test, columns])
                total = ((y[test] - y[train].mean()) ** 2).sum()
                own.append(
                    1 - (error**2).sum() / total if metric == "R2" else -np.abs(error).mean()
                )
    return scores


def coverage_of_a_pool() -> list[dict[str, object]]:
    """Share of studies of 20 draws whose 95 % interval covers the mean difference over all draws
    of their own pool.
    """
    rows = []
    for per_class in (25, 5):
        rng = np.random.default_rng(1)
        covered = np.zeros(2)
        for _ in range(POOLS):
            X, y = pool(rng)
            truth = np.mean(
                [difference(X, y, *pair) for pair in draws(y, per_class, TRUTH_DRAWS, rng)]
            )
            for _ in range(REPEATED):
                found = compared(X, y, draws(y, per_class, 20, rng))
                covered += [
                    test.lower <= truth <= test.upper for test in (found.plain, found.corrected)
                ]
        plain, corrected = covered / (POOLS * REPEATED)
        ratio = (POOL - 2 * per_class) / (2 * per_class)
        rows.append(
            {
                "draws": f"{per_class} a class, 20 draws",
                "n_test/n_train": ratio,
                "coverage: plain": round(plain, 3),
                "coverage: corrected": round(corrected, 3),
            }
        )
    return rows


def main() -> None:
    """Run both simulations, write and print their tables."""
    for name, rows in (
        ("false_alarms", false_alarms()),
        ("heavy_tails", heavy_tails()),
        ("coverage_of_a_pool", coverage_of_a_pool()),
    ):
        with Path(__file__).with_name(f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(*(" | ".join(map(str, row.values())) for row in rows), sep="\n")


if __name__ == "__main__":
    main()
