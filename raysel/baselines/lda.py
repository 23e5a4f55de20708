"""Linear discriminant analysis by the ratio trace, separately for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from raysel.base.iterative import OneShotEstimator
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples
from raysel.numerics.scatter import ScatterRange, fisher_directions


class LDA(OneShotEstimator, TaskProjector):
    """Fisher's linear discriminant analysis with shrinkage.

        maximise over U:   tr((U' S_t U)^-1 U' S_b U),   S_t = S_b + (1 - s) S_w + s tr(S_w)/r I

    within the range of S_t. The columns are scaled to unit within-class scatter. With H H' = S_b the problem involves
    only c x c matrices for c classes, independent of the number of features.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions, for all tasks or for each one, at most the task's number of classes minus 1. None: that
        maximum.
    shrinkage : float in [0, 1], default=0.01
        Weight s of a multiple of the identity in the within-class scatter. It suppresses directions whose variance is
        much smaller than s times the mean; 0 suppresses none.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_, means_, embeddings_, embedded_labels_, task_scores_, ranks_, task_names_, classes_
        See `FittedProjection`. For the scores each column is scaled to unit norm and weighted by its ratio in [0, 1].
    objective_path_ : ndarray of shape (1,)
        Ratio trace, averaged over tasks.

    References
    ----------
    Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7, 1936; for several classes
    Rao, "The utilization of multiple measurements in problems of biological classification", JRSS-B 10, 1948.

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

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which fewer components come first, then more shrinkage."""
        return (*super().complexity_key(), -self.shrinkage)

    def _most_components(self, rank: int, n_classes: int) -> int:
        return min(n_classes - 1, rank)

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        solved = [fisher_directions(s, size, self.shrinkage) for s, size in zip(prepared, sizes, strict=True)]
        ratios = [ratio for _, ratio in solved]
        self._keep_reduced(samples, prepared, centred, [V for V, _ in solved], ratios)
        yield float(np.mean([ratio.sum() for ratio in ratios]))
