"""Estimator of multi-task discriminant analysis."""

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

    Task i has samples X_i (n_i x D_i) of c_i classes in its own feature space. With its between-class and
    total scatter matrices S_b^i and S_t^i, each divided by n_i, MTDA solves

        maximise over U_i'U_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' S_t^i U_i)

    within the numerical range of each S_t^i (of dimension ``ranks_``; a warning is issued if the scales of the
    features differ so much that rounding loses directions). The ratio lies in [0, 1] and is shared by all tasks. If
    the classes of a task can be separated without error, as is usual for n_i <= D_i, many U_i attain the ratio 1; the
    solution is then the limit from below, which is null-space discriminant analysis.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. X has NaN outside the columns of
        a sample's own task, or is `TaskBlocks`. None: X is an array of one task, without NaN.
    n_components : int or list of int, default=None
        Number of directions d_i, for all tasks or for each one. None: min(c_i - 1, rank of X_i), as c_i classes span
        c_i - 1 dimensions; more directions reduce the ratio.
    method : {"exact", "alternating", "printed"}, default="exact"
        "exact": Newton's method, which finds the global optimum within these ranges, in about 7 iterations; a ratio
        above 1 - 1e-8 counts as 1 - 1e-8. "alternating": the paper's alternating updates of W_i and P (U_i = W_i P)
        without its steps 2.3 and 2.4; the ratio never decreases, and if all d_i are equal, only the global optimum is
        a fixed point. "printed": Table 1 of the paper with these steps, for comparison only; the ratio may decrease,
        and a warning is issued.
    intermediate_dim : int, default=None
        Number of columns d' of W_i, between every d_i and every task's rank. None: halfway. Must be None for "exact",
        because the optimal U_i do not depend on d'.
    task_weights : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,), default="inverse_trace"
        Weights w_i. "inverse_trace": 1 / tr(S_t^i), which makes the result independent of a task's units. "uniform":
        1, as in the paper. Otherwise the given numbers.
    shrinkage : float in [0, 1], default=0.0
        Replace S_w by (1 - shrinkage) S_w + shrinkage tr(S_w)/r I within the range of dimension r, and S_t by the sum
        of S_b and that matrix.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-12
        Relative change of the objective below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.
    random_state : int, RandomState or None, default=None
        Seed of the random start of "alternating" and "printed". None: NumPy's global generator.

    Attributes
    ----------
    projections_ : list of ndarray of shape (D_i, d_i)
        U_i of each task, with orthonormal columns; the largest entry of each column is positive.
    objective_path_ : ndarray of shape (n_iter_,)
        Ratio after each iteration.
    numerators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_b^i U_i) of each task, unweighted.
    denominators_ : ndarray of shape (n_tasks,)
        tr(U_i' S_t^i U_i) of each task, unweighted.
    retained_ : ndarray of shape (n_tasks,)
        Share of each task's variance in its projection. If it is close to 0 and the task's own ratio is below half of
        the joint one, the joint ratio has dropped the task, and a warning is issued.
    task_weights_ : ndarray of shape (n_tasks,)
        Weights w_i that were used.
    ranks_ : ndarray of int, shape (n_tasks,)
        Dimension of the range of each task's total scatter.
    task_scores_ : list of ndarray of shape (D_i,)
        Norm of each feature's row of U_i, whose columns are weighted by their own ratios in [0, 1].
    scores_ : ndarray of shape (n_features,)
        Concatenated scores of all tasks; larger is better.
    means_, embeddings_, embedded_labels_, task_names_, classes_
        See `FittedProjection`.

    See Also
    --------
    AlignedMTDA : Tasks whose features are mapped into one space.
    BilinearMTDA : Tasks of matrix-valued samples.
    SemiSupervisedMTDA : Tasks with unlabelled samples.

    References
    ----------
    Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, eq. 3. Its Theorem 1 holds only
    for Q that commute with B, which is why the ratio of "printed" may decrease.

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
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or ``intermediate_dim`` is set for "exact".
        """
        super().check(n_features)
        if self.method == "exact" and self.intermediate_dim is not None:
            raise ConfigError(
                f"intermediate_dim={self.intermediate_dim} has no effect for method='exact':"
                " remove it, or choose method='alternating' or 'printed'."
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
                "method='printed' follows Table 1 of the paper, whose steps 2.3 and 2.4 can lower the objective;"
                " use method='exact' for the optimum.",
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
