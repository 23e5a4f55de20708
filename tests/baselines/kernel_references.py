"""Problems and plain formulas that the tests of the kernel classifiers share."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from hypothesis import reject
from scipy.spatial.distance import cdist


def draw(n=24, widths=(2, 3, 4), n_classes=3, seed=0, spread=1.0):
    """Normal samples around class means, their labels, and the modalities; the last modality is
    noise.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    blocks = [
        spread * rng.standard_normal((n_classes, w))[y] + rng.standard_normal((n, w))
        for w in widths
    ]
    blocks[-1] = rng.standard_normal((n, widths[-1]))
    return np.hstack(blocks), y, {f"m{k}": w for k, w in enumerate(widths)}


def kernels_of(X, widths, gamma=1.0, others=None):
    """Gaussian kernels with gamma / mean squared distance of two rows of X, by SciPy."""
    stops = np.cumsum(widths)
    found = []
    for start, stop in zip(stops - widths, stops, strict=True):
        own = cdist(X[:, start:stop], X[:, start:stop], "sqeuclidean")
        mean = own.sum() / (len(X) * (len(X) - 1))
        to = (
            own if others is None else cdist(others[:, start:stop], X[:, start:stop], "sqeuclidean")
        )
        found.append(np.exp(-gamma * to / mean))
    return np.array(found)


def signs_of(y):
    """Targets of 1 and -1, one row a class; one row for two classes."""
    classes = np.unique(y)
    return np.where(y == classes[:, None], 1.0, -1.0)[0 if len(classes) > 2 else 1 :]


def yu_dual(kernels, signs, q, C=None):
    """Optimum and weights of the dual of Yu et al. (2010), by Clarabel; C=None is the squared
    loss.
    """
    if C is None:
        kernels = np.concatenate([kernels, np.eye(signs.shape[1])[None]])
    roots = [np.linalg.cholesky(K + 1e-12 * np.eye(len(K))) for K in kernels]
    a, sums = cp.Variable(signs.shape), cp.Variable(len(kernels))
    quadratics = [cp.sum_squares(a @ root) <= s for root, s in zip(roots, sums, strict=True)]
    constraints = [*quadratics, cp.sum(a, axis=1) == 0]
    if C is not None:
        own = cp.multiply(a, signs)
        constraints += [own >= 0, own <= C]
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(a, signs)) - 0.5 * cp.norm(sums, q)), constraints
    )
    try:
        problem.solve("CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    except cp.SolverError:
        reject()  # this reference gave up: the drawn example tells nothing
    return problem.value, 2.0 * np.array([np.asarray(c.dual_value).item() for c in quadratics])


def soft_margin(scores, codes, nu, weights):
    """Mean of the worst nu n margins; weights of shape (n_classifiers, n_classes)."""
    total = (weights[:, :, None] * scores).sum(axis=0)
    margins = [
        min(total[y, i] - total[j, i] for j in range(len(total)) if j != y)
        for i, y in enumerate(codes)
    ]
    left, size, found = max(nu * len(codes), 1.0), max(nu * len(codes), 1.0), 0.0
    for margin in sorted(margins):
        found += min(left, 1.0) * margin / size
        left -= min(left, 1.0)
    return found
