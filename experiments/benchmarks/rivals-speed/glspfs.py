"""GLSPFS against its solution in the features: CPU time of an iteration."""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.timing import Iterations, draw_classes, save
from raysel.baselines.glspfs import GLSPFS

N_SAMPLES, N_CLASSES = 200, 40
LOCAL, SPARSITY = 0.001, 0.1
ITERATIONS, REPEATS = 30, 5
#: Features, iterations of the peer, ratio to reach.
CASES = [(1024, 10, 8), (4096, 4, 100)]


def problem(n_features):
    """Samples, labels and what GLSPFS prepares."""
    X, y = draw_classes(N_SAMPLES, n_features, N_CLASSES)
    return X, y, GLSPFS().prepare(X, y)


def our_iteration(given):
    """CPU seconds of one of our iterations, with the fitted attributes, and the objectives."""
    glspfs = GLSPFS(LOCAL, SPARSITY, max_iter=ITERATIONS, tol=0.0)
    started = time.process_time()
    path = list(glspfs.iterate(*given))
    return (time.process_time() - started) / ITERATIONS, path


def peer_iterations(given, n_iterations):
    """``W = (D X'U X + r1 n I)^-1 D X'T`` with U = I + r2 n L: CPU seconds and objectives."""
    prepared = given[2]
    X, T, n = prepared.X, prepared.T, prepared.n_samples
    U = np.eye(n) + n * LOCAL * prepared.laplacian
    G, XT = X.T @ U @ X, X.T @ T
    D, times, path = np.ones(X.shape[1]), [], []
    for _ in range(n_iterations):
        started = time.process_time()
        system = D[:, None] * G
        system.flat[:: len(system) + 1] += SPARSITY * n
        W = np.linalg.solve(system, D[:, None] * XT)
        norms = np.linalg.norm(W, axis=1)
        D = 2 * norms
        times.append(time.process_time() - started)
        # n is the squared length of the one-hot targets.
        fit = (W * (G @ W)).sum() - 2 * (W * XT).sum() + n
        path.append(fit / n + SPARSITY * norms.sum())
    return times, path


def difference(ours, theirs):
    """How far the first objectives differ; ours are extrapolated from the second one on."""
    return {"first_objectives_differ": abs(theirs[0] / ours[0] - 1)}


def main():
    """Print one line a case and write all figures beside this file."""
    both = Iterations(
        method="glspfs",
        peer="d x d solve",
        problem=problem,
        ours=our_iteration,
        theirs=peer_iterations,
        difference=difference,
    )
    rows = list(both.compare(CASES, REPEATS))
    settings = {"n_samples": N_SAMPLES, "n_classes": N_CLASSES, "local": LOCAL}
    save(__file__, {**settings, "sparsity": SPARSITY, "iteration": rows})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
