"""What a study may not ask of its method, its data or its search: refused before anything is computed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import get_tags

from raysel.arrays import IntArray, LabelArray
from raysel.base.adapter import ScikitLearnMethod
from raysel.base.capabilities import TASKS
from raysel.base.estimator import Estimator
from raysel.base.models import trusted_types, untrusted_types
from raysel.base.registry import able_solvers, solver_capabilities, warn_of_name_clash
from raysel.config.schema import StudyConfig
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tasks
from raysel.data.scaling import make_scaler
from raysel.errors import ConfigError, DataError
from raysel.metrics.classification import classification_metric

#: Samples of each class, or with and without each label, that a class in scikit-learn's style is tried on.
_TRIED_PER_CLASS = 10


def check_settings(config: StudyConfig, dataset: Dataset) -> None:
    """Refuse settings that the method or the data do not admit.

    Parameters
    ----------
    config : StudyConfig
        Validated configuration of the study.
    dataset : Dataset
        The study's data.

    Raises
    ------
    ConfigError
        If the method cannot serve the search, the evaluation or such data, or the data do not admit the scaling, the
        metric or the numbers of features; names methods or settings that would do.
    """
    _check_method(config)
    _check_data(config, dataset)
    _check_evaluation(config, dataset)


def _check_method(config: StudyConfig) -> None:
    """Refuse a search or an evaluation that the method cannot serve, whatever the data."""
    name, search, classifier = config.solver.name, config.search, config.evaluation.classifier
    can = solver_capabilities(name)
    warn_of_name_clash(name)
    if search.method == "path" and not can.path:
        able = able_solvers(lambda c: c.path)
        raise ConfigError(f"search.method path: {name} has no path ({able} has); use grid.")
    if search.early_stopping and not can.iterates:
        raise ConfigError(
            f"search.early_stopping judges a method by its iterations, and {name} is solved in one step: leave it out, "
            f"or take one of {able_solvers(lambda c: c.iterates)}."
        )
    if search.early_stopping and classifier == "linear_svm":
        raise ConfigError(
            "search.early_stopping needs a score an iteration, and evaluation.classifier linear_svm is scored at the "
            "last one only: take knn or native."
        )
    _check_classifier(classifier, name, can.ranks, can.predicts)
    classification_metric(config.evaluation.metric)


def _check_classifier(classifier: str, name: str, ranks: bool, predicts: bool) -> None:
    if not ranks and not predicts:
        raise ConfigError(
            f"solver.name: {name} neither predicts nor ranks features: it has no `predict` and, fitted, none of coef_, "
            "feature_importances_ and scores_ with a number a feature; name a classifier or a selector."
        )
    if classifier == "native" and not predicts:
        raise ConfigError(f"evaluation.classifier native: {name} does not predict; take knn or linear_svm.")
    if classifier != "native" and not ranks:
        raise ConfigError(f"evaluation.classifier {classifier}: {name} ranks no features; take native.")


def _check_data(config: StudyConfig, dataset: Dataset) -> None:
    """Refuse a method, a metric or a scaling that is not for such data."""
    name = config.solver.name
    can = solver_capabilities(name)
    if dataset.is_multilabel:
        if not can.multilabel:
            able = able_solvers(lambda c: c.multilabel)
            raise ConfigError(
                f"solver.name: {name} takes one label a sample, and y is an indicator; {able} take several."
            )
        classification_metric(config.evaluation.metric, multilabel=True)
    layout = dataset.layout.to_json()["kind"]
    if layout not in can.layouts:
        able = able_solvers(lambda c: layout in c.layouts)
        if layout == TASKS:
            raise ConfigError(f"solver.name: {name} is for one task; {able} take several.")
        raise ConfigError(f"solver.name: {name} does not take {layout}, which {dataset.name} has; {able} do.")
    make_scaler(config.dataset.scaling, dataset.layout)


def _check_evaluation(config: StudyConfig, dataset: Dataset) -> None:
    """Refuse numbers of features, or a classifier, that these data do not admit."""
    settings = config.evaluation
    if settings.classifier == "native":
        return
    if isinstance(dataset.layout, Tasks):
        raise ConfigError(
            f"evaluation.classifier {settings.classifier} needs one feature space; several tasks take `native`."
        )
    if settings.n_features[-1] > dataset.n_features:
        raise ConfigError(
            f"evaluation.n_features: {settings.n_features[-1]} exceeds the "
            f"{dataset.n_features} features of {dataset.name}."
        )


@dataclass(frozen=True)
class Findings:
    """What is known of a study's method before anything is computed.

    Parameters
    ----------
    ranks : bool, default=True
        Whether it gives each feature a score.
    untrusted : tuple of str, default=()
        Types in its model that `load_model` would refuse: such a model is not saved.
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
    """Find out whether the study's method ranks features and whether its model can be saved.

    Classes on raysel's contract declare the one, and are registered or not. Those in scikit-learn's style are fitted
    to a few samples: in the configurations given, one for each combination of values that are no numbers.
    """
    name = config.solver.name
    wrapped = [(key, solver) for key, solver in solvers if isinstance(solver, ScikitLearnMethod)]
    if not wrapped:
        cls = type(solvers[0][1])
        dotted = f"{cls.__module__}.{cls.__qualname__}"
        return Findings(cls.capabilities.ranks, () if dotted in trusted_types() else (dotted,))
    _check_is_no_regressor(name, wrapped[0][1].estimator)
    tried: dict[str, ScikitLearnMethod] = {}
    error: Exception | None = None
    few = train[_few(dataset.y[train])]
    for key, solver in _of_each_kind(wrapped):
        for rows in (few, train):  # what needs more than a few samples gets all that it will have
            X = np.ascontiguousarray(scaler.fit_transform(dataset.X[rows]))
            try:
                with warnings.catch_warnings(action="ignore"):
                    tried[key] = solver.fit(X, dataset.y[rows])
            except Exception as raised:  # a foreign class may raise anything  # noqa: BLE001
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
    return Findings(all(ranks.values()), tuple(sorted({t for solver in tried.values() for t in _refused(solver)})))


def _refused(solver: ScikitLearnMethod) -> list[str]:
    try:
        return untrusted_types(solver)
    except (DataError, TypeError, ValueError, AttributeError, NotImplementedError) as error:  # skops cannot write it
        return [f"{type(solver.estimator).__name__} ({error})"]


def _check_is_no_regressor(name: str, estimator: Any) -> None:
    kind = get_tags(estimator).estimator_type if hasattr(estimator, "__sklearn_tags__") else None
    if kind not in (None, "classifier", "transformer"):
        raise ConfigError(f"solver.name: {name} is a {kind}; name a classifier or a selector.")


def _few(y: LabelArray) -> IntArray:
    """Positions of the first samples of each class, or with and without each label."""
    groups = [y == label for label in np.unique(y)] if y.ndim == 1 else [c == v for c in y.T for v in np.unique(c)]
    found: IntArray = np.unique(np.concatenate([np.flatnonzero(group)[:_TRIED_PER_CLASS] for group in groups]))
    return found


def _of_each_kind(solvers: Sequence[tuple[str, ScikitLearnMethod]]) -> list[tuple[str, ScikitLearnMethod]]:
    """The first configuration of each combination of parameters that are words, truth values or None."""
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
    scaler: TransformerMixin,
) -> Findings:
    """Refuse configurations that the data or the smallest training set cannot serve, and find out about the method.

    Parameters
    ----------
    config : StudyConfig
    dataset : Dataset
    solvers : sequence of (str, Estimator)
        Configurations that stand for all, with their names; not fitted.
    train : ndarray of int
        The smallest training set.
    scaler : transformer
        Scaler of the study, not fitted.

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
        try:
            solver.check(dataset.n_features)
            solver.check_training(dataset.y[train], None if dataset.tasks is None else dataset.tasks[train])
        except ConfigError as error:
            raise ConfigError(f"configuration {name}: {error}") from error
    if config.search.method == "path":
        _check_path([solver for _, solver in solvers])
    return _find_out(config, dataset, solvers, train, scaler)


def _check_path(solvers: Sequence[Estimator]) -> None:
    """Refuse configurations that cannot share a path."""
    cls = type(solvers[0])
    for parameter in sorted(cls.capabilities.prepare_parameters):
        if len({repr(getattr(solver, parameter)) for solver in solvers}) > 1:
            raise ConfigError(f"search.method path: {parameter} cannot vary along a path; use grid.")
    cls.check_path(solvers)
