"""Principal component analysis and linear discriminant analysis, task by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from raysel.base.estimator import IterativeEstimator, OneShotEstimator
from raysel.base.task_projector import TaskProjector
from raysel.base.task_samples import TaskSamples
from raysel.numerics.discriminants import (
    ScatterRange,
    fisher_directions,
    maximize_trace_ratio,
    shrunken,
)


class PCA(OneShotEstimator, TaskProjector):
    """Principal component analysis with 1-nearest-neighbour prediction.

        maximise over U'U = I:   tr(U' S_t U)

    The projection does not depend on the labels, only ``predict`` does.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions, for all tasks or for each one. None: the task's number of classes
        minus 1, as in the discriminant methods.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, ranks_, task_names_, classes_
        See `FittedProjection`. For the scores each column is weighted by its share of the variance.
    objective_path_ : ndarray of shape (1,)
        Share of the variance that the projection explains, averaged over tasks.

    References
    ----------
    Jolliffe, "Principal Component Analysis", 2nd edition, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> pca = PCA(n_components=20).fit(X[:900], y[:900])
    >>> pca.score(X[900:], y[900:]) > 0.9
    True
    """

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        n_features_to_select: int | None = None,
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.n_features_to_select = n_features_to_select

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]
    ) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        bases = [np.eye(reduced.rank, size) for reduced, size in zip(prepared, sizes, strict=True)]
        shares = [s.total[:size] / s.total.sum() for s, size in zip(prepared, sizes, strict=True)]
        self._keep_reduced(samples, prepared, centred=centred, bases=bases, values=shares)
        yield float(np.mean([share.sum() for share in shares]))


class LDA(OneShotEstimator, TaskProjector):
    """Fisher's linear discriminant analysis with shrinkage.

        maximise over U:   tr((U' S_t U)^-1 U' S_b U),   S_t = S_b + (1 - s) S_w + s tr(S_w)/r I

    within the range of S_t. The columns are scaled to unit within-class scatter. With H H' = S_b
    the problem involves only c x c matrices for c classes, independent of the number of features.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions, for all tasks or for each one, at most the task's number of classes
        minus 1. None: that maximum.
    shrinkage : float in [0, 1], default=0.01
        Weight s of a multiple of the identity in the within-class scatter. It suppresses directions
        whose variance is much smaller than s times the mean; 0 suppresses none.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, ranks_, task_names_, classes_
        See `FittedProjection`. For the scores each column is scaled to unit norm and weighted by
        its ratio in [0, 1].
    objective_path_ : ndarray of shape (1,)
        Ratio trace, averaged over tasks.

    References
    ----------
    Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7, 1936;
    for several classes Rao, "The utilization of multiple measurements in problems of biological
    classification", JRSS-B 10, 1948.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> LDA().fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.9
    True
    """

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        shrinkage: float = 0.01,
        n_features_to_select: int | None = None,
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.n_features_to_select = n_features_to_select

    def _most_components(self, rank: int, n_classes: int) -> int:
        return min(n_classes - 1, rank)

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]
    ) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        solved = [
            fisher_directions(s, size, self.shrinkage)
            for s, size in zip(prepared, sizes, strict=True)
        ]
        ratios = [ratio for _, ratio in solved]
        self._keep_reduced(
            samples, prepared, centred=centred, bases=[V for V, _ in solved], values=ratios
        )
        yield float(np.mean([ratio.sum() for ratio in ratios]))


class TraceRatioLDA(IterativeEstimator, TaskProjector):
    """Linear discriminant analysis by the trace ratio of between-class to total scatter.

        maximise over U'U = I:   tr(U' S_b U) / tr(U' S_t U),   S_t = S_b + (1 - s) S_w + s
        tr(S_w)/r I

    within the range of S_t, by Newton's method (Wang et al., "Trace ratio vs. ratio trace", CVPR
    2007). Unlike `MTDA`, it maximises the ratio of each task separately; for one task the two
    methods are equal.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions, for all tasks or for each one. None: the task's number of classes
        minus 1.
    shrinkage : float in [0, 1], default=0.0
        Weight s of a multiple of the identity in the within-class scatter.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-12
        Relative change of the mean ratio below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    ratios_ : ndarray of shape (n_tasks,)
        Trace ratio of each task.
    projections_, means_, embeddings_, embedded_labels_, task_scores_, ranks_, task_names_, classes_
        See `FittedProjection`.
    objective_path_ : ndarray of shape (n_iter_,)
        Mean of the tasks' ratios after each iteration.

    References
    ----------
    Wang, Yan, Xu, Tang, Huang, "Trace ratio vs. ratio trace for dimensionality reduction", CVPR
    2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> TraceRatioLDA(shrinkage=0.5).fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.8
    True
    """

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

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]
    ) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        problems = [
            shrunken(reduced.between, reduced.total, self.shrinkage) for reduced in prepared
        ]
        alone = (
            maximize_trace_ratio([problem], [size], np.ones(1))
            for problem, size in zip(problems, sizes, strict=True)
        )
        for steps in zip(*alone, strict=True):
            bases = [V for _, (V,) in steps]
            values = [problem.column_ratios(V) for problem, V in zip(problems, bases, strict=True)]
            self._keep_reduced(samples, prepared, centred=centred, bases=bases, values=values)
            self.ratios_ = np.array([ratio for ratio, _ in steps])
            yield float(self.ratios_.mean())
