"""Definition, trials, winners and models of a study, finished or not, from the records of its
journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np

from raysel.base.models import read_model
from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import ConfigError, DataError, StudyError, UnfinishedStudyError
from raysel.core.trust import is_trusted
from raysel.data.layouts import Layout, layout_from_json
from raysel.evaluation.agreement import FoldRanks
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.numerics.rankings import Stability, selection_ranks
from raysel.results.permutation import FOLDER as PERMUTATION
from raysel.results.permutation import PermutationTest, identity, read_permutation_test
from raysel.results.stability import FOLDER, StabilitySelection, read_stability_selection
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal_upload import tracking_status


@dataclass(frozen=True, eq=False, repr=False)
class StudyRecords:
    """Definition, trials, winners, ranks and models of a study; `StudyNumbers` adds scores and
    tables.
    """

    #: The study as restored from its journal.
    stored: StoredStudy
    #: Fitted pipelines of a study that is held in memory, by fold; those of one with a directory
    #: are read from it.
    models: Mapping[str, Any] = field(default_factory=dict)
    #: Whether to read models that this account has not signed.
    trust: bool = False

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read a study from its directory.

        Parameters
        ----------
        path : str or Path
            Directory of the study.
        trust : bool, default=False
            Whether to read models that this account has not signed, see `raysel.load_model`.

        Returns
        -------
        StudyResult
            The study as far as it has run.

        Raises
        ------
        DirectoryError
            If the directory holds no study, or its journal is damaged.
        """
        directory = StudyDirectory(Path(path))
        stored = StoredStudy.read(directory)
        if stored.status == "killed" and directory.lock.exists() and directory.is_running():
            stored = replace(stored, status="running")
        return cls(stored, trust=trust)

    # --- definition --------------------------------------------------------------------------

    @property
    def directory(self) -> StudyDirectory:
        """Directory of the study with the paths of its files.

        Raises
        ------
        StudyError
            If the study is held in memory.
        """
        return self.stored.directory

    @property
    def in_memory(self) -> bool:
        """Whether the study has no directory, as that of a `raysel.NestedSearch` without
        ``path``.
        """
        return self.stored.read_from is None

    @property
    def has_model(self) -> bool:
        """Whether `model` can be had: from the directory, or from memory."""
        return FINAL in self.models or (not self.in_memory and self.directory.model.exists())

    @cached_property
    def is_trusted(self) -> bool:
        """Whether `model` may be read: this account has signed it, or ``trust`` was given."""
        return FINAL in self.models or self.trust or is_trusted(self.directory.model)

    @property
    def path(self) -> Path:
        """Path of the study's directory."""
        return self.directory.path

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.stored.study.name

    @property
    def status(self) -> str:
        """State of the study when it was opened: ``finished``, ``failed``, ``interrupted``,
        ``running`` or ``killed``.

        A study without a recorded end is ``running`` if a process holds the lock of its directory,
        else ``killed``.
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
        mask = np.zeros(len(self.feature_names), dtype=bool)
        mask[list(self.stored.study.constant)] = True
        return mask

    @property
    def tracking(self) -> Mapping[str, Any]:
        """State of the upload to MLflow: ``complete``, ``error``, ``logged``, ``experiment_id``,
        ``study_run_id``.
        """
        return tracking_status(self.directory)

    # --- winners ------------------------------------------------------------------------------

    @cached_property
    def refits(self) -> list[RefitRecord]:
        """Refits of the winners in the order of the outer folds, the final one last if there is
        one.

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
                f"the study {self.name} has no final model, because cv.final is false; for a model"
                " and its ranking run a study with cv.final: true."
            )
        return next(refit for refit in refits if refit.fold == FINAL)

    @property
    def test_scores(self) -> list[float]:
        """Test score of each outer fold's winner, at the number of features that its inner scores
        choose.

        The mean over the numbers of features if ``evaluation.choose_n`` is ``mean``, or over the
        tasks.
        """
        return [score for refit in self.outer if (score := refit.test_score) is not None]

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes, those of all tasks, or of the labels; empty if an earlier
        version ran the study.
        """
        return self.stored.study.classes

    @cached_property
    def confusion(self) -> IntArray | None:
        """Test samples of all outer folds by true and predicted class, at each fold's number of
        features.

        Shape (n_classes, n_classes), rows and columns in the order of `classes`; for several labels
        a sample one row ``[tn, fp, fn, tp]`` a label. A sample counts once for each outer fold that
        tests it. None if an earlier version of raysel ran the study.
        """
        counts = [refit.confusion for refit in self.outer]
        return np.sum(counts, axis=0) if counts and all(counts) else None

    @cached_property
    def predictions(self) -> FloatArray | None:
        """True and predicted quantities of the test samples of all outer folds, at each fold's
        number of features.

        Shape (n_samples, n_quantities, 2), fold by fold. None for classes.
        """
        pairs = [
            np.array(refit.predictions, dtype=np.float64)
            for refit in self.outer
            if refit.predictions
        ]
        if not pairs or len(pairs) < len(self.outer):
            return None
        joined: FloatArray = np.concatenate(pairs)
        return joined[:, None] if joined.ndim == 2 else joined

    @property
    def has_labels(self) -> bool:
        """Whether `confusion` has a row for each label rather than a row and a column for each
        class.
        """
        if (counts := self.confusion) is None or len(counts) == 1:
            return False
        # In a table of labels every row counts all test samples; in one of classes all rows
        # together do.
        n_test = sum(refit.n_test for refit in self.outer)
        return counts.shape != (len(counts), len(counts)) or bool(
            n_test and (counts.sum(axis=1) == n_test).all()
        )

    # --- trials ------------------------------------------------------------------------------

    @property
    def records(self) -> list[TrialRecord]:
        """Records of the trials, in the order in which they ended."""
        return self.stored.trials

    @property
    def n_trials(self) -> dict[str, int]:
        """Number of trials in each state."""
        statuses = [record.status for record in self.records]
        return {
            status: statuses.count(status) for status in ("finished", "null", "stopped", "failed")
        }

    @property
    def cut(self) -> bool:
        """Whether ``search.time_budget`` ended the search before all trials were made."""
        return self.stored.search is not None and self.stored.search.cut

    # --- ranks -------------------------------------------------------------------------------

    @cached_property
    def unranked_folds(self) -> list[str]:
        """Names of the folds whose winner gives no feature scores; all folds if the method does
        not rank features.
        """
        return [refit.fold for refit in self.refits if refit.feature_scores is None]

    @property
    def ranks_features(self) -> bool:
        """Whether every winner gives feature scores."""
        return not self.unranked_folds

    @property
    def is_ranked(self) -> bool:
        """Whether there is a ranking: every winner gives feature scores, and one is the final
        model.
        """
        return self.ranks_features and self.has_final

    @cached_property
    def n_scored(self) -> dict[str, int]:
        """Number of features with a score above 0 in each fold's winner, by fold, including the
        final fold.
        """
        if not self.ranks_features:
            return {}
        return {
            refit.fold: sum(score > 0 for score in refit.feature_scores or ())
            for refit in self.refits
        }

    @cached_property
    def default_top(self) -> int:
        """Number of features that count as selected by default.

        That of the final model, or the median of the outer folds' where there is none yet; the
        middle value of ``evaluation.n_features``, else a tenth of all features, where none was
        chosen.
        """
        refits = self.stored.refits
        chosen = {
            fold: refit.n_features for fold, refit in refits.items() if refit.n_features is not None
        }
        if FINAL in chosen:
            return chosen[FINAL]
        if chosen:
            return int(np.quantile(list(chosen.values()), 0.5, method="lower"))
        return default_n_selected(
            self.config["evaluation"].get("n_features") or (), len(self.feature_names)
        )

    @property
    def n_features(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold; empty for the
        classifier ``native``.
        """
        return {
            refit.fold: refit.n_features for refit in self.refits if refit.n_features is not None
        }

    @property
    def n_candidates(self) -> int:
        """Number of features that can be selected: all columns but the confounds, which are the
        last ones.
        """
        return len(self.feature_names) - self.layout.n_beside

    def stability(self, top: int | None = None) -> Stability:
        """Return the stability of the features that the outer folds' winners select; it needs no
        final model.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        Stability
            Nogueira's stability.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features.
        """
        self.check_ranks(top)
        return self.fold_ranks.stability(top or self.default_top)

    @cached_property
    def stability_selection(self) -> StabilitySelection | None:
        """Selection probabilities, the set and its bounds as `raysel.stability_selection` last
        found them.

        None if it has not run, or if the final model has changed since then.
        """
        if not self.has_final or self.in_memory:
            return None
        beside = np.arange(len(self.feature_names)) >= self.n_candidates
        selection = read_stability_selection(
            self.path / FOLDER, self.constant | beside, self.n_candidates
        )
        now = {"winner": dict(self.final.params), "data_hash": self.stored.study.data_hash}
        return selection if selection is not None and selection.identity == now else None

    @cached_property
    def permutation_test(self) -> PermutationTest | None:
        """P values of the honest score and of the features as `raysel.permutation_test` last found
        them.

        None if it has not run, or if a winner has changed since then.
        """
        if self.status != "finished" or self.in_memory:
            return None
        now = identity(self.refits, self.stored.study.data_hash)
        names = self.feature_names
        return read_permutation_test(
            self.path / PERMUTATION, names[: self.n_candidates], now, n_rows=len(names)
        )

    @cached_property
    def fold_ranks(self) -> FoldRanks:
        """Ranks of the features in the outer folds' winners; an error as of `stability` if there
        are none.
        """
        self.check_ranks()
        ranks = np.array([selection_ranks(np.array(refit.feature_scores)) for refit in self.outer])
        names = tuple(refit.fold for refit in self.outer)
        n_scored = np.array([self.n_scored[name] for name in names])
        return FoldRanks(ranks, n_scored, names)

    def check_ranks(self, top: int | None = None) -> None:
        """Check that all winners rank the features, and the number of features that count as
        selected.
        """
        if not self.ranks_features:
            raise StudyError(
                f"the study {self.name} has no ranking: its method gives no feature scores. Use a"
                " method that does."
            )
        self.check_top(top)

    def check_top(self, top: int | None, name: str = "top") -> None:
        """Check the number of features that count as selected."""
        n_all = self.n_candidates
        if top is not None and (
            not isinstance(top, Integral) or isinstance(top, bool) or not 1 <= top <= n_all
        ):
            given = int(top) if isinstance(top, np.integer) else repr(top)
            raise ConfigError(
                f"{name}={given} must be a whole number between 1 and the {n_all} features of the"
                " study."
            )

    # --- models ------------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """Fitted pipeline of scaler, feature selector and classifier, read from ``model.skops``
        without unpickling.

        What no file can hold is in the result of the process that has fitted it alone.

        It is the pipeline that was scored on the outer folds, fitted to all samples: see
        `FeaturePipeline`. In studies of raysel 0.1 and 0.2 it is another: the scaler and the method
        with all features.

        The file holds training samples where the classifier needs them to predict: the selected
        features of all samples for ``knn``, all features for kernel and nearest-neighbour methods
        with ``native``.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no final fold.
        DataError
            If the file is missing, not trusted or damaged, or names a class that model files may
            not hold.
        """
        return self.fold_model(self.final.fold)

    def fold_model(self, fold: str) -> Any:
        """Return the pipeline that was scored on an outer fold, read from ``folds/<fold>.skops``
        without unpickling.

        Parameters
        ----------
        fold : str
            Name of the fold, e.g. ``"outer0"``; ``"final"`` for `model`.

        Returns
        -------
        FeaturePipeline
            Fitted pipeline of scaler, feature selector and classifier. Its score on the fold's test
            samples is the recorded one.

        Raises
        ------
        ConfigError
            If the study has no such fold.
        UnfinishedStudyError
            If the study has not finished.
        DataError
            If the file is missing, not trusted or damaged, or names a class that model files may
            not hold.
        """
        known = [refit.fold for refit in self.refits]
        if fold not in known:
            raise ConfigError(
                f"fold={fold!r} is not a fold of the study {self.name}: give one of"
                f" {', '.join(known)}."
            )
        if fold in self.models:
            return self.models[fold]
        path = self.directory.fold_model(fold)
        if not path.exists():
            untrusted = self.stored.study.untrusted
            reason = (
                f"a file cannot hold {', '.join(untrusted)}, and only the result of the process"
                " that fitted it has it"
                if untrusted
                else (
                    "an earlier version of raysel ran the study, or the file was removed; resume"
                    " the study to write it"
                )
            )
            raise DataError(f"the study {self.name} has no model of {fold}: {reason}.")
        return read_model(path, self.path, trust=self.trust)
