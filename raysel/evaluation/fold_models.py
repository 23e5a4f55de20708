"""Models of a fitted method for each number of features, trained on an outer training set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import StudyError
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.evaluation.outcomes import Outcome
from raysel.evaluation.outputs import TestOutputs
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.records import Setting, with_none
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.scoring_estimators import EstimatorError, own_errors
from raysel.evaluation.selectors import RankedClassifier, RankedSelector
from raysel.evaluation.split import Split


@dataclass(kw_only=True)
class FoldModels:
    """Models of a fitted method for each number of features, trained on an outer training set."""

    split: Split
    solver: Any
    evaluation: Evaluation
    n_shown: int
    #: Settings of the estimator for each number of features; empty: the first of the evaluation's.
    settings: Sequence[Setting] = ()
    #: Positions of the numbers of features that are scored, and of the one that the inner folds
    #: choose.
    scored: Sequence[int] = ()
    chosen: int = 0
    #: Prediction of the training samples, where the method's fit has made it.
    training_prediction: LabelArray | None = None
    _trained: dict[tuple[int, Setting], tuple[RankedSelector, Any]] = field(default_factory=dict)

    @cached_property
    def scores(self) -> FloatArray | None:
        """Score of each feature; None of a method that does not rank features."""
        if not hasattr(self.solver, "scores_"):
            return None
        return self.split.feature_scores(self.solver)

    @property
    def n_features(self) -> int | None:
        """Number of features that the inner folds choose; None for ``native``."""
        return None if self.evaluation.is_native else self.evaluation.n_features[self.chosen]

    @property
    def position(self) -> int | None:
        """Position of the number of features that is chosen; None where their mean is the score."""
        return None if self.evaluation.choose_n == "mean" else self.chosen

    def pipeline(self, n: int | None, feature_names: Sequence[str]) -> FeaturePipeline:
        """Return the model with a number of features."""
        split, steps = self.split, list[tuple[str, Any]]()
        if split.preparation is not None:
            steps.append(("preparation", split.preparation))
        steps.append(("scaler", split.scaler))
        if self.scores is None:
            classifier = self.solver
        elif n is None:
            n_shown, outputs = self.n_shown, split.outputs
            classifier = RankedClassifier.of(self.solver, self.scores, n_shown, outputs)
        else:
            selector = RankedSelector.of(self.solver, self.scores, n, split.outputs)
            steps.append(("selector", selector))
            classifier = self._at(n)[1]
        return FeaturePipeline.of([*steps, ("classifier", classifier)], feature_names)

    def outcomes(
        self, X: Samples, y: LabelArray, predicted: LabelArray | None = None
    ) -> list[Outcome | None]:
        """Predict and score samples by each model; None where the estimator fails.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels), as is `predicted`
        if the method's own predictions are known.
        """
        y_train = self.split.y_train
        if self.evaluation.is_native:
            return [self.evaluation.outcome(self.solver, X, y, y_train, predicted=predicted)]
        found: list[Outcome | None] = [None] * len(self.evaluation.n_features)
        known: dict[int, Outcome] = {}
        for position in self.scored:
            n = self.evaluation.n_features[position]
            try:
                selector, classifier = self._at(n)
                if id(selector) not in known:
                    selected = selector.transform(X)
                    known[id(selector)] = self.evaluation.outcome(classifier, selected, y, y_train)
            except EstimatorError as error:
                if position == self.chosen or self.evaluation.choose_n == "mean":
                    raise _fails_outside(n, error) from error
            else:
                found[position] = known[id(selector)]
        return found

    def training_scores(self) -> list[float | None]:
        """Score the training samples with each number of features; empty if one is undefined."""
        split = self.split
        outcomes = self.outcomes(split.X_train, split.y_train, self.training_prediction)
        if not np.isfinite(joined_scores(with_score(outcomes))).all():
            return []
        return with_none(joined_scores(outcomes))

    def outputs(self, X: Samples, y: LabelArray, n: int | None) -> dict[str, Any]:
        """Return the outputs of a model, `TestOutputs.to_json`; empty if there are none.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        if isinstance(X, TaskBlocks):
            return {}
        model = self.solver
        if n is not None:
            selector, model = self._at(n)
            X = selector.transform(X)
        found = TestOutputs.of(model, X, y)
        return {} if found is None else found.to_json()

    def _at(self, n: int) -> tuple[RankedSelector, Any]:
        """Return the selector of the best n features and its trained classifier.

        They are the same for all n above the number of features with a score.
        """
        assert self.scores is not None  # noqa: S101 - only `native` takes methods without scores
        split, n_scored = self.split, int((self.scores > 0).sum())
        setting = self.evaluation.settings[0]
        if self.settings:
            setting = self.settings[self.evaluation.n_features.index(n)]
        key = min(n, n_scored), setting
        if key not in self._trained:
            selector = RankedSelector.of(self.solver, self.scores, n, split.outputs)
            X = selector.transform(split.X_train)
            classifier = split.target.constant_model()
            if n_scored:
                estimator = self.evaluation.scoring_estimator
                classifier = estimator.make(split.y_train, split.random_state, setting)
            with own_errors():
                self._trained[key] = selector, fit_to_labels(classifier, X, split.y_train)
        return self._trained[key]


def _fails_outside(n: int, error: EstimatorError) -> StudyError:
    return StudyError(
        f"evaluation.estimator fails with {n} features on an outer fold, though on none of its"
        f" inner folds: {error}. No other number is chosen by test samples. Leave {n} out of"
        " evaluation.n_features, or change evaluation.estimator, and start the study again."
    )


def joined_scores(outcomes: Sequence[Outcome | None], name: str | None = None) -> FloatArray:
    """Join the values of a metric: one for each number of features, or each task.

    Returns (n_sizes,) or (n_tasks,).

    It is NaN where the estimator fails.
    """

    def values(outcome: Outcome | None) -> FloatArray:
        if outcome is None:
            return np.full(1, np.nan)
        if name is None:
            return outcome.scores
        return outcome.report[name]

    return np.concatenate([values(outcome) for outcome in outcomes])


def with_score(outcomes: Sequence[Outcome | None]) -> list[Outcome]:
    """Leave out the numbers of features with which the estimator fails."""
    return [outcome for outcome in outcomes if outcome is not None]
