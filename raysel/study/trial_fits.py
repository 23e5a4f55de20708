"""Checks of a study's configurations against its training sets, by trial fits where needed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.feature_selection import f_classif

from raysel.base.adapter import ScikitLearnMethod, tagged_type
from raysel.base.estimator import Capabilities, Estimator
from raysel.base.label_codes import fit_to_labels
from raysel.base.models import unlisted_estimators, untrusted_types
from raysel.base.registry import OWN
from raysel.config.schema import StudyConfig
from raysel.core.arrays import IntArray, LabelArray, validate_params
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.preparation.preparation import Preparation
from raysel.data.targets import LABELS, Target, find_target
from raysel.evaluation.scoring_estimators import KNN, LINEAR_SVM, NATIVE, shown_setting
from raysel.evaluation.split import Split, SplitRows, set_parameters
from raysel.numerics.classification import class_scores, gives_class_scores
from raysel.numerics.metrics import Metric, metric
from raysel.study.checks import (
    check_scoring_estimator,
    list_metrics,
    make_scoring_estimator,
    one_label_only,
)

#: Number of samples of each class, or with and without each label, in a trial fit.
_TRIED_PER_CLASS = 10


@dataclass(frozen=True)
class Findings:
    """Properties of a study's method that are known before anything is computed."""

    ranks: bool = True
    #: Types in the method, and in what scores its best features, that a model file cannot hold.
    untrusted: tuple[str, ...] = ()
    #: Whether models are written, without the method if it is not trusted.
    storable: bool = True
    #: Estimators in them outside raysel's list, which are read only where their modules are
    #: imported.
    unlisted: tuple[str, ...] = ()


def _find_out(
    config: StudyConfig,
    dataset: Dataset,
    can: Capabilities,
    solvers: Sequence[tuple[str, Estimator]],
    train: IntArray,
    scaler: TransformerMixin,
    preparation: Preparation | None,
    *,
    saved: bool,
) -> Findings:
    """Determine whether the study's method ranks features and whether its model can be saved."""
    # raysel's own methods have what they declare, which `raysel.testing` checks. Others are fitted
    # to a few samples, once for each combination of non-numeric parameter values; of those that
    # iterate one iteration is computed.
    name, target = config.solver.class_name, dataset.target
    if name in OWN:
        return Findings(can.ranks is not False)
    for _, solver in solvers:
        _check_kind(name, _wrapped(solver), target)
    tried: dict[str, Estimator] = {}
    error: BaseException | None = None
    few = train[target.few(dataset.y[train], _TRIED_PER_CLASS)]
    for key, solver in _pick_each_kind(solvers):
        # A fit that fails on few samples is repeated on the whole training set.
        for rows in (few, train):
            y = dataset.y[rows]
            split = _fit_split(dataset, rows, scaler, preparation)
            X = split.X_train
            set_parameters(solver, split.parameters)
            try:
                with warnings.catch_warnings(action="ignore"):
                    next(solver.iterate(X, y, solver.prepare(X, y)))
            # A class of another package may raise anything.
            except (Exception, SystemExit) as raised:  # noqa: BLE001
                error = raised
            else:
                tried[key] = solver
                break
    if not tried and target.is_of_classes and target.kind not in can.targets:
        raise one_label_only(name) from error
    if not tried:
        raise ConfigError(
            f"solver.name: {name} cannot be fitted to the {len(train)} samples of the smallest"
            f" training set: {type(error).__name__}: {error}"
        )
    by_permutation = config.solver.importance is not None  # takes many fits and is not tried
    ranks = {key: hasattr(solver, "scores_") or by_permutation for key, solver in tried.items()}
    for key, solver in tried.items():
        _check_is_as_declared(name, can, solver, X.shape[1])
        if target.kind == LABELS and hasattr(solver, "predict"):
            _check_predicts_labels(name, solver.predict(X[:1]), target.count(dataset.y))
        shown = f"{name} ({key})" if len(tried) > 1 else name
        check_scoring_estimator(
            config.evaluation.estimator_name, shown, ranks[key], hasattr(solver, "predict")
        )
        if config.evaluation.is_native and _takes_class_scores(config, dataset):
            # This raises where they are not one for each class.
            class_scores(solver, X[:1], target.count(dataset.y[train]))
    if not saved:
        tried = {}
    kept = list(tried.values())
    return Findings(all(ranks.values()), _refused(kept), unlisted=_unlisted(kept))


def _takes_class_scores(config: StudyConfig, dataset: Dataset) -> bool:
    """Return whether a metric takes one score for each class of each sample."""
    responses = ["class_scores"]
    if dataset.layout.is_multitask:
        responses += ["decision_function", "predict_proba"]
    return bool(_metrics_by_response(config, *responses))


def _try_scoring_estimator(
    config: StudyConfig,
    dataset: Dataset,
    train: IntArray,
    scaler: TransformerMixin,
    preparation: Preparation | None,
    *,
    random_state: int,
) -> list[Any]:
    """Return what scores the best features, fitted to a few samples with each setting.

    Its outputs must be those that the metrics take. A setting, or a number of features, with which
    it fails is left out here as it is by the study, unless all fail.
    """
    estimator = make_scoring_estimator(config.evaluation)
    if "." not in estimator.name:
        return []
    fitted_estimators: list[Any] = []
    failures: list[str] = []

    @cache
    def training_set(whole: bool) -> tuple[Any, LabelArray]:
        rows = train
        if not whole:
            rows = train[dataset.target.few(dataset.y[train], _TRIED_PER_CLASS)]
        split = _fit_split(dataset, rows, scaler, preparation)
        return split.X_train, split.y_train

    for setting in estimator.settings:
        where = f"evaluation.estimator: {estimator.name}"
        if shown := shown_setting(setting):
            where += f" ({shown})"
        try:
            model = estimator.make(dataset.y, random_state, setting)
            validate_params(model)
        except Exception as error:  # a constructor of another package may raise anything
            raise ConfigError(f"{where} cannot be constructed: {error}") from error
        kind, wanted = tagged_type(model), dataset.target.model_type
        if kind not in (None, wanted):
            raise ConfigError(f"{where} is a {kind}; use a {wanted}.")
        failure: BaseException | None = None
        # A fit that fails on few samples is repeated on the whole training set.
        for n, whole in product(config.evaluation.n_features, (False, True)):
            X, y = training_set(whole)
            try:
                with warnings.catch_warnings(action="ignore"):
                    fitted = fit_to_labels(model, X[:, :n], y)
                    fitted.predict(X[:, :n])
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - as above
                if whole:
                    failure = failure or raised
                continue
            for key, name in list_metrics(config):
                _check_output(
                    fitted, X[:, :n], y=y, measure=metric(name, key), key=key, where=where
                )
            fitted_estimators.append(fitted)
            break
        else:
            told = f"{type(failure).__name__}: {' '.join(str(failure).split())}"
            failures.append(
                f"{where} cannot be fitted to the {len(train)} samples of a training set with any"
                f" of evaluation.n_features: {told}"
            )
    if not fitted_estimators:
        raise ConfigError(failures[0])
    return fitted_estimators


def _fit_split(
    dataset: Dataset, train: IntArray, scaler: TransformerMixin, preparation: Preparation | None
) -> Split:
    rows = SplitRows(X=dataset.X, y=dataset.y, train=train)
    return Split.fit(rows, clone(scaler), preparation and clone(preparation))


def _check_output(model: Any, X: Any, y: LabelArray, measure: Metric, key: str, where: str) -> None:
    """Check that a metric can be computed of a fitted classifier."""
    if measure.response == "predict_proba" and not hasattr(model, "predict_proba"):
        raise ConfigError(
            f"{key}: {measure.name} needs probabilities, and"
            f" {where.removeprefix('evaluation.estimator: ')} has no predict_proba; take another"
            " estimator, or a metric of the predictions."
        )
    if measure.response != "predict" and not gives_class_scores(model):
        raise ConfigError(
            f"{key}: {measure.name} needs scores of the classes, and"
            f" {where.removeprefix('evaluation.estimator: ')} has neither decision_function nor"
            " predict_proba; take another estimator or metric."
        )
    known = find_target(y).known_beside(y)
    if known is None:
        known = getattr(model, "classes_", None)
    try:
        with warnings.catch_warnings(action="ignore"):
            measure(y, measure.output(model, X, y), known)
    except (Exception, SystemExit) as error:  # a class of another package may return anything
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{key}: {measure.name} cannot be computed of {where}: {told}") from error


def _check_is_as_declared(name: str, can: Capabilities, solver: Estimator, n_features: int) -> None:
    """Check what a fit has against the capabilities that its class declares."""
    if can.predicts and not hasattr(solver, "predict"):
        raise ConfigError(
            f"solver.name: {name} declares capabilities.predicts, but has no `predict`;"
            " implement it."
        )
    if can.ranks is None:
        return
    if can.ranks != hasattr(solver, "scores_"):
        has, mend = ("no", "set") if can.ranks else ("a", "do not set")
        raise ConfigError(
            f"solver.name: {name} declares capabilities.ranks={can.ranks}, but its fit has {has}"
            f" `scores_`; {mend} it in `_updates`, or declare ranks={not can.ranks}."
        )
    if can.ranks and np.shape(solver.scores_) != (n_features,):
        raise ConfigError(
            f"solver.name: `scores_` of {name} has the shape {np.shape(solver.scores_)}; set one"
            f" score for each of the {n_features} features."
        )


def _check_predicts_labels(name: str, predicted: Any, n_labels: int) -> None:
    """Check that a method that has been fitted to an indicator predicts one."""
    if np.shape(predicted) != (1, n_labels):
        raise one_label_only(name)


def _wrapped(solver: Estimator) -> Any:
    """Return the estimator that an adapter wraps, or the method itself."""
    if isinstance(solver, ScikitLearnMethod):
        return solver.estimator
    return solver


def _refused(models: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of what a file cannot hold of fitted models."""
    names: set[str] = set()
    for model in models:
        try:
            names.update(untrusted_types(model))
        except Exception as error:  # an attribute of another package's class may be anything  # noqa: BLE001
            names.add(f"{type(_wrapped(model)).__name__} (skops cannot write it: {error})")
    return tuple(sorted(names))


def _unlisted(models: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the estimators in fitted models that are outside raysel's list."""
    names: set[str] = set()
    for model in models:
        with suppress(Exception):  # as above; there will be no file
            names.update(unlisted_estimators(model))
    return tuple(sorted(names))


def _check_kind(name: str, estimator: Any, target: Target) -> None:
    kind = tagged_type(estimator)
    if kind not in (None, "classifier", "regressor", "transformer"):
        raise ConfigError(
            f"solver.name: {name} is a {kind}; use a classifier, a regressor or a selector."
        )
    # It takes each value of a quantity for a class and says nothing; the other functions of classes
    # refuse it.
    parts = [estimator, *estimator.get_params(deep=True).values()]
    takes_classes = any(getattr(part, "score_func", None) is f_classif for part in parts)
    if takes_classes and not target.is_of_classes:
        raise ConfigError(
            f"solver.name: {name} scores by f_classif, which is for classes, and the label is a"
            " quantity; set score_func=f_regression, or use the method f_test."
        )


def _pick_each_kind(solvers: Sequence[tuple[str, Estimator]]) -> list[tuple[str, Estimator]]:
    """First configuration of each combination of parameters that are strings, booleans or None."""
    kinds: dict[tuple[tuple[str, str], ...], tuple[str, Estimator]] = {}
    for key, solver in solvers:
        params: Mapping[str, Any] = _wrapped(solver).get_params(deep=False)
        words = {k: repr(v) for k, v in params.items() if v is None or isinstance(v, str | bool)}
        kinds.setdefault(tuple(sorted(words.items())), (key, solver))
    return list(kinds.values())


def check_configurations(
    config: StudyConfig,
    dataset: Dataset,
    can: Capabilities,
    solvers: Sequence[tuple[str, Estimator]],
    train: IntArray,
    largest: IntArray,
    scaler: TransformerMixin,
    preparation: Preparation | None = None,
    *,
    random_state: int,
    saved: bool = True,
) -> Findings:
    """Check configurations against data and extreme training sets, and try the method out."""
    if config.evaluation.estimator == KNN and config.evaluation.n_neighbors > len(train):
        raise ConfigError(
            f"evaluation.n_neighbors={config.evaluation.n_neighbors} exceeds the {len(train)}"
            " samples of the smallest training set."
        )
    for name, solver in solvers:
        if not config.evaluation.is_native and not solver.labelled(dataset.y).all():
            raise ConfigError(
                f"evaluation.estimator={config.evaluation.estimator_name} would take the label of"
                f" unlabelled samples for a class ({name or config.solver.class_name}); use"
                " evaluation.estimator=native."
            )
        try:
            for rows in (train, largest):
                tasks = None if dataset.tasks is None else dataset.tasks[rows]
                solver.check_training(dataset.y[rows], tasks)
        except ConfigError as error:
            raise ConfigError(f"configuration {name}: {error}") from error
    _check_outputs(config, solvers, dataset.layout.is_multitask)
    if config.search.is_path:
        _check_path([solver for _, solver in solvers])
    generator = np.random.get_state()  # noqa: NPY002 - what a class draws from it in a trial fit is put back
    try:
        findings = _find_out(
            config=config,
            dataset=dataset,
            can=can,
            solvers=solvers,
            train=train,
            scaler=scaler,
            preparation=preparation,
            saved=saved,
        )
        fitted_estimators = _try_scoring_estimator(
            config,
            dataset,
            train=train,
            scaler=scaler,
            preparation=preparation,
            random_state=random_state,
        )
    finally:
        np.random.set_state(generator)  # noqa: NPY002
    if not saved:
        fitted_estimators = []
    of_estimator = _refused(fitted_estimators)
    findings = replace(
        findings, unlisted=tuple(sorted({*findings.unlisted, *_unlisted(fitted_estimators)}))
    )
    if config.evaluation.is_native:
        findings = replace(findings, storable=not findings.untrusted)
    elif of_estimator:
        findings = replace(
            findings, untrusted=tuple(sorted({*findings.untrusted, *of_estimator})), storable=False
        )
    if config.tracking.register:
        _check_registered(config.tracking.register, findings)
    return findings


def _check_registered(name: str, findings: Findings) -> None:
    """Check that there will be a model to register under a name."""
    if not findings.storable:
        mend = "leave tracking.register out"
        if findings.ranks:
            mend += (
                ", or use evaluation.estimator knn or linear_svm, whose model needs no part of the"
                " method"
            )
        raise ConfigError(
            f"tracking.register: there will be no model to register as {name}: a model file cannot"
            f" hold {', '.join(findings.untrusted)}; {mend}."
        )
    if findings.unlisted:
        raise ConfigError(
            f"tracking.register: MLflow gets no model with {', '.join(findings.unlisted)}, whose"
            " code no server has; leave it out, or register the class under the entry point"
            " raysel.estimators."
        )


def _check_path(solvers: Sequence[Estimator]) -> None:
    """Check that the configurations can share a path."""
    cls = type(solvers[0])
    for parameter in sorted(cls.capabilities.prepare_parameters):
        if len({repr(getattr(solver, parameter)) for solver in solvers}) > 1:
            raise ConfigError(
                f"search.method path: {parameter} cannot vary along a path; use grid."
            )
    cls.check_path(solvers)


def _metrics_by_response(config: StudyConfig, *responses: str) -> list[tuple[str, Metric]]:
    """Metrics of the study that take one of these outputs, with their keys."""
    chosen = [(key, metric(name, key)) for key, name in list_metrics(config)]
    return [(key, measure) for key, measure in chosen if measure.response in responses]


def _check_outputs(
    config: StudyConfig, solvers: Sequence[tuple[str, Estimator]], several: bool
) -> None:
    """Check that what classifies has the outputs that the metrics take, as neighbours have.

    The samples of `several` tasks are classified by the method itself alone.
    """
    estimator, name = config.evaluation.estimator_name, config.solver.class_name
    native = solvers if estimator == NATIVE else ()
    mend = "leave the metric out"
    instead = "take a metric of the decision, e.g. average_precision, or of the predictions"
    if not several:
        instead = f"{mend}, or use evaluation.estimator knn if the method ranks features"
        mend += ", or use evaluation.estimator knn or linear_svm if the method ranks features"
    for key, measure in _metrics_by_response(config, "class_scores", "decision_function"):
        for variant, solver in native:
            if not gives_class_scores(solver):
                raise ConfigError(
                    f"{key}: {measure.name} needs scores of the classes, and {name} ({variant}) has"
                    f" neither decision_function nor predict_proba; {mend}."
                )
    for key, measure in _metrics_by_response(config, "predict_proba"):
        if estimator == LINEAR_SVM:
            raise ConfigError(
                f"{key}: {measure.name} needs probabilities, which evaluation.estimator linear_svm"
                " does not give. Use a metric of the decision, e.g. roc_auc for two classes, or"
                " evaluation.estimator: sklearn.linear_model.LogisticRegression."
            )
        for variant, solver in native:
            if not hasattr(solver, "predict_proba"):
                raise ConfigError(
                    f"{key}: {measure.name} needs probabilities, and {name} ({variant}) has no"
                    f" predict_proba; {instead}."
                )
