"""The path over a grid of gammas: every point within its gap, most of them without being solved."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smml_reference import conic_optimum, indicator, objective

from raysel.core.errors import ConfigError
from raysel.data.scaling import ModalityScaler
from raysel.solvers.smml.smml import SMML, smml_path

WIDTHS = {"wide": 12, "single": 1, "other": 15}
GRID = [0.0, *(10.0**k for k in range(-4, 3))]


@pytest.fixture(name="data", scope="module")
def separable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 28))
    return X, (X[:, [0, 3, 20]] + 0.1 * rng.standard_normal((24, 3))).argmax(axis=1)


@pytest.fixture(name="path", scope="module")
def path_of(data):
    return smml_path(*data, GRID[1:], GRID, modalities=WIDTHS, gamma_scale="absolute", tol=1e-3)


def test_every_point_is_optimal_within_its_gap(data, path):
    X, y = data
    sizes = list(WIDTHS.values())
    for row in path.points[2:]:
        for point in row[2:]:  # the conic solver itself is inaccurate where both gammas are tiny
            own = objective(X, y, sizes, point.gamma1, point.gamma2, point.coef, point.intercept)
            assert own == pytest.approx(point.objective, rel=1e-8)
            optimum, _ = conic_optimum(X, y, sizes, point.gamma1, point.gamma2)
            assert point.dual_gap <= 1e-3
            assert own <= optimum * (1 + point.dual_gap + 1e-8)


def test_what_is_inferred_is_what_its_name_says(data, path):
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
            below = [p for p in points if p.source == "diagonal" and p.gamma1 * point.gamma2 == p.gamma2 * point.gamma1]
            assert all(np.array_equal(p.coef, point.coef) for p in below)


def test_solved_and_zero_points_are_the_estimators_fit(data, path):
    X, y = data
    for point in (point for row in path.points for point in row if point.source in ("solved", "zero")):
        smml = SMML(WIDTHS, point.gamma1, point.gamma2, "absolute", tol=1e-3).fit(X, y)
        np.testing.assert_array_equal(point.coef, smml.coef_)
        np.testing.assert_array_equal(point.intercept, smml.intercept_)
        assert (point.objective, point.source == "zero") == (
            smml.objective_path_[-1],
            smml.is_zero_solution(smml.prepare(X, y)),
        )


FRACTIONS = [0.0, *np.geomspace(1e-5, 0.9, 6).tolist()]
PAIRS = [(a, b) for a in FRACTIONS for b in FRACTIONS if a or b]


def fitted(X, prepared, pairs, widths=WIDTHS, tol=1e-3):
    """What a path over these pairs finds, by pair."""
    models = [SMML(widths, *pair, tol=tol) for pair in pairs]
    found = {}
    for position, source in SMML.fit_path(models, X, prepared):
        model = models[position]
        found[pairs[position]] = (model.coef_.tobytes(), model.intercept_.tobytes(), source, model.dual_gap_)
    return found


@pytest.fixture(name="overlapping", scope="module")
def not_separable():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 28))
    return X, (X[:, [0, 20]] @ rng.standard_normal((2, 3)) + 2 * rng.standard_normal((40, 3)) > 0.5).astype(int)


@pytest.fixture(name="wholes", scope="module")
def whole_grids(data, overlapping):
    wholes = []
    for X, y in (data, overlapping):
        prepared = SMML(WIDTHS).prepare(X, y)
        wholes.append((X, prepared, fitted(X, prepared, PAIRS)))
    return wholes


@settings(max_examples=15)
@given(pairs=st.lists(st.sampled_from(PAIRS), min_size=1, max_size=8, unique=True), which=st.integers(0, 1))
def test_a_point_does_not_depend_on_the_others(wholes, pairs, which):
    X, prepared, whole = wholes[which]
    assert fitted(X, prepared, pairs) == {pair: whole[pair] for pair in pairs}


def test_one_point_is_the_estimator(data):
    X, y = data
    point = smml_path(X, y, [0.1], [0.2], modalities=WIDTHS, tol=1e-8).points[0][0]
    smml = SMML(WIDTHS, 0.1, 0.2, tol=1e-8).fit(X, y)
    assert point.source == "solved"
    assert (point.gamma1, point.gamma2) == (smml.gamma1_, smml.gamma2_)
    np.testing.assert_allclose(point.coef, smml.coef_, atol=1e-3 * np.abs(smml.coef_).max())


def test_multilabel_targets_have_a_path_too(data):
    X, y = data
    Y = np.column_stack([y == 0, y != 2, np.zeros_like(y)]).astype(int)
    path = smml_path(X, Y, [0.01, 0.3], [0.01, 0.3], modalities=WIDTHS, tol=1e-3)
    assert all(point.coef.shape == (3, 28) and not point.coef[2].any() for row in path.points for point in row)
    assert max(point.dual_gap for row in path.points for point in row) <= 1e-3


@pytest.mark.parametrize(
    ("pair", "options", "culprit"),
    [
        ((0.0, 0.0), {}, "gamma1=0 and gamma2=0 leave nothing"),
        ((-1.0, 0.1), {}, "'gamma1' parameter of SMML"),
        ((0.1, np.nan), {}, "'gamma2' parameter of SMML"),
        ((0.1, 0.1), {"gamma_scale": "relative"}, "'gamma_scale' parameter of SMML"),
        ((0.1, 0.1), {"modalities": {"a": 3}}, "3 columns together, X has 28"),
    ],
)
def test_what_the_estimator_refuses_is_refused(data, pair, options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        smml_path(*data, [0.1, pair[0]], [0.1, pair[1]], **options)


@pytest.mark.parametrize(
    ("models", "culprit"),
    [
        ([SMML(method="reweighted")], "method=reweighted has no path"),
        ([SMML(tol=1e-3), SMML(tol=1e-4)], "tol and max_iter cannot vary"),
    ],
)
def test_models_that_share_no_path_are_refused(models, culprit):
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


@pytest.mark.slow
def test_a_grown_grid_is_the_whole_one(msrcv1):
    widths, X, y = msrcv1
    prepared = SMML(widths).prepare(X, y)
    old, new = [0.01, 0.1, 0.4], [0.003, 0.03]
    whole = [(a, b) for a in sorted(old + new) for b in sorted(old + new)]
    first = [pair for pair in whole if {*pair} <= {*old}]
    rest = [pair for pair in whole if pair not in first]
    grown = fitted(X, prepared, first, widths) | fitted(X, prepared, rest[::-1], widths)
    assert grown == fitted(X, prepared, whole, widths)
