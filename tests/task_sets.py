"""Tasks that tests make up, and the definitions they are held against."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from raysel.base.task_samples import task_samples

SIZES = ((60, 12, 4), (80, 9, 3), (50, 15, 5))


def make_tasks(seed, sizes=SIZES, noise=2.0):
    """Tasks of n samples, D features and c classes, with correlated noise within classes."""
    rng = np.random.default_rng(seed)
    tasks = []
    for n, D, c in sizes:
        y = np.arange(n) % c
        mixing = rng.standard_normal((D, D)) / np.sqrt(D) * noise
        tasks.append((rng.standard_normal((c, D))[y] + rng.standard_normal((n, D)) @ mixing, y))
    return tasks


def dense_scatters(X, y):
    """S_b and S_t by their definitions."""
    mean = X.mean(axis=0)
    total = sum(np.outer(x - mean, x - mean) for x in X) / len(X)
    between = sum(
        np.outer(m - mean, m - mean) * k
        for m, k in ((X[y == c].mean(axis=0), (y == c).mean()) for c in set(y))
    )
    return between, total


def leading(matrix, size):
    """The sum of the largest eigenvalues, and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return values[-size:].sum(), vectors[:, -size:]


def concatenate(tasks):
    """The scikit-learn face: one X with NaN outside a sample's own task, and tasks' widths."""
    widths = [X.shape[1] for X, _ in tasks]
    starts = np.cumsum([0, *widths])
    X = np.full((sum(len(y) for _, y in tasks), starts[-1]), np.nan)
    row = 0
    for start, width, (own, _) in zip(starts, widths, tasks, strict=False):
        X[row : row + len(own), start : start + width] = own
        row += len(own)
    return (
        X,
        np.concatenate([y for _, y in tasks]),
        {f"t{i}": width for i, width in enumerate(widths)},
    )


def small_but_telling(seed, scale, n=300):
    """Three features of noise, and one of far smaller scale that alone tells two classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return (
        np.column_stack([rng.standard_normal((n, 3)), scale * (y + 0.25 * rng.standard_normal(n))]),
        y,
    )


def make_task(seed, n=60, D=10, c=4):
    """One task of n samples, D features and c classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    return (
        rng.standard_normal((c, D))[y]
        + rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) / 2,
        y,
    )


def matrix_tasks(seed):
    """Two tasks of 6 x 5 and 7 x 4 matrices, as rows, and their shapes."""
    rng = np.random.default_rng(seed)
    tasks = []
    for n, (a, b), c in ((50, (6, 5), 4), (60, (7, 4), 3)):
        y = np.arange(n) % c
        X = rng.standard_normal((c, a, b))[y] + 1.5 * rng.standard_normal((n, a, b))
        tasks.append((X.reshape(n, -1), y))
    return tasks, {"first": (6, 5), "second": (7, 4)}


def task_samples_of(tasks):
    """The same tasks as a solver's functions take them."""
    return [task_samples(f"t{i}", X, y) for i, (X, y) in enumerate(tasks)]


def best_ratio(problems, sizes, weights):
    """The root of the weighted difference of dense (S_b, S_t), and the leading eigenvectors
    there.
    """

    def difference(ratio):
        parts = zip(weights, problems, sizes, strict=True)
        return sum(w * leading(B - ratio * T, d)[0] for w, (B, T), d in parts)

    ratio = brentq(difference, 0, 1, xtol=1e-15, rtol=1e-14)
    return ratio, [leading(B - ratio * T, d)[1] for (B, T), d in zip(problems, sizes, strict=True)]


def assert_same_spaces(found, expected, atol=1e-9):
    """Each pair of bases spans the same space."""
    for U, V in zip(found, expected, strict=True):
        np.testing.assert_allclose(U @ U.T, V @ V.T, atol=atol)


def write_tasks(folder, tasks, shapes=None):
    """Each task as a file, and the section `dataset` that names them."""
    names = list(shapes or {f"t{i}": None for i in range(len(tasks))})
    for name, (X, y) in zip(names, tasks, strict=True):
        np.savez(
            folder / f"{name}.npz", X=X if shapes is None else X.reshape(-1, *shapes[name]), y=y
        )
    return {
        "tasks": [{"name": name, "path": str(folder / f"{name}.npz")} for name in names],
        "scaling": "none",
    }
