"""GLSPFS against its solution in the features: CPU time of an iteration."""

import json
import statistics
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from raysel.baselines.glspfs import GLSPFS

N_SAMPLES, N_CLASSES = 200, 40
LOCAL, SPARSITY = 0.001, 0.1
ITERATIONS, REPEATS = 30, 5
#: Features, iterations of the peer, ratio to reach.
CASES = [(1024, 10, 8), (4096, 4, 100)]


def samples(n_features, seed=0):
    """Normal samples around a mean of each class, all classes equally large."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % N_CLASSES
    return (
        rng.standard_normal((N_CLASSES, n_features))[y]
        + rng.standard_normal((N_SAMPLES, n_features)),
        y,
    )


def our_iteration(X, y, prepared):
    """CPU seconds of one of our iterations, with the fitted attributes set after each, and the
    objectives.
    """
    glspfs = GLSPFS(LOCAL, SPARSITY, max_iter=ITERATIONS, tol=0.0)
    started = time.process_time()
    path = list(glspfs.iterate(X, y, prepared))
    return (time.process_time() - started) / ITERATIONS, path


def peer_iterations(prepared, n_iterations):
    """``W = (D X'U X + r1 n I)^-1 D X'T`` with U = I + r2 n L: CPU seconds of each solution, and
    the objectives.
    """
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
        fit = (
            (W * (G @ W)).sum() - 2 * (W * XT).sum() + n
        )  # the squared length of the one-hot targets
        path.append(fit / n + SPARSITY * norms.sum())
    return times, path


def main():
    """Print one line a case and write all figures beside this file."""
    found = []
    for n_features, limit, wanted in CASES:
        X, y = samples(n_features)
        prepared = GLSPFS().prepare(X, y)
        our_iteration(X, y, prepared)  # warm
        ours = [our_iteration(X, y, prepared) for _ in range(REPEATS)]
        times, path = peer_iterations(prepared, limit)
        ours += [our_iteration(X, y, prepared) for _ in range(REPEATS)]
        case = {
            "n_features": n_features,
            "glspfs_seconds": statistics.median(seconds for seconds, _ in ours),
            "peer_seconds": statistics.median(times),
            # Ours are extrapolated from the second iteration on.
            "first_objectives_differ": abs(path[0] / ours[0][1][0] - 1),
            "wanted": wanted,
        }
        case["ratio"] = case["peer_seconds"] / case["glspfs_seconds"]
        found.append(case)
        print(
            f"d={n_features}: an iteration {1e3 * case['glspfs_seconds']:.2f} ms, d x d solve"
            f" {1e3 * case['peer_seconds']:.0f} ms, ratio {case['ratio']:.0f} (at least {wanted});"
            f" the same first objective to {case['first_objectives_differ']:.0e}",
            flush=True,
        )
    result = {
        "n_samples": N_SAMPLES,
        "n_classes": N_CLASSES,
        "local": LOCAL,
        "sparsity": SPARSITY,
        "iteration": found,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
