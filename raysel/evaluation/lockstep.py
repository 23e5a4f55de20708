"""Fits of one configuration on the inner folds, one iteration at a time on shared, prepared
training sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from raysel.base.estimator import Estimator, convergence_of
from raysel.core.arrays import BoolArray, IntArray, LabelArray
from raysel.data.preparation.outputs import Outputs
from raysel.data.preparation.preparation import Preparation
from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import Samples
from raysel.evaluation.records import FoldTrace, InnerTrace
from raysel.evaluation.scoring import Evaluation, KnownScores
from raysel.evaluation.training import TrainingSet, set_parameters


@dataclass(frozen=True)
class FoldData:
    """A training set and the samples held out of it, prepared and scaled by the statistics of
    the training set.
    """

    #: Scaled training samples; shape (n_train, d).
    X_train: Any
    #: Labels of the training samples; shape (n_train,) or (n_train, n_labels).
    y_train: LabelArray
    #: Scaled samples that are held out; shape (n_test, d).
    X_test: Any
    #: Labels of the samples that are held out; shape (n_test,) or (n_test, n_labels).
    y_test: LabelArray
    prepared: Any
    #: Mask of the columns that are constant in the unscaled training samples; shape (d,).
    constant: BoolArray
    #: Columns of each feature; None where each is one.
    outputs: Outputs | None = None
    #: Parameters of the solver that hold the arrangement of the prepared columns, where it is
    #: another.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: Scores on these samples that are known to this process.
    known: KnownScores = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, including those of ``prepared``; an array that occurs twice
        counts once.
        """
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


def make_fold_data(
    X: Samples,
    y: LabelArray,
    train: IntArray,
    held_out: IntArray,
    *,
    scaler: TransformerMixin,
    solver: Estimator,
    preparation: Preparation | None = None,
) -> FoldData:
    """Fit preparation and scaler on a training set, transform both sets, and run the solver's own
    preparation.

    `X` is (n_samples, d), `y` (n_samples,) or (n_samples, n_labels).
    """
    training = TrainingSet.of(X[train], y[train], scaler, preparation)
    set_parameters(solver, training.parameters)
    prepared = solver.prepare(training.X, y[train])
    return FoldData(
        training.X,
        y[train],
        training.transform(X[held_out]),
        y[held_out],
        prepared,
        training.constant,
        training.outputs,
        training.parameters,
    )


def run_in_lockstep(
    solvers: Sequence[Estimator],
    folds: Iterable[FoldData],
    evaluation: Evaluation,
    random_states: Sequence[int],
    trace: FoldTrace,
) -> Iterator[int]:
    """Advance all inner fits by one iteration at a time until each has ended."""
    yield from _advance(solvers, list(folds), evaluation, random_states, trace)
    if not evaluation.every_iteration:
        trace.choose_setting(evaluation.settings)


def run_in_turn(
    solvers: Sequence[Estimator],
    folds: Iterable[FoldData],
    evaluation: Evaluation,
    random_states: Sequence[int],
    trace: FoldTrace,
) -> Iterator[int]:
    """Run the inner fits one after the other: as `run_in_lockstep`, but only one of the prepared
    folds is held.
    """
    source, trace.null = iter(folds), True
    for solver, state in zip(solvers, random_states, strict=True):
        part = FoldTrace()
        yield from _advance([solver], [next(source)], evaluation, [state], part)
        trace.inner += part.inner
        trace.null = trace.null and part.null
    if not evaluation.every_iteration:
        trace.choose_setting(evaluation.settings)


def _advance(
    solvers: Sequence[Estimator],
    folds: Sequence[FoldData],
    evaluation: Evaluation,
    random_states: Sequence[int],
    trace: FoldTrace,
) -> Iterator[int]:
    # A solution that is proved to be zero takes one iteration and is scored by its prediction, the
    # most frequent class.
    trace.null = all(
        solver.is_zero_solution(fold.prepared) for solver, fold in zip(solvers, folds, strict=True)
    )
    trace.inner = [InnerTrace() for _ in folds]
    for solver, fold in zip(solvers, folds, strict=True):
        set_parameters(solver, fold.parameters)
    running = [
        (
            solver,
            solver.iterate(fold.X_train, fold.y_train, fold.prepared),
            [
                evaluation.scorer(
                    fold.X_train,
                    fold.y_train,
                    fold.X_test,
                    fold.y_test,
                    state,
                    fold.constant,
                    [setting],
                    fold.known,
                    fold.outputs,
                )
                for setting in evaluation.settings
            ],
            inner,
        )
        for solver, fold, state, inner in zip(
            solvers, folds, random_states, trace.inner, strict=True
        )
    ]
    iteration = 0
    while running:
        going = []
        for fit in running:
            solver, iterations, scorers, inner = fit
            objective = next(iterations, None)
            if objective is None:
                if not evaluation.every_iteration:
                    for score in scorers:
                        inner.add_scores(score, solver)
                inner.converged, inner.gap = convergence_of(solver)
                continue
            if not math.isfinite(objective):
                raise FloatingPointError(
                    f"the objective became {objective} at iteration {iteration + 1}"
                )
            inner.objective.append(float(objective))
            if evaluation.every_iteration:
                for score in scorers:
                    inner.add_scores(score, solver)
            going.append(fit)
        running = going
        if running:
            iteration += 1
            yield iteration
