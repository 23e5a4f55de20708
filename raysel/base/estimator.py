"""Base classes of all methods, what they are capable of, and what they share."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from raysel.base.search_drafts import DataSize, SearchDraft
from raysel.core.arrays import (
    BoolArray,
    CallbackSupportMixin,
    FloatArray,
    IntArray,
    Interval,
    LabelArray,
    fit_context,
    validate_samples,
    with_callbacks,
)
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSES, LABELS, QUANTITIES
from raysel.data.task_blocks import as_samples
from raysel.numerics.rankings import ranks

#: Kinds of layouts, as in the description by ``Layout.to_json``.
TENSOR, MODALITIES, TASKS, VOLUME = "tensor", "modalities", "tasks", "volume"
#: What is said of a method with ``Capabilities.reconstructed``.
RECONSTRUCTED = "reconstructed, the authors' code was not found"
#: What is said of a method with ``Capabilities.transductive``.
TRANSDUCTIVE = "sees the features of the test samples, not their labels"

#: Constraints of parameters: numbers above 0, numbers of at least 0, whole numbers of at least 1.
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")


def measure_size(value: Any) -> float:
    """Return the size that a parameter gives a model, for `complexity_key`; infinite for None."""
    if value is None:
        return math.inf
    return float(np.sum(value))


def next_seed(seed: int | None) -> int:
    """Return the seed of the start after this one; 0 after the start without one."""
    if seed is None:
        return 0
    return seed + 1


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a method.

    Parameters
    ----------
    ranks : bool or None, default=True
        Whether the method computes a score for each feature, ``scores_``. None: a fit tells, as for
        classes in scikit-learn's style.
    predicts : bool, default=False
        Whether the method has ``predict``.
    iterates : bool, default=True
        Whether the method iterates, so that early stopping can be applied; otherwise it is solved
        in one step.
    targets : frozenset of {"classes", "labels", "quantities"}, default={"classes"}
        Kinds of y that the method supports: one class for each sample, an indicator of shape
        (n_samples, n_labels), or one or several numbers for each sample.
    transductive : bool, default=False
        Whether the prediction for a sample depends on the other samples passed to ``predict``.
    path : bool, default=False
        Whether the method has ``fit_path``, which fits many configurations on one training set.
    reconstructed : bool, default=False
        Whether the method is a reconstruction from its paper, because the authors' code was not
        found.
    local_optimum : bool, default=False
        Whether a fit ends at one of several local optima, which its start decides.
    layouts : frozenset of str, default={"tensor", "modalities", "volume"}
        Kinds of layouts that the method supports. A table without structure is a tensor of one
        axis.
    prepare_parameters : frozenset of str, default=frozenset()
        Constructor parameters that ``prepare`` depends on. Configurations with equal values of
        these share the prepared training sets.
    score_scale : {"effect", "squared", "weight", "place"}, default="effect"
        What scores are, by which those of the columns of one feature are joined: sizes of an
        effect, as coefficients and t values; squares of it, as F values and importances; weights
        around a value that is not 0, as those of ReliefF; or places in an order, which are the same
        for all labels, so that they have no p values.
    univariate : bool, default=False
        Whether the score of a feature depends on the labels and on that feature alone.
    by_variance : bool, default=False
        Whether the method ranks by what a scaling to equal variances makes equal.
    in_blocks : bool, default=False
        Whether the method reads its samples in ``prepare`` and in its predictions alone, and also
        takes `raysel.data.stored_samples.StoredSamples`, which stay in their file.
    grouped : bool, default=False
        Whether the method has a parameter ``groups``, which a study sets from the groups of
        features of its data.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(Capabilities(), predicts=True).predicts
    True
    """

    ranks: bool | None = True
    predicts: bool = False
    iterates: bool = True
    targets: frozenset[str] = frozenset({CLASSES})
    transductive: bool = False
    path: bool = False
    reconstructed: bool = False
    local_optimum: bool = False
    layouts: frozenset[str] = frozenset({TENSOR, MODALITIES, VOLUME})
    prepare_parameters: frozenset[str] = frozenset()
    score_scale: Literal["effect", "squared", "weight", "place"] = "effect"
    univariate: bool = False
    by_variance: bool = False
    in_blocks: bool = False
    grouped: bool = False

    @property
    def multilabel(self) -> bool:
        """Whether y may be an indicator."""
        return LABELS in self.targets


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base class of all methods, fitted by the generator `iterate`.

    A method derives from `IterativeEstimator` or `OneShotEstimator`, declares its ``capabilities``
    and implements ``__init__``, ``prepare`` and ``_updates``. It must not write into ``X``, because
    all workers of a study share that array.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Score of each feature, larger is better; only of methods that rank features.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best; of equal scores the lower index comes first.
    objective_path_ : ndarray of shape (n_iter_,)
        Objective after each iteration.
    n_iter_ : int
        Number of iterations done.
    converged_ : bool
        Whether the fit converged; for an iterative method, whether the last iteration met ``tol``.
    n_features_in_ : int
        Number of features of the training set.
    """

    #: Capabilities of the method. A subclass changes those of its base class by
    #: ``dataclasses.replace``.
    capabilities: ClassVar[Capabilities] = Capabilities()

    #: Parameters that are set from a data set's layout, e.g. ``{"shape"}``; a configuration must
    #: not set them.
    layout_parameters: ClassVar[frozenset[str]] = frozenset()

    #: What a score is, as captions say it after "the score is the"; empty if there are none.
    score_meaning: ClassVar[str] = ""

    #: Parameters that order equally good configurations: the smaller value is simpler, after a
    #: minus the larger one.
    simpler_first: ClassVar[tuple[str, ...]] = ()

    #: scikit-learn's constraints of the parameters; those of the base classes hold where a class
    #: declares no other. Parameters without an entry are not checked.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": [COUNT, None],
        "random_state": ["random_state"],
    }

    scores_: FloatArray
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        constraints: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            constraints |= vars(base).get("_parameter_constraints", {})
        cls._parameter_constraints = constraints

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator with those of its ``layout_parameters`` that a layout has.

        Parameters
        ----------
        layout : Layout
            Layout of the data.
        **params
            Parameters of the constructor that do not depend on the layout.

        Returns
        -------
        Estimator
            The unfitted estimator.
        """
        given = layout.parameters()
        return cls(
            **{name: given[name] for name in cls.layout_parameters if name in given}, **params
        )

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the values of parameters with which the method assumes no structure of features.

        Parameters
        ----------
        layout : Layout
            Layout of the data.

        Returns
        -------
        mapping of str to float
            Value by parameter; empty for a method without such a parameter.
        """
        return {}

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return what a drafted study searches of the method.

        Parameters
        ----------
        layout : Layout
            Layout of the data.
        size : DataSize
            Size of the data.

        Returns
        -------
        SearchDraft or None
            None where fits to so large data take too long for a first study, or if no draft takes
            the method.
        """
        return None

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Maximum number of iterations of `iterate`."""

    @property
    def score_scale(self) -> str:
        """What the scores are: ``capabilities.score_scale``, unless parameters decide."""
        return self.capabilities.score_scale

    @property
    def univariate(self) -> bool:
        """Whether each score is of one feature alone, as ``capabilities.univariate`` says."""
        return self.capabilities.univariate

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid; the message names the parameter, its value and the valid
            values.
        """
        try:
            self._validate_params()
        except ValueError as error:
            raise ConfigError(str(error)) from error
        n_selected = getattr(self, "n_features_to_select", None)
        if n_selected is not None and n_selected > n_features:
            raise ConfigError(
                f"n_features_to_select={n_selected} exceeds the {n_features} features of the data."
            )

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that the parameters are valid for a training set with these labels.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; None for data of one task.

        Raises
        ------
        ConfigError
            If a parameter is invalid; the message names the parameter, its value and the valid
            values.
        """

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key among equally good configurations, of which the smallest is selected.

        Returns
        -------
        tuple of float
            Smaller for simpler models.
        """
        key = []
        for name in self.simpler_first:
            size = measure_size(getattr(self, name.removeprefix("-")))
            key.append(-size if name.startswith("-") else size)
        return tuple(key)

    def is_zero_solution(self, prepared: Any) -> bool:
        """Return whether the solution is proved to be zero before the first iteration.

        Parameters
        ----------
        prepared : object
            Result of ``prepare`` for the training set.

        Returns
        -------
        bool
            True only if the zero solution is optimal.
        """
        return False

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: Any) -> None:
        """Set the fitted attributes to the solution that `is_zero_solution` proves.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Training labels.
        prepared : object
            Result of ``prepare(X, y)``.
        """

    def another_start(self) -> Self | None:
        """Return an unfitted copy that starts elsewhere; of the copy, a further one.

        Returns
        -------
        Estimator or None
            The copy; None if the optimum does not depend on the start, or there is no other start.
        """
        return None

    def labelled(self, y: LabelArray) -> BoolArray:
        """Mask of the samples that have a label and can be scored.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
            True for labelled samples.
        """
        return np.ones(len(y), dtype=bool)

    @abstractmethod
    def prepare(self, X: FloatArray, y: LabelArray) -> Any:
        """Compute the quantities of a training set that all configurations share.

        The result may depend only on the parameters in ``capabilities.prepare_parameters``.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples, C-contiguous and finite.
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Training labels.

        Returns
        -------
        object
            A dataclass of contiguous arrays, or a tuple of such; not None. It must not be modified
            afterwards.

        Raises
        ------
        DataError
            If the labels do not suit the method, e.g. y holds one class only.
        """

    @abstractmethod
    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        """Yield the objective after each iteration, with the fitted attributes set."""

    @abstractmethod
    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the fit has converged, given the objectives so far."""

    @abstractmethod
    def _not_converged(self) -> str:
        """Return the warning message of a fit that ended without convergence."""

    def _validate_data(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, LabelArray]:
        if isinstance(X, StoredSamples) and self.capabilities.in_blocks:
            return X, np.asarray(y)
        quantities = QUANTITIES in self.capabilities.targets
        features, target = validate_samples(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            ensure_min_samples=2,
            multi_output=quantities,
            y_numeric=self.capabilities.targets == {QUANTITIES},
        )
        if not quantities:
            check_classification_targets(target)
        return features, target

    def take_training_prediction(self) -> LabelArray | None:
        """Return what a fit predicted of its samples to have an objective; None if it did not.

        It is returned once: no model keeps it.
        """
        return None

    def iterate(self, X: Any, y: ArrayLike, prepared: Any = None) -> Iterator[float]:
        """Fit the estimator, one iteration for each yielded value.

        After each yield the fitted attributes are set as if ``fit`` had stopped there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Training samples; TaskBlocks only for estimators that support tasks.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Training labels.
        prepared : object, default=None
            Result of ``prepare(X, y)`` by this estimator, or by another one for the same layout
            with equal ``capabilities.prepare_parameters``. If given, X and y are not validated.
            None: computed here.

        Yields
        ------
        float
            Objective after the iteration.
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
        """Yield the objectives and record their path, until convergence or ``max_steps``."""
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
        """Fit the estimator, calling scikit-learn's callbacks after each iteration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Training labels.

        Returns
        -------
        self
            The fitted estimator.

        Warns
        -----
        ConvergenceWarning
            If the fit ended without convergence.
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
        context.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes=self._fitted_attributes
        )
        if not self.converged_ and not stop:
            warnings.warn(self._not_converged(), ConvergenceWarning, stacklevel=2)
        return self

    @classmethod
    def check_path(cls, models: Sequence[Self]) -> None:
        """Check that configurations can be fitted together by `fit_path`.

        Parameters
        ----------
        models : sequence of estimators of this class
            Unfitted estimators, one for each configuration.

        Raises
        ------
        ConfigError
            If they differ in a parameter that must be equal; the message names the parameter.
        """

    @classmethod
    def fit_path(
        cls, models: Sequence[Self], X: FloatArray, prepared: Any
    ) -> Iterator[tuple[int, str]]:
        """Fit many configurations on one training set, using the solution of one for the next.

        Methods that implement it declare ``capabilities.path``.

        Parameters
        ----------
        models : sequence of estimators of this class
            Estimators to fit, one for each configuration.
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        prepared : object
            Result of ``prepare`` for the training set.

        Yields
        ------
        position : int
            Position in ``models`` of the estimator that has just been fitted.
        source : str
            "solved", or the name of the certificate by which the solution was obtained.
        """
        raise NotImplementedError(f"{cls.__name__} does not implement fit_path.")

    def _fitted_attributes(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}

    @property
    def ranking_(self) -> IntArray:
        """Rank of each feature, 1 for the largest score."""
        if "scores_" not in vars(self):
            check_is_fitted(self)
        return ranks(self.scores_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class IterativeEstimator(Estimator):
    """Base class of methods with the parameters ``max_iter`` and ``tol``.

    A method that sets ``dual_gap_`` in each iteration ends where the objective is proved to be
    within ``tol`` of the optimum, relative; others where an iteration lowers it by at most ``tol``.
    ``fit`` warns if ``max_iter`` iterations did not reach that.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_iter": [COUNT],
        "tol": [NOT_NEGATIVE],
    }

    # Set by the constructors of the subclasses.
    max_iter: int
    tol: float

    #: Upper bound of how far the objective is above the optimum, relative; None where no bound is
    #: known.
    dual_gap_: float | None = None

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, ``max_iter``."""
        return self.max_iter

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the duality gap, or else the last change of J, is at most ``tol``."""
        if self.dual_gap_ is not None:
            return self.dual_gap_ <= self.tol
        return len(path) > 1 and bool(abs(path[-2] - path[-1]) <= self.tol * abs(path[-2]))

    def _not_converged(self) -> str:
        return (
            f"{type(self).__name__} did not reach tol={self.tol:g} in {self.n_iter_} iterations"
            f"{self._shortfall()}: increase max_iter or tol."
        )

    def _shortfall(self) -> str:
        """Describe the duality gap or the relative change of the last iteration for the warning."""
        if self.dual_gap_ is not None:
            return f" (relative duality gap {self.dual_gap_:.1e})"
        if len(self.objective_path_) < 2:
            return ""
        before, last = self.objective_path_[-2:]
        change = abs(before - last) / max(abs(before), 1e-300)
        return f" (the last changed the objective by {change:.1e}, relative)"


class OneShotEstimator(Estimator):
    """Base class of methods whose ``_updates`` yields once, the objective of the fitted estimator.

    A method that calls an iterative solver of a library overrides ``_has_converged`` and
    ``_not_converged`` to report its convergence.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.capabilities = replace(cls.capabilities, iterates=False)

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, 1."""
        return 1

    def _has_converged(self, path: FloatArray) -> bool:
        """Return True: a direct solution needs no convergence test."""
        return True

    def _not_converged(self) -> str:
        return f"{type(self).__name__} did not converge."


def read_convergence(solver: Estimator) -> tuple[bool, float | None]:
    """Return whether a fitted solver met its ``tol``, and its relative duality gap."""
    converged, gap = bool(solver.converged_), getattr(solver, "dual_gap_", None)
    if gap is None or not math.isfinite(gap):
        return converged, None
    return converged, float(gap)
