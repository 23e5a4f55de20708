r"""Tests of columns given all others: does a column tell more of the labels than they do?

The labels are distilled by a lasso of the other columns, each tested column by a lasso of them, too
(Liu, Katsevich, Janson & Ramdas 2022, Biometrika 109(2), 277-293). If the column tells nothing
beside the others, the products of both residuals have the mean 0. Their normalised mean is the
generalised covariance measure (Shah & Peters 2020, Annals of Statistics 48(3), 1514-1538)::

    T^2 = m v' S^-1 v,  T^2 (m - q) / (q (m - 1)) ~ F(q, m - q)

with the mean v and the covariance S of the q products over the m samples, or over the sums within m
groups of dependent samples. The penalties are chosen by cross-validation of the same samples.

The desparsified lasso takes the labels' noise to be of one covariance N in all samples (van de
Geer, Bühlmann, Ritov & Dezeure 2014, Annals of Statistics 42(3), 1166-1202). With R of what is left
of the tested columns, S is then the Kronecker product of N and R' R / m, and the lasso of all
columns gives N, with as many degrees of freedom as there are samples less its coefficients. The
labels are distilled by a lasso without the tested columns here, too: by the other coefficients of
that of all columns more claims were false in simulations.
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
    #: Covariance of what it leaves of the labels, shape (k, k), and its degrees of freedom.
    noise: FloatArray
    df: int


def distil_labels(X: FloatArray, Y: FloatArray, folds: Folds) -> Distilled:
    """Fit the lasso of all columns, of which those without weight need no test.

    `X` is (n, d), `Y` (n, k) as of `independent_columns`.
    """
    lasso = LassoCV if Y.shape[1] == 1 else MultiTaskLassoCV
    model = lasso(**_chosen_by(folds)).fit(X, np.squeeze(Y))
    coef = np.atleast_2d(np.asarray(model.coef_))
    left = Y - X @ coef.T
    has_weight = np.any(coef != 0, axis=0)
    df = max(1, len(X) - 1 - int(has_weight.sum()))
    return Distilled(float(model.alpha_), has_weight, left.T @ left / df, df)


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
    left = Y - _predict_labels(others, Y, alpha)
    parts = _left_of_group(X, group, _most_components(n_units, Y), folds)
    products = _products(left, parts)
    sums = np.zeros((n_units, products.shape[1]))
    np.add.at(sums, units, products)
    return ConditionalTest(_mean_is_zero(sums), _explained(left, parts))


def desparsified_test(
    X: FloatArray, Y: FloatArray, group: IntArray, *, distilled: Distilled, folds: Folds
) -> ConditionalTest:
    """Test a group as `conditional_test` of single samples, with noise of one covariance.

    `distilled` is the lasso of `Y` on all columns.
    """
    n = len(X)
    left = Y - _predict_labels(np.delete(X, group, axis=1), Y, distilled.alpha)
    parts = _left_of_group(X, group, _most_components(n, Y), folds)
    mean = _products(left, parts).mean(axis=0)
    covariance = np.kron(distilled.noise, parts.T @ parts / n)
    squared = n * float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    p_value = float(stats.f.sf(squared / len(mean), len(mean), distilled.df))
    return ConditionalTest(p_value, _explained(left, parts))


def _most_components(n_units: int, Y: FloatArray) -> int:
    """Return how many principal components of a group are tested at most."""
    return max(1, min(_MOST_COMPONENTS, n_units // _UNITS_A_PRODUCT // Y.shape[1]))


def _left_of_group(X: FloatArray, group: IntArray, most: int, folds: Folds) -> FloatArray:
    """Return what lassos of the other columns leave of a group, or of its first components."""
    others, tested = np.delete(X, group, axis=1), _first_components(X[:, group], most)
    return np.stack([_left_of_column(others, column, folds) for column in tested.T], axis=1)


def _products(left: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the products of each column of one with each of the other; shape (n, k q)."""
    products: FloatArray = np.einsum("ij,ik->ijk", left, parts).reshape(len(left), -1)
    return products


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
