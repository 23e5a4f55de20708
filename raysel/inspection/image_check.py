"""Conditions that correlations of columns by distance meet if the columns are the cells of an image."""

from __future__ import annotations

import math

import numpy as np

from raysel.inspection.neighbours import Neighbours

#: Sides below this are too short to recognise an image by.
SHORTEST_SIDE = 5
# Thresholds on correlations c are on the scale (c - a) / (1 - a) with the mean correlation a of any two cells, so that
# what all cells share (brightness) does not count. experiments/arrangement measures how far real sets are from them.
#: How much neighbouring cells must correlate in each direction.
ABOVE_ANY_TWO = 0.2
#: Correlations below this are as low as those of cells far apart.
NO_MORE = 0.1
#: Colour channels correlate this much more in one pixel than in neighbouring ones: as the last axis, as the first axis.
_CHANNELS_LAST, _CHANNELS_FIRST = 0.1, 0.05
#: How much less the end of a row must correlate with the start of the next one than cells within a row.
_ROW_END = 0.05
#: How far the correlation must fall from lag w to the mean of w - 1 and w + 1, as a share of 1 minus it.
_PEAK = 0.05


def is_image(found: Neighbours, width: int) -> bool:
    """Tell whether the correlations by distance are those of an image whose rows have the given length."""
    below, lags = float(found.at_lag[width]), np.arange(math.ceil(width / 2), len(found.at_lag))
    beside = found.within_rows(width)[0]
    around = found.at_lag[[width - 1, width + 1]]  # cells below each other but for one column
    if np.isnan([below, beside, *around]).any() or found.any_two >= 1:
        return False
    rows_apart = found.excess(found.at_lag[2 * width :: width])
    highest = int(lags[np.nanargmax(found.at_lag[lags])])
    across = found.across_row_ends(width)
    return bool(
        found.excess(min(below, beside)) >= ABOVE_ANY_TWO
        and highest == width
        and below > around.max()
        and below - around.mean() >= _PEAK * (1 - below)
        and not (rows_apart[1:] > max(rows_apart[:1].max(initial=-1.0), NO_MORE)).any()
        and (math.isnan(across) or found.excess(beside) - found.excess(across) >= _ROW_END)
        and not _has_channels(found, width)
    )


def _has_channels(found: Neighbours, width: int) -> bool:
    """Tell whether three colour channels would explain the correlations: as the last axis or as the first one."""
    n_features = len(found.with_next)
    if width % 3 == 0 and width >= 3 * SHORTEST_SIDE:
        inside = np.arange(n_features) % width < width - 1
        values = np.where(inside & ~np.isnan(found.with_next), found.with_next, found.any_two)
        red_green, green_blue, next_pixel = (values[phase::3][inside[phase::3]].mean() for phase in range(3))
        if found.excess(min(red_green, green_blue)) - found.excess(next_pixel) >= _CHANNELS_LAST:
            return True
    channel, rest = divmod(n_features, 3)
    if rest or channel % width or channel < SHORTEST_SIDE * width:
        return False
    same_pixel, nearby = found.at_lag[channel], found.at_lag[[channel - width, channel + width]]
    return bool(found.excess(same_pixel) - found.excess(nearby.max()) >= _CHANNELS_FIRST)
