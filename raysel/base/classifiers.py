"""Base classes of selectors, linear classifiers, and classifiers of one class against the rest."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.estimator import TENSOR, VOLUME, Capabilities, Estimator
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray, validate_samples
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSES, LABELS, has_columns
from raysel.numerics.classification import distinct_classes
from raysel.numerics.least_squares import one_hot


class Selector(SelectorMixin, Estimator):
    """Base class of methods whose ``transform`` selects the ``n_features_to_select`` best features.

    By default half of the features are selected. Features with score 0 are never selected, so that
    fewer may remain.
    """

    n_features_to_select: int | None

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        # Half of the features by default, as in scikit-learn's RFE.
        limit = self.n_features_to_select or max(1, self.n_features_in_ // 2)
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
    score_meaning = "norm of the feature's coefficients over the classes"

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray

    @staticmethod
    def _targets(y: LabelArray) -> tuple[LabelArray, FloatArray]:
        """Return the sorted class labels and the one-hot targets, (n_samples, n_classes)."""
        return one_hot(y)

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
        if isinstance(X, StoredSamples):
            return X.computed(self.decision_function)
        features: FloatArray = validate_samples(self, X, dtype=np.float64, reset=False)
        values = features @ self.coef_.T + self.intercept_
        if len(self.coef_) == 1:
            return values[:, 0]
        return values

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of largest score, of two classes the second if its score is above 0.

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
        if values.ndim == 1:
            return self.classes_[(values > 0).astype(int)]
        return self.classes_[values.argmax(axis=1)]

    def _keep_linear(self, coef: FloatArray, intercept: FloatArray, classes: LabelArray) -> None:
        """Set ``coef_``, ``intercept_`` and ``classes_`` from one row for each class."""
        if len(coef) == 2:  # scikit-learn's convention: one row, positive for the second class
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_, self.classes_ = coef, intercept, classes


#: Cells of the box around a mask for each of the mask's, above which a method of arrays warns.
_MOST_CELLS = 4


class TensorShaped(Estimator):
    """Base class of methods of samples that are arrays, with the parameters ``shape`` and ``mask``.

    ``shape`` has the sides of the samples whose cells, in C order, are the columns of X; None
    stands for plain vectors. ``mask`` tells which cells of an array are the columns, where not all
    are. The data set's layout sets them.
    """

    layout_parameters: ClassVar[frozenset[str]] = frozenset({"shape", "mask"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shape": [tuple, list, None],
        "mask": [np.ndarray, None],
    }

    # Set by the constructors of the subclasses.
    shape: tuple[int, ...] | None
    mask: BoolArray | None = None  # models of earlier versions lack it

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator for samples of this layout.

        Parameters
        ----------
        layout : Tensor or MaskedVolume
            Layout of the samples, which sets ``shape`` or ``mask``.
        **params
            All parameters but these.

        Returns
        -------
        TensorShaped
            The unfitted estimator.

        Raises
        ------
        ConfigError
            If the samples are no arrays.
        """
        if "mask" in (given := layout.parameters()):
            return cls(mask=given["mask"], **params)
        if not layout.grid:
            raise ConfigError(
                f"{cls.__name__} takes arrays or vectors, not {layout}: set dataset.shape."
            )
        shape = layout.grid
        if len(shape) == 1:
            shape = (*shape, 1)
        return cls(shape=shape, **params)

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid and that ``shape`` has this number of cells.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid; the message names the parameter, its value and the valid
            values.
        """
        super().check(n_features)
        if self.mask is not None:
            self._check_mask(n_features)
        elif self.shape is not None:
            self._check_shape(tuple(self.shape), n_features)

    def _check_shape(self, shape: tuple[int, ...], n_features: int) -> None:
        if not shape or any(not isinstance(m, Integral) or m < 1 for m in shape):
            raise ConfigError(f"shape={self.shape} is not a list of sides, e.g. (32, 32).")
        if math.prod(shape) != n_features:
            raise ConfigError(
                f"shape={self.shape} has {' x '.join(map(str, shape))} = {math.prod(shape)} cells, "
                f"but there are {n_features} features."
            )

    def _check_mask(self, n_features: int) -> None:
        mask = np.asarray(self.mask)
        if self.shape is not None:
            raise ConfigError("give shape or mask, not both: the shape is that of the mask.")
        if mask.dtype != bool:
            raise ConfigError(
                f"mask is an array of {mask.dtype}: give an array of bool, True for the columns"
                " of X."
            )
        if (n_cells := int(mask.sum())) != n_features:
            raise ConfigError(
                f"mask has {n_cells} cells that are True, but there are {n_features} features."
            )

    def _inside(self) -> BoolArray | None:
        """Return the mask without slices that no cell is in; None if all cells are features."""
        if self.mask is None:
            return None
        mask = np.asarray(self.mask)
        used = [
            mask.any(axis=tuple(a for a in range(mask.ndim) if a != axis))
            for axis in range(mask.ndim)
        ]
        box: BoolArray = mask[np.ix_(*used)]
        if box.size > _MOST_CELLS * box.sum():
            warnings.warn(
                f"the box around the {box.sum()} cells of the mask has {box.size}: the method"
                " computes with all of these. A method of vectors, e.g. rfs, takes those of the"
                " mask only.",
                stacklevel=2,
            )
        if box.all():
            return None
        return box.squeeze()

    def _sides(self, n_features: int) -> tuple[int, ...]:
        """Return the sides of the samples, at least two, without sides of 1."""
        given: tuple[int, ...] = (n_features,)
        if self.mask is not None:
            given = tuple(len(np.unique(index)) for index in np.nonzero(np.asarray(self.mask)))
        elif self.shape is not None:
            given = tuple(self.shape)
        if len(given) == 2:
            return given
        sides = tuple(side for side in given if side > 1)
        missing = 2 - len(sides)
        return sides + (1,) * missing


class TensorSelector(TensorShaped, LinearSelector):
    """Base class of linear classifiers of samples that are arrays, which rank their cells."""

    capabilities: ClassVar[Capabilities] = replace(
        LinearSelector.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the classes"


@dataclass(frozen=True)
class SignedTarget:
    """Target of one binary problem for each class or label."""

    #: 1 for samples of the class or label, -1 for the others; shape (n_problems, n_samples).
    signs: FloatArray
    #: Class labels, or 0, 1, ... for a multi-label target; shape (n_classes,).
    classes: LabelArray
    multilabel: bool

    @property
    def counts(self) -> IntArray:
        """Number of samples of each class; of labels of shape (n_labels, 2), without and with."""
        above = np.count_nonzero(self.signs > 0, axis=1)
        if len(self.classes) > 2 and not self.multilabel:
            return above
        sides = np.column_stack([self.signs.shape[1] - above, above])
        if self.multilabel:
            return sides
        return sides[0]


def signed_target(y: ArrayLike) -> SignedTarget:
    """Make one binary problem for each class or label.

    `y` is (n_samples,) or (n_samples, n_labels).
    """
    y = np.asarray(y)
    multilabel = has_columns(y)
    if multilabel:
        positive, classes = _positive_labels(y), np.arange(y.shape[1])
    else:
        classes, codes = distinct_classes(y)
        positive = codes.reshape(-1, 1) == positive_classes(len(classes))
    return SignedTarget(np.ascontiguousarray(np.where(positive.T, 1.0, -1.0)), classes, multilabel)


def positive_classes(n_classes: int) -> IntArray:
    """Return the positions of the classes with a problem each: all, or the second of two."""
    if n_classes > 2:
        return np.arange(n_classes)
    return np.array([1])


def _positive_labels(y: LabelArray) -> LabelArray:
    """Mask of the entries 1 of an indicator of 0/1 or -1/1."""
    if type_of_target(y) != "multilabel-indicator" or not set(np.unique(y)) <= {-1, 0, 1}:
        values = ", ".join(map(repr, np.unique(y)[:5].tolist()))
        raise DataError(
            f"y of shape {y.shape} holds {values}: give labels, or an indicator of 0/1 or -1/1."
        )
    return y > 0


class OneAgainstRestClassifier(ClassifierMixin, Estimator):
    """Base class of classifiers with a score for each class or label against the rest.

    A method also derives from `IterativeEstimator` or `OneShotEstimator`, implements
    ``decision_function`` and calls ``_keep_target`` when it is fitted. By default it ranks no
    features.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... for a multi-label target.
    class_count_ : ndarray of int64, shape (n_classes,) or (n_labels, 2)
        Number of training samples of each class; for a multi-label target without and with each
        label.
    multilabel_ : bool
        Whether the target was multi-label.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        ranks=False, predicts=True, targets=frozenset({CLASSES, LABELS})
    )

    classes_: LabelArray
    class_count_: IntArray
    multilabel_: bool

    def _keep_target(self, target: SignedTarget) -> None:
        """Set the fitted attributes that the labels alone determine."""
        self.classes_, self.multilabel_, self.class_count_ = (
            target.classes,
            target.multilabel,
            target.counts,
        )

    def _validate_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, LabelArray]:
        if has_columns(y):
            features, target = validate_data(
                self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, multi_output=True
            )
            check_classification_targets(target)
            return features, target
        return super()._validate_data(X, y)

    def _take_second(self, values: FloatArray) -> FloatArray:
        """Return the scores of the second of two classes; of more, or of labels, all."""
        if len(self.classes_) > 2 or self.multilabel_:
            return values
        return values[:, 0]

    def _checked(self, X: ArrayLike, order: str | None = None) -> FloatArray:
        """Validate samples to predict."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, order=order, reset=False)

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes or labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class or label; for two classes that of the second one. A label is
            predicted where it is positive.
        """

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of largest score, or all labels of positive score.

        Of classes with equal scores the most frequent one of the training set is predicted, of
        equally frequent ones the first. A label (or the second of two classes) with score 0 is
        predicted if most training samples have it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Predicted classes, or an indicator of 0 and 1 for a multi-label target.
        """
        values = self.decision_function(X)
        if values.ndim == 2 and not self.multilabel_:
            order = np.argsort(-self.class_count_, kind="stable")
            return self.classes_[order[values[:, order].argmax(axis=1)]]
        majority = self.class_count_[..., 1] > self.class_count_[..., 0]
        positive = np.where(values == 0, majority, values > 0).astype(np.int64)
        if self.multilabel_:
            return positive
        return self.classes_[positive]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


class OneAgainstRest(OneAgainstRestClassifier, LinearSelector):
    """Base class of linear classifiers of one class against the rest, which rank features."""

    capabilities: ClassVar[Capabilities] = replace(
        LinearSelector.capabilities, targets=frozenset({CLASSES, LABELS})
    )

    decision_function = LinearSelector.decision_function
