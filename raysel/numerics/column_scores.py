"""Score of a feature that was prepared as several columns, comparable with those of features of one column.

Without information the squared score of a column is about c V, V of the chi-squared distribution with one degree of
freedom for each quantity, label or class but one. So the sum over m columns has m times as many, and m times the mean:
the length of the scores grows with the square root of m. The sum is replaced by that value of a single column which
noise exceeds as often, by the cube roots of Wilson and Hilferty (PNAS 17, 1931), which are nearly normal:

    V_1^(1/3) = 1 - 2/(9 a) + sqrt(n) (r^(1/3) - 1 + 2/(9 a n)),    r = sum V_m / (a m)

with a the degrees of freedom of one column. c is estimated from the median of the features' columns, whose variance
is added to that of the sum as that of the denominator of an F value: 1/n = 1/m + 2.7/(a times the number of features).
Where few features are known, n is 1, and the score is the root mean square of those of the columns.

Where a penalty sets scores to 0, they are c (sqrt(V) - t), t the root of that V which the share of scores that are not 0
exceeds.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtr, chdtri

from raysel.core.arrays import FloatArray, IntArray

#: Share of noise that is above the scores from which c is estimated: the others may be of features that tell.
_TELLING = 0.01
#: Largest number of times that scores are left out.
_ROUNDS = 10
#: Variance of the median's c in units of 2 c^2 / (a n), for n scores of noise with a = 1.
_OF_MEDIAN = 2.7


def joint_scores(
    scores: FloatArray, origin: IntArray, n_features: int, *, degrees: int, scale: str
) -> FloatArray:
    """Return a score for each feature, that of its column or one that as many columns of noise exceed as rarely.

    `scores` and `origin`, the feature of each column, are (n_columns,); returns (n_features,), 0 of a feature without
    columns. ``degrees`` is the number a, ``scale`` what the scores are: "effect", "squared", or "weight"
    and "place", of which the mean is taken.
    """
    counts = np.bincount(origin, minlength=n_features)
    single = counts[origin] == 1
    joint = np.zeros(n_features)
    if scale in ("weight", "place"):
        joint = np.bincount(origin, scores, n_features) / np.maximum(counts, 1)
    elif not single.all():
        amplitudes = np.maximum(scores, 0.0)
        finite = amplitudes[np.isfinite(amplitudes)]
        amplitudes = np.minimum(amplitudes, 2.0 * finite.max(initial=0.5))
        if scale == "squared":
            amplitudes = np.sqrt(amplitudes)
        joint = _joint(amplitudes, origin, counts, degrees)
        if scale == "squared":
            joint **= 2
        joint[origin[np.isposinf(scores)]] = np.inf
    joint[origin[single]] = scores[single]  # not rounded
    return joint


def _joint(scores: FloatArray, origin: IntArray, counts: IntArray, degrees: int) -> FloatArray:
    """Joint scores of columns whose scores are in units of an effect, as coefficients."""
    if not scores.any():
        return np.zeros(len(counts))
    weights = 1.0 / counts[origin]
    unit, limit, n_known = _noise(scores, weights, degrees)
    below = chdtr(degrees, limit)
    hidden = degrees * chdtr(degrees + 2, limit) / below if below else 0.0  # mean V below the limit
    values = np.where(scores > 0, (scores / unit + np.sqrt(limit)) ** 2, hidden)
    sums, sizes = np.bincount(origin, values, len(counts)), np.maximum(counts, 1)
    ratio = sums / (degrees * sizes)
    n = np.maximum(1.0 / (1.0 / sizes + _OF_MEDIAN / (degrees * n_known)), 1.0)
    # Of less than noise has, the unit is taken as that of the feature itself: no score is far below its columns'.
    root = np.cbrt(np.maximum(ratio, 1.0)) - 1.0 + 2.0 / (9.0 * degrees * n)
    one = 1.0 - 2.0 / (9.0 * degrees) + np.sqrt(n) * root
    value = np.minimum(degrees * np.minimum(ratio, 1.0) * one**3, sums)
    return unit * np.maximum(np.sqrt(value) - np.sqrt(limit), 0.0)


def _noise(scores: FloatArray, weights: FloatArray, degrees: int) -> tuple[float, float, float]:
    """Unit c, the V below which a score is 0, and the number of features, from all scores but the largest."""
    positive = scores > 0
    known = positive
    for _ in range(_ROUNDS):
        share = float(weights[known].sum() / weights[known | ~positive].sum())
        limit = float(chdtri(degrees, share)) if share < 1.0 else 0.0
        between = np.sqrt(chdtri(degrees, share / 2.0)) - np.sqrt(limit)
        unit = float(_median(scores[known], weights[known]) / between)
        usual = positive & ((scores / unit + np.sqrt(limit)) ** 2 <= chdtri(degrees, _TELLING))
        if not usual.any() or np.array_equal(usual, known):
            break
        known = usual
    return unit, limit, float(weights[known].sum())


def _median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2.0)])
