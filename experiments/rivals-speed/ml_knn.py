"""ML-kNN to 6000 samples: neighbours once, then configurations and predictions; memory linear in n."""

import numpy as np
from growth import N_LABELS, grow

from raysel.baselines.multilabel.ml_knn import PREPARED_NEIGHBORS, MLkNN


def parts(X, Y, X_test):
    """The preparation, one configuration on it, and the prediction of the test samples."""
    model, kept = MLkNN(), []

    def fit():
        for _ in model.iterate(X, Y, kept[0]):
            pass

    return {
        "prepare": lambda: kept.append(model.prepare(X, Y)),
        "configuration": fit,
        "predict": lambda: model.predict(X_test),
    }


def told(n, d):
    """Neighbours and their distances, the test samples' and the labels' counts; a block of distances is 64 MB at most."""
    return 8.0 * n * (3 * PREPARED_NEIGHBORS + 4 * N_LABELS + 2) + min(64e6, 8.0 * n * n) + 8.0 * np.ceil(n * d / 8)


if __name__ == "__main__":
    grow(__file__, parts, 300, told, {})
