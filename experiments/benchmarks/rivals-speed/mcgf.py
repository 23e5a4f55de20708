"""MCGF to 6000 samples: one decomposition a fold for all configurations; memory of two n x n
matrices.
"""

from growth import grow

from raysel.baselines import mcgf
from raysel.baselines.mcgf import MCGF


def parts(X, Y, X_test):
    """A fit, the first prediction, which decomposes the graph, and that of another configuration
    on the same fold.
    """
    mcgf._recent._latest.clear()  # noqa: SLF001 - each repetition starts without a decomposition
    first, second = MCGF(), MCGF(beta=0.1, alpha=0.25).fit(X, Y)
    return {
        "fit": lambda: first.fit(X, Y),
        "first prediction": lambda: first.predict(X_test),
        "other configuration": lambda: second.predict(X_test),
    }


def told(n, d):
    """Two matrices and a mask of n x n, as MCGF says where it refuses; the samples twice, and 5
    MB for the rest.
    """
    return 17.0 * n * n + 16.0 * n * d + 5e6


if __name__ == "__main__":
    grow(__file__, parts, 300, told, {6000: 1})
