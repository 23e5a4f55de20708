"""Kernel SVM: CPU time and memory of a fit by samples, beside scikit-learn's one against rest."""

from functools import partial

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from experiments.growth import time_fits
from experiments.timing import N_CLASSES, WIDTHS, draw_modalities, median_seconds, save
from raysel.baselines.kernel_classifiers import KernelSVM

SIZES = [500, 1500, 3000, 6000]


def library(n):
    """CPU seconds of OneVsRestClassifier(SVC) with the same kernel, and how far scores differ."""
    X, y = draw_modalities(n)
    model = KernelSVM(C=10.0).fit(X, y)
    peer = OneVsRestClassifier(SVC(C=10.0, gamma=float(model.kernel_gammas_[0])))
    seconds, fitted = median_seconds(lambda: peer.fit(X, y), 3)
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
    found = time_fits(partial(KernelSVM, C=10.0), SIZES)
    common = {"columns": sum(WIDTHS.values()), "classes": N_CLASSES, "library": theirs}
    save(__file__, {**common, **found})


if __name__ == "__main__":
    main()
