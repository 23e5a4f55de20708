"""Scores, trials and winners of a study, finished or not, computed from the records of its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from raysel.base.models import load_model
from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import ConfigError, DataError, StudyError, UnfinishedStudyError
from raysel.data.layouts import Layout, layout_from_json
from raysel.evaluation.agreement import FoldRanks, RankOverlap
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import Convergence, RefitRecord, TrialRecord
from raysel.numerics.intervals import MeanInterval
from raysel.numerics.rankings import Stability, selection_ranks
from raysel.results import scores, tables
from raysel.results.scores import Reference
from raysel.results.stability import FOLDER, StabilitySelection, read_stability_selection
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.uploader import tracking_status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyNumbers:
    """Scores, trials, ranks and models of a study; `StudyResult` adds rankings, remarks and plots."""

    #: The study as restored from its journal.
    stored: StoredStudy

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read a study from its directory."""
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
        """Refits of the winners in the order of the outer folds, the final one last if there is one."""
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
        """Refit of the final fold's winner on all data: the model."""
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
        """Mean and SD of the test scores with their 95 % interval, or the ``reason`` why there is none.

        It is corrected for the training sets that the outer folds share; over draws of the training set
        (``cv.train_per_class``) it is the plain one, of the mean over all draws from this pool of samples.
        """
        return scores.score_interval(self.outer, self.metric)

    @cached_property
    def references(self) -> dict[str, Reference]:
        """Scores of the references of ``evaluation.references`` on the same outer folds, by name.

        They are ``all features``, ``variance``, ``f_test`` and ``chance``, the better of the most frequent class and a
        stratified guess; those that have no score on an outer fold are left out.
        """
        return scores.references(self.outer, self.metric)

    def reference_n_features(self, name: str) -> list[int]:
        """Number of features of a reference on each outer fold; empty where it has none to choose."""
        recorded, sizes = self.references[name].recorded, self.config["evaluation"].get("n_features") or ()
        found = [refit.reference_positions.get(recorded, refit.position) for refit in self.outer]
        if name in ("all features", "chance") or not sizes:
            return []
        return [sizes[position] for position in found if position is not None]

    @cached_property
    def optimism(self) -> dict[str, float]:
        """Mean scores of the outer folds' winners: ``training``, ``inner`` and ``test``."""
        return scores.optimism(self.outer)

    def score_curves(self) -> pd.DataFrame:
        """Return inner and test scores for each number of features as a table.

        One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``, ``test_sd`` (over the outer
        folds) and a column with the mean of each of `references`; no rows for the classifier ``native``.
        """
        listed = self.config["evaluation"].get("n_features") or ()
        native = self.config["evaluation"]["classifier"] == "native"
        return scores.score_curves(self.outer, () if native else listed, self.metric)

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
        if not (tasks := self.layout.task_names):
            return {}
        by_task = zip(*(refit.test_scores for refit in self.outer), strict=True)
        return {name: list(scores) for name, scores in zip(tasks, by_task, strict=True)}

    @property
    def modality_scores(self) -> dict[str, dict[str, Any]]:
        """Scores or kernel weights of the modalities in the winner of each fold.

        By fold, then by modality: a number, or a list with one for each class or label in their order. Empty if the
        method weighs no modalities or the data have none.
        """
        names = list(self.layout.slices())
        return {
            refit.fold: dict(zip(names, refit.modality_scores, strict=True))
            for refit in self.refits
            if refit.modality_scores and len(refit.modality_scores) == len(names)
        }

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

        One row an outer fold that has been refitted: ``outer_fold``, ``winner``, ``n_features`` (the chosen number of
        best features), ``training_<metric>``, ``inner_<metric>``, ``test_<metric>``, ``test_<name>`` for each metric of
        ``evaluation.report``, ``features_with_score``, ``redundancy`` (of the `default_top` features, over all samples)
        and ``converged``.
        """
        return tables.summary_table(self.stored, self.default_top)

    def trials(self) -> pd.DataFrame:
        """Return the trials that have ended as a table, the best validation score first.

        One row a trial: ``trial`` (its id), ``outer_fold`` (in an adaptive search), ``param_*``, ``status``,
        ``val_<metric>`` (mean over the outer folds, for display only), ``val_<metric>/<fold>`` for each outer fold and
        the final one, ``objective``, ``converged`` (share of the inner fits that met ``tol``), ``seconds`` (missing if
        the search is along a path, where configurations have no time of their own) and ``error``.
        """
        return tables.trial_frame(self.stored)

    def traces(self) -> pd.DataFrame:
        """Return objective and scores of every inner fit by iteration.

        One row an iteration: ``trial``, ``configuration``, ``fold``, ``inner``, ``iteration``, ``objective`` and one
        ``score`` column for each number of features.
        """
        return tables.trace_frame(self.stored)

    # --- ranks -------------------------------------------------------------------------------

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
        """Return the stability of the features that the outer folds' winners select; it needs no final model."""
        self.check_ranks(top)
        return self.fold_ranks.stability(top or self.default_top)

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
    def fold_ranks(self) -> FoldRanks:
        """Ranks of the features in the outer folds' winners; an error as of `stability` if there are none."""
        self.check_ranks()
        ranks = np.array([selection_ranks(self._usable(refit)) for refit in self.outer])
        names = tuple(refit.fold for refit in self.outer)
        n_scored = np.array([self.n_scored[name] for name in names])
        return FoldRanks(ranks, n_scored, names)

    @cached_property
    def rank_overlap(self) -> RankOverlap:
        """Rank-biased overlap of all pairs of outer folds, with 90 % of the weight on the `default_top` features."""
        return self.fold_ranks.overlap(self.default_top)

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

    def check_ranks(self, top: int | None = None) -> None:
        """Check that all winners rank the features, and the number of features that count as selected."""
        if not self.ranks_features:
            raise StudyError(
                f"the study {self.name} has no ranking: its method gives no feature scores. Use a method that does."
            )
        self.check_top(top)

    def check_top(self, top: int | None) -> None:
        """Check the number of features that count as selected."""
        n_all = len(self.feature_names)
        if top is not None and (not isinstance(top, Integral) or isinstance(top, bool) or not 1 <= top <= n_all):
            given = int(top) if isinstance(top, np.integer) else repr(top)
            raise ConfigError(f"top={given} must be a whole number between 1 and the {n_all} features of the study.")

    # --- models ------------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """Fitted pipeline of scaler, feature selector and classifier, read from ``model.skops`` without unpickling.

        It is the pipeline that was scored on the outer folds, fitted to all samples: see `FeaturePipeline`. In studies
        of raysel 0.1 and 0.2 it is another: the scaler and the method with all features.

        The file holds training samples where the classifier needs them to predict: the selected features of all samples
        for ``knn``, all features for kernel and nearest-neighbour methods with ``native``.
        """
        return self.fold_model(self.final.fold)

    def fold_model(self, fold: str) -> Any:
        """Return the pipeline that was scored on an outer fold, read from ``folds/<fold>.skops`` without unpickling."""
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
