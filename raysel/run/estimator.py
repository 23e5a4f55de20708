"""NestedSearch: a study as an estimator of scikit-learn, in memory unless files are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.cells import allows_nan, as_rows, own_cells, text_in_error, text_in_numbers
from raysel.config.schema import AUTO
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.table_rows import TableRows
from raysel.data.targets import has_columns
from raysel.evaluation.scoring_estimators import (
    LINEAR_SVM,
    RIDGE,
    ScoringEstimator,
    scoring_estimator_class,
)
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.numerics.metrics import metric
from raysel.numerics.rankings import ranks
from raysel.results.feature_claims import FeatureClaims, Method
from raysel.results.result import StudyResult
from raysel.run.assembly import (
    assemble_study,
    check_estimator_object,
    checked_folds,
    draw_seed,
    make_dataset,
)
from raysel.run.in_memory import run_in_memory
from raysel.run.options import RunOptions, make_listeners
from raysel.study.definition import Study

#: Most processes that are asked for; joblib starts them all.
_MOST_PROCESSES = 1024


def _model_has(name: str) -> Callable[[NestedSearch], bool]:
    def has(search: NestedSearch) -> bool:
        getattr(search._predictor(), name)  # noqa: SLF001 - AttributeError names the missing method
        return True

    return has


def _may_rank(search: NestedSearch) -> bool:
    if hasattr(search, "study_") and not search.study_.recorded.is_ranked:
        raise AttributeError(
            "the estimator gives no feature scores, so that no feature is selected;"
            " raysel.PermutationImportance ranks the features of any."
        )
    return True


class NestedSearch(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Search an estimator's parameters by nested cross-validation, scored on unused samples.

    Each outer fold chooses the best parameters by the inner folds of its training samples, fits
    them to all of these and is scored once on its test samples. The same search on all samples
    gives the model, `best_estimator_`. It is the search of `raysel.run_study`, with the same
    numbers, but in memory: no file is written unless ``path``, ``tracking`` or ``executor="ray"``
    asks for a directory.

    Parameters
    ----------
    estimator : estimator
        Any of raysel's methods, or any classifier, regressor, selector or Pipeline in
        scikit-learn's style. It gets the samples as an array of float64. Where cells are text or
        without a value, or a Pipeline starts with a ColumnTransformer, it gets the array or the
        data frame of pandas that they are, one of polars as one of pandas, which its steps have to
        take; then the ``model.skops`` of ``path`` is the fitted estimator itself, and chance is the
        only reference, because the others read numbers. Each ``random_state`` in it that is None is
        set from the search's own. One without ``coef_`` and ``feature_importances_`` ranks the
        features in a `raysel.PermutationImportance`.
    space : dict or list of dict, default=None
        Values to try by parameter, ``step__name`` for one of a Pipeline's, as for `GridSearchCV`;
        or several such grids. ``{"logspace": [low, high, n]}`` and ``{"randint": [low, high]}``
        stand for lists, too. None: the estimator as it is.
    outer : int or splitter, default=5
        Number of outer folds, stratified, shuffled, and of whole groups where there are groups; or
        a splitter of scikit-learn.
    inner : int or splitter, default=3
        Number of inner folds of each outer training set, or a splitter of scikit-learn.
    metric : str, default="auto"
        Metric by which the parameters are chosen and the test samples are scored, larger is better:
        one of raysel's, any scorer name of scikit-learn, or the dotted name of a function of y_true
        and y_pred. "auto": accuracy of classes, macro_f1 of several labels a sample,
        out_of_sample_r2 of a regressor's quantities.
    n_features : int or list of int, default=None
        Numbers of best features, by the estimator's feature scores, that ``scoring_estimator`` is
        fitted to; the inner scores choose one of them. None: the estimator predicts itself with all
        features.
    scoring_estimator : {"auto", "linear_svm", "knn", "ridge"}, dotted name or dict, default="auto"
        Classifier, or regressor of quantities, that is fitted to the best features: one of these, a
        class by its dotted name, or ``{"name": dotted name, "params": {...}, "space": {...}}``, of
        whose space the inner scores choose. Only used with ``n_features``.
    choose_n : {"one_se", "best", "mean"}, default="one_se"
        Rule that chooses the number of features: the smallest within one standard error of the best
        inner score, the best, or none (the score is the mean over all of them).
    scaling : {"none", "zscore", "unit", "minmax", "row_unit"}, default="none"
        Scaling of the samples before the estimator, fitted on each training set.
    feature_groups : str or dict, default=None
        Groups that features are also ranked by, as ``dataset.feature_groups`` of a configuration:
        the path of a table, ``{group: list of features}`` or ``{"correlated": 0.7}``;
        ``study_.group_ranking()`` returns the ranking.
    n_jobs : int, default=1
        Number of processes, by joblib; -1: all processors. The numbers do not depend on it.
    path : str or Path, default=None
        Directory, or its URI, that the study is written to, as `raysel.run_study` writes one and
        `raysel.open_study` opens it. None: no file is written.
    tracking : str, default=None
        Address of the MLflow store that the study is uploaded to. None: nothing is uploaded.
    executor : {"ray"}, default=None
        "ray": trials are computed by Ray. None: in this process, or in ``n_jobs`` of them.
    random_state : int or RandomState, default=None
        Seed of the folds and of the estimator. None: 0, so that a second fit gives the same
        numbers.
    verbose : bool, default=False
        Whether to show the progress.

    Attributes
    ----------
    score_ : float
        Mean test score over the outer folds.
    scores_ : ndarray of shape (n_outer,)
        Test score of each outer fold.
    interval_ : tuple of float
        95 % interval of the mean test score, for the outer folds' models on new samples; NaN if
        there is none. ``study_.interval`` says why.
    best_estimator_ : estimator
        Model with the parameters that the whole search chooses, fitted to all samples: a clone of
        ``estimator``; the pipeline of scaler, selector and ``scoring_estimator`` with
        ``n_features``, or of the scaler and the estimator with ``scaling``.
    best_params_ : dict
        Parameters of ``space`` that `best_estimator_` has.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature in `best_estimator_`, 1 is best; only if the estimator ranks features.
    fold_results_ : dict of list
        By outer fold: ``test_score``, ``train_score``, ``inner_score``, ``params``, ``estimator``
        (fitted to the training samples) and ``train`` and ``test`` (indices of the samples).
    study_ : StudyResult
        The whole result: summary, trials, facts, ranking with stability, references, plots.
    classes_ : ndarray of shape (n_classes,)
        Class labels; only if y holds one label a sample.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features; only if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = NestedSearch(LinearSVC(), {"C": [0.01, 1.0]}, outer=3).fit(X, y)
    >>> search.scores_.shape, search.best_params_
    ((3,), {'C': 1.0})
    >>> search.predict(X[:2])
    array([0, 0])
    """

    classes_: LabelArray

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        *,
        outer: Any = 5,
        inner: Any = 3,
        metric: str = AUTO,
        n_features: int | Sequence[int] | None = None,
        scoring_estimator: str | Mapping[str, Any] = AUTO,
        choose_n: str = "one_se",
        scaling: str = "none",
        feature_groups: str | Mapping[str, Any] | None = None,
        n_jobs: int = 1,
        path: str | Path | None = None,
        tracking: str | None = None,
        executor: str | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.outer = outer
        self.inner = inner
        self.metric = metric
        self.n_features = n_features
        self.scoring_estimator = scoring_estimator
        self.choose_n = choose_n
        self.scaling = scaling
        self.feature_groups = feature_groups
        self.n_jobs = n_jobs
        self.path = path
        self.tracking = tracking
        self.executor = executor
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Search, score and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), or (n_samples, n_labels)
            Labels, a 0/1 indicator of labels, or quantities.
        groups : array-like of shape (n_samples,), default=None
            Group of each sample, e.g. its subject; groups stay whole in all folds.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        ConfigError, DataError
            If a parameter or the data cannot be used; raised before the search.
        StudyError
            If no parameters have a score, or a fit of the chosen ones fails.
        """
        study = make_study(self, X, y, groups)
        self._keep(study, self._run(study), np.asarray(y))
        return self

    def _run(self, study: Study) -> StudyResult:
        """Run the study, in memory or in a directory."""
        options = RunOptions(listeners=make_listeners(self.verbose))
        if not has_files(self):
            return run_in_memory(study, make_local_executor(study, self.n_jobs), options.listeners)
        # Loads what reads and writes files.
        from raysel.run.course import run  # noqa: PLC0415
        from raysel.run.launch import (  # noqa: PLC0415
            check_resources,
            make_executor,
            output_directory,
            working_folder,
        )
        from raysel.tracking.upload_process import MLflowUploader  # noqa: PLC0415

        check_resources(study, None)
        upload = MLflowUploader if self.tracking else None
        on_ray = self.executor == "ray"
        executor = make_executor(study) if on_ray else make_local_executor(study, self.n_jobs)
        with working_folder(output_directory(study.config, self.path), options, new=True) as folder:
            return run(
                study,
                folder,
                executor=executor,
                listeners=options.listeners,
                start_upload=upload,
                keep_models=True,
            )

    def _keep(self, study: Study, result: StudyResult, y: LabelArray) -> None:
        """Set the fitted attributes."""
        for name in ("classes_", "ranking_"):
            self.__dict__.pop(name, None)
        self.study_, outer, template = result, result.outer, study.template
        self._takes_cells = isinstance(study.dataset.X, TableRows)

        def params(values: Any) -> dict[str, Any]:
            searched = {name: values[name] for name in study.config.solver.space if name in values}
            if template is None:
                return searched
            return template.values(searched)

        self.score_, self.scores_ = result.test_mean, np.array(result.test_scores)
        ends = np.array([result.interval.lower, result.interval.upper], dtype=np.float64)
        self.interval_ = tuple(ends.tolist())  # NaN where there is none
        self.best_estimator_, self.best_params_ = (
            self._own_model(result.model),
            params(result.final.params),
        )
        if result.recorded.is_ranked:
            self.ranking_: IntArray = ranks(self._feature_scores)
        self._known = study.dataset.target.known_beside(study.dataset.y)
        if study.dataset.target.is_one_class:
            self.classes_ = np.unique(
                y
            )  # in the order of the data set's classes, which are numbers or text
            self._codes = study.dataset.classes
        self.fold_results_ = {
            "test_score": [refit.test_score for refit in outer],
            "train_score": [refit.training_score for refit in outer],
            "inner_score": [refit.inner_score for refit in outer],
            "params": [params(refit.params) for refit in outer],
            "estimator": [self._own_model(result.fold_model(refit.fold)) for refit in outer],
            "train": [fold.train for fold in study.plan.outer],
            "test": [fold.test for fold in study.plan.outer],
        }

    def _own_model(self, model: Any) -> Any:
        """Return the fitted estimator itself where the study adds nothing to it."""
        if self.n_features is not None or self.scaling != "none":
            return model
        return getattr(model.method, "estimator_", model.method)

    def _predictor(self) -> Any:
        """Return the fitted model, or an unfitted one with the same methods."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_
        if self.n_features is None:
            return self.estimator
        name = str(self.scoring_estimator)
        if isinstance(self.scoring_estimator, Mapping):
            name = self.scoring_estimator["name"]
        if name == AUTO:
            name = RIDGE if is_regressor(self.estimator) else LINEAR_SVM
        if isinstance(self.scoring_estimator, Mapping) or "." in name:
            return scoring_estimator_class(name)
        return ScoringEstimator(name).make(np.zeros(1), 0)

    def _checked(self, X: ArrayLike) -> Any:
        check_is_fitted(self, "study_")
        if self._takes_cells:
            return validate_data(self, as_rows(X), skip_check_array=True, reset=False)
        return validate_data(self, X, dtype=np.float64, order="C", reset=False)

    @available_if(_model_has("predict"))
    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict by the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels.
        """
        samples = self._checked(X)
        predicted: LabelArray = self.best_estimator_.predict(samples)
        if not hasattr(self, "classes_"):
            return predicted
        return self.classes_[np.searchsorted(self._codes, predicted)]

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Compute class probabilities by the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        samples = self._checked(X)
        return self.best_estimator_.predict_proba(samples)

    @available_if(_model_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes by the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores, in the order of ``classes_``.
        """
        samples = self._checked(X)
        return self.best_estimator_.decision_function(samples)

    @available_if(_model_has("predict"))
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score the model on other samples by ``metric``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels.

        Returns
        -------
        float
            Value of the metric, larger is better.
        """
        samples, labels, measure = self._checked(X), np.asarray(y), metric(self.study_.metric)
        if not hasattr(self, "classes_"):
            return float(
                measure(labels, measure.output(self.best_estimator_, samples, labels), self._known)
            )
        if unknown := [str(label) for label in np.setdiff1d(labels, self.classes_)]:
            raise DataError(
                f"y holds {unknown[0]}, which is no class of the samples that the search was"
                " fitted to."
            )
        labels = self._codes[np.searchsorted(self.classes_, labels)]
        return float(
            measure(labels, measure.output(self.best_estimator_, samples, labels), self._codes)
        )

    @available_if(_may_rank)
    def transform(self, X: ArrayLike) -> Any:
        """Select the columns of the features that the model ranks best, as many as it has chosen.

        Without ``n_features`` they are the best tenth, or as many as have a score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_selected)
            Columns of the selected features, in the order of the data.
        """
        check_is_fitted(self, "study_")
        return super().transform(X)

    def claims(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        fdr: float | None = None,
        fwer: float | None = None,
        correlated: float | None = None,
        method: Method | None = None,
    ) -> FeatureClaims:
        """Claim features that tell the labels beside all others, as `raysel.claim_features` does.

        A study of the same samples and seed gives the same numbers. No file is written.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples that the search was fitted to, which it does not keep.
        y : array-like of shape (n_samples,), or (n_samples, n_labels)
            Their labels.
        groups : array-like of shape (n_samples,), default=None
            Their groups.
        fdr : float, optional
            Expected share of false claims among all claims, at most; 0.1 by default.
        fwer : float, optional
            Probability of one or more false claims, at most, in place of ``fdr``.
        correlated : float, optional
            Absolute correlation, above 0 and at most 1, from which on features form a group; by
            default the groups are those of ``feature_groups``, else of features that correlate by
            0.5.
        method : {"covariance", "desparsified", "held-out"}, optional
            How groups are tested; chosen by the model by default.

        Returns
        -------
        FeatureClaims
            P values, claims, and what they assume.

        Raises
        ------
        ConfigError
            If a level is not between 0 and 1, or both are given, or the method is not known.
        DataError
            If the samples are not those that the search was fitted to, or have empty cells.
        StudyError
            If there are fewer than 20 independent samples or groups, or for the desparsified lasso
            classes or groups of samples.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import LinearSVC
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> search = NestedSearch(LinearSVC(), outer=2, inner=2).fit(X, y)
        >>> search.claims(X, y, fwer=0.01, correlated=1.0).claimed_names()
        [['petal width (cm)'], ['petal length (cm)'], ['sepal width (cm)']]
        """
        check_is_fitted(self, "study_")
        # Loads what reads and writes files.
        from raysel.run.claims import claim_groups  # noqa: PLC0415
        from raysel.run.pieces import FinishedStudy  # noqa: PLC0415

        record = self.study_.stored.study
        again = clone(self).set_params(random_state=record.config["seed"])
        study = make_study(again, X, y, groups)
        if (study.dataset.content_hash, study.config.hash) != (
            record.data_hash,
            record.config_hash,
        ):
            raise DataError(
                "these samples, or the parameters that the search has now, are not those that it"
                " was fitted with; call fit again."
            )
        finished = FinishedStudy(
            self.study_,
            study,
            record=record,
            options=RunOptions(listeners=make_listeners(self.verbose)),
            lock=None,
            executor=partial(make_local_executor, study, self.n_jobs),
        )
        return claim_groups(finished, fdr=fdr, fwer=fwer, correlated=correlated, method=method)

    @property
    def _feature_scores(self) -> FloatArray:
        return np.array(self.study_.final.feature_scores)

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "study_")
        _may_rank(self)
        scores = self._feature_scores
        mask: BoolArray = (scores > 0) & (ranks(scores) <= self.study_.default_top)
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        if is_regressor(self.estimator):
            tags.estimator_type, tags.regressor_tags = (
                "regressor",
                inner.regressor_tags or RegressorTags(),
            )
        else:
            tags.estimator_type, tags.classifier_tags = (
                "classifier",
                inner.classifier_tags or ClassifierTags(),
            )
        tags.target_tags.required = True
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = (
            self.n_features is None and self.scaling == "none" and allows_nan(self.estimator)
        )
        return tags


def evaluation_section(search: NestedSearch) -> dict[str, Any]:
    """Return the section ``evaluation`` of the study's configuration."""
    if search.n_features is not None:
        return {
            "estimator": search.scoring_estimator,
            "n_features": [int(n) for n in np.atleast_1d(search.n_features)],
            "choose_n": search.choose_n,
            "metric": search.metric,
        }
    if not hasattr(search.estimator, "predict"):
        raise ConfigError(
            f"estimator={type(search.estimator).__name__}: it does not predict; give n_features,"
            " e.g. n_features=[10, 20], so that scoring_estimator is fitted to the features that it"
            " ranks best."
        )
    return {"estimator": "native", "metric": search.metric}


def has_files(search: NestedSearch) -> bool:
    """Return whether the parameters of a search ask for a directory."""
    return search.path is not None or search.tracking is not None or search.executor == "ray"


def make_study(search: NestedSearch, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> Study:
    """Validate samples for a search, and make and check its study."""
    check_estimator_object(search.estimator)
    samples = own_cells(search.estimator, X)
    of_numbers = search.n_features is not None or search.scaling != "none"
    if isinstance(samples, TableRows) and of_numbers and not samples.is_numbered.any():
        samples = X
    elif isinstance(samples, TableRows) and of_numbers:
        given = "scaling"
        if search.n_features is not None:
            given = "n_features"
        if told := text_in_numbers(as_rows(X)):
            raise DataError(f"X: {told}")
        raise DataError(
            f"X holds text or empty cells, and {given} is for columns of numbers. Leave it out and"
            " let a Pipeline encode and fill them, or use raysel.run_study with dataset.prepare."
        )
    regression = is_regressor(search.estimator)
    features, labels = validate_data(
        search,
        samples.numbers if isinstance(samples, TableRows) else samples,
        y,
        dtype=np.float64,
        ensure_min_samples=2,
        multi_output=has_columns(y),
        y_numeric=regression,
        order="C",
    )
    if isinstance(samples, TableRows):
        validate_data(search, X, skip_check_array=True)  # the names of its columns
        features = samples
    if not regression and hasattr(search.estimator, "predict"):
        check_classification_targets(labels)
    try:
        return assemble_study(
            search.estimator,
            search.space,
            make_dataset(
                search.estimator,
                features,
                y=labels,
                groups=groups,
                names=getattr(search, "feature_names_in_", ()),
            ),
            outer=checked_folds("outer", search.outer),
            inner=checked_folds("inner", search.inner),
            evaluation=evaluation_section(search),
            dataset_section={
                "scaling": search.scaling,
                "feature_groups": search.feature_groups,
            },
            seed=draw_seed(search.random_state),
            saved=has_files(search),
            sections={
                "tracking": {"uri": search.tracking} if search.tracking else {},
                "search": {"executor": search.executor or "serial"},
            },
        )
    except ConfigError as error:  # a first fit that fails names no column
        if isinstance(samples, TableRows) and (told := text_in_error(as_rows(X), str(error))):
            raise DataError(f"X: {told}") from error
        raise


def _check_processes(n_jobs: Any) -> None:
    is_whole = n_jobs is None or (isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool))
    if not is_whole or n_jobs == 0 or (n_jobs or 1) > _MOST_PROCESSES:
        raise ConfigError(
            f"{n_jobs!r} processes are asked for (n_jobs): give 1 to {_MOST_PROCESSES}, or -1 for"
            " all processors."
        )


def make_local_executor(study: Study, n_jobs: int) -> Executor:
    """Return an executor in this process, or in several."""
    _check_processes(n_jobs)
    study, n_processes = replace(study, own=None), effective_n_jobs(n_jobs)
    if n_processes == 1:
        return SerialExecutor(study)
    from raysel.execution.processes import ProcessExecutor  # noqa: PLC0415

    return ProcessExecutor(study, n_processes)
