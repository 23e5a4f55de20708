"""SMR against the paper's equations written out, the laws of its objective, and scikit-learn's
contract.
"""

import numpy as np
import pytest
import smr_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_digits
from smr_reference import flat, images_with_signal

from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.numerics.least_squares import least_squares_data
from raysel.numerics.rankings import ranks
from raysel.numerics.reweighting import Penalty
from raysel.solvers.smr.smr import SMR
from raysel.solvers.smr.updates import objective


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


# --- the algorithm --------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_the_identity_start_is_the_papers_at_every_rank(rank):
    images, y = images_with_signal(np.random.default_rng(3), 5, 6, 40, 2)
    alpha, zeta = 0.5, 1e-8
    steps = reference.half_steps(
        images, y, np.tile(np.eye(6, rank), (2, 1, 1)), np.ones((5, 6)), alpha, 1.0, zeta, 8
    )
    smr = SMR(
        (5, 6), alpha, rank, zeta=zeta, init="identity", alpha_scale="absolute", max_iter=4, tol=0
    )
    smr.fit(flat(images), y)
    expected = [reference.objective(P, images, y, alpha, 1.0, zeta) for P in steps[1::2]]
    assert_allclose(smr.objective_path_, expected, rtol=1e-10)
    energy = (np.array(steps[-1]) ** 2).sum(axis=0)
    assert_allclose(smr.scores_, np.sqrt(energy).ravel(), rtol=1e-5, atol=1e-9)
    assert_allclose(smr.coef_, (steps[-1][1] - steps[-1][0]).reshape(1, -1), rtol=1e-5, atol=1e-9)


@st.composite
def problems(draw):
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    c = draw(st.integers(2, 4))
    return {
        "shape": (m, n),
        "c": c,
        "n_samples": draw(st.integers(c, 3 * m * n + c)),
        "rank": draw(st.integers(1, min(m, n))),
        "p": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "alpha": 10 ** draw(st.floats(-3, 0.5)),
        "init": draw(st.sampled_from(["multistart", "identity", "random"])),
        "constant": draw(st.floats(0, 1)),
        "seed": draw(st.integers(0, 10**6)),
    }


@settings(max_examples=40)
@given(problems())
def test_no_iteration_raises_the_objective(problem):
    rng = np.random.default_rng(problem["seed"])
    m, n = problem["shape"]
    images, y = images_with_signal(rng, m, n, problem["n_samples"], problem["c"])
    X = flat(images)
    X[:, rng.random(m * n) < problem["constant"]] = 3.0
    parameters = {name: problem[name] for name in ("shape", "rank", "p", "alpha", "init")}
    smr = SMR(**parameters, max_iter=15, tol=0, random_state=0).fit(X, y)
    path = smr.objective_path_
    assert np.all(np.diff(path) <= 1e-9 * path[:-1])
    # What it reports is J of what it ends with, found anew from the raw samples.
    P = smr.coef_.reshape(-1, m, n)
    P = P if len(P) > 1 else np.concatenate([-P, P]) / 2
    data, p = least_squares_data(X, y), problem["p"]
    alpha = problem["alpha"] * (data.penalty_unit(p) * data.scale**p or 1.0)
    zeta = smr.zeta * (data.coefficient_unit() / data.scale) ** 2
    J = reference.objective(P, X.reshape(-1, m, n), y, alpha, p, zeta)
    if (
        problem["c"] > 2 or problem["init"] != "random"
    ):  # two classes from random starts are not mirror images
        assert path[-1] == pytest.approx(J, rel=1e-9)


def test_ls21_reaches_the_optimum_that_a_dual_certificate_proves():
    # The dual of min ||Y - P X||^2 + alpha sum_f ||P_f|| is max <N, Y> - ||N||^2 / 4 over ||N x_f||
    # <= alpha.
    rng = np.random.default_rng(0)
    for n_samples in (15, 80):
        images, y = images_with_signal(rng, 4, 6, n_samples, 3)
        smr = SMR((4, 6), alpha=0.3, rank=4, zeta=1e-14, max_iter=3000, tol=0).fit(flat(images), y)
        X = flat(images) - flat(images).mean(axis=0)
        Y = reference.one_hot(y) - reference.one_hot(y).mean(axis=0)
        alpha = 0.3 * 2 * np.linalg.norm(X.T @ Y, axis=1).max()
        residual = Y - X @ smr.coef_.T
        N = 2 * residual * min(1.0, alpha / np.linalg.norm(2 * X.T @ residual, axis=1).max())
        bound = (N * Y).sum() - (N**2).sum() / 4
        assert bound <= smr.objective_path_[-1] <= bound * (1 + 1e-4)
        assert (smr.scores_ < 1e-4 * smr.scores_.max()).any()  # an optimum with zeros, found
        # No start of the alternation at full rank goes below it.
        other = SMR(
            (4, 6), alpha=0.3, rank=4, zeta=1e-14, init="random", max_iter=200, random_state=1
        )
        assert other.fit(flat(images), y).objective_path_[-1] >= bound


def test_below_alpha_max_something_is_selected_and_above_zero_is_optimal():
    images, y = images_with_signal(np.random.default_rng(2), 5, 6, 30, 3)
    X, Y = (
        flat(images) - flat(images).mean(axis=0),
        reference.one_hot(y) - reference.one_hot(y).mean(axis=0),
    )
    J_zero = (Y**2).sum()

    def solution(alpha, init):
        return SMR((5, 6), alpha=alpha, rank=5, zeta=1e-14, init=init, max_iter=2000, tol=1e-9).fit(
            flat(images), y
        )

    prepared = SMR().prepare(flat(images), y)
    # At zero the subgradient condition of every cell, ||2 X_f' Y|| <= alpha, holds from alpha_max
    # on and not before.
    assert prepared.alpha_max == pytest.approx(max(2 * np.linalg.norm(x @ Y) for x in X.T))
    for init in ("multistart", "identity"):
        below, above = solution(0.95, init), solution(1.05, init)
        assert below.objective_path_[-1] < J_zero * (1 - 1e-4)
        assert below.scores_.max() > 1e-3
        assert above.objective_path_[-1] >= J_zero
        assert above.scores_.max() < 1e-4
    for p, alpha, null in [(1.0, 0.999, False), (1.0, 1.0, True), (0.5, 2.0, False)]:
        assert SMR(alpha=alpha, p=p).is_zero_solution(prepared) is null
    assert SMR(alpha=1.001 * prepared.alpha_max, alpha_scale="absolute").is_zero_solution(prepared)


# --- invariances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("n_samples", [12, 70])
def test_scale_law(p, n_samples):
    images, y = images_with_signal(np.random.default_rng(1), 5, 4, n_samples, 3)
    X, factor, zeta, alpha = flat(images), 7.3, 1e-6, 0.8
    data, scaled = least_squares_data(X, y), least_squares_data(factor * X, y)
    P = np.random.default_rng(2).standard_normal((3, 20))
    # Of the features as stored and as given: X times s is alpha times s^p and zeta over s^2.
    stored = Penalty(alpha / data.scale**p, p, zeta * data.scale**2)
    J = objective(P * data.scale, data, *stored)
    assert reference.objective(P.reshape(3, 5, 4), images, y, alpha, p, zeta) == pytest.approx(
        J, rel=1e-12
    )
    by = factor * data.scale / scaled.scale
    other = objective(P * data.scale / by, scaled, stored.alpha * by**p, p, stored.zeta / by**2)
    assert other == pytest.approx(J, rel=1e-12)
    # From the default start the whole trajectory obeys it; 16 and its root round nothing.
    one = SMR((5, 4), alpha, 2, p, zeta, alpha_scale="absolute", tol=0, max_iter=5).fit(X, y)
    other = SMR(
        (5, 4), alpha * 16**p, 2, p, zeta / 16**2, alpha_scale="absolute", tol=0, max_iter=5
    )
    assert_allclose(other.fit(16 * X, y).objective_path_, one.objective_path_, rtol=1e-12)


def spearman(one, other):
    return 1 - 6 * ((ranks(one) - ranks(other)).astype(float) ** 2).sum() / (
        len(one) * (len(one) ** 2 - 1)
    )


@pytest.mark.parametrize("p", [1.0, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("init", "rank"), [("multistart", 2), ("multistart", 8), ("identity", 2), ("random", 2)]
)
@settings(max_examples=8)
@given(power=st.integers(-40, 40), decimal=st.floats(-12, 12))
def test_no_factor_of_the_data_changes_the_ranking(init, rank, p, power, decimal, digits):
    X, y = digits[0][:120], digits[1][:120]
    smr = SMR((8, 8), alpha=0.05, rank=rank, p=p, init=init, random_state=0, tol=0, max_iter=10)
    one = clone(smr).fit(X, y)
    # A power of two rounds nothing.
    two = clone(smr).fit(2.0**power * X, y)
    assert_array_equal(two.ranking_, one.ranking_)
    assert_array_equal(two.scores_ * 2.0**power, one.scores_)
    factor = 10**decimal
    ten = clone(smr).fit(factor * X, y)
    assert_allclose(ten.objective_path_, one.objective_path_, rtol=1e-8)
    assert_allclose(ten.scores_ * factor, one.scores_, rtol=1e-6, atol=1e-9 * one.scores_.max())
    # Equal but for the order of cells that rounding alone tells apart.
    distinct = one.scores_ > 1e-4 * one.scores_.max()
    assert spearman(ten.scores_[distinct], one.scores_[distinct]) > 1 - 1e-9


@pytest.mark.parametrize("init", ["multistart", "identity", "random"])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_values_near_the_limits_of_double_precision(init, p, digits):
    X, y = digits[0][:60], digits[1][:60]
    smr = SMR((8, 8), alpha=0.05, rank=2, p=p, init=init, random_state=0, tol=0, max_iter=3)
    one = clone(smr).fit(X, y)
    for power in (-900, 900):  # the squares of such values are 0 or infinite
        other = clone(smr).fit(2.0**power * X, y)
        assert_array_equal(other.ranking_, one.ranking_)
        assert_array_equal(other.objective_path_, one.objective_path_)
    # Varying cells that tell nothing of the classes have no unit.
    X = np.tile([[0.0, 1.0], [1.0, 0.0]], (2, 1))
    smr = SMR((1, 2), p=p, init=init, max_iter=3).fit(X, [0, 0, 1, 1])
    assert_array_equal(smr.coef_, 0)


# --- the start ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_digits(digits):
    X, y = digits
    chosen = np.concatenate([np.flatnonzero(y == digit)[:20] for digit in range(10)])
    return X[chosen], y[chosen], (8, 8)


@pytest.fixture
def small_orl(real_data):
    with np.load(real_data("ORL.npz")) as file:
        X, y = file["X"].astype(float) / 255.0, file["y"]
    chosen = np.concatenate([np.flatnonzero(y == person)[:10] for person in np.unique(y)[:10]])
    return flat(X[chosen]), y[chosen], X.shape[1:]


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    images, y = images_with_signal(rng, 12, 10, 60, 6)
    return flat(images), y, (12, 10)


@pytest.mark.parametrize(
    ("name", "p", "alpha", "rank"),
    [
        ("small_digits", 0.25, 0.05, 1),
        ("small_digits", 0.25, 0.05, 2),
        ("small_digits", 0.5, 0.05, 1),
        ("small_digits", 0.5, 0.2, 1),
        ("small_digits", 0.25, 0.05, 8),
        ("planted", 0.25, 0.05, 2),
        ("planted", 0.5, 0.05, 2),
        ("planted", 0.25, 0.2, 1),
        ("planted", 1.0, 0.01, 1),
        ("small_orl", 0.5, 0.05, 2),
        ("small_orl", 1.0, 0.003, 1),
    ],
)
def test_the_default_start_ends_within_few_percent_of_the_others(name, p, alpha, rank, request):
    X, y, shape = request.getfixturevalue(name)
    smr = SMR(shape, alpha, rank, p, tol=0, max_iter=50, random_state=0)
    J = {
        init: clone(smr).set_params(init=init).fit(X, y).objective_path_[-1]
        for init in ("identity", "random")
    }
    most = (
        1.02 if p < 1.0 else 1.03
    )  # of p = 1 neither of these starts is among those that are tried
    assert smr.fit(X, y).objective_path_[-1] <= most * min(J.values())


def test_the_start_of_the_lowest_objective_is_fitted():
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 6, 5, 4))
    X[:, :3, :2, :2] += 0.5 * y[:, None, None, None]
    X = X.reshape(60, -1)
    fits = [SMR((6, 5, 4), rank=3, max_iter=20, tol=0).fit(X, y)]
    for _ in range(4):
        fits.append(fits[-1].another_start().fit(X, y))
    ends = [fit.objective_path_[-1] for fit in fits]
    best = np.argmin(ends)
    assert ends[best] < 0.995 * ends[0]  # or nothing is tested
    several = SMR((6, 5, 4), rank=3, max_iter=20, tol=0, n_init=5).fit(X, y)
    assert_array_equal(several.objective_path_, fits[best].objective_path_)
    assert_array_equal(several.coef_, fits[best].coef_)
    further = fits[-1].another_start().fit(X, y)
    assert_array_equal(several.another_start().fit(X, y).coef_, further.coef_)


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_the_default_start_draws_nothing_from_outside(p, digits):
    fits = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002 - the global state is what must not matter
        smr = SMR((8, 8), rank=2, p=p, max_iter=3, tol=0, random_state=seed)
        fits.append(smr.fit(digits[0][:100], digits[1][:100]))
    assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_two_classes_keep_both_columns_of_the_targets(digits):
    X, y = digits
    X, y = X[y < 2], y[y < 2]
    smr = SMR((8, 8), rank=2).fit(X, y)
    assert smr.coef_.shape == (1, 64)
    assert smr.score(X, y) > 0.98
    varying = np.ptp(X, axis=0) > 0  # P of the classes is +-coef_/2
    assert_allclose(smr.scores_[varying], np.abs(smr.coef_[0, varying]) / np.sqrt(2), atol=1e-9)


def test_the_intercept_makes_predictions_average_to_the_targets(digits):
    X, y = digits
    smr = SMR((8, 8), rank=3).fit(X, y)
    assert_allclose(smr.decision_function(X).mean(axis=0), np.bincount(y) / len(y))


def test_random_start_follows_random_state(digits):
    X, y = digits
    paths = [
        SMR((8, 8), rank=2, init="random", random_state=s, max_iter=3).fit(X, y).objective_path_
        for s in (0, 0, 1)
    ]
    assert_array_equal(paths[0], paths[1])
    assert paths[0][-1] != paths[2][-1]


class StopAfter:
    """A callback that asks to stop after some iterations, and remembers what it saw."""

    def __init__(self, n_iterations):
        self.n_iterations = n_iterations
        self.scores = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) >= self.n_iterations


def test_callbacks_see_each_iteration_and_can_stop_it(digits, capsys):
    X, y = digits
    monitor, stop = ScoringMonitor(scoring="accuracy"), StopAfter(3)
    smr = SMR((8, 8), rank=2, tol=0, max_iter=10)
    smr.set_callbacks(ProgressBar(), monitor, stop).fit(X, y)
    assert smr.n_iter_ == 3
    assert stop.scores[-1] == smr.score(X, y)
    log = monitor.get_logs().data_as_pandas
    assert_allclose(log.loc[log.task_name == "iteration", "accuracy"], stop.scores)
    capsys.readouterr()


# --- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"rank": 9}, "rank=9 .* 8 x 8.* at most 8"),
        ({"shape": (8, 9)}, r"8 x 9 = 72 cells.* 64 features"),
        ({"shape": (4, 4, 5)}, r"4 x 4 x 5 = 80 cells.* 64 features"),
        (
            {"shape": (4, 4, 4), "rank": 17},
            "rank=17 .*all sides but the longest of 4 x 4 x 4: take at most 16",
        ),
        ({"shape": (-8, -8)}, "list of sides"),
        ({"shape": None, "rank": 2}, "rank=2.* vectors have no rank"),
        ({"n_features_to_select": 65}, "65 exceeds the 64"),
        ({"init": "identity", "n_init": 2}, 'n_init=2: init="identity" is one start'),
    ],
)
def test_wrong_parameters_are_named(parameters, message, digits):
    smr = SMR(**({"shape": (8, 8)} | parameters))
    with pytest.raises(ConfigError):
        smr.check(64)
    with pytest.raises(ValueError, match=message):
        smr.fit(*digits)


def test_one_class_is_refused_and_constant_samples_have_zero_scores(digits):
    X, _ = digits
    with pytest.raises(DataError):
        SMR((8, 8)).fit(X, np.zeros(len(X)))
    y = np.arange(10) % 2
    for parameters in (
        {"rank": 1},
        {"rank": 2},
        {"rank": 1, "init": "identity"},
        {"rank": 1, "p": 0.5},
    ):
        smr = SMR((2, 2), **parameters).fit(np.full((10, 4), 0.1), y)
        assert smr.is_zero_solution(smr.prepare(np.full((10, 4), 0.1), y))
        assert_array_equal(smr.scores_, 0)
        assert_allclose(smr.objective_path_[-1], 5.0, rtol=1e-3)  # the loss of the intercepts alone


def test_the_layout_supplies_the_shape():
    assert SMR.from_layout(Matrix(4, 6), rank=2).shape == (4, 6)
    assert SMR.from_layout(Tensor((24,)), alpha=0.5).shape == (24, 1)
    with pytest.raises(ConfigError, match=r"dataset\.shape"):
        SMR.from_layout(Modalities({"a": 4, "b": 2}))


# --- real data ------------------------------------------------------------------------------------
