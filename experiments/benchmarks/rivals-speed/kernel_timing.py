"""What the timings of the kernel classifiers share: generated multimodal data, and fits in
processes of their own.
"""

import itertools
import json
import math
import multiprocessing
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

WIDTHS = {f"m{k}": width for k, width in enumerate((20, 40, 60, 80, 100, 120))}
N_CLASSES = 10


def draw(n, n_classes=N_CLASSES, seed=0):
    """Normal samples of six modalities around class means, which overlap; z-scores, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    means = 0.25 * rng.standard_normal((n_classes, sum(WIDTHS.values())))
    X = means[y] + rng.standard_normal((n, sum(WIDTHS.values())))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def cpu_seconds(action):
    """CPU seconds of one call, and what it returned."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def median_seconds(action, repeats):
    """Median CPU seconds of some calls, and what the last one returned."""
    runs = [cpu_seconds(action) for _ in range(repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def peak_mib():
    """Peak of the resident memory of this process in MiB, as Linux counts it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _time_fit(make, n, repeats):
    """Medians of one size: preparation, which configurations share, then the fit; the peak
    memory of the process.
    """
    X, y = draw(n)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = peak_mib()
        prepare, prepared = median_seconds(lambda: make().prepare(X, y), repeats)

        def fit():
            model = make()
            for _ in model.iterate(X, y, prepared):
                pass
            return model

        seconds, model = median_seconds(fit, repeats)
        peak = peak_mib()
    return {
        "n": n,
        "repeats": repeats,
        "prepare_seconds": round(prepare, 4),
        "fit_seconds": round(seconds, 4),
        "iterations": model.n_iter_,
        "gap": getattr(model, "dual_gap_", None),
        "peak_mib": round(peak),
        "peak_above_start_mib": round(peak - before),
    }


def time_fit(make, n, repeats):
    """`_time_fit` in a new process, so that the peak memory is that of this size alone."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_time_fit, (make, n, repeats))


def growth(rows):
    """Exponent of n by which the seconds of a fit grow between neighbouring sizes."""
    return [
        round(math.log(b["fit_seconds"] / a["fit_seconds"]) / math.log(b["n"] / a["n"]), 2)
        for a, b in itertools.pairwise(rows)
    ]


def save(script, figures):
    """Write the figures beside the script as JSON."""
    Path(script).with_suffix(".json").write_text(
        json.dumps(figures, indent=1) + "\n", encoding="utf-8"
    )
