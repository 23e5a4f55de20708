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
    """Choice among several numbers of features.

    Parameters
    ----------
    position : int
        Position of the chosen number among those that were scored.
    score : float
        Mean validation score over the inner folds at that number; the mean over all numbers by the rule ``mean``.
    """

    position: int
    score: float


def choose_n(scores: FloatArray, rule: ChooseN) -> FeatureCount:
    r"""Choose a number of features by the validation scores of the inner folds.

    With m_j the mean score over the K inner folds at the j-th number of features, and b the number with the best mean
    (the smallest of equal ones), ``best`` chooses b and ``one_se`` the smallest j with

        m_j >= m_b - s_b / sqrt(K),

    where s_b is the sample standard deviation over the inner folds at b: the rule of one standard error of Breiman et
    al. [1]_. ``mean`` averages the scores over all numbers and chooses b for the model.

    Parameters
    ----------
    scores : ndarray of shape (n_inner, n_sizes)
        Validation scores, the numbers of features increasing.
    rule : {"one_se", "best", "mean"}
        Rule.

    Returns
    -------
    FeatureCount
        Position of the chosen number and the score that the configuration is judged by.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984, section 3.4.3.

    Examples
    --------
    >>> scores = np.array([[0.70, 0.88, 0.90], [0.60, 0.80, 0.80]])
    >>> choose_n(scores, "best").position, choose_n(scores, "one_se").position
    (2, 1)
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
