"""Facts of a finished study, made once: all that is shown, written and logged of it reads them and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import ChooseN, Convergence, RefitRecord
from raysel.numerics.intervals import MeanInterval
from raysel.results.agreement import Agreement, choose_top
from raysel.results.permutation import PermutationTest
from raysel.results.records import StudyRecords
from raysel.results.remarks import Remark, actions, inner_convergence, limitations
from raysel.results.scores import FoldValues, Reference, optimism, references, score_curves, score_interval
from raysel.results.stability import StabilitySelection


@dataclass(frozen=True)
class Winner:
    """Configuration that won a fold, as it was refitted there."""

    fold: str
    trial: str
    name: str
    params: Mapping[str, Any]
    #: Number of best features that the inner scores choose; None for the classifier ``native``.
    n_features: int | None
    #: Number of features with a score above 0; None if a winner gives no feature scores.
    n_scored: int | None
    training: float | None
    inner: float
    #: None for the final fold.
    test: float | None
    #: Whether the fit met its ``tol``; None if it was not recorded.
    converged: bool | None
    gap: float | None
    local_optimum: bool
    other_start: Mapping[str, float] | None

    @classmethod
    def of(cls, refit: RefitRecord, n_scored: int | None) -> Winner:
        """Take what is shown of a refit."""
        scores = refit.training_score, refit.inner_score, refit.test_score
        head = refit.fold, refit.trial, refit.name, refit.params, refit.n_features, n_scored
        return cls(*head, *scores, refit.converged, refit.gap, refit.local_optimum, refit.other_start)


@dataclass(frozen=True)
class Trials:
    """Counts of the trials of a study."""

    #: Number of trials by status: ``finished``, ``null`` (zero solution), ``stopped`` and ``failed``.
    by_status: Mapping[str, int]
    #: Largest number of trials, or of inner training sets on a path.
    n_planned: int
    #: Trials made and planned of a search whose end was recorded.
    n_tried: int | None
    n_planned_then: int | None
    #: Whether ``search.time_budget`` ended the search.
    cut: bool
    #: Whether each training set was solved along a path of configurations.
    on_path: bool
    #: Fits of trials that were not stopped, and those that met their ``tol``.
    inner_fits: Convergence

    @property
    def total(self) -> int:
        """Number of trials that have ended."""
        return sum(self.by_status.values())


@dataclass(frozen=True, eq=False)
class Facts:
    """Figures of a finished study, each with what it is of, and its remarks as keys with values."""

    name: str
    method: str
    metric: str
    n_samples: int
    #: Number of all features, and their names.
    n_features: int
    feature_names: tuple[str, ...]
    #: Sections ``evaluation``, ``search`` and ``dataset`` of the configuration.
    evaluation: Mapping[str, Any]
    search: Mapping[str, Any]
    dataset: Mapping[str, Any]
    #: Rule that chooses the number of features.
    choose_n: ChooseN
    #: Winners of the outer folds and the final one; None if there is no final fold.
    outer: tuple[Winner, ...]
    final: Winner | None
    #: Test and inner score on the outer folds, at the number of features that the inner scores choose.
    test: FoldValues
    inner: FoldValues
    #: Mean and SD of the test score with the 95 % interval, or why there is none.
    interval: MeanInterval
    #: Test score of each task, and each metric of ``evaluation.report``, on the outer folds.
    by_task: Mapping[str, FoldValues]
    report: Mapping[str, FoldValues]
    #: References with a score on every outer fold, by name, and whether any was recorded.
    references: Mapping[str, Reference]
    has_references: bool
    #: Mean scores of the winners: ``training``, ``inner`` and ``test``.
    optimism: Mapping[str, float]
    #: Mean and SD of inner and test score, and means of the references, for each number of features, by column.
    curve: Mapping[str, list[float]]
    #: Scores or kernel weights of the modalities by fold; empty if the method weighs none.
    modality_scores: Mapping[str, Mapping[str, Any]]
    #: Mean absolute correlation of the best features on each outer fold, by their number; None where there is no pair.
    redundancy: Mapping[int, list[float | None]]
    trials: Trials
    #: Convergence of the winners' refits.
    fits: Convergence
    #: Agreement of the outer folds' rankings; None if a winner gives no feature scores.
    agreement: Agreement | None
    #: Number of features that count as selected by default.
    default_top: int
    stability_selection: StabilitySelection | None
    permutation_test: PermutationTest | None
    #: Remarks that ask for an action, and the others.
    actions: tuple[Remark, ...]
    limitations: tuple[Remark, ...]

    @classmethod
    def of(cls, result: StudyRecords, top: int | None = None, by: str = FINAL) -> Facts:
        """Compute the facts of a finished study, of the ``top`` features of a source of a ranking."""
        study, outer, config = result.stored.study, result.outer, result.config
        evaluation, n_scored = config["evaluation"], result.n_scored
        sizes = evaluation.get("n_features") or ()
        compared = references(outer, result.metric, sizes)
        winners = [Winner.of(refit, n_scored.get(refit.fold)) for refit in result.refits]
        names = evaluation.get("report", ())
        return cls(
            name=result.name,
            method=config["solver"]["name"],
            metric=result.metric,
            n_samples=study.n_samples,
            n_features=len(result.feature_names),
            feature_names=tuple(result.feature_names),
            evaluation=evaluation,
            search=config["search"],
            dataset=config["dataset"],
            choose_n=study.choose_n,
            outer=tuple(winner for winner in winners if winner.fold != FINAL),
            final=next((winner for winner in winners if winner.fold == FINAL), None),
            test=FoldValues.of(result.test_scores),
            inner=FoldValues.of(refit.inner_score for refit in outer),
            interval=score_interval(outer, result.metric),
            by_task=_by_task(result),
            report={name: FoldValues.of(refit.reported(name) for refit in outer) for name in names},
            references=compared,
            has_references=any(refit.references for refit in outer),
            optimism=optimism(outer),
            curve=score_curves(outer, () if evaluation["classifier"] == "native" else sizes, compared),
            modality_scores=_modality_scores(result),
            redundancy=_redundancy(result),
            trials=_trials(result),
            fits=Convergence.of(result.refits),
            agreement=Agreement.of(result, top, by) if result.ranks_features else None,
            default_top=result.default_top,
            stability_selection=result.stability_selection,
            permutation_test=result.permutation_test,
            actions=tuple(actions(result, compared)),
            limitations=tuple(limitations(result, choose_top(result, top, by).n)),
        )

    @property
    def winners(self) -> tuple[Winner, ...]:
        """Winners of all folds, the final one last."""
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
        return bool(self.evaluation["classifier"] == "native")

    @property
    def is_mean_over_n(self) -> bool:
        """Whether the score is the mean over several numbers of features."""
        return not self.is_native and self.choose_n == "mean" and len(self.evaluation["n_features"]) > 1

    @property
    def has_chosen_n(self) -> bool:
        """Whether each outer fold has a number of features that its score is of."""
        return self.choose_n != "mean" and all(winner.n_features is not None for winner in self.outer)

    @property
    def chosen_n(self) -> dict[str, int]:
        """Number of best features that the inner scores choose, by fold; empty for the classifier ``native``."""
        return {winner.fold: winner.n_features for winner in self.winners if winner.n_features is not None}

    @property
    def n_scored(self) -> dict[str, int]:
        """Number of features with a score above 0 in each fold's winner; empty if a winner gives no feature scores."""
        return {winner.fold: winner.n_scored for winner in self.winners if winner.n_scored is not None}

    @property
    def mean_redundancy(self) -> dict[int, float]:
        """Mean of the redundancy over the outer folds that have one, by the number of features; NaN if none has."""
        known = {n: [value for value in values if value is not None] for n, values in self.redundancy.items()}
        return {n: float(np.mean(values)) if values else float("nan") for n, values in known.items()}

    @property
    def mean_modality_scores(self) -> dict[str, float]:
        """Mean score or kernel weight of each modality over the winners of the outer folds."""
        rows = [self.modality_scores[w.fold] for w in self.outer if w.fold in self.modality_scores]
        return {name: float(np.mean([np.mean(row[name]) for row in rows])) for name in (rows[0] if rows else ())}

    def scores_to_json(self) -> dict[str, Any]:
        """Return how the numbers of features were chosen, and the figures beside the test scores, as plain data."""
        interval = self.interval
        return {
            "choose_n": self.choose_n if self.chosen_n else None,
            "n_features": self.chosen_n,
            "interval": {
                "lower": interval.lower,
                "upper": interval.upper,
                "confidence": interval.confidence,
                "kind": "plain, over draws of the training set" if interval.of_draws else "corrected",
                "test_train_ratio": _finite(interval.ratio),
                "undefined_because": interval.reason or None,
            },
            "references": {name: _reference_to_json(reference) for name, reference in self.references.items()},
            "optimism": dict(self.optimism),
            "curve": {name: [_finite(value) for value in values] for name, values in self.curve.items()},
        }

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain data, as the manifest has them, with the remarks as keys and values."""
        scores: dict[str, Any] = {"test_mean": self.test.mean, "test_std": self.test.sd, "test": list(self.test.values)}
        scores |= {"inner": list(self.inner.values), **self.scores_to_json()}
        if self.by_task:
            scores["tasks"] = {name: list(own.values) for name, own in self.by_task.items()}
        if self.report:
            scores["report"] = {
                name: {"test_mean": own.mean, "test_std": own.sd, "test": list(own.values)}
                for name, own in self.report.items()
            }
        trials = self.trials
        found: dict[str, Any] = {
            "name": self.name,
            "metric": self.metric,
            "remarks": [{"key": remark.key, "values": remark.values} for remark in self.remarks],
            "trials": trials.by_status,
            "search": {
                "cut_by_time_budget": trials.cut,
                "n_tried": trials.n_tried,
                "n_planned": trials.n_planned_then,
            },
            "winners": {winner.fold: winner.params for winner in self.winners},
            "convergence": {winner.fold: _convergence_to_json(winner) for winner in self.winners},
            "features_with_score": self.n_scored,
            "scores": scores,
            **(self.agreement.to_json() if self.agreement else {}),
        }
        if self.stability_selection is not None:
            found["stability_selection"] = self.stability_selection.to_json(self.feature_names)
        if self.permutation_test is not None:
            found["permutation_test"] = self.permutation_test.to_json()
        if self.modality_scores:
            found["modality_scores"] = self.modality_scores
        if self.redundancy:
            found["redundancy"] = {
                "of": "mean absolute correlation of the pairs among each outer fold's top features",
                "over": f"all {self.n_samples} samples",
                "mean_of_the_top": self.mean_redundancy,
                "by_fold_of_the_top": self.redundancy,
            }
        return found

    def end_to_json(self) -> dict[str, Any]:
        """Return the figures of the last record of the journal, which MLflow shows."""
        figures: dict[str, Any] = {
            "test_mean": self.test.mean,
            "test_std": self.test.sd,
            "test_by_task": {name: own.mean for name, own in self.by_task.items()},
            "inner_mean": self.inner.mean,
            "cut": self.trials.cut,
            **self.scores_to_json(),
        }
        if self.agreement is not None:
            figures["stability"] = _finite(self.agreement.stability.value)
            if self.agreement.noise is not None:
                figures["stability_of_noise"] = self.agreement.noise.mean
        if (redundancy := self.mean_redundancy.get(self.default_top)) is not None:
            figures["redundancy"] = _finite(redundancy)
        if self.report:
            figures["report"] = {
                name: {"test_mean": _finite(own.mean), "test_std": _finite(own.sd)} for name, own in self.report.items()
            }
        if self.fits.n_fits:
            figures["winners_converged"] = self.fits.n_converged / self.fits.n_fits
        return figures


def _by_task(result: StudyRecords) -> dict[str, FoldValues]:
    if not (tasks := result.layout.task_names):
        return {}
    by_task = zip(*(refit.test_scores for refit in result.outer), strict=True)
    return {name: FoldValues.of(values) for name, values in zip(tasks, by_task, strict=True)}


def _modality_scores(result: StudyRecords) -> dict[str, dict[str, Any]]:
    names = list(result.layout.slices())
    return {
        refit.fold: dict(zip(names, refit.modality_scores, strict=True))
        for refit in result.refits
        if refit.modality_scores and len(refit.modality_scores) == len(names)
    }


def _redundancy(result: StudyRecords) -> dict[int, list[float | None]]:
    """Redundancy of each outer fold's best features by their number; empty unless all folds recorded it."""
    sizes = result.config["evaluation"].get("n_features") or (result.default_top,)
    if not all(len(refit.redundancy) == len(sizes) for refit in result.outer):
        return {}
    return {n: [refit.redundancy[i] for refit in result.outer] for i, n in enumerate(sizes)}


def _trials(result: StudyRecords) -> Trials:
    search, stored = result.stored.search, result.stored
    return Trials(
        result.n_trials,
        stored.study.n_trials,
        search.n_tried if search else None,
        search.n_planned if search else None,
        result.cut,
        bool(stored.paths),
        inner_convergence(result.records),
    )


def _convergence_to_json(winner: Winner) -> dict[str, Any]:
    """Whether a fit met its tol, whether that proves an optimum, and what another start finds."""
    figures = {
        "converged": winner.converged,
        "relative_duality_gap": winner.gap,
        "local_optimum": winner.local_optimum,
    }
    return figures | ({"other_start": winner.other_start} if winner.other_start else {})


def _reference_to_json(reference: Reference) -> dict[str, Any]:
    test = reference.test
    return {
        "test_mean": reference.mean,
        "test_std": _finite(reference.sd),
        "test": reference.scores,
        "curve": reference.curve,
        **({"guess": reference.recorded} if reference.name == "chance" else {}),
        **({"C": list(reference.C)} if reference.C else {}),
        "method_minus_it": {
            "mean": reference.paired.mean,
            "lower": test.lower if test else None,
            "upper": test.upper if test else None,
            "undefined_because": reference.paired.reason or None,
        },
        "verdict": reference.verdict,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
