"""LPBoost: CPU time of the cutting planes for shared weights, beside the whole linear program."""

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.timing import WIDTHS, cpu_seconds, draw_modalities, median_seconds, save
from raysel.baselines.lp_boost import LPBoost, shared_weights, solve_program

#: Samples, classes, nu.
CASES = [(600, 10, 0.5), (2400, 31, 0.1), (2400, 31, 0.5), (2400, 31, 0.9)]
WANTED = 10


def draw_scores(n, n_classes, seed=0):
    """Scores of six classifiers: 1 for a sample's class, else -1, with noise of different size."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    signs = np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
    noise = rng.standard_normal((6, n_classes, n)) * np.linspace(0.3, 1.0, 6)[:, None, None]
    return 0.5 * signs + noise, codes


def compare(n, n_classes, nu):
    """One case."""
    scores, codes = draw_scores(n, n_classes)
    cuts, (weights, margin) = median_seconds(lambda: shared_weights(scores, codes, nu), 9)
    whole, (full, value) = median_seconds(
        lambda: solve_program(scores, codes, nu, shared=True), 3 if n < 2400 else 1
    )
    by_class, _ = cpu_seconds(lambda: solve_program(scores, codes, nu))
    return {
        "n": n,
        "classes": n_classes,
        "nu": nu,
        "cutting_planes_seconds": round(cuts, 4),
        "whole_program_seconds": round(whole, 3),
        "ratio": round(whole / cuts, 1),
        "weights_of_each_class_seconds": round(by_class, 3),
        "difference_of_optima": float(f"{abs(value + margin):.1e}"),
        "largest_difference_of_weights": float(f"{np.abs(weights - full[:, 0]).max():.1e}"),
    }


def main():
    """Print one line a case, and write lp_boost.json."""
    rows = []
    for case in CASES:
        rows.append(compare(*case))
        print(rows[-1], flush=True)
        if case[0] >= 2400:
            print(f"at least {WANTED}: {'yes' if rows[-1]['ratio'] >= WANTED else 'NO'}")
    fits = []
    for n in (500, 1500, 3000, 6000):
        X, y = draw_modalities(n)
        seconds, _ = cpu_seconds(lambda X=X, y=y: LPBoost(WIDTHS, C=10.0, random_state=0).fit(X, y))
        fits.append({"n": n, "fit_seconds": round(seconds, 2)})
        print(fits[-1], flush=True)
    save(__file__, {"programs": rows, "whole_fits_of_6_modalities_and_10_classes": fits})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
