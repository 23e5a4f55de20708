"""Multi-task discriminant analysis: each task its own feature space, one trace ratio for all."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from raysel.arrays import FloatArray
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError
from raysel.linalg.scatter import ScatterRange
from raysel.linalg.trace_ratio import Scatters, shrunken
from raysel.solvers.mtda.alternating import alternate, common_width
from raysel.solvers.mtda.shared_ratio import RANGE_CONSTRAINTS, SharedRatioProjector
from raysel.validation import Interval, StrOptions


class MTDA(SharedRatioProjector):
    """Multi-task discriminant analysis.

    Task i has samples X_i (n_i x D_i) of c_i classes, in a feature space of its own. With its between-class and
    total scatter matrices S_b^i and S_t^i, each divided by n_i, MTDA finds

        maximise over U_i'U_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' S_t^i U_i)

    within the range of each S_t^i, as far as rounding resolves it (``ranks_``; a warning tells where features of very
    different scales leave less than they could). The value lies in [0, 1]. The tasks influence each other through
    that one ratio. Where a task's classes can be told apart without any error (n_i <= D_i as a rule) the ratio 1 is
    attained by many U_i; then the limit from below is taken, which is null-space discriminant analysis.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Each task's number of columns of X, in order. A sample has NaN outside its own task's columns, or X is given
        as `TaskBlocks`. None: all of X is one task, without NaN.
    n_components : int or list of int, default=None
        d_i, for all tasks or for each. None: min(c_i - 1, rank of X_i), the number of directions that can tell
        c_i classes apart; more of them only dilute the ratio.
    method : {"exact", "alternating", "printed"}, default="exact"
        "exact": Newton's method, which finds the global optimum within these ranges, in about 7 iterations; a ratio
        within 1e-8 of 1 counts as 1 - 1e-8. "alternating": the paper's updates of W_i and P (U_i = W_i P) in turn,
        without its steps 2.3 and 2.4: never descends, and where all d_i are equal rests only at that optimum.
        "printed": Table 1 with these steps, which may descend; for comparison only, and it warns.
    intermediate_dim : int, default=None
        d', the columns of W_i, between every d_i and every task's rank. None: halfway. Not for "exact", for
        every optimum over U_i is one over W_i and P whatever d' is.
    task_weights : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,), default="inverse_trace"
        w_i: 1 / tr(S_t^i), so that a task's units do not matter; or 1 as in the paper; or given.
    shrinkage : float in [0, 1], default=0.0
        S_w is replaced by (1 - shrinkage) S_w + shrinkage tr(S_w)/r I within the range, S_t by S_b plus that.
    max_iter : int, default=100
        The most iterations.
    tol : float, default=1e-12
        The smallest relative change of the objective between two iterations that is worth another one.
    n_features_to_select : int, default=None
        How many features ``get_support`` keeps. None: half of them.
    random_state : int, RandomState or None, default=None
        Start of "alternating" and "printed".

    Attributes
    ----------
    projections_ : list of ndarray of shape (D_i, d_i)
        U_i, orthonormal columns; each column's largest entry is positive.
    objective_path_ : ndarray of shape (n_iter_,)
        The ratio after each iteration.
    numerators_, denominators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_b^i U_i) and tr(U_i' S_t^i U_i), unweighted.
    retained_ : ndarray of shape (n_tasks,)
        Share of each task's variance in its projection. Near 0, with a ratio of its own below half of the joint
        one, the joint ratio has dropped the task, and a warning says so.
    task_weights_ : ndarray of shape (n_tasks,)
        w_i.
    ranks_ : ndarray of int, shape (n_tasks,)
        Dimension of the range that each task was solved in.
    task_scores_ : list of ndarray of shape (D_i,)
        Norm of each feature's row of U_i, each column weighted by its own ratio in [0, 1].
    scores_ : ndarray of shape (n_features,)
        All tasks' scores one after the other; larger is better.
    means_, embeddings_, embedded_labels_, task_names_, classes_
        What ``transform`` and the 1-nearest-neighbour rule of ``predict`` need.

    See Also
    --------
    AlignedMTDA : Tasks whose features are mapped into one space.
    BilinearMTDA : Tasks of matrix-valued samples.
    SemiSupervisedMTDA : Tasks some of whose samples have no label.

    References
    ----------
    Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, eq. 3. Its Theorem 1 holds only
    for Q that commute with B, which is why "printed" can descend.

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> flowers, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
    >>> mtda = MTDA().fit_tasks([flowers, digits])
    >>> mtda.transform_task(1, digits[0]).shape
    (1797, 9)
    >>> bool((mtda.predict_task(0, flowers[0]) == flowers[1]).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RANGE_CONSTRAINTS,
        "method": [StrOptions({"exact", "alternating", "printed"})],
        "intermediate_dim": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        method: Literal["exact", "alternating", "printed"] = "exact",
        intermediate_dim: int | None = None,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        shrinkage: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.tasks = tasks
        self.n_components = n_components
        self.method = method
        self.intermediate_dim = intermediate_dim
        self.task_weights = task_weights
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def check(self, n_features: int) -> None:
        """Refuse parameters that are wrong in themselves or for data of this width."""
        super().check(n_features)
        if self.method == "exact" and self.intermediate_dim is not None:
            raise ConfigError(
                f"intermediate_dim={self.intermediate_dim} changes nothing for method='exact':"
                " leave it out, or choose method='alternating' or 'printed'."
            )

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]) -> Iterator[float]:
        problems = [shrunken(reduced.between, reduced.total, self.shrinkage) for reduced in prepared]
        return self._solve_ranges(samples, prepared, problems)

    def _steps(
        self, samples: Sequence[TaskSamples], problems: Sequence[Scatters], sizes: list[int]
    ) -> Iterator[tuple[float, list[FloatArray]]]:
        if self.method == "exact":
            return super()._steps(samples, problems, sizes)
        printed = self.method == "printed"
        if printed:
            warnings.warn(
                "method='printed' follows Table 1, whose steps 2.3 and 2.4 can lower the objective;"
                " 'exact' reaches the optimum.",
                UserWarning,
                stacklevel=3,
            )
        if self.n_components is None:
            ranks = [len(problem.total) for problem in problems]
            sizes = [min(sizes) if printed else min(size, *ranks) for size in sizes]
        width = common_width(self.intermediate_dim, sizes, problems, [str(task) for task in samples])
        steps = alternate(problems, sizes, self.task_weights_, width, check_random_state(self.random_state), printed)
        return (
            (ratio, [p.principal(V, ratio) for p, V in zip(problems, bases, strict=True)]) for ratio, bases in steps
        )
