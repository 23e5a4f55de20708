"""The contract of every method of raysel: what is prepared once, one generator that fits, what it declares."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.base.capabilities import Capabilities
from raysel.data.layouts import Layout
from raysel.data.task_blocks import as_samples
from raysel.errors import ConfigError
from raysel.metrics.ranks import ranks
from raysel.validation import CallbackSupportMixin, fit_context, with_callbacks


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of all methods: an estimator that is fitted by one generator, `iterate`.

    A method derives from `IterativeEstimator` or `OneShotEstimator`, declares its ``capabilities`` and writes
    ``__init__``, ``prepare`` and ``_updates``; everything else follows. It never writes into the ``X`` it is given:
    inside a study that array is shared by all workers.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Larger is better; of methods that rank features.
    ranking_ : ndarray of int64, shape (n_features,)
        1 is best; ties go to the lower index.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether the fit came to its end: for an iterative method, whether the last iteration met ``tol``.
    """

    #: What the method can do. A class declares what differs from its base's by ``dataclasses.replace``.
    capabilities: ClassVar[Capabilities] = Capabilities()

    #: Parameters that a data set's layout supplies, e.g. ``{"shape"}``; a configuration must not set them.
    layout_parameters: ClassVar[frozenset[str]] = frozenset()

    #: Where a class declares none, its parameters are not checked.
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    scores_: FloatArray
    n_features_in_: int

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Build the method for data of this layout; methods with structure override it."""
        return cls(**params)

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """The most iterations that `iterate` yields."""

    def check(self, n_features: int) -> None:
        """Refuse parameters that are wrong in themselves or for data of this width.

        Parameters
        ----------
        n_features : int

        Raises
        ------
        ConfigError
            Names the parameter, its value and what would do.
        """
        try:
            self._validate_params()
        except ValueError as error:
            raise ConfigError(str(error)) from error
        wanted = getattr(self, "n_features_to_select", None)
        if wanted is not None and wanted > n_features:
            raise ConfigError(f"n_features_to_select={wanted} exceeds the {n_features} features there are.")

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Refuse parameters that no training set with these labels could serve.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        tasks : ndarray of int, shape (n_samples,), default=None
            The task of each sample, where there are several.

        Raises
        ------
        ConfigError
            Names the parameter, its value and what would do.
        """

    def complexity_key(self) -> tuple[float, ...]:
        """Sort key among equally good configurations: the smallest is the simplest."""
        return ()

    def is_zero_solution(self, prepared: Any) -> bool:
        """Whether it is proved, before any iteration, that the solution is zero."""
        return False

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: Any) -> None:
        """Set the fitted attributes to the zero solution; needed where `is_zero_solution` may hold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        prepared : object
            What ``prepare(X, y)`` returned.
        """

    def labelled(self, y: LabelArray) -> BoolArray:
        """Which samples have a label, and so can be scored: shape (n_samples,)."""
        return np.ones(len(y), dtype=bool)

    @abstractmethod
    def prepare(self, X: FloatArray, y: LabelArray) -> Any:
        """Compute what all configurations need of a training set; done once and shared by them.

        It depends on no parameter but those in ``capabilities.prepare_parameters``.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), C-contiguous, finite
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)

        Returns
        -------
        A dataclass of contiguous arrays, or a tuple of such, never written to afterwards; not None.
        """

    @abstractmethod
    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        """Yield the objective after each iteration, the fitted attributes set; endless unless exhausted."""

    @abstractmethod
    def _has_converged(self, path: FloatArray) -> bool:
        """Whether the fit has come to its end, given the objectives so far."""

    @abstractmethod
    def _not_converged(self) -> str:
        """The warning of a fit that ended without having converged."""

    def _validate_data(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, LabelArray]:
        features, target = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        check_classification_targets(target)
        return features, target

    def iterate(self, X: Any, y: ArrayLike, prepared: Any = None) -> Iterator[float]:
        """Fit one iteration at a time.

        After each yield the estimator is usable as if ``fit`` had stopped there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks where the estimator takes tasks
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        prepared : object, default=None
            What ``prepare(X, y)`` returned, by this or by any other instance for data of the same
            layout that agrees in ``capabilities.prepare_parameters``. With it, X and y are taken as
            they are, without validation.

        Yields
        ------
        float
            The objective after the iteration.
        """
        if prepared is None:
            X, y = self._validate_data(X, y)
            self.check(X.shape[1])
            prepared = self.prepare(X, y)
        X, y = as_samples(X), np.asarray(y)
        self.n_features_in_ = X.shape[1]
        if self.is_zero_solution(prepared):
            self.fit_zero_solution(X, y, prepared)
            yield float(self.objective_path_[-1])
            return
        yield from self._follow(self._updates(X, y, prepared))

    def _follow(self, updates: Iterator[float]) -> Iterator[float]:
        """Pass the objectives on, recording their path, until convergence or ``max_steps``."""
        path: list[float] = []
        for objective in updates:
            path.append(objective)
            self.objective_path_ = np.array(path)
            self.n_iter_ = len(path)
            self.converged_ = self._has_converged(self.objective_path_)
            yield objective
            if self.converged_ or self.n_iter_ >= self.max_steps:
                return

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Iterate to the end, telling scikit-learn's callbacks of each iteration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If the fit ended without having converged.
        """
        context = self._init_callback_context(max_subtasks=self.max_steps)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        iterations = self.iterate(X, y)
        stop = False
        while True:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            if next(iterations, None) is None:
                break
            stop = task.call_on_fit_task_end(
                estimator=self, X=X, y=y, reconstruction_attributes=self._fitted_attributes
            )
            if stop or self.converged_ or self.n_iter_ >= self.max_steps:
                break
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=self._fitted_attributes)
        if not self.converged_ and not stop:
            warnings.warn(self._not_converged(), ConvergenceWarning, stacklevel=2)
        return self

    @classmethod
    def check_path(cls, models: Sequence[Self]) -> None:
        """Refuse configurations that cannot be fitted together; see `fit_path`.

        Parameters
        ----------
        models : sequence of estimators of this class

        Raises
        ------
        ConfigError
            Naming the parameter in which they must not differ.
        """

    @classmethod
    def fit_path(cls, models: Sequence[Self], X: FloatArray, prepared: Any) -> Iterator[tuple[int, str]]:
        """Fit many configurations on one training set, passing on what one tells of another.

        Methods that have it declare ``capabilities.path``.

        Parameters
        ----------
        models : sequence of estimators of this class
            Fitted here.
        X : ndarray of shape (n_samples, n_features)
        prepared : object
            Of X and its labels.

        Yields
        ------
        position : int
            Of the model that has just been fitted.
        source : str
            How it was found: "solved", or by which certificate.
        """
        raise NotImplementedError(f"{cls.__name__} has no path of configurations.")

    def _fitted_attributes(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}

    @property
    def ranking_(self) -> IntArray:
        """Rank of each feature, 1 for the largest of ``scores_``."""
        return ranks(self.scores_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
