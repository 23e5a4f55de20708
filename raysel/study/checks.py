"""Checks of a study's method, data and search against each other, made before anything is computed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import get_tags

from raysel.arrays import IntArray, LabelArray
from raysel.base.adapter import ScikitLearnMethod
from raysel.base.capabilities import TASKS, TENSOR, VOLUME
from raysel.base.estimator import Estimator
from raysel.base.models import trusted_types, untrusted_types
from raysel.base.registry import able_solvers, solver_capabilities, solver_class, warn_of_name_clash
from raysel.config.schema import StudyConfig
from raysel.data.dataset import Dataset
from raysel.data.formats.volumes import load_nibabel
from raysel.data.layouts import Tasks, Tensor
from raysel.data.scaling import make_scaler
from raysel.errors import ConfigError, DataError
from raysel.metrics.class_scores import class_scores, gives_class_scores
from raysel.metrics.classification import classification_metric, needs_scores

#: Number of samples of each class, or with and without each label, in the trial fit of a scikit-learn class.
_TRIED_PER_CLASS = 10


def check_settings(config: StudyConfig, dataset: Dataset, *others: Callable[[], object]) -> None:
    """Check the settings against the capabilities of the method and against the data.

    Parameters
    ----------
    config : StudyConfig
        Validated configuration of the study.
    dataset : Dataset
        The study's data.
    *others
        Further checks, functions that raise ConfigError or DataError.

    Raises
    ------
    ConfigError, DataError
        If the method cannot serve the search, the evaluation or such data, or the data do not admit the scaling, the
        metric, the numbers of features or what the further checks need; names methods or settings that would do. If
        the method takes such data, all other problems are listed in one ConfigError.
    """
    _check_method(config)
    _check_data(config, dataset)
    errors: list[ConfigError | DataError] = []
    checks: list[Callable[[], object]] = [partial(_check_evaluation, config, dataset), *others]
    for check in checks:
        try:
            check()
        except (ConfigError, DataError) as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigError("\n  ".join([f"{len(errors)} settings do not fit {dataset.name}:", *map(str, errors)]))


def _check_method(config: StudyConfig) -> None:
    """Check the search and the evaluation against the capabilities of the method, without the data."""
    name, search, classifier = config.solver.name, config.search, config.evaluation.classifier
    can = solver_capabilities(name)
    warn_of_name_clash(name)
    if search.method == "path" and not can.path:
        able = able_solvers(lambda c: c.path)
        raise ConfigError(f"search.method path: {name} has no path ({able} has); use grid.")
    if search.early_stopping and not can.iterates:
        raise ConfigError(
            f"search.early_stopping compares scores after some iterations, and {name} is solved in one step: leave it "
            f"out, or use one of {able_solvers(lambda c: c.iterates)}."
        )
    if search.early_stopping and classifier == "linear_svm":
        raise ConfigError(
            "search.early_stopping needs a score at each iteration, and evaluation.classifier linear_svm is scored at "
            "the last one only: use knn or native."
        )
    if issubclass(solver_class(name), Estimator):  # other classes are checked once fitted: only then ranks is known
        _check_classifier(classifier, name, can.ranks, can.predicts)
    for key, metric in _metrics(config):
        classification_metric(metric, key=key)


def _metrics(config: StudyConfig) -> list[tuple[str, str]]:
    """Keys and names of the metric and of those that are reported."""
    report = [("evaluation.report", name) for name in config.evaluation.report]
    return [("evaluation.metric", config.evaluation.metric), *report]


def _needs_own_scores(config: StudyConfig) -> bool:
    return config.evaluation.classifier == "native" and any(needs_scores(name) for _, name in _metrics(config))


def _check_scores(config: StudyConfig, solvers: Sequence[tuple[str, Estimator]]) -> None:
    """Check that the model itself has scores of the classes if a metric needs them; knn and linear_svm do."""
    for name, solver in solvers if _needs_own_scores(config) else ():
        if not gives_class_scores(solver):
            key, metric = next((key, metric) for key, metric in _metrics(config) if needs_scores(metric))
            raise ConfigError(
                f"{key}: {metric} needs scores of the classes, and {config.solver.name} ({name}) has neither "
                "decision_function nor predict_proba; leave the metric out, or use evaluation.classifier knn or "
                "linear_svm if the method ranks features."
            )


def _check_classifier(classifier: str, name: str, ranks: bool, predicts: bool) -> None:
    if not ranks and not predicts:
        raise ConfigError(
            f"solver.name: {name} neither predicts nor ranks features: it has no `predict` and, once fitted, no coef_, "
            "feature_importances_ or scores_ with one number per feature; name a classifier or a selector."
        )
    if classifier == "native" and not predicts:
        raise ConfigError(f"evaluation.classifier native: {name} does not predict; use knn or linear_svm.")
    if classifier != "native" and not ranks:
        raise ConfigError(f"evaluation.classifier {classifier}: {name} does not rank features; use native.")


def _check_data(config: StudyConfig, dataset: Dataset) -> None:
    """Check the method, the metric and the scaling against the data."""
    name = config.solver.name
    can = solver_capabilities(name)
    if dataset.is_multilabel:
        if not can.multilabel:
            able = able_solvers(lambda c: c.multilabel)
            raise ConfigError(
                f"solver.name: {name} takes one label per sample, and y is an indicator; {able} take several."
            )
        for key, metric in _metrics(config):
            classification_metric(metric, multilabel=True, key=key)
    layout = dataset.layout.to_json()["kind"]
    if layout == VOLUME:  # said now, not after hours
        load_nibabel(f"the study of {dataset.name}, whose maps are NIfTI files,")
    if layout not in can.layouts:
        able = able_solvers(lambda c: layout in c.layouts)
        if layout == TASKS:
            raise ConfigError(f"solver.name: {name} is for one task; {able} take several.")
        if layout == VOLUME:
            raise ConfigError(
                f"solver.name: {name} needs matrices or vectors, and the features of {dataset.name} are the voxels of "
                f"a mask; {able} take them."
            )
        raise ConfigError(f"solver.name: {name} does not take {layout}, which {dataset.name} has; {able} do.")
    if isinstance(dataset.layout, Tensor) and can.max_axes and len(shape := dataset.layout.shape) > can.max_axes:
        ranks = config.evaluation.classifier != "native"
        able = able_solvers(lambda c: TENSOR in c.layouts and c.max_axes is None and c.ranks >= ranks)
        colours = ", or give grey images if the last axis holds colours" if shape[-1] in (3, 4) else ""
        raise ConfigError(
            f"solver.name: {name} takes samples of at most {can.max_axes} axes, and those of {dataset.name} have "
            f"{len(shape)}, {' x '.join(map(str, shape))}; {able} take any number; or set "
            f"dataset.shape to a height and a width{colours}."
        )
    make_scaler(config.dataset.scaling, dataset.layout)


def _check_evaluation(config: StudyConfig, dataset: Dataset) -> None:
    """Check the numbers of features and the classifier against the data."""
    settings = config.evaluation
    if settings.classifier == "native":
        return
    if isinstance(dataset.layout, Tasks):
        raise ConfigError(
            f"evaluation.classifier {settings.classifier} needs one feature space; several tasks take `native`."
        )
    d = dataset.n_features
    if settings.n_features[-1] > d:
        fitting = [*(n for n in settings.n_features if n < d), d]
        raise ConfigError(
            f"evaluation.n_features: {settings.n_features[-1]} exceeds the {d} features of {dataset.name}; set e.g. "
            f"evaluation.n_features: {fitting}."
        )


def check_parameters(config: StudyConfig, dataset: Dataset, solvers: Iterable[tuple[str, Estimator]]) -> None:
    """Check the parameters of a method against the number and the arrangement of the features.

    Parameters
    ----------
    config : StudyConfig
        Configuration of the study.
    dataset : Dataset
        Data set of the study.
    solvers : iterable of (str, Estimator)
        Names and unfitted solvers of representative configurations.

    Raises
    ------
    ConfigError
        If a parameter does not fit; names the configuration, the parameter and its value.
    """
    for name, solver in solvers:
        try:
            solver.check(dataset.n_features)
        except ConfigError as error:
            raise ConfigError(f"configuration {name}: {error}{_of_plain_columns(config, dataset)}") from error


def _of_plain_columns(config: StudyConfig, dataset: Dataset) -> str:
    """Return what to do about a method of matrices if the samples are plain columns."""
    plain = isinstance(dataset.layout, Tensor) and len(dataset.layout.shape) == 1
    if not plain or solver_capabilities(config.solver.name).max_axes is None:
        return ""
    return (
        f" The samples of {dataset.name} are plain columns, and {config.solver.name} is for matrices: if they are "
        "images, set dataset.shape to [height, width]; else use a solver for tables, e.g. solver: {name: rfs}, "
        "fisher_score or linear_svm."
    )


@dataclass(frozen=True)
class Findings:
    """Properties of a study's method that are known before anything is computed.

    Parameters
    ----------
    ranks : bool, default=True
        Whether the method gives each feature a score.
    untrusted : tuple of str, default=()
        Names of types in the fitted method that `load_model` would refuse. A model file does not hold such a method,
        and there is none where the method itself classifies; all other parts of a model can be stored.
    """

    ranks: bool = True
    untrusted: tuple[str, ...] = ()


def _find_out(
    config: StudyConfig,
    dataset: Dataset,
    solvers: Sequence[tuple[str, Estimator]],
    train: IntArray,
    scaler: TransformerMixin,
) -> Findings:
    """Determine whether the study's method ranks features and whether its model can be saved.

    Solvers of raysel declare whether they rank features, and their models can be saved if they are registered.
    scikit-learn classes are fitted to a few samples, once for each combination of non-numeric parameter values.
    """
    name = config.solver.name
    wrapped = [(key, solver) for key, solver in solvers if isinstance(solver, ScikitLearnMethod)]
    if not wrapped:
        cls = type(solvers[0][1])
        dotted = f"{cls.__module__}.{cls.__qualname__}"
        return Findings(cls.capabilities.ranks, () if dotted in trusted_types() else (dotted,))
    _check_is_no_regressor(name, wrapped[0][1].estimator)
    tried: dict[str, ScikitLearnMethod] = {}
    error: BaseException | None = None
    few = train[_few(dataset.y[train])]
    for key, solver in _of_each_kind(wrapped):
        for rows in (few, train):  # a fit that fails on few samples is repeated on the whole training set
            X = np.ascontiguousarray(scaler.fit_transform(dataset.X[rows]))
            try:
                with warnings.catch_warnings(action="ignore"):
                    tried[key] = solver.fit(X, dataset.y[rows])
            except (Exception, SystemExit) as raised:  # a class of another package may raise anything  # noqa: BLE001
                error = raised
            else:
                break
    if not tried:
        raise ConfigError(
            f"solver.name: {name} cannot be fitted to the {len(train)} samples of the smallest training set: "
            f"{type(error).__name__}: {error}"
        )
    ranks = {key: hasattr(solver, "scores_") for key, solver in tried.items()}
    for key, solver in tried.items():
        shown = f"{name} ({key})" if len(tried) > 1 else name
        _check_classifier(config.evaluation.classifier, shown, ranks[key], hasattr(solver, "predict"))
        if _needs_own_scores(config):
            n_classes = dataset.y.shape[1] if dataset.is_multilabel else len(np.unique(dataset.y[train]))
            class_scores(solver, X[:1], n_classes)  # raises where they are not one for each class
    return Findings(all(ranks.values()), tuple(sorted({t for solver in tried.values() for t in _refused(solver)})))


def _refused(solver: ScikitLearnMethod) -> list[str]:
    try:
        return untrusted_types(solver)
    except (DataError, TypeError, ValueError, AttributeError, NotImplementedError) as error:  # skops cannot write it
        return [f"{type(solver.estimator).__name__} ({error})"]


def _check_is_no_regressor(name: str, estimator: Any) -> None:
    kind = get_tags(estimator).estimator_type if hasattr(estimator, "__sklearn_tags__") else None
    if kind not in (None, "classifier", "transformer"):
        raise ConfigError(f"solver.name: {name} is a {kind}; use a classifier or a selector.")


def _few(y: LabelArray) -> IntArray:
    """Indices of the first samples of each class, or with and without each label."""
    groups = [y == label for label in np.unique(y)] if y.ndim == 1 else [c == v for c in y.T for v in np.unique(c)]
    found: IntArray = np.unique(np.concatenate([np.flatnonzero(group)[:_TRIED_PER_CLASS] for group in groups]))
    return found


def _of_each_kind(solvers: Sequence[tuple[str, ScikitLearnMethod]]) -> list[tuple[str, ScikitLearnMethod]]:
    """First configuration of each combination of parameters that are strings, booleans or None."""
    found: dict[tuple[tuple[str, str], ...], tuple[str, ScikitLearnMethod]] = {}
    for key, solver in solvers:
        params: Mapping[str, Any] = solver.estimator.get_params(deep=False)
        words = {k: repr(v) for k, v in params.items() if v is None or isinstance(v, str | bool)}
        found.setdefault(tuple(sorted(words.items())), (key, solver))
    return list(found.values())


def check_configurations(
    config: StudyConfig,
    dataset: Dataset,
    solvers: Sequence[tuple[str, Estimator]],
    train: IntArray,
    largest: IntArray,
    scaler: TransformerMixin,
) -> Findings:
    """Check configurations against the data and the extreme training sets, and determine properties of the method.

    Parameters
    ----------
    config : StudyConfig
        Configuration of the study.
    dataset : Dataset
        Data set of the study.
    solvers : sequence of (str, Estimator)
        Names and unfitted solvers of representative configurations.
    train : ndarray of int
        Indices of the smallest training set.
    largest : ndarray of int
        Indices of the largest training set, for a transductive method with its test set, which must not be too large
        for the method.
    scaler : transformer
        Unfitted scaler.

    Returns
    -------
    Findings
        Whether the method ranks features, and what in its model could not be saved.

    Raises
    ------
    ConfigError
        If a parameter does not fit, none of the configurations can be fitted to a few samples, or one lacks what the
        evaluation needs; names the configuration, the parameter and its value.
    """
    if config.evaluation.classifier == "knn" and config.evaluation.n_neighbors > len(train):
        raise ConfigError(
            f"evaluation.n_neighbors={config.evaluation.n_neighbors} exceeds the {len(train)} samples "
            "of the smallest training set."
        )
    for name, solver in solvers:
        if config.evaluation.classifier != "native" and not solver.labelled(dataset.y).all():
            raise ConfigError(
                f"evaluation.classifier={config.evaluation.classifier} would take the label of unlabelled samples for "
                f"a class ({name or config.solver.name}); use evaluation.classifier=native."
            )
        try:
            for rows in (train, largest):
                solver.check_training(dataset.y[rows], None if dataset.tasks is None else dataset.tasks[rows])
        except ConfigError as error:
            raise ConfigError(f"configuration {name}: {error}") from error
    _check_scores(config, solvers)
    if config.search.method == "path":
        _check_path([solver for _, solver in solvers])
    found = _find_out(config, dataset, solvers, train, scaler)
    if config.tracking.register and found.untrusted and config.evaluation.classifier == "native":
        other = ", or use evaluation.classifier knn or linear_svm, whose model needs no part of the method"
        raise ConfigError(
            f"tracking.register: there will be no model to register as {config.tracking.register}: a model file "
            f"must not name {', '.join(found.untrusted)}; leave tracking.register out"
            f"{other if found.ranks else ''}."
        )
    return found


def _check_path(solvers: Sequence[Estimator]) -> None:
    """Check that the configurations can share a path."""
    cls = type(solvers[0])
    for parameter in sorted(cls.capabilities.prepare_parameters):
        if len({repr(getattr(solver, parameter)) for solver in solvers}) > 1:
            raise ConfigError(f"search.method path: {parameter} cannot vary along a path; use grid.")
    cls.check_path(solvers)
