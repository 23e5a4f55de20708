"""Evidence on which side of images is up: mirror symmetry of the mean images of all samples and of each class."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import gaussian_filter

from raysel.arrays import FloatArray, LabelArray

#: Ratio of all samples from which the axis of symmetry may be known (experiments/arrangement/README.md measures it).
SURE = 3.0
#: Sides below this are too short for the details of a face.
_SHORTEST = 16
#: Smallest number of classes, largest that are looked at, and smallest number of samples of each.
_FEWEST_CLASSES, _MOST_CLASSES, _PER_CLASS = 5, 40, 4
#: Share of the classes whose mean images are more symmetric in the direction of all samples.
_AGREE = 0.9
#: The details of the mean images of two halves of the samples must correlate as much, or they are mostly noise.
_REPEATABLE = 0.8


def symmetry(samples: FloatArray, shape: tuple[int, int]) -> float:
    r"""Measure whether the mean image is mirrored left to right rather than top to bottom.

    Faces and many objects are nearly symmetric left to right and never top to bottom. Let D be the mean image less
    its smoothed copy (Gaussian of one eighth of each side), so that light and background count little. The value is

    .. math:: \frac{\lVert D - D_{\text{upside down}} \rVert^2}{\lVert D - D_{\text{mirrored}} \rVert^2}

    which is above one for upright images of such objects and below one if they lie on their side.
    """
    even, odd = (_detail(half, shape) for half in (samples[::2], samples[1::2]))
    lengths = float(np.linalg.norm(even) * np.linalg.norm(odd))
    if lengths == 0 or float((even * odd).sum()) < _REPEATABLE * lengths:
        return 1.0
    return _ratio(even + odd)


def is_known(ratio: float, samples: FloatArray, y: LabelArray | None, shape: tuple[int, int]) -> bool:
    """Tell whether the mean images of nearly all classes agree on which side of the images is up.

    One mean image is no evidence: that of the digits 0 and 3, or of the letters B to E, is symmetric top to bottom.
    Faces are of many classes, each more symmetric left to right.
    """
    if y is None or abs(math.log(ratio)) < math.log(SURE) or min(shape) < _SHORTEST:
        return False
    classes, sizes = np.unique(y, return_counts=True)
    classes = classes[sizes >= _PER_CLASS]
    if len(classes) < _FEWEST_CLASSES:
        return False
    looked_at = np.unique(np.linspace(0, len(classes) - 1, min(_MOST_CLASSES, len(classes))).astype(np.int64))
    ratios = np.array([_ratio(_detail(samples[y == label], shape)) for label in classes[looked_at]])
    agree = ratios > 1 if ratio > 1 else ratios < 1
    return bool(agree.mean() >= _AGREE)


def _ratio(detail: FloatArray) -> float:
    tiny = 1e-12 * float((detail**2).sum()) or 1.0  # of a constant image: the ratio is 1
    upside_down = float(((detail - detail[::-1]) ** 2).sum())
    mirrored = float(((detail - detail[:, ::-1]) ** 2).sum())
    return (upside_down + tiny) / (mirrored + tiny)


def _detail(samples: FloatArray, shape: tuple[int, int]) -> FloatArray:
    mean = samples.mean(axis=0).reshape(shape)
    detail: FloatArray = mean - gaussian_filter(mean, (shape[0] / 8, shape[1] / 8))
    return detail - detail.mean()
