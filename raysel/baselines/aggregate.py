"""Linear discriminant analysis on the pooled, zero-padded samples of all tasks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import LinAlgWarning

from raysel.base.estimator import COUNT, Capabilities, IterativeEstimator, measure_size
from raysel.base.task_projector import TaskProjector
from raysel.base.task_samples import TaskSamples, component_numbers, warn_of_lost_directions
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.discriminants import (
    SMALLEST_WITHIN,
    ScatterRange,
    fisher_directions,
    maximize_trace_ratio,
    scatter_range,
    shrunken,
)
from raysel.numerics.linear_algebra import centre


@dataclass(frozen=True)
class PooledTasks:
    """Samples of all tasks, centred, reduced and scaled by task, and padded with zeros."""

    #: Pooled samples; shape (sum n_i, max D_i) or (sum n_i, max d_i).
    X: FloatArray
    scatter: ScatterRange
    #: Mean of each task; each (D_i,).
    means: tuple[FloatArray, ...]
    scales: tuple[float, ...]
    #: Principal directions of each task; empty if the tasks are not reduced; each (D_i, d_i).
    bases: tuple[FloatArray, ...] = ()


class Aggregate(IterativeEstimator, TaskProjector):
    """Linear discriminant analysis on the pooled samples of all tasks.

    Each task is centred, optionally projected to its leading principal directions, scaled to unit
    total variance, and padded with zeros on the right; classes of different tasks remain different.
    The pooled samples are projected by LDA with shrinkage s within the range of S_t:

        "trace_ratio":   maximise over U'U = I:   tr(U' S_b U) / tr(U' S_t U),   S_t = S_b + (1 - s)
        S_w + s tr(S_w)/r I "ratio_trace":   maximise over U:         tr((U' S_t U)^-1 U' S_b U),
        the eigenvectors of S_w^-1 S_b

    It is a baseline for multi-task methods that do not match columns by number; for one task it
    equals `TraceRatioLDA`, or `LDA`. Zhang & Yeung's own baseline reduces each task to 300
    dimensions and uses "ratio_trace".

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    n_components : int, default=None
        Number of directions of the common projection. None: the sum over tasks of the number of
        classes minus 1, at most the rank of the pooled data.
    shrinkage : float in [0, 1], default=0.0
        Weight of a multiple of the identity in the pooled within-class scatter.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-12
        Relative change of the ratio below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.
    intermediate_dim : int, default=None
        Number d' of principal directions to which each task is reduced first, for a task of smaller
        rank that rank; the largest entry of each direction is positive. None: the tasks are not
        reduced.
    criterion : {"trace_ratio", "ratio_trace"}, default="trace_ratio"
        Criterion of LDA; "ratio_trace" is solved in one step.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, task_names_, classes_
        See `FittedProjection`; the projections of all tasks have the same number of columns.
    ranks_ : ndarray of int, shape (1,)
        Rank of the pooled data.
    objective_path_ : ndarray of shape (n_iter_,)
        Trace ratio after each iteration, or the ratio trace.

    Warns
    -----
    LinAlgWarning
        If ``criterion`` is "ratio_trace", ``shrinkage`` is 0 and S_w is singular: the pooled
        samples, or those of the tasks that alone have some of the columns, have too few degrees of
        freedom within classes, so that classes of the training set are separated without error,
        which says nothing of other samples; or ``intermediate_dim`` and the number of columns
        exceed n_i - 1 in every task of n_i samples, so that the tasks are not reduced and S_w is
        singular in ``intermediate_dim`` dimensions.

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
        "n_components": [COUNT, None],
        "intermediate_dim": [COUNT, None],
        "criterion": [StrOptions({"trace_ratio", "ratio_trace"})],
    }
    capabilities: ClassVar[Capabilities] = replace(
        TaskProjector.capabilities, prepare_parameters=frozenset({"intermediate_dim"})
    )

    n_components: int | None
    # The defaults are also those of model files that were written before these parameters existed.
    intermediate_dim: int | None = None
    criterion: Literal["trace_ratio", "ratio_trace"] = "trace_ratio"

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | None = None,
        shrinkage: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
        intermediate_dim: int | None = None,
        criterion: Literal["trace_ratio", "ratio_trace"] = "trace_ratio",
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.intermediate_dim = intermediate_dim
        self.criterion = criterion

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key of fewer components, more shrinkage, fewer intermediate ones."""
        return (*super().complexity_key(), measure_size(self.intermediate_dim))

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, ``max_iter``, or 1 for the ratio trace."""
        if self.criterion == "trace_ratio":
            return self.max_iter
        return 1

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or ``n_components`` exceeds ``intermediate_dim``.
        """
        super().check(n_features)
        if self.intermediate_dim is not None and (self.n_components or 0) > self.intermediate_dim:
            raise ConfigError(
                f"n_components={self.n_components} exceeds"
                f" intermediate_dim={self.intermediate_dim}, the dimension to which each task is"
                f" reduced first: give at most {self.intermediate_dim}."
            )

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that a training set of these labels has ``n_components`` directions.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; None for data of one task.

        Raises
        ------
        ConfigError
            If ``n_components`` exceeds the number of samples minus that of the tasks or, for the
            ratio trace, the sum over tasks of the number of classes minus 1.
        """
        if self.n_components is None:
            return
        n, m = len(y), len(self.tasks or [""])
        component_numbers(self.n_components, [(f"the pooled training sets of {n} samples", n - m)])
        if self.criterion == "ratio_trace":
            owners = np.zeros(n, dtype=np.int64) if tasks is None else tasks
            spanned = sum(len(np.unique(y[owners == i])) - 1 for i in np.unique(owners))
            limited = f"the pooled training sets, whose class means span {spanned} directions"
            component_numbers(self.n_components, [(limited, spanned)])

    def _check_components(self, widths: Mapping[str, int]) -> None:
        widest = max(widths, key=lambda name: widths[name])
        super()._check_components({widest: widths[widest]})

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the trace ratio met ``tol``; the ratio trace is solved at once."""
        return self.criterion == "ratio_trace" or super()._has_converged(path)

    def _reduce(self, samples: Sequence[TaskSamples]) -> PooledTasks:
        means, centred = zip(*(centre(task.X) for task in samples), strict=True)
        spreads = _spreads(centred)
        for task, spread in zip(samples, spreads, strict=True):
            if spread == 0:
                raise DataError(
                    f"{task}: all features are constant; give at least one feature that varies."
                )
        bases: tuple[FloatArray, ...] = ()
        if self.intermediate_dim is not None:
            bases = tuple(principal_directions(task, self.intermediate_dim) for task in samples)
            centred = tuple(Z @ basis for Z, basis in zip(centred, bases, strict=True))
            spreads = _spreads(centred)
        X = np.zeros((sum(map(len, centred)), max(Z.shape[1] for Z in centred)))
        codes = np.empty(len(X), dtype=np.int64)
        row = first = 0
        for task, Z, spread in zip(samples, centred, spreads, strict=True):
            rows = slice(row, row + len(Z))
            X[rows, : Z.shape[1]] = Z / spread
            codes[rows] = task.codes + first
            row, first = rows.stop, first + len(task.classes)
        reduced = scatter_range(X, codes, first)
        warn_of_lost_directions("the pooled data", reduced.rank, reduced.varying)
        return PooledTasks(
            X=X,
            scatter=reduced,
            means=means,
            scales=tuple(1 / spread for spread in spreads),
            bases=bases,
        )

    def _solve(self, samples: Sequence[TaskSamples], prepared: PooledTasks) -> Iterator[float]:
        scatter = prepared.scatter
        between_rank = sum(len(task.classes) - 1 for task in samples)
        size = self.n_components or min(between_rank, scatter.rank)
        most = scatter.rank
        if self.criterion != "trace_ratio":
            most = min(between_rank, most)
        limited = f"the pooled data of rank {scatter.rank}"
        if most < scatter.rank:
            limited += f", whose class means span {between_rank} directions"
        component_numbers(size, [(limited, most)])
        self.ranks_ = np.array([scatter.rank])
        stops = np.cumsum([len(task.y) for task in samples])[:-1]
        for objective, V, values in self._directions(samples, scatter, size):
            common = scatter.lift(prepared.X - scatter.mean, V)
            bases = prepared.bases or (None,) * len(samples)
            projections = [
                (common[: task.X.shape[1]] if basis is None else basis @ common[: basis.shape[1]])
                * scale
                for task, basis, scale in zip(samples, bases, prepared.scales, strict=True)
            ]
            embeddings = np.split(prepared.X @ common, stops)
            self._keep(
                samples,
                means=prepared.means,
                projections=projections,
                values=[values] * len(samples),
                embeddings=embeddings,
            )
            yield objective

    def _directions(
        self, samples: Sequence[TaskSamples], scatter: ScatterRange, size: int
    ) -> Iterator[tuple[float, FloatArray, FloatArray]]:
        """Yield objective, common directions and discriminant values of each iteration."""
        if self.criterion == "ratio_trace":
            V, ratios = fisher_directions(scatter, size, self.shrinkage)
            if self.shrinkage == 0:
                self._warn_if_singular(samples, scatter, float(ratios[0]))
            yield float(ratios.sum()), V, ratios
            return
        problem = shrunken(scatter.between, scatter.total, self.shrinkage)
        for ratio, (V,) in maximize_trace_ratio([problem], [size], np.ones(1)):
            yield ratio, V, problem.column_ratios(V)

    def _warn_if_singular(
        self, samples: Sequence[TaskSamples], scatter: ScatterRange, largest_ratio: float
    ) -> None:
        dim = self.intermediate_dim
        freedom = sum(len(task.y) - len(task.classes) for task in samples)
        if freedom < scatter.rank:
            where = ""
            reason = (
                f"the pooled data have rank {scatter.rank}, but only {freedom} degrees of freedom"
                " within classes"
            )
        elif dim is not None and all(
            min(dim, task.X.shape[1]) > len(task.y) - 1 for task in samples
        ):
            where = f" in {dim} dimensions"
            reason = (
                f"intermediate_dim={dim} exceeds the number of samples minus 1 of every task, so"
                f" that no task is reduced and the pooled data have rank {scatter.rank}"
            )
        elif largest_ratio > 1 - SMALLEST_WITHIN:
            where = ""
            reason = (
                "a task has too few samples for the columns that vary in it alone, and these"
                " separate its classes without error"
            )
        else:
            return
        warnings.warn(
            f"the within-class scatter is singular{where}: {reason}. Give a smaller"
            " intermediate_dim or a larger shrinkage.",
            LinAlgWarning,
            stacklevel=2,
        )


def _spreads(centred: Sequence[FloatArray]) -> list[float]:
    """Root of the total variance of each task."""
    return [float(np.linalg.norm(Z) / np.sqrt(len(Z))) for Z in centred]


def principal_directions(task: TaskSamples, most: int) -> FloatArray:
    """Compute the leading principal directions of one task. Returns (D, min(most, rank))."""
    reduced = scatter_range(task.X, task.codes, len(task.classes))
    warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
    basis = reduced.lift(task.X - reduced.mean, np.eye(reduced.rank, min(most, reduced.rank)))
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    return basis * np.where(largest < 0, -1.0, 1.0)
