"""Contents of a picture of the data as plain data: images of classes and samples, or ranges of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysel.arrays import FloatArray


@dataclass(frozen=True)
class Images:
    """Images of one shape, all drawn in the same greys, the smallest value black and the largest white."""

    title: str
    captions: Sequence[str]
    #: Values of the cells; shape (n_images, height, width).
    images: FloatArray
    axes: tuple[str, str] = ("row", "column")
    step: int = 1
    upwards: bool = False


@dataclass(frozen=True)
class Ranges:
    """Distribution of the values of columns, modalities or other parts, each drawn over its own range."""

    title: str
    names: Sequence[str]
    #: Smallest value, quartiles and largest value; shape (n_parts, 5).
    quantiles: FloatArray
    #: Mean of each class; no columns where they are not shown; shape (n_parts, n_classes).
    means: FloatArray
    classes: Sequence[str] = ()
