"""CPU time and peak memory of multi-label methods for growing numbers of samples, each size in a
process of its own.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: Numbers of samples, of which four fifths are training samples.
SIZES = (750, 1500, 3000, 6000)
N_LABELS = 20

#: Named parts of the work that are timed: functions of the training samples, the indicator and the
#: test samples.
Parts = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, Callable[[], Any]]]


def samples(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal samples, and labels by noisy linear functions of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    values = X @ rng.standard_normal((d, N_LABELS)) / np.sqrt(d) + 0.5 * rng.standard_normal(
        (n, N_LABELS)
    )
    return X, (values > 0.8).astype(np.int64)


def one_size(parts: Parts, n: int, d: int, repeats: int) -> dict[str, float]:
    """Median CPU seconds of each part, and the growth of the resident memory's peak in bytes."""
    with threadpool_limits(1):
        X, Y = samples(n, d)
        train = n * 4 // 5
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        seconds: dict[str, list[float]] = {}
        for _ in range(repeats):
            for name, action in parts(X[:train], Y[:train], X[train:]).items():
                started = time.process_time()
                action()
                seconds.setdefault(name, []).append(time.process_time() - started)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return {
        **{name: statistics.median(values) for name, values in seconds.items()},
        "peak_bytes": peak,
    }


def grow(
    script: str, parts: Parts, d: int, told: Callable[[int, int], float], repeats: dict[int, int]
) -> None:
    """Print and write the figures of every size, after the memory that is told before the start."""
    print(f"{N_LABELS} labels, {d} features, one BLAS thread, CPU seconds", flush=True)
    rows: list[dict[str, float]] = []
    for n in SIZES:
        expected = told(n, d)
        print(f"n = {n}: about {expected / 1e6:.0f} MB", end="", flush=True)
        with multiprocessing.get_context("spawn").Pool(1) as process:
            row = process.apply(one_size, (parts, n, d, repeats.get(n, 3)))
        rows.append({"n": n, "told_bytes": expected, **row})
        print(f" | peak {row.pop('peak_bytes') / 1e6:.0f} MB", end="")
        for name, seconds in row.items():
            power = (
                math.log2(seconds / rows[-2][name])
                if len(rows) > 1 and rows[-2][name] > 0
                else math.nan
            )
            print(f" | {name} {seconds:.3f} s, n^{power:.1f}", end="")
        print(flush=True)
    target = Path(script).with_suffix(".json")
    target.write_text(
        json.dumps({"labels": N_LABELS, "features": d, "sizes": rows}, indent=1) + "\n"
    )
