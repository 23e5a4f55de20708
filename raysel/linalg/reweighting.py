"""The smoothed l2,p penalty on blocks of coefficients, its weights, and the reweighted ridge step they give.

The penalty ``sum_b (s_b + zeta)^(p/2)``, with ``s_b`` a block's energy (sum of squares), is concave
in ``s`` for ``0 < p <= 2``; its tangent at the present ``s`` is a ridge penalty with the weights
``(p/2) (s_b + zeta)^(p/2 - 1)``. Minimising that instead never raises the objective (Nie et al.,
*Efficient and robust feature selection via joint l2,1-norms minimization*, NIPS 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from raysel.arrays import FloatArray


class Penalty(NamedTuple):
    """``alpha sum_b (s_b + zeta)^(p/2)``.

    Parameters
    ----------
    alpha : float, positive
    p : float
        0 < p <= 2.
    zeta : float, positive
        In units of ``s``.
    """

    alpha: float
    p: float
    zeta: float


def l2p_penalty(energy: FloatArray, p: float, zeta: float) -> float:
    """The smoothed penalty ``sum_b (energy_b + zeta)^(p/2)``.

    Parameters
    ----------
    energy : ndarray
        Sum of squares of each block's coefficients.
    p : float
    zeta : float

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> l2p_penalty(np.array([9.0, 16.0]), 1.0, 0.0)
    7.0
    """
    return float(((energy + zeta) ** (p / 2)).sum())


def l2p_weights(energy: FloatArray, p: float, zeta: float) -> FloatArray:
    """The weights ``(p/2) (energy + zeta)^(p/2 - 1)`` of the ridge penalty that touches the l2,p one.

    Parameters
    ----------
    energy : ndarray
        Sum of squares of each block's coefficients.
    p : float
    zeta : float, positive
        Bounds the weight of a block that is zero.

    Returns
    -------
    ndarray, like ``energy``

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
    orders of magnitude: they enter inverted, and a feature with a huge one just drops out.

    Parameters
    ----------
    X : ndarray of shape (n_features, n_samples)
    Y : ndarray of shape (n_targets, n_samples)
    weights : ndarray of shape (n_features,), positive
    alpha : float, positive

    Returns
    -------
    W : ndarray of shape (n_targets, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> weighted_ridge(np.array([[2.0]]), np.array([[6.0]]), np.array([1.0]), 2.0)
    array([[2.]])
    """
    scale = 1.0 / np.sqrt(weights)
    scaled = X * scale[:, None]
    kernel = scaled.T @ scaled
    kernel.flat[:: len(kernel) + 1] += alpha
    _, dual, info = lapack.dposv(kernel.T, Y.T, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("The penalty's weights span more than double precision: raise zeta, p or alpha.")
    W: FloatArray = (dual.T @ scaled.T) * scale
    return W
