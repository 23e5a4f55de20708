"""Principal component analysis, separately for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from raysel.base.iterative import OneShotEstimator
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples
from raysel.numerics.scatter import ScatterRange


class PCA(OneShotEstimator, TaskProjector):
    """Principal component analysis with 1-nearest-neighbour prediction.

        maximise over U'U = I:   tr(U' S_t U)

    The projection does not depend on the labels, only ``predict`` does.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions, for all tasks or for each one. None: the task's number of classes minus 1, as in the
        discriminant methods.
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

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]) -> Iterator[float]:
        sizes = self._sizes(samples, prepared)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, prepared, strict=True)]
        bases = [np.eye(reduced.rank, size) for reduced, size in zip(prepared, sizes, strict=True)]
        shares = [s.total[:size] / s.total.sum() for s, size in zip(prepared, sizes, strict=True)]
        self._keep_reduced(samples, prepared, centred, bases, shares)
        yield float(np.mean([share.sum() for share in shares]))
