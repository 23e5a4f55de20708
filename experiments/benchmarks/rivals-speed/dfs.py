"""DFS against SciPy's generalised eigenproblem in the features: CPU time of an iteration."""

import json
import statistics
import time
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from raysel.baselines.dfs import DFS

N_SAMPLES, N_CLASSES, GAMMA, ZETA = 200, 40, 0.1, 1e-12
ITERATIONS, REPEATS = 30, 5
#: Features, iterations of the peer, ratio to reach.
CASES = [(1024, 5, 15), (4096, 2, 300)]


def samples(n_features, seed=0):
    """Normal samples around a mean of each class, all classes equally large, less than 1 from
    their means.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % N_CLASSES
    X = rng.standard_normal((N_CLASSES, n_features))[y] + rng.standard_normal(
        (N_SAMPLES, n_features)
    )
    return X / np.abs(X - X.mean(axis=0)).max() * 0.99, y


def our_iteration(X, y, prepared):
    """CPU seconds of one of our iterations, with the fitted attributes set after each, and the
    objectives.
    """
    dfs = DFS(GAMMA, max_iter=ITERATIONS, tol=0.0)
    started = time.process_time()
    path = list(dfs.iterate(X, y, prepared))
    return (time.process_time() - started) / len(path), path


def peer_iterations(prepared, n_iterations):
    """Leading eigenvectors of ``S_t w = mu (S_w + gamma D) w``: CPU seconds of each, and the
    objectives.
    """
    X, within = prepared.X, prepared.within(prepared.X)
    S_t, S_w = X.T @ X, within.T @ within
    d, m = X.shape[1], prepared.n_directions
    D, times, path = np.ones(d), [], []
    for _ in range(n_iterations):
        started = time.process_time()
        mu, vectors = eigh(
            S_t, S_w + GAMMA * np.diag(D), subset_by_index=(d - m, d - 1), check_finite=False
        )
        W = vectors / np.sqrt(mu)
        norms = np.sqrt((W**2).sum(axis=1) + ZETA)
        D = 0.5 / norms
        times.append(time.process_time() - started)
        path.append((W * (S_w @ W)).sum() + GAMMA * norms.sum())
    return times, path


def main():
    """Print one line a case and write all figures beside this file."""
    found = []
    for n_features, limit, wanted in CASES:
        X, y = samples(n_features)
        prepared = DFS().prepare(X, y)
        assert prepared.scale == 1.0  # the same start
        our_iteration(X, y, prepared)  # warm
        ours = [our_iteration(X, y, prepared) for _ in range(REPEATS)]
        times, path = peer_iterations(prepared, limit)
        ours += [our_iteration(X, y, prepared) for _ in range(REPEATS)]
        case = {
            "n_features": n_features,
            "dfs_seconds": statistics.median(seconds for seconds, _ in ours),
            "peer_seconds": statistics.median(times),
            "objectives_differ": float(np.max(np.abs(np.array(path) / ours[0][1][:limit] - 1))),
            "wanted": wanted,
        }
        case["ratio"] = case["peer_seconds"] / case["dfs_seconds"]
        found.append(case)
        print(
            f"d={n_features}: an iteration {1e3 * case['dfs_seconds']:.2f} ms, scipy.linalg.eigh"
            f" {1e3 * case['peer_seconds']:.0f} ms, ratio {case['ratio']:.0f} (at least {wanted});"
            f" the same objectives to {case['objectives_differ']:.0e}",
            flush=True,
        )
    result = {"n_samples": N_SAMPLES, "n_classes": N_CLASSES, "gamma": GAMMA, "iteration": found}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
