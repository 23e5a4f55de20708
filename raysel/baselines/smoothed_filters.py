"""F-tests of samples smoothed along their axes, for a signal that neighbours share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.ndimage

from raysel.base.classifiers import TensorShaped
from raysel.base.estimator import NOT_NEGATIVE, TENSOR, VOLUME, Capabilities
from raysel.baselines.filter import Filter, class_codes, class_moments
from raysel.baselines.quantity_filters import QuantityFilter, f_statistics
from raysel.baselines.univariate_filters import scatter_ratios
from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout

#: Number of cells that are smoothed at once.
_CELLS = 2**22


def smoothed(
    X: FloatArray, shape: Sequence[int], widths: Sequence[float], mask: BoolArray | None = None
) -> FloatArray:
    """Smooth each sample by ``scipy.ndimage.gaussian_filter``, mirrored at its borders.

    With a mask (of this shape) a cell becomes the weighted mean of those inside. `X` is (n_samples,
    n_features), less its first sample, as no F statistic depends on that; returns the same shape.
    """
    sigma = (0.0, *widths)
    inside = np.ones(shape, dtype=bool) if mask is None else mask
    within = scipy.ndimage.gaussian_filter(inside[None].astype(np.float64), sigma)[0][inside]
    made = np.empty(X.shape)
    step = max(1, _CELLS // inside.size)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        part = X[rows] - X[0]
        cells = np.zeros((len(part), *shape))
        cells[:, inside] = part
        made[rows] = scipy.ndimage.gaussian_filter(cells, sigma)[:, inside]
    made /= within
    return made


class _SmoothedFilter(TensorShaped, Filter):
    """Parameters and statistic of the smoothed F-tests, whatever the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "width": [NOT_NEGATIVE, tuple, list],
    }

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        width: float | tuple[float, ...] | list[float] = 1.0,
        n_features_to_select: int | None = None,
        mask: BoolArray | None = None,
    ) -> None:
        self.shape = shape
        self.width = width
        self.n_features_to_select = n_features_to_select
        self.mask = mask

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the width that smooths nothing."""
        return {"width": 0}

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which less smoothing comes first."""
        return (float(np.sum(self.width)),)

    def check(self, n_features: int) -> None:
        """Check the parameters, alone and against the number of features.

        Parameters
        ----------
        n_features : int
            Number of columns of X.

        Raises
        ------
        ConfigError
            If one is wrong; the message names it, its value and the values that are allowed.
        """
        super().check(n_features)
        axes, widths = self._axes(n_features), self._widths(n_features)
        most = max(axes)
        allowed = all(isinstance(one, Real) and 0 <= one <= most for one in widths)
        if len(widths) != len(axes) or not allowed:
            raise ConfigError(
                f"width={self.width}: give a number from 0 to {most}, the longest side, or one for"
                f" each side of {' x '.join(map(str, axes))}."
            )

    def _axes(self, n_features: int) -> tuple[int, ...]:
        """Sides of the samples as they are given."""
        if self.mask is not None:
            return np.asarray(self.mask).shape
        if self.shape is None:
            return (n_features,)
        return tuple(self.shape)

    def _widths(self, n_features: int) -> Sequence[float]:
        """Width of each side."""
        if isinstance(self.width, tuple | list):
            return self.width
        return [self.width] * len(self._axes(n_features))

    @abstractmethod
    def _statistic(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """F of each column."""

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Smooth the samples and compute the statistics."""
        axes, widths = self._axes(X.shape[1]), self._widths(X.shape[1])
        return self._statistic(smoothed(X, axes, widths, self.mask), y)

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        return prepared, prepared.mean()


class SmoothedFTest(_SmoothedFilter):
    """Ranking by the F statistic of each cell between classes, of smoothed samples.

        F_j = (l - c) / (c - 1) (S_b)_jj / (S_w)_jj   of the samples G X_i,

    with the sums S_b and S_w of the scatter of l samples between c classes and within them, as
    scikit-learn's ``f_classif``, and a Gaussian G. It finds what neighbouring cells tell together:
    noise of single cells averages out. Each sample is smoothed by itself, and only for the ranking:
    what is scored are the selected cells as they are. A cell beside telling ones has a high score
    even where it tells nothing by itself, which a p value of its score does not exclude.

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples whose cells, in C order, are the columns of X. None or one side: the
        columns lie in a row, as wavelengths or times do; for columns without an order set ``width``
        to 0.
    width : float or sequence of float, default=1.0
        Standard deviation of the Gaussian in cells, at least 0; a sequence has one for each side, 0
        for a side without an order, e.g. sensors. 0: the F-test itself, so that a search over 0, 1,
        2, ... tells whether smoothing pays.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    mask : array of bool, default=None
        The cells of a volume or another array that are the columns of X, in C order, in place of
        ``shape``. Cells outside have no weight.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        F of each smoothed feature; 0 for features that are constant in the training set. An
        infinite F is replaced by twice the largest finite one.
    objective_path_ : ndarray of shape (1,)
        Mean score.

    Raises
    ------
    ConfigError
        From ``fit``: a width below 0 or above its side, or not one a side; a shape that does not
        have the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(size=(40, 12, 12))
    >>> X[:, 3:8, 4:9] += y[:, None, None]
    >>> tests = [SmoothedFTest((12, 12), width).fit(X.reshape(40, -1), y) for width in (0, 1)]
    >>> best = [(test.ranking_ <= 25).reshape(12, 12) for test in tests]
    >>> [int(cells[3:8, 4:9].sum()) for cells in best]  # of 25 cells that tell
    [20, 24]
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities,
        layouts=frozenset({TENSOR, VOLUME}),
        prepare_parameters=frozenset({"width"}),
    )
    score_meaning = "F statistic between the classes, of smoothed samples"

    def _statistic(self, X: FloatArray, y: LabelArray) -> FloatArray:
        codes, counts = class_codes(y)
        within = max(len(y) - len(counts), 1)
        return scatter_ratios(*class_moments(X, codes, counts), counts) * (
            within / (len(counts) - 1)
        )


class SmoothedFTestQuantities(_SmoothedFilter, QuantityFilter):
    """Ranking by the F statistic of a quantity's regression on each cell of smoothed samples.

    `FTest` of the smoothed samples, by scikit-learn's ``f_regression``; of several quantities the
    score is the mean of their F. The samples are smoothed as in `SmoothedFTest`.

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples; see `SmoothedFTest`.
    width : float or sequence of float, default=1.0
        Standard deviation of the Gaussian in cells; 0: the F-test itself.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    mask : array of bool, default=None
        The cells that are the columns of X, in place of ``shape``.

    Attributes
    ----------
    scores_, objective_path_
        See `SmoothedFTest`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 30)), rng.normal(size=40)
    >>> X[:, 10:15] += 0.5 * y[:, None]
    >>> np.sort(SmoothedFTestQuantities(width=1).fit(X, y).scores_.argsort()[-5:])
    array([10, 11, 12, 13, 14])
    """

    capabilities: ClassVar[Capabilities] = replace(
        QuantityFilter.capabilities,
        layouts=frozenset({TENSOR, VOLUME}),
        prepare_parameters=frozenset({"width"}),
    )
    score_meaning = "F statistic of the regression on the feature alone, of smoothed samples"

    def _statistic(self, X: FloatArray, y: LabelArray) -> FloatArray:
        return f_statistics(X, y)
