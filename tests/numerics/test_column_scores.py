"""Tests of the scores of features with several columns, against exact distributions and draws of noise."""

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.preprocessing import OneHotEncoder, scale

from raysel.baselines.linear_svm import LinearSVM
from raysel.data.targets import degrees_of_freedom
from raysel.numerics.column_scores import joint_scores

N_SINGLE = 40


def ranks_among_noise(m, transform, n_draws=300, degrees=1, scale="effect"):
    """Ranks of a feature of m columns among features of one, all scores being of noise."""
    rng = np.random.default_rng(m)
    origin = np.r_[np.arange(N_SINGLE), np.full(m, N_SINGLE)]
    found = []
    for _ in range(n_draws):
        scores = transform(np.sqrt(rng.chisquare(degrees, N_SINGLE + m)))
        joint = joint_scores(scores, origin, N_SINGLE + 1, degrees=degrees, scale=scale)
        np.testing.assert_array_equal(joint[:N_SINGLE], scores[:N_SINGLE])
        better = (joint[:N_SINGLE] > joint[N_SINGLE]).sum()
        found.append(better if joint[N_SINGLE] > 0 else N_SINGLE)
    return np.array(found)


@pytest.mark.parametrize("m", [2, 5, 10, 30])
@pytest.mark.parametrize(("degrees", "scale"), [(1, "effect"), (1, "squared"), (4, "effect")])
def test_noise_of_many_columns_is_among_the_best_as_rarely_as_that_of_one(m, degrees, scale):
    square = (lambda s: s**2) if scale == "squared" else (lambda s: s)
    ranks = ranks_among_noise(m, square, degrees=degrees, scale=scale)
    assert (ranks == 0).mean() < 0.08  # one in 41 by chance
    assert 0.01 < (ranks < 4).mean() < 0.16  # 0.10 by chance
    assert 0.35 < (ranks < N_SINGLE // 2).mean() < 0.68


@pytest.mark.parametrize("m", [3, 10, 30])
def test_noise_that_a_penalty_sets_to_zero_is_scored_as_rarely_as_one_column(m):
    ranks = ranks_among_noise(m, lambda s: np.maximum(s - 1.3, 0.0))  # one score in five is above 0
    assert (ranks < 4).mean() < 0.16
    assert (ranks < N_SINGLE).mean() < 0.3  # any of thirty columns is above 0 in 0.999


@pytest.mark.parametrize(("m", "mean"), [(3, 4.0), (10, 2.5), (30, 2.0)])
def test_among_many_features_the_score_is_that_which_one_column_exceeds_as_rarely(m, mean):
    n = 4000
    singles = np.sqrt(chi2.isf((np.arange(n) + 0.5) / n, 1))
    scores = np.r_[singles, np.full(m, np.sqrt(mean))]
    origin = np.r_[np.arange(n), np.full(m, n)]
    joint = joint_scores(scores, origin, n + 1, degrees=1, scale="effect")[n]
    exact = np.sqrt(chi2.isf(chi2.sf(m * mean, m), 1))
    assert joint == pytest.approx(exact, rel=0.06)
    assert joint < np.sqrt(m * mean)


def test_features_that_tell_do_not_hide_one_of_many_columns():
    rng = np.random.default_rng(0)
    singles = np.abs(rng.normal(size=60))
    singles[:20] = 30.0  # one in three
    scores, origin = np.r_[singles, np.full(10, 2.5)], np.r_[np.arange(60), np.full(10, 60)]
    joint = joint_scores(scores, origin, 61, degrees=1, scale="effect")
    assert joint[60] > np.max(singles[20:])


def test_scores_follow_their_unit_and_single_missing_and_infinite_ones_stay():
    origin = np.array([0, 2, 2, 3, 4, 4])
    scores = np.array([0.1 + 0.2, 3.0, 4.0, np.inf, np.inf, 0.0])
    joint = joint_scores(scores, origin, 6, degrees=1, scale="effect")
    assert joint[[0, 1, 3, 4, 5]].tolist() == [0.1 + 0.2, 0.0, np.inf, np.inf, 0.0]
    assert 0 < joint[2] < 5
    for kind in ("effect", "squared", "weight"):
        finite = np.minimum(scores, 9.0)
        once = joint_scores(finite, origin, 6, degrees=1, scale=kind)
        np.testing.assert_allclose(
            joint_scores(7 * finite, origin, 6, degrees=1, scale=kind), 7 * once, rtol=1e-12
        )
    assert not joint_scores(np.zeros(6), origin, 6, degrees=1, scale="effect").any()


def test_of_places_the_mean_is_taken():
    joint = joint_scores(
        np.array([5.0, 2.0, 4.0]), np.array([0, 1, 1]), 2, degrees=1, scale="place"
    )
    assert joint.tolist() == [5.0, 3.0]


def test_degrees_of_freedom_are_those_of_the_classes_labels_or_quantities():
    assert degrees_of_freedom(np.array(["a", "b", "c", "a"])) == 2
    assert degrees_of_freedom(np.array([1, 1])) == 1
    assert degrees_of_freedom(np.eye(3, dtype=int)) == 3
    assert degrees_of_freedom(np.array([0.5, 1.5, 2.5])) == 1


def test_a_random_category_of_ten_values_is_not_first_of_a_linear_svm_but_one_that_tells_is():
    first, told = 0, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, category = rng.normal(size=(150, 20)), rng.integers(0, 10, 150)
        origin = np.r_[np.arange(20), np.full(10, 20)]
        columns = OneHotEncoder(sparse_output=False).fit_transform(category[:, None])
        Z = scale(np.hstack([X, columns]))
        for y in (rng.integers(0, 2, 150), (rng.random(150) < 0.9) == (category < 5)):
            svm = LinearSVM(random_state=0).fit(Z, y)
            joint = joint_scores(svm.scores_, origin, 21, degrees=1, scale=svm.score_scale)
            if y.dtype == bool:
                told += joint.argmax() == 20
            else:
                first += joint.argmax() == 20
    assert first <= 3  # 12 by the length of the coefficients
    assert told >= 14
