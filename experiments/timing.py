"""What the benchmarks share: CPU time of calls, samples to time them on, and where figures go."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: Columns of the modalities of `draw_modalities`.
WIDTHS = {f"m{k}": width for k, width in enumerate((20, 40, 60, 80, 100, 120))}
N_CLASSES = 10


def cpu_seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of one call, and what it returned."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def median_seconds(action: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median CPU seconds of some calls, and what the last one returned."""
    runs = [cpu_seconds(action) for _ in range(repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def peak_mib() -> float:
    """Return the peak of the resident memory of this process in MiB, as Linux counts it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def load_orl_half() -> tuple[np.ndarray, np.ndarray]:
    """Load the first five images of each of ORL's 40 persons, in [0, 1], (200, 1024), and y."""
    with np.load(Path(os.environ["RAYSEL_DATA"]) / "ORL.npz") as file:
        X, y = file["X"].reshape(len(file["y"]), -1) / 255.0, file["y"]
    chosen = np.concatenate([np.flatnonzero(y == person)[:5] for person in np.unique(y)])
    return X[chosen], y[chosen]


def draw_classes(n_samples: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal samples around a mean of each class, all classes equally large, and y."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % n_classes
    means = rng.standard_normal((n_classes, n_features))
    return means[y] + rng.standard_normal((n_samples, n_features)), y


def draw_modalities(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal samples of six modalities around class means, which overlap; z-scores, and y."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % N_CLASSES)
    means = 0.25 * rng.standard_normal((N_CLASSES, sum(WIDTHS.values())))
    X = means[y] + rng.standard_normal((n, sum(WIDTHS.values())))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def save(script: str, figures: Any) -> None:
    """Write the figures beside a script as JSON."""
    text = json.dumps(figures, indent=2) + "\n"
    Path(script).with_suffix(".json").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Iterations:
    """An iteration of a method of raysel against one of its peer, on the same problem."""

    method: str
    peer: str
    #: Makes the problem of so many features.
    problem: Callable[[int], Any]
    #: CPU seconds of one of our iterations, and the objectives.
    ours: Callable[[Any], tuple[float, Sequence[float]]]
    #: CPU seconds of each of the peer's iterations up to a limit, and the objectives.
    theirs: Callable[[Any, int], tuple[Sequence[float], Sequence[float]]]
    #: What is compared of the two paths of objectives, as a name and a number.
    difference: Callable[[Sequence[float], Sequence[float]], dict[str, float]]

    def compare(self, cases: Sequence[tuple[int, int, float]], repeats: int) -> Iterator[Any]:
        """Print and yield a row a case: features, the peer's iterations, the wanted ratio."""
        for n_features, limit, wanted in cases:
            problem = self.problem(n_features)
            self.ours(problem)  # warm
            ours = [self.ours(problem) for _ in range(repeats)]
            times, path = self.theirs(problem, limit)
            ours += [self.ours(problem) for _ in range(repeats)]
            seconds = statistics.median(taken for taken, _ in ours)
            peer = statistics.median(times)
            found = self.difference(ours[0][1], path)
            row = {"n_features": n_features, f"{self.method}_seconds": seconds}
            yield row | {"peer_seconds": peer, **found, "wanted": wanted, "ratio": peer / seconds}
            print(
                f"d={n_features}: an iteration {1e3 * seconds:.2f} ms, {self.peer}"
                f" {1e3 * peer:.0f} ms, ratio {peer / seconds:.0f} (at least {wanted})",
                *(f"{name.replace('_', ' ')}: {value:.0e}" for name, value in found.items()),
                sep="; ",
                flush=True,
            )
