"""ML-kNN to 6000 samples: neighbours once, then configurations and predictions; memory linear in
n.
"""

from growth import N_LABELS, grow

from raysel.baselines.nearest_neighbours import PREPARED_NEIGHBORS, MLkNN


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


def told(n, _):
    """Neighbours and their distances, and arrays of n x labels; scikit-learn's blocks of
    distances take about 2 MB.
    """
    return 8.0 * n * (2 * PREPARED_NEIGHBORS + 3 * N_LABELS) + 2e6


if __name__ == "__main__":
    grow(__file__, parts, 300, told, {})
