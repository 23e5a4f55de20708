"""SMML: its optimum against a conic solver, its certificate, its conditions of optimality, its
path, small gammas.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smml_reference import conic_optimum, indicator, objective, optimality_residual, random_problem

from raysel.baselines.linear_svm import LinearSVM
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Modalities
from raysel.data.scaling import ModalityScaler
from raysel.data.synthetic import make_multimodal_classification
from raysel.solvers.smml.barrier import DualBarrier
from raysel.solvers.smml.problem import Certificate
from raysel.solvers.smml.smml import SMML, smml_path

WIDTHS = {"wide": 6, "single": 1, "other": 5}


def make(n=30, widths=WIDTHS, classes=3, seed=0, multilabel=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, sum(widths.values())))
    truth = rng.standard_normal((X.shape[1], classes)) * (rng.random((X.shape[1], 1)) < 0.5)
    scores = X @ truth + 0.5 * rng.standard_normal((n, classes))
    if multilabel:
        return X, (scores > 0.3).astype(int)
    y = scores.argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def problems():
    X, y = make()
    yield "both", X, y, WIDTHS, 0.15, 0.15
    yield "more features than samples", *make(14), WIDTHS | {"last": 20}, 0.1, 0.1
    yield "blocks only", X, y, WIDTHS, 0.2, 0.0
    yield "rows only", X, y, WIDTHS, 0.0, 0.2
    yield "two classes", *make(classes=2), WIDTHS, 0.1, 0.1
    yield "labels", *make(multilabel=True, classes=4), WIDTHS, 0.1, 0.1
    X2, Y2 = make(multilabel=True)
    Y2[:, 0], Y2[:, 2] = 0, 1
    yield "empty label", X2, Y2, WIDTHS, 0.1, 0.1
    X3 = X.copy()
    X3[:, [0, 6]] = 0.0
    X3[:, 8] = 7.3
    yield "zero features", X3, y, WIDTHS, 0.1, 0.1
    scaled = X.copy()
    scaled[:, 7:] *= 1000.0
    yield "a modality x 1000", scaled, y, WIDTHS, 0.1, 0.1
    yield "shifted", X + 30.0, y, WIDTHS, 0.1, 0.1
    yield "one modality", X, y, {"all": X.shape[1]}, 0.1, 0.2
    yield "nearly no penalty", X, y, WIDTHS, 0.002, 0.002
    yield "unbalanced gammas", X, y, WIDTHS, 0.2, 0.002


def _cases():
    for name, X, y, widths, gamma1, gamma2 in problems():
        if X.shape[1] != sum(widths.values()):
            extra = np.random.default_rng(9).standard_normal(
                (len(X), sum(widths.values()) - X.shape[1])
            )
            X = np.hstack([X, extra])  # noqa: PLW2901
        yield pytest.param(X, y, widths, gamma1, gamma2, id=name)


@pytest.mark.parametrize(("X", "y", "widths", "gamma1", "gamma2"), list(_cases()))
def test_it_meets_the_conic_solver(X, y, widths, gamma1, gamma2):
    smml = SMML(widths, gamma1, gamma2, tol=2e-7, max_iter=5000).fit(X, y)
    sizes = list(widths.values())
    own = objective(X, y, sizes, smml.gamma1_, smml.gamma2_, smml.coef_, smml.intercept_)
    optimum, _ = conic_optimum(X, y, sizes, smml.gamma1_, smml.gamma2_)
    assert own <= optimum * (1 + 1e-6)
    assert own == pytest.approx(smml.objective_path_[-1], rel=1e-9)
    assert smml.converged_
    assert smml.coef_.shape == (indicator(y).shape[1], X.shape[1])


@pytest.mark.parametrize(
    ("gamma1", "gamma2", "multilabel"),
    [(0.1, 0.1, False), (0.2, 0.0, True), (0.0, 0.2, True), (0.4, 0.5, False)],
)
def test_the_gap_is_never_below_the_true_one(gamma1, gamma2, multilabel):
    X, y = make(seed=3, multilabel=multilabel)
    sizes = list(WIDTHS.values())
    optimum = None
    for method in ("admm", "reweighted"):
        smml = SMML(WIDTHS, gamma1, gamma2, method=method, tol=1e-9, max_iter=40)
        for _ in smml.iterate(X, y):
            if optimum is None:
                optimum, _ = conic_optimum(X, y, sizes, smml.gamma1_, smml.gamma2_)
            own = objective(X, y, sizes, smml.gamma1_, smml.gamma2_, smml.coef_, smml.intercept_)
            assert smml.dual_gap_ >= own / optimum - 1 - 1e-8


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(8, 30),
    classes=st.integers(2, 4),
    gamma1=st.sampled_from([0.0, 0.03, 0.1, 0.3]),
    gamma2=st.sampled_from([0.0, 0.03, 0.1, 0.3]),
    multilabel=st.booleans(),
)
def test_the_conditions_of_optimality_hold(seed, n, classes, gamma1, gamma2, multilabel):
    gamma1 = gamma1 or (0.05 if gamma2 == 0 else 0.0)
    X, y = make(n, classes=classes, seed=seed, multilabel=multilabel)
    smml = SMML(WIDTHS, gamma1, gamma2, tol=1e-9, max_iter=1000).fit(X, y)
    residual, scale = optimality_residual(X, y, list(WIDTHS.values()), smml)
    assert residual <= 2e-3 * scale


def test_the_solution_is_zero_where_the_fractions_sum_to_one():
    X, y = make(seed=4)
    for gamma1, gamma2 in [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.9, 0.4)]:
        smml = SMML(WIDTHS, gamma1, gamma2)
        assert smml.is_zero_solution(smml.prepare(X, y))
        smml.fit(X, y)
        assert not smml.coef_.any()
        assert smml.dual_gap_ <= 1e-12
    sizes = list(WIDTHS.values())
    smml = SMML(WIDTHS, 0.3, 0.3)
    assert not smml.is_zero_solution(smml.prepare(X, y))
    big = SMML(WIDTHS, 0.5, 0.5).fit(X, y)
    _, W = conic_optimum(X, y, sizes, big.gamma1_, big.gamma2_)
    assert np.abs(W).max() < 1e-6


def test_gammas_are_absolute_when_asked():
    X, y = make()
    fractions = SMML(WIDTHS, 0.1, 0.2, tol=1e-6).fit(X, y)
    absolute = SMML(
        WIDTHS, fractions.gamma1_, fractions.gamma2_, gamma_scale="absolute", tol=1e-6
    ).fit(X, y)
    np.testing.assert_array_equal(fractions.coef_, absolute.coef_)


@pytest.mark.parametrize("multilabel", [False, True])
def test_planted_modalities_and_features_are_found(multilabel):
    widths = {"a": 30, "b": 40, "wide noise": 150, "noise": 30}
    found, rivals = [], []
    for draw in range(4):
        data, planted = make_multimodal_classification(
            widths, {"a": 8, "b": 6}, 150, 4, noise=0.6, multilabel=multilabel, random_state=draw
        )
        X, top = ModalityScaler(widths).fit_transform(data.X), planted.sum()
        smml = SMML(widths, 0.2, 0.2).fit(X, data.y)
        assert smml.modality_scores_[:2].all()  # for every class
        assert not smml.modality_scores_[2:].any()
        found.append(planted[smml.ranking_ <= top].mean())
        rivals.append(
            planted[LinearSVM(penalty="l1", random_state=0).fit(X, data.y).ranking_ <= top].mean()
        )
    assert np.mean(found) >= max(0.95, np.mean(rivals))


def test_multilabel_predictions_are_indicators():
    X, Y = make(multilabel=True, classes=4)
    smml = SMML(WIDTHS, 0.05, 0.05).fit(X, Y)
    predicted = smml.predict(X)
    assert predicted.shape == Y.shape
    np.testing.assert_array_equal(predicted, smml.decision_function(X) > 0)
    assert (predicted == Y).mean() > 0.8
    signed = SMML(WIDTHS, 0.05, 0.05).fit(X, 2 * Y - 1)
    np.testing.assert_array_equal(signed.coef_, smml.coef_)


def test_from_layout_takes_the_modalities():
    assert SMML.from_layout(Modalities(WIDTHS), gamma1=0.3).modalities == WIDTHS
    assert SMML.from_layout(Matrix(3, 4)).modalities is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma1": 0, "gamma2": 0}, "nothing to select by"),
        ({"modalities": {"a": 5, "b": 5}}, "10 columns in total, but X has 12"),
        ({"modalities": {"a": 0, "b": 12}}, "positive whole number"),
        ({"n_features_to_select": 13}, "exceeds the 12 features"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    X, y = make()
    with pytest.raises(ConfigError, match=message):
        SMML(**params).check(X.shape[1])
    with pytest.raises(ConfigError):
        SMML(**params).fit(X, y)


def test_wrong_targets_are_named():
    X, y = make()
    with pytest.raises(DataError):
        SMML().fit(X, np.zeros_like(y))
    with pytest.raises(DataError):
        SMML().prepare(X, np.column_stack([y, y]))


WIDTHS_PATH = {"wide": 12, "single": 1, "other": 15}
GRID = [0.0, *(10.0**k for k in range(-4, 3))]


@pytest.fixture(name="data", scope="module")
def separable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 28))
    return X, (X[:, [0, 3, 20]] + 0.1 * rng.standard_normal((24, 3))).argmax(axis=1)


@pytest.fixture(name="path", scope="module")
def path_of(data):
    return smml_path(
        *data, GRID[1:], GRID, modalities=WIDTHS_PATH, gamma_scale="absolute", tol=1e-3
    )


def test_every_point_is_optimal_within_its_gap(data, path):
    X, y = data
    sizes = list(WIDTHS_PATH.values())
    for row in path.points[2:]:
        for point in row[2:]:  # the conic solver itself is inaccurate where both gammas are tiny
            own = objective(X, y, sizes, point.gamma1, point.gamma2, point.coef, point.intercept)
            assert own == pytest.approx(point.objective, rel=1e-8)
            optimum, _ = conic_optimum(X, y, sizes, point.gamma1, point.gamma2)
            assert point.dual_gap <= 1e-3
            assert own <= optimum * (1 + point.dual_gap + 1e-8)


def test_points_have_the_property_that_their_source_names(data, path):
    X, y = data
    points = [point for row in path.points for point in row]
    count = Counter(point.source for point in points)
    assert count["solved"] < path.n_solves < len(points)
    assert min(count[source] for source in ("solved", "zero", "diagonal", "negligible")) > 0
    for point in points:
        if point.source == "zero":
            assert not point.coef.any()
        if point.source == "diagonal":
            hinges = np.maximum(0, 1 - indicator(y) * (X @ point.coef.T + point.intercept))
            assert hinges.sum() <= 1e-6 * point.objective
            below = [
                p
                for p in points
                if p.source == "diagonal" and p.gamma1 * point.gamma2 == p.gamma2 * point.gamma1
            ]
            assert all(np.array_equal(p.coef, point.coef) for p in below)


def test_solved_and_zero_points_are_the_estimators_fit(data, path):
    X, y = data
    for point in (
        point for row in path.points for point in row if point.source in ("solved", "zero")
    ):
        smml = SMML(WIDTHS_PATH, point.gamma1, point.gamma2, "absolute", tol=1e-3).fit(X, y)
        np.testing.assert_array_equal(point.coef, smml.coef_)
        np.testing.assert_array_equal(point.intercept, smml.intercept_)
        assert (point.objective, point.source == "zero") == (
            smml.objective_path_[-1],
            smml.is_zero_solution(smml.prepare(X, y)),
        )


FRACTIONS = [0.0, *np.geomspace(1e-5, 0.9, 6).tolist()]
PAIRS = [(a, b) for a in FRACTIONS for b in FRACTIONS if a or b]


def fitted(X, prepared, pairs, widths=WIDTHS_PATH, tol=1e-3):
    """What a path over these pairs finds, by pair."""
    models = [SMML(widths, *pair, tol=tol) for pair in pairs]
    found = {}
    for position, source in SMML.fit_path(models, X, prepared):
        model = models[position]
        found[pairs[position]] = (
            model.coef_.tobytes(),
            model.intercept_.tobytes(),
            source,
            model.dual_gap_,
        )
    return found


@pytest.fixture(name="overlapping", scope="module")
def not_separable():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 28))
    return X, (
        X[:, [0, 20]] @ rng.standard_normal((2, 3)) + 2 * rng.standard_normal((40, 3)) > 0.5
    ).astype(int)


@pytest.fixture(name="wholes", scope="module")
def whole_grids(data, overlapping):
    wholes = []
    for X, y in (data, overlapping):
        prepared = SMML(WIDTHS_PATH).prepare(X, y)
        wholes.append((X, prepared, fitted(X, prepared, PAIRS)))
    return wholes


@settings(max_examples=6)
@given(
    pairs=st.lists(st.sampled_from(PAIRS), min_size=1, max_size=8, unique=True),
    which=st.integers(0, 1),
)
def test_a_point_does_not_depend_on_the_others(wholes, pairs, which):
    X, prepared, whole = wholes[which]
    assert fitted(X, prepared, pairs) == {pair: whole[pair] for pair in pairs}


def test_multilabel_targets_have_a_path_too(data):
    X, y = data
    Y = np.column_stack([y == 0, y != 2, np.zeros_like(y)]).astype(int)
    path = smml_path(X, Y, [0.01, 0.3], [0.01, 0.3], modalities=WIDTHS_PATH, tol=1e-3)
    assert all(
        point.coef.shape == (3, 28) and not point.coef[2].any()
        for row in path.points
        for point in row
    )
    assert max(point.dual_gap for row in path.points for point in row) <= 1e-3


@pytest.mark.parametrize(
    ("models", "culprit"),
    [
        ([SMML(method="reweighted")], "method=reweighted has no path"),
        ([SMML(tol=1e-3), SMML(tol=1e-4)], "tol and max_iter cannot vary"),
    ],
)
def test_models_that_cannot_share_a_path_are_refused(models, culprit):
    with pytest.raises(ConfigError, match=culprit):
        SMML.check_path(models)


@pytest.fixture(name="msrcv1", scope="module")
def an_msrcv1_training_set(real_data):
    with np.load(real_data("MSRCv1_6v.npz"), allow_pickle=False) as file:
        views = [file[f"view_{k}"].astype(float) for k in range(6)]
        y = file["y"]
    train = np.arange(len(y)) % 5 > 0
    widths = {f"view_{k}": view.shape[1] for k, view in enumerate(views)}
    X = ModalityScaler(widths).fit_transform(np.hstack(views)[train])
    return widths, X, y[train]


@pytest.mark.slow
def test_the_papers_grid_takes_few_solves(msrcv1):
    widths, X, y = msrcv1
    gammas = [10.0**k for k in range(-5, 6)]
    path = smml_path(X, y, gammas, gammas, modalities=widths, gamma_scale="absolute", tol=1e-3)
    assert path.n_solves <= 25
    assert max(point.dual_gap for row in path.points for point in row) <= 1e-3


def check(seeds, **gammas):
    for seed in seeds:
        X, y, widths, gamma1, gamma2 = random_problem(seed, **gammas)
        smml = SMML(widths, gamma1, gamma2).fit(X, y)
        assert smml.converged_, seed
        assert smml.n_iter_ <= smml.max_iter
        sizes = list(widths.values())
        own = objective(X, y, sizes, smml.gamma1_, smml.gamma2_, smml.coef_, smml.intercept_)
        assert own == pytest.approx(smml.objective_path_[-1], rel=1e-7)
        optimum, _ = conic_optimum(X, y, sizes, smml.gamma1_, smml.gamma2_)
        # Clarabel itself errs by some 1e-6 where both gammas are tiny.
        assert own <= optimum * (1 + smml.dual_gap_ + 3e-6), seed


def test_every_random_problem_ends_within_tol():
    check(range(8))


def test_small_gammas_end_within_tol():
    check(range(1000, 1008), largest=1e-3)


@pytest.mark.slow
def test_many_random_problems_end_within_tol():
    check(range(8, 80))
    check(range(1008, 1040), largest=1e-3)
    check(range(1040, 1080), largest=1e-2)


def test_one_feature_that_tells_nothing():
    # Three labels, one feature, gamma2 so small that ADMM alone ends with a gap of 0.3.
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 1)), rng.integers(0, 2, (25, 3))
    for fraction in (1e-5, 1e-4, 1e-3):
        smml = SMML(gamma1=0, gamma2=fraction).fit(X, Y)
        assert smml.dual_gap_ <= 1e-4
        optimum, _ = conic_optimum(X, Y, [1], 0, smml.gamma2_)
        assert smml.objective_path_[-1] <= optimum * (1 + 1e-4 + 1e-7)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**16))
def test_the_barrier_method_alone_certifies_within_few_steps(seed):
    X, y, widths, gamma1, gamma2 = random_problem(seed)
    smml = SMML(widths, gamma1, gamma2)
    problem = smml.problem(smml.prepare(X, y))
    if problem.is_zero_solution:
        return
    for certificate in islice(DualBarrier(problem, Certificate(problem)).rounds(), 150):
        if certificate.gap <= 1e-5:
            break
    assert certificate.gap <= 1e-5
    found, _ = problem.prepared.coefficients(certificate.solution.W, certificate.solution.bias)
    again = SMML(widths, gamma1, gamma2, tol=1e-5).fit(X, y)  # by ADMM, as a rule
    assert certificate.objective == pytest.approx(again.objective_path_[-1], rel=1.1e-5)
    assert found.shape == again.coef_.shape
