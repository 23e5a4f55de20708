"""What a further start would be worth: rules that compare starts after some iterations, against the
best of 10 random ones.

Run: RAYSEL_DATA=<folder> python experiments/claims/smr-start/glances.py
"""

import warnings
from itertools import islice, repeat

import numpy as np
from accuracy import data_sets as other_sets
from random_starts import data_sets
from threadpoolctl import threadpool_limits

from raysel import SMR
from raysel.numerics.least_squares import ls21_steps
from raysel.numerics.reweighting import Penalty, l2p_weights
from raysel.numerics.tensor_factors import leading_factors, tensor_samples
from raysel.solvers.smr.updates import accelerated_steps, continuation, unit_weight

N_ITERATIONS, N_RANDOM, N_LS21 = 30, 10, 8
#: Of each rule the starts that follow the first, and after how many iterations the lowest objective
#: is taken.
RULES = {
    "the first start alone": ((), 1),
    "a random start alone": (("random",), 0),
    "the second start, after 10": (("ridge",), 10),
    "a random start, after 10": (("random",), 10),
    "both, after 10": (("ridge", "random"), 10),
    "the second start, after 20": (("ridge",), 20),
    "a random start, after 20": (("random",), 20),
    "both, after 20": (("ridge", "random"), 20),
    "both, at the end": (("ridge", "random"), N_ITERATIONS),
}


def settings():
    """Samples, labels, rank and alpha."""
    for _, X, y, ranks in data_sets():
        yield from ((X, y, rank, alpha) for rank in ranks for alpha in (0.1, 0.02))
    for draw in range(2):
        for _, (X, y, _, _), ranks in other_sets(draw):
            yield from ((X, y, rank, alpha) for rank in ranks for alpha in (0.1, 0.02))


def paths(X, y, rank, alpha):
    """Objectives after each iteration from the default's two starts for p = 1, and from random
    ones.
    """
    flat, shape = X.reshape(len(X), -1), X.shape[1:]
    data = SMR(shape).prepare(flat, y)
    penalty = Penalty(alpha * data.penalty_unit(1), 1.0, 1e-10 * data.coefficient_unit() ** 2)
    smooth = continuation(data, penalty)
    samples, weights = tensor_samples(data, shape), np.full(len(data.X), unit_weight(data, 1.0))
    unbounded = ls21_steps(data, weights, repeat(smooth[0]._replace(zeta=penalty.zeta)))
    ridge, *_, ls21 = (samples.cells(P) for P in islice(unbounded, N_LS21))
    sharp = l2p_weights((ls21**2).sum(axis=0), 1.0, penalty.zeta)
    flat_weights = samples.cells(weights)
    starts = {
        "first": (leading_factors(ls21, rank), sharp, []),
        "ridge": (leading_factors(ridge, rank), flat_weights, smooth),
    }
    for seed in range(N_RANDOM):
        rng = np.random.default_rng(seed)
        drawn = [rng.standard_normal((len(data.Y), side, rank)) for side in shape[1:]]
        starts[seed] = drawn, flat_weights, []
    ends = {}
    for name, (factors, D, before) in starts.items():
        penalties = [*before, *repeat(penalty, N_ITERATIONS)]
        steps = accelerated_steps(samples, factors, D, penalties)
        ends[name] = np.array([J for _, J in islice(steps, N_ITERATIONS)])
    return ends


def excesses(found, others, after):
    """How far above the best random end a rule ends, relative, by seed of its random start."""
    best = min(found[seed][-1] for seed in range(N_RANDOM))
    for seed in range(N_RANDOM):
        rivals = [seed if name == "random" else name for name in others]
        names = rivals if after == 0 else ["first", *rivals]
        chosen = min(names, key=lambda name: found[name][after - 1])
        yield found[chosen][-1] / best - 1


def main():
    """Print a line a rule."""
    warnings.simplefilter("ignore")
    all_paths = [paths(*setting) for setting in settings()]
    print(f"| of {len(all_paths)} settings | mean | above 1 % | largest | further iterations |")
    for rule, (others, after) in RULES.items():
        excess = np.array([list(excesses(found, others, after)) for found in all_paths])
        print(
            f"| {rule} | {excess.mean():+.2%} | {(excess > 0.01).mean():.0%} | {excess.max():+.0%} "
            f"| {len(others) * after} |"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
