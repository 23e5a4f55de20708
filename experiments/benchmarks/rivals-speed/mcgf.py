"""MCGF to 6000 samples: one decomposition a fold for all configurations; two n x n matrices."""

from experiments.growth import time_parts
from raysel.baselines import mcgf
from raysel.baselines.mcgf import MCGF

SIZES = (750, 1500, 3000, 6000)


def parts(X, Y, X_test):
    """A fit, the first prediction, which decomposes, and that of another configuration."""
    mcgf._recent._latest.clear()  # noqa: SLF001 - each repetition starts without a decomposition
    first, second = MCGF(), MCGF(beta=0.1, alpha=0.25).fit(X, Y)
    return {
        "fit": lambda: first.fit(X, Y),
        "first prediction": lambda: first.predict(X_test),
        "other configuration": lambda: second.predict(X_test),
    }


def told(n, d):
    """Bytes of two matrices and a mask of n x n, as MCGF says, of samples twice, and 5 MB more."""
    return 17.0 * n * n + 16.0 * n * d + 5e6


if __name__ == "__main__":
    time_parts(__file__, parts, sizes=SIZES, n_features=300, told=told, once=6000)
