"""The smoothed l2,p penalty on blocks of coefficients, its weights, and the ridge step with these weights.

The penalty ``sum_b (s_b + zeta)^(p/2)``, with ``s_b`` a block's energy (sum of squares), is concave
in ``s`` for ``0 < p <= 2``; its tangent at the present ``s`` is a ridge penalty with the weights
``(p/2) (s_b + zeta)^(p/2 - 1)``. Minimising the loss plus this tangent never raises the objective (Nie et al.,
*Efficient and robust feature selection via joint l2,1-norms minimization*, NIPS 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from raysel.arrays import FloatArray


class Penalty(NamedTuple):
    """Parameters of the smoothed l2,p penalty ``alpha sum_b (s_b + zeta)^(p/2)``.

    Parameters
    ----------
    alpha : float
        Strength, positive.
    p : float
        Exponent of each block's norm, 0 < p <= 2; the smaller, the sparser.
    zeta : float
        Smoothing, positive, in units of ``s``: squared coefficients.
    """

    alpha: float
    p: float
    zeta: float


def l2p_penalty(energy: FloatArray, p: float, zeta: float) -> float:
    """Smoothed penalty ``sum_b (energy_b + zeta)^(p/2)``.

    Parameters
    ----------
    energy : ndarray
        Sum of squares of each block's coefficients, any shape.
    p : float
        Exponent of each block's norm.
    zeta : float
        Smoothing, in units of ``energy``, not negative.

    Returns
    -------
    float
        The penalty, without a factor alpha.

    Examples
    --------
    >>> import numpy as np
    >>> l2p_penalty(np.array([9.0, 16.0]), 1.0, 0.0)
    7.0
    """
    return float(((energy + zeta) ** (p / 2)).sum())


def l2p_weights(energy: FloatArray, p: float, zeta: float) -> FloatArray:
    """Weights ``(p/2) (energy + zeta)^(p/2 - 1)`` of the ridge penalty that is tangent to the l2,p penalty.

    Parameters
    ----------
    energy : ndarray
        Sum of squares of each block's coefficients, any shape.
    p : float
        Exponent of each block's norm.
    zeta : float
        Smoothing, in units of ``energy``; where it is positive, the weight of a zero block is finite.

    Returns
    -------
    ndarray
        One weight a block, in the shape of ``energy``.

    Examples
    --------
    >>> import numpy as np
    >>> l2p_weights(np.array([4.0, 16.0]), 1.0, 0.0)
    array([0.25 , 0.125])
    """
    weights: FloatArray = (p / 2) * (energy + zeta) ** (p / 2 - 1)
    return weights


def weighted_ridge(X: FloatArray, Y: FloatArray, weights: FloatArray, alpha: float) -> FloatArray:
    """Ridge regression with a weight a feature: ``argmin_W ||W X - Y||^2 + alpha sum_f weights_f ||W[:, f]||^2``.

    Solved in the dual, one n_samples x n_samples system for all targets, so the weights may span many
    orders of magnitude: they enter inverted, and the coefficients of a feature with a huge weight become 0.

    Parameters
    ----------
    X : ndarray of shape (n_features, n_samples)
        Features.
    Y : ndarray of shape (n_targets, n_samples)
        Targets.
    weights : ndarray of shape (n_features,)
        Positive weight of each feature in the penalty.
    alpha : float
        Strength of the penalty, positive.

    Returns
    -------
    W : ndarray of shape (n_targets, n_features)
        Coefficients.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the system is singular to double precision.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_ridge(np.array([[2.0]]), np.array([[6.0]]), np.array([1.0]), 2.0)
    array([[2.]])
    """
    return weighted_ridge_with_dual(X, Y, weights, alpha)[0]


def weighted_ridge_with_dual(
    X: FloatArray, Y: FloatArray, weights: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Weighted ridge regression like `weighted_ridge`, with the residuals at no further cost.

    Parameters
    ----------
    X, Y, weights, alpha
        As in `weighted_ridge`.

    Returns
    -------
    W : ndarray of shape (n_targets, n_features)
        Coefficients.
    dual : ndarray of shape (n_samples, n_targets)
        ``(Y - W X)' / alpha``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the system is singular to double precision.
    """
    scale = 1.0 / np.sqrt(weights)
    scaled = X * scale[:, None]
    kernel = scaled.T @ scaled
    kernel.flat[:: len(kernel) + 1] += alpha
    _, dual, info = lapack.dposv(kernel.T, Y.T, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("The penalty's weights span more than double precision: raise zeta, p or alpha.")
    W: FloatArray = (dual.T @ scaled.T) * scale
    return W, dual
