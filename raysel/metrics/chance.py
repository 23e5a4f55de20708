"""Stability index of random selections, with which that of a method is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raysel.arrays import FloatArray
from raysel.errors import ConfigError

#: Number of random draws of the range, and their seed: the same sizes give the same range.
N_DRAWS, SEED = 1000, 0


@dataclass(frozen=True)
class ChanceStability:
    """Nogueira's stability of random selections.

    Parameters
    ----------
    mean : float
        Exact mean; NaN where the index is not defined.
    lower, upper : float
        Range that holds 95 % of random draws, 2.5 % on each side; NaN where the index is not defined.
    """

    mean: float
    lower: float
    upper: float


def stability_at_chance(sizes: Sequence[int], n_features: int, n_choosable: int | None = None) -> ChanceStability:
    r"""Mean and 95 % range of Nogueira's stability of independent random selections of given sizes.

    Each of the M sets holds k_i features drawn at random from the c that can be chosen, of all d. With k the mean and
    s^2 the sample variance of the sizes, the mean of the index is

        1 - ( k (1 - k/c) + s^2/(M c) ) / ( k (1 - k/d) ).

    (A column of c has variance q_i (1 - q_i), q_i = k_i/c, in set i, and their sample variance the mean
    mean_i q_i (1 - q_i) + var_i q_i; the columns that cannot be chosen have none.) For c = d and one size it is 0, as
    Nogueira et al. show; where features cannot be chosen, e.g. because they are constant, it is larger, because all
    sets agree on those. The range is simulated: 1000 draws with a fixed seed.

    Parameters
    ----------
    sizes : sequence of int
        Number of features of each set.
    n_features : int
        Number of all features, d.
    n_choosable : int, optional
        Number of features that can be chosen, c; all by default.

    Returns
    -------
    ChanceStability
        Mean and range; NaN for a single set, and where the sets hold nothing or all features.

    Raises
    ------
    ConfigError
        If a size is negative or above ``n_choosable``, or that is above ``n_features``.

    Examples
    --------
    >>> found = stability_at_chance([10] * 5, 100)
    >>> round(abs(found.mean), 9), found.lower < 0 < found.upper
    (0.0, True)
    >>> round(stability_at_chance([10] * 5, 100, n_choosable=50).mean, 3)
    0.111
    """
    c, k = n_features if n_choosable is None else n_choosable, np.asarray(sizes, dtype=np.int64)
    if not 0 <= c <= n_features or (k < 0).any() or (k > c).any():
        raise ConfigError(
            f"sizes={list(map(int, k))} must lie between 0 and n_choosable={c}, and that between 0 and {n_features}."
        )
    mean_size = float(k.mean()) if len(k) else 0.0
    if len(k) < 2 or mean_size in (0.0, n_features):
        return ChanceStability(np.nan, np.nan, np.nan)
    variance = mean_size * (1 - mean_size / n_features)  # d v in the notation of `nogueira_stability`
    expected = 1 - (mean_size * (1 - mean_size / c) + k.var(ddof=1) / (len(k) * c)) / variance
    squares = _sums_of_squares(k.tolist(), c)
    m = len(k)
    values = 1 - m / (m - 1) * (mean_size - squares / m**2) / variance
    lower, upper = np.quantile(values, [0.025, 0.975])
    return ChanceStability(float(expected), float(lower), float(upper))


def _sums_of_squares(sizes: Sequence[int], c: int) -> FloatArray:
    """Draw random sets; return the sum over the features of the squared number of sets that hold them, of each draw.

    The index depends on that sum only. Features held by equally many sets are exchangeable, so it is enough to draw
    how many of each such group the next set takes.
    """
    generator = np.random.default_rng(SEED)
    held = np.zeros((len(sizes) + 1, N_DRAWS), dtype=np.int64)  # number of features by the number of sets that hold it
    held[0] = c
    for i, size in enumerate(sizes):
        left, rest = np.full(N_DRAWS, size), np.full(N_DRAWS, c)
        taken = np.zeros_like(held[: i + 1])
        for j in range(i + 1):
            if not held[j].any():
                continue
            rest = rest - held[j]
            taken[j] = generator.hypergeometric(held[j], rest, left)
            left = left - taken[j]
        held[: i + 1] -= taken
        held[1 : i + 2] += taken
    return np.square(np.arange(len(sizes) + 1, dtype=np.float64)) @ held
