"""The hinge loss, its proximal step, and the intercepts that minimise it.

Each row is one problem. Scores m and signs y in {-1, 1} have the shape (c, n): c problems, n
samples. The loss is ``sum_ij (1 - y_ij m_ij)_+``.
"""

from __future__ import annotations

import numpy as np

from raysel.core.arrays import FloatArray


def hinge_loss(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """Hinge loss of each problem, ``sum_i (1 - y_i m_i)_+``.

    `margins` and `signs` are (c, n); returns (c,).
    """
    losses = 1.0 - signs * margins
    return np.maximum(losses, 0.0, out=losses).sum(axis=1)


def hinge_step(margins: FloatArray, signs: FloatArray, step: float, out: FloatArray) -> FloatArray:
    """Proximal point of the loss: a violated margin moves towards 1 by at most ``step``.

    `margins`, `signs` and `out` are (c, n); returns (c, n).
    """
    np.multiply(signs, margins, out=out)
    np.subtract(1.0, out, out=out)
    np.clip(out, 0.0, step, out=out)
    out *= signs
    out += margins
    return out


def best_bias(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """Bias b that minimises the loss of each problem at margins + b.

    The loss is piecewise linear in b. It has one breakpoint a sample, y_i - m_i; its slope begins
    at minus the number p of positive samples and grows by 1 at each breakpoint. Every b between the
    p-th and the next is best.

    `margins` and `signs` are (c, n); returns (c,).
    """
    n = margins.shape[1]
    positives = np.count_nonzero(signs > 0, axis=1)
    breakpoints = np.sort(signs - margins, axis=1)
    # Without positives (or negatives) every b far enough on one side is best; both are then the
    # nearest of them.
    below, above = np.maximum(positives - 1, 0), np.minimum(positives, n - 1)
    problems = np.arange(len(breakpoints))
    return 0.5 * (breakpoints[problems, below] + breakpoints[problems, above])


def balanced(alpha: FloatArray, signs: FloatArray) -> FloatArray:
    """Dual variables made feasible for a free bias: in [0, 1], with ``sum_i alpha_i y_i = 0``.

    Those of the positive and those of the negative samples are scaled to a common sum, which is the
    mean of both sums where the bounds allow it.

    `alpha` and `signs` are (c, n); returns (c, n).
    """
    alpha = np.clip(alpha, 0.0, 1.0)
    sides = (signs > 0, signs <= 0)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    # The smaller side goes up as far as the bounds let it, and the other comes down to meet it.
    middle = 0.5 * (sums[0] + sums[1])
    for side, total in zip(sides, sums, strict=True):
        growth = np.divide(
            middle, total, out=np.ones_like(total), where=(total > 0) & (total < middle)
        )
        alpha *= np.where(side, growth, 1.0)
    np.minimum(alpha, 1.0, out=alpha)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    for side, total in zip(sides, sums, strict=True):
        share = np.divide(np.minimum(*sums), total, out=np.zeros_like(total), where=total > 0)
        alpha *= np.where(side, share, 1.0)
    return alpha
