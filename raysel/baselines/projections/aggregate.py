"""Trace-ratio LDA on the pooled, zero-padded samples of all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.iterative import IterativeEstimator
from raysel.base.projections.components import component_numbers, warn_of_lost_directions
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import DataError
from raysel.linalg.scatter import ScatterRange, centre, scatter_range
from raysel.linalg.trace_ratio import maximize_trace_ratio, shrunken
from raysel.validation import Interval


@dataclass(frozen=True)
class PooledTasks:
    """Samples of all tasks, centred and scaled by task, and padded with zeros.

    Attributes
    ----------
    X : ndarray of shape (sum n_i, max D_i)
        Pooled samples.
    scatter : ScatterRange
        Scatter matrices of the pooled samples.
    means : tuple of ndarray of shape (D_i,)
        Mean of each task.
    scales : tuple of float
        Scale factor of each task, 1 / sqrt(tr S_t^i), which makes the tasks independent of their units.
    """

    X: FloatArray
    scatter: ScatterRange
    means: tuple[FloatArray, ...]
    scales: tuple[float, ...]


class Aggregate(IterativeEstimator, TaskProjector):
    """Trace-ratio LDA on the pooled samples of all tasks, whose columns are matched by their number.

    Each task is centred and scaled to unit total variance, and padded with zeros on the right; classes of different
    tasks remain different. It is a baseline for multi-task methods that do not match columns by number; for one task
    it equals `TraceRatioLDA`.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one task. See `MTDA`.
    n_components : int, default=None
        Number of directions of the common projection. None: the sum over tasks of the number of classes minus 1, at
        most the rank of the pooled data.
    shrinkage : float in [0, 1], default=0.0
        Weight of a multiple of the identity in the pooled within-class scatter.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-12
        Relative change of the ratio below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, task_names_, classes_
        See `FittedProjection`; the projections of all tasks have the same number of columns.
    ranks_ : ndarray of int, shape (1,)
        Rank of the pooled data.
    objective_path_ : ndarray of shape (n_iter_,)
        Trace ratio after each iteration.

    References
    ----------
    "Aggregate" of Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> flowers, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
    >>> Aggregate().fit_tasks([flowers, digits]).transform_task(0, flowers[0]).shape
    (150, 11)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tasks": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
    }

    n_components: int | None

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | None = None,
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
        """Return the sort key by which fewer components come first, then more shrinkage.

        Returns
        -------
        tuple of float
            Smaller for simpler models.
        """
        return (*super().complexity_key(), -self.shrinkage)

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that ``n_components`` is at most the number of samples minus that of the tasks.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; not used.

        Raises
        ------
        ConfigError
            If ``n_components`` is too large.
        """
        if self.n_components is not None:
            n, m = len(y), len(self.tasks or [""])
            component_numbers(self.n_components, [(f"the pooled training sets of {n} samples", n - m)])

    def _check_components(self, widths: Mapping[str, int]) -> None:
        widest = max(widths, key=lambda name: widths[name])
        super()._check_components({widest: widths[widest]})

    def _reduce(self, samples: Sequence[TaskSamples]) -> PooledTasks:
        means, centred = zip(*(centre(task.X) for task in samples), strict=True)
        spreads = [float(np.linalg.norm(own) / np.sqrt(len(own))) for own in centred]
        for task, spread in zip(samples, spreads, strict=True):
            if spread == 0:
                raise DataError(f"{task}: all features are constant; give at least one feature that varies.")
        X = np.zeros((sum(len(task.y) for task in samples), max(task.X.shape[1] for task in samples)))
        codes = np.empty(len(X), dtype=np.int64)
        row = first = 0
        for task, task_X, spread in zip(samples, centred, spreads, strict=True):
            own = slice(row, row + len(task.y))
            X[own, : task.X.shape[1]] = task_X / spread
            codes[own] = task.codes + first
            row, first = own.stop, first + len(task.classes)
        reduced = scatter_range(X, codes, first)
        warn_of_lost_directions("the pooled data", reduced.rank, reduced.varying)
        return PooledTasks(X, reduced, means, tuple(1 / spread for spread in spreads))

    def _solve(self, samples: Sequence[TaskSamples], prepared: PooledTasks) -> Iterator[float]:
        scatter = prepared.scatter
        size = self.n_components or min(sum(len(task.classes) - 1 for task in samples), scatter.rank)
        component_numbers(size, [(f"the pooled data of rank {scatter.rank}", scatter.rank)])
        problem = shrunken(scatter.between, scatter.total, self.shrinkage)
        self.ranks_ = np.array([scatter.rank])
        stops = np.cumsum([len(task.y) for task in samples])[:-1]
        for ratio, (V,) in maximize_trace_ratio([problem], [size], np.ones(1)):
            common = scatter.lift(prepared.X - scatter.mean, V)
            projections = [
                common[: task.X.shape[1]] * scale for task, scale in zip(samples, prepared.scales, strict=True)
            ]
            embeddings = np.split(prepared.X @ common, stops)
            self._keep(samples, prepared.means, projections, [problem.column_ratios(V)] * len(samples), embeddings)
            yield ratio
