"""Facts of a finished study, made once: all that is shown, written and logged of it reads them
and computes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysel.evaluation.records import FINAL, Convergence, RefitRecord
from raysel.numerics.inference import MeanInterval
from raysel.results.agreement import Agreement, choose_top
from raysel.results.permutation import PermutationTest
from raysel.results.records import StudyRecords
from raysel.results.remarks import Remark, actions, inner_convergence, limitations
from raysel.results.scores import (
    FoldValues,
    Reference,
    finite,
    guesses,
    optimism,
    references,
    score_curves,
    score_interval,
)
from raysel.results.stability import StabilitySelection
from raysel.tracking.records import SearchRecord, StudyRecord


@dataclass(frozen=True, eq=False)
class Facts:
    """Figures of a finished study, each with what it is of, and its remarks as keys with values."""

    #: Definition of the study: name, configuration, data.
    study: StudyRecord
    #: Name of the method, and of the score.
    method: str
    metric: str
    #: Number of all features.
    n_features: int
    #: Section ``evaluation`` of the configuration.
    evaluation: Mapping[str, Any]
    #: Refits of the outer folds' winners, and of the final one; None if there is no final fold.
    outer: tuple[RefitRecord, ...]
    final: RefitRecord | None
    #: Number of features with a score above 0 in each fold's winner; empty if a winner gives no
    #: feature scores.
    n_scored: Mapping[str, int]
    #: Test and inner score on the outer folds, at the number of features that the inner scores
    #: choose.
    test: FoldValues
    inner: FoldValues
    #: Mean and SD of the test score with the 95 % interval, or why there is none.
    interval: MeanInterval
    #: Test score of each task, and each metric of ``evaluation.report``, on the outer folds.
    by_task: Mapping[str, FoldValues]
    report: Mapping[str, FoldValues]
    #: References with a score on every outer fold, by name.
    references: Mapping[str, Reference]
    #: Mean scores of the guesses of which ``chance`` is the better.
    guesses: Mapping[str, float]
    #: Mean scores of the winners: ``training``, ``inner`` and ``test``.
    optimism: Mapping[str, float]
    #: Mean and SD of inner and test score, and means of the references, for each number of
    #: features, by column.
    curve: Mapping[str, list[float]]
    #: Scores or kernel weights of the modalities by fold; empty if the method weighs none.
    modality_scores: Mapping[str, Mapping[str, Any]]
    #: Mean absolute correlation of the best features on each outer fold, by their number; None
    #: where there is no pair.
    redundancy: Mapping[int, FoldValues]
    #: Number of trials by status: ``finished``, ``null`` (zero solution), ``stopped`` and
    #: ``failed``.
    trials: Mapping[str, int]
    #: Smallest and largest number of configurations that were tried for an outer fold.
    n_tried: tuple[int, int]
    #: End of the search: trials tried and planned, and whether ``search.time_budget`` ended it.
    search: SearchRecord | None
    #: Fits of trials that were not stopped, and the winners' refits: how many there are, and how
    #: many met ``tol``.
    inner_fits: Convergence
    fits: Convergence
    #: Number of features that count as selected by default.
    default_top: int
    #: Agreement of the outer folds' rankings; None if a winner gives no feature scores.
    agreement: Agreement | None
    #: Stability selection and permutation test, if they have been run.
    stability_selection: StabilitySelection | None
    permutation_test: PermutationTest | None
    #: Remarks that ask for an action, and the others.
    actions: tuple[Remark, ...]
    limitations: tuple[Remark, ...]

    @classmethod
    def of(cls, result: StudyRecords, top: int | None = None, by: str = FINAL) -> Facts:
        """Compute the facts of a finished study, of the ``top`` features of a source of a
        ranking.
        """
        outer, evaluation = result.outer, result.config["evaluation"]
        sizes = evaluation.get("n_features") or ()
        compared = references(outer, result.metric, sizes)
        reported = {
            name: [refit.reported(name) for refit in outer] for name in evaluation.get("report", ())
        }
        return cls(
            study=result.stored.study,
            method=result.config["solver"]["name"],
            metric=result.metric,
            n_features=result.n_candidates,
            evaluation=evaluation,
            outer=tuple(outer),
            final=result.final if result.has_final else None,
            n_scored=result.n_scored,
            test=FoldValues.of(result.test_scores),
            inner=FoldValues.of(refit.inner_score for refit in outer),
            interval=score_interval(outer, result.metric),
            by_task=_by_task(result),
            report={name: FoldValues.of(values) for name, values in reported.items()},
            references=compared,
            guesses=guesses(outer),
            optimism=optimism(outer),
            curve=score_curves(
                outer, () if evaluation["estimator"] == "native" else sizes, compared
            ),
            modality_scores=_modality_scores(result),
            redundancy=_redundancy(result),
            trials=result.n_trials,
            n_tried=_n_tried(result),
            search=result.stored.search,
            inner_fits=inner_convergence(result.records),
            fits=Convergence.of(result.refits),
            default_top=result.default_top,
            agreement=Agreement.of(result, top, by) if result.ranks_features else None,
            stability_selection=result.stability_selection,
            permutation_test=result.permutation_test,
            actions=tuple(actions(result, compared)),
            limitations=tuple(limitations(result, choose_top(result, top, by).n)),
        )

    @property
    def winners(self) -> tuple[RefitRecord, ...]:
        """Refits of all folds' winners, the final one last."""
        return (*self.outer, *([self.final] if self.final else []))

    @property
    def top(self) -> int:
        """Number of features that count as selected in these facts."""
        return self.agreement.top.n if self.agreement else self.default_top

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All remarks, those that ask for an action first."""
        return (*self.actions, *self.limitations)

    @property
    def is_native(self) -> bool:
        """Whether the model's own predictions are scored, and no number of features is chosen."""
        return bool(self.evaluation["estimator"] == "native")

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes; empty for several labels a sample and if they were not recorded."""
        of_labels = any(
            len(row) != len(refit.confusion) for refit in self.outer for row in refit.confusion
        )
        return () if of_labels else self.study.classes

    @property
    def is_mean_over_n(self) -> bool:
        """Whether the score is the mean over several numbers of features."""
        return (
            not self.is_native
            and self.study.choose_n == "mean"
            and len(self.evaluation["n_features"]) > 1
        )

    @property
    def has_chosen_n(self) -> bool:
        """Whether each outer fold has a number of features that its score is of."""
        return self.study.choose_n != "mean" and all(
            winner.n_features is not None for winner in self.outer
        )

    @property
    def chosen_n(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold; empty for the
        classifier ``native``.
        """
        return {
            winner.fold: winner.n_features
            for winner in self.winners
            if winner.n_features is not None
        }

    @property
    def mean_redundancy(self) -> dict[int, float]:
        """Mean of the redundancy over the outer folds that have one, by the number of features;
        NaN if none has.
        """
        return {
            n: known.mean if (known := values.known) else math.nan
            for n, values in self.redundancy.items()
        }

    @property
    def mean_modality_scores(self) -> dict[str, float]:
        """Mean score or kernel weight of each modality over the winners of the outer folds."""
        rows = [self.modality_scores[w.fold] for w in self.outer if w.fold in self.modality_scores]
        return {
            name: float(np.mean([np.mean(row[name]) for row in rows]))
            for name in (rows[0] if rows else ())
        }

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain data, as the manifest has them, with the remarks as keys and
        values.
        """
        search, scores = (
            self.search,
            {**self.test.to_json(), "inner": list(self.inner.values), **self._scores()},
        )
        if self.by_task:
            scores["tasks"] = {name: list(scored.values) for name, scored in self.by_task.items()}
        if self.report:
            scores["report"] = {name: scored.to_json() for name, scored in self.report.items()}
        figures: dict[str, Any] = {
            "name": self.study.name,
            "metric": self.metric,
            "remarks": [vars(remark) for remark in self.remarks],
            "trials": self.trials,
            "search": {
                "cut_by_time_budget": search.cut if search else False,
                "n_tried": search.n_tried if search else None,
                "n_planned": search.n_planned if search else None,
            },
            "winners": {winner.fold: winner.params for winner in self.winners},
            "convergence": {winner.fold: _convergence(winner) for winner in self.winners},
            "features_with_score": self.n_scored,
            "scores": scores,
            **(self.agreement.to_json() if self.agreement else {}),
        }
        if lost := [remark.values for remark in self.actions if remark.key == "estimator_fails"]:
            figures["estimator_fails"] = lost
        if self.stability_selection is not None:
            figures["stability_selection"] = self.stability_selection.to_json(
                self.study.feature_names
            )
        if self.permutation_test is not None:
            figures["permutation_test"] = self.permutation_test.to_json()
        if self.modality_scores:
            figures["modality_scores"] = self.modality_scores
        if self.redundancy:
            figures["redundancy"] = {
                "of": "mean absolute correlation of the pairs among each outer fold's top features",
                "over": f"all {self.study.n_samples} samples",
                "mean_of_the_top": self.mean_redundancy,
                "by_fold_of_the_top": {
                    n: list(values.values) for n, values in self.redundancy.items()
                },
            }
        return figures

    def end_to_json(self) -> dict[str, Any]:
        """Return the figures of the last record of the journal, which MLflow shows."""
        figures: dict[str, Any] = {
            "test_mean": self.test.mean,
            "test_std": self.test.sd,
            "test_by_task": {name: scored.mean for name, scored in self.by_task.items()},
            "inner_mean": self.inner.mean,
            "cut": self.search.cut if self.search else False,
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
        interval = self.interval
        return {
            "choose_n": self.study.choose_n if self.chosen_n else None,
            "n_features": self.chosen_n,
            "interval": {
                "lower": interval.lower,
                "upper": interval.upper,
                "confidence": interval.confidence,
                "kind": (
                    "plain, over draws of the training set"
                    if interval.of_draws
                    else "over the test samples of the outer folds"
                ),
                "test_train_ratio": finite(interval.ratio),
                "undefined_because": interval.reason or None,
            },
            "references": {
                name: reference.to_json() for name, reference in self.references.items()
            },
            "optimism": self.optimism,
            "curve": {
                name: [finite(value) for value in values] for name, values in self.curve.items()
            },
        }


def _by_task(result: StudyRecords) -> dict[str, FoldValues]:
    if result.config["evaluation"]["estimator"] != "native":
        return {}  # the labels of the scores are numbers of features
    by_task = zip(*(refit.test_scores for refit in result.outer), strict=True)
    return {
        name: FoldValues.of(values)
        for name, values in zip(result.stored.study.labels, by_task, strict=False)
    }


def _modality_scores(result: StudyRecords) -> dict[str, dict[str, Any]]:
    names = list(result.layout.slices())
    return {
        refit.fold: dict(zip(names, refit.modality_scores, strict=True))
        for refit in result.refits
        if refit.modality_scores and len(refit.modality_scores) == len(names)
    }


def _redundancy(result: StudyRecords) -> dict[int, FoldValues]:
    """Redundancy of each outer fold's best features by their number; empty unless all folds
    recorded it.
    """
    sizes = result.config["evaluation"].get("n_features") or (result.default_top,)
    if not all(len(refit.redundancy) == len(sizes) for refit in result.outer):
        return {}
    return {
        n: FoldValues.of(refit.redundancy[i] for refit in result.outer) for i, n in enumerate(sizes)
    }


def _n_tried(result: StudyRecords) -> tuple[int, int]:
    by_fold = Counter(record.fold for record in result.records)
    shared = by_fold.pop(
        "", 0
    )  # a search that does not adapt tries each configuration on all folds
    each = [by_fold[refit.fold] for refit in result.outer]
    return shared + min(each), shared + max(each)


def _convergence(refit: RefitRecord) -> dict[str, Any]:
    """Whether a fit met its tol, whether that proves an optimum, and what other starts find."""
    ended = {
        "converged": refit.converged,
        "relative_duality_gap": refit.gap,
        "local_optimum": refit.local_optimum,
    }
    return ended | ({"other_start": refit.other_start} if refit.other_start else {})
