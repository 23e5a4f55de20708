"""MLLS to 6000 samples: one decomposition, then small problems for each configuration."""

from growth import grow

from raysel.baselines.least_squares import MLLS


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
    """Centred samples and P, twice while they are made; the Gram matrix, its vectors and their
    work space.
    """
    smaller = min(n, d)
    return 8.0 * (2 * n * d + n * smaller + 5 * smaller**2)


if __name__ == "__main__":
    grow(__file__, parts, 1024, told, {6000: 3})
