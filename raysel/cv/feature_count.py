"""Choice of the number of best features, and of a classifier's C, by inner validation scores."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from raysel.arrays import FloatArray, IntArray

#: Rules that choose the number of best features.
ChooseN: TypeAlias = Literal["one_se", "best", "mean"]

#: Scores are rounded to this many decimals, because equal means can differ in their last bits.
DECIMALS = 12


def choose_c(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Choose, for each number of features, the C with the best mean over the inner folds, the first of equal ones.

    ``scores`` has the shape (n_inner, n_C, n_sizes); returned are the positions of the chosen C, shape (n_sizes,), and
    the scores at them, shape (n_inner, n_sizes).
    """
    best: IntArray = np.round(scores.mean(axis=0), DECIMALS).argmax(axis=0)
    return best, scores[:, best, np.arange(scores.shape[2])]


class FeatureCount(NamedTuple):
    """Choice among several numbers of features."""

    position: int
    score: float


def choose_n(scores: FloatArray, rule: ChooseN) -> FeatureCount:
    r"""Choose a number of features by the validation scores of the inner folds.

    With m_j the mean score over the K inner folds at the j-th number of features, and b the number with the best mean
    (the smallest of equal ones), ``best`` chooses b and ``one_se`` the smallest j with

        m_j >= m_b - s_b / sqrt(K),

    where s_b is the sample standard deviation over the inner folds at b: the rule of one standard error of Breiman et
    al.. ``mean`` averages the scores over all numbers and chooses b for the model.

    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984, section 3.4.3.

    `scores` is (n_inner, n_sizes).
    """
    means = scores.mean(axis=0)
    rounded = np.round(means, DECIMALS)
    best = int(rounded.argmax())
    if rule == "mean":
        return FeatureCount(best, float(np.mean(scores)))
    if rule == "best" or len(scores) == 1:
        return FeatureCount(best, float(means[best]))
    error = scores[:, best].std(ddof=1) / np.sqrt(len(scores))
    position = int(np.argmax(rounded >= round(means[best] - error, DECIMALS)))
    return FeatureCount(position, float(means[position]))
