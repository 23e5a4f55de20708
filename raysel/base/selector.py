"""Base classes of feature selectors, of selectors that are linear classifiers, and of those of matrices."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from raysel.base.estimator import TENSOR, Capabilities, Estimator
from raysel.core.arrays import BoolArray, FloatArray, LabelArray, validate_samples
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout


class Selector(SelectorMixin, Estimator):
    """Base class of methods whose ``transform`` selects the ``n_features_to_select`` best features.

    By default half of the features are selected. Features with score 0 are never selected, so that fewer may remain.
    """

    n_features_to_select: int | None

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        n_selected = self.n_features_to_select
        # Half of the features by default, as in scikit-learn's RFE.
        limit = max(1, self.n_features_in_ // 2) if n_selected is None else n_selected
        return (self.ranking_ <= limit) & (self.scores_ > 0)


class LinearSelector(ClassifierMixin, Selector):
    """Base class of selectors that are linear classifiers.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    capabilities: ClassVar[Capabilities] = replace(Selector.capabilities, predicts=True)

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes, ``X coef_' + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class; for two classes that of the second one.
        """
        check_is_fitted(self)
        features: FloatArray = validate_samples(self, X, dtype=np.float64, reset=False)
        values = features @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of largest score; for two classes the second one if its score is positive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted classes.
        """
        values = self.decision_function(X)
        positions = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[positions]

    def _keep_linear(self, coef: FloatArray, intercept: FloatArray, classes: LabelArray) -> None:
        """Set ``coef_``, ``intercept_`` and ``classes_`` from one row for each class, also where there are two."""
        if len(coef) == 2:  # scikit-learn's convention: one row, positive for the second class
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_, self.classes_ = coef, intercept, classes


class MatrixSelector(LinearSelector):
    """Base class of linear selectors of matrix-shaped samples, with the parameter ``shape``.

    ``shape`` is the height and width of the samples whose cells, in C order, are the columns of X; None stands for
    (n_features, 1), plain vectors. It is set from the data set's layout.
    """

    capabilities: ClassVar[Capabilities] = replace(LinearSelector.capabilities, layouts=frozenset({TENSOR}), max_axes=2)
    layout_parameters: ClassVar[frozenset[str]] = frozenset({"shape"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {"shape": [tuple, list, None]}

    # Set by the constructors of the subclasses.
    shape: tuple[int, int] | None

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator for samples of this layout.

        Parameters
        ----------
        layout : Tensor of order 1 or 2
            Layout of the samples, which sets ``shape``.
        **params
            All parameters but ``shape``.

        Returns
        -------
        MatrixSelector
            The unfitted estimator.

        Raises
        ------
        ConfigError
            If the samples are neither vectors nor matrices.
        """
        if len(layout.grid) not in (1, 2):
            raise ConfigError(
                f"{cls.__name__} takes matrices or vectors, not {layout}: set dataset.shape to [height, width]."
            )
        height, width = (*layout.grid, 1)[:2]
        return cls(shape=(height, width), **params)

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid and that ``shape`` has this number of cells.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid; the message names the parameter, its value and the valid values.
        """
        super().check(n_features)
        shape = self._sides(n_features)
        if len(shape) != 2 or any(not isinstance(side, Integral) or side < 1 for side in shape):
            raise ConfigError(f"shape={self.shape} is not a height and a width, e.g. (32, 32).")
        if shape[0] * shape[1] != n_features:
            raise ConfigError(
                f"shape={self.shape} has {shape[0]} x {shape[1]} = {shape[0] * shape[1]} cells, "
                f"but there are {n_features} features."
            )

    def _sides(self, n_features: int) -> tuple[int, ...]:
        return (n_features, 1) if self.shape is None else tuple(self.shape)
