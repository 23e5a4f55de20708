"""References on a study's folds: plain rankings, guesses, stability under permuted labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product, zip_longest
from typing import Any, Final

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler

from raysel.core.arrays import FloatArray, IntArray, LabelArray, column_blocks
from raysel.data.preparation.preparation import Preparation
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import find_target
from raysel.data.task_blocks import Samples, TaskBlocks, constant_features, iter_parts
from raysel.evaluation.confounds import CONFOUNDS, has_confounds, score_confounds
from raysel.evaluation.guesses import guess_score
from raysel.evaluation.records import (
    Setting,
    choose_n,
    choose_setting,
    scored_numbers,
    with_none,
)
from raysel.evaluation.scoring import Evaluation, repeat_settings
from raysel.evaluation.scoring_estimators import (
    BESIDE_NATIVE,
    LOGISTIC,
    estimator_beside_native,
)
from raysel.evaluation.selectors import usable_scores
from raysel.evaluation.split import KnownScores, Split
from raysel.numerics.metrics import Metric, metric
from raysel.numerics.rankings import selection_ranks, stability_at_every_n

#: Names of the references, in the order in which they are shown.
ALL_FEATURES, VARIANCE, F_TEST = RANKINGS = ("all features", "variance", "f_test")

#: Setting of all features beside a method's own predictions: whether the reference standardises the
#: samples.
_SCALING: Final = "scaling"

#: Number of permutations of the labels.
PERMUTATIONS: Final = 20

#: Largest number of values of a training set that are centred at once.
_CELLS = 2**22

#: Variances that differ by less, relatively, are equal: only rounding would order the features.
_EQUAL = 1e-9


@dataclass
class ReferenceScores:
    """Test scores of references by name, and what the inner folds chose for each."""

    scores: dict[str, list[float | None]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    settings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def among(self, scored: Sequence[int], n: int) -> ReferenceScores:
        """Return what is of the scored numbers at their places among all n.

        At the others it is None.
        """

        def spread(recorded: Mapping[str, list[Any]], otherwise: Any) -> dict[str, list[Any]]:
            spread_out = dict(recorded)
            for name in {VARIANCE, F_TEST} & recorded.keys():
                at = dict(zip(scored, recorded[name], strict=False))
                spread_out[name] = [at.get(position, otherwise) for position in range(n)]
            return spread_out

        positions = {name: scored[position] for name, position in self.positions.items()}
        return ReferenceScores(spread(self.scores, None), positions, spread(self.settings, {}))


@dataclass(frozen=True)
class _Ranked:
    """Feature scores in the form in which `Evaluation.scorer` reads them from a fitted selector."""

    scores_: FloatArray


def reference_scores(
    outer: Split, inner: Iterable[Split] = (), *, evaluation: Evaluation
) -> ReferenceScores:
    """Score the references of a refit on its test samples.

    ``all features`` is the estimator of the evaluation on all features; ``variance`` and ``f_test``
    are the same on the best features by their variance and by scikit-learn's ``f_classif`` or
    ``f_regression``, the mean of the F values of several labels or quantities.

    For ``native`` there is no number of features: ``all features`` is judged by the 1-nearest
    neighbour, of many samples by logistic regression, for quantities by ridge regression whose
    alpha the inner folds choose, and ``variance`` and ``f_test`` are left out. Where the study does
    not scale the samples, the method may do so itself; the inner folds then choose whether ``all
    features`` are standardised, which they always are for logistic regression. Several tasks are
    scored separately.

    Guesses and the confounds alone are scored always, others unless ``evaluation.references`` is
    ``chance``.
    """
    result = ReferenceScores()
    parts = [outer]
    if evaluation.is_native:
        parts = _by_task(outer)
    if evaluation.references == "chance":
        pass
    elif not evaluation.is_native:
        _score_rankings(outer, inner, evaluation, result)
    elif outer.target.kind in BESIDE_NATIVE:
        _score_beside_native(outer, inner, evaluation, result)
    if has_confounds(outer):
        result.scores[CONFOUNDS] = _scored(lambda: [score_confounds(outer, evaluation.metric)])
    measure = metric(evaluation.metric)
    for name in outer.target.guesses(measure):
        result.scores[name] = _scored(partial(_guess, name, parts, measure))
    result.scores = {
        name: values
        for name, values in result.scores.items()
        if any(value is not None for value in values)
    }
    return result


def _score_beside_native(
    outer: Split, inner: Iterable[Split], evaluation: Evaluation, result: ReferenceScores
) -> None:
    """Score all features beside a method's own predictions; several tasks without inner folds."""
    plain, parts = _make_reference_evaluation(evaluation, outer), _by_task(outer)
    if len(parts) == 1:
        _score_rankings(outer, inner, evaluation=plain, result=result, rankings=[ALL_FEATURES])
        return
    result.scores[ALL_FEATURES] = _scored(
        lambda: [_ranked(ALL_FEATURES, part, plain)[0] for part in parts]
    )


def _make_reference_evaluation(evaluation: Evaluation, outer: Split) -> Evaluation:
    """Return the evaluation of all features that stands beside a method's own predictions."""
    n_samples = 0 if evaluation.tasks else len(outer.y_train) + len(outer.y_test)
    estimator = estimator_beside_native(outer.target.kind, n_samples)
    scalings: list[Setting] = [((_SCALING, "none"),), ((_SCALING, "zscore"),)]
    if not evaluation.unscaled or evaluation.tasks:
        scalings = [()]
    elif estimator == LOGISTIC:  # its penalty is for columns of one scale
        scalings = scalings[1:]
    settings = [(*own, *scaling) for own, scaling in product(estimator.settings, scalings)]
    return replace(
        evaluation,
        estimator=estimator.name,
        n_neighbors=1,
        params=(),
        settings=tuple(settings),
        tasks=(),
        choose_n="mean",
    )


def _score_rankings(
    outer: Split,
    inner: Iterable[Split],
    evaluation: Evaluation,
    result: ReferenceScores,
    rankings: Sequence[str] = RANKINGS,
) -> None:
    """Choose each ranking's number and setting on the inner folds, and score it outside."""
    chooses_n = _chooses_n(evaluation)
    names = list(rankings)
    if len(evaluation.settings) == 1:
        names = [name for name in rankings if chooses_n and name != ALL_FEATURES]
    validation: dict[str, list[list[list[float | None]]]] = {name: [] for name in names}
    if not names:
        inner = ()  # none is prepared
    for split in inner:
        scaled = _scale_as_said(replace(split, known={}), evaluation.settings)
        for name, rows in validation.items():
            rows.append(
                [
                    _scored(partial(_ranked, name, scaled[_scaling(each)], evaluation, [each]))
                    for each in evaluation.settings
                ]
            )
        del split, scaled  # not held beside the next
    for name in rankings:
        settings: Sequence[Setting] = evaluation.settings[:1]
        if name in validation:
            if not all(chain.from_iterable(validation[name])):
                continue
            best, scores = choose_setting(np.array(validation[name], dtype=np.float64))
            if not scored_numbers(scores):
                continue
            settings = [evaluation.settings[position] for position in best]
            if chooses_n and name != ALL_FEATURES:
                result.positions[name] = choose_n(scores, evaluation.choose_n).position
        (split,) = _scale_as_said(outer, settings[:1]).values()
        result.scores[name] = _scored(partial(_ranked, name, split, evaluation, settings))
        if settings[0] and (n := len(result.scores[name])):
            result.settings[name] = [dict(each) for each in repeat_settings(settings, n)]


def _chooses_n(evaluation: Evaluation) -> bool:
    return len(evaluation.n_features) > 1 and evaluation.choose_n != "mean"


def inner_folds_choose(evaluation: Evaluation) -> bool:
    """Whether inner folds choose the number of features, or the setting, of rankings."""
    return len(evaluation.settings) > 1 or _chooses_n(evaluation)


def _scored(compute: Callable[[], Sequence[float | None]]) -> list[float | None]:
    """The scores that a function returns; none if the metric is undefined for a reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a reference's warnings are none of the method's fit
        try:
            scores = compute()
        except (ArithmeticError, ValueError):  # the method's own score is not lost with it
            return []
    known = [score for score in scores if score is not None]
    if not np.isfinite(known).all():
        return []
    return list(scores)


def _ranked(
    name: str, split: Split, evaluation: Evaluation, settings: Sequence[Setting] = ()
) -> list[float | None]:
    """Scores of a ranking, for each number of features; None where the estimator fails.

    The samples are scaled as the settings say.
    """
    of_estimator = tuple(dict.fromkeys(map(_without_scaling, evaluation.settings)))
    evaluation = replace(evaluation, settings=of_estimator)
    settings = list(map(_without_scaling, settings))
    if name == ALL_FEATURES:
        n = d = split.X_train.shape[1]
        if split.outputs is not None:
            n = split.outputs.n_features
        split, evaluation = replace(split, constant=None), replace(evaluation, n_features=(n,))
        scores = np.ones(d)
    elif name == VARIANCE:
        scores = _variances(split.X_train)
    else:
        scores = _f_values(split.X_train, split.y_train)
    if not len(scores):
        return []
    selector: Any = _Ranked(scores)
    return with_none(evaluation.scorer(split, settings)(selector))


def _scaling(setting: Setting) -> str:
    return str(dict(setting).get(_SCALING, "none"))


def _without_scaling(setting: Setting) -> Setting:
    return tuple(pair for pair in setting if pair[0] != _SCALING)


def _scale_as_said(split: Split, settings: Sequence[Setting]) -> dict[str, Split]:
    """Return the split with the samples scaled as each of the settings says, by the scaling.

    Each has a table of known scores of its own, which its settings share, if the split has one.
    """
    scaled = {}
    for scaling in dict.fromkeys(map(_scaling, settings)):
        X_train, X_test = split.X_train, split.X_test
        if scaling == "zscore":
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        known: KnownScores | None = None
        if split.known is not None:
            known = {}
        scaled[scaling] = replace(split, X_train=X_train, X_test=X_test, known=known)
    return scaled


def _variances(X: FloatArray) -> FloatArray:
    """Variance of each feature; none if all that are above 0 are equal."""
    # As the method `variance`, whose module would count for every study's numbers.
    variances = np.concatenate([block.var(axis=0) for block in column_blocks(X)])
    known = variances[variances > _EQUAL * variances.max()]
    if not len(known) or np.ptp(known) <= _EQUAL * known.max():
        return np.empty(0)
    return variances


def _f_values(X: FloatArray, y: LabelArray) -> FloatArray:
    """F value of each feature, the mean over labels; 0 for features that are constant."""
    target = find_target(y)
    if not target.is_of_classes:
        return f_values(X, [y])[0]
    columns = [column for column in target.columns(y) if len(np.unique(column)) > 1]
    if not columns:
        return np.empty(0)
    values = [
        np.concatenate([f_classif(block, column)[0] for block in column_blocks(X)])
        for column in columns
    ]
    return np.mean([np.nan_to_num(value, nan=0.0, posinf=np.inf) for value in values], axis=0)


def _guess(name: str, parts: Sequence[Split], measure: Metric) -> list[float]:
    """Scores of a guess, for each task."""
    return [
        guess_score(
            name, part.y_train, part.y_test, measure=measure, random_state=part.random_state
        )
        for part in parts
    ]


def _by_task(split: Split) -> list[Split]:
    """Return the split of each task; all of it where there is one task."""
    X_train, X_test = split.X_train, split.X_test
    if not isinstance(X_train, TaskBlocks) or not isinstance(X_test, TaskBlocks):
        return [split]
    return [
        Split(
            X_train=train,
            y_train=split.y_train[X_train.tasks == task],
            X_test=test,
            y_test=split.y_test[X_test.tasks == task],
            random_state=split.random_state,
        )
        for task, (train, test) in enumerate(zip(X_train.blocks, X_test.blocks, strict=True))
    ]


def noise_stability(
    X: Samples,
    labels: Sequence[LabelArray],
    training_sets: Sequence[IntArray],
    preparations: Sequence[Preparation | None] = (),
    y: LabelArray | None = None,
) -> FloatArray:
    """Return the stability at every N of the F-test's rankings, for each labelling.

    The unfitted preparation of each training set is fitted to it, with the labels `y` as they are.
    Shape (n_labellings, n_features).
    """
    shape = len(labels), len(training_sets)
    ranks, n_scored = (
        np.empty((*shape, X.shape[1]), dtype=np.float32),
        np.empty(shape, dtype=np.int64),
    )
    pairs = zip_longest(training_sets, preparations)
    for fold, (train, preparation) in enumerate(pairs):
        X_train: Any = X[train]
        outputs = None
        if preparation is not None:
            X_train = preparation.fit_transform(X_train, None if y is None else y[train])
            outputs = preparation.outputs
        values, constant = f_values(X_train, [y[train] for y in labels]), constant_features(X_train)
        scores = np.array(
            [usable_scores(row, constant, outputs, scale="squared") for row in values]
        )
        n_scored[:, fold] = (scores > 0).sum(axis=1)
        ranks[:, fold] = [selection_ranks(row) for row in scores]
    return np.array(
        [
            stability_at_every_n(rows.astype(np.float64), sizes)
            for rows, sizes in zip(ranks, n_scored, strict=True)
        ]
    )


def _compute_stored(X: StoredSamples, labels: Sequence[LabelArray]) -> FloatArray:
    """F values as of `f_values`, by one pass over samples that stay in their file."""
    total, mean = X.summary.variance * len(X), X.summary.mean
    columns = [find_target(y).columns(y) for y in labels]
    coded = [_coded(column) for column in chain.from_iterable(columns)]
    stops = np.cumsum([sizes.size or 1 for _, sizes in coded])
    sums = np.zeros((stops[-1], X.shape[1]))
    for positions, block in X.row_blocks():
        parts = [(values[positions], np.arange(sizes.size)) for values, sizes in coded]
        sums += np.vstack(
            [part == names[:, None] if names.size else part for part, names in parts]
        ) @ (block - mean)
    found = (
        _f_from_sums(of_column, each, total)
        for of_column, each in zip(np.split(sums, stops[:-1]), coded, strict=True)
    )
    return np.array([np.mean([next(found) for _ in each], axis=0) for each in columns])


def _f_from_sums(
    sums: FloatArray, coded: tuple[LabelArray, FloatArray], total: FloatArray
) -> FloatArray:
    values, sizes = coded
    if sizes.size:
        return _f_from_classes(sums, sizes, total)
    return _f_from_product(sums[0], values, total)


def f_values(X: Samples, labels: Sequence[LabelArray]) -> FloatArray:
    """F value of each feature for each labelling, shape (n_labellings, n_features).

    That of a task's features is of the task's samples; of an indicator it is the mean over its
    labels. It is computed for all labellings at once, which is many times faster than
    scikit-learn's ``f_classif``.
    """
    if isinstance(X, StoredSamples):
        return _compute_stored(X, labels)
    found: list[FloatArray] = []
    for rows, _, block in iter_parts(X):
        own = [y[rows] for y in labels]
        found += [_compute_in_memory(block[:, columns], own) for columns in _slices(*block.shape)]
    return np.hstack(found)


def _slices(n: int, d: int) -> Iterator[slice]:
    width = max(1, _CELLS // max(n, 1))
    return (slice(start, start + width) for start in range(0, d, width))


def _compute_in_memory(X: FloatArray, labels: Sequence[LabelArray]) -> FloatArray:
    centred = X - X.mean(axis=0, dtype=np.float64) if len(X) else X
    total = np.einsum("ij,ij->j", centred, centred)
    return np.array([_mean_f(centred, total, find_target(y).columns(y)) for y in labels])


def _mean_f(centred: FloatArray, total: FloatArray, columns: Sequence[LabelArray]) -> FloatArray:
    sums, n_known = np.zeros(len(total)), 0
    for column in columns:
        values, sizes = _coded(column)
        if not sizes.size:
            sums += _f_from_product(values @ centred, values, total)
        elif 1 < len(sizes) < len(column):
            members = (values == np.arange(len(sizes))[:, None]).astype(np.float64)
            sums += _f_from_classes(members @ centred, sizes, total)
        else:
            continue
        n_known += 1
    return sums / max(n_known, 1)


def _coded(column: LabelArray) -> tuple[LabelArray, FloatArray]:
    """Numbers of the classes and their sizes; of a quantity its deviations, and no sizes."""
    if not find_target(column).is_of_classes:
        return column - column.mean(), np.empty(0)
    names, codes, sizes = np.unique(column, return_inverse=True, return_counts=True)
    return codes.astype(np.min_scalar_type(len(names))), sizes.astype(np.float64)


def _f_from_classes(sums: FloatArray, sizes: FloatArray, total: FloatArray) -> FloatArray:
    """F value of each feature from its centred sum over each class, (n_classes, n_features)."""
    between = (1 / sizes) @ sums**2
    within = np.maximum(total - between, np.finfo(np.float64).eps * total)
    ratio = np.divide(between, within, out=np.zeros_like(between), where=total > 0)
    value: FloatArray = ratio * (sizes.sum() - len(sizes)) / (len(sizes) - 1)
    return value


def _f_from_product(product: FloatArray, errors: FloatArray, total: FloatArray) -> FloatArray:
    """F value of the regression of a quantity on each feature alone, as `f_regression` has it.

    `product` is (n_features,), of the centred features with `errors`, (n_samples,), the deviations
    from the mean.
    """
    shared = np.divide(
        product**2, total * (errors @ errors), out=np.zeros_like(total), where=total > 0
    )
    return shared / np.maximum(1.0 - shared, np.finfo(np.float64).eps) * (len(errors) - 2)
