"""The final model's ranking of the features, and how far the outer folds agree with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.errors import ConfigError, DataError
from raysel.metrics.ranks import selection_ranks
from raysel.metrics.stability import Stability, nogueira_stability

if TYPE_CHECKING:
    import pandas as pd

#: Coordinates that tell a feature's part of the feature space.
PART_AXES = ("task", "modality")


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRanking:
    """Scores and ranks of the final model, and a rank from each outer fold's winner.

    Built by `from_folds`. Rank 1 is the best feature; equal scores go to the lower index. A feature has a score where
    it is above 0; those without one share the mean of the last ranks and are never selected.

    Parameters
    ----------
    scores : ndarray of shape (d,)
        The final model's; larger is better.
    ranks : ndarray of shape (d,)
        The final model's.
    n_scored : int
        How many features have a score in the final model.
    fold_ranks : ndarray of shape (n_folds, d)
    fold_n_scored : ndarray of int64, shape (n_folds,)
        How many features have a score in each outer fold's winner.
    feature_names : tuple of str
    coordinates : mapping of str to ndarray of shape (d,)
    fold_names : tuple of str
    n_selected : int
        How many features count as selected at most, in the model and in every fold.
    constant : ndarray of bool, shape (d,)
        Features of one value only.

    Examples
    --------
    >>> ranking = FeatureRanking.from_folds(
    ...     [0.1, 3.0, 2.0],
    ...     [[0.0, 2.0, 1.0], [0.0, 1.0, 2.0]],
    ...     feature_names=["a", "b", "c"],
    ...     fold_names=["outer0", "outer1"],
    ...     n_selected=1,
    ... )
    >>> ranking.ranks, ranking.selection_frequency, ranking.consensus_rank
    (array([3., 1., 2.]), array([0. , 0.5, 0.5]), array([3. , 1.5, 1.5]))
    >>> ranking
    FeatureRanking(top 1 of 3 features, 2 outer folds, stability -0.50)
    """

    scores: FloatArray
    ranks: FloatArray
    n_scored: int
    fold_ranks: FloatArray
    fold_n_scored: IntArray
    feature_names: tuple[str, ...]
    coordinates: Mapping[str, LabelArray]
    fold_names: tuple[str, ...]
    n_selected: int
    constant: BoolArray

    @classmethod
    def from_folds(
        cls,
        final_scores: ArrayLike,
        fold_scores: Sequence[ArrayLike],
        *,
        feature_names: Sequence[str],
        fold_names: Sequence[str],
        n_selected: int,
        coordinates: Mapping[str, LabelArray] | None = None,
        constant: BoolArray | None = None,
    ) -> Self:
        """Rank the features by the final model's scores and by each outer fold's.

        Parameters
        ----------
        final_scores : array-like of shape (d,)
            Larger is better.
        fold_scores : sequence of array-like of shape (d,)
            One for each outer fold.
        feature_names : sequence of str
        fold_names : sequence of str
            E.g. ``["outer0", "outer1"]``.
        n_selected : int
            From 1 to d.
        coordinates : mapping of str to ndarray of shape (d,), default=None
            E.g. a layout's ``row`` and ``column``.
        constant : ndarray of bool, shape (d,), default=None
            Features of one value in all samples: they can tell nothing, so they rank as features without a
            score whatever a method made of them. Their scores stay as they are.

        Returns
        -------
        FeatureRanking

        Raises
        ------
        DataError
            If the parts do not fit each other, or a score is NaN or infinite.
        ConfigError
            If ``n_selected`` is below 1 or above d.
        """
        names = tuple(map(str, feature_names))
        d = len(names)
        if not fold_names or len(fold_scores) != len(fold_names):
            raise DataError(f"there are scores of {len(fold_scores)} outer folds and {len(fold_names)} fold names.")
        rows = []
        for name, given in zip(("the final model", *fold_names), (final_scores, *fold_scores), strict=True):
            row = np.array(given, dtype=np.float64)
            if row.shape != (d,):
                raise DataError(f"the scores of {name} have shape {row.shape}, but there are {d} feature names.")
            if not np.isfinite(row).all():
                worst = names[np.flatnonzero(~np.isfinite(row))[0]]
                raise DataError(f"the scores of {name} hold NaN or infinity, first for feature '{worst}'.")
            rows.append(row)
        if not 1 <= n_selected <= d:
            raise ConfigError(f"n_selected={n_selected} must lie between 1 and the {d} features there are.")
        mask = np.zeros(d, dtype=bool) if constant is None else np.asarray(constant, dtype=bool)
        places = {axis: np.asarray(values) for axis, values in (coordinates or {}).items()}
        for what, values in (*places.items(), ("constant", mask)):
            if values.shape != (d,):
                raise DataError(f"{what} has shape {values.shape}, but there are {d} features.")
        usable = np.where(mask, 0.0, np.array(rows))
        ranked = np.array([selection_ranks(row) for row in usable])
        n_scored = (usable > 0).sum(axis=1)
        return cls(
            rows[0],
            ranked[0],
            int(n_scored[0]),
            ranked[1:],
            n_scored[1:].astype(np.int64),
            names,
            places,
            tuple(fold_names),
            int(n_selected),
            mask,
        )

    def __repr__(self) -> str:
        return (
            f"FeatureRanking(top {self.n_selected} of {self.n_features} features, "
            f"{self.n_folds} outer folds, stability {self.stability})"
        )

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.scores)

    @property
    def n_folds(self) -> int:
        """Number of outer folds, of all repeats together."""
        return len(self.fold_ranks)

    @property
    def selected(self) -> BoolArray:
        """Whether the final model ranks each feature among its best ``n_selected`` and gives it a score."""
        return self.ranks <= min(self.n_selected, self.n_scored)

    @cached_property
    def fold_selected(self) -> BoolArray:
        """The same of each outer fold's winner: shape (n_folds, d)."""
        return self.fold_ranks <= np.minimum(self.n_selected, self.fold_n_scored)[:, None]

    @property
    def n_empty_folds(self) -> int:
        """Number of outer folds whose winner gives no feature a score."""
        return int((self.fold_n_scored == 0).sum())

    @cached_property
    def selection_count(self) -> IntArray:
        """Number of outer folds that select each feature."""
        return self.fold_selected.sum(axis=0)

    @property
    def selection_frequency(self) -> FloatArray:
        """Share of the outer folds that select each feature."""
        return self.selection_count / self.n_folds

    @cached_property
    def stability(self) -> Stability:
        """Nogueira's index of the sets that the outer folds select; its interval does not hold for such folds."""
        return nogueira_stability(self.fold_selected)

    @cached_property
    def consensus_rank(self) -> FloatArray:
        """Mean rank over the outer folds: Borda's count, which puts features in the order least at odds with all.

        Of all orders it is the one of the largest mean Spearman correlation with the folds' (Kendall 1962).
        """
        return self.fold_ranks.mean(axis=0)

    @cached_property
    def rank_sd(self) -> FloatArray:
        """Standard deviation of the rank over the outer folds; NaN for a single fold.

        The training sets of a cross-validation overlap, so independent samples would differ more than the folds do:
        it is a spread over overlapping folds and gives no confidence interval.
        """
        if self.n_folds == 1:
            return np.full(self.n_features, np.nan)
        return self.fold_ranks.std(axis=0, ddof=1)

    @property
    def order(self) -> IntArray:
        """Indices of all features by the final model's rank; equal ranks by the folds' mean rank, then by index."""
        return np.lexsort((self.consensus_rank, self.ranks)).astype(np.int64)

    def top(self, n: int | None = None) -> IntArray:
        """Indices of the final model's best features that have a score, best first.

        Parameters
        ----------
        n : int, default=None
            How many at most; ``n_selected`` by default.

        Returns
        -------
        ndarray of int64, shape (min(n, n_scored),)
        """
        return self.order[: min(self.n_selected if n is None else n, self.n_scored)]

    @property
    def parts(self) -> dict[str, IntArray]:
        """The features of each task or modality, in the order of the columns; empty for one feature space."""
        if self.part_axis is None:
            return {}
        owners = self.coordinates[self.part_axis]
        return {str(name): np.flatnonzero(owners == name) for name in dict.fromkeys(owners.tolist())}

    @property
    def part_axis(self) -> str | None:
        """The coordinate that names each feature's task or modality."""
        return next((axis for axis in PART_AXES if axis in self.coordinates), None)

    def restrict_to(self, features: IntArray, n_selected: int) -> Self:
        """The ranking of some of the features among themselves.

        Parameters
        ----------
        features : ndarray of int64
            Indices, e.g. one of ``parts``.
        n_selected : int
            How many of these count as selected.

        Returns
        -------
        FeatureRanking
            Ranks count these features only.
        """
        limits = np.array([self.n_scored, *self.fold_n_scored])[:, None]
        all_ranks = np.vstack([self.ranks, self.fold_ranks])[:, features]
        scored = all_ranks <= limits
        kept = np.array([selection_ranks(row) for row in np.where(scored, 1.0 / all_ranks, 0.0)])
        n_scored = scored.sum(axis=1)
        return replace(
            self,
            scores=self.scores[features],
            ranks=kept[0],
            n_scored=int(n_scored[0]),
            fold_ranks=kept[1:],
            fold_n_scored=n_scored[1:].astype(np.int64),
            feature_names=tuple(self.feature_names[i] for i in features),
            coordinates={axis: values[features] for axis, values in self.coordinates.items()},
            n_selected=n_selected,
            constant=self.constant[features],
        )

    def to_table(self) -> Any:
        """One row a feature, best first.

        Returns
        -------
        pyarrow.Table
            Columns ``feature``, ``index``, the coordinates, ``score``, ``rank``, ``rank_in_task`` or
            ``rank_in_modality`` where there are such, ``rank_<fold>`` for each outer fold,
            ``selection_frequency``, ``consensus_rank`` and ``rank_sd`` (over the outer folds). Features without
            a score share the mean of the last ranks.
        """
        order = self.order
        columns: dict[str, LabelArray] = {
            "feature": np.array(self.feature_names),
            "index": np.arange(self.n_features),
            **self.coordinates,
            "score": self.scores,
            "rank": self.ranks,
            **self._ranks_in_parts(),
            **{f"rank_{name}": row for name, row in zip(self.fold_names, self.fold_ranks, strict=True)},
            "selection_frequency": self.selection_frequency,
            "consensus_rank": self.consensus_rank,
            "rank_sd": self.rank_sd,
        }
        return pa.table({name: pa.array(values[order]) for name, values in columns.items()})

    def to_frame(self) -> pd.DataFrame:
        """Return one row a feature, best first.

        Returns
        -------
        DataFrame
            The columns of `to_table`.
        """
        return self.to_table().to_pandas()

    def _ranks_in_parts(self) -> dict[str, FloatArray]:
        """Each feature's rank in its own task or modality, by the column's name."""
        found = np.zeros(self.n_features)
        for features in self.parts.values():
            found[features] = self.restrict_to(features, 1).ranks
        return {f"rank_in_{self.part_axis}": found} if self.parts else {}
