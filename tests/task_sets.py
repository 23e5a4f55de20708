"""Tasks that tests make up, and the definitions they are held against."""

from __future__ import annotations

import numpy as np

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
        np.outer(m - mean, m - mean) * k for m, k in ((X[y == c].mean(axis=0), (y == c).mean()) for c in set(y))
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
    return X, np.concatenate([y for _, y in tasks]), {f"t{i}": width for i, width in enumerate(widths)}


def small_but_telling(seed, scale, n=300):
    """Three features of noise, and one of far smaller scale that alone tells two classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return np.column_stack([rng.standard_normal((n, 3)), scale * (y + 0.25 * rng.standard_normal(n))]), y
