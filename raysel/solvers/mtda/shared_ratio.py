"""Base class of the methods of MTDA, weights of tasks, and warnings of dropped ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from raysel.base.estimator import IterativeEstimator
from raysel.base.task_projector import TaskProjector
from raysel.base.task_samples import TaskSamples, task_label
from raysel.core.arrays import FloatArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.numerics.discriminants import ScatterRange, Scatters, maximize_trace_ratio

#: The joint ratio has dropped a task if the projection retains less than the share DROPPED of its
#: scatter and its own ratio is less than the share BELOW of the joint one.
DROPPED, BELOW = 1e-6, 0.5


def resolve_weights(
    wanted: str | ArrayLike, samples: Sequence[TaskSamples], traces: FloatArray
) -> FloatArray:
    """Compute the weights w_i of the tasks.

    A task whose classes all have a single sample gets weight 0, because its ratio is 1 for every
    U_i.

    `wanted` and `traces` are (n_tasks,); returns (n_tasks,).
    """
    if isinstance(wanted, str) and wanted == "inverse_trace":
        weights = 1.0 / traces
    elif isinstance(wanted, str):
        weights = np.ones(len(samples))
    else:
        weights = given_weights(wanted, len(samples))
    informative = np.array([_has_scatter_within_classes(task) for task in samples])
    if (weights * informative).any():
        return weights * informative
    return weights


def given_weights(wanted: ArrayLike, n_tasks: int) -> FloatArray:
    """Validate weights given by the user. `wanted` is (n_tasks,); returns (n_tasks,)."""
    try:
        weights = np.asarray(wanted, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (n_tasks,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise ConfigError(
            f"task_weights={wanted!r} must be {n_tasks} non-negative numbers, one for each task,"
            " not all zero."
        )
    return weights


def _has_scatter_within_classes(task: TaskSamples) -> bool:
    counts = task.counts
    single = task.classes[counts == 1]
    several = bool((counts > 1).any())
    if single.size:
        effect = "its weight is set to 0"
        if several:
            effect = "they do not contribute to the scatter within classes"
        warnings.warn(
            f"{task} has {single.size} of {len(counts)} classes with a single sample (e.g."
            f" {single[0]!s}): {effect}.",
            UserWarning,
            stacklevel=4,
        )
    return several


def warn_of_dropped_tasks(
    names: Sequence[str], retained: FloatArray, ratios: FloatArray, joint: float
) -> None:
    """Warn of each task whose projection keeps little scatter and tells its classes poorly.

    Such a projection was chosen only because it does not lower the joint ratio. A projection of
    small scatter whose own ratio is comparable to the joint one is useful and causes no warning.

    `retained` and `ratios` are (n_tasks,).
    """
    for name, share, ratio in zip(names, retained, ratios, strict=True):
        if share < DROPPED and ratio < BELOW * joint:
            warnings.warn(
                f"{name} was dropped by the joint ratio: its projection retains {share:.1e} of its"
                " scatter. Reduce its n_components, or fit it separately.",
                UserWarning,
                stacklevel=5,
            )


class SharedRatioProjector(IterativeEstimator, TaskProjector):
    """Base class of methods that maximise a ratio of weighted sums of scatter over the tasks.

    Attributes
    ----------
    numerators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_b^i U_i) of each task, unweighted.
    denominators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_t^i U_i) of each task, unweighted.
    retained_ : ndarray of shape (n_tasks,)
        Share of each task's scatter in its projection. If it is close to 0 and the task's own ratio
        is below half of the joint one, the joint ratio has dropped the task, and a warning is
        issued.
    task_weights_ : ndarray of shape (n_tasks,)
        Weights w_i that were used.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "task_weights": [StrOptions({"inverse_trace", "uniform"}), "array-like"],
    }

    task_weights: Literal["inverse_trace", "uniform"] | ArrayLike

    task_weights_: FloatArray
    numerators_: FloatArray
    denominators_: FloatArray
    retained_: FloatArray

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
                lifted = bases
                if turns is not None:
                    lifted = [turn @ V for turn, V in zip(turns, bases, strict=True)]
                self._keep_reduced(samples, ranges, centred=centred, bases=lifted, values=values)
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
                names, ratios = (
                    [task_label(name) for name in self.task_names_],
                    self.numerators_ / self.denominators_,
                )
                warn_of_dropped_tasks(names, self.retained_, ratios, objective)
            yield objective
