"""SMR against its literal form: CPU time to the objective that 30 printed iterations reach."""

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.timing import cpu_seconds, load_orl_half, median_seconds
from raysel.numerics.least_squares import least_squares_data
from raysel.solvers.smr.smr import SMR
from raysel.solvers.smr.updates import objective

SHAPE, ZETA = (32, 32), 1e-10
LITERAL_ITERATIONS = 30
REPEATS = 9
# (rank, alpha / alpha_max, ratio to reach): ranks of the claim, alpha at both ends of the useful
# range.
CASES = [(4, 0.1, 100), (4, 0.01, 100), (10, 0.1, 50), (10, 0.01, 50)]


def literal_factor(vec_images, Y, Lc, known, D, alpha):
    """One half-step as printed: Kronecker products, a dense diagonal D, one linear system a
    class.
    """
    m = len(vec_images) // known[0].shape[0]
    factors = []
    for r, V in enumerate(known):
        lift = np.kron(V.T, np.eye(m))
        F = lift @ vec_images
        FL = F @ Lc
        factors.append(
            np.linalg.solve(FL @ F.T + alpha * (lift @ D @ lift.T), FL @ Y[:, r]).reshape(-1, m).T
        )
    return factors


def literal_smr(X, y, alpha, rank, n_iterations):
    """The paper's algorithm from V = [I; 0], D = I; returns the coefficients (c, m, n)."""
    m, n = SHAPE
    images = X.reshape(-1, m, n)
    by_columns = images.transpose(0, 2, 1).reshape(len(X), -1).T.copy()
    by_rows = X.T.copy()
    Y = np.eye(y.max() + 1)[y]
    Lc = np.eye(len(X)) - 1 / len(X)
    V, D = [np.eye(n, rank)] * Y.shape[1], np.eye(m * n)

    def weights(P, order):
        return np.diag(0.5 * ((P**2).sum(axis=0) + ZETA).ravel(order=order) ** -0.5)

    for _ in range(n_iterations):
        U = literal_factor(by_columns, Y, Lc, V, D, alpha)
        P = np.array([u @ v.T for u, v in zip(U, V, strict=True)])
        V = literal_factor(by_rows, Y, Lc, U, weights(P, "C"), alpha)
        P = np.array([u @ v.T for u, v in zip(U, V, strict=True)])
        D = weights(P, "F")
    return P


def iterations_to(target, X, y, alpha, rank):
    """Fit, validation and preparation included, until the objective is no larger than the
    target.
    """
    solver = SMR(
        SHAPE, alpha=alpha, rank=rank, zeta=ZETA, alpha_scale="absolute", tol=0, max_iter=100
    )
    return next(t for t, J in enumerate(solver.iterate(X, y), start=1) if target >= J)


def gemm_floor(X, n_classes, rank):
    """Median CPU seconds of the two products F without which no exact iteration can do."""
    (m, n), rng = SHAPE, np.random.default_rng(0)
    images = np.ascontiguousarray(X.T).reshape(m, n, -1)
    U, V = rng.standard_normal((n_classes * rank, m)), rng.standard_normal((n_classes * rank, n))
    F_u, F_v = np.empty((n_classes * rank, n * len(X))), np.empty((n_classes * rank, m * len(X)))
    by_rows, by_columns = (
        images.reshape(m, -1),
        np.ascontiguousarray(images.transpose(1, 0, 2)).reshape(n, -1),
    )

    def products():
        np.matmul(U, by_rows, out=F_u)
        np.matmul(V, by_columns, out=F_v)

    return median_seconds(products, 3 * REPEATS)[0]


def main():
    """Print one line a case."""
    X, y = load_orl_half()
    data = least_squares_data(X, y)
    print(
        f"ORL, {len(X)} images, {len(data.classes)} classes, one BLAS thread, medians of {REPEATS},"
        " CPU seconds"
    )
    for rank, fraction, wanted in CASES:
        alpha = fraction * data.alpha_max
        literal, P = cpu_seconds(
            lambda a=alpha, k=rank: literal_smr(X, y, a, k, LITERAL_ITERATIONS)
        )
        target = objective(P, data, alpha, 1.0, ZETA)
        fixed = {"zeta": ZETA, "alpha_scale": "absolute", "max_iter": 30, "tol": 0}
        same = SMR(SHAPE, alpha, rank, init="identity", **fixed)
        same_seconds, _ = cpu_seconds(lambda s=same: s.fit(X, y))
        seconds, iterations = median_seconds(
            lambda a=alpha, k=rank, t=target: iterations_to(t, X, y, a, k), REPEATS
        )
        start, _ = min(
            cpu_seconds(lambda a=alpha, k=rank: iterations_to(np.inf, X, y, a, k))
            for _ in range(REPEATS)
        )
        iteration = (same_seconds / LITERAL_ITERATIONS, gemm_floor(X, len(data.classes), rank))
        print(
            f"k={rank:2d} alpha={fraction:4} alpha_max | J {target:.4f} (ours from the same start:"
            f" {same.objective_path_[-1] / target - 1:+.0e} relative) | literal {literal:.2f} s, 30"
            f" iterations | SMR {seconds:.3f} s, {iterations} iterations, {start:.3f} s to the"
            f" first | ratio {literal / seconds:.0f} (at least {wanted}:"
            f" {'yes' if literal / seconds >= wanted else 'NO'}) | same start, same 30 iterations:"
            f" ratio {literal / same_seconds:.0f} | of the GEMM floor:"
            f" {seconds / (iterations * iteration[1]):.1f} times in all,"
            f" {iteration[0] / iteration[1]:.1f} times an iteration",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
