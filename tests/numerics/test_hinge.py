"""The hinge loss against its definition and its breakpoints, its step against a solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics.hinge import (
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
