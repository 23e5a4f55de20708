"""Synthetic data sets whose informative features are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from raysel.core.arrays import BoolArray
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Modalities, Tensor

#: Number of factors of the noise that the features of a modality share.
_FACTORS = 5


def make_matrix_classification(
    n_samples: int = 200,
    shape: tuple[int, int] = (8, 8),
    n_classes: int = 3,
    n_informative: int = 16,
    noise: float = 1.0,
    random_state: int | None = None,
) -> tuple[Dataset, BoolArray]:
    """Make matrix-shaped samples whose class means differ only in a block of informative cells.

    A sample of class r is ``t_r v' + noise * N(0, 1)``: the mean of its class is a matrix of rank
    one on the informative rows and columns (drawn at random, not necessarily adjacent) and zero
    elsewhere. Over the classes, t has mean 0 and standard deviation 1 in each informative row, and
    ``0.5 <= v <= 1.5``. The class means in an informative cell therefore have a standard deviation
    of at least 0.5.
    """
    height, width = shape
    if not 2 <= n_classes <= n_samples:
        raise ConfigError(
            f"n_classes={n_classes} must be at least 2 and at most n_samples={n_samples}."
        )
    n_rows, n_columns = _block(n_informative, height, width)
    rng = np.random.default_rng(random_state)
    rows = rng.choice(height, n_rows, replace=False)
    columns = rng.choice(width, n_columns, replace=False)
    t = rng.standard_normal((n_classes, n_rows))
    t = (t - t.mean(axis=0)) / t.std(axis=0)
    v = rng.uniform(0.5, 1.5, n_columns)

    means = np.zeros((n_classes, height, width))
    means[:, rows[:, None], columns] = t[:, :, None] * v
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = means[y] + noise * rng.standard_normal((n_samples, height, width))
    mask = np.zeros(shape, dtype=bool)
    mask[rows[:, None], columns] = True
    return Dataset(X.reshape(n_samples, -1), y, Matrix(height, width), name="planted"), mask.ravel()


def make_tensor_classification(
    shape: Sequence[int] = (8, 8, 6),
    block: Sequence[int] = (3, 3, 2),
    n_classes: int = 3,
    n_per_class: int = 15,
    rank: int = 1,
    noise: float = 1.0,
    random_state: int | None = None,
) -> tuple[Dataset, BoolArray]:
    """Make samples of any order whose class means differ only in a block of adjacent cells.

    A sample of class r is ``B_r + noise * N(0, 1)``. B_r is a sum of ``rank`` outer products of
    normal vectors on the block, scaled to a mean square of 1 there, and zero elsewhere. The place
    of the block is drawn.
    """
    if len(block) != len(shape) or any(not 1 <= b <= m for b, m in zip(block, shape, strict=False)):
        raise ConfigError(
            f"block={list(block)} does not fit into shape={list(shape)}: give one side for each"
            " axis."
        )
    for name, value, least in (
        ("n_classes", n_classes, 2),
        ("n_per_class", n_per_class, 1),
        ("rank", rank, 1),
    ):
        if value < least:
            raise ConfigError(f"{name}={value} must be at least {least}.")
    rng = np.random.default_rng(random_state)
    starts = [int(rng.integers(m - b + 1)) for b, m in zip(block, shape, strict=True)]
    cells = (
        slice(None),
        *(slice(start, start + b) for start, b in zip(starts, block, strict=True)),
    )
    means = np.zeros((n_classes, *shape))
    for r in range(n_classes):
        drawn = sum(
            reduce(np.multiply.outer, [rng.standard_normal(b) for b in block]) for _ in range(rank)
        )
        means[r][cells[1:]] = drawn / np.sqrt(np.mean(np.square(drawn)))
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = means[y] + noise * rng.standard_normal((len(y), *shape))
    mask = np.zeros(shape, dtype=bool)
    mask[cells[1:]] = True
    return (
        Dataset(X.reshape(len(y), -1), y, Tensor(tuple(shape)), name="planted-tensor"),
        mask.ravel(),
    )


def make_multimodal_classification(
    modalities: Mapping[str, int],
    informative: Mapping[str, int],
    n_samples: int = 200,
    n_classes: int = 3,
    noise: float = 1.0,
    shared: float = 0.0,
    multilabel: bool = False,
    random_state: int | None = None,
) -> tuple[Dataset, BoolArray]:
    """Make samples whose classes differ in informative features of some modalities only.

    A sample is ``sum_r h_r t_r + noise * e``. t_r is drawn for class r in each informative feature,
    with mean 0 and standard deviation 1 over the classes, and is zero in all other features; h is
    the indicator of the sample's class, or of its labels. e has unit variance; the share ``shared``
    of it is a combination of five factors, with random weights for each feature, that all features
    of a modality have in common.
    """
    layout = Modalities(modalities)
    if not 2 <= n_classes <= n_samples:
        raise ConfigError(
            f"n_classes={n_classes} must be at least 2 and at most n_samples={n_samples}."
        )
    for name, n_planted in informative.items():
        if not 0 <= n_planted <= layout.modalities.get(name, 0):
            limit = f"the modalities are {', '.join(layout.modalities)}"
            if name in layout.modalities:
                limit = f"give at most its {layout.modalities[name]} features"
            raise ConfigError(
                f"informative={{{name!r}: {n_planted}}} does not fit modalities; {limit}."
            )
    if not 0 <= shared <= 1:
        raise ConfigError(
            f"shared={shared} is not a share of the noise's variance: give a number from 0 to 1."
        )
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    indicator = y[:, None] == np.arange(n_classes)
    if multilabel:
        indicator = rng.random((n_samples, n_classes)) < 1 / 3

    X = np.empty((n_samples, layout.n_features))
    mask = np.zeros(layout.n_features, dtype=bool)
    for name, columns in layout.slices().items():
        width = layout.modalities[name]
        loadings = rng.standard_normal((_FACTORS, width))
        loadings *= np.sqrt(shared / (loadings**2).sum(axis=0))
        independent = math.sqrt(1 - shared) * rng.standard_normal((n_samples, width))
        X[:, columns] = noise * (
            rng.standard_normal((n_samples, _FACTORS)) @ loadings + independent
        )
        planted = columns.start + rng.choice(width, informative.get(name, 0), replace=False)
        t = rng.standard_normal((n_classes, len(planted)))
        t = (t - t.mean(axis=0)) / t.std(axis=0)
        X[:, planted] += indicator @ t
        mask[planted] = True
    if multilabel:
        y = indicator.astype(int)
    return Dataset(X, y, layout, name="planted"), mask


def _block(n_cells: int, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of a block of ``n_cells`` within height x width, most like a square."""
    pairs = [(rows, n_cells // rows) for rows in range(1, height + 1) if n_cells % rows == 0]
    fits = [(rows, columns) for rows, columns in pairs if 1 <= columns <= width]
    if not fits:
        raise ConfigError(
            f"n_informative={n_cells} cells do not form a block within {height} x {width}; "
            f"give a product of at most {height} rows and at most {width} columns, "
            f"e.g. {math.ceil(height / 2) * math.ceil(width / 2)}."
        )
    return min(fits, key=sum)
