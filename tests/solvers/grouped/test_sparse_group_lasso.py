"""The sparse group lasso against a conic solver, its dual norm, and planted groups."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from raysel.core.errors import ConfigError
from raysel.solvers.grouped.penalty import SparseGroupPenalty
from raysel.solvers.grouped.sparse_group_lasso import SparseGroupLasso, SparseGroupLassoRegressor

GROUPS = {"a": [0, 1, 2], "b": [5, 3, 4, 6], "c": [7, 8]}
OVERLAPPING = {"a": [0, 1, 2, 3], "b": [3, 4, 5], "c": [5, 6, 0]}
TARGETS = ["two classes", "three classes", "labels", "quantity", "quantities"]


def samples(target, seed=0, n=40, d=11):
    """Samples of which the first five features tell the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + rng.normal(size=d)
    Z = X[:, :5] @ rng.normal(size=(5, 3)) + rng.normal(size=(n, 3))
    if target == "two classes":
        return X, (Z[:, 0] > np.median(Z[:, 0])).astype(int)
    if target == "three classes":
        return X, (Z - np.median(Z, axis=0)).argmax(axis=1)
    if target == "labels":
        return X, (np.median(Z, axis=0) < Z).astype(int)
    return X, (Z[:, 0] if target == "quantity" else Z)


def estimator(target, **params):
    """An unfitted model for the target."""
    cls = SparseGroupLassoRegressor if target.startswith("quantit") else SparseGroupLasso
    return cls(**params)


def likelihood(y, Z):
    """The loss as the docstrings have it, and the number of columns of the coefficients."""
    n = len(y)
    if y.dtype.kind == "f":
        Y = y.reshape(n, -1)
        Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
        return cp.sum_squares(Y - Z) / (2 * n)
    if y.ndim == 2 or y.max() == 1:
        return cp.sum(cp.logistic(-cp.multiply(2.0 * y.reshape(n, -1) - 1.0, Z))) / n
    own = cp.sum(cp.multiply(np.eye(3)[y], Z))
    return (cp.sum(cp.log_sum_exp(Z, axis=1)) - own) / n


def optimum(X, y, alpha, l1_ratio, groups=GROUPS):
    """The smallest objective, by a conic solver with a copy of a feature in each of its groups."""
    n, d = X.shape
    k = 3 if y.ndim == 2 or len(np.unique(y)) == 3 else 1
    taken = {j for members in groups.values() for j in members}
    parts = [*groups.values(), *([j] for j in range(d) if j not in taken)]
    weights = [cp.Variable((len(members), k)) for members in parts]
    Z = np.ones((n, 1)) @ cp.Variable((1, k))
    norms = 0
    for members, W in zip(parts, weights, strict=True):
        Z = Z + X[:, members] @ W
        norms += l1_ratio * cp.sum(cp.norm(W, 2, axis=1))
        norms += (1 - l1_ratio) * np.sqrt(len(members)) * cp.norm(W, "fro")
    problem = cp.Problem(cp.Minimize(likelihood(y, Z) + alpha * norms))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("target", TARGETS)
def test_the_objective_is_the_smallest(target, l1_ratio):
    X, y = samples(target)
    params = {"groups": GROUPS, "alpha": 0.05, "alpha_scale": "absolute", "l1_ratio": l1_ratio}
    model = estimator(target, **params, tol=1e-7).fit(X, y)
    smallest = optimum(X, y, 0.05, l1_ratio)
    assert model.converged_
    assert model.objective_path_[-1] == pytest.approx(smallest, rel=1e-6)
    loose = estimator(target, **params, tol=0.1).fit(X, y)
    assert loose.objective_path_[-1] / smallest - 1 <= loose.dual_gap_ + 1e-7 <= 0.1 + 1e-7


@pytest.mark.parametrize("target", ["three classes", "quantity"])
def test_a_feature_in_two_groups_has_a_copy_in_each(target):
    X, y = samples(target)
    params = {"groups": OVERLAPPING, "alpha": 0.05, "alpha_scale": "absolute", "l1_ratio": 0.3}
    model = estimator(target, **params, tol=1e-7).fit(X, y)
    smallest = optimum(X, y, 0.05, 0.3, OVERLAPPING)
    assert model.objective_path_[-1] == pytest.approx(smallest, rel=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_the_solution_is_zero_from_alpha_1_on_and_not_below(target, l1_ratio):
    X, y = samples(target)
    params = {"groups": GROUPS, "l1_ratio": l1_ratio}
    zero, other = (estimator(target, **params, alpha=a).fit(X, y) for a in (1.0, 0.97))
    assert not zero.scores_.any()
    assert other.scores_.any()


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.floats(0, 1),
    st.integers(1, 3),
)
def test_the_dual_norm_is_the_largest_product_with_weights_of_penalty_1(seed, sizes, share, k):
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    penalty = SparseGroupPenalty(sizes, rng.uniform(0.5, 2, len(sizes)), share)
    C = rng.normal(size=(sizes.sum(), k))
    largest = penalty.dual_norms(C).max()
    for _ in range(20):
        W = rng.normal(size=C.shape) * (rng.random(len(C)) < 0.5)[:, None]
        assert np.vdot(C, W) <= largest * penalty.value(W) * (1 + 1e-9)
    # What the proximal step of length 1 / largest leaves of C is nothing, and less leaves some.
    assert np.allclose(penalty.shrink(C, largest * (1 + 1e-9)), 0)
    assert penalty.shrink(C, largest * 0.999).any()


def test_whole_groups_are_dropped_and_features_within_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40))
    y = X[:, :3] @ [1.0, -1.0, 1.0] + X[:, 20:22] @ [1.0, 1.0] + rng.normal(size=200)
    groups = {f"g{i}": list(range(10 * i, 10 * i + 10)) for i in range(4)}
    model = SparseGroupLassoRegressor(groups, alpha=0.3, l1_ratio=0.5).fit(X, y)
    assert list(np.flatnonzero(model.group_scores_)) == [0, 2]
    assert set(range(3)) | {20, 21} == set(np.flatnonzero(model.scores_ > 0.05))


def test_without_groups_it_is_the_l1_penalty_of_scikit_learn():
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[y < 2], y[y < 2]
    alpha = 0.05
    model = SparseGroupLasso(alpha=alpha, alpha_scale="absolute", tol=1e-8).fit(X, y)
    other = LogisticRegression(
        l1_ratio=1, C=1 / (alpha * len(y)), solver="saga", tol=1e-8, max_iter=100_000
    ).fit(X, y)
    assert np.allclose(model.coef_, other.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, other.intercept_, atol=1e-4)


@pytest.mark.parametrize("target", ["three classes", "quantity"])
def test_the_order_of_columns_groups_and_samples_and_shifts_do_not_matter(target):
    X, y = samples(target)
    params = {"alpha": 0.2, "l1_ratio": 0.3, "tol": 1e-9, "max_iter": 5000}
    model = estimator(target, groups=GROUPS, **params).fit(X, y)
    rng = np.random.default_rng(1)
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    place = np.argsort(columns)
    moved = {name: place[members].tolist() for name, members in reversed(GROUPS.items())}
    other = estimator(target, groups=moved, **params)
    other.fit((X + 3.0)[np.ix_(rows, columns)], y[rows])
    assert np.allclose(other.coef_[..., place], model.coef_, atol=1e-5)
    found = dict(zip(other.group_names_, other.group_scores_, strict=True))
    assert np.allclose([found[name] for name in model.group_names_], model.group_scores_, atol=1e-5)


@pytest.mark.parametrize(
    ("groups", "culprit"),
    [({"a": [0, 99]}, "'a'"), ({"b": []}, "'b'"), ({"c": [1, 1]}, "'c'"), ({"d": [0.5]}, "'d'")],
)
def test_wrong_groups_are_refused_by_name(groups, culprit):
    X, y = samples("quantity")
    with pytest.raises(ConfigError, match=culprit):
        SparseGroupLassoRegressor(groups).fit(X, y)
