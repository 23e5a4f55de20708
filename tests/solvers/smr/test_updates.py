"""The half-steps of sparse matrix regression and their acceleration against the paper's
equations written out.
"""

import pickle
from itertools import islice, repeat

import cvxpy as cp
import numpy as np
import pytest
import smr_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from smr_reference import flat, images_with_signal

from raysel.numerics import least_squares
from raysel.numerics.least_squares import least_squares_data
from raysel.numerics.reweighting import Penalty, l2p_weights
from raysel.numerics.tensor_factors import tensor_samples, unit_cells
from raysel.solvers.smr.updates import (
    _lowest,
    _opened_by,
    accelerated_steps,
    alternating_steps,
    continuation,
    multistart_steps,
    objective,
    unit_weight,
)


@pytest.mark.parametrize("n_samples", [8, 50])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_the_objective_is_the_papers(n_samples, p):
    rng = np.random.default_rng(0)
    images, y = images_with_signal(rng, 4, 3, n_samples, 3)
    data, P = least_squares_data(flat(images), y), rng.standard_normal((3, 4, 3))
    J = reference.objective(P, images / data.scale, y, 0.7, p, 1e-2)
    assert objective(P, data, 0.7, p, 1e-2) == pytest.approx(J, rel=1e-12)
    assert objective(P.reshape(3, 12), data, 0.7, p, 1e-2) == pytest.approx(J, rel=1e-12)


@pytest.mark.parametrize("start", ["identity", "random"])
@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize(
    ("m", "n", "n_samples", "c", "rank"),
    [
        pytest.param(5, 4, 60, 3, 2, id="primal, more samples than cells"),
        pytest.param(5, 4, 60, 2, 4, id="full rank, two classes"),
        pytest.param(6, 7, 30, 4, 2, id="primal, fewer samples than cells"),
        pytest.param(7, 6, 9, 3, 4, id="dual"),
        pytest.param(4, 9, 18, 3, 3, id="primal then dual"),
        pytest.param(9, 1, 5, 3, 1, id="vectors"),
    ],
)
def test_every_half_step_has_the_objective_of_the_papers_equations(
    m, n, n_samples, c, rank, p, start
):
    rng = np.random.default_rng(m * n + n_samples)
    images, y = images_with_signal(rng, m, n, n_samples, c)
    data = least_squares_data(flat(images), y)
    images = images / data.scale
    alpha, zeta = 0.1 * data.alpha_max / data.scale, 1e-8
    V = (
        np.tile(np.eye(n, rank), (c, 1, 1))
        if start == "identity"
        else rng.standard_normal((c, n, rank))
    )
    D = np.ones((m, n))

    expected = reference.half_steps(images, y, V, D, alpha, p, zeta, n_half_steps=12)
    steps = alternating_steps(
        tensor_samples(data, D.shape), [V], D, repeat(Penalty(alpha, p, zeta))
    )
    for P_expected in expected:
        P = next(steps)
        J = reference.objective(P_expected, images, y, alpha, p, zeta)
        assert objective(P, data, alpha, p, zeta) == pytest.approx(J, rel=1e-10)
        assert_allclose(P, P_expected, atol=1e-6 * np.abs(P).max())


@pytest.mark.parametrize(
    ("p", "n_samples", "rank"), [(1.0, 60, 2), (0.5, 60, 2), (0.5, 9, 3), (1.0, 9, 1)]
)
def test_accelerated_iterations_are_the_papers_from_the_extrapolated_coefficients(
    p, n_samples, rank
):
    images, y = images_with_signal(np.random.default_rng(rank), 6, 5, n_samples, 3)
    data = least_squares_data(flat(images), y)
    images = images / data.scale
    alpha, zeta = 0.05 * data.penalty_unit(p), 1e-6
    V, D = np.tile(np.eye(5, rank), (3, 1, 1)), np.ones((6, 5))

    def iteration(P):
        """The paper's from the right factor and the weights of P, and J after it."""
        P = reference.half_steps(
            images, y, right(P), reference.weights(P, p, zeta), alpha, p, zeta, 2
        )[-1]
        return np.array(P), reference.objective(P, images, y, alpha, p, zeta)

    def right(P):
        return np.linalg.svd(P)[2][:, :rank].transpose(0, 2, 1)

    first = np.array(reference.half_steps(images, y, V, D, alpha, p, zeta, 2)[-1])
    now, J, before, t = first, reference.objective(first, images, y, alpha, p, zeta), first, 1
    steps = accelerated_steps(
        tensor_samples(data, D.shape), [V], D, repeat(Penalty(alpha, p, zeta))
    )
    for _ in range(25):
        P, reported = next(steps)
        assert reported == pytest.approx(J, rel=1e-7)
        assert_allclose(P, now, atol=1e-4 * np.abs(now).max())
        U = np.linalg.svd(P)[0][:, :, :rank]
        extrapolated = P + t / (t + 3) * (P - U @ U.transpose(0, 2, 1) @ before)
        candidate, J_candidate = iteration(extrapolated)
        if J_candidate > reported:
            (candidate, J_candidate), t = iteration(P), 0
        before, now, J, t = P, candidate, J_candidate, t + 1
        if abs(J - reported) < 1e-9 * J:  # rounding decides from here on
            break


def test_transposing_the_images_swaps_the_factors():
    rng = np.random.default_rng(4)
    images, y = images_with_signal(rng, 6, 4, 15, 3)
    data, transposed = (
        least_squares_data(flat(images), y),
        least_squares_data(flat(images.transpose(0, 2, 1)), y),
    )
    penalty = Penalty(0.5, 1.0, 1e-8)
    steps = alternating_steps(
        tensor_samples(data, (6, 4)),
        [rng.standard_normal((3, 4, 2))],
        np.ones((6, 4)),
        repeat(penalty),
    )
    P = next(steps)
    V, D = np.linalg.svd(P)[0][:, :, :2], l2p_weights((P**2).sum(axis=0), 1.0, 1e-8).T
    swapped = alternating_steps(tensor_samples(transposed, (4, 6)), [V], D, repeat(penalty))
    for _ in range(6):
        P, Q = next(steps), next(swapped)
        assert_allclose(Q.transpose(0, 2, 1), P, atol=1e-8)
        assert objective(Q, transposed, 0.5, 1.0, 1e-8) == pytest.approx(
            objective(P, data, 0.5, 1.0, 1e-8), rel=1e-11
        )


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_change_of_the_penalty_begins_without_extrapolation(p):
    images, y = images_with_signal(np.random.default_rng(7), 5, 4, 30, 3)
    data = least_squares_data(flat(images), y)
    first, second = (Penalty(share * data.penalty_unit(p), p, 1e-6) for share in (0.3, 0.05))
    V, D = np.tile(np.eye(4, 2), (3, 1, 1)), np.ones((5, 4))
    *_, (before, _), (after, J) = accelerated_steps(
        tensor_samples(data, D.shape), [V], D, [first] * 4 + [second]
    )
    right = np.linalg.svd(before)[2][:, :2].transpose(0, 2, 1)
    steps = alternating_steps(
        tensor_samples(data, D.shape),
        [right],
        l2p_weights((before**2).sum(axis=0), p, 1e-6),
        [second],
    )
    plain = list(steps)[-1]
    assert_allclose(after, plain, atol=1e-7 * np.abs(plain).max())
    assert pytest.approx(objective(plain, data, *second), rel=1e-10) == J


def made(seed=1, n_samples=30):
    images, y = images_with_signal(np.random.default_rng(seed), 5, 4, n_samples, 3)
    return least_squares_data(flat(images), y), images, y


@pytest.mark.parametrize("zeta", [1e-10, 1e-3, 10.0])
def test_continuation_leads_to_the_penalty_and_never_below_its_smoothing(zeta):
    images, y = images_with_signal(np.random.default_rng(1), 5, 4, 30, 3)
    data = least_squares_data(flat(images), y)
    penalties = [
        *continuation(data, end := Penalty(0.1 * data.penalty_unit(0.25), 0.25, zeta)),
        end,
    ]
    alphas, exponents, smoothing = np.array(penalties).T
    assert exponents[0] == 1.0
    assert (np.diff(exponents) < 0).all()
    assert (np.diff(smoothing) <= 0).all()
    assert_allclose(alphas, [0.1 * data.penalty_unit(p) for p in exponents])


@settings(max_examples=40)
@given(
    values=st.lists(
        st.sampled_from([1.0, 2.0, 3.0, 1.0 + 1e-9, 3.0 - 1e-9]), min_size=2, max_size=6
    )
)
def test_the_lowest_are_the_first_of_the_smallest(values):
    order = sorted(range(len(values)), key=lambda i: (round(values[i], 6), i))
    assert [_lowest(values, n) for n in (1, 2)] == [order[:1], order[:2]]
    assert _lowest([np.nan, np.nan], 1) == [0]


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_no_plain_start_is_better_after_the_first_round(p, seed):
    data, images, y = made(seed)
    penalty = Penalty(0.05 * data.penalty_unit(p), p, 1e-8)
    sharp = np.full((5, 4), unit_weight(data, p))
    random = np.repeat(np.random.default_rng(0).standard_normal((1, 4, 2)), 3, axis=0)
    reached = [
        next(
            islice(
                accelerated_steps(tensor_samples(data, (5, 4)), start, sharp, repeat(penalty)),
                9,
                None,
            )
        )[1]
        for start in (unit_cells(3, (5, 4), 2), [random])
    ]
    found = list(islice(multistart_steps(data, (5, 4), 2, penalty), 25))
    path = np.array([J for _, J in found])
    assert (np.diff(path) <= 1e-12 * path[1:]).all()
    if p < 1.0:  # for p = 1 they are not tried
        assert path[0] <= min(reached) * (1 + 1e-5)
    for P, J in found[:3]:
        assert np.linalg.matrix_rank(P, tol=1e-8).max() <= 2
        assert (
            pytest.approx(reference.objective(P, images / data.scale, y, *penalty), rel=1e-9) == J
        )


@pytest.mark.parametrize(
    ("rival", "goes_on", "taken"),
    [
        ([9.0] * 5 + [4.0] * 4 + [0.5] * 9, "rival", 10),
        ([9.0] * 5 + [4.0] * 4 + [1.5] * 9, "first", 10),
        ([9.0] * 5 + [6.0] * 4 + [0.5] * 9, "first", 6),
    ],
)
def test_for_p_1_the_second_start_goes_on_where_it_is_lower_at_a_glance_and_after_the_first_round(
    rival, goes_on, taken
):
    paths = {"first": [*range(10, 0, -1), *[0.25] * 8], "rival": rival}
    starts = {
        name: iter([((name, i), J) for i, J in enumerate(path)]) for name, path in paths.items()
    }
    found = [P for P, _ in _opened_by(starts["first"], starts["rival"])]
    assert found == [("first", i) for i in range(10)] + [(goes_on, i) for i in range(10, 18)]
    assert len(list(starts["rival"])) == (0 if goes_on == "rival" else 18 - taken)


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_start_that_is_far_better_is_the_one_that_goes_on(p):
    # Only the first column of the images tells the classes apart, which [I; 0] of rank 1 has and
    # nothing can better.
    rng = np.random.default_rng(2)
    y = np.arange(40) % 2
    images = 1e-3 * rng.standard_normal((40, 6, 5))
    images[:, :, 0] += np.outer(
        np.where(y, 1.0, -1.0), rng.standard_normal(6)
    ) + 0.3 * rng.standard_normal((40, 6))
    data = least_squares_data(flat(images), y)
    penalty = Penalty(0.02 * data.penalty_unit(p), p, 1e-8)
    sharp = np.full((6, 5), unit_weight(data, p))
    steps = accelerated_steps(
        tensor_samples(data, (6, 5)), unit_cells(2, (6, 5), 1), sharp, repeat(penalty)
    )
    best = next(islice(steps, 60, None))[1]
    found = next(islice(multistart_steps(data, (6, 5), 1, penalty), 60, None))[1]
    assert found <= best * (1 + 1e-3)


@pytest.mark.parametrize("n_samples", [10, 40])
def test_without_a_bound_on_the_rank_the_limit_is_the_convex_optimum(n_samples):
    data, _, _ = made(3, n_samples)
    alpha = 0.2 * data.penalty_unit(1.0)
    steps = multistart_steps(data, (5, 4), 4, Penalty(alpha, 1.0, 1e-14))
    ridge = np.linalg.solve(
        data.X @ data.X.T + alpha * unit_weight(data, 1.0) * np.eye(20), data.X @ data.Y.T
    ).T
    assert_allclose(next(steps)[0].reshape(3, 20), ridge, rtol=1e-6, atol=1e-9)
    P, J = next(islice(steps, 1000, None))
    Q = cp.Variable((3, 20))
    problem = (
        cp.sum_squares(Q @ data.X - data.Y) + data.residual + alpha * cp.sum(cp.norm(Q, 2, axis=0))
    )
    optimum = cp.Problem(cp.Minimize(problem)).solve(cp.CLARABEL)
    assert pytest.approx(optimum, rel=1e-5) == J
    assert_allclose(P.reshape(3, 20), Q.value, atol=1e-2 * np.abs(Q.value).max())


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_ranks_and_alphas_share_what_does_not_depend_on_them_to_the_last_bit(p, monkeypatch):
    images, y = images_with_signal(np.random.default_rng(0), 6, 5, 30, 3)
    shared, solves, solve = least_squares_data(flat(images), y), [], least_squares.weighted_ridge
    monkeypatch.setattr(
        least_squares, "weighted_ridge", lambda *given: solves.append(given) or solve(*given)
    )
    n_solves = []
    for alpha, rank in [(0.1, 1), (0.1, 3), (0.1, 2), (0.2, 2), (0.1, 3)]:
        found = []
        for data in (
            shared,
            least_squares_data(flat(images), y),
            pickle.loads(pickle.dumps(shared)),
        ):
            solves.clear()
            steps = multistart_steps(
                data, (6, 5), rank, Penalty(alpha * data.penalty_unit(p), p, 1e-8)
            )
            found.append(list(islice(steps, 13)))
            n_solves.append(len(solves))
        for other in found[1:]:
            for (P, J), (P_other, J_other) in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(P, P_other)
                assert J_other == J
    assert n_solves == [8, 8, 8, 0, 8, 8, 0, 8, 8, 8, 8, 8, 8, 8, 8]
