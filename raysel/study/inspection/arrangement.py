"""Shape, order and upright side of images whose cells are columns, found from their values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.dataset import Dataset
from raysel.study.inspection.column_correlations import (
    ABOVE_ANY_TWO,
    NO_MORE,
    SHORTEST_SIDE,
    chosen_samples,
    is_image,
    neighbours,
    partners,
)

#: Ratio of all samples from which the axis of symmetry may be known (measured in
#: experiments/claims/arrangement).
SURE = 3.0
#: Sides below this are too short for the details of a face.
_SHORTEST = 16
#: Smallest number of classes, largest that are looked at, and smallest number of samples of each.
_FEWEST_CLASSES, _MOST_CLASSES, _PER_CLASS = 5, 40, 4
#: Share of the classes whose mean images are more symmetric in the direction of all samples.
_AGREE = 0.9
#: The details of the mean images of two halves of the samples must correlate as much, or they are
#: mostly noise.
_REPEATABLE = 0.8
#: Fewer samples are too few to recognise an image by.
FEWEST_SAMPLES = 10
#: Correlations that differ by less are equal.
_SAME = 0.01


def symmetry(samples: FloatArray, shape: tuple[int, int]) -> float:
    r"""Measure whether the mean image is mirrored left to right rather than top to bottom.

    Faces and many objects are nearly symmetric left to right and never top to bottom. Let D be the
    mean image less its smoothed copy (Gaussian of one eighth of each side), so that light and
    background count little. The value is

    .. math::

       \frac{\lVert D - D_{\text{upside down}} \rVert^2}{\lVert D - D_{\text{mirrored}} \rVert^2}

    which is above one for upright images of such objects and below one if they lie on their side.
    """
    even, odd = (_detail(half, shape) for half in (samples[::2], samples[1::2]))
    lengths = float(np.linalg.norm(even) * np.linalg.norm(odd))
    if lengths == 0 or float((even * odd).sum()) < _REPEATABLE * lengths:
        return 1.0
    return _ratio(even + odd)


def is_known(
    ratio: float, samples: FloatArray, y: LabelArray | None, shape: tuple[int, int]
) -> bool:
    """Tell whether the mean images of nearly all classes agree on which side of the images is up.

    One mean image is no evidence: that of the digits 0 and 3, or of the letters B to E, is
    symmetric top to bottom. Faces are of many classes, each more symmetric left to right.
    """
    if y is None or abs(math.log(ratio)) < math.log(SURE) or min(shape) < _SHORTEST:
        return False
    classes, sizes = np.unique(y, return_counts=True)
    classes = classes[sizes >= _PER_CLASS]
    if len(classes) < _FEWEST_CLASSES:
        return False
    looked_at = np.unique(
        np.linspace(0, len(classes) - 1, min(_MOST_CLASSES, len(classes))).astype(np.int64)
    )
    ratios = np.array([_ratio(_detail(samples[y == label], shape)) for label in classes[looked_at]])
    agree = ratios > 1
    if ratio < 1:
        agree = ratios < 1
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


@dataclass(frozen=True)
class Arrangement:
    """Shape and order of images found in the columns of a matrix."""

    shape: tuple[int, int]
    order: Literal["C", "F"]
    order_known: bool
    symmetry: float
    correlation: float
    n_pairs: int
    runner_up: float
    any_two: float
    n_samples: int

    @property
    def row_length(self) -> int:
        """Number of consecutive columns that are a row (order C) or a column (order F) of cells."""
        return self.shape[1] if self.order == "C" else self.shape[0]

    def describe(self) -> str:
        """Say in one sentence what was found, from which figures, and if the order is known."""
        height, width = self.shape
        text = (
            f"the columns are the cells of {height} x {width} images in order {self.order}."
            f" Neighbouring cells correlate by {self.correlation:.2f} on average ({self.n_pairs}"
            f" pairs, {self.n_samples} samples), any two cells by {self.any_two:.2f}"
        )
        if not math.isnan(self.runner_up):
            text += f", those of the next best shape by {self.runner_up:.2f}"
        if self.order_known:
            return (
                f"{text}; upright, because the mean images of nearly all classes are more symmetric"
                " left to right than top to bottom."
            )
        other = {"C": "F", "F": "C"}[self.order]
        return (
            f"{text}. C or F cannot be told from the values: look at the mean image. If it lies on"
            f" its side, set shape [{width}, {height}] and order {other}."
        )


def find_arrangement(
    X: NDArray[Any], y: LabelArray | None = None, *, column_major: bool = False
) -> Arrangement | None:
    r"""Find the shape and order of images from the correlations of neighbouring cells.

    Cells side by side are one column of X apart, and cells below each other are a row's length w
    apart. The correlation of columns j and j + k, averaged over j, therefore falls with k and rises
    to a peak at k = w. The factorisation h x w of the number of columns is taken whose neighbouring
    cells correlate most on average, in both directions, if they look like those of an image:

    - side by side and below each other they correlate by c with (c - a) / (1 - a) at least 0.2,
      where a is the mean correlation of any two cells;
    - the correlation has a peak at lag w and is nowhere higher between w / 2 and half the number of
      columns;
    - rows farther apart correlate less than those two apart;
    - it is lower from the end of a row to the start of the next one than within a row;
    - three colour channels, as the last or the first axis of the images, do not explain it.

    A table of features, a spectrum (smooth in one direction only) and images whose columns were
    permuted do not meet these conditions.

    An image and its transpose have the same neighbours. Which of them is upright is told only by
    the mean images: that of all samples must be at least 3 times as symmetric left to right as top
    to bottom, or the reverse, and those of 90 % of at least 5 classes must agree with it; both
    sides must have 16 cells or more.
    """
    X = np.asarray(X)
    widths = _widths(X.shape[1])
    if not widths:
        return None
    samples, rows = chosen_samples(X)
    if len(samples) < FEWEST_SAMPLES:
        return None
    classes = None if y is None else np.asarray(y)[rows]
    return _find(samples, classes, widths, column_major)


def arrangement_remark(dataset: Dataset) -> str | None:
    """Say which shape and order fit images better than the ones they have."""
    sides = dataset.layout.grid
    if len(sides) != 2 or min(sides) < SHORTEST_SIDE:
        return None
    cells = np.asarray(dataset.filled)[:, : math.prod(sides)]  # without confounds
    samples, rows = chosen_samples(cells)
    if len(samples) < FEWEST_SAMPLES:
        return None
    classes = dataset.y[rows] if dataset.target.is_one_class else None
    return _remark(samples, classes, *sides)


def _remark(samples: FloatArray, y: LabelArray | None, height: int, width: int) -> str | None:
    declared = neighbours(samples.copy())
    correlation, n_pairs = declared.score(width)
    widths = _widths(height * width)
    shape = f"[{height}, {width}]"
    figures = (
        f"Neighbouring cells correlate by {correlation:.2f} on average ({n_pairs} pairs,"
        f" {len(samples)} samples)"
    )
    arrangement = _find(samples, y, widths, column_major=False)
    # With order F the columns were rearranged: put them back as the file has them.
    stored = samples.reshape(-1, height, width).transpose(0, 2, 1).reshape(len(samples), -1)
    before = _find(stored, y, widths, column_major=False)
    # An image read in the wrong order can look like one whose rows are shifted, so the better of
    # the two counts.
    if before is not None and (
        arrangement is None or before.correlation > arrangement.correlation + _SAME
    ):
        if before.row_length != height and before.correlation > correlation:
            return (
                f"{_otherwise(before)}\n{figures}, there, if order is F now, by"
                f" {before.correlation:.2f}."
            )
    elif arrangement is not None and arrangement.row_length == width:
        if arrangement.order == "C":
            return None
        return _on_their_side(arrangement)
    elif arrangement is not None and arrangement.correlation > correlation:
        return f"{_otherwise(arrangement)}\n{figures}, there by {arrangement.correlation:.2f}."
    elsewhere = partners(samples)
    if declared.excess(correlation) < NO_MORE and declared.excess(elsewhere) > ABOVE_ANY_TWO:
        return (
            f"The columns are not in the order of an image of shape {shape}: correct dataset.shape"
            f" and dataset.order, or leave them out.\n{figures}, no more than any two cells"
            f" ({declared.any_two:.2f}), while each has another one elsewhere with which it"
            f" correlates by {elsewhere:.2f}."
        )
    return None


def _on_their_side(arrangement: Arrangement) -> str:
    height, width = arrangement.shape
    return (
        f"Images of shape [{width}, {height}] seem on their side: shape [{height}, {width}] with"
        " order F (if order is F now, C) turns them upright.\nTheir mean image is"
        f" {arrangement.symmetry:.0f} times as symmetric top to bottom as left to right, and those"
        " of nearly all classes agree."
    )


def _otherwise(arrangement: Arrangement) -> str:
    height, width = arrangement.shape
    this = f"[{height}, {width}] and order {arrangement.order}"
    if arrangement.order_known:
        return f"Shape or order seems wrong: set shape {this}."
    other = f"[{width}, {height}] and order F if the mean image lies on its side"
    return f"Shape or order seems wrong: set {this}, or {other}."


def _find(
    samples: FloatArray, y: LabelArray | None, widths: list[int], column_major: bool
) -> Arrangement | None:
    """Find the arrangement among factorisations of the given widths."""
    n_features = samples.shape[1]
    correlations = neighbours(samples.copy())
    scores = {width: correlations.score(width) for width in widths}
    width = max(widths, key=lambda width: np.nan_to_num(scores[width][0], nan=-np.inf))
    if not is_image(correlations, width):
        return None

    height = n_features // width
    ratio = symmetry(samples, (height, width))
    known = is_known(ratio, samples, y, (height, width))
    row_by_row = not column_major
    if known:
        row_by_row = ratio > 1
    others = [score for other, (score, _) in scores.items() if other != width]
    arrangement = Arrangement(
        shape=(height, width),
        order="C",
        order_known=known,
        symmetry=ratio,
        correlation=scores[width][0],
        n_pairs=scores[width][1],
        runner_up=max((score for score in others if not math.isnan(score)), default=math.nan),
        any_two=correlations.any_two,
        n_samples=correlations.n_samples,
    )
    if row_by_row:
        return arrangement
    return replace(arrangement, shape=(width, height), order="F", symmetry=1 / ratio)


def _widths(n_features: int) -> list[int]:
    """Widths of the factorisations both sides of which are long enough."""
    small = [side for side in range(1, math.isqrt(n_features) + 1) if n_features % side == 0]
    sides = sorted({*small, *(n_features // side for side in small)})
    return [width for width in sides if min(width, n_features // width) >= SHORTEST_SIDE]
