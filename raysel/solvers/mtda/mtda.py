"""Multi-task discriminant analysis (MTDA): one trace ratio of all tasks, solved exactly.

The alternation updates each task's map W_i and the common P, corrected or as printed in the paper,
to

    maximise  sum_i w_i tr(P'W_i' B_i W_i P) / sum_i w_i tr(P'W_i' T_i W_i P),   W_i'W_i = I_{d'},
    P'P = I_d

Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, Table 1. Task i
uses the first d_i columns of P.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from raysel.base.estimator import COUNT
from raysel.base.task_samples import TaskSamples
from raysel.core.arrays import FloatArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.numerics.discriminants import (
    LARGEST_RATIO,
    ScatterRange,
    Scatters,
    shared_ratio,
    shrunken,
)
from raysel.solvers.mtda.shared_ratio import SharedRatioProjector


def common_width(
    wanted: int | None, sizes: Sequence[int], problems: Sequence[Scatters], names: Sequence[str]
) -> int:
    """Return the dimension d' of the space that every W_i maps into."""
    rank, narrowest = min(
        (len(problem.total), name) for problem, name in zip(problems, names, strict=True)
    )
    width = wanted or (max(sizes) + rank + 1) // 2
    if not max(sizes) <= width <= rank:
        raise ConfigError(
            f"intermediate_dim={width} must lie between n_components ({max(sizes)}) and the rank"
            f" {rank} of {narrowest}, because the alternating methods map all tasks into one space."
        )
    return width


def alternate(
    problems: Sequence[Scatters],
    sizes: Sequence[int],
    weights: FloatArray,
    width: int,
    rng: np.random.RandomState,
    printed: bool = False,
) -> Iterator[tuple[float, list[FloatArray]]]:
    """Update every W_i, then P, from a random start; endless.

    Each update maximises sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P) at the ratio x attained before it,
    so that the ratio never decreases; if all d_i are equal, only the global optimum is a fixed
    point. Table 1 of the paper also rotates every W_i after its update (steps 2.3 and 2.4) although
    the ratio depends on the position of W_i relative to P; with these steps the ratio may decrease.

    `weights` is (len(problems),); yields `bases` each (r_i, d_i).
    """
    maps = [_random_orthonormal(len(problem.total), width, rng) for problem in problems]
    common = _random_orthonormal(width, max(sizes), rng)
    while True:
        ratio = shared_ratio(problems, _bases(maps, common, sizes), weights)
        maps = [
            update_map(problem, ratio, common[:, :d])
            for problem, d in zip(problems, sizes, strict=True)
        ]
        if printed:
            maps = [turn_to_total(problem, W) for problem, W in zip(problems, maps, strict=True)]
        ratio = shared_ratio(problems, _bases(maps, common, sizes), weights)
        common = update_common(
            problems, ratio, maps=maps, common=common, sizes=sizes, weights=weights
        )
        bases = _bases(maps, common, sizes)
        yield shared_ratio(problems, bases, weights), bases


def update_map(problem: Scatters, ratio: float, common: FloatArray) -> FloatArray:
    """Maximise tr(P'W'(B - x T)W P) over W: W = E [P, P_perp]' with leading eigenvectors E.

    `common` is (d', d); returns (r, d').
    """
    width, size = common.shape
    complement = scipy.linalg.qr(common, check_finite=False)[0][:, size:]
    leading = problem.leading(min(ratio, LARGEST_RATIO), width)
    return leading @ np.concatenate([common, complement], axis=1).T


def turn_to_total(problem: Scatters, W: FloatArray) -> FloatArray:
    """Rotate W to the leading eigenvectors of W W' T W W', steps 2.3 and 2.4 of Table 1.

    `W` is (r, d'); returns (r, d').
    """
    inner = W.T @ (problem.total[:, None] * W)
    projected = problem.between.T @ W
    _, vectors = scipy.linalg.eigh(
        inner + problem.overlap * projected.T @ projected, check_finite=False
    )
    return W @ vectors[:, ::-1]


def update_common(
    problems: Sequence[Scatters],
    ratio: float,
    maps: Sequence[FloatArray],
    common: FloatArray,
    sizes: Sequence[int],
    weights: FloatArray,
) -> FloatArray:
    """Maximise sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P) over P, given all W_i.

    Task i uses the first d_i columns of P. Columns used by the same tasks form a block, which is
    maximised exactly in the complement of the other blocks; if all d_i are equal, there is one
    block, and the result is the maximum.

    Each of `maps` is (r_i, d'), `common` is (d', max d_i), `weights` (len(problems),); returns
    (d', max d_i).
    """
    ratio = min(ratio, LARGEST_RATIO)
    inner = [
        weight * W.T @ problem.difference(ratio) @ W
        for weight, problem, W in zip(weights, problems, maps, strict=True)
    ]
    common = np.array(common)
    stops = sorted(set(sizes))
    for start, stop in zip([0, *stops], stops, strict=False):
        block = slice(start, stop)
        others = np.delete(common, block, axis=1)
        free: Any = np.eye(len(common))
        if others.size:
            free = scipy.linalg.qr(others, check_finite=False)[0][:, others.shape[1] :]
        matrix = sum(A for A, size in zip(inner, sizes, strict=True) if size >= stop)
        _, vectors = scipy.linalg.eigh(free.T @ matrix @ free, check_finite=False)
        common[:, block] = free @ vectors[:, ::-1][:, : stop - start]
    return common


def _bases(
    maps: Sequence[FloatArray], common: FloatArray, sizes: Sequence[int]
) -> list[FloatArray]:
    return [W @ common[:, :size] for W, size in zip(maps, sizes, strict=True)]


def _random_orthonormal(rows: int, columns: int, rng: np.random.RandomState) -> FloatArray:
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


class MTDA(SharedRatioProjector):
    """Multi-task discriminant analysis.

    Task i has samples X_i (n_i x D_i) of c_i classes in its own feature space. With its
    between-class and total scatter matrices S_b^i and S_t^i, each divided by n_i, MTDA solves

        maximise over U_i'U_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' S_t^i U_i)

    within the numerical range of each S_t^i (of dimension ``ranks_``; a warning is issued if the
    scales of the features differ so much that rounding loses directions). The ratio lies in [0, 1]
    and is shared by all tasks. If the classes of a task can be separated without error, as is usual
    for n_i <= D_i, many U_i attain the ratio 1; the solution is then the limit from below, which is
    null-space discriminant analysis.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. X has NaN
        outside the columns of a sample's own task, or is `TaskBlocks`. None: X is an array of one
        task, without NaN.
    n_components : int or list of int, default=None
        Number of directions d_i, for all tasks or for each one. None: min(c_i - 1, rank of X_i), as
        c_i classes span c_i - 1 dimensions; more directions reduce the ratio.
    method : {"exact", "alternating", "printed"}, default="exact"
        "exact": Newton's method, which finds the global optimum within these ranges, in about 7
        iterations; a ratio above 1 - 1e-8 counts as 1 - 1e-8. "alternating": the paper's
        alternating updates of W_i and P (U_i = W_i P) without its steps 2.3 and 2.4; the ratio
        never decreases, and if all d_i are equal, only the global optimum is a fixed point.
        "printed": Table 1 of the paper with these steps, for comparison only; the ratio may
        decrease, and a warning is issued.
    intermediate_dim : int, default=None
        Number of columns d' of W_i, between every d_i and every task's rank. None: halfway. Must be
        None for "exact", because the optimal U_i do not depend on d'.
    task_weights : {"inverse_trace", "uniform"} or array of n_tasks floats, default="inverse_trace"
        Weights w_i. "inverse_trace": 1 / tr(S_t^i), which makes the result independent of a task's
        units. "uniform": 1, as in the paper. Otherwise the given numbers.
    shrinkage : float in [0, 1], default=0.0
        Replace S_w by (1 - shrinkage) S_w + shrinkage tr(S_w)/r I within the range of dimension r,
        and S_t by the sum of S_b and that matrix.
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
        Share of each task's variance in its projection. If it is close to 0 and the task's own
        ratio is below half of the joint one, the joint ratio has dropped the task, and a warning is
        issued.
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
    Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, eq. 3. Its
    Theorem 1 holds only for Q that commute with B, which is why the ratio of "printed" may
    decrease.

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
        "method": [StrOptions({"exact", "alternating", "printed"})],
        "intermediate_dim": [COUNT, None],
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

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ScatterRange]
    ) -> Iterator[float]:
        problems = [
            shrunken(reduced.between, reduced.total, self.shrinkage) for reduced in prepared
        ]
        return self._solve_ranges(samples, prepared, problems)

    def _steps(
        self, samples: Sequence[TaskSamples], problems: Sequence[Scatters], sizes: list[int]
    ) -> Iterator[tuple[float, list[FloatArray]]]:
        if self.method == "exact":
            return super()._steps(samples, problems, sizes)
        printed = self.method == "printed"
        if printed:
            warnings.warn(
                "method='printed' follows Table 1 of the paper, whose steps 2.3 and 2.4 can lower"
                " the objective; use method='exact' for the optimum.",
                UserWarning,
                stacklevel=3,
            )
        if self.n_components is None:
            ranks = [len(problem.total) for problem in problems]
            sizes = [min(sizes) if printed else min(size, *ranks) for size in sizes]
        width = common_width(
            self.intermediate_dim, sizes, problems, [str(task) for task in samples]
        )
        steps = alternate(
            problems,
            sizes,
            weights=self.task_weights_,
            width=width,
            rng=check_random_state(self.random_state),
            printed=printed,
        )
        return (
            (ratio, [p.principal(V, ratio) for p, V in zip(problems, bases, strict=True)])
            for ratio, bases in steps
        )
