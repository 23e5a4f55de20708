"""Guesses that read no feature, the best of which is chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import check_random_state

from raysel.core.arrays import FloatArray, LabelArray, is_quantity
from raysel.numerics.metrics import METRICS, Metric, known_of

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

#: Number of random labellings, or orders, whose mean score is that of a guess.
CHANCE_DRAWS: Final = 100

#: Metrics of which no constant is better than the mean, or all constants are equal.
_OF_MEAN = (
    *("out_of_sample_r2", "neg_rmse", "pearson", "spearman", "r2", "explained_variance"),
    *("neg_mean_squared_error", "neg_root_mean_squared_error"),
    *("neg_mean_poisson_deviance", "neg_mean_gamma_deviance"),
)
#: Levels of the quantiles of the training values that are tried as constants.
_LEVELS = np.linspace(0.0, 1.0, 21)
#: A constant is better than another by more than this, relatively; less is rounding.
_EQUAL = 1e-9
#: Size of the differences that order the samples, as a share of the spread of the values that they
#: are added to.
_JITTER = 1e-6

_Guess = TypeVar("_Guess")


def guesses_for(measure: Metric, y: LabelArray) -> list[str]:
    """Name the guesses that a metric of these labels is compared with; chance is the best of
    them.
    """
    ordered = [RANDOM_ORDER] if measure.by_order else []
    if is_quantity(y):
        return [MEAN if measure.name in _OF_MEAN else BEST_CONSTANT, *ordered]
    if measure.response == "predict":
        # Of raysel's own metrics of classes no constant class is better than the most frequent one.
        same = y.ndim == 1 and measure.name in METRICS
        return [MOST_FREQUENT if same else CONSTANT, STRATIFIED]
    # A metric of another package may cut scores into classes, of which a random labelling can be
    # the better guess.
    return [SHARES, *ordered, *([] if measure.is_known else [STRATIFIED])]


def guess_score(
    name: str,
    y_train: LabelArray,
    y_test: LabelArray,
    *,
    measure: Metric,
    random_state: int,
) -> float:
    """Score a guess on test samples; of random ones the mean over `CHANCE_DRAWS` draws.

    `y_train` is (n_train,), (n_train, n_labels) or (n_train, n_quantities), `y_test` likewise of
    n_test.
    """
    nothing = np.zeros((len(y_train), 1))
    tested = np.zeros((len(y_test), 1))
    known = known_of(y_train)

    def score(output: LabelArray) -> float:
        return measure(y_test, output, known)

    if name == STRATIFIED:
        labelling = DummyClassifier(strategy="stratified").fit(nothing, y_train)
        seeds = np.random.SeedSequence(random_state).generate_state(CHANCE_DRAWS).tolist()
        if measure.response == "predict":
            rng = check_random_state(0)  # seeded anew for each draw: to make one takes far longer
            outputs = [_drawn_labels(labelling, y_test.shape, rng, seed) for seed in seeds]
        else:
            models = (labelling.set_params(random_state=seed) for seed in seeds)
            outputs = [measure.output(model, tested, y_test) for model in models]
        return float(np.mean([score(output) for output in outputs]))
    constant = _constant_guess(name, measure, y_train).fit(nothing, y_train)
    output = measure.output(constant, tested, y_test)
    if name != RANDOM_ORDER:
        return score(output)
    return _mean_over_orders(score, output, _spread(y_train), random_state)


def _drawn_labels(
    labelling: DummyClassifier, shape: tuple[int, ...], rng: np.random.RandomState, seed: int
) -> LabelArray:
    """Draw what a stratified `DummyClassifier` predicts with this seed, without the checks of a
    model.

    `shape` is (n_samples,) or (n_samples, n_labels).
    """
    rng.seed(seed)
    several = len(shape) > 1
    classes = labelling.classes_ if several else [labelling.classes_]
    shares = labelling.class_prior_ if several else [labelling.class_prior_]
    columns = [
        of_label[rng.multinomial(1, share, size=shape[0]).argmax(axis=1)]
        for of_label, share in zip(classes, shares, strict=True)
    ]
    return np.stack(columns, axis=1).reshape(shape)


def _constant_guess(name: str, measure: Metric, y: LabelArray) -> Any:
    """Return the unfitted model of a guess that is the same for all samples, or from which an
    order is drawn.
    """
    if name == MEAN:
        return DummyRegressor()
    if is_quantity(y):
        return DummyRegressor(strategy="constant", constant=best_constant_value(measure, y))
    if name == CONSTANT:
        return DummyClassifier(strategy="constant", constant=_best_constant_class(measure, y))
    return DummyClassifier(strategy="most_frequent" if name == MOST_FREQUENT else "prior")


def _spread(y: LabelArray) -> FloatArray | float:
    """Standard deviation of each quantity; 1 for probabilities."""
    return np.asarray(y.std(axis=0)) if is_quantity(y) else 1.0


def _mean_over_orders(
    score: Callable[[LabelArray], float],
    output: LabelArray,
    spread: FloatArray | float,
    random_state: int,
) -> float:
    """Mean score of equal outputs whose ties are broken at random.

    Each order is drawn with its reverse, so that a metric that is linear in the order has its
    expectation exactly.
    """
    rng = np.random.default_rng(random_state)
    values = []
    for _ in range(CHANCE_DRAWS // 2):
        step = _JITTER * spread * rng.standard_normal(output.shape)
        values += [score(output + step), score(output - step)]
    return float(np.mean(values))


def _best_constant_class(measure: Metric, y: LabelArray) -> Any:
    """Constant prediction with the best score of the training labels; of equal ones the most
    frequent.

    Of several labels a sample the most frequent ones are predicted, as many of them as score best.
    """
    if y.ndim == 2:
        places = np.argsort(np.argsort(-y.mean(axis=0), kind="stable"), kind="stable")
        sets = [(places < n).astype(y.dtype) for n in range(y.shape[1] + 1)]
        return _best(sets, lambda labels: measure(y, np.tile(labels, (len(y), 1))))
    classes, counts = np.unique(y, return_counts=True)
    by_count = list(classes[np.argsort(-counts, kind="stable")])
    return _best(by_count, lambda c: measure(y, np.full(len(y), c), classes))


def best_constant_value(measure: Metric, y: FloatArray) -> FloatArray:
    """Constant with the best value of a metric over training quantities, of equal ones the mean.

    Tried are the mean and quantiles, and the best one is refined between its neighbours. Several
    quantities start at their means, or at the same quantile of each, and are then improved one
    after the other.

    `y` is (n_samples,) or (n_samples, n_quantities); returns () or (n_quantities,).
    """
    columns, known = y.reshape(len(y), -1), known_of(y)

    def value(constant: FloatArray) -> float:
        return measure(y, np.tile(constant, (len(y), 1)).reshape(y.shape), known)

    quantiles = np.quantile(columns, _LEVELS, axis=0)
    best = _best([columns.mean(axis=0), *quantiles], value)
    for column, tried in enumerate(quantiles.T):
        best = _improved(best, column, tried, value)
    return best.reshape(y.shape[1:])


def _improved(
    start: FloatArray, column: int, tried: FloatArray, value: Callable[[FloatArray], float]
) -> FloatArray:
    """Return the constants of several quantities with a better one for a column, if there is
    one.
    """

    def changed(number: float) -> FloatArray:
        new = start.copy()
        new[column] = number
        return new

    best = _best([start, *map(changed, tried)], value)
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
    return _best([best, changed(low + float(refined.x) * (high - low))], value)


def _best(guesses: Sequence[_Guess], value: Callable[[_Guess], float]) -> _Guess:
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
    return reached if np.isfinite(reached) else -np.inf
