"""MTDA that also learns from unlabelled samples, by their scatter and a graph of neighbours.

    S_b from the labelled samples,   T = S_t(labelled) + eta S_t(all) + mu X' L X / n^2

with L the Laplacian of a nearest-neighbour graph over all samples. The term S_t(labelled) keeps the
ratio in [0, 1], because S_b <= S_t(labelled). The extension is mentioned by Zhang & Yeung (AAAI
2011); this denominator is raysel's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import kneighbors_graph

from raysel.base.estimator import COUNT, NOT_NEGATIVE, POSITIVE, Capabilities
from raysel.base.task_samples import TaskSamples, warn_of_lost_directions
from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError
from raysel.numerics.discriminants import ScatterRange, scatter_range, shrunken
from raysel.solvers.mtda.shared_ratio import SharedRatioProjector


@dataclass(frozen=True)
class PartlyLabelled:
    """One task in the range of the total scatter of all its samples, of dimension r."""

    reduced: ScatterRange
    #: Total scatter of the labelled samples, S_t(labelled); shape (r, r).
    labelled: FloatArray
    #: All samples, centred; shape (n, r).
    samples: FloatArray

    def denominator(self, eta: float, mu: float, n_neighbors: int) -> tuple[FloatArray, FloatArray]:
        """Compute the eigendecomposition of T. Returns `values` (r,), `vectors` (r, r)."""
        T = self.labelled.copy()
        if mu:
            n = len(self.samples)
            neighbours = kneighbors_graph(self.samples, min(n_neighbors, n - 1))
            smoothed = np.asarray(
                laplacian((neighbours + neighbours.T) / 2) @ self.samples, dtype=np.float64
            )
            T += mu * self.samples.T @ smoothed / n**2
        T.flat[:: len(T) + 1] += eta * self.reduced.total
        # T = S M S with S^2 = diag(total) and M >= eta I. The singular values of M^1/2 S are
        # accurate to rounding for directions of small scatter too, whereas rounding loses small
        # eigenvalues of T.
        scale = np.sqrt(self.reduced.total)
        values, vectors = scipy.linalg.eigh(
            T / np.outer(scale, scale), driver="evd", check_finite=False
        )
        root = np.sqrt(np.maximum(values, eta))[:, None] * vectors.T * scale
        _, singular, turn = scipy.linalg.svd(root, check_finite=False, overwrite_a=True)
        return singular**2, np.ascontiguousarray(turn.T)


def partly_labelled(task: TaskSamples) -> PartlyLabelled:
    """Compute the scatter matrices of a task with unlabelled samples, whose code is -1."""
    one_class = np.zeros(len(task.y), dtype=np.int64)
    reduced = scatter_range(task.X, one_class, 1)
    if reduced.rank == 0:
        raise DataError(
            f"{task}: all features are constant; give at least one feature that varies."
        )
    warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
    Z = reduced.embed(task.X - reduced.mean, np.eye(reduced.rank))
    labelled = task.codes >= 0
    centred = Z[labelled] - Z[labelled].mean(axis=0)
    membership = task.one_hot / np.sqrt(task.counts * len(centred))
    return PartlyLabelled(
        replace(reduced, between=centred.T @ membership, class_counts=task.counts),
        centred.T @ centred / len(centred),
        Z,
    )


class SemiSupervisedMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis with unlabelled samples, which are used in the denominator.

        maximise over U_i'U_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' T_i U_i),
        T_i = S_t^i(labelled) + unlabelled_weight S_t^i(all) + graph_weight X_i' L_i X_i / n_i^2

    with S_b^i of the labelled samples and L_i the Laplacian of the graph of ``n_neighbors`` nearest
    neighbours.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions d_i, for all tasks or for each one. None: min(c_i - 1, rank of X_i).
    unlabelled : label, default=None
        Value of y that marks unlabelled samples, e.g. -1; for several joined tasks also
        ``task/-1``. None: every sample has a label.
    unlabelled_weight : float, default=1.0
        Weight of the total scatter of all samples, above 0.
    graph_weight : float, default=0.0
        Weight of the term of the graph; 0 omits it.
    n_neighbors : int, default=5
        Number of neighbours in the graph, limited to the number of other samples.
    task_weights : {"inverse_trace", "uniform"} or array of n_tasks floats, default="inverse_trace"
        Weights w_i: 1 / tr(T_i), 1, or the given numbers.
    shrinkage : float in [0, 1], default=0.0
        Weight of a multiple of the identity in T_i - S_b^i. See `MTDA`.
    max_iter : int, default=100
        Maximum number of iterations of Newton's method.
    tol : float, default=1e-12
        Relative change of the objective below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    denominators_ : ndarray of shape (n_tasks,)
        tr(U_i' T_i U_i) of each task, unweighted.
    projections_, objective_path_, numerators_, retained_, task_weights_, ranks_, task_scores_, \
scores_, means_, embeddings_, embedded_labels_, task_names_, classes_
        See `MTDA`. ``predict`` uses labelled samples only as neighbours.

    References
    ----------
    The extension is mentioned by Zhang & Yeung, "Multi-task learning in heterogeneous feature
    spaces", AAAI 2011; the denominator is raysel's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> partly = np.where(np.arange(len(y)) < 100, y, -1)
    >>> mtda = SemiSupervisedMTDA(unlabelled=-1, shrinkage=0.5).fit(X, partly)
    >>> mtda.score(X[1000:], y[1000:]) > 0.7
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "unlabelled": "no_validation",
        "unlabelled_weight": [POSITIVE],
        "graph_weight": [NOT_NEGATIVE],
        "n_neighbors": [COUNT],
    }

    capabilities: ClassVar[Capabilities] = replace(
        SharedRatioProjector.capabilities, prepare_parameters=frozenset({"unlabelled"})
    )

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        unlabelled: Any = None,
        unlabelled_weight: float = 1.0,
        graph_weight: float = 0.0,
        n_neighbors: int = 5,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        shrinkage: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.graph_weight = graph_weight
        self.n_neighbors = n_neighbors
        self.task_weights = task_weights
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def _reduce(self, samples: Sequence[TaskSamples]) -> tuple[PartlyLabelled, ...]:
        return tuple(partly_labelled(task) for task in samples)

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[PartlyLabelled]
    ) -> Iterator[float]:
        turned = [
            task.denominator(self.unlabelled_weight, self.graph_weight, self.n_neighbors)
            for task in prepared
        ]
        ranges = [task.reduced for task in prepared]
        problems = [
            shrunken(turn.T @ reduced.between, total, self.shrinkage)
            for reduced, (total, turn) in zip(ranges, turned, strict=True)
        ]
        return self._solve_ranges(samples, ranges, problems, [turn for _, turn in turned])
