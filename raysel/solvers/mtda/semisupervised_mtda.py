"""Estimator of MTDA for tasks with unlabelled samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from raysel.base.capabilities import Capabilities
from raysel.base.projections.task_samples import TaskSamples
from raysel.linalg.trace_ratio import shrunken
from raysel.solvers.mtda.semisupervised import PartlyLabelled, partly_labelled
from raysel.solvers.mtda.shared_ratio import RANGE_CONSTRAINTS, SharedRatioProjector
from raysel.validation import Interval


class SemiSupervisedMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis with unlabelled samples, which are used in the denominator.

        maximise over U_i'U_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' T_i U_i),
        T_i = S_t^i(labelled) + unlabelled_weight S_t^i(all) + graph_weight X_i' L_i X_i / n_i^2

    with S_b^i of the labelled samples and L_i the Laplacian of the graph of ``n_neighbors`` nearest neighbours.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one task. See `MTDA`.
    n_components : int or list of int, default=None
        Number of directions d_i, for all tasks or for each one. None: min(c_i - 1, rank of X_i).
    unlabelled : label, default=None
        Value of y that marks unlabelled samples, e.g. -1; for several joined tasks also ``task/-1``. None: every
        sample has a label.
    unlabelled_weight : float, default=1.0
        Weight of the total scatter of all samples, above 0.
    graph_weight : float, default=0.0
        Weight of the term of the graph; 0 omits it.
    n_neighbors : int, default=5
        Number of neighbours in the graph, limited to the number of other samples.
    task_weights : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,), default="inverse_trace"
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
    projections_, objective_path_, numerators_, retained_, task_weights_, ranks_, task_scores_, scores_, means_, \
embeddings_, embedded_labels_, task_names_, classes_
        See `MTDA`. ``predict`` uses labelled samples only as neighbours.

    References
    ----------
    The extension is mentioned by Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011; the
    denominator is raysel's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> partly = np.where(np.arange(len(y)) < 100, y, -1)
    >>> SemiSupervisedMTDA(unlabelled=-1, shrinkage=0.5).fit(X, partly).score(X[1000:], y[1000:]) > 0.7
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RANGE_CONSTRAINTS,
        "unlabelled": "no_validation",
        "unlabelled_weight": [Interval(Real, 0, None, closed="neither")],
        "graph_weight": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
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

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[PartlyLabelled]) -> Iterator[float]:
        turned = [task.denominator(self.unlabelled_weight, self.graph_weight, self.n_neighbors) for task in prepared]
        ranges = [task.reduced for task in prepared]
        problems = [
            shrunken(turn.T @ reduced.between, total, self.shrinkage)
            for reduced, (total, turn) in zip(ranges, turned, strict=True)
        ]
        return self._solve_ranges(samples, ranges, problems, [turn for _, turn in turned])
