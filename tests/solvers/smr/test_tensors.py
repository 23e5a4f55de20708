"""SMR of samples of any order against Khatri-Rao and Kronecker matrices written out, and the
laws of its objective.
"""

from itertools import repeat

import numpy as np
import pytest
import tensor_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from smr_reference import flat, one_hot
from tensor_reference import tensors_with_signal

from raysel.baselines.least_squares import BilinearRegression
from raysel.core.errors import ConfigError
from raysel.data.layouts import MaskedVolume, Tensor
from raysel.numerics.least_squares import least_squares_data, ls21_steps
from raysel.numerics.reweighting import Penalty
from raysel.numerics.tensor_factors import (
    composed,
    largest_rank,
    leading_factors,
    mode_step,
    tensor_samples,
    unit_cells,
)
from raysel.solvers.smr.smr import SMR
from raysel.solvers.smr.updates import alternating_steps, objective


def drawn(shape, n_samples, c, seed=0):
    rng = np.random.default_rng(seed)
    arrays, y = tensors_with_signal(rng, shape, n_samples, c)
    return rng, arrays, y


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize(
    ("shape", "n_samples", "rank"),
    [
        pytest.param((5, 4), 30, 2, id="order 2, primal"),
        pytest.param((4, 3, 5), 80, 2, id="order 3, primal, more samples than cells"),
        pytest.param((4, 3, 5), 12, 4, id="order 3, dual and a rank above a side"),
        pytest.param((2, 3, 2, 4), 40, 2, id="order 4, primal"),
        pytest.param((3, 2, 3, 2), 7, 3, id="order 4, dual"),
    ],
)
def test_every_mode_step_has_the_objective_of_the_matrices_written_out(shape, n_samples, rank, p):
    rng, arrays, y = drawn(shape, n_samples, 3)
    data = least_squares_data(flat(arrays), y)
    arrays, alpha, zeta = arrays / data.scale, 0.05 * data.alpha_max / data.scale, 1e-8
    start, D = [rng.standard_normal((3, side, rank)) for side in shape[1:]], np.ones(shape)
    expected = reference.mode_steps(
        arrays, y, [[A[r] for A in start] for r in range(3)], D, alpha, p, zeta, 3 * len(shape)
    )
    steps = alternating_steps(
        tensor_samples(data, shape), start, D, repeat(Penalty(alpha, p, zeta))
    )
    for P_expected, P in zip(expected, steps, strict=False):
        J = reference.objective(P_expected, arrays, y, alpha, p, zeta)
        assert objective(P, data, alpha, p, zeta) == pytest.approx(J, rel=1e-10)
        assert_allclose(P, P_expected, atol=1e-6 * np.abs(P).max())


@pytest.mark.parametrize("n_samples", [8, 40])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_samples_of_one_axis_are_the_vector_problem(p, n_samples):
    _, vectors, y = drawn((11,), n_samples, 3)
    data = least_squares_data(vectors, y)
    vectors, penalty = vectors / data.scale, Penalty(0.5, p, 1e-6)
    expected = reference.mode_steps(vectors, y, [[]] * 3, np.ones(11), *penalty, 10)
    for P_expected, P in zip(
        expected, ls21_steps(data, np.ones(11), repeat(penalty)), strict=False
    ):
        J = reference.objective(P_expected, vectors, y, *penalty)
        assert objective(P, data, *penalty) == pytest.approx(J, rel=1e-10)
    fits = [SMR(shape, max_iter=20, tol=0).fit(vectors, y) for shape in ((11,), None, (1, 11, 1))]
    for fit in fits[1:]:
        assert_array_equal(fit.coef_, fits[0].coef_)


@st.composite
def problems(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=3, max_size=4)))
    return {
        "shape": shape,
        "rank": draw(st.integers(1, min(4, largest_rank(shape)))),
        "p": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "alpha": 10 ** draw(st.floats(-3, 0.5)),
        "init": draw(st.sampled_from(["multistart", "identity", "random"])),
    }


@settings(max_examples=25)
@given(
    problem=problems(),
    n_samples=st.integers(3, 60),
    constant=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
def test_no_iteration_raises_the_objective_and_sides_of_one_change_nothing(
    problem, n_samples, constant, seed
):
    rng, arrays, y = drawn(problem["shape"], n_samples, 3, seed)
    X = flat(arrays)
    X[:, rng.random(X.shape[1]) < constant] = 3.0
    smr = SMR(**problem, max_iter=8, tol=0, random_state=0).fit(X, y)
    path = smr.objective_path_
    assert np.all(np.diff(path) <= 1e-9 * path[:-1])
    other = SMR(**problem | {"shape": (*problem["shape"], 1)}, max_iter=8, tol=0, random_state=0)
    assert_array_equal(other.fit(X, y).coef_, smr.coef_)


@pytest.mark.parametrize("n_samples", [6, 60])
def test_cells_outside_a_mask_have_neither_data_nor_penalty(n_samples):
    shape, rank, alpha = (3, 4, 5), 2, 0.3
    rng, arrays, y = drawn(shape, n_samples, 3)
    inside = rng.random(shape) < 0.4
    inside[1], inside[1, 2, 3] = False, True  # one cell of a slice: fewer than the rank
    arrays *= inside
    data = least_squares_data(arrays[:, inside], y)
    samples, D = tensor_samples(data, shape, inside), rng.uniform(0.5, 2.0, shape) * inside
    factors = [rng.standard_normal((3, side, rank)) for side in shape]
    for mode in range(3):
        P = composed(mode_step(samples, factors, mode, D, alpha))
        for r in range(3):
            given = [A[r] for A in factors]
            given[mode] = reference.best_factor(
                arrays / data.scale, one_hot(y)[:, r], given, mode, D, alpha
            )
            assert_allclose(P[r][inside], reference.tensor(given)[inside], atol=1e-9)


@pytest.mark.parametrize(
    ("model", "params"),
    [(SMR, {"rank": 2}), (SMR, {"rank": 2, "p": 0.5, "init": "random"}), (BilinearRegression, {})],
    ids=["multistart", "random", "gbr"],
)
def test_no_iteration_raises_the_objective_within_a_mask(model, params):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        inside = rng.random(tuple(rng.integers(2, 6, 3))) < rng.uniform(0.15, 0.9)
        inside[0, 0, 0] = inside[1, 1, 1] = True  # two of each axis, as many as the rank
        X, y = rng.standard_normal((20, inside.sum())), np.arange(20) % 3
        path = model(mask=inside, max_iter=8, tol=0, **params).fit(X, y).objective_path_
        assert np.all(np.diff(path) <= 1e-12 * path[:-1])
    # A mask of all cells is the shape, and slices without a cell are left out.
    X, y = rng.standard_normal((30, 24)), np.arange(30) % 3
    wide = np.zeros((4, 4, 3), bool)
    wide[[[0], [3]], :, :] = True
    fits = [model(**given).fit(X, y).coef_ for given in ({"shape": (2, 4, 3)}, {"mask": wide})]
    assert_array_equal(*fits)


def test_permuted_axes_permute_the_coefficients_of_the_same_start():
    rng, arrays, y = drawn((4, 3, 5), 20, 3)
    order, penalty = (
        (0, 2, 1),
        Penalty(0.1, 1.0, 1e-8),
    )  # the first axis is the first to be solved for
    start = [rng.standard_normal((3, side, 2)) for side in (3, 5)]
    turned = arrays.transpose(0, *(axis + 1 for axis in order))
    data, other = least_squares_data(flat(arrays), y), least_squares_data(flat(turned), y)
    one = next(
        alternating_steps(tensor_samples(data, (4, 3, 5)), start, np.ones((4, 3, 5)), [penalty])
    )
    two = next(
        alternating_steps(
            tensor_samples(other, (4, 5, 3)), start[::-1], np.ones((4, 5, 3)), [penalty]
        )
    )
    assert_allclose(two, one.transpose(0, *(axis + 1 for axis in order)), atol=1e-10)
    # At the limit only the local optimum may differ; that of an exact signal of rank 1 does not.
    ends = [
        SMR(a.shape[1:], 0.05, max_iter=300, tol=1e-10).fit(flat(a), y).objective_path_[-1]
        for a in (arrays, turned)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=0.02)


def test_the_start_of_an_exact_low_rank_tensor_has_its_factors():
    rng = np.random.default_rng(3)
    factors = [rng.standard_normal((2, side, 2)) for side in (5, 4, 3)]
    for found, true in zip(leading_factors(composed(factors), 2), factors[1:], strict=True):
        for r in range(2):  # the same columns but for order, sign and length
            cosines = np.abs(
                (found[r] / np.linalg.norm(found[r], axis=0)).T
                @ (true[r] / np.linalg.norm(true[r], axis=0))
            )
            assert_allclose(np.sort(cosines.max(axis=0)), 1.0, atol=1e-2)
    cells = composed([np.ones((1, 1, 7)), *unit_cells(1, (9, 3, 3), 7)])[0, 0]
    assert cells.max() == 1
    assert cells.sum() == 7


def test_a_planted_block_is_found_by_fewer_samples_than_as_a_matrix():
    found = {(8, 8, 6): [], (8, 48): [], None: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y, block = np.repeat(np.arange(3), 15), np.zeros((8, 8, 6), bool)
        block[2:5, 3:6, 1:3] = True
        X = rng.standard_normal((45, 8, 8, 6))
        for r in range(3):
            pattern = reference.tensor([rng.standard_normal((side, 1)) for side in (3, 3, 2)])
            X[np.ix_(y == r, range(2, 5), range(3, 6), range(1, 3))] += (
                0.8 * pattern / np.sqrt((pattern**2).mean())
            )
        for shape, precisions in found.items():
            best = SMR(shape, 0.1, max_iter=30).fit(flat(X), y).ranking_ <= block.sum()
            precisions.append((best & block.ravel()).sum() / block.sum())
    tensor, matrix, vector = (np.mean(precisions) for precisions in found.values())
    assert tensor > max(matrix, vector)


def test_the_layout_supplies_the_shape_of_any_order():
    assert SMR.from_layout(Tensor((2, 3, 4)), rank=2).shape == (2, 3, 4)
    mask = np.arange(24).reshape(2, 3, 4) % 5 > 0
    assert_array_equal(SMR.from_layout(MaskedVolume(mask)).mask, mask)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mask": np.ones((2, 3)), "shape": None}, "array of float64: give an array of bool"),
        ({"mask": np.ones((2, 3), bool), "shape": (2, 3)}, "give shape or mask, not both"),
        (
            {"mask": np.ones((2, 2), bool)},
            "mask has 4 cells that are True, but there are 6 features",
        ),
    ],
)
def test_masks_that_do_not_fit_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        SMR(**params).fit(np.random.default_rng(0).standard_normal((9, 6)), np.arange(9) % 3)


def test_a_sparse_mask_is_warned_of():
    mask = np.zeros((5, 5, 5), bool)
    np.einsum("iii->i", mask)[:] = True
    with pytest.warns(UserWarning, match="the box around the 5 cells of the mask has 125"):
        SMR(mask=mask).fit(np.random.default_rng(0).standard_normal((9, 5)), np.arange(9) % 3)
