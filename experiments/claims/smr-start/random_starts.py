"""SMR's default start beside random ones, by the objective that each ends at, on kinds of data
unlike each other.

Run: RAYSEL_DATA=<folder> python experiments/claims/smr-start/random_starts.py [number of random
starts]
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from raysel import SMR
from raysel.data.synthetic import make_tensor_classification

TOP = 50


def read(name, n_classes, per_class):
    """Some samples of each of the first classes, in [0, 1]."""
    with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
        X, y = file["X"], file["y"]
    rng = np.random.default_rng(0)
    of_each = [rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)]
    chosen = np.concatenate(of_each[:n_classes])
    X = X[chosen].astype(float)
    return (X - X.min()) / np.ptp(X), y[chosen]


def shifted():
    """60 samples of 6 x 5 x 4, in whose corner the classes differ."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 6, 5, 4))
    X[:, :3, :2, :2] += 0.5 * y[:, None, None, None]
    return X, y


def data_sets():
    """Name, X, y, and the ranks that are tried."""
    yield "USPS, many samples", *read("USPS", 10, 40), (2, 4)
    yield "UMIST, few", *read("UMIST", 20, 4), (2, 4)
    blocks, _ = make_tensor_classification(n_per_class=15, random_state=0)
    yield "blocks, order 3", blocks.X.reshape(-1, 8, 8, 6), blocks.y, (2, 4)
    yield "shifted, order 3", *shifted(), (3,)
    X, y = read("LSP_sift_128x85", 8, 10)
    yield "scenes, 21 columns, few", X[:, :, :21], y, (4, 8)
    yield "ORL, few", *read("ORL", 20, 5), (2, 4)


def compared(X, y, rank, n_random):
    """Ends of the random starts relative to the default's, best features shared with the best,
    CPU times.
    """
    flat = X.reshape(len(X), -1)
    before = time.thread_time()
    model = SMR(X.shape[1:], 0.1, rank, max_iter=30).fit(flat, y)
    own, reached = time.thread_time() - before, model.objective_path_[-1]
    others, other = [], model
    before = time.thread_time()
    for _ in range(n_random):
        other = other.another_start().fit(flat, y)
        others.append(other)
    cost = (time.thread_time() - before) / n_random / own
    excess = np.array([one.objective_path_[-1] for one in others]) / reached - 1
    best = others[int(excess.argmin())]
    shared = int(((best.ranking_ <= TOP) & (model.ranking_ <= TOP)).sum())
    return excess, shared, cost


def main(n_random=20):
    """Print a line a data set and rank."""
    warnings.simplefilter("ignore")  # fits end by max_iter
    print("| data | samples | rank | below | best | median | best of the first 3 | shared | CPU |")
    for name, X, y, ranks in data_sets():
        for rank in ranks:
            excess, shared, cost = compared(X, y, rank, n_random)
            size = " x ".join(map(str, X.shape))
            print(
                f"| {name} | {size} | {rank} | {(excess < 0).sum()} of {n_random} |"
                f" {excess.min():+.2%} | {np.median(excess):+.2%} | {excess[:3].min():+.2%} |"
                f" {shared} of {TOP} | {cost:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*map(int, sys.argv[1:]))
