"""What every iterative feature selector shares: one generator, scikit-learn's contract, one ranking."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.layouts import Layout
from raysel.data.task_blocks import as_samples
from raysel.errors import ConfigError
from raysel.metrics.ranks import ranks


class IterativeEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the solvers: an estimator that ranks features and is fitted by one generator.

    A solver writes ``__init__``, ``prepare`` and ``_updates``; everything else follows. It never
    writes into the ``X`` it is given: inside a study that array is shared by all workers.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Larger is better.
    ranking_ : ndarray of int64, shape (n_features,)
        1 is best; ties go to the lower index.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether the last iteration met ``tol``.
    """

    # Declared, not assigned: each solver's constructor sets them.
    max_iter: int
    tol: float
    n_features_to_select: int | None

    scores_: FloatArray
    n_features_in_: int

    #: Parameters that a data set's layout supplies, e.g. ``{"shape"}``; a config must not set them.
    layout_parameters: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Build the solver for data of this layout; solvers with structure override it."""
        return cls(**params)

    @property
    def max_steps(self) -> int:
        """The most iterations that `iterate` yields: ``max_iter``, unless that counts a library's within one."""
        return self.max_iter

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
        wanted = self.n_features_to_select
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
        """What the method needs of a training set whatever its parameters; computed once, shared by all.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), C-contiguous, finite
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)

        Returns
        -------
        A dataclass of contiguous arrays, never written to afterwards.
        """

    @abstractmethod
    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        """Yield the objective after each iteration, the fitted attributes set; endless unless exhausted."""

    def _has_converged(self, path: FloatArray) -> bool:
        """Whether the last iteration lowered the objective by less than ``tol``, relative."""
        return len(path) > 1 and bool(abs(path[-2] - path[-1]) <= self.tol * abs(path[-2]))

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
            layout. With it, X and y are taken as they are, without validation.

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
        """Pass the objectives on, recording their path, until ``tol`` or ``max_iter``."""
        path: list[float] = []
        for objective in updates:
            path.append(objective)
            self.objective_path_ = np.array(path)
            self.n_iter_ = len(path)
            self.converged_ = self._has_converged(self.objective_path_)
            yield objective
            if self.converged_ or self.n_iter_ >= self.max_iter:
                return

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Iterate until ``tol`` or ``max_iter``, telling scikit-learn's callbacks of each iteration.

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
            If ``max_iter`` iterations did not reach ``tol``.
        """
        context = self._init_callback_context(max_subtasks=self.max_iter)
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
            if stop or self.converged_ or self.n_iter_ >= self.max_iter:
                break
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=self._fitted_attributes)
        if not self.converged_ and not stop:
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol:g} in {self.n_iter_} iterations"
                f"{self._shortfall()}: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _shortfall(self) -> str:
        """How far the last iteration was from ``tol``, for the warning."""
        if len(self.objective_path_) < 2:
            return ""
        before, last = self.objective_path_[-2:]
        return f" (the last lowered the objective by {abs(before - last) / max(abs(before), 1e-300):.1e}, relative)"

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


class IterativeSelector(SelectorMixin, IterativeEstimator):
    """An iterative estimator whose ``transform`` keeps the best ``n_features_to_select`` features, half by default.

    Features without a score (0) are never kept: fewer remain where fewer have one.
    """

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        wanted = self.n_features_to_select
        # Half of the features by default, as scikit-learn's RFE does.
        keep = max(1, self.n_features_in_ // 2) if wanted is None else wanted
        return (self.ranking_ <= keep) & (self.scores_ > 0)


class LinearSelector(ClassifierMixin, IterativeSelector):
    """An iterative selector that is also a linear classifier.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), one row for two classes
    intercept_ : ndarray of shape (n_classes,), one entry for two classes
    classes_ : ndarray of shape (n_classes,)
    """

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the classes: ``X coef_' + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        values = features @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: ArrayLike) -> LabelArray:
        """The class of largest score; for two classes the second where its score is positive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]
