"""Places of labels and ticks that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from raysel.arrays import FloatArray

#: Width of a digit of a tick label, as a share of the axis.
_DIGIT = 0.018


def some_ticks(numbers: Sequence[int], ax: Axes) -> list[int]:
    """Choose numbers whose tick labels do not overlap on the x axis of the axes; the first and the last are kept."""
    if len(numbers) < 2:
        return list(numbers)
    places = np.log(numbers) if ax.get_xscale() == "log" else np.array(numbers, dtype=float)
    places = (places - places[0]) / (places[-1] - places[0])
    room = [_DIGIT * (len(str(n)) + 1) for n in numbers]
    kept = [len(numbers) - 1]
    for i in range(len(numbers) - 2, -1, -1):
        after, before = kept[-1], 0
        if i == before or (
            places[after] - places[i] >= (room[after] + room[i]) / 2
            and places[i] - places[before] >= (room[before] + room[i]) / 2
        ):
            kept.append(i)
    return [numbers[i] for i in sorted(kept)]


def spread_out(wanted: FloatArray, least: float, height: float) -> FloatArray:
    """Move places as little as needed so that no two are nearer than ``least``, in the same order."""
    order = np.argsort(wanted, kind="stable")
    # Places less the room that those below need must not fall: this is isotonic regression by pooling neighbours.
    room = least * np.arange(len(wanted))
    pools: list[list[float]] = []
    for value in wanted[order] - room:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    found = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools])
    found = np.clip(found, 0.0, max(height - (room[-1] if len(room) else 0.0), 0.0)) + room
    result = np.empty_like(found)
    result[order] = found
    return result
