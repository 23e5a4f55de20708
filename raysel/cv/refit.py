"""Refit of an outer fold's winner on the whole outer training set, scored once on the test set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from raysel.arrays import FloatArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.cv.convergence import convergence_of
from raysel.cv.plan import OuterFold
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.references import reference_scores
from raysel.cv.scoring import Evaluation
from raysel.data.task_blocks import Samples, TaskBlocks, as_samples
from raysel.metrics.ranks import descending_order
from raysel.metrics.redundancy import redundancy


def refit_winner(
    X: Samples,
    y: LabelArray,
    fold: OuterFold,
    winner: TrialRecord,
    solver: Estimator,
    *,
    scaler: TransformerMixin,
    evaluation: Evaluation,
    random_state: int,
    redundancy_sizes: Sequence[int] = (),
) -> tuple[RefitRecord, Any]:
    """Fit scaler and solver on an outer training set and score them once on its test set.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d), or TaskBlocks
        All samples.
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        Labels of all samples.
    fold : OuterFold
        Outer fold; the final fold is not scored.
    winner : TrialRecord
        Trial that was selected on this outer fold.
    solver : Estimator
        Unfitted solver of the winning configuration.
    scaler : transformer
        Unfitted scaler.
    evaluation : Evaluation
        Scores the solver on the test samples.
    random_state : int
        Seed of the classifier that scores.
    redundancy_sizes : sequence of int, default=()
        Numbers of best features whose redundancy over all samples is recorded for an outer fold.

    Returns
    -------
    record : RefitRecord
        Scores, objective, convergence and CPU time of the refit.
    model : Pipeline
        Fitted scaler and solver.
    """
    started = time.time()
    # Not by the pipeline's fit, which would hold the samples before and after scaling in memory at once.
    X_train = as_samples(scaler.fit_transform(X[fold.train]))
    with warnings.catch_warnings(record=True) as caught:  # recorded, and shown with the result
        warnings.simplefilter("always")
        before = time.process_time()
        model = Pipeline([("scaler", scaler), ("solver", solver.fit(X_train, y[fold.train]))])
        cpu_seconds = time.process_time() - before
    test_scores: list[float] = []
    report: dict[str, list[float | None]] = {}
    redundant: list[float | None] = []
    references: dict[str, list[float]] = {}
    if len(fold.test):
        sets = X_train, y[fold.train], as_samples(scaler.transform(X[fold.test])), y[fold.test]
        test_scores = evaluation.scorer(*sets, random_state)(solver).tolist()
        if evaluation.report:
            found = evaluation.reporter(*sets, random_state)(solver)
            report = {name: _with_none(values) for name, values in found.items()}
        if evaluation.references:
            references = reference_scores(*sets, evaluation=evaluation, random_state=random_state)
        # Features of several tasks are of different samples, so they have no correlation.
        if redundancy_sizes and hasattr(solver, "scores_") and not isinstance(X, TaskBlocks):
            order = descending_order(solver.scores_)[: int((solver.scores_ > 0).sum())]
            redundant = _with_none(redundancy(X, order, redundancy_sizes))
    trace = winner.folds[fold.name]
    chosen, inner_scores = trace.choice(evaluation.choose_n), trace.last_scores
    assert chosen is not None and inner_scores is not None  # noqa: PT018, S101 - a winner has a score
    converged, gap = convergence_of(solver)
    record = RefitRecord(
        fold=fold.name,
        trial=winner.id,
        name=winner.name,
        params=winner.params,
        inner_score=chosen.score,
        test_scores=test_scores,
        feature_scores=solver.scores_.tolist() if hasattr(solver, "scores_") else None,
        objective=solver.objective_path_.tolist(),
        started=started,
        ended=time.time(),
        converged=converged,
        gap=gap,
        warnings=_messages(caught),
        report=report,
        redundancy=redundant,
        cpu_seconds=cpu_seconds,
        modality_scores=np.asarray(solver.modality_scores_).tolist() if hasattr(solver, "modality_scores_") else None,
        n_features=evaluation.n_features[chosen.position] if evaluation.n_features else None,
        position=None if evaluation.choose_n == "mean" else chosen.position,
        inner_curve=inner_scores.mean(axis=0).tolist(),
        references=references,
        n_train=len(fold.train),
        n_test=len(fold.test),
    )
    return record, model


def _with_none(values: FloatArray) -> list[float | None]:
    """Values as a list, None for those that are not finite, which JSON cannot hold."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Distinct messages of the warnings, without those on convergence and those for developers."""
    silent = (ConvergenceWarning, DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)
    return list(dict.fromkeys(str(w.message) for w in caught if not issubclass(w.category, silent)))
