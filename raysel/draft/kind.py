"""Kind and size of a data set, by which a draft chooses its method, folds and configurations."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities, Tensor

#: Number of values of X times number of classes from which an effort is medium, large, and huge.
_STEPS = (500_000, 50_000_000, 400_000_000)


class Kind(StrEnum):
    """Kind of a data set that a study can be drafted for."""

    TABLE = "table"
    MATRIX = "matrices"
    TENSOR = "arrays of order 3 or more"
    MODALITIES = "modalities"
    LABELS = "several labels a sample"


def kind_of(dataset: Dataset) -> Kind:
    """Return the kind of a data set."""
    if dataset.is_multilabel:
        return Kind.LABELS
    if isinstance(dataset.layout, Modalities):
        return Kind.MODALITIES
    if not isinstance(dataset.layout, Tensor):
        return Kind.TABLE  # a layout of cells without a rectangle around them, e.g. the voxels of a mask
    order = len(dataset.layout.shape)
    if order == 2 and min(dataset.layout.shape) > 1:
        return Kind.MATRIX
    return Kind.TABLE if order <= 2 else Kind.TENSOR


class Effort(IntEnum):
    """Effort of a fit; the larger it is, the fewer fits a draft asks for."""

    SMALL = 0
    MEDIUM = 1
    LARGE = 2
    HUGE = 3


def effort_of(dataset: Dataset) -> Effort:
    """Return the effort of fits to a data set, from its size alone, so that a draft is the same on every machine."""
    size = dataset.n_samples * dataset.n_features * len(dataset.classes)
    return Effort(sum(size > step for step in _STEPS))
