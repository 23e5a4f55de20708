"""All tasks' samples in one space, padded with zeros, and one discriminant analysis for the lot."""

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
    """All samples, centred and scaled by task, padded with zeros.

    Attributes
    ----------
    X : ndarray of shape (sum n_i, max D_i)
    scatter : ScatterRange
    means : tuple of ndarray of shape (D_i,)
    scales : tuple of float
        1 / sqrt(tr S_t^i), so that no task outweighs another by its units.
    """

    X: FloatArray
    scatter: ScatterRange
    means: tuple[FloatArray, ...]
    scales: tuple[float, ...]


class Aggregate(IterativeEstimator, TaskProjector):
    """One trace-ratio LDA on the pooled samples of all tasks: column j of one task meets column j of another.

    Each task is centred and scaled to unit total variance, narrower ones are padded with zeros on the right, and
    classes of different tasks stay different. It shows what pooling by column number alone is worth; for one task
    it is `TraceRatioLDA`.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Each task's number of columns of X; None: one task. See `MTDA`.
    n_components : int, default=None
        Of the one projection. None: the sum over tasks of one less than their classes, or the rank.
    shrinkage : float in [0, 1], default=0.0
        Of the pooled within-class scatter towards a multiple of the identity.
    max_iter : int, default=100
    tol : float, default=1e-12
        The smallest relative change of the ratio that is worth another iteration.
    n_features_to_select : int, default=None
        How many features ``get_support`` keeps. None: half of them.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, task_names_, classes_
        See `FittedProjection`; all tasks have the same number of columns.
    ranks_ : ndarray of int, shape (1,)
        Rank of the pooled data.
    objective_path_ : ndarray of shape (n_iter_,)
        The ratio.

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
        """Fewer components, then more shrinkage."""
        return (*super().complexity_key(), -self.shrinkage)

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Refuse more components than the pooled training sets have room for."""
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
                raise DataError(f"{task}: no feature varies; there is nothing to project on.")
        X = np.zeros((sum(len(task.y) for task in samples), max(task.X.shape[1] for task in samples)))
        codes = np.empty(len(X), dtype=np.int64)
        row = first = 0
        for task, moved, spread in zip(samples, centred, spreads, strict=True):
            own = slice(row, row + len(task.y))
            X[own, : task.X.shape[1]] = moved / spread
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
