"""mRMR against scikit-feature's LCSI: CPU time of a fit, one thread."""

import statistics

import numpy as np
from skfeature.function.information_theoretical_based import LCSI
from threadpoolctl import threadpool_limits

from experiments.timing import cpu_seconds, load_orl_half, save
from raysel.baselines.filter import bin_range
from raysel.baselines.multivariate_filters import MRMR

REPEATS, BINS, N_SELECTED, WANTED = 3, 5, 50, 20


class OneOverSelected:
    """LCSI's factor of the redundancy, 1 over the number of selected features: the package takes
    a constant only.
    """

    def __init__(self, n_features):
        self.n_features, self.k, self.products = n_features, 1, 0

    def __mul__(self, redundancy):
        """The mean redundancy, for each of the remaining features in turn."""
        value = redundancy / self.k
        self.products += 1
        if self.products == self.n_features - self.k:
            self.k, self.products = self.k + 1, 0
        return value


def lcsi(binned, y):
    """The features that LCSI selects, in order."""
    beta = OneOverSelected(binned.shape[1])
    return LCSI.lcsi(binned, y, mode="index", gamma=0, beta=beta, n_selected_features=N_SELECTED)


def main():
    """Print a table and write it next to this file."""
    X, y = load_orl_half()
    binned = bin_range(X).assign_bins(X, BINS)  # given to the peer: its fit does not bin
    conditional = LCSI.cmidd
    runs = {"raysel": [], "lcsi": [], "lcsi_without_conditional": []}
    for _ in range(REPEATS):
        runs["raysel"].append(
            cpu_seconds(lambda: MRMR(bins=BINS, n_ranked=N_SELECTED).fit(X, y).ranking_)
        )
        runs["lcsi"].append(cpu_seconds(lambda: lcsi(binned, y)))
        LCSI.cmidd = lambda *_: 0.0  # a term that LCSI computes and multiplies by gamma = 0
        runs["lcsi_without_conditional"].append(cpu_seconds(lambda: lcsi(binned, y)))
        LCSI.cmidd = conditional
    seconds = {name: statistics.median(run[0] for run in repeats) for name, repeats in runs.items()}
    longer = [
        cpu_seconds(lambda: MRMR(bins=BINS, n_ranked=200).fit(X, y))[0] for _ in range(REPEATS)
    ]
    first = np.argsort(runs["raysel"][0][1])[:N_SELECTED]
    found = {
        "data": (
            f"ORL, {len(X)} images of {len(np.unique(y))} classes, {X.shape[1]} pixels, {BINS} bins"
        ),
        "n_selected": N_SELECTED,
        "seconds": seconds,
        "ratio": seconds["lcsi"] / seconds["raysel"],
        "ratio_without_conditional": seconds["lcsi_without_conditional"] / seconds["raysel"],
        "wanted_ratio": WANTED,
        "same_selection": bool((first == runs["lcsi"][0][1]).all()),
        "raysel_seconds_for_200": statistics.median(longer),
    }
    save(__file__, found)
    print(
        f"{found['data']}; CPU time of a fit that selects {N_SELECTED}, one thread, medians of"
        f" {REPEATS}"
    )
    for name, value in seconds.items():
        print(f"{name:26} {1e3 * value:9.1f} ms, {value / seconds['raysel']:6.0f} times raysel's")
    print(f"at least {WANTED}: {'yes' if found['ratio_without_conditional'] >= WANTED else 'NO'}")
    print(f"same features in the same order: {found['same_selection']}")
    print(f"raysel selects 200 in {1e3 * found['raysel_seconds_for_200']:.0f} ms")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
