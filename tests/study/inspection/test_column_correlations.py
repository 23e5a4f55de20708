"""Correlations of columns by distance against NumPy's correlation matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from raysel.study.inspection.column_correlations import chosen_samples, neighbours, partners


@pytest.fixture(name="X")
def rows_of_cells():
    """Six rows of four cells, two of them constant, with correlations along both directions."""
    cells = np.random.default_rng(0).standard_normal((40, 6, 4)).cumsum(axis=1).cumsum(axis=2)
    cells[:, 0, 0] = 3.7
    cells[:, 4, 3] = 0.0
    return cells.reshape(40, 24)


@pytest.fixture
def correlations(X):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.corrcoef(X.T)


def test_lags_are_the_diagonals_of_the_correlation_matrix(X, correlations):
    found = neighbours(X.copy())
    assert len(found.at_lag) == 14
    for lag in range(1, 14):
        diagonal = np.diagonal(correlations, lag)
        assert_allclose(found.at_lag[lag], np.nanmean(diagonal), atol=1e-12)
        assert found.pairs_at_lag[lag] == (~np.isnan(diagonal)).sum()
    off_diagonal = correlations[~np.eye(24, dtype=bool)]
    assert_allclose(found.any_two, np.nanmean(off_diagonal), atol=1e-12)
    assert found.n_samples == 40


def test_score_and_row_ends_match_the_pairs_listed_one_by_one(X, correlations):
    cells = np.arange(24).reshape(6, 4)
    beside, below = (
        (cells[:, :-1].ravel(), cells[:, 1:].ravel()),
        (cells[:-1].ravel(), cells[1:].ravel()),
    )
    pairs = np.concatenate([correlations[beside], correlations[below]])
    found = neighbours(X.copy())
    score, n_pairs = found.score(4)
    assert_allclose(score, np.nanmean(pairs))
    assert n_pairs == (~np.isnan(pairs)).sum()
    assert_allclose(found.within_rows(4)[0], np.nanmean(correlations[beside]))
    assert_allclose(
        found.across_row_ends(4), np.nanmean(correlations[cells[:-1, -1], cells[1:, 0]])
    )


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_correlations_do_not_depend_on_the_unit(X, scale):
    assert_allclose(neighbours(X * scale).at_lag[1:], neighbours(X.copy()).at_lag[1:], atol=1e-12)


def test_chosen_samples_are_spread_over_the_rows_and_finite():
    X = np.arange(5000.0)[:, None].repeat(3, axis=1)
    X[0, 1] = np.nan
    samples, rows = chosen_samples(X)
    assert np.array_equal(samples, X[rows])
    chosen = samples[:, 0]
    assert len(chosen) == 499
    assert chosen[-1] == 4999
    assert set(np.diff(chosen)) <= {10.0, 11.0}
    assert len(chosen_samples(np.zeros((30, 100_000), dtype=np.uint8))[0]) == 30


def test_partners_correlate_only_if_columns_are_related():
    generator = np.random.default_rng(0)
    noise = generator.standard_normal((20, 300))
    # Of 300 columns the best of 10 samples correlates by about 0.8; on the other samples by 0.
    assert abs(partners(noise)) < 0.1
    twice = np.concatenate([noise, noise + 0.1 * generator.standard_normal(noise.shape)], axis=1)
    assert partners(twice[:, generator.permutation(600)]) > 0.9
    assert np.isnan(partners(np.ones((20, 5))))
