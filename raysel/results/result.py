"""Result of a study, finished or not, read from its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.base.models import load_model
from raysel.cv.convergence import Convergence
from raysel.cv.plan import FINAL
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.data.layouts import Layout, Tasks, layout_from_json
from raysel.errors import ConfigError, DataError, StudyError, UnfinishedStudyError
from raysel.metrics.ranks import selection_ranks
from raysel.metrics.stability import Stability
from raysel.ranking.agreement import FoldRanks, RankOverlap
from raysel.ranking.feature_ranking import FeatureRanking, default_n_selected
from raysel.results import scores, tables, trust, words
from raysel.results.error_control.permutation import PermutationTest, read_permutation_test
from raysel.results.error_control.stability_files import FOLDER, read_stability_selection
from raysel.results.error_control.stability_selection import StabilitySelection
from raysel.results.pictures import drawing as pictures
from raysel.results.remarks import (
    convergence_remarks,
    final_remarks,
    fit_remarks,
    largest_number_remarks,
    model_remarks,
    ranking_remarks,
    search_remarks,
    selection_remarks,
)
from raysel.results.scores import Reference
from raysel.statistics.intervals import MeanInterval
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.uploader import tracking_status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """Scores, trials, ranking and model of a study.

    Parameters
    ----------
    stored : StoredStudy
        The study as restored from its journal.
    """

    stored: StoredStudy

    @classmethod
    def open(cls, path: str | Path) -> StudyResult:
        """Read a study from its directory.

        Parameters
        ----------
        path : str or Path
            Directory of the study.

        Returns
        -------
        StudyResult
            Result of the study as far as it has run.

        Raises
        ------
        DirectoryError
            If the directory holds no study, or its journal is damaged.
        """
        directory = StudyDirectory(Path(path))
        stored = StoredStudy.read(directory)
        if stored.status == "killed" and directory.lock.exists() and directory.is_running():
            stored = replace(stored, status="running")
        return cls(stored)

    # --- definition --------------------------------------------------------------------------

    @property
    def directory(self) -> StudyDirectory:
        """Directory of the study with the paths of its files."""
        return self.stored.directory

    @property
    def path(self) -> Path:
        """Path of the study's directory."""
        return self.stored.directory.path

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.stored.study.name

    @property
    def status(self) -> str:
        """State of the study when it was opened: ``finished``, ``failed``, ``interrupted``, ``running`` or ``killed``.

        A study without a recorded end is ``running`` if a process holds the lock of its directory, else ``killed``.
        """
        return self.stored.status

    @property
    def config(self) -> Mapping[str, Any]:
        """Configuration of the study as plain data."""
        return self.stored.study.config

    @property
    def metric(self) -> str:
        """Name of the score."""
        return self.stored.study.metric

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features, in the order of the columns."""
        return self.stored.study.feature_names

    @cached_property
    def layout(self) -> Layout:
        """Arrangement of the data's columns."""
        return layout_from_json(self.stored.study.layout)

    @cached_property
    def constant(self) -> BoolArray:
        """Mask of the features that have the same value in all samples, shape (n_features,)."""
        found = np.zeros(len(self.feature_names), dtype=bool)
        found[list(self.stored.study.constant)] = True
        return found

    @property
    def tracking(self) -> Mapping[str, Any]:
        """State of the upload to MLflow: ``complete``, ``error``, ``logged``, ``experiment_id``, ``study_run_id``."""
        return tracking_status(self.directory)

    # --- scores ------------------------------------------------------------------------------

    @cached_property
    def refits(self) -> list[RefitRecord]:
        """Refits of the winners in the order of the outer folds, the final one last if there is one.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        """
        study, refits = self.stored.study, self.stored.refits
        if self.status != "finished" or set(refits) != set(study.folds):
            raise UnfinishedStudyError(self.path, self.stored.n_trials, study.n_trials)
        return [refits[fold] for fold in study.folds]

    @property
    def outer(self) -> list[RefitRecord]:
        """Refits of the outer folds' winners, each with its test score."""
        return [refit for refit in self.refits if refit.fold != FINAL]

    @property
    def has_final(self) -> bool:
        """Whether there is a final fold, and so a model; ``cv.final: false`` leaves it out."""
        return FINAL in self.stored.study.folds

    @property
    def final(self) -> RefitRecord:
        """Refit of the final fold's winner on all data: the model.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no final fold.
        """
        refits = self.refits
        if not self.has_final:
            raise StudyError(
                f"the study {self.name} has no final model, because cv.final is false; for a model and its ranking "
                "run a study with cv.final: true."
            )
        return next(refit for refit in refits if refit.fold == FINAL)

    @property
    def test_scores(self) -> list[float]:
        """Test score of each outer fold's winner, at the number of features that its inner scores choose.

        The mean over the numbers of features if ``evaluation.choose_n`` is ``mean``, or over the tasks.
        """
        return [score for refit in self.outer if (score := refit.test_score) is not None]

    @property
    def inner_scores(self) -> list[float]:
        """Inner score of each outer fold's winner."""
        return [refit.inner_score for refit in self.outer]

    @property
    def test_mean(self) -> float:
        """Mean of the test scores over the outer folds, which estimates the score on new samples."""
        return float(np.mean(self.test_scores))

    @property
    def test_sd(self) -> float:
        """Sample standard deviation of the test scores over the outer folds."""
        return float(np.std(self.test_scores, ddof=1))

    @cached_property
    def interval(self) -> MeanInterval:
        """Mean and SD of the test scores with the corrected 95 % interval, or the ``reason`` why there is none."""
        return scores.score_interval(self.outer)

    @cached_property
    def references(self) -> dict[str, Reference]:
        """Scores of the references of ``evaluation.references`` on the same outer folds, by name.

        They are ``all features``, ``variance``, ``f_test`` and ``chance``; those that have no score on an outer fold
        are left out.
        """
        return scores.references(self.outer)

    @cached_property
    def optimism(self) -> dict[str, float]:
        """Mean scores of the outer folds' winners: ``training``, ``inner`` and ``test``."""
        return scores.optimism(self.outer)

    def score_curves(self) -> pd.DataFrame:
        """Return inner and test scores for each number of features as a table.

        Returns
        -------
        DataFrame
            One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``, ``test_sd`` (over the outer
            folds) and a column with the mean of each of `references`; no rows for the classifier ``native``.
        """
        listed = self.config["evaluation"].get("n_features") or ()
        return scores.score_curves(self.outer, () if self.config["evaluation"]["classifier"] == "native" else listed)

    @cached_property
    def report(self) -> dict[str, list[float | None]]:
        """Values of each metric of ``evaluation.report`` on the outer folds' test samples; None where undefined."""
        names = self.config["evaluation"].get("report", ())
        return {name: [refit.reported(name) for refit in self.outer] for name in names}

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes, those of all tasks, or of the labels; empty if an earlier version ran the study."""
        return self.stored.study.classes

    @cached_property
    def confusion(self) -> IntArray | None:
        """Test samples of all outer folds by true and predicted class, at each fold's number of features.

        Shape (n_classes, n_classes), rows and columns in the order of `classes`; for several labels a sample one row
        ``[tn, fp, fn, tp]`` a label. A sample counts once for each outer fold that tests it. None if an earlier
        version of raysel ran the study.
        """
        counts = [refit.confusion for refit in self.outer]
        return np.sum(counts, axis=0) if counts and all(counts) else None

    @cached_property
    def task_scores(self) -> dict[str, list[float]]:
        """Test scores of each task on each outer fold; empty if the data are one task."""
        if not isinstance(self.layout, Tasks):
            return {}
        by_task = zip(*(refit.test_scores for refit in self.outer), strict=True)
        return {name: list(scores) for name, scores in zip(self.layout.tasks, by_task, strict=True)}

    # --- trials ------------------------------------------------------------------------------

    @property
    def records(self) -> list[TrialRecord]:
        """Records of the trials, in the order in which they ended."""
        return self.stored.trials

    @property
    def n_trials(self) -> dict[str, int]:
        """Number of trials in each state."""
        statuses = [record.status for record in self.records]
        return {status: statuses.count(status) for status in ("finished", "null", "stopped", "failed")}

    @property
    def cut(self) -> bool:
        """Whether ``search.time_budget`` ended the search before all trials were made."""
        return self.stored.search is not None and self.stored.search.cut

    @cached_property
    def winner_convergence(self) -> Convergence:
        """Counts of the winners' refits, including the final one, and of those that met their ``tol``."""
        return Convergence.of(self.refits)

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
            One row an iteration: ``trial``, ``configuration``, ``fold``, ``inner``, ``iteration``, ``objective``
            and one ``score`` column for each number of features.
        """
        return tables.trace_frame(self.stored)

    # --- ranking -----------------------------------------------------------------------------

    @cached_property
    def unranked_folds(self) -> list[str]:
        """Names of the folds whose winner gives no feature scores; all folds if the method does not rank features."""
        return [refit.fold for refit in self.refits if refit.feature_scores is None]

    @property
    def ranks_features(self) -> bool:
        """Whether every winner gives feature scores."""
        return not self.unranked_folds

    @property
    def is_ranked(self) -> bool:
        """Whether there is a ranking: every winner gives feature scores, and one is the final model."""
        return self.ranks_features and self.has_final

    @cached_property
    def n_scored(self) -> dict[str, int]:
        """Number of features with a score above 0 in each fold's winner, by fold, including the final fold."""
        if not self.ranks_features:
            return {}
        return {refit.fold: int((self._usable(refit) > 0).sum()) for refit in self.refits}

    def _usable(self, refit: RefitRecord) -> FloatArray:
        """Feature scores of a winner, 0 for features that are constant in the data."""
        return np.where(self.constant, 0.0, np.array(refit.feature_scores))

    @cached_property
    def default_top(self) -> int:
        """Number of features that count as selected by default.

        That of the final model, or the median of the outer folds' where there is none yet; the middle value of
        ``evaluation.n_features``, else a tenth of all features, where none was chosen.
        """
        refits = self.stored.refits
        chosen = {fold: refit.n_features for fold, refit in refits.items() if refit.n_features is not None}
        if FINAL in chosen:
            return chosen[FINAL]
        if chosen:
            return int(np.quantile(list(chosen.values()), 0.5, method="lower"))
        return default_n_selected(self.config["evaluation"].get("n_features") or (), len(self.feature_names))

    @property
    def n_features(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold; empty for the classifier ``native``."""
        return {refit.fold: refit.n_features for refit in self.refits if refit.n_features is not None}

    def stability(self, top: int | None = None) -> Stability:
        """Return the stability of the features that the outer folds' winners select; it needs no final model.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        Stability
            Nogueira's stability; its interval assumes independent folds, and is NaN for two.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features.
        """
        self._check_ranks(top)
        return self.fold_ranks.stability(top or self.default_top)

    @cached_property
    def fold_ranks(self) -> FoldRanks:
        """Ranks of the features in the outer folds' winners; an error as of `stability` if there are none."""
        self._check_ranks(None)
        ranks = np.array([selection_ranks(self._usable(refit)) for refit in self.outer])
        names = tuple(refit.fold for refit in self.outer)
        n_scored = np.array([self.n_scored[name] for name in names])
        return FoldRanks(ranks, n_scored, names, int((~self.constant).sum()))

    def stability_curve(self) -> pd.DataFrame:
        """Return the stability of the best N features over the outer folds for a range of N.

        Returns
        -------
        DataFrame
            One row for each N, the numbers of ``evaluation.n_features`` and up to 24 others from 1 to all features:
            ``n_features``; ``stability`` (Nogueira's; NaN where every fold selects all features or none);
            ``lower`` and ``upper`` (its 95 % interval, which assumes independent folds and is too narrow for those of
            a cross-validation; NaN for two folds); ``chance``, ``chance_lower`` and ``chance_upper`` (exact mean and
            95 % range of independent random rankings of the features that are not constant; folds that share samples
            agree more even on noise); ``undefined_because``.
        """
        return trust.stability_curve(self)

    @cached_property
    def rank_overlap(self) -> RankOverlap:
        """Rank-biased overlap of all pairs of outer folds, with 90 % of the weight on the `default_top` features."""
        return self.fold_ranks.overlap(self.default_top)

    def consensus_sentence(self, top: int | None = None) -> str:
        """Return how the final model's best features differ from those of the outer folds' consensus, the mean rank.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        str
            One sentence; empty if there is no ranking by a final model.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        """
        self._check_top(top)
        return trust.consensus_words(self, top)

    @cached_property
    def fold_redundancy(self) -> dict[int, list[float | None]]:
        """Redundancy of each outer fold's best features, by their number; None where there is no pair of features.

        It is the mean absolute correlation of pairs over all samples of the data set. Empty if the method does not rank
        features, the data are several tasks, or an earlier version of raysel ran the study.
        """
        sizes = self.config["evaluation"].get("n_features") or (self.default_top,)
        if not all(len(refit.redundancy) == len(sizes) for refit in self.outer):
            return {}
        return {n: [refit.redundancy[i] for refit in self.outer] for i, n in enumerate(sizes)}

    @property
    def redundancy(self) -> dict[int, float]:
        """Mean of `fold_redundancy` over the outer folds that have one, by the number of features; NaN if none has."""
        known = {n: [value for value in own if value is not None] for n, own in self.fold_redundancy.items()}
        return {n: float(np.mean(own)) if own else float("nan") for n, own in known.items()}

    def _check_top(self, top: int | None) -> None:
        """Check the number of features that count as selected."""
        n_all = len(self.feature_names)
        if top is not None and (not isinstance(top, Integral) or isinstance(top, bool) or not 1 <= top <= n_all):
            given = int(top) if isinstance(top, np.integer) else repr(top)
            raise ConfigError(f"top={given} must be a whole number between 1 and the {n_all} features of the study.")

    def _check_ranks(self, top: int | None) -> None:
        """Check that all winners rank the features, and the number of features that count as selected."""
        if not self.ranks_features:
            raise StudyError(
                f"the study {self.name} has no ranking: its method gives no feature scores. Use a method that does."
            )
        self._check_top(top)

    def ranking(self, top: int | None = None, by: str = FINAL) -> FeatureRanking:
        """Return a ranking of the features, with the ranks of the outer folds' winners.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; by default that of the fold whose ranking it is, else
            `default_top`.
        by : str, default="final"
            Whose ranking: ``"final"`` (the final model), ``"consensus"`` (mean rank over the outer folds) or the name
            of an outer fold.

        Returns
        -------
        FeatureRanking
            Ranking of all features.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features, or ``by`` is none of these.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features, or ``by`` is ``"final"`` and the study has no final fold.
        """
        self._check_ranks(top)
        return trust.source_ranking(self, top, by)

    @property
    def added_columns(self) -> dict[str, FloatArray]:
        """Columns that `raysel.stability_selection` and `raysel.permutation_test` add to the ranking's table."""
        added: dict[str, FloatArray] = {}
        if self.stability_selection is not None:
            added["selection_probability"] = self.stability_selection.probability
        if self.permutation_test is not None:
            added |= self.permutation_test.ranking_columns()
        return added

    @cached_property
    def stability_selection(self) -> StabilitySelection | None:
        """Selection probabilities, the set and its bounds as `raysel.stability_selection` last found them.

        None if it has not run, or if the final model has changed since then.
        """
        if not self.has_final:
            return None
        found = read_stability_selection(self.path / FOLDER, self.constant)
        now = {"winner": dict(self.final.params), "data_hash": self.stored.study.data_hash}
        return found if found is not None and found.identity == now else None

    @cached_property
    def permutation_test(self) -> PermutationTest | None:
        """P values of the honest score and of the features as `raysel.permutation_test` last found them.

        None if it has not run, or if a winner has changed since then.
        """
        return read_permutation_test(self)

    def remarks(self, top: int | None = None) -> list[str]:
        """Return remarks on the limitations of the result, and on its data.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        list of str
            One sentence for each limitation.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        """
        self._check_top(top)
        return [
            *search_remarks(self.records, self.stored.search),
            *ranking_remarks(self.unranked_folds, len(self.refits)),
            *(
                model_remarks(self.directory.model.exists(), self.stored.study.untrusted)
                if self.has_final
                else final_remarks()
            ),
            *selection_remarks(self.n_scored, top or self.default_top),
            *largest_number_remarks(
                self.n_features if self.stored.study.choose_n != "mean" else {},
                self.config["evaluation"].get("n_features") or (),
                self.n_scored,
            ),
            *convergence_remarks(self.records, self.refits),
            *fit_remarks(self.refits),
            *(self.stability_selection.remarks() if self.stability_selection else ()),
            *self.stored.mixed,
            *self.stored.study.data_remarks,
        ]

    # --- model and pictures ------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """Fitted pipeline of scaler, feature selector and classifier, read from ``model.skops`` without unpickling.

        It is the pipeline that was scored on the outer folds, fitted to all samples: see `FeaturePipeline`. In studies
        of raysel 0.1 and 0.2 it is another: the scaler and the method with all features.

        The file holds training samples where the classifier needs them to predict: the selected features of all samples
        for ``knn``, all features for kernel and nearest-neighbour methods with ``native``.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no final fold.
        DataError
            If the file is missing or damaged, or names a class that is not trusted.
        """
        return self.fold_model(self.final.fold)

    def fold_model(self, fold: str) -> Any:
        """Return the pipeline that was scored on an outer fold, read from ``folds/<fold>.skops`` without unpickling.

        Parameters
        ----------
        fold : str
            Name of the fold, e.g. ``"outer0"``; ``"final"`` for `model`.

        Returns
        -------
        FeaturePipeline
            Fitted pipeline of scaler, feature selector and classifier. Its score on the fold's test samples is the
            recorded one.

        Raises
        ------
        ConfigError
            If the study has no such fold.
        UnfinishedStudyError
            If the study has not finished.
        DataError
            If the file is missing or damaged, or names a class that is not trusted.
        """
        known = [refit.fold for refit in self.refits]
        if fold not in known:
            raise ConfigError(f"fold={fold!r} is not a fold of the study {self.name}: give one of {', '.join(known)}.")
        path = self.directory.fold_model(fold)
        if not path.exists():
            untrusted = self.stored.study.untrusted
            reason = (
                f"a model file must not name {', '.join(untrusted)}"
                if untrusted
                else "an earlier version of raysel ran the study, or the file was removed; resume the study to write it"
            )
            raise DataError(f"the study {self.name} has no model of {fold}: {reason}.")
        return load_model(path)

    def plot_ranking(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the scores of the final model: a map for matrix-shaped samples, else bars of the best features.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        from raysel.display.plots import plot_ranking  # noqa: PLC0415 - loads matplotlib

        return plot_ranking(self.ranking(top), self.layout, ax)

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draw the mean objective of each configuration by iteration, the final model's in colour.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        from raysel.display.plots import plot_convergence  # noqa: PLC0415

        final = self.stored.refits.get(FINAL)
        return plot_convergence(self.records, final.trial if final else None, ax)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw test and inner score over the number of features, or as bars if there are not several numbers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return pictures.plot_scores(self, ax)

    def plot_stability(self, ax: Any = None) -> Any:
        """Draw the stability of the outer folds' best features over their number.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study's method does not rank features.
        """
        return pictures.plot_stability(self, ax)

    def plot_search(self, ax: Any = None) -> Any:
        """Draw the validation score over the two hyperparameters that vary it the most, the best over the others.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return pictures.plot_search(self, ax)

    def plot_confusion(self, ax: Any = None) -> Any:
        """Draw the confusion of the classes on the outer folds' test samples, or the errors of each label.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study recorded no confusion, because an earlier version of raysel ran it.
        """
        return pictures.plot_confusion(self, ax)

    def plot_profile(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the coefficients of the final model's best features by class.

        Parameters
        ----------
        top : int, optional
            Number of features; `default_top` by default.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the method has no coefficient for each feature, or the study has no final fold.
        DataError
            If there is no model file.
        """
        return pictures.plot_profile(self, top, ax)

    def __repr__(self) -> str:
        table = self.summary()
        return f"{self._headline()}\n{table.to_string(index=False)}" if len(table) else self._headline()

    def _repr_html_(self) -> str:
        table = self.summary()
        return f"<p>{escape(self._headline())}</p>{table.to_html(index=False) if len(table) else ''}"

    def _headline(self) -> str:
        if self.status != "finished":
            when = "with" if self.status == "running" else "after"
            done = f"{self.stored.n_trials} of {self.stored.study.n_trials} trials"
            return f"StudyResult({self.name}, {self.status} {when} {done})"
        return f"StudyResult({self.name}, {words.headline(self)})"
