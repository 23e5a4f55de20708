"""Estimator of MTDA for tasks whose features are mapped into one space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.projections.task_samples import TaskSamples, task_label
from raysel.data.layouts import Tasks
from raysel.errors import ConfigError
from raysel.solvers.mtda.aligned import check_maps, column_traces, map_tasks, pooled_within, shared_projection
from raysel.solvers.mtda.map_file import read_maps
from raysel.solvers.mtda.shared_ratio import COMMON_CONSTRAINTS, SharedRatioProjector
from raysel.validation import Interval, StrOptions


class AlignedMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis of tasks whose features given maps W_i transform into one space.

    In that space column j has the same meaning for all tasks, so that they can share more than the ratio:

    - one projection P for all tasks, U_i = W_i P with P'P = I:
      maximise tr(P' sum_i w_i W_i' S_b^i W_i P) / tr(P' sum_i w_i W_i' S_t^i W_i P);
    - or the pooled within-class scatter S_w of the mapped tasks, U_i = W_i V_i with V_i'V_i = I and
      B_i = W_i' S_b^i W_i: maximise sum_i w_i tr(V_i' B_i V_i) / sum_i w_i tr(V_i' (B_i + S_w) V_i).

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one task. See `MTDA`.
    aligned : list of array-like of shape (D_i, d') or str, default=None
        Map W_i of each task; or the path of an .npz file with an array for each task's name, relative to the working
        directory or else to ``$RAYSEL_DATA``. The file must exist on every machine that fits a model. None: the
        identity, for tasks with the same features.
    share : {"projection", "within"}, default="projection"
        Quantity that the tasks share: the projection P, or the within-class scatter S_w.
    n_components : int, default=None
        Number of directions of every task. None: for "projection" the largest number of classes of a task minus 1,
        for "within" the task's own number of classes minus 1.
    task_weights : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,), default="inverse_trace"
        Weights w_i: 1 / tr(W_i' S_t^i W_i), 1, or the given numbers.
    shrinkage : float in [0, 1], default=0.0
        Weight of a multiple of the identity in the (pooled) within-class scatter. See `MTDA`.
    max_iter : int, default=100
        Maximum number of iterations of Newton's method.
    tol : float, default=1e-12
        Relative change of the objective below which the iteration stops.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_ : list of ndarray of shape (D_i, d_i)
        U_i of each task, in its own features; the columns need not be orthonormal.
    ranks_ : ndarray of int, shape (n_tasks,)
        Rank of the mapped tasks together.
    objective_path_, numerators_, denominators_, retained_, task_weights_, task_scores_, scores_, means_, embeddings_, \
embedded_labels_, task_names_, classes_
        See `MTDA`.

    References
    ----------
    Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, eq. 3 with given W_i.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> halves = [(X[::2], y[::2]), (X[1::2], y[1::2])]
    >>> model = AlignedMTDA(shrinkage=0.1).fit_tasks(halves)
    >>> bool(np.allclose(model.projections_[0], model.projections_[1]))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **COMMON_CONSTRAINTS,
        "aligned": ["array-like", str, None],
        "share": [StrOptions({"projection", "within"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
    }

    n_components: int | None

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        aligned: Sequence[ArrayLike] | str | None = None,
        share: Literal["projection", "within"] = "projection",
        n_components: int | None = None,
        task_weights: Literal["inverse_trace", "uniform"] | ArrayLike = "inverse_trace",
        shrinkage: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-12,
        n_features_to_select: int | None = None,
    ) -> None:
        self.tasks = tasks
        self.aligned = aligned
        self.share = share
        self.n_components = n_components
        self.task_weights = task_weights
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or the maps do not match the tasks.
        """
        super().check(n_features)
        if self.tasks is None and not isinstance(self.aligned, str):
            return  # the tasks are known only in fit_tasks
        widths = {"": n_features} if self.tasks is None else Tasks(self.tasks).widths()
        maps = self._maps(list(widths), list(widths.values()))
        common = next(iter(widths.values())) if maps is None else maps[0].shape[1]
        if self.n_components is not None and self.n_components > common:
            raise ConfigError(f"n_components={self.n_components} exceeds the {common} features of the common space.")

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Accept all labels: the fit checks ``n_components`` against the rank of all tasks together.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set; not used.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; not used.
        """

    def _check_components(self, widths: Mapping[str, int]) -> None:
        """Accept all numbers of features: the common space may be larger than that of a task."""

    def _maps(self, names: Sequence[str], widths: Sequence[int]) -> list[FloatArray] | None:
        """Return the map W_i of each task, or None for the identity."""
        if self.aligned is None:
            if len(set(widths)) > 1:
                raise ConfigError(
                    f"aligned=None is for tasks with the same features, but these have {list(widths)} features: give a"
                    " map for each task."
                )
            return None
        given = read_maps(self.aligned, names) if isinstance(self.aligned, str) else self.aligned
        return check_maps(given, [task_label(name) for name in names], widths)

    def _reduce(self, samples: Sequence[TaskSamples]) -> Any:
        return ()

    def _solve(self, samples: Sequence[TaskSamples], prepared: Any) -> Iterator[float]:
        mapped = map_tasks(samples, self._maps([task.name for task in samples], [task.X.shape[1] for task in samples]))
        totals = np.array([(Z**2).sum() / len(Z) for Z in mapped.samples])
        self._weigh(samples, totals)
        solve = shared_projection if self.share == "projection" else pooled_within
        rank, steps = solve(samples, mapped, self.task_weights_, self.n_components, self.shrinkage)
        self.ranks_ = np.full(len(samples), rank)
        for ratio, bases in steps:
            embeddings = [Z @ V for Z, V in zip(mapped.samples, bases, strict=True)]
            traces = [column_traces(task, Z) for task, Z in zip(samples, embeddings, strict=True)]
            self._keep(samples, mapped.means, mapped.lift(bases), [b / t for b, t in traces], embeddings)
            self._record([(float(b.sum()), float(t.sum())) for b, t in traces], totals)
            yield ratio
