"""Base class of feature selectors that hold a score for each feature, and the names of a table's columns."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_array, check_is_fitted

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.task_blocks import TaskBlocks
from raysel.metrics.ranks import ranks
from raysel.validation import Interval


def has_names(X: Any) -> bool:
    """Return whether samples are a table with named columns, not an array."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a table."""
    return list(X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ()))


class ScoredSelector(SelectorMixin, BaseEstimator):
    """Base class of selectors that hold a score for each feature and select the best ones.

    Columns of an array are taken by their position; those of a table must be ``feature_names_in_`` if that is known.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Score of each feature, larger is better; features with score 0 are never selected.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the features, if they are known.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None]
    }

    n_features_to_select: int | None

    fitted_shapes: ClassVar[dict[str, str]] = {"scores_": "n_features"}

    scores_: FloatArray
    n_features_in_: int
    feature_names_in_: LabelArray

    @property
    def ranking_(self) -> IntArray:
        """Rank of each feature, 1 for the largest score; of equal scores the lower index comes first."""
        return ranks(self.scores_)

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask: BoolArray = self.scores_ > 0
        return mask if self.n_features_to_select is None else mask & (self.ranking_ <= self.n_features_to_select)

    def transform(self, X: ArrayLike | TaskBlocks) -> Any:
        """Select the columns of the best features, in the order of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_selected)
            Columns of the selected features; for TaskBlocks NaN outside the columns of a sample's own task.

        Raises
        ------
        ValueError
            If X has another number of columns, or is a table with other columns than ``feature_names_in_`` or in
            another order.
        """
        check_is_fitted(self)
        support = self.get_support()
        if isinstance(X, TaskBlocks):
            self._check_width(X.shape[1])
            selected = np.full((len(X), int(support.sum())), np.nan)
            columns_out = np.cumsum(support) - 1
            for rows, columns, block in X.parts():
                own = support[columns]
                selected[np.ix_(rows, columns_out[columns][own])] = block[:, own]
            return selected
        if has_names(X):
            return super().transform(X)
        # Not by scikit-learn's validate_data, which warns of an array where names are known.
        finite = not get_tags(self).input_tags.allow_nan
        values = check_array(X, dtype=None, accept_sparse="csr", ensure_all_finite=finite)
        self._check_width(values.shape[1])
        return values[:, support]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> LabelArray:
        """Return the names of the selected features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features, by default ``feature_names_in_``; must be equal to those if they are known.

        Returns
        -------
        ndarray of str, shape (n_selected,)
            Names in the order of the data; ``x0``, ``x1``, ... by the columns' positions if no names are known.
        """
        names: LabelArray = super().get_feature_names_out(input_features)
        return names.astype(object)

    def _check_width(self, n_columns: int) -> None:
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
