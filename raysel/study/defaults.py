"""Estimator and metric, by layout and target, of studies whose configuration names none."""

from __future__ import annotations

from typing import Any, Final

from raysel.config.schema import AUTO, StudyConfig
from raysel.data.dataset import Dataset
from raysel.evaluation.scoring_estimators import (
    BESIDE_NATIVE,
    ESTIMATORS_BY_TARGET,
    KNN,
    LINEAR_SVM,
    NATIVE,
)

ACCURACY, MACRO_F1 = "accuracy", "macro_f1"
#: Layout whose ranked features a linear SVM scores; of arrays, as of images, the nearest neighbour
#: does so. Both are measured in experiments/claims/defaults.
_TABLE: Final = "table"


def default_estimator(dataset: Dataset) -> str:
    """Return what is fitted to the best features where no estimator is named."""
    usual, *others = ESTIMATORS_BY_TARGET.get(dataset.target.kind, (NATIVE,))
    if LINEAR_SVM in others and dataset.layout.noun == _TABLE:
        return LINEAR_SVM
    return usual


def default_metric(dataset: Dataset) -> str:
    """Return the metric where none is named."""
    return dataset.target.default_metric


def with_defaults(config: StudyConfig, dataset: Dataset) -> StudyConfig:
    """Return a configuration with the defaults of its data in place of what it leaves to them."""
    settings = config.evaluation
    chosen: dict[str, Any] = {}
    if settings.metric == AUTO:
        chosen["metric"] = default_metric(dataset)
        chosen["report"] = tuple(name for name in settings.report if name != chosen["metric"])
    if settings.estimator == AUTO:
        chosen["estimator"] = _estimator(config, dataset)
    is_native = chosen.get("estimator", settings.estimator) == NATIVE
    has_rival = not is_native or dataset.target.kind in BESIDE_NATIVE
    if settings.references and not (has_rival and config.dataset.in_memory):
        chosen["references"] = "chance"
    return config.model_copy(update={"evaluation": settings.model_copy(update=chosen)})


def _estimator(config: StudyConfig, dataset: Dataset) -> str:
    """Return the estimator of a study that names none: itself if no n_features are given."""
    if not config.evaluation.n_features:
        return NATIVE
    chosen = default_estimator(dataset)
    # Early stopping compares scores of each iteration, which a linear SVM is too slow for.
    if config.search.early_stopping and chosen == LINEAR_SVM:
        return KNN
    return chosen
