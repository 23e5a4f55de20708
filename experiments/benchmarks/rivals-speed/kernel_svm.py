"""Kernel SVM: CPU seconds and peak memory of a fit by the number of samples, beside
scikit-learn's one against rest.
"""

from functools import partial

import numpy as np
from kernel_timing import N_CLASSES, WIDTHS, draw, growth, median_seconds, save, time_fit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from raysel.baselines.kernel_classifiers import KernelSVM

SIZES = [500, 1500, 3000, 6000]


def library(n):
    """CPU seconds of OneVsRestClassifier(SVC) with the same kernel, and how far its scores are
    from ours.
    """
    X, y = draw(n)
    model = KernelSVM(C=10.0).fit(X, y)
    gamma = float(model.kernel_gammas_[0])
    seconds, fitted = median_seconds(
        lambda: OneVsRestClassifier(SVC(C=10.0, gamma=gamma)).fit(X, y), 3
    )
    difference = np.abs(fitted.decision_function(X) - model.decision_function(X)).max()
    return {
        "n": n,
        "library_seconds": round(seconds, 4),
        "largest_difference_of_scores": float(f"{difference:.1e}"),
    }


def main():
    """Print one line a size, and write kernel_svm.json."""
    with threadpool_limits(1):
        theirs = [library(n) for n in SIZES[:2]]
    print(theirs, flush=True)
    rows = []
    for n in SIZES:
        rows.append(time_fit(partial(KernelSVM, C=10.0), n, 3 if n <= 1500 else 1))
        print(rows[-1], flush=True)
        common = {"columns": sum(WIDTHS.values()), "classes": N_CLASSES, "library": theirs}
        save(__file__, {**common, "sizes": rows, "growth": growth(rows)})
    print("exponents of n", growth(rows))


if __name__ == "__main__":
    main()
