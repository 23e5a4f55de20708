"""Whether a start of a lower objective selects better: SMR's default start beside the best of
several, on new samples.

Run: RAYSEL_DATA=<folder> python experiments/claims/smr-start/accuracy.py [number of draws]
"""

import os
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from raysel import SMR
from raysel.data.synthetic import make_tensor_classification

TOP, N_RANDOM = 50, 6


def read(name, n_classes, per_class, draw):
    """Training samples, `per_class` of each of some classes, and up to 40 others of each."""
    with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
        X, y = file["X"], file["y"]
    rng = np.random.default_rng(draw)
    classes = rng.permutation(np.unique(y))[:n_classes]
    members = [rng.permutation(np.flatnonzero(y == c)) for c in classes]
    train = np.concatenate([member[:per_class] for member in members])
    test = np.concatenate([member[per_class : per_class + 40] for member in members])
    low, high = float(X.min()), float(X.max())
    X_train, X_test = ((X[chosen] - low) / (high - low) for chosen in (train, test))
    return X_train, y[train], X_test, y[test]


def data_sets(draw):
    """Name, training and test samples with their labels, and the ranks that are tried."""
    yield "USPS", read("USPS", 10, 10, draw), (2, 4)
    yield "UMIST", read("UMIST", 15, 5, draw), (2, 4)
    yield "ORL", read("ORL", 20, 5, draw), (2, 4)
    X, y, X_test, y_test = read("LSP_sift_128x85", 8, 10, draw)
    yield "scenes, 21 columns", (X[:, :, :21], y, X_test[:, :, :21], y_test), (2, 6)
    blocks, _ = make_tensor_classification(n_per_class=40, random_state=draw)
    X, y = blocks.X.reshape(-1, 8, 8, 6), blocks.y
    train = np.random.default_rng(draw).permutation(len(X)) < 45
    yield "blocks, order 3", (X[train], y[train], X[~train], y[~train]), (2, 4)


def judged(model, X, y, X_test, y_test):
    """Accuracy of the model itself, and of 1-NN on its best cells."""
    top = np.flatnonzero(model.ranking_ <= TOP)
    neighbour = KNeighborsClassifier(1).fit(X[:, top], y)
    return model.score(X_test, y_test), neighbour.score(X_test[:, top], y_test)


def compared(data, rank, alpha):
    """Of the start of the lowest objective less the default: relative objective, two accuracies;
    and a correlation.

    The correlation is over the starts, of their objectives and the accuracy of 1-NN.
    """
    X, y, X_test, y_test = data
    shape, flat, flat_test = X.shape[1:], X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    models = [SMR(shape, alpha, rank, max_iter=40).fit(flat, y)]
    for _ in range(N_RANDOM):
        models.append(models[-1].another_start().fit(flat, y))
    J = np.array([model.objective_path_[-1] for model in models])
    scores = np.array([judged(model, flat, y, flat_test, y_test) for model in models])
    best = J.argmin()
    differ = np.ptp(J) > 0 and np.ptp(scores[:, 1]) > 0
    correlation = np.corrcoef(J, scores[:, 1])[0, 1] if differ else np.nan
    return J[best] / J[0] - 1, *(scores[best] - scores[0]), correlation


def main(n_draws=4):
    """Print a line a data set: means over draws, ranks and alphas, with standard errors over the
    draws.
    """
    warnings.simplefilter("ignore")  # fits end by max_iter
    rows = {}
    for draw in range(n_draws):
        for name, data, ranks in data_sets(draw):
            found = [compared(data, *setting) for setting in product(ranks, (0.1, 0.02))]
            rows.setdefault(name, []).append(np.nanmean(found, axis=0))
    print("| data | objective | accuracy of SMR | of 1-NN on the top 50 | correlation |")
    for name, found in rows.items():
        J, own, neighbour, correlation = np.mean(found, axis=0)
        _, own_error, error, _ = np.std(found, axis=0, ddof=1) / np.sqrt(n_draws)
        print(
            f"| {name} | {J:+.1%} | {own:+.3f} ({own_error:.3f}) | {neighbour:+.3f} ({error:.3f}) "
            f"| {correlation:+.2f} |"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*map(int, sys.argv[1:]))
