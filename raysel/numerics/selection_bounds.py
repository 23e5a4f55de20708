"""Bounds on the expected number of falsely selected features of complementary-pairs stability selection.

Half of the samples, drawn at random, select at most q of p features by some procedure. Feature k is selected with an
unknown probability p_k, and by a share Pi_k of the 2B halves of B complementary pairs. For a threshold tau above 1/2
and theta = q / p, let V be the number of features with Pi_k >= tau although p_k <= theta. Both bounds are those of
Shah & Samworth (2013, JRSS-B 75(1), 55-80), for any procedure and any distribution of the samples::

    E V <= q^2 / ((2 tau - 1) p)        Theorem 1
    E V <= C(tau, B) q^2 / p            Theorem 2

Theorem 2 needs the distribution of the share of pairs whose two halves both select k to be unimodal for every such k.
The first is also the bound of Meinshausen & Buehlmann (2010, JRSS-B 72(4), 417-473) on the number of features without
an effect; that reading assumes that their selections are exchangeable and the procedure no worse than guessing.
"""

from __future__ import annotations

import math

from raysel.core.errors import ConfigError

#: What has to hold to read the bounds as ones on features without an effect.
ASSUMPTIONS = (
    "Reading the bound as one on features without an effect assumes that their selections are exchangeable, and that "
    "the method selects them no more often than a random choice would; a feature that only stands for one with an "
    "effect, because it depends on it, counts as true. The samples are taken to be independent."
)
#: Share of a step of the grid within which a threshold counts as on the grid, because 0.57 * 100 is above 57.
_ROUNDING = 1e-6


def threshold_on_grid(threshold: float, n_pairs: int) -> float:
    """Round a threshold up to the next value that a share of the 2B halves can have, which selects the same
    features.
    """
    if not 0.5 < threshold <= 1:
        raise ConfigError(
            f"threshold={threshold} must be above 0.5 and at most 1, because there is no bound for smaller ones."
        )
    return math.ceil(2 * n_pairs * threshold - _ROUNDING) / (2 * n_pairs)


def simple_bound(q: float, p: int, threshold: float) -> float:
    """Bound on the expected number of false selections by Theorem 1."""
    return q**2 / ((2 * threshold - 1) * p)


def unimodal_bound(q: float, p: int, threshold: float, n_pairs: int) -> float | None:
    r"""Bound on the expected number of false selections by Theorem 2, which assumes unimodal distributions.

    .. math:: C(\tau, B) = \frac{1}{2 (2 \tau - 1 - 1 / (2 B))} \text{ if } \tau \le 3/4, \quad
              \frac{4 (1 - \tau + 1 / (2 B))}{1 + 1 / B} \text{ if } \tau > 3/4
    """
    theta, step = q / p, 1 / (2 * n_pairs)
    lowest = min(0.5 + theta**2, 0.5 + step + 0.75 * theta**2)
    rounding = _ROUNDING * step
    if theta > 3**-0.5 or threshold <= lowest + rounding or threshold < 0.5 + 2 * step - rounding:
        return None
    if threshold <= 0.75 + rounding:
        factor = 1 / (2 * (2 * threshold - 1 - step))
    else:
        factor = 4 * (1 - threshold + step) / (1 + 2 * step)
    return factor * q**2 / p


def smallest_threshold(q: float, p: int, n_pairs: int, most: float = 1.0) -> float:
    """Return the smallest threshold whose bound is at most ``most``; 1 if there is none."""
    for count in range(n_pairs + 1, 2 * n_pairs):
        threshold = count / (2 * n_pairs)
        bound = unimodal_bound(q, p, threshold, n_pairs)
        if (simple_bound(q, p, threshold) if bound is None else bound) <= most:
            return threshold
    return 1.0
