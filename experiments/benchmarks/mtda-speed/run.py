"""CPU time of MTDA against the D x D forms, and its growth with D.

Run: python experiments/benchmarks/mtda-speed/run.py
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import newton_dense
import newton_range
import numpy as np
import printed_dense
import raysel_mtda
from threadpoolctl import threadpool_limits

N_CLASSES, N_TASKS, REPEATS = 10, 2, 9

# Samples, features, and the iterations that Newton's method needs from the ratio 0 to 1e-8.
SIZES = ((80, 256, 6), (80, 512, 6), (80, 1024, 6), (1200, 256, 8), (1200, 512, 8), (1200, 1024, 8))


def make_tasks(n_samples, n_features, seed=0):
    """Gaussian classes: every one of the m tasks has n samples of c classes in its own D
    features.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % N_CLASSES
    shape = (n_samples, n_features)
    return [
        (rng.standard_normal((N_CLASSES, n_features))[y] + 3 * rng.standard_normal(shape), y)
        for _ in range(N_TASKS)
    ]


def cpu_seconds(peer, tasks, iterations=0, repeats=REPEATS):
    """The least CPU time, which other work disturbs least, and the ratio reached."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        ratio = peer.run(tasks, N_CLASSES - 1, iterations)
        times.append(time.process_time() - start)
    return min(times), float(ratio)


def main() -> None:
    """Print the two tables and write figures.json beside this file."""
    cpu_seconds(raysel_mtda, make_tasks(80, 64))  # imports and caches
    rows, growth = [], []
    print(f"c = {N_CLASSES}, {N_TASKS} tasks, one BLAS thread, CPU seconds")
    print(
        "in brackets: times raysel's, and for the printed form also times that of Newton's method"
        " in the range"
    )
    print(
        f"{'n':>6} {'D':>6} {'raysel':>9} {'in range':>9} {'printed':>9} {'':>15}"
        f" {'newton D x D':>13}"
    )
    for n_samples, n_features, iterations in SIZES:
        tasks = make_tasks(n_samples, n_features)
        own, reached = cpu_seconds(raysel_mtda, tasks)
        stepwise, alike = cpu_seconds(newton_range, tasks, iterations)
        printed, _ = cpu_seconds(printed_dense, tasks, iterations, 3)
        newton, same = cpu_seconds(newton_dense, tasks, iterations, 3)
        if max(abs(same - reached), abs(alike - reached)) > 1e-8:
            sys.exit(
                f"D = {n_features}: raysel reached {reached}, Newton in the range {alike}, dense"
                f" {same}"
            )
        rows.append(
            {
                "n": n_samples,
                "D": n_features,
                "raysel": own,
                "newton_range": stepwise,
                "printed": printed,
                "newton_dense": newton,
            }
        )  # fmt: skip
        print(
            f"{n_samples:6} {n_features:6} {own:9.4f} {stepwise:9.4f} {printed:9.3f}"
            f" {f'({printed / own:.0f}x, {printed / stepwise:.0f}x)':>15} {newton:13.3f}"
            f" ({newton / own:.1f}x)"
        )
    print(f"\n{'D':>6} {'raysel':>9} {'us/feature':>11}   (n = 80)")
    for n_features in (1000, 2000, 4000, 8000, 16000, 32000, 64000):
        own, _ = cpu_seconds(raysel_mtda, make_tasks(80, n_features))
        growth.append({"D": n_features, "raysel": own})
        print(f"{n_features:6} {own:9.4f} {1e6 * own / n_features:11.2f}")
    slope = np.polyfit(
        np.log([g["D"] for g in growth[-4:]]), np.log([g["raysel"] for g in growth[-4:]]), 1
    )[0]
    print(f"exponent of D from 8000 to 64000: {slope:.2f}")
    figures = {"against": rows, "growth": growth, "exponent": float(slope)}
    Path(__file__).with_name("figures.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
