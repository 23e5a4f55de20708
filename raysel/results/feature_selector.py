"""Selection of the features that a finished study ranks best, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import column_or_1d, validate_data

from raysel.core.arrays import validate_params
from raysel.core.errors import ConfigError
from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation.selectors import ScoredSelector, has_names
from raysel.results.result import StudyResult


class FeatureSelector(ScoredSelector):
    """Selector of the best features by given scores, made from a finished study by `from_study`.

    ``fit`` learns nothing from the samples: it only checks their columns, so that the selector
    stays the same in a pipeline, a clone or a cross-validation. A score that is cross-validated on
    samples of the study itself is too good, because these samples chose the features;
    `StudyResult.test_scores` are honest.

    Parameters
    ----------
    scores : array-like of shape (n_features,)
        Score of each feature; larger is better, and features with score 0 are never selected.
    n_features_to_select : int, default=None
        Number of best features to select; fewer are selected if fewer have a score above 0. None:
        all of those.
    feature_names : sequence of str, default=None
        Names of the features. None: a table with any columns is accepted.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The scores.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the features, if they are known. A table must have these columns in this order; the
        columns of an array are taken by position.

    Examples
    --------
    >>> selector = FeatureSelector([0.0, 2.0, 0.5], 2, ["a", "b", "c"]).fit([[1, 2, 3]])
    >>> selector.transform([[4, 5, 6]])
    array([[5, 6]])
    >>> selector.get_feature_names_out().tolist()
    ['b', 'c']
    """

    def __init__(
        self,
        scores: ArrayLike,
        n_features_to_select: int | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.scores = scores
        self.n_features_to_select = n_features_to_select
        self.feature_names = feature_names

    @classmethod
    def from_study(cls, directory: str | Path, n_features: int | None = None) -> Self:
        """Make the selector of the features that a study's final model ranks best.

        Parameters
        ----------
        directory : str or Path
            Directory of the finished study.
        n_features : int, optional
            Number of best features; by default that of the final model, which its inner scores
            chose (`StudyResult.default_top` where none was chosen). Fewer are selected if fewer
            have a score.

        Returns
        -------
        FeatureSelector
            Fitted selector. Features that are constant in the study's data have score 0.

        Raises
        ------
        ConfigError
            If ``n_features`` is not between 1 and the number of features.
        DirectoryError
            If the directory holds no study.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no ranking: its method gives no feature scores, or there is no final
            model.
        """
        result = StudyResult.open(directory)
        result.recorded.check_ranks()
        result.recorded.check_top(n_features, "n_features")
        selector = cls(
            np.array(result.recorded.final.feature_scores),
            n_features or result.recorded.default_top,
            list(result.recorded.feature_names),
        )
        selector._keep()
        return selector

    def _keep(self) -> None:
        self.scores_ = column_or_1d(np.asarray(self.scores, dtype=np.float64))
        if np.isnan(self.scores_).any():
            raise ConfigError(
                f"scores has NaN at position {np.flatnonzero(np.isnan(self.scores_))[0]}: give"
                " numbers."
            )
        self.n_features_in_ = len(self.scores_)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self.feature_names is not None:
            if len(self.feature_names) != self.n_features_in_:
                raise ConfigError(
                    f"feature_names has {len(self.feature_names)} names for the"
                    f" {self.n_features_in_} scores: give one name for each."
                )
            self.feature_names_in_ = np.array(self.feature_names, dtype=object)

    def fit(self, X: ArrayLike | TaskBlocks, y: Any = None) -> Self:
        """Check that samples have the columns of the selector.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples.
        y : None
            Ignored.

        Returns
        -------
        self
            The selector.

        Raises
        ------
        ValueError
            If X has another number of columns, or is a table with other columns or in another
            order, or ``n_features_to_select`` is invalid.
        ConfigError
            If ``scores`` has NaN, or ``feature_names`` another length.
        """
        validate_params(self)
        self._keep()
        if has_names(X) and self.feature_names is None:
            validate_data(self, X, skip_check_array=True)
            self._check_width(X.shape[1])  # type: ignore[union-attr]
        else:
            self.transform(X)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
