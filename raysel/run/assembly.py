"""Study made of Python objects: an estimator, a space, arrays, folds or splitters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from raysel.base.estimator import Estimator
from raysel.base.registry import OWN
from raysel.base.template import Template
from raysel.config import config_from_dict
from raysel.config.plain_data import OWN_DATA
from raysel.config.schema import DatasetConfig
from raysel.config.space import LogSpace, RandInt, Scalar, domain_from_yaml, scalar_from_yaml
from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.layouts import MaskedVolume
from raysel.data.table_rows import TableRows
from raysel.data.targets import CLASSIFICATION, REGRESSION
from raysel.evaluation.configurations import Configuration, configurations
from raysel.evaluation.plan import NestedPlan
from raysel.study.defaults import with_defaults
from raysel.study.definition import Study
from raysel.study.inputs import OwnData

#: A parameter grid: values by parameter.
Grid = dict[str, list[Any]]


def assemble_study(
    estimator: Any,
    space: Any,
    dataset: Dataset,
    *,
    outer: Any,
    inner: Any,
    evaluation: Mapping[str, Any],
    dataset_section: Mapping[str, Any],
    seed: int,
    saved: bool,
    sections: Mapping[str, Any],
) -> Study:
    """Make and check the study of an estimator; `sections` are further ones of its configuration.

    Of `TableRows`, whose cells only the estimator reads, chance is the only reference.
    """
    check_estimator_object(estimator)
    texts, objects = _plain(grids(space))
    union, has_cells = _union(texts), isinstance(dataset.X, TableRows)
    evaluation = dict(evaluation)
    if has_cells:
        evaluation["references"] = "chance"
    by_text = len(texts) > 1 or any(objects.values()) or "random_state" in union or has_cells
    named = None if by_text else _by_name(estimator)
    method, params = named or (f"{type(estimator).__module__}.{_described(estimator)}", {})
    fixed = {key: value for key, value in params.items() if key not in union}
    raw = {
        "name": "nested-search",
        "seed": seed,
        "dataset": {"path": OWN_DATA, **dataset_section},
        "solver": {"name": method, "params": fixed, "space": union},
        "evaluation": evaluation,
        "cv": {"outer": _count(outer), "inner": _count(inner)},
        **sections,
    }
    config = with_defaults(config_from_dict(raw, "NestedSearch"), dataset)

    def draw() -> NestedPlan:
        plan = NestedPlan.make(
            dataset.y,
            outer=outer,
            inner=inner,
            repeats=1,
            groups=dataset.groups,
            seed=seed,
        )
        plan.check(dataset.y, dataset.groups, "the folds of outer and inner")
        return plan

    def listed() -> tuple[Configuration, ...]:
        by_id: dict[str, Configuration] = {}
        for grid in texts:
            space_of_grid = {key: domain_from_yaml(values) for key, values in grid.items()}
            for one in configurations(
                config.solver.params, space_of_grid, method="grid", num_samples=None, seed=seed
            ):
                by_id.setdefault(one.id, one)
        return tuple(by_id.values())

    template = None if named else Template(estimator, objects)
    study = Study(config, dataset, NestedPlan(0, ()), (), own=dataset, template=template)
    study = study.checked(draw, listed, saved=saved)
    folds = {
        "outer": len(study.plan.outer),
        "inner": min(len(fold.inner) for fold in study.plan.folds),
    }
    return replace(
        study, config=config.model_copy(update={"cv": config.cv.model_copy(update=folds)})
    )


def _union(several: Sequence[Grid]) -> Grid:
    """Return all values of each parameter, in the order of the grids."""
    union: Grid = {}
    for grid in several:
        for name, values in grid.items():
            union[name] = list(dict.fromkeys([*union.get(name, ()), *values]))
    return union


def _count(folds: Any) -> int:
    """Number of folds for the configuration; that of a splitter is put in once it has split."""
    if isinstance(folds, Integral):
        return int(folds)
    return 2


def checked_folds(name: str, folds: Any) -> Any:
    """Return a number of folds, or a splitter of scikit-learn."""
    if isinstance(folds, Integral) and not isinstance(folds, bool) and int(folds) >= 2:
        return int(folds)
    if callable(getattr(folds, "split", None)) and not isinstance(folds, str):
        return folds
    raise ConfigError(
        f"{name}={folds!r}: give a number of folds of at least 2, or a splitter of scikit-learn,"
        " e.g. StratifiedKFold(5, shuffle=True, random_state=0)."
    )


def draw_seed(random_state: Any) -> int:
    """Return the seed of a study: 0 for None, so that a second fit gives the same numbers."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def check_estimator_object(estimator: Any) -> None:
    """Check that an estimator is an object in scikit-learn's style."""
    if isinstance(estimator, type) or not all(
        hasattr(estimator, name) for name in ("fit", "get_params", "set_params")
    ):
        raise ConfigError(
            f"estimator={estimator!r} is no estimator: give an object with fit, get_params and"
            " set_params, e.g. sklearn.svm.LinearSVC()."
        )
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(part, Pipeline):
            _check_samplers(part)
    if hasattr(estimator, "fit_resample"):
        raise _resamples(type(estimator).__name__)


def _check_samplers(pipeline: Pipeline) -> None:
    """Check that steps which resample are in a Pipeline that can, and before its last step."""
    samplers = [step for _, step in pipeline.steps if hasattr(step, "fit_resample")]
    if samplers and samplers[-1] is pipeline.steps[-1][1]:
        raise _resamples(type(samplers[-1]).__name__)
    if samplers and type(pipeline) is Pipeline:
        raise ConfigError(
            f"{type(samplers[0]).__name__} resamples, which a Pipeline of scikit-learn cannot: use "
            "imblearn.pipeline.Pipeline or make_pipeline there."
        )


def _resamples(name: str) -> ConfigError:
    return ConfigError(
        f"{name} resamples, and neither predicts nor ranks features: put it before a classifier or"
        " selector in an imblearn.pipeline.Pipeline."
    )


def make_dataset(
    estimator: Any,
    X: FloatArray | TableRows,
    y: Any,
    groups: Any = None,
    names: Sequence[str] = (),
) -> Dataset:
    """Make the data set of validated samples (n_samples, d) as the estimator arranges them."""
    arrangement: dict[str, Any] = {}
    if is_classifier(estimator):
        arrangement["task"] = CLASSIFICATION
    if is_regressor(estimator):
        arrangement["task"] = REGRESSION
    if isinstance(estimator, Estimator):
        if getattr(estimator, "tasks", None) is not None:
            raise ConfigError(
                f"{type(estimator).__name__}(tasks=...) learns several tasks, which no single X and"
                " y hold: use run_study with the Dataset that join_tasks makes."
            )
        given = {
            name: getattr(estimator, name)
            for name in ("shape", "modalities")
            if hasattr(estimator, name)
        }
        arrangement |= {name: value for name, value in given.items() if value is not None}
    dataset = OwnData(X, y, groups=groups).dataset(
        DatasetConfig(path=OWN_DATA, **arrangement), None
    )
    if getattr(estimator, "mask", None) is not None:
        layout = _volume(estimator, X.shape[1])
        dataset = replace(dataset, layout=layout, feature_names=tuple(layout.default_names()))
    if len(names):
        dataset = replace(dataset, feature_names=tuple(names))
    return dataset


def _volume(estimator: Estimator, n_features: int) -> MaskedVolume:
    """Make the layout of an estimator's ``mask``, with axes of length 1 up to three."""
    estimator.check(n_features)
    mask = np.asarray(estimator.mask)
    if mask.ndim > 3:
        raise ConfigError(
            f"mask has {mask.ndim} axes: studies take masks of three at most; fit the estimator"
            " itself."
        )
    return MaskedVolume(mask.reshape((*mask.shape, 1, 1)[:3]))


def grids(space: Any) -> list[Grid]:
    """Return the grids of a space, each as lists of values by parameter."""
    several = [space or {}] if isinstance(space, Mapping) or space is None else space
    if (
        not isinstance(several, Sequence)
        or not several
        or not all(isinstance(grid, Mapping) for grid in several)
    ):
        raise ConfigError(
            f"space={space!r}: give lists of values by parameter, e.g. {{'C': [0.01, 0.1, 1]}}."
        )
    return [
        {str(name): _values(str(name), given) for name, given in grid.items()} for grid in several
    ]


def _values(name: str, given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        try:
            domain = domain_from_yaml(dict(given))
        except ValueError as error:
            raise ConfigError(f"space: {name}: {error}") from error
        if isinstance(domain, LogSpace):
            return list(domain.values)
        if isinstance(domain, RandInt):
            return list(range(domain.low, domain.high + 1))
    if hasattr(given, "rvs") or isinstance(given, Mapping):
        raise ConfigError(f"space: {name}: {given!r} has no grid; give a list of values.")
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ConfigError(
            f"space: {name}: {given!r} is one value; give a list of values, e.g. [{given!r}]."
        )
    values = list(given)
    if not values:
        raise ConfigError(f"space: {name}: the list is empty; give at least one value.")
    return values


def _plain(given: Sequence[Grid]) -> tuple[list[Grid], dict[str, dict[str, Any]]]:
    """Replace values that are no plain data by texts, and return these with the objects."""
    objects: dict[str, dict[str, Any]] = {}

    def text(name: str, value: Any) -> Scalar:
        if isinstance(value, np.generic):
            value = value.item()
        try:
            return scalar_from_yaml(value)
        except ValueError:
            shown = getattr(value, "__qualname__", None) or " ".join(repr(value).split())
            if objects.setdefault(name, {}).setdefault(shown, value) is not value:
                shown = f"{shown} ({len(objects[name])})"
                objects[name][shown] = value
            return shown

    return [
        {name: [text(name, value) for value in values] for name, values in grid.items()}
        for grid in given
    ], objects


def _by_name(estimator: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and parameters by which a configuration makes the same estimator; None if it cannot."""
    cls = type(estimator)
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return None
    supplied: Collection[str] = getattr(cls, "layout_parameters", ())
    params: dict[str, Any] = {}
    for key, parameter in signature(cls).parameters.items():
        value = getattr(estimator, key, None)
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            return None
        if key == "random_state":
            if value is not None:
                return None  # a study would set it from its own seed
        elif key not in supplied and not _is_default(value, parameter.default):
            try:
                params[key] = scalar_from_yaml(value)
            except ValueError:
                return None
    place = f"{cls.__module__}:{cls.__qualname__}"
    return (
        next((name for name, target in OWN.items() if target == place), place.replace(":", ".")),
        params,
    )


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, int | float | str) and type(value) is type(default) and value == default
    )


def _described(estimator: Any) -> str:
    """Return an estimator with its parameters as one line."""
    try:
        text = estimator.__repr__(N_CHAR_MAX=math.inf)
    except TypeError:  # of a class outside scikit-learn
        text = repr(estimator)
    return " ".join(text.split())
