"""Graph net and TV-l1 against a conic solver, with proofs by duality."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from raysel import MaskedVolume
from raysel.base.registry import build_solver
from raysel.solvers.spatial.graph_net import GraphNet, GraphNetRegressor
from raysel.solvers.spatial.tv_l1 import TVL1, TVL1Regressor

N = 30
MASK = np.random.default_rng(2).random((3, 4, 5)) < 0.7
FULL = {shape: np.ones(shape, dtype=bool) for shape in [(4, 6), (3, 4, 3), (20,)]}
METHODS = [GraphNet, GraphNetRegressor, TVL1, TVL1Regressor]
#: Of the conic solver, relative.
ROUNDING = 1e-6


def draw(mask, n_targets=1):
    """Smooth samples of the cells of a mask, and scores that some of the cells make."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(N, *mask.shape))
    X = 3 + 2 * (noise + 0.7 * np.roll(noise, 1, axis=-1))[:, mask]
    scores = X[:, :6] @ rng.normal(size=(6, n_targets)) + rng.normal(size=(N, n_targets))
    return X, scores - np.median(scores, axis=0)


def targets(method, scores):
    """Labels of a classifier, or quantities."""
    if issubclass(method, GraphNet | TVL1):
        return np.squeeze(scores > 0, axis=1).astype(int)
    return scores[:, 0]


def differences(mask):
    """Rows of the differences between neighbours in a mask, by cell."""
    numbers = np.full(mask.shape, -1)
    numbers[mask] = np.arange(mask.sum())
    rows = {}
    for cell in np.argwhere(mask).tolist():
        for axis in range(mask.ndim):
            following = np.array(cell)
            following[axis] += 1
            if following[axis] == mask.shape[axis] or not mask[tuple(following)]:
                continue
            row = np.zeros(mask.sum())
            row[numbers[tuple(following)]], row[numbers[tuple(cell)]] = 1.0, -1.0
            rows.setdefault(tuple(cell), []).append(row)
    return list(map(np.array, rows.values()))


def optimum(method, X, scores, mask, alpha, l1_ratio):
    """Smallest objective and its weights, by Clarabel."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    fits = X @ w + b
    if issubclass(method, GraphNet | TVL1):
        loss = cp.sum(cp.logistic(-cp.multiply(np.where(scores[:, 0] > 0, 1.0, -1.0), fits)))
    else:
        y = scores[:, 0]
        loss = cp.sum_squares((y - y.mean()) / y.std() - fits) / 2
    by_cell = differences(mask)
    if issubclass(method, TVL1 | TVL1Regressor):
        penalty = sum(cp.norm(rows @ w) for rows in by_cell)
    else:
        penalty = cp.sum_squares(np.concatenate(by_cell) @ w) / 2
    penalties = l1_ratio * cp.norm1(w) + (1 - l1_ratio) * penalty
    problem = cp.Problem(cp.Minimize(loss / N + alpha * penalties))
    least = problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9)
    return least, w.value


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mask", [*FULL.values(), MASK], ids=["2-D", "3-D", "1-D", "mask"])
@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.03, 0.5), (0.3, 0.1), (0.1, 1.0)])
def test_the_objective_is_the_conic_solver_s(method, mask, alpha, l1_ratio):
    X, scores = draw(mask)
    y = targets(method, scores)
    least, weights = optimum(method, X, scores, mask, alpha=alpha, l1_ratio=l1_ratio)
    model = method(mask=mask, alpha=alpha, l1_ratio=l1_ratio, alpha_scale="absolute")
    model.set_params(max_iter=5000, tol=1e-7)
    for J in model.iterate(X, y):
        assert model.dual_gap_ >= J / least - 1 - ROUNDING
        assert model.converged_ == (model.dual_gap_ <= model.tol)
    assert model.converged_
    assert least * (1 - ROUNDING) <= J <= least * (1 + ROUNDING)
    np.testing.assert_allclose(model.scores_, np.abs(weights), atol=0.02 * np.abs(weights).max())


@pytest.mark.parametrize("method", METHODS)
def test_the_objective_is_that_of_the_coefficients(method):
    X, scores = draw(MASK)
    y = targets(method, scores)
    model = method(mask=MASK, alpha=0.05, l1_ratio=0.4, alpha_scale="absolute").fit(X, y)
    w, fits = model.coef_.ravel(), X @ model.coef_.ravel() + model.intercept_
    if method in (GraphNet, TVL1):
        loss = np.logaddexp(0, -np.where(y == 1, 1, -1) * fits).mean()
    else:
        loss, w = ((y - fits) ** 2).mean() / (2 * y.var()), w / y.std()
    lengths = [np.linalg.norm(rows @ w) for rows in differences(MASK)]
    penalty = sum(lengths)
    if method in (GraphNet, GraphNetRegressor):
        penalty = sum(length**2 for length in lengths) / 2
    expected = loss + 0.05 * (0.4 * np.abs(w).sum() + 0.6 * penalty)
    assert model.objective_path_[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_solution_is_zero_from_alpha_max_on(method):
    X, scores = draw(FULL[4, 6])
    y = targets(method, scores)
    t = (y - y.mean()) / y.std()
    if method in (GraphNet, TVL1):
        t = y - y.mean()
    alpha_max = np.abs((X - X.mean(axis=0)).T @ t).max() / (N * 0.4)
    model = method((4, 6), l1_ratio=0.4, alpha_scale="absolute", tol=1e-9, max_iter=5000)
    above = model.set_params(alpha=alpha_max * (1 + 1e-9)).fit(X, y)
    assert not above.scores_.any()
    below = model.set_params(alpha=alpha_max * 0.99).fit(X, y)
    if method in (GraphNet, GraphNetRegressor):  # TV binds a cell to its neighbours besides
        assert below.scores_.any()
    share = method((4, 6), alpha=0.99, l1_ratio=0.4, tol=1e-9, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(share.coef_, below.coef_, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_mirrored_or_turned_image_has_mirrored_or_turned_weights(method):
    X, scores = draw(FULL[4, 6])
    y = targets(method, scores)

    def weights(shape, samples):
        model = method(shape, alpha=0.05, l1_ratio=0.3, tol=1e-9, max_iter=10000)
        return model.fit(samples.reshape(N, -1), y).scores_.reshape(shape)

    images = X.reshape(N, 4, 6)
    straight = weights((4, 6), images)
    unit = {"atol": 1e-4 * straight.max()}
    np.testing.assert_allclose(weights((6, 4), images.swapaxes(1, 2)).T, straight, **unit)
    if method in (GraphNet, GraphNetRegressor):
        np.testing.assert_allclose(weights((4, 6), images[:, ::-1])[::-1], straight, **unit)
    signal = weights((24,), images)  # along one axis total variation has no direction
    turned = weights((24,), images.reshape(N, -1)[:, ::-1])
    np.testing.assert_allclose(turned[::-1], signal, **unit)


@pytest.mark.parametrize("name", ["graph_net", "tv_l1"])
def test_classes_and_quantities_are_problems_of_their_own(name):
    X, scores = draw(MASK, n_targets=3)
    layout = MaskedVolume(MASK)
    given = {"alpha": 0.02, "alpha_scale": "absolute", "tol": 1e-7, "max_iter": 5000}
    classes = scores.argmax(axis=1)
    model = build_solver(name, layout, given).fit(X, classes)
    together = build_solver(f"{name}_regressor", layout, given).fit(X, scores)
    labels = build_solver(name, layout, given).fit(X, (scores > 0).astype(int))
    unit = {"atol": 1e-2 * np.abs(model.coef_).max()}
    for r in range(3):
        alone = build_solver(name, layout, given).fit(X, classes == r)
        np.testing.assert_allclose(model.coef_[r], alone.coef_[0], **unit)
        label = build_solver(name, layout, given).fit(X, scores[:, r] > 0)
        np.testing.assert_allclose(labels.coef_[r], label.coef_[0], **unit)
        quantity = build_solver(f"{name}_regressor", layout, given).fit(X, scores[:, r])
        np.testing.assert_allclose(together.coef_[r], quantity.coef_, atol=1e-2)
    np.testing.assert_allclose(model.scores_, np.linalg.norm(model.coef_, axis=0))


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_cell_is_outside_of_the_mask(method):
    X, scores = draw(FULL[4, 6])
    y = targets(method, scores)
    X[:, 9] = 7.0
    mask = np.arange(24).reshape(4, 6) != 9
    whole = method((4, 6), tol=1e-7, max_iter=5000).fit(X, y)
    part = method(mask=mask, tol=1e-7, max_iter=5000).fit(X[:, mask.ravel()], y)
    assert whole.scores_[9] == 0
    np.testing.assert_allclose(whole.scores_[mask.ravel()], part.scores_, rtol=1e-9)
    assert whole.objective_path_[-1] == pytest.approx(part.objective_path_[-1], rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_offset_changes_nothing_and_a_unit_only_the_coefficients(method):
    X, scores = draw(FULL[4, 6])
    y = targets(method, scores)
    model = method((4, 6), alpha=0.05, alpha_scale="absolute", l1_ratio=1.0)
    plain = model.fit(X, y).coef_
    moved = model.fit(X + 1e6, y).coef_
    np.testing.assert_allclose(moved, plain, atol=1e-6 * np.abs(plain).max())
    scaled = model.set_params(alpha=0.05 * 1024).fit(X * 1024, y).coef_
    np.testing.assert_allclose(scaled * 1024, plain, rtol=1e-9)
