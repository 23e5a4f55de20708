"""What the feature scores of each method are, for captions."""

from __future__ import annotations

_COEFFICIENTS = "norm of the feature's coefficients over the classes"
_PROJECTION = "norm of the feature's row of the weighted projection"
#: By the method's registered name; the methods' documentation has the equations.
_MEANINGS = {
    "smr": "norm of the cell's coefficients over the classes",
    "gbr": "norm of the cell's coefficients over the classes",
    "smml": _COEFFICIENTS,
    "linear_svm": _COEFFICIENTS,
    "rfs": _COEFFICIENTS,
    "mlls": _COEFFICIENTS,
    "glspfs": f"{_COEFFICIENTS}, of z-scores",
    "mtda": _PROJECTION,
    "aligned_mtda": _PROJECTION,
    "bilinear_mtda": _PROJECTION,
    "semisupervised_mtda": _PROJECTION,
    "pca": _PROJECTION,
    "lda": _PROJECTION,
    "trace_ratio_lda": _PROJECTION,
    "aggregate": _PROJECTION,
    "two_dimensional_lda": _PROJECTION,
    "dfs": "norm of the feature's row of the projection",
    "random_ranking": "place in a random order",
    "variance": "variance of the feature",
    "information_gain": "information gain in bits",
    "relieff": "(1 + W) / 2 with ReliefF's weight W",
    "fisher_score": "Fisher's ratio of scatter between and within classes, or place in the set",
    "t_test": "t statistic between classes",
    "mrmr": "order of selection, the first selected the highest",
}


def score_meaning(method: str) -> str:
    """Return what the feature scores of a method are, for a caption."""
    if "." in method:
        return f"norm of coef_ over the classes, or feature_importances_ or scores_, of {method.rpartition('.')[2]}"
    return _MEANINGS.get(method, f"score of the method {method}")
