"""Shape and order of images that are stored as rows of a matrix, found from the correlations of neighbouring cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raysel.arrays import FloatArray, LabelArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.errors import DataError
from raysel.inspection.image_check import ABOVE_ANY_TWO, NO_MORE, SHORTEST_SIDE, is_image
from raysel.inspection.neighbours import chosen_samples, neighbours, partners
from raysel.inspection.upright import is_known, symmetry

#: Fewer samples are too few to recognise an image by.
FEWEST_SAMPLES = 10
#: Correlations that differ by less are equal.
_SAME = 0.01


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
    def margin(self) -> float:
        """By how much the correlation exceeds that of the second best shape; NaN if there is none."""
        return self.correlation - self.runner_up

    @property
    def row_length(self) -> int:
        """Number of consecutive columns that form one row (order C) or one column (order F) of the image."""
        return self.shape[1] if self.order == "C" else self.shape[0]

    def describe(self) -> str:
        """Say in one sentence what was found, from which figures, and whether the order is known."""
        height, width = self.shape
        text = (
            f"the columns are the cells of {height} x {width} images in order {self.order}: neighbouring cells "
            f"correlate by {self.correlation:.2f} on average ({self.n_pairs} pairs, {self.n_samples} samples), any "
            f"two cells by {self.any_two:.2f}"
        )
        if not math.isnan(self.runner_up):
            text += f", those of the next best shape by {self.runner_up:.2f}"
        if self.order_known:
            return (
                f"{text}; upright, because the mean images of nearly all classes are more symmetric left to right "
                "than top to bottom."
            )
        return (
            f"{text}. C or F cannot be told from the values: look at the mean image, and if it lies on its side, set "
            f"shape [{width}, {height}] and order {'F' if self.order == 'C' else 'C'}."
        )


def find_arrangement(X: NDArray[Any], y: LabelArray | None = None, *, column_major: bool = False) -> Arrangement | None:
    r"""Find the shape and order of images from the correlations of neighbouring cells.

    Cells side by side are one column of X apart, and cells below each other are a row's length w apart. The
    correlation of columns j and j + k, averaged over j, therefore falls with k and rises to a peak at k = w. The
    factorisation h x w of the number of columns is taken whose neighbouring cells correlate most on average, in both
    directions, if they look like those of an image:

    - side by side and below each other they correlate by c with (c - a) / (1 - a) at least 0.2, where a is the mean
      correlation of any two cells;
    - the correlation has a peak at lag w and is nowhere higher between w / 2 and half the number of columns;
    - rows farther apart correlate less than those two apart;
    - it is lower from the end of a row to the start of the next one than within a row;
    - three colour channels, as the last or the first axis of the images, do not explain it.

    A table of features, a spectrum (smooth in one direction only) and images whose columns were permuted do not meet
    these conditions.

    An image and its transpose have the same neighbours. Which of them is upright is told only by the mean images: that
    of all samples must be at least 3 times as symmetric left to right as top to bottom, or the reverse, and those of 90
    % of at least 5 classes must agree with it; both sides must have 16 cells or more.
    """
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"X has shape {X.shape} and dtype {X.dtype}; give numbers of shape (n_samples, n_features).")
    if y is not None and np.shape(y) != (len(X),):
        raise DataError(f"y has shape {np.shape(y)}; give the class of each of the {len(X)} rows of X, or no y.")
    widths = _widths(X.shape[1])
    if not widths:
        return None
    samples, rows = chosen_samples(X)
    classes = None if y is None else np.asarray(y)[rows]
    return _find(samples, classes, widths, column_major) if len(samples) >= FEWEST_SAMPLES else None


def arrangement_remark(dataset: Dataset) -> str | None:
    """Say which shape and order fit images better than the ones they have."""
    if not isinstance(dataset.layout, Tensor) or len(dataset.layout.shape) != 2:
        return None
    height, width = dataset.layout.shape
    if min(height, width) < SHORTEST_SIDE:
        return None
    samples, rows = chosen_samples(np.asarray(dataset.X))
    if len(samples) < FEWEST_SAMPLES:
        return None
    return _remark(samples, None if dataset.is_multilabel else dataset.y[rows], height, width)


def _remark(samples: FloatArray, y: LabelArray | None, height: int, width: int) -> str | None:
    declared = neighbours(samples.copy())
    correlation, n_pairs = declared.score(width)
    widths = _widths(height * width)
    start = (
        f"images of shape [{height}, {width}]: neighbouring cells correlate by {correlation:.2f} on average "
        f"({n_pairs} pairs, {len(samples)} samples)"
    )
    found = _find(samples, y, widths, column_major=False)
    # With order F the columns were rearranged: put them back as the file has them.
    stored = samples.reshape(-1, height, width).transpose(0, 2, 1).reshape(len(samples), -1)
    before = _find(stored, y, widths, column_major=False)
    # An image read in the wrong order can look like one whose rows are shifted, so the better of the two counts.
    if before is not None and (found is None or before.correlation > found.correlation + _SAME):
        if before.row_length != height and before.correlation > correlation:
            return f"{start}, but, if order is F now, by {before.correlation:.2f} with {_choices(before)}."
    elif found is not None and found.row_length == width:
        return _on_their_side(found) if found.order == "F" else None
    elif found is not None and found.correlation > correlation:
        return f"{start}, but by {found.correlation:.2f} with {_choices(found)}."
    elsewhere = partners(samples)
    if declared.excess(correlation) < NO_MORE and declared.excess(elsewhere) > ABOVE_ANY_TWO:
        return (
            f"{start}, no more than any two cells ({declared.any_two:.2f}), while each has another one elsewhere with "
            f"which it correlates by {elsewhere:.2f}: the columns are not in the order of an image."
        )
    return None


def _on_their_side(found: Arrangement) -> str:
    height, width = found.shape
    return (
        f"images of shape [{width}, {height}] seem to lie on their side: their mean image is {found.symmetry:.0f} "
        f"times as symmetric top to bottom as left to right, and those of nearly all classes agree; shape "
        f"[{height}, {width}] with order F (or, if order is F now, C) turns them upright."
    )


def _choices(found: Arrangement) -> str:
    height, width = found.shape
    if found.order_known:
        return f"shape [{height}, {width}] and order {found.order}"
    return (
        f"shape [{height}, {width}] and order {found.order}, or with shape [{width}, {height}] and order F, which is "
        "the same turned over; look at the mean image to see which is upright"
    )


def _find(samples: FloatArray, y: LabelArray | None, widths: list[int], column_major: bool) -> Arrangement | None:
    """Find the arrangement among factorisations of the given widths."""
    n_features = samples.shape[1]
    found = neighbours(samples.copy())
    scores = {width: found.score(width) for width in widths}
    width = max(widths, key=lambda width: _or_lowest(scores[width][0]))
    if not is_image(found, width):
        return None

    height = n_features // width
    ratio = symmetry(samples, (height, width))
    known = is_known(ratio, samples, y, (height, width))
    row_by_row = ratio > 1 if known else not column_major
    others = [scores[other][0] for other in widths if other != width and not math.isnan(scores[other][0])]
    return Arrangement(
        shape=(height, width) if row_by_row else (width, height),
        order="C" if row_by_row else "F",
        order_known=known,
        symmetry=ratio if row_by_row else 1 / ratio,
        correlation=scores[width][0],
        n_pairs=scores[width][1],
        runner_up=max(others, default=math.nan),
        any_two=found.any_two,
        n_samples=found.n_samples,
    )


def _widths(n_features: int) -> list[int]:
    """Widths of the factorisations both sides of which are long enough."""
    small = [side for side in range(1, math.isqrt(n_features) + 1) if n_features % side == 0]
    sides = sorted({*small, *(n_features // side for side in small)})
    return [width for width in sides if min(width, n_features // width) >= SHORTEST_SIDE]


def _or_lowest(value: float) -> float:
    return -math.inf if math.isnan(value) else value
