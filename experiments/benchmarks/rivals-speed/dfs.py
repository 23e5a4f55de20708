"""DFS against SciPy's generalised eigenproblem in the features: CPU time of an iteration."""

import time

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from experiments.timing import Iterations, draw_classes, save
from raysel.baselines.dfs import DFS

N_SAMPLES, N_CLASSES, GAMMA, ZETA = 200, 40, 0.1, 1e-12
ITERATIONS, REPEATS = 30, 5
#: Features, iterations of the peer, ratio to reach.
CASES = [(1024, 5, 15), (4096, 2, 300)]


def problem(n_features):
    """Samples less than 1 from their means, labels and what DFS prepares."""
    X, y = draw_classes(N_SAMPLES, n_features, N_CLASSES)
    X = X / np.abs(X - X.mean(axis=0)).max() * 0.99
    prepared = DFS().prepare(X, y)
    assert prepared.scale == 1.0  # the same start
    return X, y, prepared


def our_iteration(given):
    """CPU seconds of one of our iterations, with the fitted attributes, and the objectives."""
    dfs = DFS(GAMMA, max_iter=ITERATIONS, tol=0.0)
    started = time.process_time()
    path = list(dfs.iterate(*given))
    return (time.process_time() - started) / len(path), path


def peer_iterations(given, n_iterations):
    """Leading eigenvectors of ``S_t w = mu (S_w + gamma D) w``: CPU seconds and objectives."""
    prepared = given[2]
    X, within = prepared.X, prepared.within(prepared.X)
    S_t, S_w = X.T @ X, within.T @ within
    d, m = X.shape[1], prepared.n_directions
    D, times, path = np.ones(d), [], []
    for _ in range(n_iterations):
        started = time.process_time()
        system, leading = S_w + GAMMA * np.diag(D), (d - m, d - 1)
        mu, vectors = eigh(S_t, system, subset_by_index=leading, check_finite=False)
        W = vectors / np.sqrt(mu)
        norms = np.sqrt((W**2).sum(axis=1) + ZETA)
        D = 0.5 / norms
        times.append(time.process_time() - started)
        path.append((W * (S_w @ W)).sum() + GAMMA * norms.sum())
    return times, path


def difference(ours, theirs):
    """How far the objectives differ at most."""
    ratios = np.array(theirs) / ours[: len(theirs)]
    return {"objectives_differ": float(np.max(np.abs(ratios - 1)))}


def main():
    """Print one line a case and write all figures beside this file."""
    both = Iterations(
        method="dfs",
        peer="scipy.linalg.eigh",
        problem=problem,
        ours=our_iteration,
        theirs=peer_iterations,
        difference=difference,
    )
    rows = list(both.compare(CASES, REPEATS))
    settings = {"n_samples": N_SAMPLES, "n_classes": N_CLASSES, "gamma": GAMMA}
    save(__file__, {**settings, "iteration": rows})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
