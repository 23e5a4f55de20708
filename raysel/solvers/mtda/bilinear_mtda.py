"""MTDA of matrices or tensors: U_i = A_i^1 kron .. kron A_i^N projects each axis.

A matrix X_j (a x b) is projected to L_i' X_j R_i. For a given R the problem in L has the form of
MTDA, with the a x a scatter matrices

    S_b(R) = sum_k n_k/n M_k R R' M_k',     S_t(R) = 1/n sum_j X_j R R' X_j'        (centred X_j,
    class means M_k)

and vice versa for R; of samples with more axes likewise each axis, once all others are projected.
At the current ratio x each task increases tr(U'(S_b - x S_t)U) by updates of its factors in turn;
the ratio that results is the next x, and never decreases. The updates find local optima only, hence
several starts. The extension is mentioned by Zhang & Yeung (AAAI 2011).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from raysel.base.estimator import COUNT, VOLUME, Capabilities
from raysel.base.task_samples import (
    TaskSamples,
    read_sides,
    warn_of_lost_directions,
    whole_numbers,
)
from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.linear_algebra import centre, equilibrated_rank, kronecker, projected, thin_svd
from raysel.solvers.mtda.shared_ratio import SharedRatioProjector

#: One matrix an axis, with orthonormal columns; shapes (r_q, k_q).
Factors: TypeAlias = list[FloatArray]

#: An ascent stops if an update of all factors increases the objective by less than this share, or
#: after this many.
ASCENT_TOL, ASCENT_SWEEPS = 1e-10, 50


@dataclass(frozen=True)
class ArrayTask:
    """Centred samples of one task, reduced to the ranges of the vectors along each axis."""

    #: Mean of the samples; shape (product of the sides,).
    mean: FloatArray
    #: Orthonormal basis of the range of each axis, by descending scatter; shapes (m_q, r_q).
    bases: tuple[FloatArray, ...]
    #: Reduced samples; shape (n, r_1, .., r_N).
    samples: FloatArray
    #: Reduced class means times the root of the class sizes, sqrt(n_k) M_k; shape (c, r_1, ..,
    #: r_N).
    classes: FloatArray

    @property
    def ranks(self) -> tuple[int, ...]:
        """Dimensions of the ranges."""
        return self.samples.shape[1:]

    def lift(self, factors: Factors) -> FloatArray:
        """Compute U, the Kronecker product of all factors, in the original features."""
        return kronecker(basis @ A for basis, A in zip(self.bases, factors, strict=True))

    def embed(self, factors: Factors) -> FloatArray:
        """Project the samples, one row each."""
        return projected(self.samples, factors).reshape(len(self.samples), -1)

    def traces(self, factors: Factors) -> tuple[float, float]:
        """Compute tr(U'S_bU) and tr(U'S_tU)."""
        between, total = (
            float((projected(part, factors) ** 2).sum()) for part in (self.classes, self.samples)
        )
        return between / len(self.samples), total / len(self.samples)

    def column_ratios(self, factors: Factors) -> FloatArray:
        """Compute the ratio of between-class to total scatter of each column of U."""
        between, total = (
            (projected(part, factors) ** 2).sum(axis=0).ravel()
            for part in (self.classes, self.samples)
        )
        return between / total


def array_task(task: TaskSamples, shape: tuple[int, ...]) -> ArrayTask:
    """Centre one task's samples and reduce them to the ranges of the vectors along each axis."""
    mean, centred = centre(task.X)
    if not centred.any():
        raise DataError(
            f"{task}: all features are constant; give at least one feature that varies."
        )
    X, offset = centred.reshape(-1, *shape), np.where(centred.any(axis=0), mean, 0.0).reshape(shape)
    axes: tuple[str, ...] = ("rows", "columns")
    if len(shape) != 2:
        axes = tuple(f"axis {axis}" for axis in range(len(shape)))
    bases = tuple(
        _side(
            f"{task}, {named}",
            np.moveaxis(X, mode + 1, -1).reshape(-1, shape[mode]),
            np.linalg.norm(np.moveaxis(offset, mode, 0).reshape(shape[mode], -1), axis=1),
        )
        for mode, named in enumerate(axes)
    )
    reduced = projected(X, bases)
    sums = task.one_hot.T @ reduced.reshape(len(X), -1) / np.sqrt(task.counts)[:, None]
    return ArrayTask(mean, bases, reduced, sums.reshape(-1, *reduced.shape[1:]))


def alternate_modes(
    tasks: Sequence[ArrayTask],
    sizes: Sequence[tuple[int, ...]],
    weights: FloatArray,
    n_init: int,
    rng: np.random.RandomState,
) -> Iterator[tuple[float, list[Factors]]]:
    """Update the factors of each task at the shared ratio from all starts, without end.

    `sizes` has the numbers of columns of each task's factors; `weights` is (n_tasks,).
    """
    starts = [
        [
            [np.eye(r, k) for r, k in sides],
            *([_orthonormal(r, k, rng) for r, k in sides] for _ in range(n_init - 1)),
        ]
        for sides in (
            [*zip(task.ranks, size, strict=True)][1:]
            for task, size in zip(tasks, sizes, strict=True)
        )
    ]
    ratio = 0.0
    while True:
        results = [
            [climb(task, start, size, ratio) for start in of_task]
            for task, of_task, size in zip(tasks, starts, sizes, strict=True)
        ]
        factors = [max(of_task, key=lambda result: result[0])[1] for of_task in results]
        # All starts are continued, including the best one, so that the ratio cannot decrease.
        starts = [[found[1:] for _, found in of_task] for of_task in results]
        between, total = weights @ np.array(
            [task.traces(f) for task, f in zip(tasks, factors, strict=True)]
        )
        ratio = float(between / total)
        yield ratio, factors


def climb(
    task: ArrayTask, start: Factors, size: tuple[int, ...], ratio: float
) -> tuple[float, Factors]:
    """Maximise tr(U'(S_b - x S_t)U) locally by updates of all factors in turn."""
    value, factors = -np.inf, [np.empty(0), *start]
    for _ in range(ASCENT_SWEEPS):
        for mode, k in enumerate(size):
            reached, factors[mode] = _leading(task, factors, mode=mode, size=k, ratio=ratio)
        if reached - value <= ASCENT_TOL * abs(reached):
            break
        value = reached
    return reached, factors


def _leading(
    task: ArrayTask, factors: Factors, mode: int, size: int, ratio: float
) -> tuple[float, FloatArray]:
    """Sum of the ``size`` largest eigenvalues of an axis's S_b - x S_t, and their eigenvectors."""
    others = [factors[mode], *factors[:mode], *factors[mode + 1 :]]
    parts = (
        projected(np.moveaxis(part, mode + 1, 1), others, but=0)
        for part in (task.classes, task.samples)
    )
    between, total = (np.tensordot(P, P, axes=([0, *range(2, P.ndim)],) * 2) for P in parts)
    values, vectors = scipy.linalg.eigh(
        (between - ratio * total) / len(task.samples), check_finite=False
    )
    return float(values[-size:].sum()), np.ascontiguousarray(vectors[:, : -size - 1 : -1])


def _orthonormal(rows: int, columns: int, rng: np.random.RandomState) -> FloatArray:
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


def _side(named: str, stacked: FloatArray, offset: FloatArray) -> FloatArray:
    basis = thin_svd(stacked, offset)[2]
    rank = basis.shape[1]
    warn_of_lost_directions(named, rank, equilibrated_rank(stacked, offset, rank))
    return basis


class BilinearMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis of matrices or tensors, with a projection of each axis.

        maximise over L_i'L_i = I, R_i'R_i = I:   sum_i w_i tr(U_i' S_b^i U_i) / sum_i w_i tr(U_i'
        S_t^i U_i)

    with U_i = L_i kron R_i, which projects a sample X (a_i x b_i) to L_i' X R_i, and one factor an
    axis, U_i = A_i^1 kron .. kron A_i^N, for samples of more axes. The factors are updated in turn,
    which finds local optima only, hence several starts. Tasks may differ in their number of axes.

    Parameters
    ----------
    tasks : dict of str to tuple of int or int, default=None
        Sides of each task's samples, whose cells are columns of X in C order; a number of columns
        for vectors. None: one task.
    shape : tuple of int, default=None
        Sides of the samples of one task. None: the samples are vectors, i.e. matrices of one
        column.
    components : sequence of int, default=None
        Number of columns of the factors of each axis, for matrices k of every L_i and l of every
        R_i; a task of fewer axes has the first ones. None: for each axis the minimum over the tasks
        that have it of its rank and c_i - 1.
    n_init : int, default=5
        Number of starts of each task: the leading directions of its total scatter, and n_init - 1
        random ones.
    task_weights : {"inverse_trace", "uniform"} or array of n_tasks floats, default="inverse_trace"
        Weights w_i: 1 / tr(S_t^i), 1, or the given numbers.
    max_iter : int, default=100
        Maximum number of updates of the ratio.
    tol : float, default=1e-12
        Relative change of the objective below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.
    random_state : int, RandomState or None, default=None
        Seed of the random starts. None: NumPy's global generator.
    bilinear : (int, int), default=None
        Former name of ``components``.

    Attributes
    ----------
    projections_ : list of ndarray of shape (n_features_i, product of components)
        U_i of each task, with orthonormal columns; the largest entry of each column is positive.
    ranks_ : ndarray of int, shape (n_tasks, n_axes)
        Dimensions of the ranges of each task's axes, of matrices of its rows and columns; 1 for an
        axis that a task has not.
    objective_path_, numerators_, denominators_, retained_, task_weights_, task_scores_, scores_, \
means_, embeddings_, embedded_labels_, task_names_, classes_
        See `MTDA`.

    References
    ----------
    The extension is mentioned by Zhang & Yeung, "Multi-task learning in heterogeneous feature
    spaces", AAAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BilinearMTDA(shape=(8, 8), components=(6, 6), random_state=0).fit(X[:900], y[:900])
    >>> model.transform(X[900:]).shape
    (897, 36)
    >>> model.score(X[900:], y[900:]) > 0.85
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shape": ["array-like", None],
        "components": ["array-like", None],
        "bilinear": ["array-like", None],
        "n_init": [COUNT],
    }
    capabilities: ClassVar[Capabilities] = replace(
        SharedRatioProjector.capabilities,
        local_optimum=True,
        layouts=SharedRatioProjector.capabilities.layouts - {VOLUME},
    )
    layout_parameters: ClassVar[frozenset[str]] = frozenset({"tasks", "shape"})
    n_components = None  # the number of components is their product

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        shape: Sequence[int] | None = None,
        components: Sequence[int] | None = None,
        n_init: int = 5,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        bilinear: Sequence[int] | None = None,
    ) -> None:
        self.tasks = tasks
        self.shape = shape
        self.components = components
        self.n_init = n_init
        self.task_weights = task_weights
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state
        self.bilinear = bilinear

    def complexity_key(self) -> tuple[float, ...]:
        """Return the number of components; the default counts as the largest number."""
        _, given = self._given
        if given is None:
            return (np.inf,)
        return (float(np.prod(given)),)

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
            raise ConfigError(
                f"shape={self.shape!r} is for one task; give shape=None, and the shapes in tasks."
            )
        if self.components is not None and self.bilinear is not None:
            raise ConfigError("bilinear is the former name of components: give components only.")
        shapes = self._shapes(1, n_features)
        if self.tasks is None and math.prod(shapes[0]) != n_features:
            raise ConfigError(
                f"shape={tuple(self.shape or ())} does not fit the {n_features} columns of X; the"
                f" product of its sides must be {n_features}."
            )
        key, given = self._given
        if given is None:
            return
        wanted = whole_numbers(key, given, max(map(len, shapes)))
        for name, shape in zip(self.tasks or [""], shapes, strict=True):
            where = f"samples of shape {shape}"
            if name:
                where = f"task {name!r} of shape {shape}"
            self._require(wanted, shape, where)

    @property
    def _given(self) -> tuple[str, Sequence[int] | None]:
        """Number of columns of each factor, and the parameter that gives it."""
        if self.bilinear is None:
            return "components", self.components
        return "bilinear", self.bilinear

    def _require(self, wanted: tuple[int, ...], most: tuple[int, ...], where: str) -> None:
        """Refuse more columns than an axis has directions."""
        if any(k > side for k, side in zip(wanted, most, strict=False)):
            raise ConfigError(
                f"{self._given[0]}={wanted} does not fit {where}: give at most {most}."
            )

    def _shapes(self, n_tasks: int, n_features: int) -> list[tuple[int, ...]]:
        if self.tasks is None:
            if n_tasks > 1:
                raise ConfigError(
                    "several tasks need the shapes of their samples, e.g. tasks={'faces': (28, 23),"
                    " ..}."
                )
            return [read_sides(self.shape, n_features)]
        return [
            whole_numbers("tasks", (shape,) if isinstance(shape, int) else shape)
            for shape in self.tasks.values()
        ]

    def _reduce(self, samples: Sequence[TaskSamples]) -> tuple[ArrayTask, ...]:
        shapes = self._shapes(len(samples), samples[0].X.shape[1])
        return tuple(array_task(task, shape) for task, shape in zip(samples, shapes, strict=True))

    def _solve(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ArrayTask]
    ) -> Iterator[float]:
        sizes = self._components(samples, prepared)
        totals = np.array([(task.samples**2).sum() / len(task.samples) for task in prepared])
        self._weigh(samples, totals)
        n_axes = max(len(task.ranks) for task in prepared)
        self.ranks_ = np.array(
            [(*task.ranks, *(1 for _ in range(n_axes - len(task.ranks)))) for task in prepared]
        )
        rng = check_random_state(self.random_state)
        for ratio, factors in alternate_modes(
            prepared, sizes, weights=self.task_weights_, n_init=self.n_init, rng=rng
        ):
            projections = [task.lift(f) for task, f in zip(prepared, factors, strict=True)]
            embeddings = [task.embed(f) for task, f in zip(prepared, factors, strict=True)]
            values = [task.column_ratios(f) for task, f in zip(prepared, factors, strict=True)]
            self._keep(
                samples,
                means=[task.mean for task in prepared],
                projections=projections,
                values=values,
                embeddings=embeddings,
            )
            self._record(
                [task.traces(f) for task, f in zip(prepared, factors, strict=True)], totals
            )
            yield ratio

    def _components(
        self, samples: Sequence[TaskSamples], prepared: Sequence[ArrayTask]
    ) -> list[tuple[int, ...]]:
        """Number of columns of each factor of each task."""
        axes = list(zip_longest(*(task.ranks for task in prepared), fillvalue=None))
        key, given = self._given
        if given is None:
            largest = min(len(task.classes) - 1 for task in samples)
            wanted = tuple(
                min(largest, *(rank for rank in ranks if rank is not None)) for ranks in axes
            )
        else:
            wanted = whole_numbers(key, given, len(axes))
        for task, reduced in zip(samples, prepared, strict=True):
            self._require(wanted, reduced.ranks, str(task))
        return [wanted[: len(task.ranks)] for task in prepared]
