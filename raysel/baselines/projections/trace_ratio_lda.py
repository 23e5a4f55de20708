"""Linear discriminant analysis by the trace ratio, each task on its own: MTDA without the coupling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from raysel.base.iterative import IterativeEstimator
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples
from raysel.linalg.scatter import ScatterRange
from raysel.linalg.trace_ratio import maximize_trace_ratio, shrunken
from raysel.validation import Interval


class TraceRatioLDA(IterativeEstimator, TaskProjector):
    """Orthonormal directions of the largest ratio of between-class to total scatter.

        maximise over U'U = I:   tr(U' S_b U) / tr(U' S_t U),   S_t = S_b + (1 - s) S_w + s tr(S_w)/r I

    within the range of S_t, by Newton's method (Wang et al., "Trace ratio vs. ratio trace", CVPR 2007). It differs
    from `MTDA` in that each task has a ratio of its own; for one task both are the same.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Each task's number of columns of X; None: one task. See `MTDA`.
    n_components : int or list of int, default=None
        For all tasks or for each. None: one less than the task's classes.
    shrinkage : float in [0, 1], default=0.0
        s.
    max_iter : int, default=100
    tol : float, default=1e-12
        The smallest relative change of the mean ratio that is worth another iteration.
    n_features_to_select : int, default=None
        How many features ``get_support`` keeps. None: half of them.

    Attributes
    ----------
    ratios_ : ndarray of shape (n_tasks,)
        Each task's ratio.
    projections_, means_, embeddings_, embedded_labels_, task_scores_, ranks_, task_names_, classes_
        See `FittedProjection`.
    objective_path_ : ndarray of shape (n_iter_,)
        The mean of the tasks' ratios.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> TraceRatioLDA(shrinkage=0.5).fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tasks": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        shrinkage: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Fewer components, then more shrinkage."""
        return (*super().complexity_key(), -self.shrinkage)

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        problems = [shrunken(reduced.between, reduced.total, self.shrinkage) for reduced in prepared]
        alone = (
            maximize_trace_ratio([problem], [size], np.ones(1)) for problem, size in zip(problems, sizes, strict=True)
        )
        for steps in zip(*alone, strict=True):
            bases = [V for _, (V,) in steps]
            values = [problem.column_ratios(V) for problem, V in zip(problems, bases, strict=True)]
            self._keep_reduced(samples, prepared, centred, bases, values)
            self.ratios_ = np.array([ratio for ratio, _ in steps])
            yield float(self.ratios_.mean())
