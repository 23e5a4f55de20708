"""References of a refit: scores of all features, of plain rankings and of chance on the same samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import f_classif

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.metrics.class_scores import class_scores
from raysel.metrics.classification import classification_metric, needs_scores

if TYPE_CHECKING:
    from raysel.cv.scoring import Evaluation

#: Names of the references, in the order in which they are shown.
ALL_FEATURES, VARIANCE, F_TEST, CHANCE = REFERENCES = ("all features", "variance", "f_test", "chance")

#: Number of random labellings whose mean score is that of chance.
CHANCE_DRAWS: Final = 100

#: Variances that differ by less, relatively, are equal: only rounding would order the features.
_EQUAL = 1e-9

_Sets: TypeAlias = tuple[Any, LabelArray, Any, LabelArray]


@dataclass(frozen=True)
class _Ranked:
    """Feature scores in the form in which `Evaluation.scorer` reads them from a fitted selector."""

    scores_: FloatArray


def reference_scores(
    X_train: Samples,
    y_train: LabelArray,
    X_test: Samples,
    y_test: LabelArray,
    *,
    evaluation: Evaluation,
    random_state: int,
    constant: BoolArray | None = None,
) -> dict[str, list[float]]:
    """Score the references of a refit on its scaled training and test samples; they choose nothing.

    ``all features`` is the classifier of the evaluation on all features; ``variance`` and ``f_test`` are the same on
    the best features by their variance and by scikit-learn's ``f_classif`` (for an indicator, the mean of the labels'
    F values), scored exactly as the method is. ``chance`` is the mean score of ``CHANCE_DRAWS`` stratified random
    labellings by scikit-learn's ``DummyClassifier``, whose seeds are
    ``numpy.random.SeedSequence(random_state).generate_state(CHANCE_DRAWS)``; that is close to its expectation.

    For the classifier ``native`` there is no number of features: ``all features`` is judged by the 1-nearest
    neighbour, and ``variance`` and ``f_test`` are left out. Several tasks are scored separately.

    Parameters
    ----------
    X_train : ndarray of shape (n_train, d), or TaskBlocks
        Scaled training samples.
    y_train : ndarray of shape (n_train,) or (n_train, n_labels)
        Labels of the training samples.
    X_test : ndarray of shape (n_test, d), or TaskBlocks
        Scaled test samples.
    y_test : ndarray of shape (n_test,) or (n_test, n_labels)
        Labels of the test samples.
    evaluation : Evaluation
        Classifier, numbers of features and metric.
    random_state : int
        Seed of the classifier ``linear_svm`` and of ``chance``.
    constant : ndarray of bool, shape (d,), optional
        Mask of the features that are constant in the unscaled training samples, which ``variance`` and ``f_test``
        never select, as the method does not; by default none are.

    Returns
    -------
    dict of str to list of float
        By name: one score for each number of features (``variance``, ``f_test``) or one score; one for each task
        where there are several. References whose metric is undefined are left out, and so is ``variance`` where all
        features have the same variance, as after the scaling ``zscore``.
    """
    if evaluation.classifier != "native":
        sets: _Sets = X_train, y_train, X_test, y_test
        found = {
            ALL_FEATURES: _scored(lambda: _all_features(sets, evaluation, random_state)),
            VARIANCE: _scored(lambda: _ranked(_variances(sets[0]), sets, evaluation, random_state, constant)),
            F_TEST: _scored(lambda: _ranked(_f_values(*sets[:2]), sets, evaluation, random_state, constant)),
            CHANCE: _scored(lambda: [_chance(sets, evaluation.metric, random_state)]),
        }
    else:
        nearest = replace(evaluation, classifier="knn", n_neighbors=1, tasks=(), choose_n="mean")
        parts = _by_task(X_train, y_train, X_test, y_test)
        found = {
            ALL_FEATURES: _scored(lambda: [_all_features(part, nearest, random_state)[0] for part in parts]),
            CHANCE: _scored(lambda: [_chance(part, evaluation.metric, random_state) for part in parts]),
        }
    return {name: values for name, values in found.items() if values}


def _scored(compute: Callable[[], list[float]]) -> list[float]:
    """The scores that a function returns; none if the metric is undefined for a reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a reference's warnings are none of the method's fit
        try:
            scores = compute()
        except (ArithmeticError, ValueError):  # of the metric: the method's own score is not lost with it
            return []
    return scores if np.isfinite(scores).all() else []


def _all_features(sets: _Sets, evaluation: Evaluation, random_state: int) -> list[float]:
    d = sets[0].shape[1]
    return _ranked(np.ones(d), sets, replace(evaluation, n_features=(d,)), random_state)


def _ranked(
    scores: FloatArray, sets: _Sets, evaluation: Evaluation, random_state: int, constant: BoolArray | None = None
) -> list[float]:
    """Scores of a ranking, for each number of features."""
    if not len(scores):
        return []
    selector: Any = _Ranked(scores)
    return evaluation.scorer(*sets, random_state, constant)(selector).tolist()


def _variances(X: FloatArray) -> FloatArray:
    """Variance of each feature; none if all that are above 0 are equal."""
    variances = X.var(axis=0)  # as the method `variance`, whose module would count for every study's numbers
    known = variances[variances > _EQUAL * variances.max()]
    return variances if len(known) and np.ptp(known) > _EQUAL * known.max() else np.empty(0)


def _f_values(X: FloatArray, y: LabelArray) -> FloatArray:
    """F value of each feature, the mean over the labels of an indicator; 0 for features that are constant."""
    columns = [y] if y.ndim == 1 else [column for column in y.T if 0 < column.sum() < len(column)]
    if not columns:
        return np.empty(0)
    return np.mean([np.nan_to_num(f_classif(X, column)[0], nan=0.0, posinf=np.inf) for column in columns], axis=0)


def _chance(sets: _Sets, metric: str, random_state: int) -> float:
    X_train, y_train, X_test, y_test = sets
    measure, of_scores = classification_metric(metric), needs_scores(metric)
    # It reads no feature, so it needs no copy of the samples.
    nothing, tested = np.zeros((len(X_train), 1)), np.zeros((len(X_test), 1))
    dummy = DummyClassifier(strategy="stratified").fit(nothing, y_train)
    values = []
    for seed in np.random.SeedSequence(random_state).generate_state(CHANCE_DRAWS):
        dummy.set_params(random_state=int(seed))
        if of_scores:
            classes = None if y_test.ndim == 2 else dummy.classes_
            indicator = y_test if classes is None else y_test[:, None] == classes
            n_classes = indicator.shape[1]
            values.append(measure(indicator, class_scores(dummy, tested, n_classes)))
        else:
            values.append(measure(y_test, dummy.predict(tested)))
    return float(np.mean(values))


def _by_task(X_train: Samples, y_train: LabelArray, X_test: Samples, y_test: LabelArray) -> list[_Sets]:
    """Training and test sets of each task; all of them where there is one task."""
    if not isinstance(X_train, TaskBlocks) or not isinstance(X_test, TaskBlocks):
        return [(X_train, y_train, X_test, y_test)]
    return [
        (train, y_train[X_train.tasks == task], test, y_test[X_test.tasks == task])
        for task, (train, test) in enumerate(zip(X_train.blocks, X_test.blocks, strict=True))
    ]
