"""Solver of MTDA for matrix-valued samples: U_i = L_i kron R_i projects a sample X_j (a x b) to L_i' X_j R_i.

For a given R the problem in L has the form of MTDA, with the a x a scatter matrices

    S_b(R) = sum_k n_k/n M_k R R' M_k',     S_t(R) = 1/n sum_j X_j R R' X_j'        (centred X_j, class means M_k)

and vice versa for R. At the current ratio x each task increases tr(U'(S_b - x S_t)U) by alternating updates of L and R;
the ratio that results is the next x, and never decreases. The updates find local optima only, hence several starts.
The extension is mentioned by Zhang & Yeung (AAAI 2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from raysel.base.estimator import COUNT, VOLUME, Capabilities
from raysel.base.task_samples import TaskSamples, pair_of_sides, warn_of_lost_directions
from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.linear_algebra import centre, equilibrated_rank, thin_svd
from raysel.solvers.mtda.shared_ratio import SharedRatioProjector

Factors: TypeAlias = tuple[FloatArray, FloatArray]

#: An ascent stops if an update of L and R increases the objective by less than this share, or after this many updates.
ASCENT_TOL, ASCENT_SWEEPS = 1e-10, 50


@dataclass(frozen=True)
class MatrixTask:
    """Centred matrices of one task, reduced to the ranges of their rows and columns."""

    #: Mean of the samples; shape (a b,).
    mean: FloatArray
    #: Orthonormal basis of the range of the rows, by descending scatter; shape (a, r).
    rows: FloatArray
    #: Orthonormal basis of the range of the columns, by descending scatter; shape (b, s).
    columns: FloatArray
    #: Reduced samples; shape (n, r, s).
    samples: FloatArray
    #: Reduced class means times the root of the class sizes, sqrt(n_k) M_k; shape (c, r, s).
    classes: FloatArray

    def lift(self, factors: Factors) -> FloatArray:
        """Compute U = L kron R in the original features. Returns (a b, k l)."""
        L, R = factors
        return np.asarray(np.kron(self.rows @ L, self.columns @ R), dtype=np.float64)

    def embed(self, factors: Factors) -> FloatArray:
        """Project the samples, L'X_jR. Returns (n, k l)."""
        L, R = factors
        return (L.T @ self.samples @ R).reshape(len(self.samples), -1)

    def traces(self, factors: Factors) -> tuple[float, float]:
        """Compute tr(U'S_bU) and tr(U'S_tU)."""
        L, R = factors
        between, total = (float(((L.T @ part @ R) ** 2).sum()) for part in (self.classes, self.samples))
        return between / len(self.samples), total / len(self.samples)

    def column_ratios(self, factors: Factors) -> FloatArray:
        """Compute the ratio of between-class to total scatter of each column of U. Returns (k l,)."""
        L, R = factors
        between, total = (((L.T @ part @ R) ** 2).sum(axis=0).ravel() for part in (self.classes, self.samples))
        return between / total


def matrix_task(task: TaskSamples, shape: tuple[int, int]) -> MatrixTask:
    """Centre one task's matrices and reduce them to the ranges of their rows and columns."""
    mean, centred = centre(task.X)
    if not centred.any():
        raise DataError(f"{task}: all features are constant; give at least one feature that varies.")
    X, offset = centred.reshape(-1, *shape), np.where(centred.any(axis=0), mean, 0.0).reshape(shape)
    rows = _side(f"{task}, rows", X.transpose(0, 2, 1).reshape(-1, shape[0]), np.linalg.norm(offset, axis=1))
    columns = _side(f"{task}, columns", X.reshape(-1, shape[1]), np.linalg.norm(offset, axis=0))
    reduced = rows.T @ X @ columns
    sums = task.one_hot.T @ reduced.reshape(len(X), -1) / np.sqrt(task.counts)[:, None]
    return MatrixTask(mean, rows, columns, reduced, sums.reshape(-1, *reduced.shape[1:]))


def alternate_sides(
    tasks: Sequence[MatrixTask],
    names: Sequence[str],
    size: tuple[int, int],
    weights: FloatArray,
    n_init: int,
    rng: np.random.RandomState,
) -> Iterator[tuple[float, list[Factors]]]:
    """Update the factors of each task at the shared ratio from all starts, and use the best start; endless.

    `weights` is (n_tasks,).
    """
    for task, name in zip(tasks, names, strict=True):
        r, s = task.samples.shape[1:]
        if size[0] > r or size[1] > s:
            raise ConfigError(f"bilinear={size} does not fit {name}: give at most ({r}, {s}).")
    starts = [
        [np.eye(s, size[1]), *(np.linalg.qr(rng.standard_normal((s, size[1])))[0] for _ in range(n_init - 1))]
        for s in (task.samples.shape[2] for task in tasks)
    ]
    ratio = 0.0
    while True:
        results = [[climb(task, R, size, ratio) for R in of_task] for task, of_task in zip(tasks, starts, strict=True)]
        factors = [max(of_task, key=lambda result: result[0])[1] for of_task in results]
        # All starts are continued, including the best one, so that the ratio cannot decrease.
        starts = [[R for _, (_, R) in of_task] for of_task in results]
        between, total = weights @ np.array([task.traces(f) for task, f in zip(tasks, factors, strict=True)])
        ratio = float(between / total)
        yield ratio, factors


def climb(task: MatrixTask, R: FloatArray, size: tuple[int, int], ratio: float) -> tuple[float, Factors]:
    """Maximise tr(U'(S_b - x S_t)U) locally by alternating updates of L and R. `R` is (s, l)."""
    value = -np.inf
    transposed = (task.classes.transpose(0, 2, 1), task.samples.transpose(0, 2, 1))
    for _ in range(ASCENT_SWEEPS):
        _, L = _leading(task.classes, task.samples, R, size[0], ratio)
        reached, R = _leading(*transposed, L, size[1], ratio)
        if reached - value <= ASCENT_TOL * abs(reached):
            break
        value = reached
    return reached, (L, R)


def _leading(
    classes: FloatArray, samples: FloatArray, other: FloatArray, size: int, ratio: float
) -> tuple[float, FloatArray]:
    """Sum of the ``size`` largest eigenvalues of S_b(R) - x S_t(R), and their eigenvectors."""
    between, total = (np.tensordot(P, P, axes=([0, 2], [0, 2])) for P in (classes @ other, samples @ other))
    values, vectors = scipy.linalg.eigh((between - ratio * total) / len(samples), check_finite=False)
    return float(values[-size:].sum()), np.ascontiguousarray(vectors[:, : -size - 1 : -1])


def _side(named: str, stacked: FloatArray, offset: FloatArray) -> FloatArray:
    basis = thin_svd(stacked, offset)[2]
    rank = basis.shape[1]
    warn_of_lost_directions(named, rank, equilibrated_rank(stacked, offset, rank))
    return basis


class BilinearMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis of matrix-valued samples, with separate projections of rows and columns.

        maximise over L_i'L_i = I, R_i'R_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i' S_t^i U_i)

    with U_i = L_i kron R_i, which projects a sample X (a_i x b_i) to L_i' X R_i. The alternating updates of L_i and
    R_i find local optima only, hence several starts.

    Parameters
    ----------
    tasks : dict of str to tuple of (int, int), default=None
        Shape (a_i, b_i) of each task's samples, whose cells are columns of X in C order. None: one task.
    shape : tuple of (int, int), default=None
        Shape of the samples of one task. None: the samples are vectors, i.e. matrices of one column.
    bilinear : (int, int), default=None
        Number of columns k of every L_i and l of every R_i. None: for either side the minimum over the tasks of its
        rank and c_i - 1.
    n_init : int, default=5
        Number of starts of each task: the leading directions of its total scatter, and n_init - 1 random ones.
    task_weights : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,), default="inverse_trace"
        Weights w_i: 1 / tr(S_t^i), 1, or the given numbers.
    max_iter : int, default=100
        Maximum number of updates of the ratio.
    tol : float, default=1e-12
        Relative change of the objective below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.
    random_state : int, RandomState or None, default=None
        Seed of the random starts. None: NumPy's global generator.

    Attributes
    ----------
    projections_ : list of ndarray of shape (a_i b_i, k l)
        U_i of each task, with orthonormal columns; the largest entry of each column is positive.
    ranks_ : ndarray of int, shape (n_tasks, 2)
        Dimensions of the ranges of each task's rows and columns.
    objective_path_, numerators_, denominators_, retained_, task_weights_, task_scores_, scores_, means_, embeddings_, \
embedded_labels_, task_names_, classes_
        See `MTDA`.

    References
    ----------
    The extension is mentioned by Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BilinearMTDA(shape=(8, 8), bilinear=(6, 6), random_state=0).fit(X[:900], y[:900])
    >>> model.transform(X[900:]).shape
    (897, 36)
    >>> model.score(X[900:], y[900:]) > 0.85
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shape": ["array-like", None],
        "bilinear": ["array-like", None],
        "n_init": [COUNT],
    }
    capabilities: ClassVar[Capabilities] = replace(
        SharedRatioProjector.capabilities,
        local_optimum=True,
        layouts=SharedRatioProjector.capabilities.layouts - {VOLUME},
        max_axes=2,
    )
    layout_parameters: ClassVar[frozenset[str]] = frozenset({"tasks", "shape"})
    n_components = None  # the number of components is k l, set by `bilinear`

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        shape: Sequence[int] | None = None,
        bilinear: Sequence[int] | None = None,
        n_init: int = 5,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.tasks = tasks
        self.shape = shape
        self.bilinear = bilinear
        self.n_init = n_init
        self.task_weights = task_weights
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def complexity_key(self) -> tuple[float, ...]:
        """Return the number of components; the default counts as the largest number."""
        return (np.inf if self.bilinear is None else float(np.prod(self.bilinear)),)

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or the shapes do not match ``n_features``.
        """
        super().check(n_features)
        if self.tasks is not None and self.shape is not None:
            raise ConfigError(f"shape={self.shape!r} is for one task; give shape=None, and the shapes in tasks.")
        if self.shape is not None and int(np.prod(pair_of_sides("shape", self.shape))) != n_features:
            raise ConfigError(
                f"shape={tuple(self.shape)} does not fit the {n_features} columns of X; the product of its sides must"
                f" be {n_features}."
            )
        if self.bilinear is None:
            return
        rows, columns = pair_of_sides("bilinear", self.bilinear)
        for name, (a, b) in zip(self.tasks or {"": 0}, self._shapes(1, n_features), strict=False):
            if rows > a or columns > b:
                where = f"task {name!r} of shape ({a}, {b})" if name else f"samples of shape ({a}, {b})"
                raise ConfigError(f"bilinear=({rows}, {columns}) does not fit {where}: give at most ({a}, {b}).")

    def _shapes(self, n_tasks: int, n_features: int) -> list[tuple[int, int]]:
        if self.tasks is None:
            if n_tasks > 1:
                raise ConfigError("several tasks need the shapes of their samples, e.g. tasks={'faces': (28, 23), ..}.")
            return [(n_features, 1) if self.shape is None else pair_of_sides("shape", self.shape)]
        for name, shape in self.tasks.items():
            if isinstance(shape, int) or len(shape) != 2:
                raise ConfigError(
                    f"task {name!r} has the shape {shape!r}: give the two sides of its matrices, e.g."
                    f" tasks={{{name!r}: (28, 23), ..}}."
                )
        return [pair_of_sides("tasks", shape) for shape in self.tasks.values()]  # type: ignore[arg-type] # no int, as checked

    def _reduce(self, samples: Sequence[TaskSamples]) -> tuple[MatrixTask, ...]:
        shapes = self._shapes(len(samples), samples[0].X.shape[1])
        return tuple(matrix_task(task, shape) for task, shape in zip(samples, shapes, strict=True))

    def _solve(self, samples: Sequence[TaskSamples], prepared: Sequence[MatrixTask]) -> Iterator[float]:
        size = self._size(samples, prepared)
        totals = np.array([(task.samples**2).sum() / len(task.samples) for task in prepared])
        self._weigh(samples, totals)
        self.ranks_ = np.array([task.samples.shape[1:] for task in prepared])
        names, rng = [str(task) for task in samples], check_random_state(self.random_state)
        for ratio, factors in alternate_sides(prepared, names, size, self.task_weights_, self.n_init, rng):
            projections = [task.lift(pair) for task, pair in zip(prepared, factors, strict=True)]
            embeddings = [task.embed(pair) for task, pair in zip(prepared, factors, strict=True)]
            values = [task.column_ratios(pair) for task, pair in zip(prepared, factors, strict=True)]
            self._keep(samples, [task.mean for task in prepared], projections, values, embeddings)
            self._record([task.traces(pair) for task, pair in zip(prepared, factors, strict=True)], totals)
            yield ratio

    def _size(self, samples: Sequence[TaskSamples], prepared: Sequence[MatrixTask]) -> tuple[int, int]:
        if self.bilinear is not None:
            return pair_of_sides("bilinear", self.bilinear)
        largest = min(len(task.classes) - 1 for task in samples)
        rows, columns = np.min([task.samples.shape[1:] for task in prepared], axis=0).tolist()
        return min(largest, rows), min(largest, columns)
