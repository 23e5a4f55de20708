"""Tests of columns given all others, against those of hidimstat with the same penalties."""

from __future__ import annotations

import hidimstat
import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Lasso, LassoCV
from sklearn.model_selection import KFold

from raysel.numerics.conditional_tests import (
    conditional_test,
    desparsified_test,
    distil_labels,
    independent_columns,
)

N, D = 120, 12
FOLDS = list(KFold(5, shuffle=True, random_state=0).split(np.empty((N, 1))))
#: How all lassos end, and the penalties that their cross-validation chooses among.
ENDS = {"tol": 1e-3, "max_iter": 2000}
PATH = {"alphas": 20, "eps": 0.01, "cv": FOLDS, **ENDS}


@pytest.fixture(scope="module")
def samples():
    """Correlated standardised columns, of which four tell a quantity, and that quantity."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 0.7 * rng.standard_normal((N, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 0.4 * X[:, :4].sum(axis=1) + rng.standard_normal(N)
    return X, independent_columns(y[:, None])


@pytest.fixture(scope="module")
def distilled(samples):
    """The lasso of the quantity on all columns."""
    return distil_labels(*samples, FOLDS)


@pytest.fixture(scope="module")
def randomisation(samples, distilled):
    """Hidimstat's distilled conditional randomisation of all columns."""
    X, Y = samples
    test = hidimstat.D0CRT(
        Lasso(alpha=distilled.alpha, **ENDS),
        screening_threshold=None,
        model_distillation_x=LassoCV(**PATH),
        random_state=0,
    )
    test.fit_importance(X, Y[:, 0])
    return test


def residuals(randomisation, samples, j):
    """What hidimstat's lassos of the other columns leave of the quantity and of a column."""
    X, Y = samples
    others = np.delete(X, j, axis=1)
    left = Y[:, 0] - others @ randomisation.model_y_[j]
    return left, X[:, j] - randomisation.model_x_[j].predict(others)


def desparsified_z(samples, distilled, j):
    """The statistic of the desparsified lasso, times the standard deviation of the noise."""
    found = desparsified_test(*samples, np.array([j]), distilled=distilled, folds=FOLDS)
    return stats.t.isf(found.p_value / 2, distilled.df) * np.sqrt(distilled.noise[0, 0])


def test_the_covariance_test_is_that_of_shah_and_peters_of_the_residuals_of_d0crt(
    samples, distilled, randomisation
):
    for j in range(D):
        left, part = residuals(randomisation, samples, j)
        products = left * part
        t = np.sqrt(N) * products.mean() / products.std(ddof=1)
        found = conditional_test(
            *samples, np.array([j]), np.arange(N), alpha=distilled.alpha, folds=FOLDS
        )
        assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), N - 1), rel=1e-6)


def test_the_desparsified_lasso_has_the_statistic_of_d0crt_with_another_variance(
    samples, distilled, randomisation
):
    """D0CRT divides by the variance of what one column's lasso leaves, the other by the noise's."""
    for j in range(D):
        left, _ = residuals(randomisation, samples, j)
        expected = abs(randomisation.importances_[j]) * np.sqrt((left**2).mean())
        assert desparsified_z(samples, distilled, j) == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Gram matrix was provided but X was centered")
def test_the_desparsified_lasso_is_that_of_hidimstat_up_to_its_refit(samples, distilled):
    """Without a tested column the coefficients b of the others move, by b'. The inner products of
    what is left of that column, z, are at most n times its penalty (Karush, Kuhn and Tucker). The
    statistics thus differ by at most n penalty |b - b'|_1 / |z|_2: by nothing without weight.
    """
    X, Y = samples
    test = hidimstat.DesparsifiedLasso(
        estimator=LassoCV(**PATH),
        model_x=LassoCV(**PATH),
        save_model_x=True,
        random_state=0,
    )
    test.fit_importance(X, Y[:, 0])
    n_used = int(distilled.has_weight.sum())
    assert 4 <= n_used < D
    # Ours takes a degree of freedom for the intercept, too.
    noise = test.sigma_hat_**2 * (N - n_used) / (N - n_used - 1)
    assert distilled.noise[0, 0] == pytest.approx(noise, rel=1e-3)
    scores = np.abs(test.importances_) * np.sqrt(N / test.precision_diagonal_)
    for j in range(D):
        others, before = np.delete(X, j, axis=1), np.delete(test.estimator_.coef_, j)
        after = Lasso(alpha=distilled.alpha, **ENDS).fit(others, Y[:, 0]).coef_
        part = X[:, j] - test.clf_[j].predict(others)
        moved = np.abs(after - before).sum()
        most = N * test.clf_[j].alpha_ * moved / np.linalg.norm(part)
        # Coordinate descent ends within its tolerance of the same optimum.
        assert desparsified_z(samples, distilled, j) == pytest.approx(scores[j], abs=most + 1e-3)
        assert distilled.has_weight[j] or moved < 1e-3
