"""Share of false claims and power of `raysel claims` on generated data with known truth.

python -m experiments.claims.discoveries.run --studies 50
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_selection import f_classif, f_regression
from sklearn.svm import SVC, SVR

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.targets import find_target
from raysel.evaluation.soft_labels import SoftLabels
from raysel.numerics.conditional_tests import (
    adjust_for_fdr,
    adjust_for_fwer,
    conditional_test,
    desparsified_test,
    distil_labels,
    independent_columns,
)
from raysel.numerics.correlations import correlated_groups
from raysel.numerics.held_out_tests import (
    compare_redrawn,
    mean_is_positive,
    products_beside,
    redraw_columns,
    uses_columns,
)

FOLDER = Path(__file__).parent
#: Samples, and telling columns among them, of each study.
N_SAMPLES, N_TELLING = 200, 15
#: Levels of the claims: false discovery rate, and family-wise error rate.
FDR, FWER = 0.1, 0.05
FIGURES = ("fdp", "power", "fwer", "fwer_power", "f_test_fdp", "f_test_power", "groups", "seconds")


def independent(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Independent normal columns."""
    return rng.standard_normal((n, d))


def modules(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Modules of ten normal columns that correlate by .6."""
    factors = np.repeat(rng.standard_normal((n, d // 10)), 10, axis=1)
    return np.sqrt(0.6) * factors + np.sqrt(0.4) * rng.standard_normal((n, d))


def series(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Normal columns, each of which correlates by .6 with the next: AR(1)."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X


def skewed(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Exponentials of such a series."""
    return np.exp(series(n, d, rng))


def few_valued(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Columns of the values 0, 1 and 2, in modules."""
    X = modules(n, d, rng)
    return (X > 0.3).astype(float) + (X > 1.2)


def common_factors(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Columns with three factors in common, as of unknown batches."""
    factors = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return 0.6 * factors + rng.standard_normal((n, d))


DESIGNS: Mapping[str, Callable[[int, int, np.random.Generator], FloatArray]] = {
    "independent": independent,
    "modules": modules,
    "series": series,
    "skewed": skewed,
    "few values": few_valued,
    "common factors": common_factors,
}


def quantity(parts: FloatArray, rng: np.random.Generator) -> LabelArray:
    """The sum of all columns with as much noise as signal of three."""
    return parts.sum(axis=1) + np.sqrt(3) * rng.standard_normal(len(parts))


def two_classes(parts: FloatArray, rng: np.random.Generator) -> LabelArray:
    """Two classes with logits of that sum."""
    return (rng.random(len(parts)) < 1 / (1 + np.exp(-parts.sum(axis=1)))).astype(np.int64)


def rare_class(parts: FloatArray, rng: np.random.Generator) -> LabelArray:
    """Two classes of which one has an eighth of the samples."""
    latent = parts.sum(axis=1) + rng.logistic(size=len(parts))
    return (latent > np.quantile(latent, 7 / 8)).astype(np.int64)


def squares(parts: FloatArray, rng: np.random.Generator) -> LabelArray:
    """The sum of the squares, which no line follows, with noise of the variance of one."""
    return (parts**2).sum(axis=1) + np.sqrt(2) * rng.standard_normal(len(parts))


def products(parts: FloatArray, rng: np.random.Generator) -> LabelArray:
    """The sum of the products of two columns each, with a quarter of its variance as noise."""
    told = (parts[:, ::2] * parts[:, 1::2]).sum(axis=1)
    return told + 0.5 * told.std() * rng.standard_normal(len(parts))


TARGETS = {
    "quantity": quantity,
    "two classes": two_classes,
    "rare class": rare_class,
    "squares": squares,
    "products": products,
}
#: Number of telling columns where they are fewer.
FEWER = {"squares": 5, "products": 4}
#: Models of quantities and of classes whose predictions of held-out samples are tested.
MODELS: Mapping[str, Sequence[BaseEstimator]] = {
    "boosting": [
        HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=10, random_state=0),
        HistGradientBoostingClassifier(max_iter=40, min_samples_leaf=10, random_state=0),
    ],
    "svm": [SVR(C=10.0, gamma=0.003), SVC(C=3.0, gamma=0.003)],
}


def by_covariance(X: FloatArray, y: LabelArray, group: IntArray) -> FloatArray:
    """P value of each group, as `raysel.claim_features` computes it by the covariance."""
    target = find_target(y)
    Y = independent_columns(target.contrasts(y))
    folds = target.folds(y, 5, groups=None, random_state=0, where="folds")
    distilled = distil_labels(X, Y, folds)
    p_values, units = np.ones(group.max() + 1), np.arange(len(X))
    for number in np.unique(group[distilled.has_weight]).tolist():
        columns = np.flatnonzero(group == number)
        found = conditional_test(X, Y, columns, units, alpha=distilled.alpha, folds=folds)
        p_values[number] = found.p_value
    return p_values


def by_desparsified(X: FloatArray, y: LabelArray, group: IntArray) -> FloatArray:
    """P value of each group by the desparsified lasso."""
    target = find_target(y)
    Y = independent_columns(target.contrasts(y))
    folds = target.folds(y, 5, groups=None, random_state=0, where="folds")
    distilled, p_values = distil_labels(X, Y, folds), np.ones(group.max() + 1)
    for number in np.unique(group[distilled.has_weight]).tolist():
        columns = np.flatnonzero(group == number)
        found = desparsified_test(X, Y, columns, distilled=distilled, folds=folds)
        p_values[number] = found.p_value
    return p_values


def by_held_out(model: str, X: FloatArray, y: LabelArray, group: IntArray) -> FloatArray:
    """P value of each group by models of five folds, as `raysel.claim_features` computes it."""
    target, n_groups = find_target(y), int(group.max()) + 1
    estimator = MODELS[model][target.is_of_classes]
    k = target.contrasts(y).shape[1]
    effect, left = np.zeros((2, n_groups, len(X), k))
    noise = np.zeros((n_groups, len(X)))
    for train, test in target.folds(y, 5, groups=None, random_state=0, where="folds"):
        fitted = SoftLabels.of(clone(estimator).fit(X[train], y[train]), y[train])
        true = fitted.true(y[test])
        left[:, test] = true - fitted.predict(X[test])
        for number in range(n_groups):
            columns = np.flatnonzero(group == number)
            if not uses_columns(fitted.predict, X[test], columns):
                continue
            rng = np.random.default_rng([number, int(test[0])])
            drawn = redraw_columns(X[train], X[test], columns, rng)
            found = compare_redrawn(fitted.predict, true, X[test], columns, drawn)
            effect[number, test], left[number, test] = found.effect, found.left
            noise[number, test] = found.noise
    p_values = np.ones(n_groups)
    for number in np.flatnonzero(effect.any(axis=(1, 2))).tolist():
        others = np.delete(X, np.flatnonzero(group == number), axis=1)
        told = products_beside(others, effect[number], left[number], noise[number])
        p_values[number] = mean_is_positive(told)
    return p_values


BY_LASSOS = {"covariance": by_covariance, "desparsified": by_desparsified}


def figures(claimed: BoolArray, telling: BoolArray) -> tuple[float, float, bool]:
    """Share of false claims, of telling groups that are claimed, and whether one is false."""
    false = int((claimed & ~telling).sum())
    power = (claimed & telling).sum() / max(1, telling.sum())
    return false / max(1, claimed.sum()), float(power), false > 0


def draw_study(
    design: str, target: str, d: int, seed: int
) -> tuple[FloatArray, LabelArray, IntArray]:
    """Samples, labels, and the positions of the telling columns of one generated study."""
    rng = np.random.default_rng(seed)
    X = DESIGNS[design](N_SAMPLES, d, rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    n_telling = FEWER.get(target, N_TELLING)
    chosen = np.sort(rng.choice(d, n_telling, replace=False))
    return X, TARGETS[target](X[:, chosen] * rng.choice([-1.0, 1.0], n_telling), rng), chosen


def study(method: str, design: str, target: str, d: int, seed: int) -> list[float]:
    """Figures of one generated study."""
    X, y, chosen = draw_study(design, target, d, seed)
    begun = process_time()
    group = correlated_groups(X, 0.5)
    if method in BY_LASSOS:
        p_values = BY_LASSOS[method](X, y, group)
    else:
        p_values = by_held_out(method, X, y, group)
    seconds = process_time() - begun
    telling = np.isin(np.arange(group.max() + 1), group[chosen])
    fdp, power, _ = figures(adjust_for_fdr(p_values) <= FDR, telling)
    _, strict_power, is_false = figures(adjust_for_fwer(p_values) <= FWER, telling)
    test = f_regression if y.dtype.kind == "f" else f_classif
    marginal = false_discovery_control(test(X, y)[1]) <= FDR
    by_f_test = np.isin(np.arange(group.max() + 1), group[marginal])
    f_fdp, f_power, _ = figures(by_f_test, telling)
    return [fdp, power, is_false, strict_power, f_fdp, f_power, len(p_values), seconds]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write a row for each design, target and size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--columns", type=int, nargs="+", default=[100])
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS)
    methods = [*BY_LASSOS, *MODELS]
    parser.add_argument("--methods", nargs="+", default=methods[:1], choices=methods)
    parser.add_argument("--output", type=Path, default=FOLDER / "discoveries.csv")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    cells = product(chosen.methods, chosen.targets, chosen.designs, chosen.columns)
    for method, target, design, d in cells:
        found = [study(method, design, target, d, seed) for seed in range(chosen.studies)]
        means, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        error = spread[0] / np.sqrt(chosen.studies)
        row = {"method": method, "target": target, "design": design, "d": d}
        row |= {"studies": chosen.studies, "fdp_error": round(error, 3)}
        row |= dict(zip(FIGURES, np.round(means, 3).tolist(), strict=True))
        rows.append(row)
        print(" | ".join(map(str, row.values())), flush=True)
    with chosen.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
