"""Fits of one configuration on all inner training sets of an outer fold, one iteration at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from raysel.base.estimator import Estimator
from raysel.cv.convergence import convergence_of
from raysel.cv.prepared import FoldData
from raysel.cv.records import FoldTrace, InnerTrace
from raysel.cv.scoring import Evaluation


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
        trace.choose_c(evaluation.C)


def run_in_turn(
    solvers: Sequence[Estimator],
    folds: Iterable[FoldData],
    evaluation: Evaluation,
    random_states: Sequence[int],
    trace: FoldTrace,
) -> Iterator[int]:
    """Run the inner fits one after the other: as `run_in_lockstep`, but only one of the prepared folds is held."""
    source, trace.null = iter(folds), True
    for solver, state in zip(solvers, random_states, strict=True):
        part = FoldTrace()
        yield from _advance([solver], [next(source)], evaluation, [state], part)
        trace.inner += part.inner
        trace.null = trace.null and part.null
    if not evaluation.every_iteration:
        trace.choose_c(evaluation.C)


def _advance(
    solvers: Sequence[Estimator],
    folds: Sequence[FoldData],
    evaluation: Evaluation,
    random_states: Sequence[int],
    trace: FoldTrace,
) -> Iterator[int]:
    # A solution that is proved to be zero takes one iteration and is scored by its prediction, the most frequent class.
    trace.null = all(solver.is_zero_solution(fold.prepared) for solver, fold in zip(solvers, folds, strict=True))
    trace.inner = [InnerTrace() for _ in folds]
    running = [
        (
            solver,
            solver.iterate(fold.X_train, fold.y_train, fold.prepared),
            [
                evaluation.scorer(fold.X_train, fold.y_train, fold.X_test, fold.y_test, state, fold.constant, C)
                for C in evaluation.C
            ],
            inner,
        )
        for solver, fold, state, inner in zip(solvers, folds, random_states, trace.inner, strict=True)
    ]
    iteration = 0
    while running:
        going = []
        for fit in running:
            solver, iterations, scorers, inner = fit
            objective = next(iterations, None)
            if objective is None:
                if not evaluation.every_iteration:
                    inner.scores = [score(solver).tolist() for score in scorers]
                inner.converged, inner.gap = convergence_of(solver)
                continue
            if not math.isfinite(objective):
                raise FloatingPointError(f"the objective became {objective} at iteration {iteration + 1}")
            inner.objective.append(float(objective))
            if evaluation.every_iteration:
                inner.scores += [score(solver).tolist() for score in scorers]
            going.append(fit)
        running = going
        if running:
            iteration += 1
            yield iteration
