r"""Tests of columns given all others: does a column tell more of the labels than they do?

The labels are distilled by a lasso of the other columns, each tested column by a lasso of them, too
(Liu, Katsevich, Janson & Ramdas 2022, Biometrika 109(2), 277-293). If the column tells nothing
beside the others, the products of both residuals have the mean 0. Their normalised mean is the
generalised covariance measure (Shah & Peters 2020, Annals of Statistics 48(3), 1514-1538)::

    T^2 = m v' S^-1 v,  T^2 (m - q) / (q (m - 1)) ~ F(q, m - q)

with the mean v and the covariance S of the q products over the m samples, or over the sums within m
groups of dependent samples. The penalties are chosen by cross-validation of the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import Lasso, LassoCV, MultiTaskLasso, MultiTaskLassoCV

from raysel.core.arrays import BoolArray, FloatArray, IntArray

Folds = Sequence[tuple[IntArray, IntArray]]

#: Penalties that a lasso chooses among, from the largest to this share of it.
_N_ALPHAS, _SMALLEST = 20, 0.01
#: Its tolerance and most iterations.
_TOL, _MAX_ITER = 1e-3, 2000
#: Most columns that one column is distilled by: those that correlate most with it.
MOST_PREDICTORS = 200
#: Most principal components of a group that are tested, and units of samples a product at least.
_MOST_COMPONENTS, _UNITS_A_PRODUCT = 5, 10


def independent_columns(Y: FloatArray) -> FloatArray:
    """Return orthogonal columns with mean 0 and variance 1 that span those of Y (n, k)."""
    centred = Y - Y.mean(axis=0)
    vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    kept: FloatArray = vectors[:, values > 1e-9 * values[0]] * np.sqrt(len(Y))
    return kept


@dataclass(frozen=True)
class Distilled:
    """Lasso of the labels on all columns."""

    #: Penalty that cross-validation chooses.
    alpha: float
    #: Whether each column has a coefficient; shape (d,).
    has_weight: BoolArray


def distil_labels(X: FloatArray, Y: FloatArray, folds: Folds) -> Distilled:
    """Fit the lasso of all columns, of which those without weight need no test.

    `X` is (n, d), `Y` (n, k) as of `independent_columns`.
    """
    lasso = LassoCV if Y.shape[1] == 1 else MultiTaskLassoCV
    model = lasso(**_chosen_by(folds)).fit(X, np.squeeze(Y))
    weights = np.atleast_2d(np.asarray(model.coef_))
    return Distilled(float(model.alpha_), np.any(weights != 0, axis=0))


@dataclass(frozen=True)
class ConditionalTest:
    """Test of a group of columns given all others."""

    p_value: float
    #: Share of the labels' variance, left by the other columns, that the group explains.
    share: float


def conditional_test(
    X: FloatArray, Y: FloatArray, group: IntArray, units: IntArray, *, alpha: float, folds: Folds
) -> ConditionalTest:
    """Test whether a group of columns tells nothing of the labels beside all others.

    `X` (n, d) is standardised, `Y` (n, k) as of `independent_columns`; `group` has the positions of
    the columns, `units` (n,) the number of each sample's unit, from 0; units are independent.
    `alpha` is the penalty of the lasso of the labels; `folds` choose that of each column's lasso.
    """
    others = np.delete(X, group, axis=1)
    n_units = int(units.max()) + 1
    most = min(_MOST_COMPONENTS, n_units // _UNITS_A_PRODUCT // Y.shape[1])
    tested = _first_components(X[:, group], max(1, most))
    left = Y - _predict_labels(others, Y, alpha)
    parts = np.stack([_left_of_column(others, column, folds) for column in tested.T], axis=1)
    products = np.einsum("ij,ik->ijk", left, parts).reshape(len(left), -1)
    sums = np.zeros((n_units, products.shape[1]))
    np.add.at(sums, units, products)
    return ConditionalTest(_mean_is_zero(sums), _explained(left, parts))


def _chosen_by(folds: Folds) -> dict[str, Any]:
    """Parameters of a lasso whose penalty the folds choose."""
    path = {"alphas": _N_ALPHAS, "eps": _SMALLEST}
    return {**path, "cv": folds, "tol": _TOL, "max_iter": _MAX_ITER}


def _predict_labels(others: FloatArray, Y: FloatArray, alpha: float) -> FloatArray:
    if not others.shape[1]:
        return np.zeros_like(Y)
    lasso = Lasso if Y.shape[1] == 1 else MultiTaskLasso
    fitted = lasso(alpha=alpha, tol=_TOL, max_iter=_MAX_ITER).fit(others, np.squeeze(Y))
    predicted: FloatArray = fitted.predict(others).reshape(Y.shape)
    return predicted


def _left_of_column(others: FloatArray, column: FloatArray, folds: Folds) -> FloatArray:
    """Return what a lasso of the other columns leaves of one."""
    if not others.shape[1]:
        return column
    if others.shape[1] > MOST_PREDICTORS:
        closeness = np.abs(column @ others)
        nearest = np.argpartition(-closeness, MOST_PREDICTORS)[:MOST_PREDICTORS]
        others = others[:, np.sort(nearest)]
    model = LassoCV(**_chosen_by(folds))
    left: FloatArray = column - model.fit(others, column).predict(others)
    return left


def _first_components(columns: FloatArray, most: int) -> FloatArray:
    """Return the columns, or the first principal components of more than `most` of them."""
    if columns.shape[1] <= most:
        return columns
    vectors, _, _ = np.linalg.svd(columns - columns.mean(axis=0), full_matrices=False)
    first: FloatArray = vectors[:, :most] * np.sqrt(len(columns))
    return first


def _mean_is_zero(sums: FloatArray) -> float:
    """Return the p value of Hotelling's test that the rows (m, q) have the mean 0."""
    m, q = sums.shape
    mean, covariance = sums.mean(axis=0), np.atleast_2d(np.cov(sums, rowvar=False))
    squared = m * float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    return float(stats.f.sf(squared * (m - q) / (q * (m - 1)), q, m - q))


def _explained(left: FloatArray, parts: FloatArray) -> float:
    """Return the share of the squares of what is left that the parts explain."""
    centred = left - left.mean(axis=0)
    fitted = parts @ np.linalg.lstsq(parts, centred, rcond=None)[0]
    return float((fitted**2).sum() / (centred**2).sum())


def adjust_for_fdr(p_values: FloatArray) -> FloatArray:
    """Adjust p values so that those up to a level have this false discovery rate at most."""
    adjusted: FloatArray = stats.false_discovery_control(p_values, method="bh")
    return adjusted


def adjust_for_fwer(p_values: FloatArray) -> FloatArray:
    """Adjust p values by Holm so that one up to a level is false at most with this probability."""
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
