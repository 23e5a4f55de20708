"""Base class of filters, and what they share: bins, class moments, orders of features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raysel.base.classifiers import Selector
from raysel.base.estimator import Capabilities, OneShotEstimator
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.numerics.classification import distinct_classes

#: Bin of each value; as many bins as the type holds.
BinArray: TypeAlias = NDArray[np.uint8]

#: Largest number of bins.
MOST_BINS = 256

#: Number of values whose codes are counted at once, so that the codes stay in a core's cache.
_CACHED = 2**16


@dataclass(frozen=True)
class BinRange:
    """Range of each feature over a training set, which is divided into bins of equal width."""

    #: Minimum of each feature; shape (n_features,).
    low: FloatArray
    #: Maximum less minimum of each feature; 1 for constant features; shape (n_features,).
    width: FloatArray

    def assign_bins(self, X: FloatArray, bins: int) -> BinArray:
        """Bin of each value, ``min(floor(bins (x - low) / width), bins - 1)``.

        `X` is (n_samples, n_features); returns (n_samples, n_features).
        """
        scaled = X - self.low
        scaled *= bins
        scaled /= self.width
        return np.minimum(scaled, bins - 1, out=scaled).astype(np.uint8)


def bin_range(X: FloatArray) -> BinRange:
    """Find the range of each feature. `X` is (n_samples, n_features)."""
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    return BinRange(low, np.where(width > 0, width, 1.0))


def count_terms(n: int) -> FloatArray:
    """Table of ``k log2 k`` for k = 0 .. n, of which entropies of counts are sums.

    Returns (n + 1,).
    """
    k = np.arange(n + 1.0)
    k[1:] *= np.log2(k[1:])
    return k


def information(binned: BinArray, bins: int, codes: IntArray, counts: IntArray) -> FloatArray:
    """Mutual information of each binned feature f and the classes y, ``H(f) + H(y) - H(f, y)``.

    With n_b, n_r and n_br samples in bin b, class r and both, and t(k) = k log2 k, it is
    ``log2 l + (sum_br t(n_br) - sum_b t(n_b) - sum_r t(n_r)) / l``.

    `binned` is (n_samples, n_features), `codes` (n_samples,), `counts` (n_classes,); returns
    (n_features,).
    """
    n, d = binned.shape
    terms, cells = count_terms(n), bins * len(counts)
    gained = np.empty(d)
    step = max(1, _CACHED // n)
    for start in range(0, d, step):
        block = binned[:, start : start + step]
        width = block.shape[1]
        places = block + codes[:, None] * bins
        places += cells * np.arange(width)
        joint = np.bincount(places.ravel(), minlength=width * cells).reshape(
            width, len(counts), bins
        )
        gained[start : start + width] = terms[joint].sum(axis=(1, 2)) - terms[
            joint.sum(axis=1)
        ].sum(axis=1)
    return np.maximum(np.log2(n) + (gained - terms[counts].sum()) / n, 0.0)


#: Largest exponent of a power of two whose inverse is a normal number too.
_MOST = 1000


def power_units(X: FloatArray) -> FloatArray:
    """Power of two for each feature that makes its largest absolute value about 1.

    `X` is (n_samples, n_features); returns (n_features,).
    """
    exponents = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))[1]
    return np.ldexp(1.0, -np.clip(exponents, -_MOST, _MOST))


def class_moments(
    X: FloatArray, codes: IntArray, counts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean of each class and sum of squared deviations from it, in units of no matter.

    Each feature is divided by a power of two, so that squares neither overflow nor vanish, and each
    class is reduced by one of its samples, so that deviations far smaller than the values keep
    their digits and the scatter of equal values is exactly 0. The means are those of the feature
    less its value in the first sample.

    `X` is (n_samples, n_features), `codes` (n_samples,), `counts` (n_classes,); returns `means`
    (n_classes, n_features), `scatters` (n_classes, n_features).
    """
    n, d = X.shape
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(counts) - counts
    sizes = counts[:, None].astype(np.float64)
    means, scatters = np.empty((len(counts), d)), np.empty((len(counts), d))
    step = max(1, _CACHED // n)
    for start in range(0, d, step):
        part = slice(start, start + step)
        block = X[:, part]
        unit = power_units(block)
        origin = block[0] * unit
        block = block[order] * unit
        first = block[starts]
        block -= np.repeat(first, counts, axis=0)
        shifts = np.add.reduceat(block, starts, axis=0) / sizes
        block -= np.repeat(shifts, counts, axis=0)
        means[:, part] = first - origin + shifts
        scatters[:, part] = np.add.reduceat(np.square(block, out=block), starts, axis=0)
    return means, scatters


#: Values that differ by less than this share of their size are equal: rounding must not decide
#: between copies.
_TIED = 1e-10


def first_largest(values: FloatArray, sizes: FloatArray | float = 1.0) -> int:
    """Index of the largest value; of values that are equal up to rounding the first.

    `values` and `sizes` are (n_features,).
    """
    best = int(values.argmax())
    size = max(
        float(sizes[best]) if isinstance(sizes, np.ndarray) else sizes, abs(float(values[best]))
    )
    return int(np.argmax(values >= values[best] - _TIED * size))


def order_scores(order: IntArray, others: FloatArray) -> FloatArray:
    """Scores that decrease along an order of features and are lower for all other features.

    `order` is (n_ordered,), `others` (n_features,); returns (n_features,).
    """
    scores = others.copy()
    scores[order] = 0.0
    largest = scores.max()
    if largest > 0:
        scores /= 2.0 * largest
    scores[order] = np.arange(len(order), 0, -1)
    return scores


class Filter(OneShotEstimator, Selector):
    """Base class of methods that rank features in one step and predict nothing.

    A filter implements ``prepare`` and ``_rate``.
    """

    capabilities: ClassVar[Capabilities] = replace(Selector.capabilities, score_scale="squared")

    @abstractmethod
    def _rate(self, X: FloatArray, prepared: Any) -> tuple[FloatArray, float]:
        """Return the scores of shape (n_features,), not negative, and the objective."""
        # The scores of constant features are not used: they are set to 0.

    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        scores, objective = self._rate(X, prepared)
        self.scores_ = np.where(constant_columns(X), 0.0, scores)
        yield float(objective)


def constant_columns(X: NDArray[Any]) -> BoolArray:
    """Mask (n_features,) of the columns whose values are all equal."""
    candidates = X[0] == X[-1]
    candidates[candidates] = (X[0, candidates] == X[:, candidates]).all(axis=0)
    return candidates


def class_codes(y: LabelArray) -> tuple[IntArray, IntArray]:
    """Number the classes in the order of their labels.

    `y` is (n_samples,); returns `codes` (n_samples,), `counts` (n_classes,).
    """
    _, codes = distinct_classes(y)
    return codes, np.bincount(codes)
