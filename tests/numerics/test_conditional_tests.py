"""Tests of columns given all others, against ordinary least squares and by generated nulls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

from raysel.numerics.conditional_tests import (
    adjust_for_fdr,
    adjust_for_fwer,
    conditional_test,
    desparsified_test,
    distil_labels,
    independent_columns,
)


def samples(n, d, seed=0, telling=2):
    """Correlated standardised columns of which the first ones tell a quantity, and folds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 0.4 * X[:, :telling].sum(axis=1) + rng.standard_normal(n)
    return X, independent_columns(y[:, None]), list(KFold(5, shuffle=True, random_state=0).split(X))


def least_squares_p(X, y, j):
    """The p value of a column's coefficient by the t test of ordinary least squares."""
    design = np.column_stack([np.ones(len(X)), X])
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ y
    df = len(X) - design.shape[1]
    variance = ((y - design @ weights) ** 2).sum() / df
    t = weights[j + 1] / np.sqrt(variance * inverse[j + 1, j + 1])
    return 2 * stats.t.sf(abs(t), df)


def z_value(p_value):
    """The normal quantile of a two-sided p value."""
    return stats.norm.isf(p_value / 2)


def test_many_samples_of_few_columns_are_tested_as_by_least_squares():
    X, Y, folds = samples(3000, 6, telling=3)
    alpha = distil_labels(X, Y, folds).alpha
    units = np.arange(len(X))
    for j in range(6):
        found = conditional_test(X, Y, np.array([j]), units, alpha=alpha, folds=folds)
        by_ols = least_squares_p(X, Y[:, 0], j)
        assert z_value(found.p_value) == pytest.approx(z_value(by_ols), rel=0.2, abs=0.3)


def test_the_desparsified_lasso_of_few_columns_is_the_t_test_of_least_squares():
    X, Y, folds = samples(400, 6, telling=3)
    distilled = distil_labels(X, Y, folds)
    for j in range(6):
        found = desparsified_test(X, Y, np.array([j]), distilled=distilled, folds=folds)
        by_ols = least_squares_p(X, Y[:, 0], j)
        assert z_value(found.p_value) == pytest.approx(z_value(by_ols), rel=0.1, abs=0.2)


def test_the_desparsified_lasso_of_several_quantities_adds_them_where_noise_is_independent():
    """The chi square of independent quantities is the sum of theirs; the degrees of freedom too."""
    rng = np.random.default_rng(3)
    X, _, folds = samples(5000, 3)
    Y = independent_columns(0.03 * X[:, :1] + rng.standard_normal((5000, 2)))
    found = desparsified_test(
        X, Y, np.array([0]), distilled=distil_labels(X, Y, folds), folds=folds
    )
    singly = [
        desparsified_test(X, y, np.array([0]), distilled=distil_labels(X, y, folds), folds=folds)
        for y in (Y[:, :1], Y[:, 1:])
    ]
    squares = sum(stats.chi2.isf(one.p_value, 1) for one in singly)
    assert stats.chi2.isf(found.p_value, 2) == pytest.approx(squares, rel=0.05)


def test_skewed_columns_cost_the_desparsified_lasso_no_power():
    """A heavy tail of the column makes the measured variance of products large, and not that."""
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * rng.standard_normal((150, 4)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = independent_columns(X[:, :1] + 0.3 * rng.standard_normal((150, 1)))
    folds = list(KFold(5).split(X))
    distilled, first = distil_labels(X, Y, folds), np.array([0])
    units, alpha = np.arange(150), distilled.alpha
    measured = conditional_test(X, Y, first, units, alpha=alpha, folds=folds)
    found = desparsified_test(X, Y, first, distilled=distilled, folds=folds)
    assert found.p_value < 1e-20 < measured.p_value


def test_the_only_group_is_tested_without_other_columns():
    X, Y, folds = samples(200, 1, telling=1)
    found = conditional_test(X, Y, np.array([0]), np.arange(200), alpha=0.1, folds=folds)
    t_test = stats.ttest_1samp(Y[:, 0] * X[:, 0], 0)
    assert found.p_value == pytest.approx(t_test.pvalue, rel=1e-9)
    assert found.share == pytest.approx(np.corrcoef(X[:, 0], Y[:, 0])[0, 1] ** 2)


def test_samples_that_are_repeated_count_once_if_they_are_of_one_unit():
    X, Y, folds = samples(120, 1, telling=0)
    once = conditional_test(X, Y, np.array([0]), np.arange(120), alpha=0.1, folds=folds)
    X3, Y3, units = np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0), np.repeat(np.arange(120), 3)
    thrice = conditional_test(X3, Y3, np.array([0]), units, alpha=0.1, folds=folds)
    careless = conditional_test(X3, Y3, np.array([0]), np.arange(360), alpha=0.1, folds=folds)
    assert thrice.p_value == pytest.approx(once.p_value, rel=1e-9)
    assert careless.p_value < once.p_value


@pytest.mark.parametrize("n_classes", [2, 4])
def test_p_values_of_columns_that_tell_nothing_are_uniform(n_classes):
    p_values = []
    for seed in range(40):
        X, _, folds = samples(80, 6, seed=seed)
        y = np.random.default_rng(1000 + seed).integers(n_classes, size=80)
        Y = independent_columns((y[:, None] == np.arange(n_classes)).astype(float))
        group, units = np.array([0, 1]), np.arange(80)
        p_values.append(conditional_test(X, Y, group, units, alpha=0.05, folds=folds).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_order_and_scale_of_columns_and_names_of_classes_do_not_matter():
    X, Y, folds = samples(150, 8)
    alpha, units = distil_labels(X, Y, folds).alpha, np.arange(150)
    first = conditional_test(X, Y, np.array([0]), units, alpha=alpha, folds=folds)
    order = np.random.default_rng(0).permutation(8)
    moved = np.flatnonzero(order == 0)
    again = conditional_test(-X[:, order], -Y, moved, units, alpha=alpha, folds=folds)
    # Coordinate descent ends within its tolerance of the same optimum.
    assert z_value(again.p_value) == pytest.approx(z_value(first.p_value), abs=0.1)


def test_independent_columns_span_an_indicator_without_its_mean():
    y = np.random.default_rng(0).integers(3, size=50)
    indicator = (y[:, None] == np.arange(3)).astype(float)
    Y = independent_columns(indicator)
    np.testing.assert_allclose(Y.T @ Y / 50, np.eye(2), atol=1e-12)
    centred = indicator - indicator.mean(axis=0)
    np.testing.assert_allclose(Y @ (Y.T @ centred) / 50, centred, atol=1e-12)


def test_adjusted_p_values_decide_as_the_procedures_of_their_authors():
    p = np.random.default_rng(0).random(40) ** 3
    ordered = np.sort(p)
    for level in (0.01, 0.05, 0.1, 0.3):
        steps = np.flatnonzero(ordered <= level * np.arange(1, 41) / 40)
        by_bh = p <= (ordered[steps[-1]] if len(steps) else -1)
        assert ((adjust_for_fdr(p) <= level) == by_bh).all()
        fails = np.flatnonzero(ordered > level / np.arange(40, 0, -1))
        by_holm = p < (ordered[fails[0]] if len(fails) else 2)
        assert ((adjust_for_fwer(p) <= level) == by_holm).all()
