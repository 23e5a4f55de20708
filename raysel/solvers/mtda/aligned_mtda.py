"""MTDA for tasks whose features are mapped into one space by given W_i.

"projection": one P for all tasks,
    maximise over P'P = I:   tr(P' sum_i w_i W_i' S_b^i W_i P) / tr(P' sum_i w_i W_i' S_t^i W_i P),
    U_i = W_i P
"within": a V_i for each task, and the within-class scatter pooled over the mapped tasks,
    maximise over V_i'V_i = I:   sum_i w_i tr(V_i' B_i V_i) / sum_i w_i tr(V_i' (B_i + S_w) V_i),
    U_i = W_i V_i,
with B_i = W_i' S_b^i W_i and S_w = sum_i n_i W_i' S_w^i W_i / sum_i n_i.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from raysel.base.estimator import COUNT
from raysel.base.task_samples import TaskSamples, task_label, warn_of_lost_directions
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.core.errors import ConfigError, DataError
from raysel.data.formats.array_files import open_npz
from raysel.data.formats.files import find_data_file, reading
from raysel.data.layouts import Tasks
from raysel.numerics.discriminants import Scatters, maximize_trace_ratio, scatter_range, shrunken
from raysel.numerics.linear_algebra import centre, equilibrated_rank, rounding, thin_svd
from raysel.solvers.mtda.shared_ratio import SharedRatioProjector

_FORMAT = (
    "A file of maps is .npz with an array of shape (n_features of the task, d') for each task's"
    " name."
)


def read_maps(path: str, names: Sequence[str]) -> list[FloatArray]:
    """Read the map of each task, without unpickling."""
    try:
        file_path = find_data_file(path, _FORMAT)
        with reading(file_path, "a file of maps (.npz)"), open_npz(file_path) as file:
            maps = {name: np.asarray(file.get(name), dtype=np.float64) for name in file.names}
    except DataError as error:
        raise ConfigError(f"aligned={path!r}: {error}") from error
    keys = list(maps) if list(names) == [""] and len(maps) == 1 else names
    for key in keys:
        if key not in maps:
            problem = f"no map of task {key!r}"
            if not key:
                problem = f"{len(maps)} maps for one task without a name"
            raise ConfigError(
                f"aligned={path!r} has {problem}; it holds {', '.join(maps)}. {_FORMAT}"
            )
    return [maps[key] for key in keys]


@dataclass(frozen=True)
class MappedTasks:
    """Tasks in the common space."""

    #: Map W_i of each task; None for the identity; each (D_i, d').
    maps: tuple[FloatArray, ...] | None
    #: Mean of each task in its own features; each (D_i,).
    means: tuple[FloatArray, ...]
    #: Mapped samples of each task, (X_i - mean_i) W_i; each (n_i, d').
    samples: tuple[FloatArray, ...]

    def lift(self, bases: Sequence[FloatArray]) -> list[FloatArray]:
        """Express directions of the common space in each task's own features.

        Each of `bases` is (d', d_i); returns each (D_i, d_i).
        """
        if self.maps is None:
            return list(bases)
        return [W @ V for W, V in zip(self.maps, bases, strict=True)]


def check_maps(
    maps: Sequence[ArrayLike], names: Sequence[str], widths: Sequence[int]
) -> list[FloatArray]:
    """Check that there is one map for each task, and that all map into one space.

    Each of `maps` is (D_i, d'); returns each (D_i, d').
    """
    if len(maps) != len(names):
        raise ConfigError(
            f"aligned has {len(maps)} maps for {len(names)} tasks: give one map for each task."
        )
    arrays = [np.asarray(W, dtype=np.float64) for W in maps]
    for name, width, W in zip(names, widths, arrays, strict=True):
        expected = (width, arrays[0].shape[-1] if arrays[0].ndim else 0)
        if W.shape != expected or not W.size:
            raise ConfigError(
                f"aligned maps {name} by an array of shape {W.shape}; give one of shape {expected}."
            )
        if not np.isfinite(W).all():
            raise ConfigError(
                f"aligned maps {name} by an array that holds NaN or infinity; give finite numbers."
            )
    return arrays


def map_tasks(samples: Sequence[TaskSamples], maps: Sequence[FloatArray] | None) -> MappedTasks:
    """Map each task's centred samples by its W_i. Each of `maps` is (D_i, d')."""
    means, centred = zip(*(centre(task.X) for task in samples), strict=True)
    kept, mapped, errors = None, centred, [np.zeros(1)] * len(samples)
    if maps is not None:
        kept, mapped = tuple(maps), tuple(X @ W for X, W in zip(centred, maps, strict=True))
        errors = [rounding(task.X, W).max(axis=0) for task, W in zip(samples, maps, strict=True)]
    for task, Z, error in zip(samples, mapped, errors, strict=True):
        if (np.abs(Z).max(axis=0) <= error).all():
            raise DataError(
                f"{task}: aligned maps all samples to one point; give a map whose range contains"
                " varying features."
            )
    return MappedTasks(kept, means, mapped)


def shared_projection(
    samples: Sequence[TaskSamples],
    mapped: MappedTasks,
    weights: FloatArray,
    size: int | None,
    shrinkage: float,
) -> tuple[int, Iterator[tuple[float, list[FloatArray]]]]:
    """Maximise the ratio over one P for all tasks, by Newton's method.

    `weights` is (n_tasks,); returns `steps` each (d', d).
    """
    # Weighting the rows by sqrt(w_i n / n_i) makes the scatter of the stacked samples equal to the
    # weighted sum.
    n = sum(len(task.y) for task in samples)
    rows = [Z * np.sqrt(w * n / len(Z)) for Z, w in zip(mapped.samples, weights, strict=True)]
    firsts = np.cumsum([0] + [len(task.classes) for task in samples])
    codes = np.concatenate(
        [task.codes + first for task, first in zip(samples, firsts, strict=False)]
    )
    stacked = np.concatenate(rows)
    reduced = scatter_range(stacked, codes, int(firsts[-1]))
    d = size or min(max(len(task.classes) for task in samples) - 1, reduced.rank)
    _check_size(d, reduced.rank)
    warn_of_lost_directions("the mapped tasks", reduced.rank, reduced.varying)
    steps = maximize_trace_ratio(
        [shrunken(reduced.between, reduced.total, shrinkage)], [d], np.ones(1)
    )
    centred = stacked - reduced.mean
    return reduced.rank, (
        (ratio, [reduced.lift(centred, V)] * len(samples)) for ratio, (V,) in steps
    )


def pooled_within(
    samples: Sequence[TaskSamples],
    mapped: MappedTasks,
    weights: FloatArray,
    size: int | None,
    shrinkage: float,
) -> tuple[int, Iterator[tuple[float, list[FloatArray]]]]:
    """Maximise the ratio over a V_i for each task, with the pooled within-class scatter.

    `weights` is (n_tasks,); returns `steps` each (d', d_i).
    """
    factors, residuals = [], []
    for task, Z in zip(samples, mapped.samples, strict=True):
        counts = task.counts
        means = task.one_hot.T @ Z / counts[:, None]
        factors.append(means.T * np.sqrt(counts / len(Z)))
        residuals.append(Z - means[task.codes])
    # Factors of the scatter matrices are used, because rounding loses small directions in the
    # matrices themselves.
    pooled = np.concatenate(residuals) / np.sqrt(sum(len(Z) for Z in residuals))
    stacked = np.concatenate([pooled, *(H.T for H in factors)])
    Q = thin_svd(stacked)[2]
    warn_of_lost_directions(
        "the mapped tasks", Q.shape[1], equilibrated_rank(stacked, 0.0, Q.shape[1])
    )
    _, singular, turn = scipy.linalg.svd(np.linalg.qr(pooled @ Q, mode="r"), check_finite=False)
    Q, values = Q @ turn.T, np.zeros(Q.shape[1])
    values[: len(singular)] = singular**2
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    problems = [Scatters(Q.T @ H, values, overlap=1.0) for H in factors]
    sizes = [size or min(len(task.classes) - 1, len(values)) for task in samples]
    _check_size(max(sizes), len(values))
    steps = maximize_trace_ratio(problems, sizes, weights)
    return len(values), ((ratio, [Q @ V for V in bases]) for ratio, bases in steps)


def column_traces(task: TaskSamples, embedded: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the between-class and total scatter of each column of projected samples.

    `embedded` is (n, d); returns `between` (d,), `total` (d,).
    """
    sums = task.one_hot.T @ embedded
    return (sums**2 / task.counts[:, None]).sum(axis=0) / len(embedded), (embedded**2).mean(axis=0)


def _check_size(size: int, rank: int) -> None:
    if size > rank:
        raise ConfigError(
            f"n_components={size} exceeds the rank {rank} of the mapped tasks: give at most {rank}."
        )


class AlignedMTDA(SharedRatioProjector):
    """Multi-task discriminant analysis of tasks that given maps take into one space.

    In that space column j has the same meaning for all tasks, so that they can share more than the
    ratio:

    - one projection P for all tasks, U_i = W_i P with P'P = I:
      maximise tr(P' sum_i w_i W_i' S_b^i W_i P) / tr(P' sum_i w_i W_i' S_t^i W_i P);
    - or the pooled within-class scatter S_w of the mapped tasks, U_i = W_i V_i with V_i'V_i = I and
      B_i = W_i' S_b^i W_i: maximise sum_i w_i tr(V_i' B_i V_i) / sum_i w_i tr(V_i' (B_i + S_w)
      V_i).

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Number of columns of each task, in column order, or the shape of its samples. None: one
        task. See `MTDA`.
    aligned : list of array-like of shape (D_i, d') or str, default=None
        Map W_i of each task; or the path of an .npz file with an array for each task's name,
        relative to the working directory or else to ``$RAYSEL_DATA``. The file must exist on every
        machine that fits a model. None: the identity, for tasks with the same features.
    share : {"projection", "within"}, default="projection"
        Quantity that the tasks share: the projection P, or the within-class scatter S_w.
    n_components : int, default=None
        Number of directions of every task. None: for "projection" the largest number of classes of
        a task minus 1, for "within" the task's own number of classes minus 1.
    task_weights : {"inverse_trace", "uniform"} or array of n_tasks floats, default="inverse_trace"
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
    objective_path_, numerators_, denominators_, retained_, task_weights_, task_scores_, scores_, \
means_, embeddings_, embedded_labels_, task_names_, classes_
        See `MTDA`.

    References
    ----------
    Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, eq. 3 with
    given W_i.

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
        "aligned": ["array-like", str, None],
        "share": [StrOptions({"projection", "within"})],
        "n_components": [COUNT, None],
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
            raise ConfigError(
                f"n_components={self.n_components} exceeds the {common} features of the common"
                " space."
            )

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Accept all labels: the fit checks ``n_components`` against the rank of all tasks.

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
                    "aligned=None is for tasks with the same features, but these have"
                    f" {list(widths)} features: give a map for each task."
                )
            return None
        given = read_maps(self.aligned, names) if isinstance(self.aligned, str) else self.aligned
        return check_maps(given, [task_label(name) for name in names], widths)

    def _reduce(self, samples: Sequence[TaskSamples]) -> Any:
        return ()

    def _solve(self, samples: Sequence[TaskSamples], prepared: Any) -> Iterator[float]:
        mapped = map_tasks(
            samples,
            self._maps([task.name for task in samples], [task.X.shape[1] for task in samples]),
        )
        totals = np.array([(Z**2).sum() / len(Z) for Z in mapped.samples])
        self._weigh(samples, totals)
        solve = shared_projection if self.share == "projection" else pooled_within
        rank, steps = solve(
            samples,
            mapped,
            weights=self.task_weights_,
            size=self.n_components,
            shrinkage=self.shrinkage,
        )
        self.ranks_ = np.full(len(samples), rank)
        for ratio, bases in steps:
            embeddings = [Z @ V for Z, V in zip(mapped.samples, bases, strict=True)]
            traces = [column_traces(task, Z) for task, Z in zip(samples, embeddings, strict=True)]
            self._keep(
                samples,
                means=mapped.means,
                projections=mapped.lift(bases),
                values=[b / t for b, t in traces],
                embeddings=embeddings,
            )
            self._record([(float(b.sum()), float(t.sum())) for b, t in traces], totals)
            yield ratio
