"""Gaussian process: CPU time and memory of a fit by samples, beside scikit-learn's evidence."""

from functools import partial

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from threadpoolctl import threadpool_limits

from experiments.growth import time_fits
from experiments.timing import (
    N_CLASSES,
    WIDTHS,
    cpu_seconds,
    draw_modalities,
    median_seconds,
    peak_mib,
    save,
)
from raysel.baselines.gaussian_process import GaussianProcess, negative_log_evidence
from raysel.baselines.kernel_classifiers import kernel_matrix

SIZES = [500, 1500, 3000, 6000]
LIBRARY_SIZES = [500, 1500]


class Given(Kernel):
    """A kernel matrix of the training samples, for scikit-learn."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, X, Y=None, eval_gradient=False):
        """The matrix; it has no parameters."""
        return (self.matrix, np.empty((*self.matrix.shape, 0))) if eval_gradient else self.matrix

    def diag(self, X):
        """Its diagonal."""
        return np.ones(len(X))

    def is_stationary(self):
        """Whether it depends on differences of samples only."""
        return False


def evaluation(n):
    """CPU seconds of one evidence with its gradient, and scikit-learn's with its peak memory."""
    X, y = draw_modalities(n)
    model = GaussianProcess(WIDTHS)
    prepared = model.prepare(X, y)
    pairs = model._kernel_pairs(prepared)  # noqa: SLF001
    T = prepared.target.signs - prepared.target.signs.mean(axis=1, keepdims=True)
    logs = np.log(np.append(np.full(len(pairs), 1 / len(pairs)), 0.1))
    ours, (value, gradient, _) = median_seconds(lambda: negative_log_evidence(logs, pairs, T), 5)
    before = peak_mib()
    kernel = None
    for row in pairs:
        term = ConstantKernel(1 / len(pairs), (np.exp(-15), np.exp(10))) * Given(kernel_matrix(row))
        kernel = term if kernel is None else kernel + term
    library = GaussianProcessRegressor(kernel + WhiteKernel(0.1), alpha=0, optimizer=None).fit(
        X, T.T
    )
    theirs, (likelihood, slopes) = cpu_seconds(
        lambda: library.log_marginal_likelihood(logs, eval_gradient=True, clone_kernel=False)
    )
    difference = max(abs(value + likelihood), np.abs(gradient + slopes).max()) / abs(value)
    after = peak_mib()
    return {
        "n": n,
        "seconds": round(ours, 4),
        "library_seconds": round(theirs, 4),
        "ratio": round(theirs / ours, 1),
        "library_peak_above_ours_mib": round(after - before),
        "relative_difference": float(f"{difference:.1e}"),
    }


def main():
    """Print one line a size, and write gaussian_process.json."""
    with threadpool_limits(1):
        evaluations = [evaluation(n) for n in LIBRARY_SIZES]
    for line in evaluations:
        print("one evaluation", line, flush=True)
    found = time_fits(partial(GaussianProcess, WIDTHS), SIZES)
    common = {"modalities": list(WIDTHS.values()), "classes": N_CLASSES}
    save(__file__, {**common, "evaluation": evaluations, **found})


if __name__ == "__main__":
    main()
