"""Checks of a study's settings against the capabilities of its method and against its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from raysel.base.estimator import Capabilities, Estimator
from raysel.base.registry import able_solvers, imports_code, solver_class, warn_of_name_clash
from raysel.config.preparation import dotted_steps
from raysel.config.schema import EvaluationConfig, ScoringEstimatorConfig, StudyConfig
from raysel.core.arrays import BoolArray
from raysel.core.errors import ConfigError, DataError
from raysel.core.plugins import is_imported
from raysel.data.dataset import Dataset
from raysel.data.formats.nifti import load_nibabel
from raysel.data.preparation.preparation import Preparation
from raysel.data.scaling import make_scaler
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSES
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.sampler_registry import GROUP as SAMPLERS
from raysel.evaluation.sampler_registry import sampler_class
from raysel.evaluation.scoring_estimators import (
    ALPHAS,
    ESTIMATORS_BY_TARGET,
    KNN,
    LINEAR_SVM,
    NATIVE,
    RIDGE,
    SCORING_ESTIMATORS,
    ScoringEstimator,
    scoring_estimator_class,
)
from raysel.evaluation.split import set_parameters
from raysel.numerics.metrics import GROUP as METRICS
from raysel.numerics.metrics import metric
from raysel.study.inspection.parts import parts

#: Largest absolute value whose squares, and their sums, can be computed.
_LARGEST = 1e100
#: Columns whose values are less apart have deviations whose squares vanish.
_SMALLEST = 1e-100


class Problems:
    """Problems of settings that do not depend on each other, collected to be reported together."""

    def __init__(self) -> None:
        self._errors: list[ConfigError | DataError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep a ConfigError or DataError, which ends the context, instead of raising it."""
        try:
            yield
        except (ConfigError, DataError) as error:
            self._errors.append(error)

    def report(self, name: str) -> None:
        """Raise what was collected, if anything."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise ConfigError(
                "\n  ".join(
                    [f"{len(self._errors)} settings do not fit {name}:", *map(str, self._errors)]
                )
            )


def check_method(config: StudyConfig, can: Capabilities) -> None:
    """Check search and evaluation against the capabilities of the method, without the data."""
    name, estimator = config.solver.class_name, config.evaluation.estimator_name
    search = config.search
    warn_of_name_clash(name)
    if search.learns:
        sampler_class(search.method)
    if search.is_path and not can.path:
        able = able_solvers(lambda c: c.path)
        raise ConfigError(f"search.method path: {name} has no path ({able} has); use grid.")
    if search.early_stopping and not can.iterates:
        raise ConfigError(
            f"search.early_stopping compares scores after some iterations, and {name} is solved in"
            f" one step: leave it out, or use one of {able_solvers(lambda c: c.iterates)}."
        )
    if search.early_stopping and estimator not in (NATIVE, KNN):
        raise ConfigError(
            "search.early_stopping needs a score at each iteration, and evaluation.estimator"
            f" {estimator} is scored at the last one only: use knn or native."
        )
    if config.solver.importance and (issubclass(solver_class(name), Estimator) or not can.predicts):
        raise ConfigError(
            f"solver.importance is for scikit-learn's classifiers and regressors, and {name} is"
            " none; leave it out."
        )
    if can.ranks is not None:  # else checked by trial fits
        check_scoring_estimator(estimator, name, can.ranks, can.predicts)
    if "." in estimator:
        scoring_estimator_class(estimator)
    for key, measure in list_metrics(config):
        metric(measure, key)


def make_scoring_estimator(settings: EvaluationConfig) -> ScoringEstimator:
    """Return what scores the best features, with the settings that the inner scores choose from."""
    if settings.estimator == LINEAR_SVM:
        return ScoringEstimator.with_space(LINEAR_SVM, {}, {"C": settings.C})
    if settings.estimator == RIDGE:
        return ScoringEstimator.with_space(RIDGE, {}, {"alpha": ALPHAS})
    if isinstance(settings.estimator, ScoringEstimatorConfig):
        return ScoringEstimator.with_space(
            settings.estimator.name, settings.estimator.params, settings.estimator.space
        )
    return ScoringEstimator(settings.estimator)


def imported_code(config: StudyConfig) -> list[tuple[str, str]]:
    """Return the key and the dotted name of all code of the user's own that a study imports.

    They are imported only if the user gives them, not if only a study's directory does.
    """
    names = []
    if imports_code(config.solver.name):
        names.append(("solver.name", config.solver.name))
    if is_imported(config.evaluation.estimator_name):
        names.append(("evaluation.estimator", config.evaluation.estimator_name))
    if is_imported(config.search.method, SAMPLERS):
        names.append(("search.method", config.search.method))
    names += [
        ("dataset.prepare", name)
        for name in dotted_steps(config.dataset.prepare)
        if imports_code(name)
    ]
    for task in config.dataset.tasks or ():
        names += [
            ("dataset.tasks", name) for name in dotted_steps(task.prepare) if imports_code(name)
        ]
    return [
        *names,
        *((key, name) for key, name in list_metrics(config) if is_imported(name, METRICS)),
    ]


def list_metrics(config: StudyConfig) -> list[tuple[str, str]]:
    """Return the keys and the names of the metric and of those that are reported."""
    report = [("evaluation.report", name) for name in config.evaluation.report]
    return [("evaluation.metric", config.evaluation.metric), *report]


def check_scoring_estimator(estimator: str, name: str, ranks: bool, predicts: bool) -> None:
    """Check that a method ranks features, or predicts, as the scoring estimator needs it."""
    if not ranks and not predicts:
        raise ConfigError(
            f"solver.name: {name} neither predicts nor ranks features; name a classifier or a"
            " selector. It lacks `predict`, and once fitted coef_, feature_importances_, scores_,"
            " ranking_ or get_support."
        )
    if estimator == NATIVE and not predicts:
        raise ConfigError(
            f"evaluation.estimator native: {name} does not predict; use knn or linear_svm."
        )
    if estimator != NATIVE and not ranks:
        mend = "use native"
        if "." in name and predicts:
            mend += ", or let it rank by solver.importance permutation"
        raise ConfigError(
            f"evaluation.estimator {estimator}: {name} does not rank features; {mend}."
        )


def check_data(config: StudyConfig, dataset: Dataset, can: Capabilities) -> None:
    """Check the values of the data, and the method and the scaling against the data."""
    _check_values(dataset)
    name = config.solver.class_name
    if not config.dataset.in_memory:
        _check_stored(config, can)
    _check_target(name, dataset, can)
    estimator = config.evaluation.estimator_name
    fitting = ESTIMATORS_BY_TARGET.get(dataset.target.kind, ())
    if estimator in SCORING_ESTIMATORS and estimator not in (NATIVE, *fitting):
        raise ConfigError(
            f"evaluation.estimator {estimator}: the label of {dataset.name} is"
            f" {dataset.target.one}; use {' or '.join(fitting or (NATIVE, 'a dotted name'))}."
        )
    layout = dataset.layout.taken_as
    if dataset.layout.affine is not None:  # refused now, not after hours
        load_nibabel(f"the study of {dataset.name}, whose maps are NIfTI files,")
    if layout not in can.layouts:
        able = able_solvers(lambda c: layout in c.layouts)
        described = dataset.layout.describe()
        raise ConfigError(
            f"solver.name: {name} does not take the layout {layout} of {dataset.name}"
            f" ({described}); {able} do."
        )
    make_scaler(str(config.dataset.scaling), dataset.layout)
    if can.by_variance and config.dataset.scaling == "zscore":
        raise ConfigError(
            f"solver.name: {name} ranks by what dataset.scaling zscore makes equal, so that"
            " rounding errors alone would order the features; set dataset.scaling: none, or"
            " minmax."
        )


def one_label_only(name: str) -> ConfigError:
    """Return the error of a method of one label on an indicator of several."""
    able = able_solvers(lambda c: c.multilabel)
    return ConfigError(
        f"solver.name: {name} takes one label per sample, and y is an indicator; {able} take"
        " several, and so does sklearn.multioutput.MultiOutputClassifier around a classifier."
    )


def refuse_importance(key: str) -> None:
    """Refuse permutation importance where a key keeps samples together, which its folds do not."""
    raise ConfigError(
        f"permutation importance is measured on folds of single samples, and {key} keeps samples"
        " together. Leave the importance out, and take a method with weights, e.g. linear_svm or"
        " sklearn.ensemble.RandomForestClassifier."
    )


def check_metrics(config: StudyConfig, dataset: Dataset, labelled: BoolArray) -> None:
    """Check the metrics against the labels of the labelled samples, those of each task."""
    for part in parts(dataset.excerpt):
        y = part.y[labelled[part.rows]]
        of = "y" if part.task is None else f"y of task {part.task}"
        for key, name in list_metrics(config):
            dataset.target.check_metric(name, y, key=key, of=of)


def _check_target(name: str, dataset: Dataset, can: Capabilities) -> None:
    """Check that a method takes what is predicted."""
    target = dataset.target
    if target.kind in can.targets:
        return
    if target.is_of_classes and CLASSES in can.targets:
        # Of a class in scikit-learn's style a trial fit says it: those that wrap another one do
        # not know.
        if can.ranks is not None:
            raise one_label_only(name)
        return
    taken = CLASSES if CLASSES in can.targets else " and ".join(sorted(can.targets))
    able = able_solvers(lambda c: target.kind in c.targets)
    others = "" if target.is_of_classes else f" and scikit-learn's {target.model_type}s"
    raise ConfigError(
        f"solver.name: {name} takes {taken}, and the label of {dataset.name} is {target.one};"
        f" {able}{others} take {target.plural}; {target.otherwise}."
    )


def _check_stored(config: StudyConfig, can: Capabilities) -> None:
    """Check that a study needs no samples in memory."""
    name, estimator = config.solver.class_name, config.evaluation.estimator_name
    if not can.in_blocks:
        able = able_solvers(lambda c: c.in_blocks)
        raise ConfigError(
            f"dataset.in_memory: {name} is fitted to samples in memory; leave the key out, or use"
            f" one of {able}."
        )
    if estimator != NATIVE:
        raise ConfigError(
            f"dataset.in_memory: evaluation.estimator {estimator} is fitted to samples in memory;"
            " leave the key out, or use native, the prediction of the method itself."
        )
    if config.search.early_stopping:
        raise ConfigError(
            "dataset.in_memory: search.early_stopping needs a score at each iteration, and samples"
            " in a file are scored at the last one only; leave one out."
        )


def _check_values(dataset: Dataset) -> None:
    if dataset.constant.all():
        raise DataError(
            f"{dataset.name}: all {dataset.n_features} features are constant; check that the file"
            " holds measurements, and that they were read as such."
        )
    for part in parts(dataset.excerpt):
        largest = np.maximum(part.X.max(axis=0), -part.X.min(axis=0))
        if isinstance(dataset.X, StoredSamples):
            largest = np.maximum(dataset.X.summary.largest, -dataset.X.summary.smallest)
        if largest.max() > _LARGEST:
            column = int(largest.argmax())
            raise DataError(
                f"{dataset.name}: column '{part.names[column]}' holds values up to"
                f" {largest[column]:.3g}, whose squares overflow. Divide it to below {_LARGEST:g},"
                " mark missing values as such, or list it in dataset.drop."
            )
        ranges = part.X.max(axis=0) - part.X.min(axis=0)
        if (vanishing := (ranges > 0) & (ranges < _SMALLEST)).any():
            column = int(vanishing.argmax())
            raise DataError(
                f"{dataset.name}: column '{part.names[column]}' has values at most"
                f" {ranges[column]:.3g} apart, whose squares vanish: give it in another unit, or"
                " list it in dataset.drop."
            )
    if dataset.target.is_of_classes:
        return
    columns = dataset.target.columns(dataset.y)
    apart = min((float(np.ptp(column)) for column in columns), default=0.0)
    if 0 < apart < _SMALLEST:
        raise DataError(
            f"{dataset.name}: the values of the label are at most {apart:.3g} apart, whose squares"
            " vanish: give it in another unit."
        )


def check_evaluation(config: StudyConfig, dataset: Dataset) -> None:
    """Check the numbers of features and the estimator against the data."""
    settings = config.evaluation
    if settings.is_native:
        return
    if dataset.layout.is_multitask:
        raise ConfigError(
            f"evaluation.estimator {settings.estimator_name} needs one feature space; several tasks"
            " take `native`."
        )
    d = dataset.n_features - dataset.layout.n_beside
    if settings.n_features[-1] > d:
        fitting = [*(n for n in settings.n_features if n < d), d]
        raise ConfigError(
            f"evaluation.n_features: {settings.n_features[-1]} exceeds the {d} features of"
            f" {dataset.name}; set e.g. evaluation.n_features: {fitting}."
        )


def check_folds(config: StudyConfig, dataset: Dataset, plan: NestedPlan) -> None:
    """Check that each test and validation set has what the metrics need."""
    if not config.dataset.in_memory:
        n, d = min(len(train) for train, _ in plan.training_sets()), dataset.n_features
        if n <= d:
            raise ConfigError(
                f"dataset.in_memory: the smallest training set has {n} samples and {dataset.name}"
                f" {d} features; leave the key out. It saves memory only with more samples than"
                " features."
            )
    for key, name in list_metrics(config):
        _check_single(key, name, dataset, plan)
        if not metric(name, key).every_class:
            continue
        whole = "" if dataset.groups is None else " (each group stays in one)"
        target = dataset.target
        for where, rows in plan.held_out():
            if missing := target.undefined(dataset.y, rows, dataset.classes):
                raise ConfigError(
                    f"{key}: {name} is undefined where a class is missing, and {where} have"
                    f" {missing}. Set fewer cv.outer or cv.inner folds{whole}, or take a metric"
                    " that is defined there, e.g."
                    f" {dataset.target.metric_of_any_samples}."
                )


def _check_single(key: str, name: str, dataset: Dataset, plan: NestedPlan) -> None:
    """Check that sets of one sample have the metric."""
    if metric(name, key).is_mean_of_samples:
        return
    for where, rows in plan.held_out():
        if len(rows) == 1:
            instead = dataset.target.metric_of_one_sample
            raise ConfigError(
                f"{key}: {name} needs several samples, and {where} are one: take a metric that is a"
                f" mean over samples, e.g. {instead}, or set fewer cv.outer or cv.inner folds."
            )


def check_parameters(
    config: StudyConfig,
    dataset: Dataset,
    solvers: Iterable[tuple[str, Estimator]],
    preparation: Preparation | None = None,
) -> None:
    """Check the parameters of a method against number and arrangement of the prepared features."""
    n_columns = dataset.n_features
    if preparation is not None:
        n_columns = len(preparation.origin_)
    for name, solver in solvers:
        try:
            if preparation is not None:
                _check_joined(config, solver, preparation)
                set_parameters(solver, preparation.parameters)
            solver.check(n_columns)
        except ConfigError as error:
            raise ConfigError(
                f"configuration {name}: {error}{_advise_on_plain_columns(config, dataset, solver)}"
            ) from error


def _check_joined(config: StudyConfig, solver: Estimator, preparation: Preparation) -> None:
    """Refuse a method of arrays where steps join cells."""
    if preparation.joined_to_ is not None and "shape" in solver.layout_parameters:
        raise ConfigError(
            f"{config.solver.class_name} takes samples that are arrays, and dataset.prepare joins"
            " their cells; take a method of columns, e.g. linear_svm, or leave parcels"
            " and clusters out."
        )


def _advise_on_plain_columns(config: StudyConfig, dataset: Dataset, solver: Estimator) -> str:
    """Return what to do about a method of arrays if the samples are plain columns."""
    if len(dataset.layout.grid) != 1 or "shape" not in solver.layout_parameters:
        return ""
    return (
        f" The samples of {dataset.name} are plain columns, and {config.solver.class_name} is for"
        " arrays. If they are images, set dataset.shape to [height, width]. Else use a solver for"
        " tables, e.g. solver: {name: rfs}, fisher_score or linear_svm."
    )
