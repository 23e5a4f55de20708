"""Regression with a robust loss: the sum of the norms of the residuals, and of the coefficients, of RFS.

    J(W, b) = sum_i sqrt(||T_i - X_i W - b'||^2 + EPS)  +  alpha sum_j ||w_j||

is lowered by iterative reweighting (Nie et al., NIPS 2010). Both sums are replaced by quadratic functions that touch
them at the present residuals and rows, with ``rho_i`` and ``omega_j`` their norms. The minimiser for all W and b is

    (X diag(omega) X' / alpha + diag(rho)) Z = T - 1 b',  1'Z = 0,  W = diag(omega) X'Z / alpha,  residuals diag(rho) Z,

one system of n_samples equations, or a weighted ridge regression with n_features equations: whichever is smaller is
solved. J never rises.

With ``s = 1 / max(1, ||z_i||, ||X_j'Z|| / alpha)`` the dual point s Z is feasible, so that no J is below

    s <Z, T>  +  sqrt(EPS) sum_i sqrt(1 - s^2 ||z_i||^2)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from raysel.arrays import FloatArray, IntArray
from raysel.linalg.reweighting import BoundedStep, reweighted_steps

#: Smooths the norms of residuals of one-hot targets.
EPS = 1e-12


def l21_steps(X: FloatArray, T: FloatArray, alpha: float) -> Iterator[BoundedStep]:
    """Iterate from unit weights, ``omega = rho = 1``. `X` is (n_samples, n_features), `T` (n_samples, n_targets)."""
    update = _dual_update if len(X) <= X.shape[1] else _primal_update
    scaled = np.empty_like(X)  # one for all iterations: its pages are touched once

    def minimise(touched: FloatArray) -> BoundedStep:
        omega, rho = np.split(touched, [X.shape[1]])
        W, b, residuals = update(X, T, omega, rho, alpha, scaled)
        norms = np.sqrt(np.einsum("jc,jc->j", W, W))
        squares = np.einsum("ic,ic->i", residuals, residuals)
        lengths = np.sqrt(squares + EPS)
        J = float(lengths.sum() + alpha * norms.sum())
        z = squares / rho**2
        s = 1.0 / max(1.0, float((norms / omega).max()), float(np.sqrt(z.max())))
        lower = s * float(((residuals / rho[:, None]) * T).sum())
        lower += float(np.sqrt(EPS * np.maximum(1.0 - s * s * z, 0.0)).sum())
        return BoundedStep(W, np.concatenate([norms, lengths]), J, lower, b)

    return reweighted_steps(minimise, np.ones(X.shape[1] + len(X)))


def _dual_update(
    X: FloatArray, T: FloatArray, omega: FloatArray, rho: FloatArray, alpha: float, scaled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise the quadratic bound by a system of n_samples equations; return W, b and the residuals."""
    root = np.sqrt(omega / alpha)
    np.multiply(X, root, out=scaled)
    kernel = scaled @ scaled.T  # a symmetric product of BLAS
    kernel.flat[:: len(kernel) + 1] += rho
    solution = _solve(kernel, np.column_stack([T, np.ones(len(T))]))
    G, h = solution[:, :-1], solution[:, -1]
    b = (h @ T) / h.sum()
    Z = G - np.multiply.outer(h, b)
    W = scaled.T @ Z
    W *= root[:, None]
    return W, b, rho[:, None] * Z


def _primal_update(
    X: FloatArray, T: FloatArray, omega: FloatArray, rho: FloatArray, alpha: float, scaled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise the quadratic bound by a system of n_features equations; return W, b and the residuals."""
    weights, root = 1.0 / rho, np.sqrt(omega)
    x_mean, t_mean = weights @ X / weights.sum(), weights @ T / weights.sum()
    np.subtract(X, x_mean, out=scaled)
    scaled *= np.sqrt(weights)[:, None]
    scaled *= root
    system = scaled.T @ scaled
    system.flat[:: len(system) + 1] += alpha
    W = root[:, None] * _solve(system, scaled.T @ (np.sqrt(weights)[:, None] * (T - t_mean)))
    b = t_mean - x_mean @ W
    return W, b, T - X @ W - b


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, which is overwritten."""
    _, solution, info = lapack.dposv(system.T, right, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("The norms of rows and residuals span more than double precision: raise alpha.")
    found: FloatArray = solution
    return found


def null_model(counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Best intercept for W = 0 on one-hot targets, and a subgradient of each sample's residual that proves it best.

    The intercept is the spatial median of the targets. Where it is the target of a class r itself, which happens if r
    has about half of the samples or more, the residuals of that class have no gradient; its samples are given the
    common subgradient that makes the sum over all samples zero.

    `counts` is (n_classes,); returns `b` (n_classes,), `gradients` (n_classes, n_classes).
    """
    identity = np.eye(len(counts))
    # The pull of the others on class r, n_s (e_s - e_r) / sqrt(2) each, has this squared length.
    pull = ((counts.sum() - counts) ** 2 + (counts**2).sum() - counts**2) / 2
    major = np.flatnonzero(counts**2 >= pull)
    if major.size:
        r = major[0]
        gradients = (identity[r] - identity) / np.sqrt(2.0)
        gradients[r] = -(counts @ gradients) / counts[r]
        return identity[r], gradients
    b = _spatial_median(counts)
    differences = b - identity
    return b, differences / np.linalg.norm(differences, axis=1)[:, None]


def _spatial_median(counts: IntArray) -> FloatArray:
    """Point of least total distance to the unit vectors, each ``counts`` times, by Newton's method with halving."""
    identity = np.eye(len(counts))

    def distance(b: FloatArray) -> float:
        return float(counts @ np.linalg.norm(b - identity, axis=1))

    b = counts / counts.sum()
    for _ in range(50):  # quadratic convergence takes about five
        differences = b - identity
        lengths = np.linalg.norm(differences, axis=1)
        differences /= lengths[:, None]
        hessian = (counts / lengths).sum() * identity - (differences.T * (counts / lengths)) @ differences
        step = np.linalg.solve(hessian, counts @ differences)
        highest = distance(b) * (1.0 + 1e-14)  # near the median the distance is flat to rounding
        while distance(b - step) > highest:
            step /= 2
        b = b - step
        if np.abs(step).max() <= 1e-14:
            break
    return b
