"""Base class of MTDA and its variants, which maximise one weighted trace ratio for all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.base.iterative import IterativeEstimator
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples, task_label
from raysel.linalg.scatter import ScatterRange
from raysel.linalg.trace_ratio import Scatters, maximize_trace_ratio
from raysel.solvers.mtda.weights import given_weights, resolve_weights, warn_of_dropped_tasks
from raysel.validation import Interval, StrOptions

#: scikit-learn's constraints of the parameters of all variants.
COMMON_CONSTRAINTS: Mapping[str, Any] = {
    "tasks": [dict, None],
    "task_weights": [StrOptions({"inverse_trace", "uniform"}), "array-like"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
}
#: Constraints of the variants that have a number of components for each task, and shrinkage.
RANGE_CONSTRAINTS: Mapping[str, Any] = {
    **COMMON_CONSTRAINTS,
    "n_components": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "shrinkage": [Interval(Real, 0, 1, closed="both")],
}


class SharedRatioProjector(IterativeEstimator, TaskProjector):
    """Base class of methods that maximise sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' S_t^i U_i).

    Attributes
    ----------
    numerators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_b^i U_i) of each task, unweighted.
    denominators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_t^i U_i) of each task, unweighted.
    retained_ : ndarray of shape (n_tasks,)
        Share of each task's scatter in its projection. If it is close to 0 and the task's own ratio is below half of
        the joint one, the joint ratio has dropped the task, and a warning is issued.
    task_weights_ : ndarray of shape (n_tasks,)
        Weights w_i that were used.
    """

    task_weights: Literal["inverse_trace", "uniform"] | ArrayLike
    shrinkage: float

    fitted_shapes: ClassVar[dict[str, str]] = {
        "task_weights_": "n_tasks",
        "numerators_": "n_tasks",
        "denominators_": "n_tasks",
        "retained_": "n_tasks",
    }

    task_weights_: FloatArray
    numerators_: FloatArray
    denominators_: FloatArray
    retained_: FloatArray

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which fewer components come first, then more shrinkage.

        Returns
        -------
        tuple of float
            Smaller for simpler models.
        """
        return (*super().complexity_key(), -self.shrinkage)

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or the number of weights is not that of the tasks.
        """
        super().check(n_features)
        if self.tasks is not None and not isinstance(self.task_weights, str):
            given_weights(self.task_weights, len(self.tasks))

    def _weigh(self, samples: Sequence[TaskSamples], totals: FloatArray) -> None:
        self.task_weights_ = resolve_weights(self.task_weights, samples, totals)

    def _solve_ranges(
        self,
        samples: Sequence[TaskSamples],
        ranges: Sequence[ScatterRange],
        problems: Sequence[Scatters],
        turns: Sequence[FloatArray] | None = None,
    ) -> Iterator[float]:
        """Solve the problems, each in the range of its task."""
        # ``turns`` are the axes of the problems in those of the ranges; None if the axes are equal.
        sizes = self._sizes(samples, ranges)
        traces = np.array([problem.trace for problem in problems])
        self._weigh(samples, traces)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, ranges, strict=True)]
        previous: list[FloatArray] | None = None
        for ratio, bases in self._steps(samples, problems, sizes):
            if bases is not previous:  # the same object means that the iteration changed nothing
                previous = bases
                values = [p.column_ratios(V) for p, V in zip(problems, bases, strict=True)]
                lifted = bases if turns is None else [turn @ V for turn, V in zip(turns, bases, strict=True)]
                self._keep_reduced(samples, ranges, centred, lifted, values)
                self._record([p.traces(V) for p, V in zip(problems, bases, strict=True)], traces)
            yield ratio

    def _steps(
        self,
        samples: Sequence[TaskSamples],
        problems: Sequence[Scatters],
        sizes: list[int],
    ) -> Iterator[tuple[float, list[FloatArray]]]:
        """Yield the ratio and the directions in each task's range after each iteration; endless."""
        return maximize_trace_ratio(problems, sizes, self.task_weights_)

    def _record(self, traces: Sequence[tuple[float, float]], totals: FloatArray) -> None:
        self.numerators_, self.denominators_ = np.array(traces).T.copy()
        self.retained_ = self.denominators_ / totals

    def _follow(self, updates: Iterator[float]) -> Iterator[float]:
        for objective in super()._follow(updates):
            if self.converged_ or self.n_iter_ >= self.max_iter:
                names, ratios = [task_label(name) for name in self.task_names_], self.numerators_ / self.denominators_
                warn_of_dropped_tasks(names, self.retained_, ratios, objective)
            yield objective
