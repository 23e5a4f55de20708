"""Fits of one configuration on prepared inner folds, one iteration at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from raysel.base.estimator import Estimator, read_convergence
from raysel.evaluation.records import FoldTrace, InnerTrace
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.split import Split, set_parameters


def run_in_lockstep(
    solvers: Sequence[Estimator],
    splits: Iterable[Split],
    evaluation: Evaluation,
    trace: FoldTrace,
) -> Iterator[int]:
    """Advance all inner fits by one iteration at a time until each has ended."""
    yield from _advance(solvers, list(splits), evaluation, trace)
    if not evaluation.every_iteration:
        trace.choose_setting(evaluation.settings)


def run_in_turn(
    solvers: Sequence[Estimator],
    splits: Iterable[Split],
    evaluation: Evaluation,
    trace: FoldTrace,
) -> Iterator[int]:
    """Run the inner fits one after the other; only one of the prepared splits is held at a time."""
    source, trace.null = iter(splits), True
    for solver in solvers:
        part = FoldTrace()
        yield from _advance([solver], [next(source)], evaluation, part)
        trace.inner += part.inner
        trace.null = trace.null and part.null
    if not evaluation.every_iteration:
        trace.choose_setting(evaluation.settings)


def _advance(
    solvers: Sequence[Estimator],
    splits: Sequence[Split],
    evaluation: Evaluation,
    trace: FoldTrace,
) -> Iterator[int]:
    # A solution that is proved to be zero takes one iteration and is scored by its prediction, the
    # most frequent class.
    pairs = list(zip(solvers, splits, strict=True))
    trace.null = all(solver.is_zero_solution(split.prepared) for solver, split in pairs)
    trace.inner = [InnerTrace() for _ in splits]
    for solver, split in pairs:
        set_parameters(solver, split.parameters)
    running = [
        (
            solver,
            solver.iterate(split.X_train, split.y_train, split.prepared),
            [evaluation.scorer(split, [setting]) for setting in evaluation.settings],
            inner,
        )
        for (solver, split), inner in zip(pairs, trace.inner, strict=True)
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
                inner.converged, inner.gap = read_convergence(solver)
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
