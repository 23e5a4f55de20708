"""The hinge loss against its definition and its breakpoints, its proximal step against a conic
solver.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics.hinge import (
    FeatureNorm,
    ModalityNorm,
    balanced,
    best_bias,
    hinge_loss,
    hinge_step,
)


@st.composite
def problems(draw):
    """Margins, some of them equal, and signs, of one side only in some rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    c, n = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    margins = 2.0 * rng.standard_normal((c, n))
    if draw(st.booleans()):
        margins = np.round(margins)
    return margins, np.where(rng.random((c, n)) < rng.random((c, 1)) * 1.4 - 0.2, 1.0, -1.0)


def loss(margins, signs):
    return sum(max(0.0, 1.0 - y * m) for m, y in zip(margins, signs, strict=True))


@settings(max_examples=60)
@given(problems())
def test_the_loss_is_its_definition(problem):
    margins, signs = problem
    expected = [loss(*row) for row in zip(margins, signs, strict=True)]
    np.testing.assert_allclose(hinge_loss(margins, signs), expected, rtol=1e-12)


@settings(max_examples=100)
@given(problems())
def test_no_bias_is_better_than_the_best(problem):
    margins, signs = problem
    found = best_bias(margins, signs)
    for row, y, bias in zip(margins, signs, found, strict=True):
        # The loss is convex and piecewise linear in the bias: a breakpoint is optimal.
        losses = [loss(row + b, y) for b in y - row]
        assert loss(row + bias, y) <= min(losses) + 1e-12
        if abs(y.sum()) == len(y):  # far enough is best; the nearest such bias
            nearest = max(1 - row) if y[0] > 0 else min(-1 - row)
            assert bias == pytest.approx(nearest)


@pytest.mark.parametrize("step", [0.2, 1.0, 5.0])
def test_the_step_is_the_proximal_point(step):
    rng = np.random.default_rng(0)
    margins, signs = 2.0 * rng.standard_normal((3, 20)), rng.choice([-1.0, 1.0], (3, 20))
    Z = cp.Variable(margins.shape)
    objective = step * cp.sum(cp.pos(1 - cp.multiply(signs, Z))) + cp.sum_squares(Z - margins) / 2
    cp.Problem(cp.Minimize(objective)).solve(cp.CLARABEL)
    out = np.empty_like(margins)
    assert hinge_step(margins, signs, step, out=out) is out
    np.testing.assert_allclose(out, Z.value, atol=1e-4)


@settings(max_examples=100)
@given(problems())
def test_balanced_variables_are_feasible_and_lose_no_more_than_they_must(problem):
    raw, signs = problem
    alpha = balanced(raw, signs)
    assert (alpha >= 0).all()
    assert (alpha <= 1).all()
    np.testing.assert_allclose((alpha * signs).sum(axis=1), 0, atol=1e-12)
    clipped = np.clip(raw, 0, 1)
    for found, start, y in zip(alpha, clipped, signs, strict=True):
        up, down = start[y > 0], start[y < 0]
        total = found[y > 0].sum()
        # Both sides end between the sums they had, and what was zero stays zero.
        assert total <= max(up.sum(), down.sum()) + 1e-12
        if up.sum() > 0 < down.sum():
            assert total >= min(up.sum(), down.sum()) - 1e-12
        assert not found[start == 0].any()
        halfway = 0.5 * (up.sum() + down.sum())
        least, most = sorted([up, down], key=np.sum)
        if least.sum() > 0 and (least * halfway / least.sum()).max() <= 1:  # the bounds allow it
            assert total == pytest.approx(halfway)
            np.testing.assert_allclose(found[y > 0], up * halfway / up.sum())
            np.testing.assert_allclose(found[y < 0], down * halfway / down.sum())
        assert most.sum() >= least.sum()


WIDTHS = [3, 1, 2]


def entries(kind, n_classes, widths):
    """Masks of the blocks and the position of each block's weight, written out."""
    ends = np.cumsum(widths)
    for j in range(n_classes):
        for k, (end, width) in enumerate(zip(ends, widths, strict=True)):
            mask = np.zeros((n_classes, ends[-1]), dtype=bool)
            if kind == "modality":
                mask[j, end - width : end] = True
                yield mask, (j, k), k
            else:
                for r in range(end - width, end) if j == 0 else ():
                    column = np.zeros_like(mask)
                    column[:, r] = True
                    yield column, (r,), r


def penalty_of(kind, rng, widths=WIDTHS):
    if kind == "modality":
        return ModalityNorm(rng.uniform(0.2, 2.0, len(widths)), np.array(widths))
    return FeatureNorm(rng.uniform(0.2, 2.0, sum(widths)))


@st.composite
def cases(draw):
    kind, widths = (
        draw(st.sampled_from(["modality", "feature"])),
        draw(st.lists(st.integers(1, 4), min_size=1)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    W = rng.standard_normal((draw(st.integers(1, 4)), sum(widths)))
    W[:, rng.random(W.shape[1]) < 0.2] = 0.0
    return kind, widths, penalty_of(kind, rng, widths), W


@settings(max_examples=60)
@given(cases())
def test_norms_sums_and_members_are_those_of_each_block(case):
    kind, widths, penalty, W = case
    norms, sums, ratios = penalty.norms(W), penalty.sums(W), penalty.ratios(W)
    blocks, total = list(entries(kind, len(W), widths)), 0.0
    assert norms.size == sums.size == ratios.size == len(blocks)
    found = {
        tuple(zip(rows.tolist(), columns.tolist(), strict=True))
        for rows, columns in penalty.members(W.shape)
    }
    assert found == {tuple(map(tuple, np.argwhere(mask).tolist())) for mask, _, _ in blocks}
    factors = penalty.spread(norms)
    for mask, place, weight in blocks:
        length = np.linalg.norm(W[mask])
        total += penalty.weights[weight] * length
        assert norms[place] == pytest.approx(length)
        assert sums[place] == pytest.approx(W[mask].sum())
        assert ratios[place] == pytest.approx(length / penalty.weights[weight])
        np.testing.assert_array_equal(np.broadcast_to(factors, W.shape)[mask], norms[place])
    assert penalty.value(W) == pytest.approx(total)


@pytest.mark.parametrize("kind", ["modality", "feature"])
@pytest.mark.parametrize("step", [0.3, 1.5])
def test_shrinking_is_the_proximal_step(kind, step):
    rng = np.random.default_rng(3)
    penalty, W = (
        penalty_of(kind, rng),
        rng.standard_normal((3, 6)) * np.array([1, 1, 1, 0.05, 1, 1]),
    )
    Z = cp.Variable(W.shape)
    terms = [
        penalty.weights[weight] * cp.norm(cp.multiply(mask, Z), "fro")
        for mask, _, weight in entries(kind, 3, WIDTHS)
    ]
    cp.Problem(cp.Minimize(step * sum(terms) + cp.sum_squares(Z - W) / 2)).solve(cp.CLARABEL)
    out = np.empty_like(W)
    assert penalty.shrink(W, step, out=out) is out
    np.testing.assert_allclose(out, Z.value, atol=1e-4)
    assert ((out == 0) == (np.abs(Z.value) < 1e-4)).all()
    assert (out == 0).any()
    assert (out != 0).any()


@pytest.mark.parametrize("kind", ["modality", "feature"])
def test_capping_is_the_projection_on_the_dual_ball(kind):
    rng = np.random.default_rng(4)
    penalty, U = penalty_of(kind, rng), 1.5 * rng.standard_normal((3, 6))
    Z = cp.Variable(U.shape)
    within = [
        cp.norm(cp.multiply(mask, Z), "fro") <= penalty.weights[weight]
        for mask, _, weight in entries(kind, 3, WIDTHS)
    ]
    cp.Problem(cp.Minimize(cp.sum_squares(Z - U)), within).solve(cp.CLARABEL)
    np.testing.assert_allclose(penalty.cap(U), Z.value, atol=1e-4)
    assert (penalty.ratios(U) < 1).any()


@settings(max_examples=40)
@given(cases(), st.floats(0.01, 10.0))
def test_shrinking_takes_away_what_capping_keeps(case, step):
    # Moreau: W = prox of step * penalty at W + projection of W on step times the dual ball.
    _, _, penalty, W = case
    kept = penalty.shrink(W, step, out=np.empty_like(W))
    np.testing.assert_allclose(W - kept, step * penalty.cap(W / step), atol=1e-12)
    assert penalty.ratios(penalty.cap(W / step)).max() <= 1 + 1e-12
    np.testing.assert_array_equal(penalty.shrink(W.copy(), step, out=W), kept)  # in place too
