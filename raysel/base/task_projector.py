"""Fitting of projections, by ``fit`` with all tasks in one X, or by ``fit_tasks``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from raysel.base.estimator import COUNT, measure_size
from raysel.base.fitted_projection import FittedProjection
from raysel.base.task_samples import (
    TaskSamples,
    check_tasks,
    component_numbers,
    is_labelled,
    split_tasks,
    task_label,
    task_samples,
    warn_of_lost_directions,
)
from raysel.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    LabelArray,
    validate_samples,
)
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.numerics.discriminants import ScatterRange, scatter_range


class TaskProjector(FittedProjection):
    """Base class of methods that project the samples of each task on a few directions.

    A method also derives from `IterativeEstimator` or `OneShotEstimator`, and implements
    ``__init__`` and ``_solve``, which calls ``_keep`` before each yield.
    """

    n_components: int | Sequence[int] | None
    unlabelled: Any = None
    shrinkage: float = 0.0

    layout_parameters: ClassVar[frozenset[str]] = frozenset({"tasks"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tasks": [dict, None],
        "n_components": [COUNT, "array-like", None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
    }

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features of all tasks.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or the numbers of columns of the tasks do not sum to
            ``n_features``.
        """
        super().check(n_features)
        if self.tasks is None:
            if isinstance(
                self.n_components, int | np.integer
            ):  # fit_tasks checks a list when the tasks are known
                self._check_components({"": n_features})
            return
        widths = Tasks(self.tasks).widths()
        if len(widths) < 2:
            raise ConfigError(
                f"tasks={dict(self.tasks)!r} is one task: give tasks=None for one task, or name at"
                " least two."
            )
        if sum(widths.values()) != n_features:
            listed = ", ".join(f"{name}: {width}" for name, width in widths.items())
            raise ConfigError(
                f"tasks ({listed}) have {sum(widths.values())} columns in total, but X has"
                f" {n_features}: every column must belong to exactly one task."
            )
        self._check_components(widths)

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that ``n_components`` is possible for a training set with these labels.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; None for data of one task.

        Raises
        ------
        ConfigError
            If ``n_components`` exceeds the maximum for a task's numbers of samples and classes.
        """
        if self.n_components is None:
            return
        owners = np.zeros(len(y), dtype=np.int64) if tasks is None else tasks
        limits = []
        for i, name in enumerate(self.tasks or [""]):
            n, c = int(np.count_nonzero(owners == i)), len(np.unique(y[owners == i]))
            described = (
                f"{task_label(name)}, of which a training set has {n} samples of {c} classes"
            )
            limits.append((described, self._most_components(n - 1, c)))
        component_numbers(self.n_components, limits)

    def _check_components(self, widths: Mapping[str, int]) -> None:
        """Check ``n_components`` against the numbers of features, not against the ranks."""
        if self.n_components is not None:
            limits = [
                (f"{task_label(name)} of {width} features", width) for name, width in widths.items()
            ]
            component_numbers(self.n_components, limits)

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key of fewer components first, the default last, then more shrinkage."""
        return (measure_size(self.n_components), -self.shrinkage)

    def prepare(self, X: Samples, y: LabelArray) -> Any:
        """Compute each task's scatter matrices within the range of its total scatter.

        Parameters
        ----------
        X : TaskBlocks or ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,)
            Training labels.

        Returns
        -------
        tuple
            Scatter matrices of each task, independent of the method's parameters.
        """
        return self._reduce(self._samples(X, y))

    def _updates(self, X: Samples, y: LabelArray, prepared: Any) -> Iterator[float]:
        yield from self._solve(self._samples(X, y), prepared)

    def _reduce(self, samples: Sequence[TaskSamples]) -> Any:
        return tuple(self._range(task) for task in samples)

    @staticmethod
    def _range(task: TaskSamples) -> ScatterRange:
        reduced = scatter_range(task.X, task.codes, len(task.classes))
        if reduced.rank == 0:
            raise DataError(
                f"{task}: all features are constant; give at least one feature that varies."
            )
        warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
        return reduced

    @abstractmethod
    def _solve(self, samples: Sequence[TaskSamples], prepared: Any) -> Iterator[float]:
        """Yield the objective after each iteration, with the fitted attributes set."""

    def fit_tasks(self, tasks: Sequence[tuple[ArrayLike, ArrayLike]]) -> Self:
        """Fit separate tasks, each with its own features, samples and classes.

        Parameters
        ----------
        tasks : sequence of (X_i, y_i)
            Samples, of shape (n_i, D_i), and labels, of shape (n_i,), of each task; at least two
            tasks.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ConfigError
            If there are fewer than two tasks, or they do not match the parameter ``tasks``.
        DataError
            If a task has one class only, or the lengths of X_i and y_i differ.
        """
        samples = check_tasks(self.tasks, tasks, self.unlabelled)
        self.n_features_in_ = sum(task.X.shape[1] for task in samples)
        self.__dict__.pop("feature_names_in_", None)
        self.check(self.n_features_in_)
        for _ in self._follow(self._solve(samples, self._reduce(samples))):
            pass
        return self

    def _samples(self, X: Samples, y: LabelArray) -> list[TaskSamples]:
        if self.tasks is not None:
            return split_tasks(self.tasks, X, y, self.unlabelled)
        if isinstance(X, TaskBlocks):
            raise ConfigError(
                f"tasks=None is for one task, but X holds {len(X.blocks)}: name each task with its"
                " columns."
            )
        return [task_samples("", np.asarray(X), y, self.unlabelled)]

    def labelled(self, y: LabelArray) -> BoolArray:
        """Mask of the samples that have a label and can be scored.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
            True for labelled samples.
        """
        return is_labelled(y, self.unlabelled, self.tasks or ())

    def _validate_data(self, X: ArrayLike | TaskBlocks, y: ArrayLike) -> tuple[Samples, LabelArray]:
        if isinstance(X, TaskBlocks):
            features, target = validate_data(self, X, y, skip_check_array=True)
            target = column_or_1d(target, warn=True)
            check_consistent_length(features, target)
        else:
            finite = True if self.tasks is None else "allow-nan"
            features, target = validate_samples(
                self,
                X,
                y,
                dtype=np.float64,
                order="C",
                ensure_min_samples=2,
                ensure_all_finite=finite,
            )
        check_classification_targets(target)
        return features, target

    def _sizes(self, samples: Sequence[TaskSamples], ranges: Sequence[ScatterRange]) -> list[int]:
        """Number of components d_i of each task: ``n_components``, by default min(c_i - 1, r_i)."""
        if self.n_components is None:
            return [min(len(t.classes) - 1, s.rank) for t, s in zip(samples, ranges, strict=True)]
        limits = [
            (
                f"{t} of rank {s.rank} and {len(t.classes)} classes",
                self._most_components(s.rank, len(t.classes)),
            )
            for t, s in zip(samples, ranges, strict=True)
        ]
        return component_numbers(self.n_components, limits)

    def _most_components(self, rank: int, n_classes: int) -> int:
        return rank

    def _keep_reduced(
        self,
        samples: Sequence[TaskSamples],
        ranges: Sequence[ScatterRange],
        centred: Sequence[FloatArray],
        bases: Sequence[FloatArray],
        values: Sequence[FloatArray],
    ) -> None:
        """Set the fitted attributes from directions V_i in each task's range, U_i = Q_i V_i."""
        self.ranks_ = np.array([s.rank for s in ranges])
        projections = [s.lift(X, V) for s, X, V in zip(ranges, centred, bases, strict=True)]
        embeddings = [s.embed(X, V) for s, X, V in zip(ranges, centred, bases, strict=True)]
        self._keep(
            samples,
            means=[s.mean for s in ranges],
            projections=projections,
            values=values,
            embeddings=embeddings,
        )
