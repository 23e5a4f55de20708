"""RFS against scikit-feature's program: CPU time of an iteration, and of a whole fit to the same objective."""

import json
import statistics
import time
from itertools import islice
from pathlib import Path

import numpy as np
import skfeature.function.sparse_learning_based.RFS as peer  # noqa: N811 - a module
from threadpoolctl import threadpool_limits

from raysel.baselines.embedded.l21_regression import l21_steps
from raysel.baselines.embedded.rfs import RFS

N_SAMPLES, N_CLASSES, ALPHA = 200, 40, 1.0
ITERATIONS, REPEATS = 30, 5
#: Features, the peer's iterations that are timed, ratio to reach.
CASES = [(1024, 15, 60), (4096, 3, 500)]
FIT_FEATURES, FIT_RATIO = 1024, 100


class EnoughError(Exception):
    """Ends the peer after some iterations."""


def samples(n_features, seed=0):
    """Normal samples around a mean of each class, all classes equally large."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % N_CLASSES
    X = rng.standard_normal((N_CLASSES, n_features))[y] + rng.standard_normal((N_SAMPLES, n_features))
    return 0.5 + X / 8.0, y


def cpu_seconds(action):
    """CPU seconds of one call, and what it returned."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def peer_iterations(X, y, limit=None):
    """CPU seconds of each of the peer's iterations up to a limit, and its coefficients if it ended by itself."""
    norm, times = peer.calculate_l21_norm, [time.process_time()]

    def timed(matrix):
        # Called twice for the objective at the end of each iteration, for the loss first.
        if len(matrix) == X.shape[1]:
            times.append(time.process_time())
            if limit is not None and len(times) > limit:
                raise EnoughError
        return norm(matrix)

    peer.calculate_l21_norm = timed
    W = None
    try:
        W = peer.rfs(X, y, mode="raw", gamma=ALPHA)
    except EnoughError:
        pass
    finally:
        peer.calculate_l21_norm = norm
    return np.diff(times), W


def our_iteration(X, y):
    """CPU seconds of one of our iterations, with the fitted attributes set after each."""
    rfs = RFS(ALPHA, "absolute", max_iter=ITERATIONS, tol=0.0)
    prepared = rfs.prepare(X, y)
    return cpu_seconds(lambda: list(rfs.iterate(X, y, prepared)))[0] / ITERATIONS


def objective(X, T, W):
    """The peer's objective."""
    return np.linalg.norm(X @ W - T, axis=1).sum() + ALPHA * np.linalg.norm(W, axis=1).sum()


def mirrored(X, T):
    """Samples with their mirror images: the best intercept is 0, the loss twice that of the peer's problem."""
    return np.vstack([X, -X]), np.vstack([T, -T])


def steps_to(steps, target):
    """Number of iterations until J is at most a target."""
    return next(number for number, step in enumerate(steps, start=1) if target >= step.J)


def whole_fit():
    """The peer's fit, and ours of the same problem and of the problem with an intercept, each as near its optimum."""
    X, y = samples(FIT_FEATURES)
    T = 2.0 * np.eye(N_CLASSES)[y] - 1.0
    seconds, (iterations, W) = cpu_seconds(lambda: peer_iterations(X, y))
    reached = objective(X, T, W)
    double = mirrored(X, T)
    *_, best = islice(l21_steps(*double, 2 * ALPHA), 2000)
    gap = 2 * reached / best.J - 1
    same = [cpu_seconds(lambda: steps_to(l21_steps(*mirrored(X, T), 2 * ALPHA), 2 * reached)) for _ in range(REPEATS)]

    rfs = RFS(ALPHA, "absolute", max_iter=2000, tol=0.0)
    *_, optimum = rfs.iterate(X, y)
    target = optimum * (1 + gap)

    def fit():
        estimator = RFS(ALPHA, "absolute", max_iter=2000, tol=0.0)
        return next(number for number, J in enumerate(estimator.iterate(X, y), start=1) if target >= J)

    ours = [cpu_seconds(fit) for _ in range(REPEATS)]
    same_seconds, our_seconds = (statistics.median(run[0] for run in runs) for runs in (same, ours))
    return {
        "n_features": FIT_FEATURES,
        "peer_seconds": seconds,
        "peer_iterations": len(iterations),
        "peer_gap": gap,
        "rfs_seconds": our_seconds,
        "rfs_iterations": ours[0][1],
        "ratio": seconds / our_seconds,
        "mirrored_seconds": same_seconds,
        "mirrored_iterations": same[0][1],
        "mirrored_ratio": seconds / same_seconds,
        "wanted": FIT_RATIO,
    }


def main():
    """Print one line a case and write all figures beside this file."""
    found = []
    for n_features, limit, wanted in CASES:
        X, y = samples(n_features)
        our_iteration(X, y)  # warm
        ours = [our_iteration(X, y) for _ in range(REPEATS)]
        theirs = peer_iterations(X, y, limit)[0]
        ours += [our_iteration(X, y) for _ in range(REPEATS)]
        case = {
            "n_features": n_features,
            "rfs_seconds": statistics.median(ours),
            "peer_seconds": statistics.median(theirs[1:]),
            "wanted": wanted,
        }
        case["ratio"] = case["peer_seconds"] / case["rfs_seconds"]
        found.append(case)
        print(
            f"d={n_features}: an iteration {1e3 * case['rfs_seconds']:.2f} ms, scikit-feature "
            f"{1e3 * case['peer_seconds']:.0f} ms, ratio {case['ratio']:.0f} (at least {wanted})",
            flush=True,
        )
    fit = whole_fit()
    print(
        f"d={FIT_FEATURES}, whole fit: scikit-feature {fit['peer_seconds']:.1f} s, {fit['peer_iterations']} iterations,"
        f" {fit['peer_gap']:.1e} above its optimum | RFS {fit['rfs_seconds']:.3f} s, {fit['rfs_iterations']} iterations"
        f" to the same gap, ratio {fit['ratio']:.0f} (at least {FIT_RATIO}) | its very problem, by mirrored samples, "
        f"{fit['mirrored_seconds']:.3f} s, {fit['mirrored_iterations']} iterations, ratio {fit['mirrored_ratio']:.0f}"
    )
    result = {"n_samples": N_SAMPLES, "n_classes": N_CLASSES, "alpha": ALPHA, "iteration": found, "fit": fit}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
