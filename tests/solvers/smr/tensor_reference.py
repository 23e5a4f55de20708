"""SMR of tensors written out: explicit Khatri-Rao matrices, Kronecker penalty, centring matrix; for
tests only.

Of class r, with P unfolded along mode q as A Z', rows of the unfolding one below the other:

    vec P = K vec A,    (F L_c F' + alpha K' diag(vec D) K) vec A = F L_c y,    K = I kron Z,    F =
    K' X
"""

from itertools import product

import numpy as np
from smr_reference import one_hot


def khatri_rao(others):
    """One row for each combination of the factors' rows, in C order; a single row of ones
    without factors.
    """
    k = others[0].shape[1] if others else 1
    rows = [
        np.prod([A[i] for A, i in zip(others, cell, strict=True)], axis=0) for cell in cells(others)
    ]
    return np.array(rows).reshape(-1, k)


def cells(factors):
    return product(*(range(len(A)) for A in factors))


def tensor(factors):
    return khatri_rao(factors).sum(axis=1).reshape([len(A) for A in factors])


def best_factor(arrays, y, factors, q, D, alpha):
    """The factor of mode q of one class whose targets are ``y``, for its other factors; the
    shortest of several.
    """
    side, n = arrays.shape[q + 1], len(arrays)
    lift = np.kron(np.eye(side), khatri_rao(factors[:q] + factors[q + 1 :]))
    F = lift.T @ np.moveaxis(arrays, q + 1, 1).reshape(n, -1).T
    Lc = np.eye(n) - 1 / n
    penalty = lift.T @ np.diag(np.moveaxis(D, q, 0).ravel()) @ lift
    system, right = F @ Lc @ F.T + alpha * penalty, F @ Lc @ y
    solution = (
        np.linalg.solve(system, right)
        if D.all()
        else np.linalg.lstsq(system, right, rcond=1e-12)[0]
    )
    return solution.reshape(side, -1)


def objective(P, arrays, y, alpha, p, zeta):
    """J with the intercepts in place, sample by sample."""
    Y, loss = one_hot(y), 0.0
    for r, P_r in enumerate(P):
        products = np.array([(P_r * array).sum() for array in arrays])
        b = Y[:, r].mean() - products.mean()
        loss += sum((products[i] + b - Y[i, r]) ** 2 for i in range(len(arrays)))
    energies = (sum(P_r[cell] ** 2 for P_r in P) for cell in np.ndindex(arrays.shape[1:]))
    return loss + alpha * sum((energy + zeta) ** (p / 2) for energy in energies)


def mode_steps(arrays, y, start, D, alpha, p, zeta, n_steps):
    """Coefficients after each step from the factors of all modes but the first (one list of them
    a class) and D.
    """
    classes = [[None, *factors] for factors in start]
    trajectory = []
    for t in range(n_steps):
        q = t % (arrays.ndim - 1)
        for r, factors in enumerate(classes):
            factors[q] = best_factor(arrays, one_hot(y)[:, r], factors, q, D, alpha)
        P = np.array([tensor(factors) for factors in classes])
        for (
            factors
        ) in classes:  # P does not depend on the scale of the columns of the other factors
            factors[q] = factors[q] / np.linalg.norm(factors[q], axis=0)
        D = p / 2 * ((P**2).sum(axis=0) + zeta) ** (p / 2 - 1)
        trajectory.append(P)
    return trajectory


def tensors_with_signal(rng, shape, n_samples, c):
    """Noise with a different rank-1 pattern in each class, and every class present."""
    y = np.concatenate([np.arange(c), rng.integers(0, c, n_samples - c)])
    patterns = np.array(
        [tensor([rng.standard_normal((side, 1)) for side in shape]) for _ in range(c)]
    )
    return rng.standard_normal((n_samples, *shape)) + patterns[y], y
