"""SMR's starts compared by the objective they end at. Run: python experiments/smr-start/run.py [iterations]"""

import csv
import os
import sys
import time
from itertools import islice, product, repeat
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from raysel.linalg.least_squares import ls21_steps
from raysel.linalg.reweighting import Penalty, l2p_weights
from raysel.solvers.smr import SMR
from raysel.solvers.smr_start import iterations
from raysel.solvers.smr_steps import objective

EXPONENTS, ALPHAS, RANKS = (0.25, 0.5, 0.75, 1.0), (0.003, 0.01, 0.05, 0.2), (1, 2, 4)
HERE = Path(__file__).parent
COLUMNS = ["data", "p", "alpha", "rank", "ls21", "identity", "random", "multistart", "ratio", "cost"]


def data_sets():
    """Name, X in [0, 1], y and shape: 10 classes of 10 samples each, 20 of the digits."""
    X, y = load_digits(return_X_y=True)
    sets = {"digits": (X.reshape(-1, 8, 8) / 16, y, 20)}
    for name in ("USPS", "UMIST", "ORL"):
        with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
            X, y = file["X"].astype(float), file["y"]
        sets[name] = ((X - X.min()) / (X.max() - X.min()), y, 10)
    for name, (X, y, per_class) in sets.items():
        chosen = np.concatenate([np.flatnonzero(y == label)[:per_class] for label in np.unique(y)[:10]])
        yield name, X[chosen].reshape(len(chosen), -1), y[chosen], X.shape[1:]


def former_start(data, shape, rank, penalty):
    """Coefficients after each iteration from the former default: 8 LS21 steps at the penalty, then the rank is cut."""
    c = len(data.Y)
    fitted = ((data.XY @ data.X) ** 2).sum()
    first = l2p_weights((((data.XY**2).sum() / fitted * data.XY) ** 2).sum(axis=0), penalty.p, penalty.zeta)
    steps = ls21_steps(data, first, repeat(penalty))
    if rank >= min(shape):
        return steps
    P = next(islice(steps, 7, None)).reshape(c, *shape)
    V = np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)
    return iterations(data, V, l2p_weights((P**2).sum(axis=0), penalty.p, penalty.zeta), repeat(penalty))


def last_objective(X, y, prepared, n_iterations, **parameters):
    """The objective after so many iterations, and the CPU seconds they took."""
    smr = SMR(**parameters, tol=0, max_iter=n_iterations)
    started = time.thread_time()
    for _ in smr.iterate(X, y, prepared):
        pass
    return smr.objective_path_[-1], time.thread_time() - started


def compared(n_iterations):
    """One row a data set, p, alpha and rank."""
    for name, X, y, shape in data_sets():
        prepared = SMR(shape).prepare(X, y)
        ranks = (*RANKS, 8) if name == "digits" else RANKS  # 8: no bound
        for p, alpha, rank in product(EXPONENTS, ALPHAS, ranks):
            penalty = Penalty(alpha * prepared.penalty_unit(p), p, SMR().zeta * prepared.coefficient_unit() ** 2)
            started = time.thread_time()
            *_, P = islice(former_start(prepared, shape, rank, penalty), n_iterations)
            former, former_seconds = objective(P, prepared, *penalty), time.thread_time() - started
            settings = {"shape": shape, "alpha": alpha, "rank": rank, "p": p}
            one = [
                last_objective(X, y, prepared, n_iterations, **settings, init=init, random_state=0)
                for init in ("identity", "random", "multistart")
            ]
            (identity, _), (random, _), (multistart, seconds) = one
            best = min(former, identity, random)
            yield [
                name,
                p,
                alpha,
                rank,
                former,
                identity,
                random,
                multistart,
                multistart / best,
                seconds / former_seconds,
            ]


def summary(rows):
    """Print one line a data set and p: how often and how far above the best of the others, and the cost."""
    for name, p in dict.fromkeys((row[0], row[1]) for row in rows):
        ratios, costs = np.array([row[-2:] for row in rows if (row[0], row[1]) == (name, p)]).T
        others = np.array([row[4:7] for row in rows if (row[0], row[1]) == (name, p)])
        worst = (others / others.min(axis=1, keepdims=True)).max(axis=0)
        print(
            f"| {name} | {p} | {' | '.join(f'{w:.2f}' for w in worst)} | {ratios.max():.3f} | {ratios.mean():.3f}"
            f" | {(ratios > 1.02).sum()} of {len(ratios)} | {np.median(costs):.1f} |"
        )


def main(n_iterations):
    """Write the rows and print their summary."""
    rows = list(compared(n_iterations))
    with (HERE / f"objectives-{n_iterations}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*row[:4], *(f"{value:.6g}" for value in row[4:])] for row in rows)
    summary(rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
