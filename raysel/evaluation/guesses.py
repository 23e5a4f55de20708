"""Scores of guesses that read no feature, the best of which is chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state

from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.targets import find_target
from raysel.data.targets.guesses import RANDOM_ORDER, STRATIFIED
from raysel.numerics.metrics import Metric

#: Number of random labellings, or orders, whose mean score is that of a guess.
CHANCE_DRAWS: Final = 100

#: Size of the differences that order the samples, as a share of the spread of the values that they
#: are added to.
_JITTER = 1e-6


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
    target = find_target(y_train)
    known = target.known(y_train)

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
    constant = target.constant(name, measure, y_train).fit(nothing, y_train)
    output = measure.output(constant, tested, y_test)
    if name != RANDOM_ORDER:
        return score(output)
    return _mean_over_orders(score, output, target.spread(y_train), random_state)


def _drawn_labels(
    labelling: DummyClassifier, shape: tuple[int, ...], rng: np.random.RandomState, seed: int
) -> LabelArray:
    """Draw what a stratified `DummyClassifier` predicts, without the checks of a model.

    `shape` is (n_samples,) or (n_samples, n_labels).
    """
    rng.seed(seed)
    classes, shares = labelling.classes_, labelling.class_prior_
    if len(shape) == 1:
        classes, shares = [classes], [shares]
    columns = [
        of_label[rng.multinomial(1, share, size=shape[0]).argmax(axis=1)]
        for of_label, share in zip(classes, shares, strict=True)
    ]
    return np.stack(columns, axis=1).reshape(shape)


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
