"""How every supervised projection is fitted: one task or several, by two faces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.base.projections.components import component_numbers, warn_of_lost_directions
from raysel.base.projections.fitted import FittedProjection
from raysel.base.projections.task_samples import (
    TaskSamples,
    check_tasks,
    is_labelled,
    split_tasks,
    task_label,
    task_samples,
)
from raysel.data.layouts import Layout, Tasks
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.errors import ConfigError, DataError
from raysel.linalg.scatter import ScatterRange, scatter_range


class TaskProjector(FittedProjection):
    """Base of the projections: each task's samples onto a few directions of its own feature space.

    A method derives from `IterativeEstimator` or `OneShotEstimator` as well, and writes ``__init__`` and ``_solve``,
    which calls ``_keep`` before each yield.
    """

    n_components: int | Sequence[int] | None
    unlabelled: Any = None

    layout_parameters: ClassVar[frozenset[str]] = frozenset({"tasks"})

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Build the method for data of this layout: its tasks, or one task."""
        return cls(tasks=dict(layout.tasks) if isinstance(layout, Tasks) else None, **params)

    def check(self, n_features: int) -> None:
        """Refuse parameters that are wrong in themselves or for data of this width."""
        super().check(n_features)
        if self.tasks is None:
            if isinstance(self.n_components, int | np.integer):  # a list goes with tasks that fit_tasks has yet to see
                self._check_components({"": n_features})
            return
        widths = Tasks(self.tasks).widths()
        if len(widths) < 2:
            raise ConfigError(f"tasks={dict(self.tasks)!r} is one task: leave tasks out for one, or name at least two.")
        if sum(widths.values()) != n_features:
            given = ", ".join(f"{name}: {width}" for name, width in widths.items())
            raise ConfigError(
                f"tasks ({given}) have {sum(widths.values())} columns together, X has {n_features}:"
                " every column belongs to exactly one task."
            )
        self._check_components(widths)

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Refuse more components than a training set with these labels has room for."""
        if self.n_components is None:
            return
        owners = np.zeros(len(y), dtype=np.int64) if tasks is None else tasks
        limits = []
        for i, name in enumerate(self.tasks or [""]):
            n, c = int(np.count_nonzero(owners == i)), len(np.unique(y[owners == i]))
            described = f"{task_label(name)}, of which a training set has {n} samples of {c} classes"
            limits.append((described, self._most_components(n - 1, c)))
        component_numbers(self.n_components, limits)

    def _check_components(self, widths: Mapping[str, int]) -> None:
        """Refuse what no data of these numbers of features could serve; each task's rank may be smaller still."""
        if self.n_components is not None:
            limits = [(f"{task_label(name)} of {width} features", width) for name, width in widths.items()]
            component_numbers(self.n_components, limits)

    def complexity_key(self) -> tuple[float, ...]:
        """Fewer components are simpler; the default is the most."""
        return (np.inf if self.n_components is None else float(np.sum(self.n_components)),)

    # --- fitting -----------------------------------------------------------------------------

    def prepare(self, X: Samples, y: LabelArray) -> Any:
        """Each task's scatter matrices in the range of the total one, whatever the parameters."""
        return self._reduce(self._samples(X, y))

    def _updates(self, X: Samples, y: LabelArray, prepared: Any) -> Iterator[float]:
        yield from self._solve(self._samples(X, y), prepared)

    def _reduce(self, samples: Sequence[TaskSamples]) -> Any:
        return tuple(self._range(task) for task in samples)

    @staticmethod
    def _range(task: TaskSamples) -> ScatterRange:
        reduced = scatter_range(task.X, task.codes, len(task.classes))
        if reduced.rank == 0:
            raise DataError(f"{task}: no feature varies; there is nothing to project on.")
        warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
        return reduced

    @abstractmethod
    def _solve(self, samples: Sequence[TaskSamples], prepared: Any) -> Iterator[float]:
        """Yield the objective after each iteration, the fitted attributes set."""

    def fit_tasks(self, tasks: Sequence[tuple[ArrayLike, ArrayLike]]) -> Self:
        """Fit tasks that are given one by one, each with its own features, samples and classes.

        Parameters
        ----------
        tasks : sequence of (X_i, y_i)
            X_i of shape (n_i, D_i), y_i of shape (n_i,); at least two.

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            If there are fewer than two tasks, or they are not those of the ``tasks`` parameter.
        DataError
            If a task has one class only, or X_i and y_i do not fit.
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
            raise ConfigError(f"tasks=None is for one task, X holds {len(X.blocks)}: name each one with its columns.")
        return [task_samples("", X, y, self.unlabelled)]

    def labelled(self, y: LabelArray) -> BoolArray:
        """Which samples have a label, and so can be scored."""
        return is_labelled(y, self.unlabelled, self.tasks or ())

    def _validate_data(self, X: ArrayLike | TaskBlocks, y: ArrayLike) -> tuple[Samples, LabelArray]:
        if isinstance(X, TaskBlocks):
            features, target = validate_data(self, X, y, skip_check_array=True)
            target = column_or_1d(target, warn=True)
            check_consistent_length(features, target)
        else:
            finite = True if self.tasks is None else "allow-nan"
            features, target = validate_data(
                self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, ensure_all_finite=finite
            )
        check_classification_targets(target)
        return features, target

    def _sizes(self, samples: Sequence[TaskSamples], ranges: Sequence[ScatterRange]) -> list[int]:
        """d_i: ``n_components``, by default min(c_i - 1, r_i)."""
        if self.n_components is None:
            return [min(len(t.classes) - 1, s.rank) for t, s in zip(samples, ranges, strict=True)]
        limits = [
            (
                f"{t}, whose data have rank {s.rank} and {len(t.classes)} classes",
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
        """Set the fitted attributes from directions V_i in each task's range: U_i = Q_i V_i."""
        self.ranks_ = np.array([s.rank for s in ranges])
        projections = [s.lift(X, V) for s, X, V in zip(ranges, centred, bases, strict=True)]
        embeddings = [s.embed(X, V) for s, X, V in zip(ranges, centred, bases, strict=True)]
        self._keep(samples, [s.mean for s in ranges], projections, values, embeddings)

    def _keep(
        self,
        samples: Sequence[TaskSamples],
        means: Sequence[FloatArray],
        projections: Sequence[FloatArray],
        values: Sequence[FloatArray],
        embeddings: Sequence[FloatArray],
    ) -> None:
        """Set the fitted attributes from each task's U_i and its columns' discriminant values."""
        signs = [np.where(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] < 0, -1.0, 1.0) for U in projections]
        labelled = [task.codes >= 0 for task in samples]
        self.task_names_ = [task.name for task in samples]
        self.means_ = list(means)
        self.projections_ = [U * sign for U, sign in zip(projections, signs, strict=True)]
        self.embeddings_ = [(Z * sign)[own] for Z, sign, own in zip(embeddings, signs, labelled, strict=True)]
        self.embedded_labels_ = [task.y[own] for task, own in zip(samples, labelled, strict=True)]
        self.task_scores_ = [
            np.linalg.norm(U * (value / np.linalg.norm(U, axis=0)), axis=1)
            for U, value in zip(projections, values, strict=True)
        ]
        self.scores_ = np.concatenate(self.task_scores_)
        self.classes_ = np.unique(np.concatenate([task.classes for task in samples]))
