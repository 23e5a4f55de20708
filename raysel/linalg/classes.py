"""Classes of labels, of which every method with classes needs two."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import IntArray, LabelArray
from raysel.errors import DataError


def distinct_classes(y: ArrayLike) -> tuple[LabelArray, IntArray]:
    """Find the classes of labels, and number them in their order.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class label of each sample; at least one.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    codes : ndarray of int64, shape (n_samples,)
        Class of each sample, 0 .. n_classes - 1.

    Raises
    ------
    DataError
        If there is one class only.

    Examples
    --------
    >>> classes, codes = distinct_classes(["b", "a", "b"])
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!s}); at least two are needed.")
    return classes, codes
