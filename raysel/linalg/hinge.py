"""The hinge loss of many two-class problems at once: its proximal step, its best bias, its dual variables.

Each row is one problem: margins of shape (c, n) and signs in {-1, 1}, the loss sum_ij (1 - y_ij m_ij)_+.
"""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray


def hinge_loss(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """The loss of each problem, sum_i (1 - y_i m_i)_+.

    Parameters
    ----------
    margins, signs : ndarray of shape (c, n)

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> hinge_loss(np.array([[2.0, 0.5]]), np.array([[1.0, -1.0]]))
    array([1.5])
    """
    losses = 1.0 - signs * margins
    return np.maximum(losses, 0.0, out=losses).sum(axis=1)


def hinge_step(margins: FloatArray, signs: FloatArray, step: float, out: FloatArray) -> FloatArray:
    """The proximal point of ``step`` times the loss: a violated margin moves towards 1 by at most ``step``.

    Parameters
    ----------
    margins, signs : ndarray of shape (c, n)
    step : float
    out : ndarray of shape (c, n)
        Where the result is written.

    Returns
    -------
    ndarray of shape (c, n)
    """
    np.multiply(signs, margins, out=out)
    np.subtract(1.0, out, out=out)
    np.clip(out, 0.0, step, out=out)
    out *= signs
    out += margins
    return out


def best_bias(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """The bias b that minimises each problem's loss at margins + b.

    The loss is piecewise linear in b with a breakpoint y_i - m_i a sample, where its slope grows by 1 from minus
    the number of positives: every b between the two breakpoints around that number is best.

    Parameters
    ----------
    margins, signs : ndarray of shape (c, n)

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> best_bias(np.array([[0.0, 1.0, 5.0]]), np.array([[-1.0, -1.0, 1.0]]))
    array([-3.])
    """
    n = margins.shape[1]
    positives = np.count_nonzero(signs > 0, axis=1)
    breakpoints = np.sort(signs - margins, axis=1)
    # Without positives (or negatives) every b far enough on one side is best; both are then the nearest of them.
    below, above = np.maximum(positives - 1, 0), np.minimum(positives, n - 1)
    problems = np.arange(len(breakpoints))
    return 0.5 * (breakpoints[problems, below] + breakpoints[problems, above])


def balanced(alpha: FloatArray, signs: FloatArray) -> FloatArray:
    """Dual variables made feasible for a free bias: in [0, 1], with sum_i alpha_i y_i = 0.

    Positives and negatives are scaled to one sum, halfway between theirs where the bounds allow it.

    Parameters
    ----------
    alpha, signs : ndarray of shape (c, n)

    Returns
    -------
    ndarray of shape (c, n)

    Examples
    --------
    >>> balanced(np.array([[1.0, 1.0, 1.0]]), np.array([[1.0, -1.0, -1.0]]))
    array([[1. , 0.5, 0.5]])
    >>> balanced(np.array([[0.1, 0.2, 0.1]]), np.array([[1.0, -1.0, -1.0]]))
    array([[0.2       , 0.13333333, 0.06666667]])
    """
    alpha = np.clip(alpha, 0.0, 1.0)
    sides = (signs > 0, signs <= 0)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    # The smaller side goes up as far as the bounds let it, and the other comes down to meet it.
    middle = 0.5 * (sums[0] + sums[1])
    for side, total in zip(sides, sums, strict=True):
        growth = np.divide(middle, total, out=np.ones_like(total), where=(total > 0) & (total < middle))
        alpha *= np.where(side, growth, 1.0)
    np.minimum(alpha, 1.0, out=alpha)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    for side, total in zip(sides, sums, strict=True):
        share = np.divide(np.minimum(*sums), total, out=np.zeros_like(total), where=total > 0)
        alpha *= np.where(side, share, 1.0)
    return alpha
