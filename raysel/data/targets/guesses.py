"""Names of guesses that read no feature, and the constants that are the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.dummy import DummyClassifier

from raysel.core.arrays import FloatArray
from raysel.numerics.metrics import Metric

#: Names in a record of the guesses of classes and labels: three that are the same for all samples,
#: labels that are drawn by their shares, and scores that order the samples at random.
MOST_FREQUENT, CONSTANT, SHARES, STRATIFIED, RANDOM_ORDER = _OF_LABELS = (
    "most frequent class",
    "best constant class",
    "class shares",
    "stratified guess",
    "random order",
)
#: The same of quantities: the mean of the training samples where no other constant is better, else
#: the constant with the best value of the metric over them.
MEAN, BEST_CONSTANT = _OF_QUANTITIES = ("mean", "best constant")
#: Names of all guesses.
GUESSES: Final = (*_OF_LABELS, *_OF_QUANTITIES)

#: Metrics of which no constant is better than the mean, or all constants are equal.
OF_MEAN = (
    *("out_of_sample_r2", "neg_rmse", "pearson", "spearman", "r2", "explained_variance"),
    *("neg_mean_squared_error", "neg_root_mean_squared_error"),
    *("neg_mean_poisson_deviance", "neg_mean_gamma_deviance"),
)
#: Levels of the quantiles of the training values that are tried as constants.
_LEVELS = np.linspace(0.0, 1.0, 21)
#: A constant is better than another by more than this, relatively; less is rounding.
_EQUAL = 1e-9

_Guess = TypeVar("_Guess")


def list_score_guesses(measure: Metric) -> list[str]:
    """Name the guesses of classes or labels that a metric of scores is compared with."""
    guesses = [SHARES]
    if measure.by_order:
        guesses.append(RANDOM_ORDER)
    # A metric of another package may cut scores into classes, of which a random labelling can be
    # the better guess.
    if not measure.is_known:
        guesses.append(STRATIFIED)
    return guesses


def constant_classifier(name: str) -> DummyClassifier:
    """Return the unfitted model of the most frequent class, or of the shares of the classes."""
    return DummyClassifier(strategy="most_frequent" if name == MOST_FREQUENT else "prior")


def best_constant_value(measure: Metric, y: FloatArray) -> FloatArray:
    """Constant with the best value of a metric over training quantities, of equal ones the mean.

    Tried are the mean and quantiles, and the best one is refined between its neighbours. Several
    quantities start at their means, or at the same quantile of each, and are then improved one
    after the other.

    `y` is (n_samples,) or (n_samples, n_quantities); returns () or (n_quantities,).
    """
    columns, known = y.reshape(len(y), -1), np.asarray(y.mean(axis=0))

    def value(constant: FloatArray) -> float:
        return measure(y, np.tile(constant, (len(y), 1)).reshape(y.shape), known)

    quantiles = np.quantile(columns, _LEVELS, axis=0)
    best = choose_best([columns.mean(axis=0), *quantiles], value)
    for column, tried in enumerate(quantiles.T):
        best = _improved(best, column, tried, value)
    return best.reshape(y.shape[1:])


def _improved(
    start: FloatArray, column: int, tried: FloatArray, value: Callable[[FloatArray], float]
) -> FloatArray:
    """Return the constants of several quantities, that of a column improved if possible."""

    def changed(number: float) -> FloatArray:
        new = start.copy()
        new[column] = number
        return new

    best = choose_best([start, *map(changed, tried)], value)
    before = np.searchsorted(tried, best[column], "left") - 1
    behind = np.searchsorted(tried, best[column], "right")
    low, high = tried[max(before, 0)], tried[min(behind, len(tried) - 1)]
    if low == high:
        return best
    refined = minimize_scalar(
        lambda share: -_finite(changed(low + share * (high - low)), value),
        bounds=(0.0, 1.0),
        method="bounded",
    )
    return choose_best([best, changed(low + float(refined.x) * (high - low))], value)


def choose_best(guesses: Sequence[_Guess], value: Callable[[_Guess], float]) -> _Guess:
    """Return the guess with the best value, the first of those that only rounding tells apart."""
    best, highest = guesses[0], _finite(guesses[0], value)
    for guess in guesses[1:]:
        reached = _finite(guess, value)
        if reached > highest + _EQUAL * abs(highest) or highest == -np.inf < reached:
            best, highest = guess, reached
    return best


def _finite(guess: _Guess, value: Callable[[_Guess], float]) -> float:
    """Value of a guess; minus infinity where the metric is undefined."""
    try:
        reached = value(guess)
    except (ArithmeticError, ValueError):
        return -np.inf
    if np.isfinite(reached):
        return reached
    return -np.inf
