"""Refit of an outer fold's winner: fitted once, scored once on what is held out, recorded."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from raysel.base.estimator import Estimator, read_convergence
from raysel.core.arrays import IntArray, LabelArray
from raysel.core.machine import now
from raysel.data.table_rows import TableRows
from raysel.evaluation.fold_models import FoldModels, joined_scores, with_score
from raysel.evaluation.other_starts import compare_other_starts
from raysel.evaluation.outcomes import Outcome
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.records import RefitRecord, TrialRecord, with_none
from raysel.evaluation.references import ReferenceScores, reference_scores
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.split import Split, set_parameters
from raysel.numerics.jackknife import pseudo_values
from raysel.numerics.rankings import descending_order, redundancy


@dataclass(frozen=True, kw_only=True)
class RefitSettings:
    """By what a refit is scored, and what is recorded of it."""

    evaluation: Evaluation
    #: Number of features that count as selected where the inner scores choose none.
    n_shown: int
    feature_names: Sequence[str] = ()
    #: Numbers of best features whose redundancy is recorded.
    redundancy_sizes: Sequence[int] = ()
    #: Whether the interval of the score is over the test samples, and not over draws.
    over_samples: bool = True


@dataclass(frozen=True, kw_only=True)
class RefitScores:
    """What a refit's model makes of its test samples: as the fields of `RefitRecord`."""

    test_scores: list[float | None] = field(default_factory=list)
    report: dict[str, list[float | None]] = field(default_factory=dict)
    pseudo_values: list[float] | None = None
    confusion: list[list[int]] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    predictions: list[Any] = field(default_factory=list)
    redundancy: list[float | None] = field(default_factory=list)


def refit_winner(
    split: Split,
    winner: TrialRecord,
    solver: Estimator,
    settings: RefitSettings,
    inner: Iterable[Split] = (),
) -> tuple[RefitRecord, FeaturePipeline]:
    """Fit a winner on an outer training set, and score it once on what is held out of it.

    The recorded scores are those of the model itself: its predictions of the test samples, and for
    the other numbers of features those of the same pipeline with another selection. ``inner`` are
    the splits of the training set, which references choose by.
    """
    started = now()
    cpu_seconds, messages = fit_solver(solver, split)
    trace, evaluation = winner.folds[split.name], settings.evaluation
    choice, inner_scores = trace.choice(evaluation.choose_n), trace.last_scores
    assert choice is not None  # noqa: S101 - a winner has a score
    assert inner_scores is not None  # noqa: S101 - as above
    models = FoldModels(
        split=split,
        solver=solver,
        evaluation=evaluation,
        n_shown=settings.n_shown,
        settings=[tuple(setting.items()) for setting in trace.settings],
        scored=trace.scored_numbers,
        chosen=choice.position,
        training_prediction=solver.take_training_prediction(),
    )
    training_scores = models.training_scores()
    tested, references = RefitScores(), ReferenceScores()
    if len(split.source.test):
        split = split.with_test()
        tested = score_on_test(models, split, settings)
        references = score_references(models, split, inner)
    modality_scores: list[float] | None = None
    if hasattr(solver, "modality_scores_"):
        modality_scores = np.asarray(solver.modality_scores_).tolist()
    converged, gap = read_convergence(solver)
    record = RefitRecord(
        fold=split.name,
        trial=winner.id,
        name=winner.name,
        params=winner.params,
        inner_score=choice.score,
        test_scores=tested.test_scores,
        feature_scores=None if models.scores is None else models.scores.tolist(),
        objective=solver.objective_path_.tolist(),
        started=started,
        ended=now(),
        converged=converged,
        gap=gap,
        warnings=messages,
        report=tested.report,
        redundancy=tested.redundancy,
        cpu_seconds=cpu_seconds,
        modality_scores=modality_scores,
        n_features=models.n_features,
        position=models.position,
        inner_curve=with_none(inner_scores.mean(axis=0)),
        references=references.scores,
        training_scores=training_scores,
        confusion=tested.confusion,
        outputs=tested.outputs,
        predictions=tested.predictions,
        n_train=len(split.source.train),
        n_test=len(split.source.test),
        settings=trace.settings,
        reference_positions=references.positions,
        reference_settings=references.settings,
        local_optimum=solver.capabilities.local_optimum,
        other_start=None if len(split.source.test) else compare_other_starts(models),
        pseudo_values=tested.pseudo_values,
    )
    return record, models.pipeline(models.n_features, settings.feature_names)


def fit_solver(solver: Estimator, split: Split) -> tuple[float, list[str]]:
    """Fit a solver to a training set; return its CPU seconds and its warnings."""
    set_parameters(solver, split.parameters)
    with warnings.catch_warnings(record=True) as caught:  # recorded, and shown with the result
        warnings.simplefilter("always")
        before = time.process_time()
        solver.fit(split.X_train, split.y_train)
        seconds = time.process_time() - before
    return seconds, _messages(caught)


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Distinct messages of the warnings, without those on convergence and those for developers."""
    silent = (
        ConvergenceWarning,
        DeprecationWarning,
        PendingDeprecationWarning,
        FutureWarning,
        ResourceWarning,
    )
    return list(dict.fromkeys(str(w.message) for w in caught if not issubclass(w.category, silent)))


def score_on_test(models: FoldModels, split: Split, settings: RefitSettings) -> RefitScores:
    """Score the models on the samples that are held out."""
    evaluation, rows = models.evaluation, split.source
    outcomes = models.outcomes(split.X_test, split.y_test)
    evaluation.finite(joined_scores(with_score(outcomes)), split.y_test)
    scored = outcomes
    if models.position is not None:
        scored = [outcomes[models.position]]
    of_model = outcomes[0 if models.n_features is None else models.chosen]
    (predicted,) = (outcome.predicted for outcome in with_score([of_model]))
    known = models.solver.labelled(split.y_test)
    true, told = split.y_test[known], predicted[known]
    outputs: dict[str, Any] = {}
    if split.target.is_of_classes:
        outputs = models.outputs(split.X_test[known], true, models.n_features)
    return RefitScores(
        test_scores=with_none(joined_scores(outcomes)),
        report={name: with_none(joined_scores(outcomes, name)) for name in evaluation.report},
        pseudo_values=_pseudo_values(scored, rows.test_groups) if settings.over_samples else None,
        confusion=split.target.confusion(true, told, np.unique(rows.y)),
        outputs=outputs,
        predictions=split.target.pairs(split.y_test, predicted),
        redundancy=_redundancy(models, settings.redundancy_sizes),
    )


def _pseudo_values(outcomes: Sequence[Outcome | None], members: LabelArray) -> list[float]:
    """Pseudo-values of the mean score of some models over the test samples or their groups."""
    scored = with_score(outcomes)
    n_columns = sum(outcome.measured.n_columns for outcome in scored)
    return pseudo_values(partial(_mean_score, scored), members, n_columns).tolist()


def _mean_score(outcomes: Sequence[Outcome], rows: IntArray) -> float:
    """Mean of the metric over models, or tasks, of some test samples."""
    return float(np.mean(np.concatenate([outcome.measured.values(rows) for outcome in outcomes])))


def _redundancy(models: FoldModels, sizes: Sequence[int]) -> list[float | None]:
    """Redundancy of the best features, or of all of their columns, for each number of features.

    It is of all samples, prepared but not scaled. Features of several tasks have none: they are of
    different samples.
    """
    split, scores, X = models.split, models.scores, models.split.source.X
    if not sizes or scores is None or not isinstance(X, np.ndarray | TableRows):
        return []
    order, outputs = descending_order(scores)[: int((scores > 0).sum())], split.outputs
    if outputs is not None and len(order):
        sizes = outputs.sizes(order, np.minimum(sizes, len(order)).tolist())
        order = outputs.columns(order)
    return with_none(redundancy(split.prepare_samples(X), order, sizes))


def score_references(models: FoldModels, split: Split, inner: Iterable[Split]) -> ReferenceScores:
    """Score the references of the models on the samples that are held out."""
    evaluation = models.evaluation
    if not evaluation.references:
        return ReferenceScores()
    if evaluation.is_native:  # the solver's own score is of the samples with a label
        split = _keep_labelled(models.solver, split)
        inner = map(partial(_keep_labelled, models.solver), inner)
    found = reference_scores(split, inner, evaluation=evaluation.with_numbers(models.scored))
    return found.among(models.scored, len(evaluation.n_features))


def _keep_labelled(solver: Estimator, split: Split) -> Split:
    """Return the samples that have a label; nothing is copied where all have one."""
    train, test = solver.labelled(split.y_train), solver.labelled(split.y_test)
    if train.all() and test.all():
        return split
    rows = split.source
    return replace(
        split,
        X_train=split.X_train[train],
        y_train=split.y_train[train],
        X_test=split.X_test[test],
        y_test=split.y_test[test],
        constant=None,
        outputs=None,
        rows=replace(rows, train=rows.train[train], test=rows.test[test]),
    )
