"""MLLS to 6000 samples: one decomposition, then small problems for each configuration."""

from experiments.growth import time_parts
from raysel.baselines.least_squares import MLLS

SIZES = (750, 1500, 3000, 6000)


def parts(X, Y, X_test):
    """The preparation, one configuration on it, and the prediction of the test samples."""
    model, kept = MLLS(), []

    def fit():
        for _ in model.iterate(X, Y, kept[0]):
            pass

    return {
        "prepare": lambda: kept.append(model.prepare(X, Y)),
        "configuration": fit,
        "predict": lambda: model.predict(X_test),
    }


def told(n, d):
    """Bytes of centred samples and P, made twice; the Gram matrix, its vectors, work space."""
    smaller = min(n, d)
    return 8.0 * (2 * n * d + n * smaller + 5 * smaller**2)


if __name__ == "__main__":
    time_parts(__file__, parts, sizes=SIZES, n_features=1024, told=told)
