"""SMR of order 3 against its literal form: matrices written out, a dense D, a system a class.

Run: python -m experiments.benchmarks.smr-speed.order3
"""

import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.timing import cpu_seconds, median_seconds
from raysel.numerics.least_squares import least_squares_data
from raysel.numerics.tensor_factors import unit_cells
from raysel.solvers.smr.smr import SMR
from raysel.solvers.smr.updates import objective

N_SAMPLES, SHAPE, RANK, N_CLASSES, ZETA = 200, (16, 16, 8), 4, 20, 1e-10
#: Share of alpha_max; wanted ratio to the literal form, to the products alone, and of the peak
#: memory to X.
FRACTION, WANTED = 0.03, (100, 3, 4)
LITERAL_ITERATIONS, REPEATS, DOUBLINGS = 10, 7, 2


def samples(shape, seed=0):
    """Normal samples around a tensor of rank 1 a class."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % N_CLASSES
    means = np.einsum("ra,rb,rc->rabc", *(rng.standard_normal((N_CLASSES, side)) for side in shape))
    return means[y] + 2.0 * rng.standard_normal((N_SAMPLES, *shape)), y


def khatri_rao(A, B):
    """Rows for all pairs of rows, (m, k) and (n, k) to (m n, k)."""
    return (A[:, None] * B).reshape(-1, A.shape[1])


def literal_step(unfolded, Y, Lc, factors, mode, D, alpha):
    """The factor of a mode of every class, by matrices written out; unfolded is (cells of mode
    first, n_samples).
    """
    side = SHAPE[mode]
    others = [q for q in range(3) if q != mode]
    for r, of_class in enumerate(factors):
        lift = np.kron(np.eye(side), khatri_rao(*(of_class[q] for q in others)))
        F = lift.T @ unfolded
        FL = F @ Lc
        system = FL @ F.T + alpha * (lift.T @ np.diag(D) @ lift)
        # Columns of the others of length 1 and a tiny ridge, without which near dependence ends it.
        ridge = 1e-12 * np.trace(system) / len(system)
        of_class[mode] = np.linalg.solve(
            system + ridge * np.eye(len(system)), FL @ Y[:, r]
        ).reshape(side, -1)


def literal(X, y, alpha, n_iterations):
    """Coefficients (c, m_1, m_2, m_3) by the literal form from the start of unit cells and D =
    1.
    """
    unfolded = [np.moveaxis(X, q + 1, 1).reshape(len(X), -1).T.copy() for q in range(3)]
    Y, Lc = np.eye(N_CLASSES)[y], np.eye(len(X)) - 1 / len(X)
    factors = [[None, *(A[0] for A in unit_cells(1, SHAPE, RANK))] for _ in range(N_CLASSES)]
    D = np.ones(SHAPE)
    for _ in range(n_iterations):
        for mode in range(3):
            literal_step(
                unfolded[mode], Y, Lc, factors, mode, np.moveaxis(D, mode, 0).ravel(), alpha
            )
            P = np.array(
                [(of_class[0] @ khatri_rao(*of_class[1:]).T).reshape(SHAPE) for of_class in factors]
            )
            D = 0.5 * ((P**2).sum(axis=0) + ZETA) ** -0.5
    return P


def repeated(action):
    """Median CPU seconds of several calls."""
    return median_seconds(action, REPEATS)[0]


def products(X):
    """Function that computes the contractions of the samples, by which no iteration can be
    faster, for all modes.
    """
    rng, shape = np.random.default_rng(0), X.shape[1:]
    unfolded = [
        np.ascontiguousarray(np.moveaxis(X, (q + 1, 0), (0, 2)).reshape(shape[q], -1, len(X)))
        for q in range(3)
    ]
    bases = [rng.standard_normal((N_CLASSES * RANK, one.shape[1])) for one in unfolded]
    return lambda: [np.matmul(basis, one) for basis, one in zip(bases, unfolded, strict=True)]


def fixed(shape, alpha, n_iterations, init="identity"):
    """SMR of as many iterations."""
    return SMR(
        shape,
        alpha,
        RANK,
        zeta=ZETA,
        init=init,
        alpha_scale="absolute",
        max_iter=n_iterations,
        tol=0,
    )


def iteration_seconds(shape):
    """CPU seconds of an iteration for samples of a shape."""
    X, y = samples(shape)
    flat = X.reshape(len(X), -1)
    alpha = FRACTION * least_squares_data(flat, y).alpha_max
    many, few = (
        repeated(lambda n=n: list(fixed(shape, alpha, n).iterate(flat, y))) for n in (11, 1)
    )
    return (many - few) / 10


def main():
    """Print the ratios, the growth and the peak memory."""
    X, y = samples(SHAPE)
    flat = X.reshape(len(X), -1)
    data = least_squares_data(flat, y)
    alpha = FRACTION * data.alpha_max
    seconds, P = cpu_seconds(lambda: literal(X, y, alpha, LITERAL_ITERATIONS))
    target = objective(P * data.scale, data, alpha / data.scale, 1.0, ZETA * data.scale**2)
    ours = fixed(SHAPE, alpha, LITERAL_ITERATIONS)
    same = repeated(lambda: list(ours.iterate(flat, y)))
    best = fixed(SHAPE, alpha, 100, "multistart")
    reached = repeated(lambda: next(J for J in best.iterate(flat, y) if target >= J))
    floor = repeated(products(X))
    iteration = iteration_seconds(SHAPE)
    tracemalloc.start()
    list(fixed(SHAPE, alpha, 3).iterate(flat, y))
    peak = tracemalloc.get_traced_memory()[1] / flat.nbytes
    tracemalloc.stop()
    sides = " x ".join(map(str, SHAPE))
    print(
        f"{N_SAMPLES} samples of {sides}, rank {RANK}, {N_CLASSES} classes, one BLAS thread, CPU"
        " seconds"
    )
    print(f"literal form: {seconds:.2f} for {LITERAL_ITERATIONS} iterations, J {target:.5g}")
    print(
        f"SMR, same start and iterations: {same:.3f}, J"
        f" {ours.objective_path_[-1] / target - 1:+.0e} relative"
    )
    ratios = (seconds / same, iteration / floor, peak)
    print(f"ratio {ratios[0]:.0f} (wanted {WANTED[0]})")
    print(f"SMR by default, to this J: {reached:.3f}, ratio {seconds / reached:.0f}")
    print(
        f"an iteration: {iteration:.4f}, {ratios[1]:.1f} times the products {floor:.4f} (wanted at"
        f" most {WANTED[1]})"
    )
    print(f"peak memory: {ratios[2]:.1f} times X (wanted at most {WANTED[2]})")
    for axis in range(3):
        shapes = [
            tuple(side << n if q == axis else side for q, side in enumerate(SHAPE))
            for n in range(DOUBLINGS + 1)
        ]
        spent = [iteration_seconds(shape) for shape in shapes]
        power = np.polyfit(np.log([shape[axis] for shape in shapes]), np.log(spent), 1)[0]
        listed = ", ".join(
            f"{shape[axis]}: {value:.4f}" for shape, value in zip(shapes, spent, strict=True)
        )
        print(f"side {axis + 1}, CPU seconds an iteration: {listed}; power {power:.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
