"""Audit of a method: how far careless use lifts its score, on true and permuted labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from raysel.base.adapter import ScikitLearnMethod, unwrap_cells
from raysel.base.cells import own_cells
from raysel.base.estimator import Estimator
from raysel.base.label_codes import may_want_codes
from raysel.config.schema import AUTO
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError, RayselError, StudyError, headline
from raysel.data.dataset import Dataset
from raysel.data.stored_samples import StoredSamples
from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import Samples, constant_features
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.records import Setting
from raysel.evaluation.split import Split, set_parameters
from raysel.evaluation.splitters import split
from raysel.execution.executor import TaskEnd
from raysel.results.audit import Audit
from raysel.run.estimator import NestedSearch, make_local_executor, make_study
from raysel.run.in_memory import run_in_memory
from raysel.run.options import make_listeners
from raysel.run.permutation import MOST_PERMUTATIONS, permuted_scores, permuted_study
from raysel.study.definition import Study
from raysel.study.inputs import kept_columns
from raysel.study.inspection.leaks import inspect, leaking_columns


def audit(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    space: Any = None,
    *,
    outer: Any = 5,
    inner: Any = 3,
    metric: str = AUTO,
    n_features: int | Sequence[int] | None = None,
    scoring_estimator: str | Mapping[str, Any] = AUTO,
    scaling: str = "none",
    n_permutations: int = 5,
    n_jobs: int = 1,
    random_state: Any = None,
    verbose: bool = False,
) -> Audit:
    """Compare a method's careless with its honest score, on true and on permuted labels.

    The **careless** score: all steps of a Pipeline but the last (scaling, imputation, selection),
    or ``scaling`` and the ranking by the estimator where ``n_features`` is given, are fitted once
    to all samples with their labels. For each configuration of ``space``, and each number of
    features, the last step or ``scoring_estimator`` is then scored by plain cross-validation: as
    many stratified, shuffled folds as the honest score has outer ones, which ignore groups. The
    best of these means is the score. All columns are used. Steps of imbalanced-learn resample all
    samples before, so that these folds divide the resampled ones.

    The **honest** score is that of `raysel.NestedSearch`: everything is fitted and chosen within
    the training samples, groups stay whole, and columns that number the samples, or hold the label
    in other words, are held at 0.

    On **permuted labels** there is nothing to learn: what a protocol scores above chance there is
    optimism. Careless use does **harm** if it scores more there than honest use does, by a
    one-sided paired t test over the permutations.

    What the honest score cannot know: that samples belong together, as copies, samples of one
    subject, site or day do, unless ``groups`` says so; that a column was measured after the label;
    and that the table, the estimator or its space was chosen by a look at these labels before.

    Parameters
    ----------
    estimator : estimator
        Classifier, regressor, selector or Pipeline in scikit-learn's style, or one of raysel's
        methods.
    X : array-like of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Labels, or a quantity.
    groups : array-like of shape (n_samples,), default=None
        Group of each sample, e.g. its subject, or the sample that it is a copy of.
    space : dict or list of dict, default=None
        Values to try by parameter, as for `NestedSearch`.
    outer : int or splitter, default=5
        Outer folds of the honest score, as for `NestedSearch`.
    inner : int or splitter, default=3
        Inner folds of the honest score.
    metric : str, default="auto"
        Metric, larger is better.
    n_features : int or list of int, default=None
        Numbers of best features that ``scoring_estimator`` is fitted to, as for `NestedSearch`.
    scoring_estimator : {"auto", "linear_svm", "knn", "ridge"}, dotted name or dict, default="auto"
        Classifier, or regressor of quantities, that is fitted to the best features, as for
        `NestedSearch`.
    scaling : {"none", "zscore", "unit", "minmax", "row_unit"}, default="none"
        Scaling before the estimator.
    n_permutations : int, default=5
        Number of permutations of the labels.
    n_jobs : int, default=1
        Number of processes, by joblib; the numbers do not depend on it.
    random_state : int or RandomState, default=None
        Seed of folds, permutations and estimator; None: 0.
    verbose : bool, default=False
        Whether to show the progress.

    Returns
    -------
    Audit
        The scores: ``frame()``, ``plot()``, ``sentences()``, ``difference``, ``harms`` with its
        ``p_value``, and ``study``, the result of the honest search.

    Raises
    ------
    ConfigError, DataError
        If a parameter or the data cannot be used; raised before anything is computed.
    StudyError
        If no configuration has a score.

    Examples
    --------
    Labels that the features do not tell, and a selection by all samples:

    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((40, 500)), np.arange(40) % 2
    >>> pipeline = make_pipeline(SelectKBest(k=10), KNeighborsClassifier())
    >>> found = audit(pipeline, X, y, n_permutations=3)
    >>> found.harms, found.difference > 0.2
    (True, True)
    """
    _check_permutations(n_permutations)
    search = NestedSearch(
        estimator,
        space,
        outer=outer,
        inner=inner,
        metric=metric,
        n_features=n_features,
        scoring_estimator=scoring_estimator,
        choose_n="best",
        scaling=scaling,
        random_state=random_state,
    )
    return audit_study(
        make_study(search, X, y, groups), n_permutations, n_jobs=n_jobs, verbose=verbose
    )


def audit_study(
    study: Study, n_permutations: int = 5, *, n_jobs: int = 1, verbose: bool = False
) -> Audit:
    """Compare the careless with the honest score of a study, on true and on permuted labels."""
    _check_permutations(n_permutations)
    n_columns = len(study.dataset.target.columns(study.dataset.y))
    if n_columns > 1 or study.dataset.layout.is_multitask:
        raise DataError(
            f"{study.dataset.name}: an audit is of one task with one label a sample; choose one of"
            " them."
        )
    if isinstance(study.dataset.X, StoredSamples):
        raise ConfigError("dataset.in_memory: an audit fits to all samples; leave the key out.")
    if study.config.cv.train_per_class is not None:
        raise ConfigError(
            "cv.train_per_class: an audit compares scores over folds, and draws have none; set"
            " cv.outer instead."
        )
    if not study.configurations:
        raise ConfigError(
            f"search.method: {study.config.search.method} proposes configurations while it runs,"
            " and the careless score is the best of a list; set grid or random."
        )
    dataset, left_out = without_leaks(study.dataset, kept_columns(study.config))
    honest = replace(study, dataset=dataset, own=None)
    careless = _checked_careless_score(study)
    result = run_in_memory(honest, make_local_executor(honest, n_jobs), make_listeners(verbose))
    seed, numbers = study.config.seed, list(range(1, int(n_permutations) + 1))
    try:
        dataset.permutations(study.block_numbers)
    except DataError:  # no permutation changes a label
        numbers = []
    scored = partial(permuted_scores, seed=seed, chosen=None, ranks=False)
    with make_local_executor(honest, n_jobs) as executor:
        honest_ends = _ends(executor.run_tasks(scored, numbers))
    with make_local_executor(study, n_jobs) as executor:
        careless_ends = _ends(executor.run_tasks(partial(_score_permuted, seed=seed), numbers))
    pairs = [
        (float(np.mean(list(one.value["scores"].values()))), other.value)
        for one, other in zip(honest_ends, careless_ends, strict=True)
        if not one.error and not other.error
    ]
    errors = [end.error for end in (*honest_ends, *careless_ends) if end.error]
    return Audit(
        metric=study.config.evaluation.metric,
        careless=careless.score,
        n_careless=careless.n_scores,
        n_divided=careless.n_samples,
        study=result,
        honest=result.interval,
        careless_permuted=tuple(score for _, score in pairs),
        honest_permuted=tuple(score for score, _ in pairs),
        n_failed=len(numbers) - len(pairs),
        failure=headline(errors[0]) if errors else "",
        left_out=left_out,
        n_groups=None if dataset.groups is None else len(np.unique(dataset.groups)),
    )


def _check_permutations(number: Any) -> None:
    is_whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_whole or not 0 <= number <= MOST_PERMUTATIONS:
        raise ConfigError(
            f"n_permutations={number!r} must be a whole number from 0 to {MOST_PERMUTATIONS}."
        )


def _ends(ends: Iterator[TaskEnd]) -> list[TaskEnd]:
    """Ends of tasks in the order of their arguments."""
    return sorted(ends, key=lambda end: end.argument)


def without_leaks(dataset: Dataset, kept: Collection[str] = ()) -> tuple[Dataset, tuple[str, ...]]:
    """Hold columns that number samples or hold the label at 0, but those to keep; say which.

    They stay where they are, because an estimator may name columns by their positions.
    """
    (findings,) = inspect(dataset)
    leaks = {
        column: words
        for column, words in leaking_columns(findings, dataset).items()
        if findings.part.names[column] not in kept
    }
    if not leaks or len(leaks) == dataset.n_features:
        return dataset, ()
    sentences = (
        f"Column '{findings.part.own_name(column)}' {words}: the honest score does without it."
        for column, words in leaks.items()
    )
    return replace(dataset, X=_held(dataset.X, list(leaks))), tuple(sentences)


def _held(X: Samples, columns: Sequence[int]) -> Samples:
    """Return samples with one value in each of some columns."""
    if isinstance(X, TableRows):
        return X.held(columns)
    held = np.array(X)
    held[:, columns] = 0.0
    held.flags.writeable = False
    return held


class _Careless(NamedTuple):
    """Best score of plain cross-validation after preprocessing and selection on all samples."""

    score: float
    #: Number of scores of which it is the best.
    n_scores: int
    #: Number of samples that the folds divide, others than those of the data after a step that
    #: resamples.
    n_samples: int


def _checked_careless_score(study: Study) -> _Careless:
    """Return the careless score; a StudyError where the method cannot be fitted to all samples."""
    try:
        return careless_score(study)
    except RayselError:
        raise
    except Exception as error:  # an estimator of another package may raise anything
        told = f"{type(error).__name__}: {headline(str(error))}"
        raise StudyError(
            f"the careless score of {study.config.solver.name} cannot be computed: {told}"
        ) from error


def careless_score(study: Study) -> _Careless:
    """Return the best plain score after preparation and selection on all samples."""
    X, y = study.dataset.X, study.dataset.y
    state = derived_seed(study.config.seed, "refit", 0, 0)
    everything, known = np.arange(len(X)), dict[str, Split]()
    scores: list[tuple[float, int]] = []
    with warnings.catch_warnings(action="ignore"):
        for configuration in study.configurations:
            params, key = configuration.params, study.prepare_key(configuration.params)
            if key not in known:
                known[key] = study.fit_split(everything, params=params, random_state=state)
            solver, whole = study.solver(params, state), known[key]
            set_parameters(solver, whole.parameters)
            if study.evaluation.is_native:
                last, values, labels = _without_last(solver, whole.X_train, y)
                samples = replace(whole, X_train=values, y_train=labels)
                scores.append((_score_model(study, last, samples), len(labels)))
                continue
            solver.fit(whole.X_train, y)
            for setting in study.evaluation.settings:
                each = _score_best_features(study, solver, whole, setting)
                scores += [(score, len(y)) for score in each.tolist() if not math.isnan(score)]
    if not scores:
        raise StudyError(
            "the careless score cannot be computed, as evaluation.estimator fails with every number"
            " of features."
        )
    best, n_samples = max(scores, key=itemgetter(0))
    return _Careless(best, len(scores), n_samples)


def _folds(study: Study, y: LabelArray) -> Sequence[tuple[IntArray, IntArray]]:
    """Divide samples into as many folds as the study has outer ones, groups aside."""
    n_folds = sum(fold.repeat == 0 for fold in study.plan.outer)
    counts = study.dataset.target.counts(y).tolist()
    n_folds = min([n_folds, *counts])
    state = derived_seed(study.config.seed, "outer split", 0)
    return split(y, n_folds, groups=None, random_state=state, where="outer")


def _splits(study: Study, whole: Split) -> Iterator[Split]:
    """Split samples that are prepared together, which is the care that is lacking."""
    X, y = whole.X_train, whole.y_train
    for train, test in _folds(study, y):
        yield replace(whole, X_train=X[train], y_train=y[train], X_test=X[test], y_test=y[test])


def _score_permuted(study: Study, number: int, *, seed: int) -> float:
    return careless_score(permuted_study(study, number, seed)).score


def _without_last(solver: Estimator, X: Any, y: LabelArray) -> tuple[Estimator, Any, LabelArray]:
    """Return the last step of a Pipeline, with samples and labels after its other steps."""
    if not isinstance(solver, ScikitLearnMethod):
        return solver, X, y
    pipeline = solver.estimator
    if not isinstance(pipeline, Pipeline) or len(pipeline.steps) == 1:
        return solver, X, y
    rows, labels = _before_last(pipeline, unwrap_cells(X), y)
    if hasattr(rows, "toarray"):
        rows = rows.toarray()
    last = clone(pipeline.steps[-1][1])
    values = own_cells(last, rows)
    if not isinstance(values, TableRows):
        values = np.ascontiguousarray(values, dtype=np.float64)
    return _without_last(ScikitLearnMethod(last), values, np.asarray(labels))


class _Keeper(BaseEstimator):
    """Last step of a Pipeline that keeps the samples and labels to which it is fitted."""

    X_: Any
    y_: Any

    def fit(self, X: Any, y: Any) -> Self:
        self.X_, self.y_ = X, y
        return self


def _before_last(pipeline: Pipeline, rows: Any, y: LabelArray) -> tuple[Any, Any]:
    """Return the samples and labels to which the last step of a Pipeline is fitted."""
    steps = clone(pipeline)
    steps.steps[-1] = ("keeper", keeper := _Keeper())
    try:
        steps.fit(rows, y)
    except Exception:
        if not may_want_codes(steps, y):
            raise
        classes, codes = np.unique(y, return_inverse=True)
        steps.fit(rows, codes)
        return keeper.X_, classes[keeper.y_]
    return keeper.X_, keeper.y_


def _score_model(study: Study, model: Estimator, whole: Split) -> float:
    """Mean score of a model over folds."""
    values = []
    for each in _splits(study, whole):
        fitted = clone(model).fit(each.X_train, each.y_train)
        values.append(study.evaluation.scorer(each)(fitted).mean())
    return float(np.mean(values))


def _score_best_features(
    study: Study,
    solver: Estimator,
    whole: Split,
    setting: Setting,
) -> FloatArray:
    """Mean scores of the best features over folds, by their number, shape (n_sizes,).

    It is NaN where the scoring estimator fails on a fold.
    """
    scaled = replace(whole, constant=constant_features(whole.X_train))
    scores = [study.evaluation.scorer(each, (setting,))(solver) for each in _splits(study, scaled)]
    return np.mean(scores, axis=0)
