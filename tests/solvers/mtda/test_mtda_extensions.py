"""MTDA's extensions against dense references: unlabelled samples, aligned tasks, matrix-valued samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from scipy.optimize import brentq
from sklearn.neighbors import NearestNeighbors
from task_sets import small_but_telling

from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError, DataError
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised import partly_labelled


def make_task(seed, n=60, D=10, c=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    return rng.standard_normal((c, D))[y] + rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) / 2, y


def scatters(X, y):
    """S_b, S_w and S_t of the definitions."""
    centred = X - X.mean(axis=0)
    B = sum((y == c).mean() * np.outer(m, m) for c, m in ((c, centred[y == c].mean(axis=0)) for c in set(y)))
    T = centred.T @ centred / len(X)
    return B, T - B, T


def leading(matrix, size):
    values, vectors = np.linalg.eigh(matrix)
    return values[-size:].sum(), vectors[:, -size:]


def solve(problems, sizes, weights):
    """The root and the leading eigenvectors of B - ratio T there."""

    def difference(ratio):
        parts = zip(weights, problems, sizes, strict=True)
        return sum(w * leading(B - ratio * T, d)[0] for w, (B, T), d in parts)

    ratio = brentq(difference, 0, 1, xtol=1e-15, rtol=1e-14)
    return ratio, [leading(B - ratio * T, d)[1] for (B, T), d in zip(problems, sizes, strict=True)]


def assert_same_spaces(found, expected, atol=1e-9):
    for U, V in zip(found, expected, strict=True):
        np.testing.assert_allclose(U @ U.T, V @ V.T, atol=atol)


# --- samples without labels ------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "mu"), [(1.0, 0.0), (0.3, 0.0), (0.5, 20.0)])
def test_unlabelled_samples_enter_the_denominator(eta, mu):
    problems, tasks, weights = [], [], []
    for seed, n, D, c in ((0, 60, 10, 4), (1, 50, 7, 3)):
        X, y = make_task(seed, n, D, c)
        known = np.arange(n) < 30
        B, _, labelled = scatters(X[known], y[known])
        near = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
        A = np.zeros((n, n))
        np.put_along_axis(A, near, 1.0, axis=1)
        A = (A + A.T) / 2
        total = scatters(X, y)[2]
        T = labelled + eta * total + mu * X.T @ (np.diag(A.sum(axis=1)) - A) @ X / n**2
        problems.append((B, T))
        weights.append(1 / np.trace(T))
        tasks.append((X, np.where(known, y, -1)))
    ratio, expected = solve(problems, [3, 2], weights)
    options = {"unlabelled": -1, "unlabelled_weight": eta, "graph_weight": mu, "n_neighbors": 4}
    mtda = MTDA(**options).fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    assert_same_spaces(mtda.projections_, expected)
    assert list(mtda.classes_) == [0, 1, 2, 3]
    assert [len(Z) for Z in mtda.embeddings_] == [30, 30]
    for i, (X, y) in enumerate(tasks):
        np.testing.assert_allclose(mtda.embeddings_[i], mtda.transform_task(i, X[y >= 0]), atol=1e-9)
        np.testing.assert_array_equal(mtda.predict_task(i, X[y >= 0]), y[y >= 0])


def test_with_every_sample_labelled_only_the_ratio_is_scaled():
    tasks = [make_task(2), make_task(3, c=3)]
    plain = MTDA().fit_tasks(tasks)
    partly = MTDA(unlabelled=-1, unlabelled_weight=3.0).fit_tasks(tasks)
    assert partly.objective_path_[-1] == pytest.approx(plain.objective_path_[-1] / 4, abs=1e-10)
    assert_same_spaces(partly.projections_, plain.projections_)


def test_unlabelled_samples_keep_the_ratio_below_1_in_high_dimensions():
    X, y = make_task(4, n=40, D=80)
    mtda = MTDA(unlabelled="?").fit(X, np.where(np.arange(40) < 16, y.astype(str), "?"))
    assert 0 < mtda.objective_path_[-1] < 1 - 1e-3
    assert (np.diff(mtda.objective_path_) >= -1e-13).all()
    with pytest.raises(DataError, match="all unlabelled"):
        MTDA(unlabelled=-1).fit(X, np.full(40, -1))


def test_what_is_prepared_serves_every_graph():
    """A study prepares once for all configurations: a neighbourhood that is searched must not be that of the first."""
    X, y = make_task(5)
    y = np.where(np.arange(60) < 30, y, -1)
    first, other = (MTDA(unlabelled=-1, graph_weight=50.0, n_neighbors=k) for k in (2, 20))
    list(other.iterate(X, y, first.prepare(X, y)))
    alone = MTDA(unlabelled=-1, graph_weight=50.0, n_neighbors=20).fit(X, y)
    np.testing.assert_array_equal(other.scores_, alone.scores_)
    assert not np.allclose(first.fit(X, y).scores_, alone.scores_, atol=1e-3)


@pytest.mark.parametrize("method", ["vectors", "matrices"])
def test_what_is_prepared_serves_vectors_and_matrices(method):
    tasks, shapes = matrix_tasks(2)
    X = np.full((110, 58), np.nan)
    X[:50, :30], X[50:, 30:] = tasks[0][0], tasks[1][0]
    y = np.concatenate([tasks[0][1], tasks[1][1] + 10])
    plain, bilinear = MTDA(shapes, n_components=4), MTDA(shapes, bilinear=(2, 2), random_state=0)
    given, fitted = (bilinear, plain) if method == "vectors" else (plain, bilinear)
    list(fitted.iterate(X, y, given.prepare(X, y)))
    again = type(fitted)(**fitted.get_params()).fit(X, y)
    np.testing.assert_array_equal(fitted.scores_, again.scores_)


def test_a_label_of_joined_data_may_mean_none():
    """``task/-1``, as join_tasks writes a label -1 of a task."""
    tasks = [(X, np.where(np.arange(len(y)) < 30, y, -1)) for X, y in (make_task(6), make_task(7, n=50, D=7))]
    X = np.full((110, 17), np.nan)
    X[:60, :10], X[60:, 10:] = tasks[0][0], tasks[1][0]
    y = np.concatenate([np.char.add("a/", tasks[0][1].astype(str)), np.char.add("b/", tasks[1][1].astype(str))])
    face, native = MTDA({"a": 10, "b": 7}, unlabelled=-1).fit(X, y), MTDA(unlabelled=-1).fit_tasks(tasks)
    np.testing.assert_array_equal(face.scores_, native.scores_)
    np.testing.assert_array_equal(face.labelled(y), np.arange(110) % 60 < 30)
    assert face.classes_.tolist() == [f"{name}/{c}" for name in "ab" for c in range(4)]
    words = [(X, np.where(labels < 0, "none", labels.astype(str))) for X, labels in tasks]
    np.testing.assert_array_equal(MTDA(unlabelled="none").fit_tasks(words).scores_, native.scores_)
    assert MTDA().labelled(y).all()


# --- aligned tasks ---------------------------------------------------------------------------


def aligned_tasks():
    tasks = [make_task(5), make_task(6, n=40, D=8, c=3)]
    rng = np.random.default_rng(7)
    return tasks, [rng.standard_normal((10, 6)), rng.standard_normal((8, 6))]


def test_a_shared_projection_is_one_trace_ratio_of_the_weighted_sums():
    tasks, maps = aligned_tasks()
    parts = [scatters(X @ W, y) for (X, y), W in zip(tasks, maps, strict=True)]
    B = sum(B / np.trace(T) for B, _, T in parts)
    T = sum(T / np.trace(T) for _, _, T in parts)
    ratio, (P,) = solve([(B, T)], [3], [1.0])
    mtda = MTDA(aligned=maps).fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    for W, U in zip(maps, mtda.projections_, strict=True):
        np.testing.assert_allclose(U @ U.T, W @ P @ P.T @ W.T, atol=1e-8)
    np.testing.assert_allclose(mtda.denominators_, [np.trace(P.T @ T @ P) for _, _, T in parts], atol=1e-9)
    np.testing.assert_allclose(mtda.numerators_, [np.trace(P.T @ B @ P) for B, _, _ in parts], atol=1e-9)
    np.testing.assert_allclose(mtda.embeddings_[0], mtda.transform_task(0, tasks[0][0]), atol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_a_pooled_within_class_scatter_serves_every_task(shrinkage):
    tasks, maps = aligned_tasks()
    parts = [scatters(X @ W, y) for (X, y), W in zip(tasks, maps, strict=True)]
    within = (60 * parts[0][1] + 40 * parts[1][1]) / 100
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / 6 * np.eye(6)
    weights = [1 / np.trace(T) for _, _, T in parts]
    ratio, expected = solve([(B, B + within) for B, _, _ in parts], [3, 2], weights)
    mtda = MTDA(aligned=maps, share="within", shrinkage=shrinkage).fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    for W, U, V in zip(maps, mtda.projections_, expected, strict=True):
        np.testing.assert_allclose(U @ U.T, W @ V @ V.T @ W.T, atol=1e-8)


def test_sharing_helps_where_tasks_share_their_noise():
    rng = np.random.default_rng(8)
    spread = np.r_[np.full(12, 3.0), np.full(3, 0.7)]  # few quiet directions, the same for all tasks
    turn = np.linalg.qr(rng.standard_normal((15, 15)))[0]
    errors = {"alone": [], "projection": [], "within": []}
    for _ in range(5):
        train, test = [], []
        for _ in range(6):
            means = rng.standard_normal((4, 15))
            for p, into in ((3, train), (40, test)):
                y = np.repeat(np.arange(4), p)
                into.append(((means[y] + rng.standard_normal((len(y), 15)) * spread) @ turn, y))
        maps = [np.eye(15)] * 6
        for name, mtda in (
            ("alone", MTDA()),
            ("projection", MTDA(aligned=maps)),
            ("within", MTDA(aligned=maps, share="within")),
        ):
            mtda.fit_tasks(train)
            errors[name].append(np.mean([(mtda.predict_task(i, X) != y).mean() for i, (X, y) in enumerate(test)]))
    means = {name: np.mean(found) for name, found in errors.items()}
    assert means["projection"] < means["alone"] - 0.05
    assert means["within"] < means["alone"] - 0.05


# --- matrix-valued samples -------------------------------------------------------------------


def matrix_tasks(seed):
    rng = np.random.default_rng(seed)
    tasks = []
    for n, (a, b), c in ((50, (6, 5), 4), (60, (7, 4), 3)):
        y = np.arange(n) % c
        X = rng.standard_normal((c, a, b))[y] + 1.5 * rng.standard_normal((n, a, b))
        tasks.append((X.reshape(n, -1), y))
    return tasks, {"first": (6, 5), "second": (7, 4)}


def test_a_bilinear_projection_is_a_kronecker_product_at_a_stationary_point():
    tasks, shapes = matrix_tasks(0)
    mtda = MTDA(shapes, bilinear=(2, 3), random_state=0).fit_tasks(tasks)
    assert mtda.converged_
    assert (np.diff(mtda.objective_path_) >= -1e-12).all()
    assert mtda.objective_path_[-1] <= MTDA(n_components=6).fit_tasks(tasks).objective_path_[-1]
    weights = [1 / np.trace(scatters(X, y)[2]) for X, y in tasks]
    numerators, denominators = [], []
    for (X, y), U, (a, b) in zip(tasks, mtda.projections_, shapes.values(), strict=True):
        np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-10)
        # U[(i, j), (p, q)] = L[i, p] R[j, q]: of rank one once i, p and j, q are put together
        values = np.linalg.svd(U.reshape(a, b, 2, 3).transpose(0, 2, 1, 3).reshape(a * 2, b * 3), compute_uv=False)
        np.testing.assert_allclose(values[1:], 0, atol=1e-10)
        B, _, T = scatters(X, y)
        numerators.append(np.trace(U.T @ B @ U))
        denominators.append(np.trace(U.T @ T @ U))
        blocks = U.reshape(a, b, 2, 3)
        R = np.linalg.svd(blocks[:, :, 0, :].transpose(1, 0, 2).reshape(b, -1), full_matrices=False)[0][:, :3]
        fixed = np.kron(np.eye(a), R)
        difference = fixed.T @ (B - mtda.objective_path_[-1] * T) @ fixed
        summed = np.einsum("iqjq->ij", difference.reshape(a, 3, a, 3))
        reached = np.trace(U.T @ (B - mtda.objective_path_[-1] * T) @ U)
        assert leading(summed, 2)[0] == pytest.approx(reached, abs=1e-5)  # no better L for this R
    np.testing.assert_allclose(mtda.numerators_, numerators)
    np.testing.assert_allclose(mtda.denominators_, denominators)
    ratio = (weights @ np.array(numerators)) / (weights @ np.array(denominators))
    assert mtda.objective_path_[-1] == pytest.approx(ratio, abs=1e-12)
    np.testing.assert_allclose(mtda.embeddings_[1], mtda.transform_task(1, tasks[1][0]), atol=1e-10)


def test_matrices_of_one_column_are_vectors():
    tasks = [make_task(9), make_task(10, D=8)]
    mtda = MTDA({"a": (10, 1), "b": (8, 1)}, bilinear=(2, 1), random_state=0).fit_tasks(tasks)
    exact = MTDA(n_components=2).fit_tasks(tasks)
    assert mtda.objective_path_[-1] == pytest.approx(exact.objective_path_[-1], abs=1e-10)
    assert_same_spaces(mtda.projections_, exact.projections_, atol=1e-7)


def test_more_starts_never_end_lower():
    tasks, shapes = matrix_tasks(1)
    few = MTDA(shapes, bilinear=(1, 1), n_init=1, random_state=0).fit_tasks(tasks)
    many = MTDA(shapes, bilinear=(1, 1), n_init=20, random_state=0).fit_tasks(tasks)
    assert many.objective_path_[-1] >= few.objective_path_[-1] - 1e-9


# --- features of very different scales -------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-5, 1e-9])
@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ({}, [4, 4]),
        ({"method": "alternating", "random_state": 0}, [4, 4]),
        ({"unlabelled": -1}, [4, 4]),
        ({"unlabelled": -1, "graph_weight": 1.0}, [4, 4]),
        ({"aligned": [np.eye(4)] * 2}, [4, 4]),
        ({"aligned": [np.eye(4)] * 2, "share": "within"}, [4, 4]),
        ({"tasks": {"a": (4, 1), "b": (1, 4)}, "bilinear": (1, 1)}, [[4, 1], [1, 4]]),
    ],
)
def test_a_telling_feature_of_small_scale_is_found(options, ranks, scale):
    tasks = [small_but_telling(seed, scale) for seed in (0, 1)]
    if "unlabelled" in options:
        tasks = [(X, np.where(np.arange(len(y)) < 200, y, -1)) for X, y in tasks]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mtda = MTDA(**options).fit_tasks(tasks)
    assert mtda.ranks_.tolist() == ranks
    for i in (0, 1):
        X, y = small_but_telling(i + 2, scale)
        assert (mtda.predict_task(i, X) == y).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"aligned": [np.eye(4)] * 2}, "the mapped tasks: rank 3"),
        ({"aligned": [np.eye(4)] * 2, "share": "within"}, "the mapped tasks: rank 3"),
        ({"tasks": {"a": (4, 1), "b": (1, 4)}, "bilinear": (1, 1)}, "task 'b', columns: rank 3"),
    ],
)
def test_a_warning_names_the_rank_where_a_direction_is_left_out(options, named):
    tasks = [small_but_telling(seed, 1e-17) for seed in (0, 1)]
    with pytest.warns(LinAlgWarning, match=f"{named} of 4 directions that vary"):
        MTDA(**options).fit_tasks(tasks)


def test_the_denominators_small_eigenvalues_are_right():
    """T of features in other units is T with its rows and columns scaled, however far apart the units are."""
    X, y = make_task(7, n=40, D=5)
    units = np.array([1.0, 1e-5, 1.0, 1e-7, 1e-3])
    codes = np.where(np.arange(40) < 25, y, -1)
    known = X[codes >= 0]
    plain = np.cov(known.T, bias=True) + 0.5 * np.cov(X.T, bias=True)
    task = partly_labelled(TaskSamples("", X * units, y, np.arange(4), codes))
    values, turn = task.denominator(0.5, 0.0, 5)
    U = task.reduced.lift(X * units - task.reduced.mean, turn)
    assert values.min() > 0
    np.testing.assert_allclose(U * values @ U.T / np.outer(units, units), plain, atol=1e-6)


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"aligned": [np.eye(10)] * 2, "unlabelled": -1}, "aligned and unlabelled exclude each other"),
        ({"method": "alternating", "unlabelled": -1}, "does not know unlabelled"),
        ({"aligned": [np.eye(10)]}, "1 maps for 2 tasks"),
        (
            {"aligned": [np.eye(10), np.eye(8)]},
            r"maps task 'task1' by an array of shape \(8, 8\); it must be \(8, 10\)",
        ),
        ({"aligned": [np.eye(10), np.eye(8, 10)], "n_components": [2, 3]}, "share one number"),
        ({"aligned": [np.eye(10), np.eye(8, 10)], "n_components": 11}, "exceeds the rank"),
        ({"aligned": [np.eye(10), np.full((8, 10), np.nan)]}, "maps task 'task1' by an array that holds NaN"),
        ({"aligned": [np.eye(10), np.zeros((8, 10))]}, "maps all samples of task 'task1' to one point"),
        ({"bilinear": (2, 2)}, "needs each task's shape"),
        ({"bilinear": (2,), "tasks": {"a": (5, 2), "b": (4, 2)}}, "must be two positive whole numbers"),
        ({"bilinear": (2, 0), "tasks": {"a": (5, 2), "b": (4, 2)}}, "must be two positive whole numbers"),
        ({"bilinear": (1.5, 2), "tasks": {"a": (5, 2), "b": (4, 2)}}, "must be two positive whole numbers"),
        ({"bilinear": (2, 2), "tasks": {"a": (5, 2), "b": 8}}, "needs each task's shape.*'b'"),
        ({"bilinear": (2, 3), "tasks": {"a": (5, 2), "b": (4, 2)}}, r"does not fit task 'a'.* \(5, 2\)"),
        ({"bilinear": (2, 2), "n_components": 2, "tasks": {"a": (5, 2), "b": (4, 2)}}, "takes neither n_components"),
    ],
)
def test_bad_input_names_the_culprit(params, message):
    tasks = [make_task(0), make_task(1, D=8)]
    with pytest.raises(ConfigError, match=message):
        MTDA(**params).fit_tasks(tasks)
