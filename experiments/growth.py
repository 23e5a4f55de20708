"""CPU time and peak memory by the number of samples, each number in a process of its own."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.timing import cpu_seconds, draw_modalities, median_seconds, peak_mib, save

N_LABELS = 20

#: Named parts of the work that are timed: functions of the training samples, the indicator and the
#: test samples.
Parts = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, Callable[[], Any]]]


def time_fits(
    make: Callable[[], Any], sizes: Sequence[int], *, name: str = "", quick: int = 1500
) -> dict[str, Any]:
    """Print and return the figures of each size: medians of three fits up to the quick size."""
    rows: list[dict[str, Any]] = []
    for n in sizes:
        rows.append(_in_new_process(_time_fit, make, n, 3 if n <= quick else 1))
        print(name, rows[-1], flush=True)
    exponents = [
        round(_exponent(few["n"], few["fit_seconds"], more["n"], more["fit_seconds"]), 2)
        for few, more in itertools.pairwise(rows)
    ]
    print(name, "exponents of n", exponents, flush=True)
    return {"sizes": rows, "growth": exponents}


def time_parts(
    script: str,
    parts: Parts,
    *,
    sizes: Sequence[int],
    n_features: int,
    told: Callable[[int, int], float],
    once: int = 0,
) -> None:
    """Print and save the figures of every size, after the memory that is told before the start.

    Sizes from ``once`` on, if it is given, are run once, others three times.
    """
    print(f"{N_LABELS} labels, {n_features} features, one BLAS thread, CPU seconds", flush=True)
    rows: list[dict[str, float]] = []
    for n in sizes:
        expected = told(n, n_features)
        print(f"n = {n}: about {expected / 1e6:.0f} MB", end="", flush=True)
        repeats = 1 if 0 < once <= n else 3
        seconds, peak = _in_new_process(_time_parts, parts, n, n_features, repeats)
        print(f" | peak {peak / 1e6:.0f} MB", end="")
        for name, value in seconds.items():
            power = math.nan
            if rows and rows[-1][name] > 0:
                power = _exponent(rows[-1]["n"], rows[-1][name], n, value)
            print(f" | {name} {value:.3f} s, n^{power:.1f}", end="")
        print(flush=True)
        rows.append({"n": n, "told_bytes": expected, **seconds, "peak_bytes": peak})
    save(script, {"labels": N_LABELS, "features": n_features, "sizes": rows})


def _in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, so that the peak memory is that of one size."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_on_one_thread, (function, *arguments))


def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


def _exponent(few: float, before: float, more: float, after: float) -> float:
    """Exponent of n by which seconds grow between two numbers of samples."""
    return math.log(after / before) / math.log(more / few)


def _time_fit(make: Callable[[], Any], n: int, repeats: int) -> dict[str, Any]:
    """Time the preparation, which configurations share, and the fit; peak memory of the process."""
    X, y = draw_modalities(n)
    before = peak_mib()
    prepare, prepared = median_seconds(lambda: make().prepare(X, y), repeats)

    def fit() -> Any:
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


def _draw_labels(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal samples, and labels by noisy linear functions of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    values = X @ rng.standard_normal((d, N_LABELS)) / np.sqrt(d)
    values += 0.5 * rng.standard_normal((n, N_LABELS))
    return X, (values > 0.8).astype(np.int64)


def _time_parts(parts: Parts, n: int, d: int, repeats: int) -> tuple[dict[str, float], float]:
    """Time each part on four fifths of the samples; medians, and the peak's growth in bytes."""
    X, Y = _draw_labels(n, d)
    train = n * 4 // 5
    before = peak_mib()
    seconds: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, action in parts(X[:train], Y[:train], X[train:]).items():
            seconds.setdefault(name, []).append(cpu_seconds(action)[0])
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return medians, (peak_mib() - before) * 2**20
