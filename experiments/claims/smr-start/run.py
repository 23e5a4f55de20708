"""SMR's starts compared by the objective they end at.

Run: python experiments/claims/smr-start/run.py [draw] [iterations] [matrices | arrays]
"""

import csv
import os
import sys
import time
from itertools import islice, product, repeat
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from raysel.data.synthetic import make_tensor_classification
from raysel.numerics.least_squares import ls21_steps
from raysel.numerics.reweighting import Penalty, l2p_weights
from raysel.numerics.tensor_factors import largest_rank, leading_factors, tensor_samples
from raysel.solvers.smr.smr import SMR
from raysel.solvers.smr.updates import iterations, objective

EXPONENTS, ALPHAS, RANKS = (0.25, 0.5, 0.75, 1.0), (0.003, 0.01, 0.05, 0.2), (1, 2, 4)
HERE = Path(__file__).parent
COLUMNS = [
    "data",
    "p",
    "alpha",
    "rank",
    "ls21",
    "identity",
    "random",
    "multistart",
    "ratio",
    "cost",
]


def matrices():
    """X in [0, 1] and y by name, and how many samples of a class are taken."""
    X, y = load_digits(return_X_y=True)
    sets = {"digits": (X.reshape(-1, 8, 8) / 16, y, 20)}
    for name in ("USPS", "UMIST", "ORL"):
        with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
            X, y = file["X"].astype(float), file["y"]
        sets[name] = ((X - X.min()) / (X.max() - X.min()), y, 10)
    return sets


def arrays():
    """Likewise planted blocks of 8 x 8 x 6, and eight orientations at 32 x 32 places of eight
    outdoor classes.
    """
    blocks, _ = make_tensor_classification(n_per_class=30, random_state=0)
    with np.load(Path(os.environ["RAYSEL_DATA"]) / "LSP_sift_128x85.npz") as file:
        X, y = file["X"], file["y"]
    outdoor = y < 8
    # The last 64 patches are 8 x 8, of 4 x 4 cells with 8 orientations each.
    patches = X[outdoor][:, :, 21:].reshape(-1, 4, 4, 8, 8, 8).transpose(0, 4, 1, 5, 2, 3)
    return {
        "blocks": (blocks.X.reshape(-1, 8, 8, 6), blocks.y, 15),
        "orientations": (patches.reshape(-1, 32, 32, 8) / 255, y[outdoor], 10),
    }


def data_sets(draw, kind):
    """Name, X, y and shape: at most 10 classes of 10 samples each, 20 of the digits, 15 of the
    blocks.

    Draw 0 takes the first classes and samples, any other draws at random from the samples left
    over, and from the classes left over where there are enough.
    """
    for name, (X, y, per_class) in {"matrices": matrices, "arrays": arrays}[kind]().items():
        classes, skipped = np.unique(y), 0
        rng = np.random.default_rng(draw)
        if draw:
            left_over = classes[10:]
            if len(left_over) < 10:
                left_over, skipped = classes, per_class
            classes = rng.permutation(left_over)
        members = [np.flatnonzero(y == label)[skipped:] for label in np.sort(classes[:10])]
        if draw:
            members = [rng.permutation(member) for member in members]
        chosen = np.concatenate([member[:per_class] for member in members])
        yield name, X[chosen].reshape(len(chosen), -1), y[chosen], X.shape[1:]


def former_start(data, shape, rank, penalty):
    """Coefficients after each iteration from the former default: 8 LS21 steps at the penalty,
    then the rank is cut.
    """
    c = len(data.Y)
    fitted = ((data.XY @ data.X) ** 2).sum()
    first = l2p_weights(
        (((data.XY**2).sum() / fitted * data.XY) ** 2).sum(axis=0), penalty.p, penalty.zeta
    )
    steps = ls21_steps(data, first, repeat(penalty))
    if rank >= largest_rank(shape):
        return steps
    P = next(islice(steps, 7, None)).reshape(c, *shape)
    D = l2p_weights((P**2).sum(axis=0), penalty.p, penalty.zeta)
    return iterations(tensor_samples(data, shape), leading_factors(P, rank), D, repeat(penalty))


def followed(objectives, n_iterations):
    """The objective after so many iterations, or the last where there are fewer, and the CPU
    seconds they took.
    """
    started = time.thread_time()
    *_, last = islice(objectives, n_iterations)
    return last, time.thread_time() - started


def compared(draw, n_iterations, kind):
    """One row a data set, p, alpha and rank."""
    for name, X, y, shape in data_sets(draw, kind):
        prepared = SMR(shape).prepare(X, y)
        ranks = (*RANKS, 8) if name == "digits" else RANKS  # 8: no bound
        for p, alpha, rank in product(EXPONENTS, ALPHAS, ranks):
            smr = SMR(shape, alpha, rank, p, max_iter=n_iterations, tol=0, random_state=draw)
            penalty = Penalty(
                alpha * prepared.penalty_unit(p), p, smr.zeta * prepared.coefficient_unit() ** 2
            )
            steps = former_start(prepared, shape, rank, penalty)
            former = followed((objective(P, prepared, *penalty) for P in steps), n_iterations)
            ours = [
                clone(smr).set_params(init=init) for init in ("identity", "random", "multistart")
            ]
            found = [former, *(followed(one.iterate(X, y, prepared), n_iterations) for one in ours)]
            J, seconds = np.transpose(found)
            yield [name, p, alpha, rank, *J, J[-1] / J[:-1].min(), seconds[-1] / seconds[0]]


def summary(rows):
    """Print one line a data set and p: how often and how far above the best of the others, and
    the cost.
    """
    for name, p in dict.fromkeys((row[0], row[1]) for row in rows):
        ratios, costs = np.array([row[-2:] for row in rows if (row[0], row[1]) == (name, p)]).T
        others = np.array([row[4:7] for row in rows if (row[0], row[1]) == (name, p)])
        worst = (others / others.min(axis=1, keepdims=True)).max(axis=0)
        print(
            f"| {name} | {p} | {' | '.join(f'{w:.2f}' for w in worst)} | {ratios.max():.3f} |"
            f" {ratios.mean():.3f} | {(ratios > 1.02).sum()} of {len(ratios)} |"
            f" {np.median(costs):.1f} |"
        )
    for title, chosen in (
        ("p < 1", [row for row in rows if row[1] < 1]),
        ("p = 1", [row for row in rows if row[1] == 1]),
    ):
        others = np.array([row[4:7] for row in chosen])
        misses = (others > 1.02 * others.min(axis=1, keepdims=True)).sum(axis=0)
        ratios, costs = np.array([row[-2:] for row in chosen]).T
        print(
            f"{title}: above 1.02 in {(ratios > 1.02).sum()} of {len(ratios)} (ls21, identity,"
            f" random: {misses}), largest {ratios.max():.3f}, mean {ratios.mean():.3f}; CPU time"
            f" {np.median(costs):.2f} in the median, {costs.max():.1f} at most"
        )


def main(draw, n_iterations, kind):
    """Write the rows and print their summary."""
    rows = list(compared(draw, n_iterations, kind))
    of_kind = "" if kind == "matrices" else f"-{kind}"
    with (HERE / f"objectives-{draw}-{n_iterations}{of_kind}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*row[:4], *(f"{value:.6g}" for value in row[4:])] for row in rows)
    summary(rows)


if __name__ == "__main__":
    draw, n_iterations, kind = (*sys.argv[1:], *("0", "50", "matrices")[len(sys.argv) - 1 :])
    with threadpool_limits(1):
        main(int(draw), int(n_iterations), kind)
