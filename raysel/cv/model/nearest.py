"""Nearest-neighbour classifier whose predictions do not depend on the order of the training samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray, LabelArray
from raysel.cv.model.knn import knn_path, knn_scores
from raysel.errors import DataError
from raysel.validation import Interval, fit_context


class NearestNeighborsClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by the nearest training samples, as ``evaluation.classifier: knn`` scores features.

    Unlike scikit-learn's KNeighborsClassifier it breaks ties independently of the order of the training samples: all
    samples at the distance of the last neighbour share the votes that the nearer ones leave, where distances that
    differ by less than their rounding error count as equal; see `raysel.cv.model.knn.knn_path`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_neighbors": [Interval(Integral, 1, None, closed="left")]}

    fitted_shapes: ClassVar[dict[str, str]] = {
        "samples_": "n_samples n_features",
        "labels_": "n_samples | n_samples n_classes",
        "classes_": "n_classes",
    }

    samples_: FloatArray
    labels_: LabelArray
    classes_: LabelArray
    n_features_in_: int

    def __init__(self, n_neighbors: int = 1) -> None:
        self.n_neighbors = n_neighbors

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep the training samples. `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels)."""
        shape = np.asarray(y).shape
        several = len(shape) == 2 and shape[1] > 1
        samples, labels = validate_data(self, X, y, dtype=np.float64, order="C", multi_output=several)
        check_classification_targets(labels)
        if several and not np.isin(labels, (0, 1)).all():
            raise DataError(f"y of shape {shape} must be an indicator of 0 and 1.")
        self.samples_, self.labels_ = samples, labels
        self.classes_ = np.arange(shape[1]) if several else np.unique(labels)
        return self

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return features

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the most frequent class among the nearest neighbours.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_labels).
        """
        samples = self._checked(X)
        predicted: LabelArray = knn_path(
            self.samples_, self.labels_, samples, np.arange(samples.shape[1]), [samples.shape[1]], self.n_neighbors
        )[0]
        return predicted

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Score each class by the distances to the nearest training samples.

        `X` is (n_samples, n_features); returns (n_samples, n_classes) or (n_samples,).
        """
        samples = self._checked(X)
        order, sizes = np.arange(samples.shape[1]), [samples.shape[1]]
        values = knn_scores(self.samples_, self.labels_, samples, order, sizes)[0]
        return values[:, 1] if self.labels_.ndim == 1 and len(self.classes_) == 2 else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
