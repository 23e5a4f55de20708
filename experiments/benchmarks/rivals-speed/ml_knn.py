"""ML-kNN to 6000 samples: neighbours once, then configurations; memory linear in n."""

from experiments.growth import N_LABELS, time_parts
from raysel.baselines.nearest_neighbours import PREPARED_NEIGHBORS, MLkNN

SIZES = (750, 1500, 3000, 6000)


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
    """Bytes of neighbours, distances and arrays of n x labels; blocks of distances take 2 MB."""
    return 8.0 * n * (2 * PREPARED_NEIGHBORS + 3 * N_LABELS) + 2e6


if __name__ == "__main__":
    time_parts(__file__, parts, sizes=SIZES, n_features=300, told=told)
