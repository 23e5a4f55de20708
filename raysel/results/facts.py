"""What follows from the records of a finished study: all that is shown, written or logged of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.data.planted_table import planted_roles
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.evaluation.group_ranking import GroupRanking
from raysel.evaluation.records import FINAL, Convergence, RefitRecord
from raysel.numerics.inference import MeanInterval
from raysel.results import scores
from raysel.results.agreement import Agreement, choose_top, source_ranking
from raysel.results.coefficients import Coefficients
from raysel.results.feature_claims import FeatureClaims
from raysel.results.permutation import PermutationTest
from raysel.results.planted import PlantedGenes
from raysel.results.records import StudyRecords
from raysel.results.region_claims import RegionClaims
from raysel.results.remarks import Remark, actions, inner_convergence, limitations
from raysel.results.scores import FoldValues, Reference, finite
from raysel.results.stability import StabilitySelectionResult
from raysel.tracking.records import SearchRecord, StudyRecord


@dataclass(frozen=True, eq=False)
class Facts:
    """Figures of a finished study, each computed once, and its remarks as keys with values."""

    #: What was computed.
    records: StudyRecords
    #: Number of features that count as selected; by default that of the source of the ranking.
    given_top: int | None = None
    #: Source of the ranking: the final fold, an outer fold or the consensus.
    by: str = FINAL

    # --- definition --------------------------------------------------------------------------

    @property
    def study(self) -> StudyRecord:
        """Definition of the study: name, configuration, data."""
        return self.records.stored.study

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study.name

    @property
    def method(self) -> str:
        """Name of the method."""
        name: str = self.records.config["solver"]["name"]
        return name

    @property
    def metric(self) -> str:
        """Name of the score."""
        return self.study.metric

    @property
    def evaluation(self) -> Mapping[str, Any]:
        """Section ``evaluation`` of the configuration."""
        section: Mapping[str, Any] = self.records.config["evaluation"]
        return section

    @property
    def is_native(self) -> bool:
        """Whether the model's own predictions are scored, and no number of features is chosen."""
        return bool(self.evaluation["estimator"] == "native")

    @property
    def sizes(self) -> Sequence[int]:
        """Numbers of features that are scored; empty if the model's own predictions are."""
        if self.is_native:
            return ()
        return self.evaluation.get("n_features") or ()

    @property
    def n_features(self) -> int:
        """Number of all features."""
        return self.records.n_candidates

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes; empty for several labels a sample and if they were not recorded."""
        for refit in self.outer:
            if any(len(row) != len(refit.confusion) for row in refit.confusion):
                return ()
        return self.study.classes

    # --- winners -----------------------------------------------------------------------------

    @property
    def outer(self) -> Sequence[RefitRecord]:
        """Refits of the outer folds' winners."""
        return self.records.outer

    @property
    def final(self) -> RefitRecord | None:
        """Refit of the final fold's winner; None if there is no final fold."""
        if not self.records.has_final:
            return None
        return self.records.final

    @property
    def winners(self) -> Sequence[RefitRecord]:
        """Refits of all folds' winners, the final one last."""
        return self.records.refits

    @property
    def n_scored(self) -> Mapping[str, int]:
        """Number of features with a score above 0 by fold; empty if a winner gives no scores."""
        return self.records.n_scored

    @property
    def chosen_n(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold; empty if none do."""
        return self.records.n_features

    @property
    def is_mean_over_n(self) -> bool:
        """Whether the score is the mean over several numbers of features."""
        return self.study.choose_n == "mean" and len(self.sizes) > 1

    @property
    def has_chosen_n(self) -> bool:
        """Whether each outer fold has a number of features that its score is of."""
        if self.study.choose_n == "mean":
            return False
        return all(winner.n_features is not None for winner in self.outer)

    @cached_property
    def fits(self) -> Convergence:
        """Number of the winners' refits, and of those that met ``tol``."""
        return Convergence.of(self.winners)

    @cached_property
    def modality_scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Scores or kernel weights of the modalities by fold; empty if the method weighs none."""
        names = list(self.records.layout.slices())
        return {
            refit.fold: dict(zip(names, weights, strict=True))
            for refit in self.winners
            if (weights := refit.modality_scores) and len(weights) == len(names)
        }

    @property
    def mean_modality_scores(self) -> dict[str, float]:
        """Mean score or kernel weight of each modality over the winners of the outer folds."""
        folds = [winner.fold for winner in self.outer if winner.fold in self.modality_scores]
        rows = [self.modality_scores[fold] for fold in folds]
        if not rows:
            return {}
        return {name: float(np.mean([np.mean(row[name]) for row in rows])) for name in rows[0]}

    @cached_property
    def coefficients(self) -> Coefficients | None:
        """Coefficients of the final model; None if it is not linear in the features."""
        return Coefficients.of(self.records)

    # --- scores ------------------------------------------------------------------------------

    @cached_property
    def test(self) -> FoldValues:
        """Test score on the outer folds, at the number of features that the inner scores choose."""
        return FoldValues.of(self.records.test_scores)

    @cached_property
    def inner(self) -> FoldValues:
        """Inner score on the outer folds, at the number of features that it chooses."""
        return FoldValues.of(refit.inner_score for refit in self.outer)

    @cached_property
    def interval(self) -> MeanInterval:
        """Mean and SD of the test score with the 95 % interval, or why there is none."""
        return scores.score_interval(self.outer, self.metric)

    @cached_property
    def by_task(self) -> Mapping[str, FoldValues]:
        """Test score of each task on the outer folds; empty if the data are one task."""
        if not self.is_native:
            return {}  # the labels of the scores are numbers of features
        by_task = zip(*(refit.test_scores for refit in self.outer), strict=True)
        named = zip(self.study.labels, by_task, strict=False)
        return {name: FoldValues.of(values) for name, values in named}

    @cached_property
    def report(self) -> Mapping[str, FoldValues]:
        """Each metric of ``evaluation.report`` on the outer folds."""
        names = self.evaluation.get("report", ())
        return {name: FoldValues.of(refit.reported(name) for refit in self.outer) for name in names}

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """References with a score on every outer fold, by name."""
        return scores.references(self.outer, self.metric, self.evaluation.get("n_features") or ())

    @cached_property
    def guesses(self) -> Mapping[str, float]:
        """Mean scores of the guesses of which ``chance`` is the better."""
        return scores.guesses(self.outer)

    @cached_property
    def optimism(self) -> Mapping[str, float]:
        """Mean scores of the winners: ``training``, ``inner`` and ``test``."""
        return scores.optimism(self.outer)

    @cached_property
    def curve(self) -> Mapping[str, list[float]]:
        """Mean and SD of inner and test score, and means of references, by number of features."""
        return scores.score_curves(self.outer, self.sizes, self.references)

    # --- search ------------------------------------------------------------------------------

    @property
    def trials(self) -> Mapping[str, int]:
        """Number of trials by status: ``finished``, ``null``, ``stopped`` and ``failed``."""
        return self.records.n_trials

    @cached_property
    def n_tried(self) -> tuple[int, int]:
        """Smallest and largest number of configurations that were tried for an outer fold."""
        by_fold = Counter(record.fold for record in self.records.trials)
        # A search that does not adapt tries each configuration on all folds.
        shared = by_fold.pop("", 0)
        each = [by_fold[refit.fold] for refit in self.outer]
        return shared + min(each), shared + max(each)

    @property
    def search(self) -> SearchRecord | None:
        """End of the search: trials tried and planned, and whether its time budget ended it."""
        return self.records.stored.search

    @property
    def is_cut(self) -> bool:
        """Whether ``search.time_budget`` ended the search before all trials were made."""
        return self.records.cut

    @cached_property
    def inner_fits(self) -> Convergence:
        """Number of inner fits of trials that were not stopped, and of those that met ``tol``."""
        return inner_convergence(self.records.trials)

    # --- features ----------------------------------------------------------------------------

    @property
    def default_top(self) -> int:
        """Number of features that count as selected by default."""
        return self.records.default_top

    @cached_property
    def agreement(self) -> Agreement | None:
        """Agreement of the outer folds' rankings; None if a winner gives no feature scores."""
        if not self.records.ranks_features:
            return None
        return Agreement.of(self.records, self.given_top, self.by)

    @property
    def top(self) -> int:
        """Number of features that count as selected in these facts."""
        return self.agreement.top.n if self.agreement else self.default_top

    def ranking(self, top: int | None = None, by: str = FINAL) -> FeatureRanking:
        """Return the ranking of a source, with the columns that later work has added."""
        self.records.check_ranks(top)
        return source_ranking(self.records, top, by, self._added_columns)

    def rank_groups(self, ranking: FeatureRanking) -> GroupRanking | None:
        """Return the ranking of the groups of a ranking's features; None if there are no groups."""
        if not self.study.feature_groups:
            return None
        return GroupRanking.of(ranking, self.study.feature_groups)

    @cached_property
    def planted(self) -> PlantedGenes | None:
        """What of a generated table is among the best of the consensus; None for other data."""
        dataset = self.records.config["dataset"]
        roles = planted_roles(dataset.get("source"), dataset.get("params"))
        if not roles:
            return None
        return PlantedGenes.count(self.ranking(), roles)

    @property
    def _added_columns(self) -> dict[str, FloatArray]:
        """Columns of the ranking that stability selection and permutation test add."""
        added: dict[str, FloatArray] = {}
        if self.stability_selection is not None:
            added[SELECTION_PROBABILITY] = self.stability_selection.probability
        n_beside = len(self.records.feature_names) - self.n_features
        p_values: dict[str, FloatArray] = {}
        if self.permutation_test is not None:
            p_values |= self.permutation_test.ranking_columns()
        if self.claims is not None:
            p_values |= self.claims.ranking_columns()
        for name, values in p_values.items():
            added[name] = np.pad(values, (0, n_beside), constant_values=1.0)
        return added

    @cached_property
    def redundancy(self) -> Mapping[int, FoldValues]:
        """Mean absolute correlation of the best features on each outer fold, by their number.

        A value is None where there is no pair; empty unless all folds recorded it.
        """
        sizes = self.evaluation.get("n_features") or (self.default_top,)
        rows = [refit.redundancy for refit in self.outer]
        if any(len(row) != len(sizes) for row in rows):
            return {}
        return {n: FoldValues.of(row[i] for row in rows) for i, n in enumerate(sizes)}

    @property
    def mean_redundancy(self) -> dict[int, float]:
        """Mean of the redundancy over the folds that have one, by number of features, or NaN."""
        return {n: values.mean_of_known for n, values in self.redundancy.items()}

    @property
    def stability_selection(self) -> StabilitySelectionResult | None:
        """Stability selection, if it has been run."""
        return self.records.stability_selection

    @property
    def permutation_test(self) -> PermutationTest | None:
        """Permutation test, if it has been run."""
        return self.records.permutation_test

    @property
    def claims(self) -> FeatureClaims | RegionClaims | None:
        """Claims about the features or regions, if any were made."""
        return self.records.claims

    # --- remarks -----------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Remark]:
        """Remarks that ask for an action."""
        return list(actions(self.records, self.references))

    @cached_property
    def limitations(self) -> Sequence[Remark]:
        """The other remarks."""
        return self.find_limitations(choose_top(self.records, self.given_top, self.by).n)

    def find_limitations(self, top: int | None) -> Sequence[Remark]:
        """Return the other remarks if this many features count as selected."""
        return list(limitations(self.records, top))

    @property
    def remarks(self) -> Sequence[Remark]:
        """All remarks, those that ask for an action first."""
        return [*self.actions, *self.limitations]

    # --- plain data --------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain data, as the manifest has them; remarks as keys with values."""
        figures: dict[str, Any] = {
            "name": self.study.name,
            "metric": self.metric,
            "remarks": [vars(remark) for remark in self.remarks],
            "trials": self.trials,
            "search": {
                "cut_by_time_budget": self.is_cut,
                "n_tried": self.search.n_tried if self.search else None,
                "n_planned": self.search.n_planned if self.search else None,
            },
            "winners": {winner.fold: winner.params for winner in self.winners},
            "convergence": {winner.fold: _convergence(winner) for winner in self.winners},
            "features_with_score": self.n_scored,
            "scores": self._all_scores(),
        }
        if self.agreement is not None:
            figures |= self.agreement.to_json()
        if lost := [remark.values for remark in self.actions if remark.key == "estimator_fails"]:
            figures["estimator_fails"] = lost
        if self.stability_selection is not None:
            figures["stability_selection"] = self.stability_selection.to_json(
                self.study.feature_names
            )
        if self.permutation_test is not None:
            figures["permutation_test"] = self.permutation_test.to_json()
        if self.claims is not None:
            figures["claims"] = self.claims.to_json()
        if self.modality_scores:
            figures["modality_scores"] = self.modality_scores
        if self.redundancy:
            by_fold = {n: list(values.values) for n, values in self.redundancy.items()}
            figures["redundancy"] = {
                "of": "mean absolute correlation of the pairs among each outer fold's top features",
                "over": f"all {self.study.n_samples} samples",
                "mean_of_the_top": self.mean_redundancy,
                "by_fold_of_the_top": by_fold,
            }
        return figures

    def _all_scores(self) -> dict[str, Any]:
        figures = {**self.test.to_json(), "inner": list(self.inner.values), **self._scores()}
        if self.by_task:
            figures["tasks"] = {name: list(scored.values) for name, scored in self.by_task.items()}
        if self.report:
            figures["report"] = {name: scored.to_json() for name, scored in self.report.items()}
        return figures

    def end_to_json(self) -> dict[str, Any]:
        """Return the figures of the last record of the journal, which MLflow shows."""
        figures: dict[str, Any] = {
            "test_mean": self.test.mean,
            "test_std": self.test.sd,
            "test_by_task": {name: scored.mean for name, scored in self.by_task.items()},
            "inner_mean": self.inner.mean,
            "cut": self.is_cut,
            "guesses": self.guesses,
            **self._scores(),
        }
        if self.agreement is not None:
            figures["stability"] = finite(self.agreement.stability.value)
            if self.agreement.noise is not None:
                figures["stability_of_noise"] = self.agreement.noise.mean
        if (redundancy := self.mean_redundancy.get(self.default_top)) is not None:
            figures["redundancy"] = finite(redundancy)
        if self.report:
            figures["report"] = {
                name: {"test_mean": finite(scored.mean), "test_std": finite(scored.sd)}
                for name, scored in self.report.items()
            }
        if self.fits.n_fits:
            figures["winners_converged"] = self.fits.n_converged / self.fits.n_fits
        return figures

    def _scores(self) -> dict[str, Any]:
        """How the numbers of features were chosen, and the figures beside the test scores."""
        curve = {name: list(map(finite, values)) for name, values in self.curve.items()}
        return {
            "choose_n": self.study.choose_n if self.chosen_n else None,
            "n_features": self.chosen_n,
            "interval": _interval_to_json(self.interval),
            "references": {name: one.to_json() for name, one in self.references.items()},
            "optimism": self.optimism,
            "curve": curve,
        }


def _interval_to_json(interval: MeanInterval) -> dict[str, Any]:
    kind = "over the test samples of the outer folds"
    if interval.of_draws:
        kind = "plain, over draws of the training set"
    return {
        "lower": interval.lower,
        "upper": interval.upper,
        "confidence": interval.confidence,
        "kind": kind,
        "test_train_ratio": finite(interval.ratio),
        "undefined_because": interval.reason or None,
    }


def _convergence(refit: RefitRecord) -> dict[str, Any]:
    """Whether a fit met its tol, whether that proves an optimum, and what other starts find."""
    ended: dict[str, Any] = {
        "converged": refit.converged,
        "relative_duality_gap": refit.gap,
        "local_optimum": refit.local_optimum,
    }
    if refit.other_start:
        ended["other_start"] = refit.other_start
    return ended
