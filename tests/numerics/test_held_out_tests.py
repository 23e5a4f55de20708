"""Losses of models on held-out samples with redrawn columns, by their definition and by truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge

from raysel.numerics import held_out_tests
from raysel.numerics.held_out_tests import (
    compare_redrawn,
    mean_is_positive,
    products_beside,
    redraw_columns,
    uses_columns,
)


def correlated(n, d, seed):
    """Normal columns that correlate by a third."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))


def column(model):
    """The predictions of a model as one column."""
    return lambda X: model.predict(X).reshape(len(X), 1)


def p_value_of(model, X, y, columns, *, n_train):
    """P value of some columns by a model of the first samples."""
    model.fit(X[:n_train], y[:n_train])
    X_train, X_test, y_test = X[:n_train], X[n_train:], y[n_train:, None]
    drawn = redraw_columns(X_train, X_test, np.array(columns), np.random.default_rng(0))
    found = compare_redrawn(column(model), y_test, X_test, np.array(columns), drawn)
    others = np.delete(X_test, columns, axis=1)
    return mean_is_positive(products_beside(others, found.effect, found.left, found.noise))


def test_predictions_are_compared_as_defined_one_draw_after_the_other():
    X, rng = correlated(90, 6, 0), np.random.default_rng(1)
    Y = np.stack([X[:, 0] ** 2, X[:, 1]], axis=1) + rng.standard_normal((90, 2))
    model = Ridge().fit(X[:60], Y[:60])
    X, Y, columns = X[60:], Y[60:], np.array([1, 4])
    drawn = rng.standard_normal((7, 30, 2))
    found = compare_redrawn(model.predict, Y, X, columns, drawn)
    for i in range(30):
        own = model.predict(X[[i]])[0]
        others = []
        for values in drawn[:, i]:
            row = X[i].copy()
            row[columns] = values
            others.append(model.predict(row[None])[0])
        redrawn = np.mean([((Y[i] - other) ** 2).sum() for other in others])
        assert found.loss[i] == pytest.approx(redrawn)
        # Each draw against the mean of the others, which it does not enter.
        products = [
            (own - others[b]) @ (Y[i] - np.mean(others[:b] + others[b + 1 :], axis=0))
            for b in range(7)
        ]
        product = found.effect[i] @ found.left[i] - found.noise[i]
        assert product == pytest.approx(np.mean(products))


def test_products_are_half_the_increase_of_the_loss_up_to_what_the_draws_decide():
    """Conditional importance, where the draws are many and the columns vary as they do."""
    X, rng = independent(4000, 4, 0)
    model = LinearRegression().fit(X, X @ [1.0, 0.5, 0.0, 0.0] + rng.standard_normal(4000))
    X, rng = independent(4000, 4, 1)
    y = (X @ [1.0, 0.5, 0.0, 0.0] + rng.standard_normal(4000))[:, None]
    drawn = rng.standard_normal((40, 4000, 1))
    found = compare_redrawn(column(model), y, X, np.array([0]), drawn)
    increase = found.loss - (y[:, 0] - model.predict(X)) ** 2
    products = products_beside(X[:, 1:], found.effect, found.left, found.noise)
    assert products.mean() == pytest.approx(increase.mean() / 2, rel=0.1)
    assert increase.mean() == pytest.approx(2.0, rel=0.1)  # twice the squared coefficient


def test_what_the_others_tell_linearly_changes_no_product():
    X, rng = independent(300, 4, 0)
    effect, left = rng.standard_normal((2, 300, 1))
    before = products_beside(X, effect, left, np.zeros(300))
    after = products_beside(X, effect + 5 * X[:, [1]], left - 7 * X[:, [2]], np.zeros(300))
    assert np.corrcoef(before, after)[0, 1] > 0.99


def independent(n, d, seed):
    """Independent normal columns, and the generator that drew them."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng


def test_redrawn_columns_have_the_moments_of_the_true_ones_and_are_new():
    X = correlated(3000, 4, 0)
    columns = np.array([1, 2])
    drawn = redraw_columns(X[:1500], X[1500:], columns, np.random.default_rng(0))
    found = []
    for values in drawn:
        changed = X[1500:].copy()
        changed[:, columns] = values
        found.append(np.corrcoef(changed, rowvar=False))
    mean, true = np.mean(found, axis=0), 0.49 / 1.49
    np.testing.assert_allclose(mean[np.triu_indices(4, 1)], true, atol=0.06)
    new = np.corrcoef(drawn[0, :, 0], X[1500:, 1])[0, 1]
    assert new < 0.4  # what the others tell of it, and no more


def test_without_other_columns_the_values_change_places():
    X = correlated(50, 1, 0)
    drawn = redraw_columns(X[:30], X[30:], np.array([0]), np.random.default_rng(0))
    for values in drawn:
        np.testing.assert_allclose(np.sort(values[:, 0]), np.sort(X[30:, 0]))


@pytest.mark.parametrize("columns", [[3], [3, 4]])
@pytest.mark.parametrize("penalty", [1.0, 200.0])
def test_p_values_of_columns_that_follow_telling_ones_are_uniform(columns, penalty):
    """A strong penalty gives them weight, since they correlate with the telling ones."""
    p_values = []
    for seed in range(150):
        X, rng = correlated(400, 6, seed), np.random.default_rng(1000 + seed)
        y = X[:, :2].sum(axis=1) + rng.standard_normal(400)
        p_values.append(p_value_of(Ridge(penalty), X, y, columns, n_train=100))
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_an_interaction_is_found():
    X, rng = correlated(500, 5, 0), np.random.default_rng(1)
    y = np.sign(X[:, 0] * X[:, 1]) + 0.3 * rng.standard_normal(500)
    model = HistGradientBoostingRegressor(random_state=0)
    p_values = [p_value_of(model, X, y, [j], n_train=350) for j in range(5)]
    assert max(p_values[:2]) < 1e-4
    assert min(p_values[2:]) > 0.01


def test_columns_are_used_if_and_only_if_predictions_change_with_them():
    X = correlated(40, 3, 0)
    assert uses_columns(lambda Z: Z[:, [0]], X, np.array([0, 2]))
    assert not uses_columns(lambda Z: Z[:, [0]], X, np.array([1, 2]))


def test_how_many_samples_are_predicted_at_once_changes_nothing(monkeypatch):
    X, y = correlated(40, 3, 0), np.zeros((40, 1))
    drawn = np.random.default_rng(0).standard_normal((20, 40, 1))
    whole = compare_redrawn(lambda Z: Z[:, [0]], y, X, np.array([0]), drawn)
    monkeypatch.setattr(held_out_tests, "_MOST_CELLS", 3 * X.size)
    parts = compare_redrawn(lambda Z: Z[:, [0]], y, X, np.array([0]), drawn)
    np.testing.assert_array_equal(parts.loss, whole.loss)


def test_the_mean_is_tested_one_sided_and_sums_that_do_not_vary_tell_nothing():
    sums = np.random.default_rng(0).standard_normal(30) + 0.4
    t = sums.mean() / (sums.std(ddof=1) / np.sqrt(30))
    assert mean_is_positive(sums) == pytest.approx(stats.t.sf(t, 29))
    assert mean_is_positive(-sums) == pytest.approx(1 - stats.t.sf(t, 29))
    assert mean_is_positive(np.zeros(30)) == 1.0
