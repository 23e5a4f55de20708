"""2DLDA against dense generalised eigenproblems, scikit-learn's LDA, and the figures of ORL and
USPS.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from raysel.base.registry import build_solver
from raysel.baselines.linear_projections import LDA
from raysel.baselines.two_dimensional_lda import MultilinearLDA, TwoDimensionalLDA
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Tensor


def draw(seed, shape=(5, 4), n=40, c=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    d = shape[0] * shape[1]
    return (
        1.5 * rng.standard_normal((c, d))[y]
        + rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / 2,
        y,
    )


def by_eig(X, y, shape, sizes, shrinkage, passes):
    """L and R by unsymmetric eigenproblems of sums over samples, as printed."""
    A = X.reshape(-1, *shape)
    mean, means = A.mean(axis=0), {r: A[y == r].mean(axis=0) for r in set(y)}

    def top(parts_within, parts_between, size):
        W, B = sum(D @ D.T for D in parts_within), sum(E @ E.T for E in parts_between)
        W = (1 - shrinkage) * W + shrinkage * np.trace(W) / len(W) * np.eye(len(W))
        values, vectors = scipy.linalg.eig(np.linalg.solve(W, B))
        chosen = vectors[:, np.argsort(-values.real)[:size]].real
        return chosen / np.linalg.norm(chosen, axis=0)

    within = [x - means[r] for x, r in zip(A, y, strict=True)]
    between = [np.sqrt((y == r).sum()) * (means[r] - mean) for r in means]
    R = np.eye(shape[1], sizes[1])
    for _ in range(passes):
        L = top([D @ R for D in within], [E @ R for E in between], sizes[0])
        R = top([D.T @ L for D in within], [E.T @ L for E in between], sizes[1])
    return L, R


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 3),
    columns=st.integers(1, 3),
    shrinkage=st.sampled_from([1e-3, 0.1, 0.7]),
    passes=st.integers(1, 3),
)
def test_each_pass_solves_the_printed_eigenproblems(seed, k, columns, shrinkage, passes):
    X, y = draw(seed, c=4)
    model = TwoDimensionalLDA((5, 4), (k, columns), shrinkage, passes).fit(X, y)
    U, expected = (
        model.projections_[0],
        np.kron(*by_eig(X, y, (5, 4), (k, columns), shrinkage, passes)),
    )
    np.testing.assert_allclose(U * np.sign((U * expected).sum(axis=0)), expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(U, axis=0), 1, atol=1e-12)
    assert (U[np.abs(U).argmax(axis=0), np.arange(k * columns)] > 0).all()
    Z = np.stack([(x - X.mean(axis=0)) @ U for x in X])
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-9)
    np.testing.assert_array_equal(
        model.predict(X[::2]), KNeighborsClassifier(1).fit(Z, y).predict(Z[::2])
    )
    total = (Z**2).sum()
    between = sum((y == r).sum() * (Z[y == r].mean(axis=0) ** 2).sum() for r in set(y))
    assert model.objective_path_[0] == pytest.approx(between / total, rel=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), shape=st.sampled_from([None, (9, 1), (1, 9)]))
def test_vectors_are_scikit_learns_lda(seed, shape):
    X, y = draw(seed, (9, 1), n=60, c=4)
    components = {None: 3, (9, 1): (3, 1), (1, 9): (1, 3)}[shape]
    U = TwoDimensionalLDA(shape, components, shrinkage=1e-10).fit(X, y).projections_[0]
    expected = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_[:, :3]
    assert np.rad2deg(scipy.linalg.subspace_angles(U, expected)).max() < 1e-4
    np.testing.assert_allclose(
        U, TwoDimensionalLDA(shape, shrinkage=1e-10).fit(X, y).projections_[0]
    )


@pytest.mark.parametrize("n", [60, 20])  # fewer samples than features
@pytest.mark.parametrize("shrinkage", [0.01, 0.5])
def test_vectors_are_lda_with_the_same_shrinkage(n, shrinkage):
    X, y = draw(1, (30, 1), n=n, c=4)
    model, lda = (
        TwoDimensionalLDA(shrinkage=shrinkage).fit(X, y),
        LDA(shrinkage=shrinkage).fit(X, y),
    )
    U = lda.projections_[0] / np.linalg.norm(lda.projections_[0], axis=0)
    np.testing.assert_allclose(model.projections_[0], U, atol=1e-7)
    assert model.ranks_.tolist() == [[min(30, n - 1), 1]]


def test_each_axis_of_tensors_solves_the_eigenproblem_of_the_kronecker_product_of_the_others():
    shape, sizes, shrinkage = (4, 3, 3), (2, 2, 3), 0.1
    X, y = draw(7, (12, 3), n=50, c=4)
    A = X.reshape(-1, *shape)
    means = np.array([A[y == r].mean(axis=0) for r in range(4)])
    within, between = (
        A - means[y],
        (means - A.mean(axis=0)) * np.sqrt(np.bincount(y))[:, None, None, None],
    )
    factors = [np.eye(side, size) for side, size in zip(shape, sizes, strict=True)]
    for mode in (0, 1, 2, 0, 1, 2):
        others = np.kron(*(factors[q] for q in range(3) if q != mode))
        W, B = (
            sum(
                np.moveaxis(D, mode, 0).reshape(shape[mode], -1)
                @ others
                @ others.T
                @ np.moveaxis(D, mode, 0).reshape(shape[mode], -1).T
                for D in part
            )
            for part in (within, between)
        )
        W = (1 - shrinkage) * W + shrinkage * np.trace(W) / len(W) * np.eye(len(W))
        values, vectors = scipy.linalg.eig(np.linalg.solve(W, B))
        chosen = vectors[:, np.argsort(-values.real)[: sizes[mode]]].real
        factors[mode] = chosen / np.linalg.norm(chosen, axis=0)
    expected = np.kron(np.kron(factors[0], factors[1]), factors[2])
    model = MultilinearLDA(shape, sizes, shrinkage, passes=2).fit(X, y)
    U = model.projections_[0]
    np.testing.assert_allclose(U * np.sign((U * expected).sum(axis=0)), expected, atol=1e-6)
    flat = MultilinearLDA((*shape[:2], 1, 3), (2, 2, 1, 3), shrinkage, passes=2).fit(X, y)
    np.testing.assert_allclose(flat.scores_, model.scores_, atol=1e-9)


def test_all_components_are_a_rotation_if_the_within_class_scatter_is_the_identity():
    X, y = draw(2)
    model = TwoDimensionalLDA((5, 4), (5, 4), shrinkage=1.0).fit(X[:30], y[:30])
    np.testing.assert_allclose(
        model.projections_[0].T @ model.projections_[0], np.eye(20), atol=1e-9
    )
    np.testing.assert_array_equal(
        model.predict(X[30:]), KNeighborsClassifier(1).fit(X[:30], y[:30]).predict(X[30:])
    )
    other = TwoDimensionalLDA((5, 4), (5, 4), shrinkage=0.1).fit(X[:30], y[:30])
    assert np.linalg.matrix_rank(other.projections_[0]) == 20


def test_too_many_components_and_wrong_shapes_are_refused():
    X, y = draw(3)
    for wrong in [(6, 4), (5, 5), (6, 5), 5]:
        with pytest.raises(
            ConfigError, match=r"does not fit samples of shape \(5, 4\): give at most \(5, 4\)"
        ):
            TwoDimensionalLDA((5, 4), wrong).fit(X, y)
    for wrong in [(1, 2, 3), (0, 1), (2.5, 1), []]:
        with pytest.raises(ConfigError):
            TwoDimensionalLDA((5, 4), wrong).fit(X, y)
    with pytest.raises(ConfigError, match="product of its sides must be 20"):
        TwoDimensionalLDA((5, 5)).fit(X, y)
    for wrong in [(2, 2, 6), (2, 2)]:
        with pytest.raises(ConfigError):
            build_solver("multilinear_lda", Tensor((2, 2, 5)), {"n_components": wrong}).check(20)
    assert build_solver("two_dimensional_lda", Matrix(5, 4), {"n_components": [2, 2]}).fit(
        X, y
    ).shape == (5, 4)
    wide = np.random.default_rng(0).standard_normal((6, 20))
    with pytest.raises(
        ConfigError, match=r"vary in 5 directions of the rows and 1 of the columns: give at most"
    ):
        TwoDimensionalLDA(n_components=7).fit(wide, [0, 1, 2, 0, 1, 2])


def test_more_components_than_few_samples_span_are_refused_before_the_fit():
    y = np.arange(6) % 3
    wide = np.random.default_rng(0).standard_normal((6, 60))
    for shape, most in [
        ((30, 2), (10, 2)),
        ((2, 30), (2, 10)),
        ((6, 10), (6, 10)),
        ((60, 1), (5, 1)),
    ]:
        model = TwoDimensionalLDA(shape, most)
        model.check_training(y)
        assert model.fit(wide, y).ranks_.tolist() == [list(most)]
        for extra in [(1, 0), (0, 1)]:
            with pytest.raises(
                ConfigError, match=rf"6 samples.*give at most \({most[0]}, {most[1]}\)"
            ):
                TwoDimensionalLDA(shape, np.add(most, extra)).check_training(y)
    with pytest.raises(
        ConfigError, match=r"n_components=\(7, 1\) does not fit a training set of 6 samples"
    ):
        TwoDimensionalLDA(n_components=7).check_training(y)
    TwoDimensionalLDA().check_training(y)


def test_degenerate_classes_and_features():
    X, y = draw(4)
    with pytest.raises(DataError):
        TwoDimensionalLDA((5, 4)).fit(np.ones((6, 20)), [0, 1] * 3)
    # One sample a class: there is no within-class scatter.
    model = TwoDimensionalLDA((5, 4), (2, 2)).fit(X[:8], np.arange(8))
    np.testing.assert_array_equal(model.predict(X[:8]), np.arange(8))
    # The first two columns of the matrices do not vary, from which the first pass would start.
    flat = X.reshape(-1, 5, 4).copy()
    flat[:, :, :2] = 7.0
    model = TwoDimensionalLDA((5, 4), (2, 2)).fit(flat.reshape(-1, 20), y)
    assert model.score(flat.reshape(-1, 20), y) == 1.0
    scores = model.scores_.reshape(5, 4)
    assert not scores[:, :2].any()
    assert (scores[:, 2:] > 0).all()


def test_permuted_rows_and_columns_give_permuted_scores():
    """With all columns the first pass starts at R = I, which has no order."""
    X, y = draw(5)
    rng = np.random.default_rng(0)
    order = np.arange(20).reshape(5, 4)[np.ix_(rng.permutation(5), rng.permutation(4))].ravel()
    plain, permuted = (TwoDimensionalLDA((5, 4), (2, 4)).fit(part, y) for part in (X, X[:, order]))
    np.testing.assert_allclose(permuted.scores_, plain.scores_[order], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "per_class", "scale", "components", "passes", "shrinkage", "expected"),
    [
        ("ORL.npz", 5, 255.0, (10, 10), 5, 1e-8, 0.954),
        ("ORL.npz", 5, 255.0, (10, 10), 1, 0.1, 0.944),
        ("USPS.npz", 4, 2.0, (10, 10), 1, 1e-8, 0.598),
        ("USPS.npz", 4, 2.0, (10, 10), 1, 0.1, 0.667),
    ],
)
def test_real_images_have_the_figures_of_another_implementation(
    real_data, name, per_class, scale, components, passes, shrinkage, expected
):
    """Means over other draws: the spread of one is .01 to .04 on ORL, .03 to .05 on USPS."""
    with np.load(real_data(name)) as file:
        images, y = file["X"] / scale, file["y"]
    X, rng, accuracy = images.reshape(len(y), -1), np.random.default_rng(0), []
    for _ in range(4 if "ORL" in name else 10):
        train = np.concatenate(
            [rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)]
        )
        test = np.setdiff1d(np.arange(len(y)), train)
        model = TwoDimensionalLDA(images.shape[1:], components, shrinkage, passes).fit(
            X[train], y[train]
        )
        accuracy.append(model.score(X[test], y[test]))
    assert np.mean(accuracy) == pytest.approx(expected, abs=0.025 if "ORL" in name else 0.05)
