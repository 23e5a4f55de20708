"""Refit of an outer fold's winner: the model with each number of features, its scores and its
record.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix, multilabel_confusion_matrix

from raysel.base.estimator import Estimator, convergence_of
from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray, is_quantity
from raysel.core.errors import StudyError
from raysel.core.machine import now
from raysel.data.preparation.outputs import Outputs
from raysel.data.preparation.preparation import Preparation
from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.evaluation.confounds import score_of_confounds
from raysel.evaluation.judges import EstimatorError, own_errors
from raysel.evaluation.outputs import TestOutputs
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import RefitRecord, Setting, TrialRecord, with_none
from raysel.evaluation.references import ReferenceScores, Sets, reference_scores
from raysel.evaluation.scoring import Evaluation, Outcome, best_guess
from raysel.evaluation.selectors import RankedClassifier, RankedSelector, usable_scores
from raysel.evaluation.training import TrainingSet, set_parameters
from raysel.numerics.jackknife import pseudo_values
from raysel.numerics.rankings import descending_order, redundancy

#: Starts that the final model's is compared with, each a further fit.
N_OTHER_STARTS = 3


@dataclass
class FoldModels:
    """Models of a fitted method for each number of features, trained on an outer training set."""

    evaluation: Evaluation
    solver: Any
    #: Scores of the features, `usable_scores`, shape (n_features,); None if the method does not
    #: rank features.
    scores: FloatArray | None
    #: Scaled training samples; shape (n_train, n_features).
    X: Samples
    #: Their labels; shape (n_train,) or (n_train, n_labels).
    y: LabelArray
    random_state: int
    n_shown: int
    settings: Sequence[Setting] = ()
    prepared: Outputs | None = None
    #: Positions of the numbers of features that are scored, and of the one that the inner folds
    #: choose.
    scored: Sequence[int] = ()
    chosen: int = 0
    _trained: dict[tuple[int, Setting], tuple[RankedSelector, Any]] = field(default_factory=dict)

    def pipeline(
        self,
        n: int | None,
        scaler: TransformerMixin,
        feature_names: Sequence[str],
        preparation: Preparation | None = None,
    ) -> FeaturePipeline:
        """Return the model with a number of features."""
        steps: list[tuple[str, Any]] = [] if preparation is None else [("preparation", preparation)]
        steps.append(("scaler", scaler))
        if n is not None and self.scores is not None:
            steps.append(
                ("selector", RankedSelector.of(self.solver, self.scores, n, self.prepared))
            )
            steps.append(("classifier", self._at(n)[1]))
        elif self.scores is not None:
            steps.append(
                (
                    "classifier",
                    RankedClassifier.of(self.solver, self.scores, self.n_shown, self.prepared),
                )
            )
        else:
            steps.append(("classifier", self.solver))
        return FeaturePipeline.of(steps, feature_names)

    def outcomes(self, X: Samples, y: LabelArray) -> list[Outcome | None]:
        """Predict and score samples by the model with each number of features; None where the
        estimator fails.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        if self.evaluation.is_native:
            return [self.evaluation.outcome(self.solver, X, y, self.y)]
        found: list[Outcome | None] = [None] * len(self.evaluation.n_features)
        known: dict[int, Outcome] = {}
        for position in self.scored:
            n = self.evaluation.n_features[position]
            try:
                selector, classifier = self._at(n)
                if id(selector) not in known:
                    selected = selector.transform(X)
                    known[id(selector)] = self.evaluation.outcome(classifier, selected, y, self.y)
            except EstimatorError as error:
                if position == self.chosen or self.evaluation.choose_n == "mean":
                    raise _fails_outside(n, error) from error
            else:
                found[position] = known[id(selector)]
        return found

    def training_scores(self) -> list[float | None]:
        """Score the training samples with each number of features; empty if a score is
        undefined.
        """
        outcomes = self.outcomes(self.X, self.y)
        defined = np.isfinite(joined_scores(_with_score(outcomes))).all()
        return with_none(joined_scores(outcomes)) if defined else []

    def outputs(self, X: Samples, y: LabelArray, n: int | None) -> dict[str, Any]:
        """Outputs of the model with a number of features, `TestOutputs.to_json`; empty if there are
        none to record.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        if isinstance(X, TaskBlocks):
            return {}
        selector, model = (None, self.solver) if n is None else self._at(n)
        found = TestOutputs.of(model, X if selector is None else selector.transform(X), y)
        return {} if found is None else found.to_json()

    def _at(self, n: int) -> tuple[RankedSelector, Any]:
        """Selector of the best n features and its trained classifier; the same for all n above
        the scored features.
        """
        assert self.scores is not None  # noqa: S101 - only `native` takes methods without scores
        n_scored = int((self.scores > 0).sum())
        first = self.evaluation.settings[0]
        setting = self.settings[self.evaluation.n_features.index(n)] if self.settings else first
        key = min(n, n_scored), setting
        if key not in self._trained:
            selector = RankedSelector.of(self.solver, self.scores, n, self.prepared)
            X = selector.transform(self.X)
            classifier = (
                self.evaluation.judge.make(self.y, self.random_state, setting)
                if n_scored
                else best_guess(self.y)
            )
            with own_errors():
                self._trained[key] = selector, fit_to_labels(classifier, X, self.y)
        return self._trained[key]


def _fails_outside(n: int, error: EstimatorError) -> StudyError:
    return StudyError(
        f"evaluation.estimator fails with {n} features on an outer fold, though on none of its"
        f" inner folds: {error}. No other number is chosen by test samples. Leave {n} out of"
        " evaluation.n_features, or change evaluation.estimator, and start the study again."
    )


def joined_scores(outcomes: Sequence[Outcome | None], name: str | None = None) -> FloatArray:
    """Join the values of a metric: one for each number of features, or each task. Returns
    (n_sizes,) or (n_tasks,).

    It is NaN where the estimator fails.
    """

    def values(outcome: Outcome | None) -> FloatArray:
        if outcome is None:
            return np.full(1, np.nan)
        return outcome.scores if name is None else outcome.report[name]

    return np.concatenate([values(outcome) for outcome in outcomes])


def _with_score(outcomes: Sequence[Outcome | None]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome is not None]


def _test_scores(
    evaluation: Evaluation, outcomes: Sequence[Outcome | None], y: LabelArray
) -> list[float | None]:
    """Scores of test samples, each of which is defined or of an estimator that fails."""
    evaluation.finite(joined_scores(_with_score(outcomes)), y)
    return with_none(joined_scores(outcomes))


def _pseudo_values(
    outcomes: Sequence[Outcome | None],
    position: int | None,
    test: IntArray,
    kept_whole: LabelArray | None,
) -> list[float]:
    """Pseudo-values of the score at a position, or of the mean, over the test samples or their
    groups.
    """
    of_score = outcomes if position is None else [outcomes[position]]
    scored = _with_score(of_score)
    members = test if kept_whole is None else kept_whole[test]
    n_columns = sum(outcome.measured.n_columns for outcome in scored)
    return pseudo_values(partial(_mean_score, scored), members, n_columns).tolist()


def _mean_score(outcomes: Sequence[Outcome], rows: IntArray) -> float:
    """Mean of the metric over models, or tasks, of some test samples."""
    return float(np.mean(np.concatenate([outcome.measured.values(rows) for outcome in outcomes])))


def confusion(y: LabelArray, predicted: LabelArray, classes: LabelArray) -> list[list[int]]:
    """Count samples by their true and their predicted class; nothing is counted of quantities.

    `y` and `predicted` are (n_samples,) or (n_samples, n_labels), `classes` (n_classes,).
    """
    if is_quantity(y):
        return []
    if y.ndim == 2:
        counts: list[list[int]] = multilabel_confusion_matrix(y, predicted).reshape(-1, 4).tolist()
        return counts
    if not len(y):
        return np.zeros((len(classes), len(classes)), dtype=int).tolist()
    matrix: list[list[int]] = confusion_matrix(y, predicted, labels=classes).tolist()
    return matrix


def pairs_of(y: LabelArray, predicted: LabelArray | None) -> list[Any]:
    """Pair the true and the predicted quantities of the test samples; empty for classes, and
    without test samples.
    """
    if predicted is None or not is_quantity(y):
        return []
    pairs: list[Any] = np.stack([y, predicted], axis=-1).tolist()
    return pairs


def other_start(
    solver: Estimator,
    X: FloatArray,
    y: LabelArray,
    scores: FloatArray | None,
    n: int,
    outputs: Outputs | None = None,
) -> dict[str, float] | None:
    """Fit from other starts, and compare the best features with those of the lowest objective.

    None if the optimum depends on no start. `scores` is (n_features,).
    """
    if scores is None or not scores.any():
        return None
    others = fits_from_other_starts(solver, X, y)
    if not others:
        return None
    n = min(n, int(np.count_nonzero(scores)))
    other = min(others, key=lambda one: float(one.objective_path_[-1]))
    shared = np.intersect1d(
        descending_order(scores)[:n],
        descending_order(usable_scores(other.scores_, None, outputs, scale=other.score_scale))[:n],
    )
    reached = float(solver.objective_path_[-1])
    excess = (float(other.objective_path_[-1]) - reached) / abs(reached) if reached else 0.0
    n_iter = sum(int(one.n_iter_) for one in others)
    return {
        "n": n,
        "shared": len(shared),
        "excess": excess,
        "n_iter": n_iter,
        "n_starts": len(others),
    }


def fits_from_other_starts(solver: Estimator, X: FloatArray, y: LabelArray) -> list[Any]:
    """Fit from `N_OTHER_STARTS` further starts, of which there may be fewer or none."""
    others: list[Any] = []
    other: Any = solver
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        while len(others) < N_OTHER_STARTS and (other := other.another_start()) is not None:
            others.append(other.fit(X, y))
    return others


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
    feature_names: Sequence[str] = (),
    classes: LabelArray | None = None,
    n_shown: int | None = None,
    inner_states: Sequence[int] = (),
    preparation: Preparation | None = None,
    kept_whole: LabelArray | None = None,
    over_samples: bool = True,
) -> tuple[RefitRecord, FeaturePipeline]:
    """Fit preparation, scaler, solver and classifier on an outer training set and score them once
    on its test set.

    The recorded scores are those of the model itself: its predictions of the test samples, and for
    the other numbers of features those of the same pipeline with another selection.

    `X` is (n_samples, d), `y` (n_samples,) or (n_samples, n_labels), `classes` (n_classes,),
    `kept_whole` (n_samples,) the group or block of each sample. The score has pseudo-values
    `over_samples` unless its interval is over draws.
    """
    started = now()
    y_train = y[fold.train]
    unfitted = preparation and clone(preparation)
    fitted_set = TrainingSet.of(X[fold.train], y_train, scaler, preparation)
    X_train, constant, prepared = fitted_set.X, fitted_set.constant, fitted_set.outputs
    set_parameters(solver, fitted_set.parameters)
    with warnings.catch_warnings(record=True) as caught:  # recorded, and shown with the result
        warnings.simplefilter("always")
        before = time.process_time()
        solver.fit(X_train, y_train)
        cpu_seconds = time.process_time() - before
    trace = winner.folds[fold.name]
    chosen, inner_scores = trace.choice(evaluation.choose_n), trace.last_scores
    assert chosen is not None and inner_scores is not None  # noqa: PT018, S101 - a winner has a score
    n_features = evaluation.n_features[chosen.position] if not evaluation.is_native else None
    scores = _feature_scores(solver, constant, prepared)
    n_shown = n_shown or X.shape[1]
    models = FoldModels(
        evaluation,
        solver,
        scores,
        X_train,
        y_train,
        random_state,
        n_shown,
        [tuple(setting.items()) for setting in trace.settings],
        prepared,
        trace.scored_numbers,
        chosen.position,
    )
    training_scores = models.training_scores()
    test_scores: list[float | None] = []
    report: dict[str, list[float | None]] = {}
    redundant: list[float | None] = []
    counts: list[list[int]] = []
    outputs: dict[str, Any] = {}
    values: list[float] | None = None
    references, predicted = ReferenceScores(), None
    position = None if evaluation.choose_n == "mean" else chosen.position
    if len(fold.test):
        X_test, y_test = fitted_set.transform(X[fold.test]), y[fold.test]
        outcomes = models.outcomes(X_test, y_test)
        test_scores = _test_scores(evaluation, outcomes, y_test)
        report = {name: with_none(joined_scores(outcomes, name)) for name in evaluation.report}
        values = _pseudo_values(outcomes, position, fold.test, kept_whole) if over_samples else None
        of_model = outcomes[0 if n_features is None else chosen.position]
        (predicted,) = (outcome.predicted for outcome in _with_score([of_model]))
        known = solver.labelled(y_test)
        counts = confusion(
            y_test[known], predicted[known], np.unique(y) if classes is None else classes
        )
        outputs = {} if is_quantity(y) else models.outputs(X_test[known], y_test[known], n_features)
        if evaluation.references:
            sets = Sets(X_train, y_train, X_test, y_test, random_state, constant, prepared)
            inner_sets = _inner_sets(X, y, fold, scaler, unfitted, inner_states)
            if n_features is None:  # the solver's own score is of the samples with a label
                sets = _labelled(sets, solver)
                inner_sets = (_labelled(each, solver) for each in inner_sets)
            references = reference_scores(
                sets,
                inner_sets,
                evaluation=evaluation.with_numbers(models.scored),
                confounds=score_of_confounds(
                    unfitted, X, y, fold, labelled=solver.labelled(y), metric_name=evaluation.metric
                ),
            ).among(models.scored, len(evaluation.n_features))
        # Features of several tasks are of different samples, so they have no correlation.
        if redundancy_sizes and scores is not None and isinstance(X, np.ndarray | TableRows):
            redundant = with_none(
                _redundancy(fitted_set.prepared(X), scores, redundancy_sizes, prepared)
            )
    converged, gap = convergence_of(solver)
    record = RefitRecord(
        fold=fold.name,
        trial=winner.id,
        name=winner.name,
        params=winner.params,
        inner_score=chosen.score,
        test_scores=test_scores,
        feature_scores=None if scores is None else scores.tolist(),
        objective=solver.objective_path_.tolist(),
        started=started,
        ended=now(),
        converged=converged,
        gap=gap,
        warnings=_messages(caught),
        report=report,
        redundancy=redundant,
        cpu_seconds=cpu_seconds,
        modality_scores=(
            np.asarray(solver.modality_scores_).tolist()
            if hasattr(solver, "modality_scores_")
            else None
        ),
        n_features=n_features,
        position=position,
        inner_curve=with_none(inner_scores.mean(axis=0)),
        references=references.scores,
        training_scores=training_scores,
        confusion=counts,
        outputs=outputs,
        predictions=pairs_of(y[fold.test], predicted),
        n_train=len(fold.train),
        n_test=len(fold.test),
        settings=trace.settings,
        reference_positions=references.positions,
        reference_settings=references.settings,
        local_optimum=solver.capabilities.local_optimum,
        other_start=(
            None
            if len(fold.test)
            else other_start(solver, X_train, y_train, scores, n_features or n_shown, prepared)
        ),
        pseudo_values=values,
    )
    return record, models.pipeline(n_features, scaler, feature_names, preparation)


def _feature_scores(
    solver: Estimator, constant: BoolArray, prepared: Outputs | None
) -> FloatArray | None:
    """Usable scores of the features, None of a method that does not rank them."""
    if not hasattr(solver, "scores_"):
        return None
    return usable_scores(solver.scores_, constant, prepared, scale=solver.score_scale)


def _redundancy(
    X: FloatArray, scores: FloatArray, sizes: Sequence[int], prepared: Outputs | None
) -> FloatArray:
    """Redundancy of the best features, or of all of their columns, for each number of features."""
    order = descending_order(scores)[: int((scores > 0).sum())]
    if prepared is not None and len(order):
        sizes = prepared.sizes(order, np.minimum(sizes, len(order)).tolist())
        order = prepared.columns(order)
    return redundancy(X, order, sizes)


def _inner_sets(
    X: Samples,
    y: LabelArray,
    fold: OuterFold,
    scaler: TransformerMixin,
    preparation: Preparation | None,
    states: Sequence[int],
) -> Iterator[Sets]:
    """Yield the scaled samples of each inner fold, without holding them beside those of the
    next.
    """
    for inner, state in zip(fold.inner, states, strict=True):
        training = TrainingSet.of(
            X[inner.train], y[inner.train], clone(scaler), preparation and clone(preparation)
        )
        X_test = training.transform(X[inner.validation])
        yield Sets(
            training.X,
            y[inner.train],
            X_test,
            y[inner.validation],
            state,
            training.constant,
            training.outputs,
        )
        del training, X_test  # not held beside the next


def _labelled(sets: Sets, solver: Estimator) -> Sets:
    """Return the samples that have a label; nothing is copied where all have one."""
    train, test = solver.labelled(sets.y_train), solver.labelled(sets.y_test)
    if train.all() and test.all():
        return sets
    return Sets(
        sets.X_train[train],
        sets.y_train[train],
        sets.X_test[test],
        sets.y_test[test],
        sets.random_state,
    )


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
