"""Shape and order of images that are stored as rows of a matrix, found from the correlations of neighbouring cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raysel.inspection.neighbours import Neighbours, chosen_samples, neighbours
from raysel.inspection.upright import is_known, symmetry

#: Sides below this, and samples fewer than this, are too few to recognise an image by.
SHORTEST_SIDE = 5
FEWEST_SAMPLES = 10
#: How much more neighbouring cells must correlate, in each direction, than any two cells.
_ABOVE_ANY_TWO = 0.2
#: How much less the end of a row must correlate with the start of the next one than cells within a row.
_ROW_END = 0.05
#: How far the correlation must fall from lag w to w - 1 and w + 1, as a share of what it lacks to 1 at lag w.
_PEAK = 0.2


@dataclass(frozen=True)
class Arrangement:
    """Shape and order of images found in the columns of a matrix.

    Parameters
    ----------
    shape : tuple of int
        Height and width.
    order : {"C", "F"}
        Order in which the columns run through the cells: C row by row, F column by column.
    order_known : bool
        Whether the values tell the order. If not, it is what the caller took for usual, and the images may lie on
        their side: a matrix and its transpose have the same neighbours.
    symmetry : float
        How many times the upright mean image is more symmetric left to right than top to bottom, see
        `raysel.inspection.upright.symmetry`. Below one: it is more symmetric top to bottom. The order is known from
        4 on, and never given if it speaks against the order by as much.
    correlation : float
        Mean correlation, over the samples, of neighbouring cells.
    n_pairs : int
        Number of pairs of neighbouring cells of which neither is constant.
    runner_up : float
        Mean correlation of neighbouring cells in the second best shape, the transposed one apart; NaN if there is none.
    any_two : float
        Mean correlation of any two cells.
    n_samples : int
        Number of samples that were looked at.
    """

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
            return f"{text}; upright, because the mean image is symmetric left to right rather than top to bottom."
        return (
            f"{text}. C or F cannot be told from the values: look at the mean image, and if it lies on its side, set "
            f"shape [{width}, {height}] and order {'F' if self.order == 'C' else 'C'}."
        )


def find_arrangement(X: NDArray[Any], *, column_major: bool = False) -> Arrangement | None:
    r"""Find the shape and order of images from the correlations of neighbouring cells.

    Cells side by side are one column of X apart, and cells below each other are a row's length w apart. The
    correlation of columns j and j + k, averaged over j, therefore falls with k and rises to a peak at k = w. The
    factorisation h x w of the number of columns is taken whose neighbouring cells correlate most on average, in both
    directions, if they look like those of an image:

    - side by side and below each other they correlate by 0.2 more than any two cells;
    - the correlation has a peak at lag w, is nowhere higher between w / 2 and half the number of columns, and within
      a row is lower two and three cells apart than one;
    - it is lower from the end of a row to the start of the next one than within a row.

    A table of features, a spectrum (smooth in one direction), images whose columns were permuted, and images with
    colour channels do not meet these conditions.

    An image and its transpose have the same neighbours. Which of them is upright is told only by the mean image, if
    it is at least 4 times as symmetric left to right as top to bottom, or the reverse. This holds for frontal faces,
    not for digits or faces in profile; for objects that are symmetric top to bottom only it is wrong.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples; rows with NaN or infinity do not count. At most 500 rows are looked at, evenly over the rows.
    column_major : bool, default=False
        Whether the source usually stores images column by column, as MATLAB does; decides the order where the values
        do not.

    Returns
    -------
    Arrangement or None
        What was found; None if the columns do not look like the cells of images of at least 5 x 5, in the order of
        their rows or columns, or X has fewer than 10 samples.

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_wine
    >>> found = find_arrangement(load_digits().data)
    >>> found.shape, found.order, found.order_known
    ((8, 8), 'C', False)
    >>> find_arrangement(load_wine().data) is None
    True
    """
    X = np.asarray(X)
    widths = _widths(X.shape[1])
    if not widths:
        return None
    samples = chosen_samples(X)
    if len(samples) < FEWEST_SAMPLES:
        return None
    found = neighbours(samples.copy())
    scores = {width: found.score(width) for width in widths}
    width = max(widths, key=lambda width: _or_lowest(scores[width][0]))
    if not _is_image(found, width):
        return None

    height = X.shape[1] // width
    ratio = symmetry(samples, (height, width))
    known = is_known(ratio)
    row_by_row = ratio > 1 if known else not column_major
    # The transposed shape scores by chance a little more or less on the same columns; it is no rival but a question
    # of its own, so that it counts as a wrong shape like any other.
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


def _is_image(found: Neighbours, width: int) -> bool:
    """Tell whether the correlations by distance are those of an image whose rows have the given length."""
    below = float(found.at_lag[width])
    beside, *farther = (found.within_rows(width, lag)[0] for lag in (1, 2, 3))
    lags = np.arange(math.ceil(width / 2), len(found.at_lag))
    highest = int(lags[np.nanargmax(found.at_lag[lags])]) if not np.isnan(found.at_lag[lags]).all() else 0
    around = max(found.at_lag[width - 1], found.at_lag[width + 1])
    across = found.across_row_ends(width)
    return bool(
        min(below, beside) >= found.any_two + _ABOVE_ANY_TWO
        and highest == width
        and below - around >= _PEAK * (1 - below)
        and all(math.isnan(value) or value < beside for value in farther)
        and (math.isnan(across) or beside - across >= _ROW_END)
    )
