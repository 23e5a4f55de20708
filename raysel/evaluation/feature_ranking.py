"""Ranking of the features by the final model, with ranks and stability over outer folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.rankings import (
    Stability,
    consensus_places,
    consensus_ranks,
    nogueira_stability,
    selection_ranks,
    top_selected,
)

if TYPE_CHECKING:
    import pandas as pd

#: Column of `FeatureRanking.added` that stability selection adds.
SELECTION_PROBABILITY = "selection_probability"
#: Number of features that a notebook shows.
_SHOWN = 10


def default_n_selected(scored: Sequence[int], n_features: int) -> int:
    """Number of features that count as selected by default."""
    if scored:
        return scored[len(scored) // 2]
    return max(1, n_features // 10)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FeatureRanking:
    """Scores and ranks of the features in the final model, and their ranks in the outer folds.

    Use `from_folds` to create one. Rank 1 is the best feature; of equal scores the lower index
    ranks first. A feature has a score if it is above 0; the others share the mean of the last ranks
    and are never selected.

    Parameters
    ----------
    scores : ndarray of shape (d,)
        Scores of the final model; larger is better.
    ranks : ndarray of shape (d,)
        Ranks in the final model.
    n_scored : int
        Number of features with a score in the final model.
    fold_ranks : ndarray of shape (n_folds, d)
        Ranks in the winner of each outer fold.
    fold_n_scored : ndarray of int64, shape (n_folds,)
        Number of features with a score in the winner of each outer fold.
    feature_names : tuple of str
        Names of the features.
    coordinates : mapping of str to ndarray of shape (d,)
        Position of each feature in the layout, e.g. its row and column, by the name of the axis.
    fold_names : tuple of str
        Names of the outer folds.
    n_selected : int
        Largest number of features that count as selected, in the final model and in each outer
        fold.
    constant : ndarray of bool, shape (d,)
        Mask of the features that have the same value in all samples.
    source : str, default="the final model"
        Whose scores these are, in words: the final model's, an outer fold's or the consensus of the
        folds.
    chosen_by : str, default=""
        How ``n_selected`` was chosen, in words.
    added : mapping of str to ndarray of shape (d,), default={}
        Further columns of the table by name, e.g. the selection probability of each feature.
    noise : float, optional
        Stability of as many features by the F-test with permuted labels on the same folds; None if
        it is not known.

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
    source: str = "the final model"
    chosen_by: str = ""
    added: Mapping[str, FloatArray] = field(default_factory=dict)
    noise: float | None = None

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
        source: str = "the final model",
        chosen_by: str = "",
        added: Mapping[str, FloatArray] | None = None,
    ) -> Self:
        """Rank the features by the final model's scores and by each outer fold's.

        Parameters
        ----------
        final_scores : array-like of shape (d,)
            Scores of the final model; larger is better.
        fold_scores : sequence of array-like of shape (d,)
            Scores of the winner of each outer fold.
        feature_names : sequence of str
            Names of the features.
        fold_names : sequence of str
            Names of the outer folds, e.g. ``["outer0", "outer1"]``.
        n_selected : int
            Largest number of features that count as selected, from 1 to d.
        coordinates : mapping of str to ndarray of shape (d,), optional
            Position of each feature in the layout, e.g. its ``row`` and ``column``; none by
            default.
        constant : ndarray of bool, shape (d,), optional
            Mask of the features that have the same value in all samples, none by default. A study
            records the score 0 for them; figures mark them.
        source : str, default="the final model"
            Whose scores ``final_scores`` are, in words.
        chosen_by : str, default=""
            How ``n_selected`` was chosen, in words.
        added : mapping of str to ndarray of shape (d,), optional
            Further columns of the table by name; none by default.

        Returns
        -------
        FeatureRanking
            The ranking.

        Raises
        ------
        DataError
            If the lengths do not agree, or a score is NaN or infinite.
        ConfigError
            If ``n_selected`` is below 1 or above d.
        """
        names = tuple(map(str, feature_names))
        d = len(names)
        if not fold_names or len(fold_scores) != len(fold_names):
            raise DataError(
                f"there are scores of {len(fold_scores)} outer folds and {len(fold_names)} fold"
                " names; give scores and a name for each outer fold."
            )
        rows = []
        for name, given in zip((source, *fold_names), (final_scores, *fold_scores), strict=True):
            row = np.array(given, dtype=np.float64)
            if row.shape != (d,):
                raise DataError(
                    f"the scores of {name} have shape {row.shape}, but there are {d} feature names."
                )
            if not np.isfinite(row).all():
                worst = names[np.flatnonzero(~np.isfinite(row))[0]]
                raise DataError(
                    f"the scores of {name} contain NaN or infinity, first for feature '{worst}'."
                )
            rows.append(row)
        if not 1 <= n_selected <= d:
            raise ConfigError(
                f"n_selected={n_selected} must lie between 1 and the number of features, {d}."
            )
        mask = np.zeros(d, dtype=bool)
        if constant is not None:
            mask = np.asarray(constant, dtype=bool)
        places = {axis: np.asarray(values) for axis, values in (coordinates or {}).items()}
        columns = {
            name: np.asarray(values, dtype=np.float64) for name, values in (added or {}).items()
        }
        for what, values in (*places.items(), ("constant", mask), *columns.items()):
            if values.shape != (d,):
                raise DataError(f"{what} has shape {values.shape}, but there are {d} features.")
        ranked = np.array([selection_ranks(row) for row in rows])
        n_scored = (np.array(rows) > 0).sum(axis=1)
        return cls(
            scores=rows[0],
            ranks=ranked[0],
            n_scored=int(n_scored[0]),
            fold_ranks=ranked[1:],
            fold_n_scored=n_scored[1:].astype(np.int64),
            feature_names=names,
            coordinates=places,
            fold_names=tuple(fold_names),
            n_selected=int(n_selected),
            constant=mask,
            source=source,
            chosen_by=chosen_by,
            added=columns,
        )

    def __repr__(self) -> str:
        return (
            f"FeatureRanking(top {self.n_selected} of {self.n_candidates} features, "
            f"{self.n_folds} outer folds, {self.stability_in_words})"
        )

    def _repr_html_(self) -> str:
        names = [
            "feature",
            self.part_axis,
            "selection_frequency",
            "consensus_place",
            "rank",
            "score",
            *self.added,
        ]
        n_shown = len(self.recommended_top(_SHOWN))
        best = self.to_table().slice(0, n_shown).select([name for name in names if name])
        table = best.to_pandas().to_html(index=False, float_format="%.3g")
        return f"<p>{escape(repr(self))}</p>{table}<p>{self.what_to_print}</p>"

    @property
    def usable_scores(self) -> FloatArray:
        """Scores of the final model, 0 for those below: shape (d,)."""
        return np.maximum(self.scores, 0.0)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.scores)

    @property
    def n_candidates(self) -> int:
        """Number of columns that can be selected."""
        return int(self.candidates.sum())

    @property
    def candidates(self) -> BoolArray:
        """Mask of the columns that can be selected; confounds, which have no place, cannot."""
        kept = np.ones(self.n_features, dtype=bool)
        for axis in self.coordinates.values():
            if axis.dtype.kind in "iu":
                kept &= axis >= 0
        return kept

    @property
    def n_folds(self) -> int:
        """Number of outer folds of all repeats."""
        return len(self.fold_ranks)

    @property
    def selected(self) -> BoolArray:
        """Mask of the features with a score and one of the ``n_selected`` best ranks."""
        return self.ranks <= min(self.n_selected, self.n_scored)

    @cached_property
    def fold_selected(self) -> BoolArray:
        """Mask of the features that each outer fold's winner selects, shape (n_folds, d)."""
        return top_selected(self.fold_ranks, self.fold_n_scored, self.n_selected)

    @cached_property
    def selection_count(self) -> IntArray:
        """Number of outer folds that select each feature."""
        return self.fold_selected.sum(axis=0)

    @property
    def selection_frequency(self) -> FloatArray:
        """Share of the outer folds that select each feature."""
        return self.selection_count / self.n_folds

    def selection_frequency_at(self, n: int) -> FloatArray:
        """Return the share of the outer folds that select each feature, for any number of features.

        Parameters
        ----------
        n : int
            Largest number of features that count as selected.

        Returns
        -------
        ndarray of shape (d,)
            Shares; that at ``n_selected`` is `selection_frequency`.
        """
        return top_selected(self.fold_ranks, self.fold_n_scored, n).mean(axis=0)

    @cached_property
    def stability(self) -> Stability:
        """Nogueira's stability of the outer folds' selections."""
        return nogueira_stability(self.fold_selected)

    @property
    def stability_in_words(self) -> str:
        """Stability with that of the F-test of permuted labels beside it, where it is known."""
        words = f"stability {self.stability}"
        if self.noise is None:
            return words
        return f"{words} (F-test of permuted labels {self.noise:.2f})"

    @cached_property
    def consensus_rank(self) -> FloatArray:
        """Median rank over the outer folds; a feature without a score counts as the last."""
        return consensus_ranks(self.fold_ranks, self.fold_n_scored)

    @cached_property
    def consensus_place(self) -> FloatArray:
        """Place of each feature in the consensus, from 1.

        It is by the median rank over the outer folds, then by the mean.

        Equal features share a place, as do those that never have a score.
        """
        return consensus_places(self.fold_ranks, self.fold_n_scored).astype(np.float64)

    @property
    def what_to_print(self) -> str:
        """Which order the tables have, and which is for a paper, in a sentence."""
        if self.source in self.fold_names:
            return (
                f"This is the order of {self.source}; for a claim about features print the"
                " consensus of the outer folds."
            )
        order = "the consensus of the outer folds"
        if SELECTION_PROBABILITY in self.added:
            order = "that of the selection probabilities"
        claim = f"The order is {order}, the one for a claim about features"
        if self.source == "the consensus":
            return f"{claim}."
        return f"{claim}; the final model's says what it uses."

    @cached_property
    def rank_sd(self) -> FloatArray:
        """Standard deviation of the rank over the outer folds; NaN for a single fold.

        The training sets of the folds overlap, so the ranks of independent samples would vary more:
        it cannot be used as a standard error.
        """
        if self.n_folds == 1:
            return np.full(self.n_features, np.nan)
        return self.fold_ranks.std(axis=0, ddof=1)

    @property
    def order(self) -> IntArray:
        """Indices of all features by the source's rank, then by place in the consensus.

        Of equal ones the lower index is first.
        """
        return np.lexsort((self.consensus_place, self.ranks)).astype(np.int64)

    @property
    def recommended_order(self) -> IntArray:
        """Indices of all features in the order of the tables, for claims about features.

        It is that of the selection probability where it is known, then that of the consensus. The
        table of a single outer fold keeps the order of that fold.
        """
        if self.source in self.fold_names:
            return self.order
        probability = self.added.get(SELECTION_PROBABILITY, np.zeros(self.n_features))
        return np.lexsort((self.consensus_place, -probability)).astype(np.int64)

    def recommended_top(self, n: int) -> IntArray:
        """Return the indices of the first features in the `recommended_order` that have a score.

        Parameters
        ----------
        n : int
            Largest number of features.

        Returns
        -------
        ndarray of int64
            Indices of features with a score in the source or in an outer fold.
        """
        ranks = np.vstack([self.ranks, self.fold_ranks])
        limits = np.array([self.n_scored, *self.fold_n_scored])[:, None]
        order = self.recommended_order
        scored: BoolArray = np.any(ranks <= limits, axis=0)
        return order[scored[order]][:n]

    def top(self, n: int | None = None) -> IntArray:
        """Return the indices of the final model's best features that have a score, best first.

        Parameters
        ----------
        n : int, optional
            Largest number of features; ``n_selected`` by default.

        Returns
        -------
        ndarray of int64, shape (min(n, n_scored),)
            Indices of the features.
        """
        if n is None:
            n = self.n_selected
        return self.order[: min(n, self.n_scored)]

    def consensus_top(self, n: int | None = None) -> IntArray:
        """Return the indices of the best features of the outer folds' consensus, best first.

        Parameters
        ----------
        n : int, optional
            Largest number of features; ``n_selected`` by default.

        Returns
        -------
        ndarray of int64
            Indices of features that have a score in at least one fold; of equal places the lower
            index is first.
        """
        if n is None:
            n = self.n_selected
        scored = (self.fold_ranks <= self.fold_n_scored[:, None]).any(axis=0)
        order = np.argsort(self.consensus_place, kind="stable")
        return order[: min(n, int(scored.sum()))].astype(np.int64)

    @property
    def parts(self) -> dict[str, IntArray]:
        """Indices of the features of each task or modality, by name; empty without any."""
        if self.part_axis is None:
            return {}
        owners = self.coordinates[self.part_axis]
        return {
            str(name): np.flatnonzero(owners == name) for name in dict.fromkeys(owners.tolist())
        }

    @property
    def part_axis(self) -> str | None:
        """Coordinate that names the task or modality of each feature; None without."""
        return next(
            (axis for axis, values in self.coordinates.items() if values.dtype.kind == "U"), None
        )

    def restrict_to(self, features: IntArray, n_selected: int) -> Self:
        """Rank a subset of the features among themselves.

        Parameters
        ----------
        features : ndarray of int64
            Indices of the features, e.g. one of ``parts``.
        n_selected : int
            Largest number of features of the subset that count as selected.

        Returns
        -------
        FeatureRanking
            Ranking of the subset.
        """
        limits = np.array([self.n_scored, *self.fold_n_scored])[:, None]
        all_ranks = np.vstack([self.ranks, self.fold_ranks])[:, features]
        scored = all_ranks <= limits
        ranks = np.array([selection_ranks(row) for row in np.where(scored, 1.0 / all_ranks, 0.0)])
        n_scored = scored.sum(axis=1)
        return replace(
            self,
            scores=self.scores[features],
            ranks=ranks[0],
            n_scored=int(n_scored[0]),
            fold_ranks=ranks[1:],
            fold_n_scored=n_scored[1:].astype(np.int64),
            feature_names=tuple(self.feature_names[i] for i in features),
            coordinates={axis: values[features] for axis, values in self.coordinates.items()},
            n_selected=n_selected,
            constant=self.constant[features],
            chosen_by="",
            added={name: values[features] for name, values in self.added.items()},
            noise=None,
        )

    def to_table(self) -> Any:
        """Return the ranking as a table with one row a feature, in the `recommended_order`.

        Confounds are no features, and have no row.

        Returns
        -------
        pyarrow.Table
            Columns ``feature``, ``index``, the coordinates, ``score``, ``rank``, ``rank_in_task``
            or ``rank_in_modality`` if there are tasks or modalities, ``rank_<fold>`` for each outer
            fold, ``selection_frequency`` (share of the outer folds that select the feature among
            ``n_selected``), ``consensus_rank`` (median rank), ``consensus_place`` and ``rank_sd``
            (over the outer folds), then those of ``added``. Features without a score share the mean
            of the last ranks.
        """
        order = self.recommended_order[self.candidates[self.recommended_order]]
        columns: dict[str, LabelArray] = {
            "feature": np.array(self.feature_names),
            "index": np.arange(self.n_features),
            **self.coordinates,
            "score": self.scores,
            "rank": self.ranks,
            **self._ranks_in_parts(),
            **{
                f"rank_{name}": row
                for name, row in zip(self.fold_names, self.fold_ranks, strict=True)
            },
            "selection_frequency": self.selection_frequency,
            "consensus_rank": self.consensus_rank,
            "consensus_place": self.consensus_place,
            "rank_sd": self.rank_sd,
            **self.added,
        }
        return pa.table({name: pa.array(values[order]) for name, values in columns.items()})

    def to_frame(self) -> pd.DataFrame:
        """Return the ranking as a data frame with one row a feature, in the `recommended_order`.

        Returns
        -------
        DataFrame
            The columns of `to_table`.
        """
        return self.to_table().to_pandas()

    def _ranks_in_parts(self) -> dict[str, FloatArray]:
        """Rank of each feature in its own task or modality, by the name of the column."""
        if not self.parts:
            return {}
        in_part = np.zeros(self.n_features)
        for features in self.parts.values():
            in_part[features] = self.restrict_to(features, 1).ranks
        return {f"rank_in_{self.part_axis}": in_part}
