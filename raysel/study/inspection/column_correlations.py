"""Correlations of columns a fixed distance apart: the trace that rows of an image leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics.correlations import unit_columns

#: Number of samples used at most; fewer for wide data, so that no more than ``_VALUES`` values are
#: looked at.
_SAMPLES = 500
_VALUES = 20_000_000
#: Sides below this are too short to recognise an image by.
SHORTEST_SIDE = 5
# Thresholds on correlations c are on the scale (c - a) / (1 - a) with the mean correlation a of any
# two cells, so that what all cells share (brightness) does not count. How far real sets are from
# them: experiments/claims/arrangement.
#: How much neighbouring cells must correlate in each direction.
ABOVE_ANY_TWO = 0.2
#: Correlations below this are as low as those of cells far apart.
NO_MORE = 0.1
#: Colour channels correlate this much more in one pixel than in neighbouring ones: as the last
#: axis, as the first axis.
_CHANNELS_LAST, _CHANNELS_FIRST = 0.1, 0.05
#: How much less the end of a row must correlate with the start of the next one than cells within a
#: row.
_ROW_END = 0.05
#: How far the correlation must fall from lag w to the mean of w - 1 and w + 1, as a share of 1
#: minus it.
_PEAK = 0.05
#: Largest number of columns whose partner is sought.
_SOUGHT = 200


def chosen_samples(X: NDArray[Any]) -> tuple[FloatArray, IntArray]:
    """Choose samples evenly over the rows, without those that hold NaN or infinity."""
    wanted = min(_SAMPLES, max(20, _VALUES // max(1, X.shape[1])))
    rows = np.unique(np.linspace(0, len(X) - 1, min(wanted, len(X))).astype(np.int64))
    chosen: FloatArray = X[rows].astype(np.float64, copy=False)
    finite = np.isfinite(chosen).all(axis=1)
    if finite.all():
        return chosen, rows
    return chosen[finite], rows[finite]


@dataclass(frozen=True)
class Neighbours:
    """Mean correlations of columns by their distance.

    Pairs with a constant column do not count.
    """

    #: Mean correlation of the columns j and j + k, for each lag k; NaN where there is no pair;
    #: shape (n_features // 2 + 2,).
    at_lag: FloatArray
    #: Number of those pairs; shape (n_features // 2 + 2,).
    pairs_at_lag: IntArray
    #: Correlation of each column j with j + 1; NaN if one of them is constant, and for the last
    #: column; shape (n_features,).
    with_next: FloatArray
    any_two: float
    n_samples: int

    def within_rows(self, width: int) -> tuple[float, int]:
        """Mean correlation, and number, of the pairs of cells side by side in rows of a length."""
        return _mean(self.with_next[np.arange(len(self.with_next)) % width < width - 1])

    def across_row_ends(self, width: int) -> float:
        """Mean correlation of the last cell of a row and the first of the next; NaN without."""
        return _mean(self.with_next[width - 1 :: width])[0]

    def excess(self, correlation: Any) -> Any:
        """Rescale correlations so that 0 is the mean of any two columns, and 1 remains 1."""
        return (correlation - self.any_two) / (1 - self.any_two)

    def score(self, width: int) -> tuple[float, int]:
        """Mean correlation, and number, of all neighbouring cells, if rows are of a width."""
        horizontal, n_horizontal = self.within_rows(width)
        vertical, n_vertical = float(self.at_lag[width]), int(self.pairs_at_lag[width])
        n_pairs = n_horizontal + n_vertical
        if not n_pairs:
            return math.nan, 0
        total = 0.0
        if n_horizontal:
            total += horizontal * n_horizontal
        if n_vertical:
            total += vertical * n_vertical
        return total / n_pairs, n_pairs


def _mean(values: FloatArray) -> tuple[float, int]:
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, 0
    return float(known.mean()), len(known)


def neighbours(samples: FloatArray) -> Neighbours:
    r"""Compute the mean correlation of columns for every distance up to half the number of columns.

    With the standardised columns :math:`z_j` the mean correlation at lag k is

    .. math:: a(k) = \frac{1}{|P_k|} \sum_{j \in P_k} z_j^\top z_{j + k}

    where :math:`P_k` holds the j for which neither column is constant. The sums of all lags are one
    autocorrelation of each sample, added up, and follow from its power spectrum (Wiener-Khinchin)
    in O(n d log d).
    """
    n, d = samples.shape
    Z, varies = unit_columns(samples)
    length, kept = fft.next_fast_len(2 * d, real=True), d // 2 + 2
    power = np.zeros(length // 2 + 1)
    for row in Z:  # one at a time: the spectra of all samples would be four times as large as Z
        power += np.abs(fft.rfft(row, length)) ** 2
    sums = fft.irfft(power, length)[:kept]
    known = np.abs(fft.rfft(varies.astype(np.float64), length)) ** 2
    pairs = np.rint(fft.irfft(known, length)[:kept]).astype(np.int64)
    at_lag = np.where(pairs > 0, sums / np.maximum(pairs, 1), np.nan)

    with_next = np.full(d, np.nan)
    products = np.einsum("ij,ij->j", Z[:, :-1], Z[:, 1:])
    with_next[:-1] = np.where(varies[:-1] & varies[1:], products, np.nan)
    m = int(varies.sum())
    any_two = math.nan
    if m > 1:
        any_two = float((Z.sum(axis=1) ** 2).sum() - m) / (m * (m - 1))
    return Neighbours(at_lag, pairs, with_next=with_next, any_two=any_two, n_samples=n)


def partners(samples: FloatArray) -> float:
    """Mean correlation of a column with the one that resembles it most, wherever that stands.

    The partner is chosen on one half of the samples and the correlation is taken on the other, so
    that columns without any relation have a mean of about zero however few samples there are.
    """
    chosen, varies = unit_columns(samples[::2].copy())
    judged, also = unit_columns(samples[1::2].copy())
    columns = np.flatnonzero(varies & also)
    if len(columns) < 2:
        return math.nan
    sought = np.unique(
        np.linspace(0, len(columns) - 1, min(_SOUGHT, len(columns))).astype(np.int64)
    )
    correlations = chosen[:, columns[sought]].T @ chosen[:, columns]
    correlations[np.arange(len(sought)), sought] = -np.inf
    best = columns[correlations.argmax(axis=1)]
    return float(np.einsum("ij,ij->j", judged[:, columns[sought]], judged[:, best]).mean())


def is_image(correlations: Neighbours, width: int) -> bool:
    """Tell whether correlations by distance are those of an image whose rows have a length."""
    below = float(correlations.at_lag[width])
    lags = np.arange(math.ceil(width / 2), len(correlations.at_lag))
    beside = correlations.within_rows(width)[0]
    # Of cells below each other but for one column.
    around = correlations.at_lag[[width - 1, width + 1]]
    if np.isnan([below, beside, *around]).any() or correlations.any_two >= 1:
        return False
    rows_apart = correlations.excess(correlations.at_lag[2 * width :: width])
    highest = int(lags[np.nanargmax(correlations.at_lag[lags])])
    across = correlations.across_row_ends(width)
    return bool(
        correlations.excess(min(below, beside)) >= ABOVE_ANY_TWO
        and highest == width
        and below > around.max()
        and below - around.mean() >= _PEAK * (1 - below)
        and not (rows_apart[1:] > max(rows_apart[:1].max(initial=-1.0), NO_MORE)).any()
        and (
            math.isnan(across)
            or correlations.excess(beside) - correlations.excess(across) >= _ROW_END
        )
        and not _has_channels(correlations, width)
    )


def _has_channels(correlations: Neighbours, width: int) -> bool:
    """Tell whether three colour channels, the last axis or the first, explain the correlations."""
    n_features = len(correlations.with_next)
    if width % 3 == 0 and width >= 3 * SHORTEST_SIDE:
        inside = np.arange(n_features) % width < width - 1
        values = np.where(
            inside & ~np.isnan(correlations.with_next), correlations.with_next, correlations.any_two
        )
        red_green, green_blue, next_pixel = (
            values[phase::3][inside[phase::3]].mean() for phase in range(3)
        )
        if (
            correlations.excess(min(red_green, green_blue)) - correlations.excess(next_pixel)
            >= _CHANNELS_LAST
        ):
            return True
    channel, rest = divmod(n_features, 3)
    if rest or channel % width or channel < SHORTEST_SIDE * width:
        return False
    same_pixel = correlations.excess(correlations.at_lag[channel])
    nearby = correlations.at_lag[[channel - width, channel + width]].max()
    return bool(same_pixel - correlations.excess(nearby) >= _CHANNELS_FIRST)
