"""Small generated data sets of every layout and kind of target, on which methods are checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.capabilities import MODALITIES, TASKS, TENSOR, Capabilities
from raysel.data.layouts import SEPARATOR, Layout, Modalities, Tasks, Tensor
from raysel.testing.estimators.case import MethodCase


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples, targets and the layout of the columns; the arrays are read-only."""

    name: str
    layout: Layout
    #: Samples; for several tasks NaN outside the columns of a sample's own task; shape (n_samples, n_features).
    X: FloatArray
    #: Labels, or an indicator; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray

    def __post_init__(self) -> None:
        for array in (self.X, self.y):
            array.flags.writeable = False

    @property
    def single_label(self) -> bool:
        """Whether each sample has one label."""
        return self.y.ndim == 1


#: Shapes of the two tasks' samples.
TASK_SHAPES: dict[str, int | tuple[int, ...]] = {"first": (3, 2), "second": (4, 2)}

_WORDS = np.array(["ant", "bee", "cat"])


def samples_for(case: MethodCase) -> Iterator[Samples]:
    """Generate a data set for each layout and kind of label that a method declares."""
    can: Capabilities = case.capabilities
    if TENSOR in can.layouts:
        yield draw("vectors, 2 classes", Tensor((8,)), 60, 2)
        yield draw("matrices, 3 classes", Tensor((4, 3)), 60, 3, text=True)
        yield draw("more features than samples", Tensor((30,)), 24, 3)
    if MODALITIES in can.layouts:
        yield draw("modalities, 3 classes", Modalities({"a": 4, "b": 6}), 60, 3)
    if TASKS in can.layouts:
        yield _tasks()
    if can.multilabel and not case.wrapped:  # classes in scikit-learn's style do not declare it
        yield multilabel_samples()


def draw(name: str, layout: Layout, n_samples: int, n_classes: int, text: bool = False, seed: int = 0) -> Samples:
    """Draw normal samples around a mean of each class, which differ in the first half of the columns."""
    rng = np.random.default_rng(seed)
    X, codes = _normal(rng, n_samples, layout.n_features, n_classes)
    return Samples(name, layout, X, _WORDS[codes] if text else codes)


def multilabel_samples() -> Samples:
    """Draw samples of two modalities with three labels, of which a sample may have any."""
    rng = np.random.default_rng(3)
    layout = Modalities({"a": 4, "b": 6})
    X = rng.standard_normal((60, layout.n_features))
    values = X @ rng.standard_normal((layout.n_features, 3)) + 0.5 * rng.standard_normal((60, 3))
    return Samples("modalities, 3 labels", layout, X, (values > 0).astype(np.int64))


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


def _normal(rng: np.random.Generator, n: int, d: int, n_classes: int) -> tuple[FloatArray, IntArray]:
    means = np.zeros((n_classes, d))
    means[:, : (d + 1) // 2] = 2.0 * rng.standard_normal((n_classes, (d + 1) // 2))
    codes = rng.permutation(np.arange(n) % n_classes)
    return means[codes] + rng.standard_normal((n, d)), codes
