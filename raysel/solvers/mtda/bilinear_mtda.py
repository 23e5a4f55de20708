"""Estimator of MTDA for matrix-valued samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from raysel.base.capabilities import VOLUME, Capabilities
from raysel.base.projections.task_samples import TaskSamples
from raysel.data.layouts import Layout, Tasks, Tensor
from raysel.errors import ConfigError
from raysel.solvers.mtda.bilinear import MatrixTask, alternate_sides, matrix_task
from raysel.solvers.mtda.shared_ratio import COMMON_CONSTRAINTS, SharedRatioProjector
from raysel.validation import Interval


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
        **COMMON_CONSTRAINTS,
        "shape": ["array-like", None],
        "bilinear": ["array-like", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
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

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator for the tasks of a layout, or for the shape of one task's samples.

        Parameters
        ----------
        layout : Layout
            Layout of the data.
        **params
            Parameters of the constructor except ``tasks`` and ``shape``.

        Returns
        -------
        BilinearMTDA
            The unfitted estimator.
        """
        if isinstance(layout, Tasks):
            return cls(tasks=dict(layout.tasks), **params)
        return cls(shape=layout.shape if isinstance(layout, Tensor) and len(layout.shape) == 2 else None, **params)

    def complexity_key(self) -> tuple[float, ...]:
        """Return the number of components; the default counts as the largest number.

        Returns
        -------
        tuple of float
            Smaller for fewer components.
        """
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
        if self.shape is not None and int(np.prod(_pair("shape", self.shape))) != n_features:
            raise ConfigError(
                f"shape={tuple(self.shape)} does not fit the {n_features} columns of X; the product of its sides must"
                f" be {n_features}."
            )
        if self.bilinear is None:
            return
        rows, columns = _pair("bilinear", self.bilinear)
        for name, (a, b) in zip(self.tasks or {"": 0}, self._shapes(1, n_features), strict=False):
            if rows > a or columns > b:
                where = f"task {name!r} of shape ({a}, {b})" if name else f"samples of shape ({a}, {b})"
                raise ConfigError(f"bilinear=({rows}, {columns}) does not fit {where}: give at most ({a}, {b}).")

    def _shapes(self, n_tasks: int, n_features: int) -> list[tuple[int, int]]:
        if self.tasks is None:
            if n_tasks > 1:
                raise ConfigError("several tasks need the shapes of their samples, e.g. tasks={'faces': (28, 23), ..}.")
            return [(n_features, 1) if self.shape is None else _pair("shape", self.shape)]
        for name, shape in self.tasks.items():
            if isinstance(shape, int) or len(shape) != 2:
                raise ConfigError(
                    f"task {name!r} has the shape {shape!r}: give the two sides of its matrices, e.g."
                    f" tasks={{{name!r}: (28, 23), ..}}."
                )
        return [_pair("tasks", shape) for shape in self.tasks.values()]  # type: ignore[arg-type] # no int, as checked

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
            return _pair("bilinear", self.bilinear)
        largest = min(len(task.classes) - 1 for task in samples)
        rows, columns = np.min([task.samples.shape[1:] for task in prepared], axis=0).tolist()
        return min(largest, rows), min(largest, columns)


def _pair(name: str, given: Sequence[int]) -> tuple[int, int]:
    """Convert a parameter to a pair of positive integers."""
    sides = tuple(given)
    if len(sides) != 2 or any(not isinstance(k, Integral) or isinstance(k, bool) or k < 1 for k in sides):
        raise ConfigError(f"{name}={given!r} must be two positive whole numbers, e.g. (4, 3).")
    return int(sides[0]), int(sides[1])
