"""Norms of blocks against their definition, their steps and projections against a conic solver,
also of a penalty that is defined here alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics.block_norms import BlockNorm, FeatureNorm, ModalityNorm


@dataclass(frozen=True)
class ElementNorm(BlockNorm):
    """The penalty ``sum_jr weight_r |W[j, r]|``, whose blocks are single entries."""

    def sums(self, W):
        return W

    def members(self, shape):
        return (np.array([[j], [r]]) for j, r in np.ndindex(shape))

    def spread(self, factors):
        return factors


KINDS = ["modality", "feature", "element"]

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
            elif kind == "element":
                for r in range(end - width, end):
                    entry = np.zeros_like(mask)
                    entry[j, r] = True
                    yield entry, (j, r), r
            else:
                for r in range(end - width, end) if j == 0 else ():
                    column = np.zeros_like(mask)
                    column[:, r] = True
                    yield column, (r,), r


def penalty_of(kind, rng, widths=WIDTHS):
    if kind == "modality":
        return ModalityNorm(rng.uniform(0.2, 2.0, len(widths)), np.array(widths))
    return {"feature": FeatureNorm, "element": ElementNorm}[kind](
        rng.uniform(0.2, 2.0, sum(widths))
    )


@st.composite
def cases(draw):
    kind, widths = (
        draw(st.sampled_from(KINDS)),
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


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
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
