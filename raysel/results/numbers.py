"""Scores, facts and tables of a study, finished or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from raysel.evaluation.agreement import RankOverlap
from raysel.evaluation.records import Convergence
from raysel.numerics.inference import MeanInterval
from raysel.results import tables
from raysel.results.facts import Facts
from raysel.results.records import StudyRecords
from raysel.results.scores import Reference

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyNumbers(StudyRecords):
    """Scores, facts and tables of a study; `StudyResult` adds rankings, sentences and plots."""

    @cached_property
    def facts(self) -> Facts:
        """Figures of the finished study, each with what it is of, and its remarks.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        """
        return Facts.of(self)

    # --- scores ------------------------------------------------------------------------------

    @property
    def inner_scores(self) -> list[float]:
        """Inner score of each outer fold's winner."""
        return [refit.inner_score for refit in self.outer]

    @property
    def test_mean(self) -> float:
        """Mean of the test scores over the outer folds, which estimates the score on new samples."""
        return self.facts.test.mean

    @property
    def test_sd(self) -> float:
        """Sample standard deviation of the test scores over the outer folds; NaN if there is one fold."""
        return self.facts.test.sd

    @property
    def interval(self) -> MeanInterval:
        """Mean and SD of the test scores with their 95 % interval, or the ``reason`` why there is none.

        It is corrected for the training sets that the outer folds share; over draws of the training set
        (``cv.train_per_class``) it is the plain one, of the mean over all draws from this pool of samples.
        """
        return self.facts.interval

    @property
    def references(self) -> Mapping[str, Reference]:
        """Scores of the references of ``evaluation.references`` on the same outer folds, by name.

        They are ``all features``, ``variance``, ``f_test`` and ``chance``, the better of the most frequent class and a
        stratified guess; those that have no score on an outer fold are left out.
        """
        return self.facts.references

    @property
    def optimism(self) -> Mapping[str, float]:
        """Mean scores of the outer folds' winners: ``training``, ``inner`` and ``test``."""
        return self.facts.optimism

    @property
    def report(self) -> dict[str, list[float | None]]:
        """Values of each metric of ``evaluation.report`` on the outer folds' test samples; None where undefined."""
        return {name: list(own.values) for name, own in self.facts.report.items()}

    @property
    def task_scores(self) -> dict[str, list[float]]:
        """Test scores of each task on each outer fold; empty if the data are one task."""
        by_task = self.facts.by_task.items()
        return {name: [value for value in own.values if value is not None] for name, own in by_task}

    @property
    def modality_scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Scores or kernel weights of the modalities in the winner of each fold.

        By fold, then by modality: a number, or a list with one for each class or label in their order. Empty if the
        method weighs no modalities or the data have none.
        """
        return self.facts.modality_scores

    @property
    def fold_redundancy(self) -> Mapping[int, list[float | None]]:
        """Redundancy of each outer fold's best features, by their number; None where there is no pair of features.

        It is the mean absolute correlation of pairs over all samples of the data set. Empty if the method does not rank
        features, the data are several tasks, or an earlier version of raysel ran the study.
        """
        return self.facts.redundancy

    @property
    def redundancy(self) -> dict[int, float]:
        """Mean of `fold_redundancy` over the outer folds that have one, by the number of features; NaN if none has."""
        return self.facts.mean_redundancy

    @cached_property
    def rank_overlap(self) -> RankOverlap:
        """Rank-biased overlap of all pairs of outer folds, with 90 % of the weight on the `default_top` features."""
        return self.fold_ranks.overlap(self.default_top)

    @property
    def winner_convergence(self) -> Convergence:
        """Counts of the winners' refits, including the final one, and of those that met their ``tol``."""
        return self.facts.fits

    # --- tables ------------------------------------------------------------------------------

    def score_curves(self) -> pd.DataFrame:
        """Return inner and test scores for each number of features as a table.

        Returns
        -------
        DataFrame
            One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``, ``test_sd`` (over the outer
            folds) and a column with the mean of each of `references`; no rows for the classifier ``native``.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        return pd.DataFrame(self.facts.curve)

    def stability_curve(self) -> pd.DataFrame:
        """Return the stability of the best N features over the outer folds for a range of N.

        Returns
        -------
        DataFrame
            One row for each N, the numbers of ``evaluation.n_features`` and up to 24 others from 1 to all features:
            ``n_features``; ``stability`` (Nogueira's; NaN where every fold selects all features or none); ``noise``,
            ``noise_lowest`` and ``noise_highest`` (mean and range for an F-test ranking of permuted labels on the same
            folds; NaN if an earlier version of raysel ran the study); ``undefined_because``.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features.
        """
        import pandas as pd  # noqa: PLC0415

        self.check_ranks()
        assert self.facts.agreement is not None  # noqa: S101 - the features are ranked
        return pd.DataFrame(self.facts.agreement.curve)

    def summary(self) -> pd.DataFrame:
        """Return the winners of the outer folds as a table.

        Returns
        -------
        DataFrame
            One row an outer fold that has been refitted: ``outer_fold``, ``winner``, ``n_features`` (the chosen number
            of best features), ``training_<metric>``, ``inner_<metric>``, ``test_<metric>``, ``test_<name>`` for each
            metric of ``evaluation.report``, ``features_with_score``, ``redundancy`` (of the `default_top` features,
            over all samples) and ``converged``.
        """
        return tables.summary_table(self.stored, self.default_top)

    def trials(self) -> pd.DataFrame:
        """Return the trials that have ended as a table, the best validation score first.

        Returns
        -------
        DataFrame
            One row a trial: ``trial`` (its id), ``outer_fold`` (in an adaptive search), ``param_*``, ``status``,
            ``val_<metric>`` (mean over the outer folds, for display only), ``val_<metric>/<fold>`` for each outer fold
            and the final one, ``objective``, ``converged`` (share of the inner fits that met ``tol``), ``seconds``
            (missing if the search is along a path, where configurations have no time of their own) and ``error``.
        """
        return tables.trial_frame(self.stored)

    def traces(self) -> pd.DataFrame:
        """Return objective and scores of every inner fit by iteration.

        Returns
        -------
        DataFrame
            One row an iteration: ``trial``, ``configuration``, ``fold``, ``inner``, ``iteration``, ``objective`` and
            one ``score`` column for each number of features.
        """
        return tables.trace_frame(self.stored)
