"""Multi-task discriminant analysis: each task its own feature space, one trace ratio for all."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.projections.projector import TaskProjector
from raysel.base.projections.task_samples import TaskSamples, task_label
from raysel.data.layouts import Tasks
from raysel.errors import ConfigError
from raysel.linalg.scatter import ScatterRange
from raysel.linalg.trace_ratio import Scatters, maximize_trace_ratio, shrunken
from raysel.solvers.mtda.aligned import MappedTasks, column_traces, map_tasks, pooled_within, shared_projection
from raysel.solvers.mtda.alternating import alternate, common_width
from raysel.solvers.mtda.bilinear import alternate_sides, matrix_task
from raysel.solvers.mtda.semisupervised import partly_labelled
from raysel.solvers.mtda.weights import given_weights, resolve_weights, warn_of_dropped_tasks


class MTDA(TaskProjector):
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
        Each task's number of columns of X, in order. A sample has NaN outside its own task's columns.
        None: all of X is one task, without NaN.
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
    aligned : list of array-like of shape (D_i, d'), default=None
        W_i of each task, given: maps into one space where column j means the same for all tasks.
    share : {"projection", "within"}, default="projection"
        What aligned tasks share: one P with U_i = W_i P, or the pooled within-class scatter.
    bilinear : (int, int), default=None
        (k, l): matrix-valued samples are projected to k x l by U_i = L_i kron R_i. ``tasks`` must give shapes.
    n_init : int, default=5
        Starts of "bilinear", which meets local optima only.
    unlabelled : label, default=None
        The label that means no label, e.g. -1. With it S_t^i becomes S_t(labelled) + unlabelled_weight S_t(all)
        + graph_weight X' L X / n^2, where L is the Laplacian of the graph of ``n_neighbors`` nearest neighbours.
    unlabelled_weight : float, default=1.0
    graph_weight : float, default=0.0
    n_neighbors : int, default=5
    max_iter : int, default=100
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
        Dimension of the range that each task was solved in; of the common space for ``aligned`` tasks, and of rows
        and columns, shape (n_tasks, 2), for ``bilinear``.
    task_scores_ : list of ndarray of shape (D_i,)
        Norm of each feature's row of U_i, each column weighted by its own ratio in [0, 1].
    scores_ : ndarray of shape (n_features,)
        All tasks' scores one after the other; larger is better.
    means_, embeddings_, embedded_labels_, task_names_, classes_
        What ``transform`` and the 1-nearest-neighbour rule of ``predict`` need.

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
        "tasks": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "method": [StrOptions({"exact", "alternating", "printed"})],
        "intermediate_dim": [Interval(Integral, 1, None, closed="left"), None],
        "task_weights": [StrOptions({"inverse_trace", "uniform"}), "array-like"],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "aligned": ["array-like", None],
        "share": [StrOptions({"projection", "within"})],
        "bilinear": ["array-like", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unlabelled": "no_validation",
        "unlabelled_weight": [Interval(Real, 0, None, closed="neither")],
        "graph_weight": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    task_weights_: FloatArray
    numerators_: FloatArray
    denominators_: FloatArray
    retained_: FloatArray

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        n_components: int | Sequence[int] | None = None,
        method: Literal["exact", "alternating", "printed"] = "exact",
        intermediate_dim: int | None = None,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        shrinkage: float = 0.0,
        aligned: Sequence[ArrayLike] | None = None,
        share: Literal["projection", "within"] = "projection",
        bilinear: tuple[int, int] | None = None,
        n_init: int = 5,
        unlabelled: Any = None,
        unlabelled_weight: float = 1.0,
        graph_weight: float = 0.0,
        n_neighbors: int = 5,
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
        self.aligned = aligned
        self.share = share
        self.bilinear = bilinear
        self.n_init = n_init
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.graph_weight = graph_weight
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def complexity_key(self) -> tuple[float, ...]:
        """Fewer components, then more shrinkage."""
        return (*super().complexity_key(), -self.shrinkage)

    def check(self, n_features: int) -> None:
        """Refuse parameters that are wrong in themselves or for data of this width."""
        super().check(n_features)
        if self.method == "exact" and self.intermediate_dim is not None:
            raise ConfigError(
                f"intermediate_dim={self.intermediate_dim} changes nothing for method='exact':"
                " leave it out, or choose method='alternating' or 'printed'."
            )
        if self.tasks is not None and not isinstance(self.task_weights, str):
            given_weights(self.task_weights, len(self.tasks))
        extensions = [name for name in ("aligned", "bilinear", "unlabelled") if getattr(self, name) is not None]
        if len(extensions) > 1:
            raise ConfigError(f"{' and '.join(extensions)} exclude each other: keep one.")
        if extensions and self.method != "exact":
            raise ConfigError(f"method={self.method!r} does not know {extensions[0]}: choose method='exact'.")
        if self.aligned is not None and not isinstance(self.n_components, int | np.integer | None):
            raise ConfigError(f"n_components={self.n_components!r}: tasks with aligned maps share one number.")
        if self.bilinear is not None:
            self._check_bilinear()

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Refuse more components than a training set with these labels has room for."""
        if self.aligned is None:  # for the tasks share their samples then
            super().check_training(y, tasks)

    def _check_components(self, widths: Mapping[str, int]) -> None:
        if self.aligned is None:  # for the maps may lead into a larger space
            super()._check_components(widths)

    def _check_bilinear(self) -> None:
        if self.n_components is not None or self.shrinkage:
            raise ConfigError("bilinear takes neither n_components, for it is their number, nor shrinkage.")
        sides = tuple(self.bilinear or ())
        if len(sides) != 2 or any(not isinstance(k, int | np.integer) or k < 1 for k in sides):
            raise ConfigError(f"bilinear={self.bilinear!r} must be two positive whole numbers, e.g. (4, 3).")
        for name, shape in (self.tasks or {"X": 0}).items():
            if isinstance(shape, int) or len(shape) != 2:
                raise ConfigError(f"bilinear needs each task's shape, e.g. tasks={{{name!r}: (28, 23), ..}}.")

    def _reduce(self, samples: Sequence[TaskSamples]) -> Any:
        if self.unlabelled is not None:
            return tuple(partly_labelled(task) for task in samples)
        return super()._reduce(samples)

    def _solve(self, samples: Sequence[TaskSamples], prepared: Any) -> Iterator[float]:
        # The maps and the matrices are at hand at once: only what takes an eigendecomposition is prepared.
        if self.aligned is not None:
            return self._solve_aligned(samples, map_tasks(samples, self.aligned))
        if self.bilinear is not None:
            return self._solve_bilinear(samples)
        if self.unlabelled is not None:
            turned = [
                task.denominator(self.unlabelled_weight, self.graph_weight, self.n_neighbors) for task in prepared
            ]
            ranges = [task.reduced for task in prepared]
            problems = [
                shrunken(turn.T @ reduced.between, total, self.shrinkage)
                for reduced, (total, turn) in zip(ranges, turned, strict=True)
            ]
            return self._solve_ranges(samples, ranges, problems, [turn for _, turn in turned])
        problems = [shrunken(reduced.between, reduced.total, self.shrinkage) for reduced in prepared]
        return self._solve_ranges(samples, prepared, problems)

    def _solve_ranges(
        self,
        samples: Sequence[TaskSamples],
        ranges: Sequence[ScatterRange],
        problems: Sequence[Scatters],
        turns: Sequence[FloatArray] | None = None,
    ) -> Iterator[float]:
        """Each task in its own range; ``turns`` are the axes of the problems where they are not those of the ranges."""
        sizes = self._sizes(samples, ranges)
        traces = np.array([problem.trace for problem in problems])
        self.task_weights_ = resolve_weights(self.task_weights, samples, traces)
        centred = [task.X - reduced.mean for task, reduced in zip(samples, ranges, strict=True)]
        kept: list[FloatArray] | None = None
        for ratio, bases in self._steps(samples, problems, sizes):
            if bases is not kept:  # else nothing moved
                kept = bases
                values = [p.column_ratios(V) for p, V in zip(problems, bases, strict=True)]
                lifted = bases if turns is None else [turn @ V for turn, V in zip(turns, bases, strict=True)]
                self._keep_reduced(samples, ranges, centred, lifted, values)
                self._record([p.traces(V) for p, V in zip(problems, bases, strict=True)], traces)
            yield ratio

    def _steps(
        self, samples: Sequence[TaskSamples], problems: Sequence[Scatters], sizes: list[int]
    ) -> Iterator[tuple[float, list[FloatArray]]]:
        if self.method == "exact":
            return maximize_trace_ratio(problems, sizes, self.task_weights_)
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

    def _solve_aligned(self, samples: Sequence[TaskSamples], mapped: MappedTasks) -> Iterator[float]:
        totals = np.array([(Z**2).sum() / len(Z) for Z in mapped.samples])
        self.task_weights_ = resolve_weights(self.task_weights, samples, totals)
        solve = shared_projection if self.share == "projection" else pooled_within
        size = None if self.n_components is None else int(self.n_components)  # type: ignore[arg-type]
        rank, steps = solve(samples, mapped, self.task_weights_, size, self.shrinkage)
        self.ranks_ = np.full(len(samples), rank)
        for ratio, bases in steps:
            projections = [W @ V for W, V in zip(mapped.maps, bases, strict=True)]
            embeddings = [Z @ V for Z, V in zip(mapped.samples, bases, strict=True)]
            traces = [column_traces(task, Z) for task, Z in zip(samples, embeddings, strict=True)]
            self._keep(samples, mapped.means, projections, [b / t for b, t in traces], embeddings)
            self._record([(float(b.sum()), float(t.sum())) for b, t in traces], totals)
            yield ratio

    def _solve_bilinear(self, samples: Sequence[TaskSamples]) -> Iterator[float]:
        size = (int(self.bilinear[0]), int(self.bilinear[1])) if self.bilinear is not None else (1, 1)
        shapes = [shape for shape in Tasks(self.tasks or {}).tasks.values() if isinstance(shape, tuple)]
        prepared = [matrix_task(task, (a, b)) for task, (a, b) in zip(samples, shapes, strict=True)]
        totals = np.array([(task.samples**2).sum() / len(task.samples) for task in prepared])
        self.task_weights_ = resolve_weights(self.task_weights, samples, totals)
        self.ranks_ = np.array([task.samples.shape[1:] for task in prepared])
        names, rng = [str(task) for task in samples], check_random_state(self.random_state)
        for ratio, factors in alternate_sides(prepared, names, size, self.task_weights_, self.n_init, rng):
            projections = [m.lift(found) for m, found in zip(prepared, factors, strict=True)]
            embeddings = [m.embed(found) for m, found in zip(prepared, factors, strict=True)]
            values = [task.column_ratios(found) for task, found in zip(prepared, factors, strict=True)]
            self._keep(samples, [task.mean for task in prepared], projections, values, embeddings)
            self._record([task.traces(found) for task, found in zip(prepared, factors, strict=True)], totals)
            yield ratio

    def _record(self, traces: Sequence[tuple[float, float]], totals: FloatArray) -> None:
        self.numerators_, self.denominators_ = np.array(traces).T.copy()
        self.retained_ = self.denominators_ / totals

    def _follow(self, updates: Iterator[float]) -> Iterator[float]:
        for objective in super()._follow(updates):
            if self.converged_ or self.n_iter_ >= self.max_iter:
                names, ratios = [task_label(name) for name in self.task_names_], self.numerators_ / self.denominators_
                warn_of_dropped_tasks(names, self.retained_, ratios, objective)
            yield objective
