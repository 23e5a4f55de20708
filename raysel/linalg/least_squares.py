"""Least squares on one-hot targets: the reduced training set, and its l2,p-penalised solution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.linalg.classes import distinct_classes
from raysel.linalg.reweighting import Penalty, l2p_weights, weighted_ridge
from raysel.linalg.rounding import product


@dataclass(frozen=True)
class LeastSquaresData:
    """A training set reduced for least squares: ``||P X - Y||^2 + residual`` is the loss of any coefficients P."""

    #: Centred features divided by ``scale``, n_rows = min(n_samples, n_features); shape (n_features, n_rows).
    X: FloatArray
    #: Centred one-hot targets, transformed alike; shape (n_classes, n_rows).
    Y: FloatArray
    #: ``Y X'``, exactly 0 where a feature tells nothing of a class; shape (n_classes, n_features).
    XY: FloatArray
    scale: float
    residual: float
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    #: Share of each class among the samples; shape (n_classes,).
    Y_mean: FloatArray
    #: Whether each feature has one value over the training set; shape (n_features,).
    constant: BoolArray
    #: Sorted class labels, in the order of the rows of ``Y``; shape (n_classes,).
    classes: LabelArray
    alpha_max: float

    def penalty_unit(self, p: float) -> float:
        """Smallest alpha at which no single feature lowers the penalised loss, for X as stored.

        ``||P X - Y||^2 + alpha sum_f ||P[:, f]||^p`` over the coefficients of one feature f, all others zero, is
        least at zero if and only if ``alpha >= M ||XY[:, f]||^(2-p) ||X[f]||^(2p-2)`` with
        ``M = max_t (2t - t^2) / t^p``, attained at ``t = 2 (1-p) / (2-p)`` of the feature's least-squares
        coefficients. The unit is the largest of these bounds: for p = 1 it is ``alpha_max / scale``, for p = 0 the
        most that one feature can lower the loss.
        """
        correlations = np.sqrt((self.XY**2).sum(axis=0))
        energies = np.einsum("fi,fi->f", self.X, self.X)
        varying = energies > 0.0
        coefficients = np.divide(correlations, energies, out=np.zeros_like(energies), where=varying)
        t = 2.0 * (1.0 - p) / (2.0 - p)
        largest = (2.0 * t ** (1.0 - p) - t ** (2.0 - p)) * (correlations * coefficients ** (1.0 - p)).max()
        return float(largest)

    def coefficient_unit(self) -> float:
        """Typical size of the coefficients of X as stored, ``penalty_unit(0) / penalty_unit(1)``; 1 where both are 0.

        Where the same feature attains both it is half of the length of that feature's least-squares coefficients.
        """
        unit = self.penalty_unit(1.0)
        return self.penalty_unit(0.0) / unit if unit > 0.0 else 1.0


def least_squares_data(X: FloatArray, y: LabelArray) -> LeastSquaresData:
    """Centre and scale a training set, reduce it to at most n_features rows, and find alpha_max.

    `X` is (n_samples, n_features), `y` (n_samples,).
    """
    classes, targets = one_hot(y)
    n_samples, n_features = X.shape
    centred, X_mean, constant, scale = centre_and_scale(X)
    Y_mean = targets.mean(axis=0)
    targets -= Y_mean
    XY = product(targets.T, centred)
    residual = 0.0
    if n_samples > n_features:
        # The R of [X, Y] = Q R: no Q is formed, and R is no larger than X is.
        R: FloatArray = np.asarray(np.linalg.qr(np.hstack([centred, targets]), mode="r"), dtype=np.float64)
        centred, targets = R[:n_features, :n_features], R[:n_features, n_features:]
        residual = float((R[n_features:, n_features:] ** 2).sum())
    features, targets = np.ascontiguousarray(centred.T), np.ascontiguousarray(targets.T)
    alpha_max = 2.0 * scale * float(np.sqrt((XY**2).sum(axis=0).max()))
    return LeastSquaresData(features, targets, XY, scale, residual, X_mean, Y_mean, constant, classes, alpha_max)


def one_hot(y: LabelArray) -> tuple[LabelArray, FloatArray]:
    """Classes and one-hot targets of labels.

    `y` is (n_samples,); returns `classes` (n_classes,), `targets` (n_samples, n_classes).
    """
    classes, codes = distinct_classes(y)
    targets: FloatArray = np.eye(len(classes))[codes]
    return classes, targets


def centre_and_scale(X: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray, float]:
    """Subtract the mean of each feature, and divide all by one power of two, which rounds nothing.

    `X` is (n_samples, n_features); returns `centred` (n_samples, n_features), `X_mean` (n_features,),
    `constant` (n_features,).
    """
    X_mean, constant = X.mean(axis=0), X.max(axis=0) == X.min(axis=0)
    centred: FloatArray = X - X_mean
    centred[:, constant] = 0.0  # exactly, though the mean is rounded
    scale = float(np.ldexp(1.0, np.frexp(max(centred.max(), -centred.min()))[1]))
    centred /= scale
    return centred, X_mean, constant, scale


def expand(values: FloatArray, used: BoolArray) -> FloatArray:
    """Values of all features from those of the features used, 0 for the others.

    `values` is (..., n_used), `used` (n_features,); returns (..., n_features).
    """
    if values.shape[-1] == len(used):
        return values
    expanded = np.zeros((*values.shape[:-1], len(used)))
    expanded[..., used] = values
    return expanded


def ls21_steps(data: LeastSquaresData, weights: FloatArray, penalties: Iterable[Penalty]) -> Iterator[FloatArray]:
    """Minimise ``||P X - Y||^2 + alpha sum_f (||P[:, f]||^2 + zeta)^(p/2)`` (LS21) by reweighted ridge steps.

    `weights` is (n_features,); yields `P` (n_classes, n_features).
    """
    P = None
    for alpha, p, zeta in penalties:
        if P is not None:
            weights = l2p_weights((P**2).sum(axis=0), p, zeta)
        P = weighted_ridge(data.X, data.Y, weights, alpha)
        yield P
