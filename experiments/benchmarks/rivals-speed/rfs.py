"""RFS against scikit-feature's program: CPU time of an iteration, and of a whole fit."""

import time
from itertools import islice

import numpy as np
import skfeature.function.sparse_learning_based.RFS as peer  # noqa: N811 - a module
from threadpoolctl import threadpool_limits

from experiments.timing import (
    Iterations,
    cpu_seconds,
    draw_classes,
    load_orl_half,
    median_seconds,
    save,
)
from raysel.baselines.rfs import RFS, l21_steps

N_SAMPLES, N_CLASSES, ALPHA = 200, 40, 1.0
ITERATIONS, REPEATS = 30, 5
#: Features, the peer's iterations that are timed, ratio to reach.
CASES = [(1024, 15, 60), (4096, 3, 500)]
FIT_FEATURES, FIT_RATIO = 1024, 100


class EnoughError(Exception):
    """Ends the peer after some iterations."""


def samples(n_features):
    """Normal samples of equally large classes, mostly within [0, 1]."""
    X, y = draw_classes(N_SAMPLES, n_features, N_CLASSES)
    return 0.5 + X / 8.0, y


def peer_iterations(X, y, limit=None):
    """CPU seconds of the peer's iterations up to a limit, and coefficients if it ended itself."""
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


def our_iteration(given):
    """CPU seconds of one of our iterations, with the fitted attributes, and the objectives."""
    rfs = RFS(ALPHA, "absolute", max_iter=ITERATIONS, tol=0.0)
    prepared = rfs.prepare(*given)
    seconds, path = cpu_seconds(lambda: list(rfs.iterate(*given, prepared)))
    return seconds / ITERATIONS, path


def objective(X, T, W):
    """The peer's objective."""
    return np.linalg.norm(X @ W - T, axis=1).sum() + ALPHA * np.linalg.norm(W, axis=1).sum()


def mirrored(X, T):
    """Samples with their mirror images: the best intercept is 0, the loss twice the peer's."""
    return np.vstack([X, -X]), np.vstack([T, -T])


def steps_to(steps, target):
    """Number of iterations until J is at most a target."""
    return next(number for number, step in enumerate(steps, start=1) if target >= step.J)


def median_fit(fit):
    """Median CPU seconds of a fit, and the number of iterations that it returns."""
    seconds, iterations = median_seconds(fit, REPEATS)
    return {"seconds": seconds, "iterations": iterations}


def whole_fit(X, y):
    """The peer's fit, and ours to the same objective, to the same gap, and of the same problem.

    The peer has targets 1 and -1, which make the objective twice as large, and no intercept, which
    makes its optimum larger. So its objective is reached early by a problem with an intercept;
    "gap" is the fair comparison.
    """
    T = 2.0 * np.eye(N_CLASSES)[y] - 1.0
    seconds, (iterations, W) = cpu_seconds(lambda: peer_iterations(X, y))
    reached = objective(X, T, W)
    *_, best = islice(l21_steps(*mirrored(X, T), 2 * ALPHA), 2000)
    gap = 2 * reached / best.J - 1
    *_, optimum = RFS(ALPHA, "absolute", max_iter=2000, tol=0.0).iterate(X, y)

    def fit_to(target):
        estimator = RFS(ALPHA, "absolute", max_iter=2000, tol=0.0)
        return next(
            number for number, J in enumerate(estimator.iterate(X, y), start=1) if target >= J
        )

    ours = {
        "objective": median_fit(lambda: fit_to(reached / 2)),
        "gap": median_fit(lambda: fit_to(optimum * (1 + gap))),
        "mirrored": median_fit(
            lambda: steps_to(l21_steps(*mirrored(X, T), 2 * ALPHA), 2 * reached)
        ),
    }
    for run in ours.values():
        run["ratio"] = seconds / run["seconds"]
    return {
        "peer_seconds": seconds,
        "peer_iterations": len(iterations),
        "peer_gap": gap,
        "wanted": FIT_RATIO,
        **ours,
    }


def main():
    """Print one line a case and write all figures beside this file."""
    both = Iterations(
        method="rfs",
        peer="scikit-feature",
        problem=samples,
        ours=our_iteration,
        theirs=lambda given, limit: (peer_iterations(*given, limit)[0][1:], ()),
        difference=lambda *_: {},  # the peer records no objective
    )
    found, fits = list(both.compare(CASES, REPEATS)), {}
    for name, (X, y) in {"random": samples(FIT_FEATURES), "ORL": load_orl_half()}.items():
        fit = fits[name] = whole_fit(X, y)
        print(
            f"whole fit, {name}, d={X.shape[1]}: scikit-feature {fit['peer_seconds']:.1f} s,"
            f" {fit['peer_iterations']} iterations, {fit['peer_gap']:.1e} above its optimum",
            *(
                f"{what}: {run['seconds']:.3f} s, {run['iterations']} iterations, ratio"
                f" {run['ratio']:.0f}"
                for what, run in {
                    f"RFS to the same objective (at least {FIT_RATIO})": fit["objective"],
                    f"RFS to the same distance from its own optimum (at least {FIT_RATIO})": fit[
                        "gap"
                    ],
                    "the peer's very problem by 400 mirrored samples": fit["mirrored"],
                }.items()
            ),
            sep="\n  ",
            flush=True,
        )
    settings = {"n_samples": N_SAMPLES, "n_classes": N_CLASSES, "alpha": ALPHA}
    save(__file__, {**settings, "iteration": found, "fit": fits})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
