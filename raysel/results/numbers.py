"""Scores, facts and tables of a study, finished or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.core.errors import headline
from raysel.evaluation.agreement import RankOverlap
from raysel.evaluation.failing_numbers import failing_in_trials
from raysel.evaluation.records import FINAL, Convergence, TrialRecord
from raysel.numerics.inference import MeanInterval
from raysel.results.coefficients import Coefficients
from raysel.results.facts import Facts
from raysel.results.records import StudyRecords
from raysel.results.scores import Reference
from raysel.results.tables import trace_table
from raysel.study.stored import StoredStudy

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
        """Mean of the test scores over the outer folds, which estimates the score on new
        samples.
        """
        return self.facts.test.mean

    @property
    def test_sd(self) -> float:
        """Sample standard deviation of the test scores over the outer folds; NaN if there is one
        fold.
        """
        return self.facts.test.sd

    @property
    def interval(self) -> MeanInterval:
        """Mean and SD of the test scores with their 95 % interval, or the ``reason`` why there is
        none.

        It is for the mean score of the outer folds' models on new samples, by the spread over the
        test samples, or their groups or blocks (`raysel.numerics.inference.sample_interval`). Over
        draws of the training set (``cv.train_per_class``) it is Student's, of the mean over all
        draws from this pool of samples.
        """
        return self.facts.interval

    @property
    def references(self) -> Mapping[str, Reference]:
        """Scores of the references of ``evaluation.references`` on the same outer folds, by name.

        They are ``all features``, ``variance``, ``f_test``, ``confounds alone`` where there are
        confounds, and ``chance``, the best of the guesses that read no feature; those that have no
        score on an outer fold are left out.
        """
        return self.facts.references

    @property
    def optimism(self) -> Mapping[str, float]:
        """Mean scores of the outer folds' winners: ``training``, ``inner`` and ``test``."""
        return self.facts.optimism

    @property
    def report(self) -> dict[str, list[float | None]]:
        """Values of each metric of ``evaluation.report`` on the outer folds' test samples; None
        where undefined.
        """
        return {name: list(values.values) for name, values in self.facts.report.items()}

    @property
    def task_scores(self) -> dict[str, list[float]]:
        """Test scores of each task on each outer fold; empty if the data are one task."""
        by_task = self.facts.by_task.items()
        return {
            name: [value for value in scores.values if value is not None]
            for name, scores in by_task
        }

    @property
    def modality_scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Scores or kernel weights of the modalities in the winner of each fold.

        By fold, then by modality: a number, or a list with one for each class or label in their
        order. Empty if the method weighs no modalities or the data have none.
        """
        return self.facts.modality_scores

    @property
    def fold_redundancy(self) -> Mapping[int, list[float | None]]:
        """Redundancy of each outer fold's best features, by their number; None where there is no
        pair of features.

        It is the mean absolute correlation of pairs over all samples of the data set. Empty if the
        method does not rank features, the data are several tasks, or an earlier version of raysel
        ran the study.
        """
        return {n: list(values.values) for n, values in self.facts.redundancy.items()}

    @property
    def redundancy(self) -> dict[int, float]:
        """Mean of `fold_redundancy` over the outer folds that have one, by the number of
        features; NaN if none has.
        """
        return self.facts.mean_redundancy

    @cached_property
    def rank_overlap(self) -> RankOverlap:
        """Rank-biased overlap of all pairs of outer folds, with 90 % of the weight on the
        `default_top` features.
        """
        return self.fold_ranks.overlap(self.default_top)

    @property
    def winner_convergence(self) -> Convergence:
        """Counts of the winners' refits, including the final one, and of those that met their
        ``tol``.
        """
        return self.facts.fits

    @cached_property
    def coefficients(self) -> Coefficients | None:
        """Coefficients of the final model, read from its file; None if it is not linear in the
        features.
        """
        return Coefficients.of(self)

    # --- tables ------------------------------------------------------------------------------

    def score_curves(self) -> pd.DataFrame:
        """Return inner and test scores for each number of features as a table.

        Returns
        -------
        DataFrame
            One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``,
            ``test_sd`` (over the outer folds) and a column with the mean of each of `references`;
            no rows for the classifier ``native``.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        return pd.DataFrame(self.facts.curve)

    def stability_curve(self) -> pd.DataFrame:
        """Return the stability of the best N features over the outer folds for a range of N.

        Returns
        -------
        DataFrame
            One row for each N, the numbers of ``evaluation.n_features`` and up to 24 others from 1
            to all features: ``n_features``; ``stability`` (Nogueira's; NaN where every fold selects
            all features or none); ``noise``, ``noise_lowest`` and ``noise_highest`` (mean and range
            for an F-test ranking of permuted labels on the same folds; NaN if an earlier version of
            raysel ran the study); ``undefined_because``.

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
            One row an outer fold that has been refitted: ``outer_fold``, ``winner``, ``n_features``
            (the chosen number of best features), ``training_<metric>``, ``inner_<metric>``,
            ``test_<metric>``, ``test_<name>`` for each metric of ``evaluation.report``,
            ``features_with_score``, ``redundancy`` (of the `default_top` features, over all
            samples) and ``converged``.
        """
        import pandas as pd  # noqa: PLC0415

        metric, evaluation, top = self.metric, self.config["evaluation"], self.default_top
        report, sizes = evaluation.get("report", ()), evaluation.get("n_features") or (top,)
        scores = ["training", "inner", "test"]
        kinds = {
            "n_features": "Int64",
            f"training_{metric}": "float64",
            "features_with_score": "Int64",
        }
        kinds |= {"redundancy": "float64", **{f"test_{name}": "float64" for name in report}}
        rows = []
        refits = self.stored.refits
        for refit in (
            refits[fold] for fold in self.stored.study.folds if fold in refits and fold != FINAL
        ):
            redundancy = dict(zip(sizes, refit.redundancy, strict=False)).get(top)
            values = refit.feature_scores
            n_scored = None if values is None else sum(score > 0 for score in values)
            row = [
                refit.fold,
                refit.name,
                refit.n_features,
                refit.training_score,
                refit.inner_score,
                refit.test_score,
            ]
            rows.append([*row, *map(refit.reported, report), n_scored, redundancy, refit.converged])
        columns = ["outer_fold", "winner", "n_features", *(f"{name}_{metric}" for name in scores)]
        columns += [
            *(f"test_{name}" for name in report),
            "features_with_score",
            "redundancy",
            "converged",
        ]
        return pd.DataFrame(rows, columns=columns).astype(kinds)

    def trials(self) -> pd.DataFrame:
        """Return the trials that have ended as a table, the best validation score first.

        Returns
        -------
        DataFrame
            One row a trial: ``trial`` (its id), ``outer_fold`` (in an adaptive search),
            ``param_*``, ``status``, ``val_<metric>`` (mean over the outer folds, for display only),
            ``val_<metric>/<fold>`` for each outer fold and the final one, ``objective``,
            ``converged`` (share of the inner fits that met ``tol``), ``seconds`` (missing if the
            search is along a path, where configurations have no time of their own) and ``error``.
        """
        import pandas as pd  # noqa: PLC0415

        score = f"val_{self.metric}"
        if not self.records:
            return pd.DataFrame(
                columns=["trial", "status", score, "objective", "converged", "seconds", "error"]
            )
        frame = pd.DataFrame([_trial_row(record, self.stored) for record in self.records])
        return frame.sort_values(score, ascending=False, kind="stable", ignore_index=True)

    def traces(self) -> pd.DataFrame:
        """Return objective and scores of every inner fit by iteration.

        Returns
        -------
        DataFrame
            One row an iteration: ``trial``, ``configuration``, ``fold``, ``inner``, ``iteration``,
            ``objective`` and one ``score`` column for each number of features.
        """
        return trace_table(self.records, self.stored.study.labels).to_pandas()


def _trial_row(record: TrialRecord, stored: StoredStudy) -> dict[str, Any]:
    metric, rule, fits = stored.study.metric, stored.study.choose_n, record.convergence()
    last = {
        name: curve[-1] for name, curve in record.curves(metric, stored.study.labels, rule).items()
    }
    # Not from the curves, whose sums are in another order: the winner's score is the inner score to
    # the last bit.
    scores = {
        f"val_{metric}/{fold}": trace.score(rule)
        for fold, trace in record.folds.items()
        if not trace.error
    }
    return {
        "trial": record.id,
        **({"outer_fold": record.fold} if record.fold else {}),
        **{f"param_{name}": value for name, value in record.params.items()},
        "status": record.status,
        f"val_{metric}": last.get(f"val_{metric}"),
        **scores,
        "objective": last.get("objective"),
        "converged": fits.n_converged / fits.n_fits if fits.n_fits else None,
        # Along a path all configurations are fitted together.
        "seconds": np.nan if stored.paths else max(0.0, record.ended - record.started),
        "error": headline(record.failure) or "; ".join(map(str, failing_in_trials([record]))),
    }
