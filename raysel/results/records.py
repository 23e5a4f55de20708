"""What was computed for a study, finished or not: definition, trials, winners, ranks and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from raysel.base.models import read_model
from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import ConfigError, DataError, StudyError, UnfinishedStudyError
from raysel.core.trust import is_trusted
from raysel.data.layouts import Layout, layout_from_json
from raysel.evaluation.agreement import FoldRanks
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.group_ranking import fixed_groups, number_groups
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.numerics.rankings import selection_ranks
from raysel.results.feature_claims import FOLDER as CLAIMS
from raysel.results.feature_claims import FeatureClaims, read_claims
from raysel.results.permutation import FOLDER as PERMUTATION
from raysel.results.permutation import PermutationTest, identity, read_permutation_test
from raysel.results.region_claims import RegionClaims, read_region_claims
from raysel.results.stability import (
    FOLDER,
    GROUPS,
    StabilitySelectionResult,
    read_stability_selection,
)
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory

#: States in which a trial ends; ``null`` is the zero solution.
_STATUSES = ("finished", "null", "stopped", "failed")


def read_study(path: str | Path) -> StoredStudy:
    """Read a study from its directory; of one without an end it is known whether it is running."""
    directory = StudyDirectory(Path(path))
    stored = StoredStudy.read(directory)
    if stored.status == "killed" and directory.lock.exists() and directory.is_running():
        return replace(stored, status="running")
    return stored


@dataclass(frozen=True, eq=False, repr=False)
class StudyRecords:
    """Definition, trials, winners, ranks and models of a study; `Facts` follow from them."""

    #: The study as restored from its journal.
    stored: StoredStudy
    #: Fitted pipelines of a study that is held in memory, by fold; those of one with a directory
    #: are read from it.
    models: Mapping[str, Any] = field(default_factory=dict)
    #: Whether to read models that this account has not signed.
    trust: bool = False

    # --- definition --------------------------------------------------------------------------

    @property
    def directory(self) -> StudyDirectory:
        """Directory of the study; an error if it is held in memory."""
        return self.stored.directory

    @property
    def in_memory(self) -> bool:
        """Whether the study has no directory."""
        return self.stored.read_from is None

    @property
    def has_model(self) -> bool:
        """Whether the final model can be had: from the directory, or from memory."""
        return FINAL in self.models or (not self.in_memory and self.directory.model.exists())

    @cached_property
    def is_trusted(self) -> bool:
        """Whether the final model may be read: signed by this account, or by ``trust``."""
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
        """State of the study when it was opened, see `StudyResult.status`."""
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

    # --- winners ------------------------------------------------------------------------------

    @cached_property
    def refits(self) -> list[RefitRecord]:
        """Refits of the winners, the final one last; an error if the study has not finished."""
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
        """Whether there is a final fold, and so a model."""
        return FINAL in self.stored.study.folds

    @property
    def final(self) -> RefitRecord:
        """Refit of the final fold's winner on all data; an error if there is none."""
        refits = self.refits
        if not self.has_final:
            raise StudyError(
                f"the study {self.name} has no final model, because cv.final is false; for a model"
                " and its ranking run a study with cv.final: true."
            )
        return next(refit for refit in refits if refit.fold == FINAL)

    @property
    def test_scores(self) -> list[float]:
        """Test score of each outer fold's winner, see `StudyResult.test_scores`."""
        return [score for refit in self.outer if (score := refit.test_score) is not None]

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes, those of all tasks, or of the labels; empty if not recorded."""
        return self.stored.study.classes

    @cached_property
    def confusion(self) -> IntArray | None:
        """Test samples by true and predicted class, see `StudyResult.confusion`."""
        counts = [refit.confusion for refit in self.outer]
        if not counts or not all(counts):
            return None
        joined: IntArray = np.sum(counts, axis=0)
        return joined

    @cached_property
    def predictions(self) -> FloatArray | None:
        """True and predicted quantities of the test samples, see `StudyResult.predictions`."""
        pairs = [refit.predictions for refit in self.outer]
        if not pairs or not all(pairs):
            return None
        joined: FloatArray = np.concatenate([np.array(each, dtype=np.float64) for each in pairs])
        return joined.reshape(len(joined), -1, 2)

    @property
    def has_labels(self) -> bool:
        """Whether `confusion` has a row for each label, not a row and a column for each class."""
        if (counts := self.confusion) is None or len(counts) == 1:
            return False
        if counts.shape != (len(counts), len(counts)):
            return True
        # In a table of labels every row counts all test samples; in one of classes all rows
        # together do.
        n_test = sum(refit.n_test for refit in self.outer)
        return n_test > 0 and bool((counts.sum(axis=1) == n_test).all())

    # --- trials ------------------------------------------------------------------------------

    @property
    def trials(self) -> list[TrialRecord]:
        """Records of the trials, in the order in which they ended."""
        return self.stored.trials

    @property
    def n_trials(self) -> dict[str, int]:
        """Number of trials in each state."""
        statuses = [record.status for record in self.trials]
        return {status: statuses.count(status) for status in _STATUSES}

    @property
    def cut(self) -> bool:
        """Whether ``search.time_budget`` ended the search before all trials were made."""
        return self.stored.search is not None and self.stored.search.cut

    # --- ranks -------------------------------------------------------------------------------

    @cached_property
    def unranked_folds(self) -> list[str]:
        """Names of the folds whose winner gives no feature scores."""
        return [refit.fold for refit in self.refits if refit.feature_scores is None]

    @property
    def ranks_features(self) -> bool:
        """Whether every winner gives feature scores."""
        return not self.unranked_folds

    @property
    def is_ranked(self) -> bool:
        """Whether every winner gives feature scores, and one is the final model."""
        return self.ranks_features and self.has_final

    @cached_property
    def n_scored(self) -> dict[str, int]:
        """Number of features with a score above 0 in each fold's winner, by fold."""
        if not self.ranks_features:
            return {}
        return {
            refit.fold: sum(score > 0 for score in refit.feature_scores or ())
            for refit in self.refits
        }

    @cached_property
    def default_top(self) -> int:
        """Number of features that count as selected by default, see `StudyResult.default_top`."""
        chosen = _chosen_numbers(self.stored.refits.values())
        if FINAL in chosen:
            return chosen[FINAL]
        if chosen:
            return int(np.quantile(list(chosen.values()), 0.5, method="lower"))
        return default_n_selected(
            self.config["evaluation"].get("n_features") or (), len(self.feature_names)
        )

    @property
    def n_features(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold."""
        return _chosen_numbers(self.refits)

    @property
    def n_candidates(self) -> int:
        """Number of features: all columns but the confounds, which are the last ones."""
        return len(self.feature_names) - self.layout.n_beside

    @cached_property
    def stability_selection(self) -> StabilitySelectionResult | None:
        """Stability selection of the final model; None if it was not run for this model."""
        if not self.has_final or self.in_memory:
            return None
        return self._up_to_date(
            read_stability_selection(self.path / FOLDER, self.fixed, self.n_candidates)
        )

    @property
    def fixed(self) -> BoolArray:
        """Mask of the columns that cannot be selected: constant ones and confounds."""
        return self.constant | (np.arange(len(self.feature_names)) >= self.n_candidates)

    @property
    def numbered_groups(self) -> tuple[tuple[str, ...], IntArray]:
        """Names of the groups of features, and the number of each feature's group."""
        return number_groups(self.stored.study.feature_groups, self.feature_names, ~self.fixed)

    @cached_property
    def group_selection(self) -> StabilitySelectionResult | None:
        """Stability selection of groups of features; None if it was not run for this model."""
        if self.stability_selection is None or not self.stored.study.feature_groups:
            return None
        names, numbers = self.numbered_groups
        fixed = fixed_groups(numbers, self.fixed)
        found = self._up_to_date(
            read_stability_selection(self.path / FOLDER / GROUPS, fixed, len(names))
        )
        if found is None:
            return None
        return replace(found, of_groups=True)

    def _up_to_date(
        self, selection: StabilitySelectionResult | None
    ) -> StabilitySelectionResult | None:
        """Return a stability selection if it is one of the final model."""
        now = {"winner": dict(self.final.params), "data_hash": self.stored.study.data_hash}
        if selection is None or selection.identity != now:
            return None
        return selection

    @cached_property
    def permutation_test(self) -> PermutationTest | None:
        """Permutation test of the winners; None if it was not run for these winners."""
        if self.status != "finished" or self.in_memory:
            return None
        now = identity(self.refits, self.stored.study.data_hash)
        names = self.feature_names
        return read_permutation_test(
            self.path / PERMUTATION, names[: self.n_candidates], now, n_rows=len(names)
        )

    @cached_property
    def claims(self) -> FeatureClaims | RegionClaims | None:
        """Claims about the features or regions; None if none were made of these data."""
        if self.status != "finished" or self.in_memory:
            return None
        names = self.feature_names[: self.n_candidates]
        folder, data_hash = self.path / CLAIMS, self.stored.study.data_hash
        regions = read_region_claims(folder, names, self.layout, data_hash)
        return regions or read_claims(folder, names, data_hash)

    @cached_property
    def fold_ranks(self) -> FoldRanks:
        """Ranks of the features in the outer folds' winners; an error if there are none."""
        self.check_ranks()
        ranks = np.array([selection_ranks(np.array(refit.feature_scores)) for refit in self.outer])
        names = tuple(refit.fold for refit in self.outer)
        n_scored = np.array([self.n_scored[name] for name in names])
        return FoldRanks(ranks, n_scored, names)

    def check_ranks(self, top: int | None = None) -> None:
        """Check that all winners rank the features, and the number that count as selected."""
        if not self.ranks_features:
            raise StudyError(
                f"the study {self.name} has no ranking: its method gives no feature scores. Use a"
                " method that does."
            )
        self.check_top(top)

    def check_top(self, top: int | None, name: str = "top") -> None:
        """Check the number of features that count as selected."""
        n_all = self.n_candidates
        if top is None:
            return
        is_whole = isinstance(top, Integral) and not isinstance(top, bool)
        if is_whole and 1 <= top <= n_all:
            return
        given = int(top) if isinstance(top, np.integer) else repr(top)
        raise ConfigError(
            f"{name}={given} must be a whole number between 1 and the {n_all} features of the"
            " study."
        )

    # --- models ------------------------------------------------------------------------------

    def fold_model(self, fold: str) -> Any:
        """Return the pipeline that was scored on a fold, see `StudyResult.fold_model`."""
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
            raise DataError(
                f"the study {self.name} has no model of {fold}: {self._why_no_model()}."
            )
        return read_model(path, self.path, trust=self.trust)

    def _why_no_model(self) -> str:
        if untrusted := self.stored.study.untrusted:
            return (
                f"a file cannot hold {', '.join(untrusted)}, and only the result of the process"
                " that fitted it has it"
            )
        return (
            "an earlier version of raysel ran the study, or the file was removed; resume the study"
            " to write it"
        )


def _chosen_numbers(refits: Iterable[RefitRecord]) -> dict[str, int]:
    """Numbers of features that inner scores chose, by fold."""
    return {refit.fold: refit.n_features for refit in refits if refit.n_features is not None}
