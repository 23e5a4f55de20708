"""Method and data that the conformance suite is run on, and how two fits are compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from raysel.base.estimator import MODALITIES, TASKS, TENSOR, VOLUME, Capabilities, Estimator
from raysel.base.registry import build_solver, solver_capabilities, solver_class
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.data.layouts import SEPARATOR, Layout, MaskedVolume, Modalities, Tasks, Tensor
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSES, QUANTITIES, find_target
from raysel.testing.checks import require, require_equal


@dataclass(frozen=True)
class MethodCase:
    """A method with parameters that make it fast on the suite's small data.

    Parameters
    ----------
    name : str or type
        Registered name, or dotted name of a class that derives from `Estimator` or is in
        scikit-learn's style, as in ``solver.name``; or such a class itself, which must be
        importable.
    params : mapping of str to object, default={}
        Parameters of the constructor, without those that are set from the layout and from the
        study's seed.
    varied : sequence of mapping, default=()
        Changes of ``params`` that give further configurations: the suite compares their preparation
        and fits a path through them.
    null_params : mapping, default=None
        Change of ``params`` with which the solution is zero for any data; required if the class has
        ``is_zero_solution``.
    tolerance : float, default=1e-6
        Largest change of a score, as a share of the largest score, if samples, classes or features
        are reordered.
    agreement : float, default=1.0
        Smallest share of predictions that are equal after reordering.
    objective : {"falls", "rises"} or None, default="falls"
        Direction in which the objective of an iterative method changes. None: not checked.
    learns : bool, default=True
        Whether nested cross-validation of the suite's data scores above chance.
    expected_failures : mapping of str to str, default={}
        Reason why a check fails, by a pattern of its name, e.g. ``{"feature_order[[]matri*":
        "starts at the first columns"}``. It is an error if such a check passes. scikit-learn's
        checks are named ``scikit-learn[check_...]``.
    layout_params : mapping of {"tensor", "modalities", "tasks"} to mapping, default={}
        Additional parameters for data of a kind of layout, e.g. the maps of two tasks of 6 and 8
        columns.

    Examples
    --------
    >>> MethodCase("pca", {"n_components": 2}).capabilities.iterates
    False
    """

    name: str | type
    params: Mapping[str, Any] = field(default_factory=dict)
    varied: Sequence[Mapping[str, Any]] = ()
    null_params: Mapping[str, Any] | None = None
    tolerance: float = 1e-6
    agreement: float = 1.0
    objective: Literal["falls", "rises"] | None = "falls"
    learns: bool = True
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    layout_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def solver_name(self) -> str:
        """Name of the method as in ``solver.name``."""
        if isinstance(self.name, str):
            return self.name
        return f"{self.name.__module__}.{self.name.__qualname__}"

    @cached_property
    def cls(self) -> type[Any]:
        """Class of the method."""
        return solver_class(self.solver_name)

    @property
    def wrapped(self) -> bool:
        """Whether the class is in scikit-learn's style, so that `ScikitLearnMethod` wraps it."""
        return not issubclass(self.cls, Estimator)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities that the class declares."""
        return solver_capabilities(self.solver_name)

    def build(self, layout: Layout, seed: int = 0, **changes: Any) -> Estimator:
        """Make an unfitted method for data of a layout.

        Parameters
        ----------
        layout : Layout
            Layout of the data.
        seed : int, default=0
            Seed for methods with a parameter ``random_state``.
        **changes
            Parameters that replace those of the case.

        Returns
        -------
        Estimator
            The unfitted method.
        """
        of_layout = self.layout_params.get(layout.kind, {})
        return build_solver(self.solver_name, layout, {**self.params, **of_layout, **changes}, seed)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples, targets and the layout of the columns; the arrays are read-only."""

    name: str
    layout: Layout
    #: Samples; for several tasks NaN outside the columns of a sample's own task; shape (n_samples,
    #: n_features).
    X: FloatArray
    #: Labels, an indicator, or quantities; shape (n_samples,), (n_samples, n_labels) or (n_samples,
    #: n_quantities).
    y: LabelArray

    def __post_init__(self) -> None:
        for array in (self.X, self.y):
            array.flags.writeable = False

    @property
    def single_label(self) -> bool:
        """Whether each sample has one label."""
        return find_target(self.y).is_one_class

    @property
    def of_quantities(self) -> bool:
        """Whether y is one quantity or several."""
        return not find_target(self.y).is_of_classes


#: Shapes of the two tasks' samples.
TASK_SHAPES: dict[str, int | tuple[int, ...]] = {"first": (3, 2), "second": (4, 2)}

_WORDS = np.array(["ant", "bee", "cat"])


def samples_for(case: MethodCase) -> Iterator[Samples]:
    """Generate a data set for each layout and kind of label that a method declares."""
    can: Capabilities = case.capabilities
    if QUANTITIES in can.targets:
        yield from _samples_of_quantities(case)
    if CLASSES not in can.targets:
        return
    if TENSOR in can.layouts:
        yield draw("tensors of order 3, 2 classes", Tensor((3, 4, 2)), 60, 2)
        yield draw("matrices, 3 classes", Tensor((4, 3)), 60, 3, text=True)
        yield draw("more features than samples", Tensor((30,)), 24, 3)
    if VOLUME in can.layouts:
        yield draw(
            "masked volumes, 3 classes", MaskedVolume(np.arange(24).reshape(2, 3, 4) % 5 > 1), 60, 3
        )
    if MODALITIES in can.layouts:
        yield draw("modalities, 3 classes", Modalities({"a": 4, "b": 6}), 60, 3)
    if TASKS in can.layouts:
        yield _tasks()
    if can.multilabel and not case.wrapped:  # classes in scikit-learn's style do not declare it
        layout: Layout = Modalities({"a": 4, "b": 6})
        name = "modalities, 3 labels"
        if MODALITIES not in can.layouts:
            layout, name = Tensor((5, 2)), "matrices, 3 labels"
        yield multilabel_samples(name, layout)


def _samples_of_quantities(case: MethodCase) -> Iterator[Samples]:
    """Generate data sets of quantities: one for a method that takes classes as well."""
    can = case.capabilities
    yield draw_quantities("vectors, 1 quantity", Tensor((8,)), 60, 1)
    if CLASSES in can.targets:
        return
    several, shown = 2, "2 quantities"
    if case.wrapped:  # classes in scikit-learn's style do not all take several
        several, shown = 1, "1 quantity"
    yield draw_quantities(f"matrices, {shown}", Tensor((4, 3)), 60, several)
    yield draw_quantities("more features than samples, 1 quantity", Tensor((30,)), 24, 1)
    if MODALITIES in can.layouts:
        yield draw_quantities(f"modalities, {shown}", Modalities({"a": 4, "b": 6}), 60, several)


def draw_quantities(
    name: str, layout: Layout, n_samples: int, n_quantities: int, seed: int = 0
) -> Samples:
    """Draw normal samples, and noisy quantities that are linear in half of the columns."""
    rng = np.random.default_rng(seed)
    d = layout.n_features
    X = rng.standard_normal((n_samples, d))
    coefficients = rng.uniform(0.5, 1.5, size=((d + 1) // 2, n_quantities))
    y = 30.0 + 7.0 * (
        X[:, : (d + 1) // 2] @ coefficients + 0.5 * rng.standard_normal((n_samples, n_quantities))
    )
    if n_quantities == 1:
        y = y[:, 0].copy()
    return Samples(name, layout, X, y)


def draw(
    name: str, layout: Layout, n_samples: int, n_classes: int, text: bool = False, seed: int = 0
) -> Samples:
    """Draw normal samples around means of the classes, which differ in half of the columns."""
    rng = np.random.default_rng(seed)
    X, codes = _normal(rng, n_samples, layout.n_features, n_classes)
    if text:
        return Samples(name, layout, X, _WORDS[codes])
    return Samples(name, layout, X, codes)


def multilabel_samples(name: str, layout: Layout) -> Samples:
    """Draw samples with three labels, of which a sample may have any."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, layout.n_features))
    values = X @ rng.standard_normal((layout.n_features, 3)) + 0.5 * rng.standard_normal((60, 3))
    return Samples(name, layout, X, (values > 0).astype(np.int64))


def _tasks() -> Samples:
    rng = np.random.default_rng(2)
    layout = Tasks(TASK_SHAPES)
    X, y = np.full((80, layout.n_features), np.nan), []
    for rows, (name, columns), n_classes in zip(
        (slice(0, 40), slice(40, 80)), layout.slices().items(), (2, 3), strict=True
    ):
        X[rows, columns], codes = _normal(rng, 40, columns.stop - columns.start, n_classes)
        y.append(np.char.add(f"{name}{SEPARATOR}", _WORDS[codes]))
    order = rng.permutation(80)
    return Samples("tasks", layout, X[order], np.concatenate(y)[order])


def _normal(
    rng: np.random.Generator, n: int, d: int, n_classes: int
) -> tuple[FloatArray, IntArray]:
    means = np.zeros((n_classes, d))
    means[:, : (d + 1) // 2] = 2.0 * rng.standard_normal((n_classes, (d + 1) // 2))
    codes = rng.permutation(np.arange(n) % n_classes)
    return means[codes] + rng.standard_normal((n, d)), codes


#: A check of a method on one data set.
SamplesCheck: TypeAlias = Callable[[MethodCase, Samples], None]


def fit(model: Estimator, X: ArrayLike, y: LabelArray) -> Estimator:
    """Fit a method and ignore its ConvergenceWarning, because the suite uses few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def iterated(
    model: Estimator,
    X: FloatArray | StoredSamples,
    y: LabelArray,
    prepared: Any = None,
    n: int | None = None,
) -> Estimator:
    """Fit a method by its generator, all iterations or the first ``n``."""
    for _ in islice(model.iterate(X, y, prepared), n):
        pass
    return model


def fitted(case: MethodCase, samples: Samples, **changes: Any) -> Estimator:
    """Build the method of a case and fit it to a data set."""
    return fit(case.build(samples.layout, **changes), samples.X, samples.y)


def require_same_bits(actual: Estimator, expected: Estimator, X: FloatArray, what: str) -> None:
    """Raise AssertionError unless two fits agree to the last bit."""
    require_equal(
        actual.objective_path_, expected.objective_path_, f"{what}: objective_path_ differs"
    )
    require(
        (actual.n_iter_, actual.converged_) == (expected.n_iter_, expected.converged_),
        f"{what}: n_iter_ and converged_ are {actual.n_iter_} and {actual.converged_}, not"
        f" {expected.n_iter_} and {expected.converged_}.",
    )
    require(
        hasattr(actual, "scores_") == hasattr(expected, "scores_"),
        f"{what}: one has scores_, the other has not.",
    )
    for name in ("scores_", "coef_"):
        if hasattr(expected, name):
            require_equal(getattr(actual, name), getattr(expected, name), f"{what}: {name} differs")
    if hasattr(expected, "predict"):
        require_equal(actual.predict(X), expected.predict(X), f"{what}: predictions differ")
