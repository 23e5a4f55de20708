"""A training set reduced to what least squares on one-hot targets needs of it, and its l2,p-penalised solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.errors import DataError
from raysel.linalg.reweighting import l2p_weights, weighted_ridge


@dataclass(frozen=True)
class LeastSquaresData:
    """Centred features and one-hot targets: ``||P X - Y||^2 + residual`` is the loss of any coefficients P.

    Parameters
    ----------
    X : ndarray of shape (n_features, n_rows)
        Centred features; n_rows = min(n_samples, n_features), for more samples than features are
        rotated onto as many rows, which leaves the loss as it is and the array smaller than the data.
    Y : ndarray of shape (n_classes, n_rows)
        Centred one-hot targets, rotated likewise.
    XY : ndarray of shape (n_classes, n_features)
        ``Y X'``.
    residual : float
        Squared length of the targets that the rotation leaves outside the n_rows.
    X_mean : ndarray of shape (n_features,)
    Y_mean : ndarray of shape (n_classes,)
    constant : ndarray of bool, shape (n_features,)
        Features that do not vary over the training set.
    classes : ndarray of shape (n_classes,)
    alpha_max : float
        The penalty ``alpha sum_f ||P[:, f]||`` makes P zero from this alpha on: ``2 max_f ||XY[:, f]||``.
    """

    X: FloatArray
    Y: FloatArray
    XY: FloatArray
    residual: float
    X_mean: FloatArray
    Y_mean: FloatArray
    constant: BoolArray
    classes: LabelArray
    alpha_max: float


def least_squares_data(X: FloatArray, y: LabelArray) -> LeastSquaresData:
    """Centre, rotate where that saves work, and find alpha_max.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Class labels.

    Returns
    -------
    LeastSquaresData

    Raises
    ------
    DataError
        If there is one class only.

    Examples
    --------
    >>> import numpy as np
    >>> data = least_squares_data(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array(["a", "b"]))
    >>> round(data.alpha_max**2, 12)  # (2 sqrt(1 + 1))^2
    8.0
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only, {classes[0]!r}: there must be at least two classes to tell apart.")
    n_samples, n_features = X.shape
    X_mean, constant = X.mean(axis=0), X.max(axis=0) == X.min(axis=0)
    centred: FloatArray = X - X_mean
    centred[:, constant] = 0.0  # exactly, though the mean is rounded
    targets: FloatArray = np.eye(len(classes))[codes]
    Y_mean = targets.mean(axis=0)
    targets -= Y_mean
    residual = 0.0
    if n_samples > n_features:
        # The R of [X, Y] = Q R: no Q is formed, and R is no larger than X is.
        R: FloatArray = np.asarray(np.linalg.qr(np.hstack([centred, targets]), mode="r"), dtype=np.float64)
        centred, targets = R[:n_features, :n_features], R[:n_features, n_features:]
        residual = float((R[n_features:, n_features:] ** 2).sum())
    features, targets = np.ascontiguousarray(centred.T), np.ascontiguousarray(targets.T)
    XY = targets @ features.T
    alpha_max = 2.0 * float(np.sqrt((XY**2).sum(axis=0).max()))
    return LeastSquaresData(features, targets, XY, residual, X_mean, Y_mean, constant, classes, alpha_max)


def ls21_steps(data: LeastSquaresData, alpha: float, p: float, zeta: float) -> Iterator[FloatArray]:
    """Coefficients of LS21, ``min_P ||P X - Y||^2 + alpha sum_f (||P[:, f]||^2 + zeta)^(p/2)``, step by step.

    The first weights are those of the correlations ``XY``, scaled to the targets, so that the steps
    follow the objective's scale law: X times s is alpha times s^p and zeta over s^2.

    Parameters
    ----------
    data : LeastSquaresData
    alpha, p, zeta : float

    Yields
    ------
    P : ndarray of shape (n_classes, n_features)
    """
    fitted = float(((data.XY @ data.X) ** 2).sum())
    step = float((data.XY**2).sum()) / fitted if fitted > 0.0 else 0.0
    P = step * data.XY
    while True:
        P = weighted_ridge(data.X, data.Y, l2p_weights((P**2).sum(axis=0), p, zeta), alpha)
        yield P
