"""Least squares for coefficient tensors of low rank: one factor a mode, each solved for in turn.

A coefficient tensor of rank k is a sum of k outer products of vectors, ``P = sum_j a_j^1 o .. o
a_j^N``, and its factors are the matrices ``A^q`` (m_q x k) of the vectors of each mode (CP
decomposition; Kolda & Bader, SIAM Review 51(3), 2009). Unfolded along mode q it is ``A^q Z'`` with
Z the Khatri-Rao product of the other factors, so that for fixed other factors A^q is the left
factor of a matrix, as in `left_factors`. A matrix is the case N = 2. Z has a row for each cell of
the other modes and k columns a class; no such product is formed for the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray
from raysel.numerics.least_squares import LeastSquaresData, expand, left_factors, orthonormal
from raysel.numerics.linear_algebra import EPS


@dataclass(frozen=True)
class TensorSamples:
    """A training set whose features are the cells of a tensor, unfolded along each mode."""

    data: LeastSquaresData
    shape: tuple[int, ...]
    #: Samples, for each mode the slices along it as rows; shapes (m_q, n_cells / m_q, n_rows).
    X: tuple[FloatArray, ...]
    #: ``data.XY`` likewise; shapes (n_classes, m_q, n_cells / m_q).
    XY: tuple[FloatArray, ...]
    #: Whether each cell is a feature, in C order; None if all are. The others are 0 in all samples.
    inside: BoolArray | None = None

    def features(self, P: FloatArray) -> FloatArray:
        """Values of the features among all cells; without a mask the cells as they are."""
        if self.inside is None:
            return P
        return P.reshape(len(P), -1)[:, self.inside]

    def cells(self, values: FloatArray) -> FloatArray:
        """Values of all cells, 0 outside the mask; (..., n_features) to (..., m_1, .., m_N)."""
        if self.inside is not None:
            values = expand(values, self.inside)
        return values.reshape(*values.shape[:-1], *self.shape)


def tensor_samples(
    data: LeastSquaresData, shape: tuple[int, ...], inside: BoolArray | None = None
) -> TensorSamples:
    """Unfold a training set. Only modes between the first and the last need a copy of the samples.

    `inside` (m_1, .., m_N) tells the cells that are features, all by default.
    """
    modes, n_rows = range(len(shape)), data.X.shape[1]
    X, XY = data.X, data.XY
    if inside is not None:
        X, XY = np.zeros((inside.size, n_rows)), expand(XY, inside.ravel())
        X[inside.ravel()] = data.X
    cells, sums = X.reshape(*shape, n_rows), XY.reshape(-1, *shape)
    return TensorSamples(
        data=data,
        shape=shape,
        X=tuple(np.moveaxis(cells, q, 0).reshape(shape[q], -1, n_rows) for q in modes),
        XY=tuple(np.moveaxis(sums, q + 1, 1).reshape(len(sums), shape[q], -1) for q in modes),
        inside=None if inside is None else inside.ravel(),
    )


def largest_rank(shape: Sequence[int]) -> int:
    """Smallest product of all sides but one, from which every tensor has such factors."""
    return math.prod(shape) // max(shape)


def khatri_rao(factors: Sequence[FloatArray]) -> FloatArray:
    """Products of the factors' columns for all combinations of rows, (c, prod m_q, k)."""
    return reduce(
        lambda Z, A: (Z[:, :, None] * A[:, None]).reshape(len(Z), -1, Z.shape[2]), factors
    )


def composed(factors: Sequence[FloatArray]) -> FloatArray:
    """Tensors of these factors, (c, m_q, k) each. Returns (c, m_1, .., m_N)."""
    P = factors[0] @ khatri_rao(factors[1:]).transpose(0, 2, 1)
    return P.reshape(len(P), *(A.shape[1] for A in factors))


def with_first(start: Sequence[FloatArray], side: int) -> list[FloatArray]:
    """Factors of all modes from those of all but the first, which begins as zeros."""
    c, _, k = start[0].shape
    return [np.zeros((c, side, k)), *start]


def mode_step(
    samples: TensorSamples, factors: Sequence[FloatArray], mode: int, D: FloatArray, alpha: float
) -> list[FloatArray]:
    """Replace the factor of one mode by the best one for the others.

    The loss is that of `left_factors`, with the weights `D` (m_1, .., m_N) of the penalty.
    `factors` is (c, m_q, k) each; only their products matter, so that the others are returned with
    orthonormal or unit columns.
    """
    weights = np.moveaxis(D, mode, 0).reshape(D.shape[mode], -1)

    def best(basis: FloatArray) -> FloatArray:
        return left_factors(
            samples.X[mode], basis, D=weights, Y=samples.data.Y, XY=samples.XY[mode], alpha=alpha
        )

    return _replaced(factors, mode, best)


def _replaced(
    factors: Sequence[FloatArray], mode: int, best: Callable[[FloatArray], FloatArray]
) -> list[FloatArray]:
    """Replace a factor by the ``best`` in a basis of the span of the others' product."""
    if len(factors) == 2:
        # Completed where columns are dependent: any basis is a factor.
        basis = orthonormal(factors[1 - mode])
        if mode == 0:
            return [best(basis), basis]
        return [basis, best(basis)]
    unit = [_unit_columns(A) for A in factors]
    Z = khatri_rao(unit[:mode] + unit[mode + 1 :])
    # Of Z itself: the eigenvectors of Z'Z would lose half of the digits where columns are nearly
    # dependent.
    basis, sizes, rows = np.linalg.svd(Z, full_matrices=False)
    independent = (sizes > max(Z.shape[1:]) * EPS * sizes[:, :1])[:, None]
    directions = rows.transpose(0, 2, 1)
    to_basis = directions * np.divide(
        independent, sizes[:, None], out=np.zeros(independent.shape), where=independent
    )
    factor = best(basis * independent) @ to_basis.transpose(0, 2, 1)
    # What P does not depend on stays as it was, so that a component whose product vanished can
    # return.
    free = directions * ~independent
    unit[mode] = factor + unit[mode] @ (free @ free.transpose(0, 2, 1))
    return unit


def _unit_columns(A: FloatArray) -> FloatArray:
    """Columns of length 1; zero ones stay."""
    lengths = np.sqrt((A**2).sum(axis=1, keepdims=True))
    return A / np.where(lengths > 0.0, lengths, 1.0)


#: Sweeps of alternating least squares over all modes after the higher-order singular value
#: decomposition.
_SWEEPS = 10


def leading_factors(P: FloatArray, rank: int) -> list[FloatArray]:
    """Factors of an approximation of given tensors, for all modes but the first.

    Of matrices these are the leading right singular vectors. Of tensors of higher order the
    approximation is found by alternating least squares from the leading singular vectors of each
    unfolding (De Lathauwer, De Moor & Vandewalle, SIAM J. Matrix Anal. Appl. 21(4), 2000),
    completed by fixed random ones where the rank exceeds a side.
    """
    if P.ndim == 3:
        return [np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)]
    unfolded = [np.moveaxis(P, q, 1).reshape(len(P), P.shape[q], -1) for q in range(1, P.ndim)]
    rng, factors = np.random.default_rng(0), []
    for slices in unfolded:
        leading = np.linalg.eigh(slices @ slices.transpose(0, 2, 1))[1][:, :, : -rank - 1 : -1]
        drawn = rng.standard_normal((leading.shape[1], rank - leading.shape[2]))
        factors.append(np.concatenate([leading, np.tile(drawn, (len(P), 1, 1))], axis=2))
    for _ in range(_SWEEPS):
        for mode, slices in enumerate(unfolded):
            factors = _replaced(factors, mode, slices.__matmul__)
    return factors[1:]


def unit_cells(c: int, shape: Sequence[int], rank: int) -> list[FloatArray]:
    """The start ``[I; 0]`` of all modes but the first, the same for each class.

    Component j has the j-th column in every mode. Beyond the shortest side, which ``[I; 0]`` does
    not reach for matrices, it has the cells next to that diagonal. Returns (c, m_q, rank) each.
    """
    cells = np.indices(shape[1:]).reshape(len(shape) - 1, -1)
    chosen = np.argsort(np.ptp(cells, axis=0), kind="stable")[:rank]
    return [
        np.tile(np.eye(side)[:, index], (c, 1, 1))
        for side, index in zip(shape[1:], cells[:, chosen], strict=True)
    ]
