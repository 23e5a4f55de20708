"""What a picture of the data shows, as plain data: images of classes and samples, or ranges of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysel.arrays import FloatArray


@dataclass(frozen=True)
class Images:
    """Images of one shape, all drawn in the same greys.

    Parameters
    ----------
    title : str
        What the images are of, with shape and order.
    captions : sequence of str
        Name of each image.
    images : ndarray of shape (n_images, height, width)
        Values of the cells.
    axes : (str, str), default=("row", "column")
        Names of the vertical and of the horizontal axis.
    """

    title: str
    captions: Sequence[str]
    images: FloatArray
    axes: tuple[str, str] = ("row", "column")


@dataclass(frozen=True)
class Ranges:
    """Distribution of the values of columns, modalities or other parts, each drawn over its own range.

    Parameters
    ----------
    title : str
        What the parts are, and how many are left out.
    names : sequence of str
        Name of each part.
    quantiles : ndarray of shape (n_parts, 5)
        Smallest value, quartiles and largest value.
    means : ndarray of shape (n_parts, n_classes)
        Mean of each class; no columns where they are not shown.
    classes : sequence of str, default=()
        Names of the classes.
    """

    title: str
    names: Sequence[str]
    quantiles: FloatArray
    means: FloatArray
    classes: Sequence[str] = ()
