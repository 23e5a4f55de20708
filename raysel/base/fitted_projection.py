"""Transformation and prediction by fitted projections, for one task or for all tasks in one X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from raysel.base.classifiers import Selector
from raysel.base.estimator import MODALITIES, TASKS, TENSOR, VOLUME, Capabilities, Estimator
from raysel.base.task_samples import TaskSamples, task_label
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import Samples, TaskBlocks, as_task_blocks
from raysel.numerics.classification import distance_differences


class FittedProjection(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Estimator
):
    """Base class of projections, which also classify by the nearest neighbour and rank.

    Attributes
    ----------
    projections_ : list of ndarray of shape (D_i, d_i)
        U_i of each task, in the original features; the largest entry of each column is positive.
    means_ : list of ndarray of shape (D_i,)
        Mean of the training samples of each task.
    embeddings_ : list of ndarray of shape (n_i, d_i)
        Projected labelled training samples of each task.
    embedded_labels_ : list of ndarray of shape (n_i,)
        Labels of the embeddings of each task.
    task_scores_ : list of ndarray of shape (D_i,)
        Norm of each feature's row of U_i, whose columns are weighted by their discriminant values.
    scores_ : ndarray of shape (n_features,)
        Concatenated scores of all tasks.
    ranks_ : ndarray of int, shape (n_tasks,)
        Dimension of the range of each task's data, in which its directions lie.
    task_names_ : list of str
        Name of each task; one empty name for data of one task.
    classes_ : ndarray of shape (n_classes,)
        Labels of all tasks.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicts=True, layouts=frozenset({TENSOR, MODALITIES, TASKS, VOLUME})
    )
    score_meaning = "norm of the feature's row of the weighted projection"

    tasks: Mapping[str, int | tuple[int, ...]] | None
    n_features_to_select: int | None

    projections_: list[FloatArray]
    means_: list[FloatArray]
    embeddings_: list[FloatArray]
    embedded_labels_: list[LabelArray]
    task_scores_: list[FloatArray]
    ranks_: IntArray
    task_names_: list[str]
    classes_: LabelArray

    @property
    def _n_features_out(self) -> int:
        return max(U.shape[1] for U in self.projections_)

    # Not inherited, because inverse_transform of SelectorMixin does not apply to projections.
    _get_support_mask = Selector._get_support_mask  # noqa: SLF001
    get_support = SelectorMixin.get_support

    def _keep(
        self,
        samples: Sequence[TaskSamples],
        means: Sequence[FloatArray],
        projections: Sequence[FloatArray],
        values: Sequence[FloatArray],
        embeddings: Sequence[FloatArray],
    ) -> None:
        """Set the fitted attributes from each task's U_i and discriminant values."""
        signs = [
            np.where(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] < 0, -1.0, 1.0)
            for U in projections
        ]
        labelled = [task.codes >= 0 for task in samples]
        self.task_names_ = [task.name for task in samples]
        self.means_ = list(means)
        self.projections_ = [U * sign for U, sign in zip(projections, signs, strict=True)]
        self.embeddings_ = [
            (Z * sign)[mask] for Z, sign, mask in zip(embeddings, signs, labelled, strict=True)
        ]
        self.embedded_labels_ = [task.y[mask] for task, mask in zip(samples, labelled, strict=True)]
        self.task_scores_ = [
            np.linalg.norm(U * (value / np.linalg.norm(U, axis=0)), axis=1)
            for U, value in zip(projections, values, strict=True)
        ]
        self.scores_ = np.concatenate(self.task_scores_)
        self.classes_ = np.unique(np.concatenate([task.classes for task in samples]))

    def transform_task(self, task: int, X: ArrayLike) -> FloatArray:
        """Project samples of one task, (X - mean_i) U_i.

        Parameters
        ----------
        task : int
            Position of the task among the fitted tasks.
        X : array-like of shape (n_samples, D_i)
            Samples of the task.

        Returns
        -------
        ndarray of shape (n_samples, d_i)
            Projected samples.

        Raises
        ------
        ConfigError
            If there is no such task.
        DataError
            If X does not have the task's number of features.
        """
        check_is_fitted(self)
        if not isinstance(task, Integral) or not 0 <= task < len(self.projections_):
            known = ", ".join(
                f"{i} for {task_label(name)}" for i, name in enumerate(self.task_names_)
            )
            raise ConfigError(f"task={task!r} is not one of the fitted tasks: give {known}.")
        features = check_array(X, dtype=np.float64)
        U = self.projections_[task]
        if features.shape[1] != len(U):
            raise DataError(
                f"{task_label(self.task_names_[task])} has {len(U)} features, but X has"
                f" {features.shape[1]}."
            )
        return (features - self.means_[task]) @ U

    def predict_task(self, task: int, X: ArrayLike) -> LabelArray:
        """Predict samples of one task by the nearest projected training sample of the task.

        Parameters
        ----------
        task : int
            Position of the task among the fitted tasks.
        X : array-like of shape (n_samples, D_i)
            Samples of the task.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        nearest = pairwise_distances_argmin(self.transform_task(task, X), self.embeddings_[task])
        return self.embedded_labels_[task][nearest]

    def _class_distances(self, task: int, X: FloatArray) -> FloatArray:
        """Return the distance of each sample to each class; infinite for those of other tasks."""
        nearest = np.full((len(X), len(self.classes_)), np.inf)
        codes = np.searchsorted(self.classes_, self.embedded_labels_[task])
        by_class = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[by_class], return_index=True)
        distances = cdist(self.transform_task(task, X), self.embeddings_[task][by_class])
        nearest[:, present] = np.minimum.reduceat(distances, starts, axis=1)
        return nearest

    def _parts(
        self, X: ArrayLike | TaskBlocks
    ) -> tuple[int, list[tuple[int, IntArray, FloatArray]]]:
        """Validate X; return the number of samples and (task, rows, samples) of each task."""
        check_is_fitted(self)
        widths = [len(U) for U in self.projections_]
        if isinstance(X, TaskBlocks):
            features: Samples = validate_data(self, X, reset=False, skip_check_array=True)
        else:
            finite = "allow-nan" if len(widths) > 1 else True
            features = validate_data(
                self, X, dtype=np.float64, reset=False, ensure_all_finite=finite
            )
        if len(widths) == 1:
            if isinstance(features, TaskBlocks):
                raise DataError(
                    f"{type(self).__name__} was fitted on one task, but X holds"
                    f" {len(features.blocks)}; give an array."
                )
            return len(features), [(0, np.arange(len(features)), np.asarray(features))]
        layout = Tasks(dict(zip(self.task_names_, widths, strict=True)))
        parts = enumerate(as_task_blocks(features, layout).parts())
        return len(features), [
            (task, rows, samples) for task, (rows, _, samples) in parts if len(rows)
        ]

    def transform(self, X: ArrayLike | TaskBlocks) -> FloatArray:
        """Project each sample by the projection of its task.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples; an array has NaN outside the columns of a sample's own task.

        Returns
        -------
        ndarray of shape (n_samples, max d_i)
            Projected samples; NaN in the columns after the d_i of a sample's own task.
        """
        n, parts = self._parts(X)
        projected = np.full((n, self._n_features_out), np.nan)
        for task, rows, samples in parts:
            projected[rows, : self.projections_[task].shape[1]] = self.transform_task(task, samples)
        return projected

    def predict(self, X: ArrayLike | TaskBlocks) -> LabelArray:
        """Predict each sample by the nearest projected training sample of its task.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples; an array has NaN outside the columns of a sample's own task.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        n, parts = self._parts(X)
        predicted = np.empty(n, dtype=self.classes_.dtype)
        for task, rows, samples in parts:
            predicted[rows] = self.predict_task(task, samples)
        return predicted

    def decision_function(self, X: ArrayLike | TaskBlocks) -> FloatArray:
        """Score each class by the distances to the nearest training samples of the task.

        The score of a class is the distance to the nearest sample of another class minus that to
        the nearest of its own, so that the predicted class has the largest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples; an array has NaN outside the columns of a sample's own task.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class, minus infinity for classes of other tasks; for two classes that of
            the second one.
        """
        n, parts = self._parts(X)
        scores = np.empty((n, len(self.classes_)))
        for task, rows, samples in parts:
            scores[rows] = distance_differences(self._class_distances(task, samples))
        if len(self.classes_) == 2:
            return scores[:, 1]
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.tasks is not None
        return tags
