"""Evidence on which side of images is up: mirror symmetry of the mean image."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import gaussian_filter

from raysel.arrays import FloatArray

#: From this ratio on the axis of symmetry is taken as known (README.md of experiments/arrangement measures it).
SURE = 3.0
#: The details of the mean images of two halves of the samples must correlate as much, or they are mostly noise.
_REPEATABLE = 0.8


def symmetry(samples: FloatArray, shape: tuple[int, int]) -> float:
    r"""Measure whether the mean image is mirrored left to right rather than top to bottom.

    Faces and many objects are nearly symmetric left to right and never top to bottom. Let D be the mean image less
    its smoothed copy (Gaussian of one eighth of each side), so that light and background count little. The value is

    .. math:: \frac{\lVert D - D_{\text{upside down}} \rVert^2}{\lVert D - D_{\text{mirrored}} \rVert^2}

    which is above one for upright images of such objects and below one if they lie on their side.

    Parameters
    ----------
    samples : array of shape (n_samples, h * w)
        Images, row by row.
    shape : tuple of int
        Height h and width w.

    Returns
    -------
    float
        The ratio; 1 if the mean images of two halves of the samples differ too much to tell.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> round(symmetry(load_digits().data, (8, 8)), 1)
    1.0
    """
    even, odd = (_detail(half, shape) for half in (samples[::2], samples[1::2]))
    lengths = float(np.linalg.norm(even) * np.linalg.norm(odd))
    if lengths == 0 or float((even * odd).sum()) < _REPEATABLE * lengths:
        return 1.0
    detail = even + odd
    tiny = 1e-12 * float((detail**2).sum())
    upside_down = float(((detail - detail[::-1]) ** 2).sum())
    mirrored = float(((detail - detail[:, ::-1]) ** 2).sum())
    return (upside_down + tiny) / (mirrored + tiny)


def is_known(ratio: float) -> bool:
    """Tell whether the ratio of `symmetry` is far enough from one, in either direction."""
    return abs(math.log(ratio)) >= math.log(SURE)


def _detail(samples: FloatArray, shape: tuple[int, int]) -> FloatArray:
    mean = samples.mean(axis=0).reshape(shape)
    detail: FloatArray = mean - gaussian_filter(mean, (shape[0] / 8, shape[1] / 8))
    return detail - detail.mean()
