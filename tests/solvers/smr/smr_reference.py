"""SMR written out as the paper prints it: Kronecker matrices, dense D, centring matrix; for tests
only.

Corrections to the print (their derivation is one line each): eq. 23's left side is F L_c F' + alpha
A, eq. 35 begins with G, and L_c = I - (1/l) e e'. ``vec`` stacks columns.
"""

import numpy as np


def one_hot(y):
    return (y[:, None] == np.unique(y)[None, :]).astype(float)


def objective(P, images, y, alpha, p, zeta):
    """J with the intercepts in place, sample by sample."""
    Y = one_hot(y)
    loss = 0.0
    for r, P_r in enumerate(P):
        products = np.array([np.trace(P_r.T @ image) for image in images])
        b = Y[:, r].mean() - products.mean()
        loss += sum((products[i] + b - Y[i, r]) ** 2 for i in range(len(images)))
    return loss + alpha * sum(
        (sum(P_r[cell] ** 2 for P_r in P) + zeta) ** (p / 2) for cell in np.ndindex(P[0].shape)
    )


def weights(P, p, zeta):
    return p / 2 * ((np.asarray(P) ** 2).sum(axis=0) + zeta) ** (p / 2 - 1)


def given_factor(images, y, known, D, alpha):
    """The other factor of each class: (F L_c F' + alpha (V' x I) diag(vec D) (V x I)) vec U = F
    L_c y.
    """
    n_samples, m, _ = images.shape
    Y = one_hot(y)
    Lc = np.eye(n_samples) - 1 / n_samples
    vec_images = np.array([image.ravel(order="F") for image in images]).T
    factors = []
    for r, V in enumerate(known):
        lift = np.kron(V.T, np.eye(m))
        F = lift @ vec_images
        A = lift @ np.diag(D.ravel(order="F")) @ np.kron(V, np.eye(m))
        u = np.linalg.solve(F @ Lc @ F.T + alpha * A, F @ Lc @ Y[:, r])
        factors.append(u.reshape(m, V.shape[1], order="F"))
    return factors


def half_steps(images, y, V, D, alpha, p, zeta, n_half_steps):
    """Coefficients after each half-step from V (one matrix a class) and D.

    The known factor is replaced by an orthonormal basis, which P does not depend on: as printed the
    factors degenerate, and their Kronecker systems lose digits (3e-10 of J after 12 half-steps,
    against 40-digit arithmetic).
    """
    transposed = images.transpose(0, 2, 1)
    trajectory = []
    for t in range(n_half_steps):
        if t % 2 == 0:
            V = [np.linalg.qr(v)[0] for v in V]
            U = given_factor(images, y, V, D, alpha)
        else:
            U = [np.linalg.qr(u)[0] for u in U]
            V = given_factor(transposed, y, U, D.T, alpha)
        P = [u @ v.T for u, v in zip(U, V, strict=True)]
        D = weights(P, p, zeta)
        trajectory.append(P)
    return trajectory


def images_with_signal(rng, m, n, n_samples, c):
    """Noise with a different rank-1 pattern in each class, and every class present."""
    y = np.concatenate([np.arange(c), rng.integers(0, c, n_samples - c)])
    patterns = rng.standard_normal((c, m, 1)) * rng.standard_normal((c, 1, n))
    return rng.standard_normal((n_samples, m, n)) + patterns[y], y


def flat(images):
    return images.reshape(len(images), -1)
