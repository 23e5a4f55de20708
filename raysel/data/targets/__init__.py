"""Targets: what is predicted of a sample, which everything that needs to know of y asks."""

from raysel.data.targets.classes import Classes
from raysel.data.targets.label_values import checked_labels, has_columns, mark_label, squeeze_column
from raysel.data.targets.labels import Labels
from raysel.data.targets.quantities import Quantities, looks_like_quantity, quantile_strata
from raysel.data.targets.target import (
    CLASSIFICATION,
    REGRESSION,
    Target,
    choose_target,
    find_target,
    target_from_json,
)

#: Kinds, as the capabilities of methods name them.
TARGETS = CLASSES, LABELS, QUANTITIES = Classes.kind, Labels.kind, Quantities.kind

__all__ = [
    "CLASSES",
    "CLASSIFICATION",
    "LABELS",
    "QUANTITIES",
    "REGRESSION",
    "TARGETS",
    "Classes",
    "Labels",
    "Quantities",
    "Target",
    "checked_labels",
    "choose_target",
    "find_target",
    "has_columns",
    "looks_like_quantity",
    "mark_label",
    "quantile_strata",
    "squeeze_column",
    "target_from_json",
]
