"""Kind of a data set, by which a drafted study chooses its method."""

from __future__ import annotations

from enum import StrEnum

from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities, Tensor


class Kind(StrEnum):
    """Kind of a data set that a study can be drafted for."""

    TABLE = "table"
    MATRIX = "matrices"
    TENSOR = "arrays of order 3 or more"
    MODALITIES = "modalities"
    LABELS = "several labels a sample"


def kind_of(dataset: Dataset) -> Kind:
    """Return the kind of a data set.

    Parameters
    ----------
    dataset : Dataset
        Data set of one task.

    Returns
    -------
    Kind
        LABELS for an indicator, whatever the layout; else by the layout, where a side of 1 does not count.

    Examples
    --------
    >>> from raysel.data.loading import load_dataset
    >>> kind_of(load_dataset("wine")).name, kind_of(load_dataset("digits")).name
    ('TABLE', 'MATRIX')
    """
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
