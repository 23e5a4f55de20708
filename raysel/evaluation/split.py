"""A training set and what is held out of it, prepared and scaled by the training set alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from raysel.base.estimator import Estimator
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.preparation.outputs import Outputs
from raysel.data.preparation.preparation import Preparation
from raysel.data.scaling import scale_in_place, scale_training
from raysel.data.table_rows import TableRows
from raysel.data.targets import Target, find_target
from raysel.data.task_blocks import Samples, constant_features
from raysel.evaluation.selectors import score_scale, usable_scores

#: Scores, or why the estimator fails, by the settings and the set of features; a split has one
#: table for all configurations.
KnownScores = dict[tuple[Any, ...], float | str]


@dataclass(frozen=True, kw_only=True)
class SplitRows:
    """Samples as they were read, with the rows that are trained on and those that are held out."""

    #: All samples; shape (n_samples, d).
    X: Samples
    #: Their labels; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    #: Rows of the training samples, and of those that are held out.
    train: IntArray
    test: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    #: Group or block of each sample, which stays on one side; None if each is alone.
    groups: LabelArray | None = None

    @property
    def test_groups(self) -> LabelArray:
        """Group or block of each sample that is held out; its row if each is alone."""
        if self.groups is None:
            return self.test
        return self.groups[self.test]


@dataclass(frozen=True, kw_only=True)
class Split:
    """A training set and the samples held out of it, with all that the training set tells."""

    #: Prepared and scaled training samples; shape (n_train, n_columns).
    X_train: Any
    #: Labels of the training samples; shape (n_train,) or (n_train, n_labels).
    y_train: LabelArray
    #: Samples that are held out, prepared and scaled alike; None before `with_test`.
    X_test: Any = None
    #: Labels of the samples that are held out; shape (n_test,) or (n_test, n_labels).
    y_test: LabelArray
    #: Seed of the estimators that are fitted to the training samples.
    random_state: int = 0
    #: Name of the outer fold, if it is one.
    name: str = ""
    #: Mask of the columns that are constant in the unscaled training samples; None: none is.
    constant: BoolArray | None = None
    #: Columns of each feature; None where each is one.
    outputs: Outputs | None = None
    #: Parameters of estimators that hold the arrangement of the prepared columns, if it changed.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: What the method has prepared of the training set, for all configurations with the same key.
    prepared: Any = None
    #: Scores on these samples that are known to this process; None where none are kept.
    known: KnownScores | None = None
    #: Fitted scaler and preparation, and all samples unprepared; None where trials share the split.
    scaler: TransformerMixin | None = None
    preparation: Preparation | None = None
    rows: SplitRows | None = None

    @classmethod
    def fit(
        cls,
        rows: SplitRows,
        scaler: TransformerMixin,
        preparation: Preparation | None = None,
        *,
        random_state: int = 0,
        name: str = "",
    ) -> Self:
        """Fit an unfitted preparation and scaler to the training samples; leave out the others."""
        X_train, y_train = rows.X[rows.train], rows.y[rows.train]
        outputs: Outputs | None = None
        parameters: Mapping[str, Any] = {}
        if preparation is not None:
            X_train = preparation.fit_transform(X_train, y_train)
            outputs, parameters = preparation.outputs, preparation.parameters
            set_parameters(scaler, parameters)
        constant = constant_features(X_train)
        return cls(
            X_train=scale_training(scaler, X_train),
            y_train=y_train,
            y_test=rows.y[rows.test],
            random_state=random_state,
            name=name,
            constant=constant,
            outputs=outputs,
            parameters=parameters,
            scaler=scaler,
            preparation=preparation,
            rows=rows,
        )

    def with_test(self) -> Self:
        """Return the split with the samples that are held out, prepared and scaled."""
        rows = self.source
        samples = rows.X[rows.test]
        if len(samples):
            samples = scale_in_place(self.scaler, self.prepare_samples(samples))
        return replace(self, X_test=samples)

    def for_trials(self, solver: Estimator) -> Self:
        """Return what all trials of a method share, with the method's own preparation.

        Neither all samples nor the fitted steps go to a worker with it.
        """
        set_parameters(solver, self.parameters)
        prepared = solver.prepare(self.X_train, self.y_train)
        split = replace(self, prepared=prepared, known={}).with_test()
        return replace(split, scaler=None, preparation=None, rows=None)

    @property
    def target(self) -> Target:
        """What is predicted."""
        return find_target(self.y_train)

    @property
    def source(self) -> SplitRows:
        """Samples as they were read, with the rows of both sides; an error if trials share it."""
        if self.rows is None:
            raise ValueError("a split that trials share does not hold the samples as they were")
        return self.rows

    def prepare_samples(self, samples: Samples) -> Any:
        """Prepare samples without scaling them."""
        if self.preparation is None:
            return samples
        return self.preparation.transform(samples)

    def feature_scores(self, method: Any) -> FloatArray:
        """Return the `usable_scores` of a fitted method; shape (n_features,)."""
        scale = score_scale(method)
        return usable_scores(method.scores_, self.constant, self.outputs, scale=scale)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, ``prepared`` included; an array that occurs twice counts once."""
        seen: dict[int, int] = {}

        def visit(value: Any) -> None:
            if isinstance(value, np.ndarray):
                seen[id(value)] = value.nbytes
            elif isinstance(value, TableRows):
                visit(value.rows)  # all else is that of all folds
            elif is_dataclass(value):
                for part in fields(value):
                    visit(getattr(value, part.name))
            elif isinstance(value, tuple | list):  # one item for each task
                for part in value:
                    visit(part)

        visit(self)
        return sum(seen.values())


def set_parameters(estimator: Any, parameters: Mapping[str, Any]) -> None:
    """Set those of some parameters that an estimator has."""
    if parameters and isinstance(estimator, BaseEstimator):
        known = estimator.get_params()
        estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
