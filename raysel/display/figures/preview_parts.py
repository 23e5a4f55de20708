"""Contents of a picture of the data as plain data: images of classes and samples, or ranges of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raysel.arrays import FloatArray


@dataclass(frozen=True)
class Images:
    """Images of one shape, all drawn in the same greys, the smallest value black and the largest white.

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
    step : int, default=1
        Only every ``step``-th row and column of the samples is in the images, which the ticks allow for.
    upwards : bool, default=False
        Whether the vertical axis runs upwards, as in pictures of space, instead of down as in a matrix.
    """

    title: str
    captions: Sequence[str]
    images: FloatArray
    axes: tuple[str, str] = ("row", "column")
    step: int = 1
    upwards: bool = False


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
