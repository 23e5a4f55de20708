"""Scatter matrices of labelled sample sets, and trace ratio problems that share one ratio.

With X centred (n x D), S_t = X'X/n and S_b = sum_k n_k/n m_k m_k' (m_k: the mean of class k). An
orthonormal basis Q of range(S_t) turns them into S_t = diag(total) and S_b = H H' with one column a
class; neither is ever formed in the original features. Directions outside that range are constant
in the data: dropping them loses nothing, and no ratio becomes 0/0. Over the scatter matrices B_i,
T_i of several sample sets

    maximise over V_i'V_i = I:   sum_i w_i tr(V_i' B_i V_i) / sum_i w_i tr(V_i' T_i V_i)

F(x) = sum_i w_i (sum of the d_i largest eigenvalues of B_i - x T_i) is convex and decreasing, and
its one root is the global optimum. Newton's step on F (Dinkelbach's method) takes those
eigenvectors and sets x to the ratio they attain. Wang et al., "Trace ratio vs. ratio trace", CVPR
2007; Zhang & Yeung, AAAI 2011, eq. 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics.linear_algebra import EPS, centre, equilibrated_rank, gram, rank_cut, thin_svd

#: Lower bound of the within-class share of a direction's total scatter.
SMALLEST_WITHIN = 1e-8

#: Where the maximum 1 is attained by more than one subspace, the limit from below is the canonical
#: one.
LARGEST_RATIO = 1.0 - 1e-8

#: A direction whose ratio is above this is one where B = T.
SEPARATED = 1.0 - 1e-10

#: An eigenvalue below this share of the largest has lost half of its digits to rounding.
RESOLVED = EPS**0.5

#: Dimension from which a few eigenvectors take Lanczos iterations on a low-rank form less time than
#: LAPACK.
LARGE = 384
#: Number of restarts of these iterations, which where eigenvalues are close do not pay.
_RESTARTS = 10


@dataclass(frozen=True, kw_only=True)
class ScatterRange:
    """One labelled sample set in the coordinates of the range of its total scatter."""

    #: Mean of each feature; shape (D,).
    mean: FloatArray
    #: Q itself or, if dual, A with Q = X' A for the centred X: an n x r array instead of D x r;
    #: shape (D, r) or (n, r).
    basis: FloatArray
    dual: bool
    #: Eigenvalues of S_t, descending, all positive; shape (r,).
    total: FloatArray
    #: H with Q' S_b Q = H H'; shape (r, c).
    between: FloatArray
    #: Number of samples of each class; shape (c,).
    class_counts: IntArray
    varying: int

    @property
    def rank(self) -> int:
        """Dimension r of the range of the total scatter."""
        return len(self.total)

    @property
    def within_trace(self) -> float:
        """Trace of the within-class scatter, at least what rounding may leave of 0."""
        whole = self.total.sum()
        return float(max(EPS * whole, whole - (self.between**2).sum()))

    def lift(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """Express directions of the range in the original features: Q V.

        `centred` is (n, D), `V` (r, d); returns (D, d).
        """
        lifted = self.basis @ V
        if self.dual:
            return centred.T @ lifted
        return lifted

    def embed(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """Project the same samples: X Q V, (n, d); the dual form reads no feature."""
        if self.dual:
            return self.basis @ ((len(self.basis) * self.total)[:, None] * V)
        return centred @ (self.basis @ V)


def scatter_range(X: FloatArray, codes: IntArray, n_classes: int) -> ScatterRange:
    """Reduce a labelled sample set to the range of its total scatter.

    `X` is (n, D), `codes` (n,).
    """
    n = len(X)
    mean, centred = centre(X)
    counts = np.bincount(codes, minlength=n_classes)
    # Column k of X' membership is sqrt(n_k / n) m_k.
    membership = np.zeros((n, n_classes))
    membership[np.arange(n), codes] = 1.0 / np.sqrt(np.maximum(counts, 1) * n)[codes]
    dual, varies = n < X.shape[1], centred.any(axis=0)
    offset = np.where(varies, mean, 0.0)
    most = min(n - 1, int(np.count_nonzero(varies)))
    values, vectors = scipy.linalg.eigh(
        gram(centred, of_rows=dual),
        driver="evd",
        check_finite=False,
        overwrite_a=True,
    )
    kept = slice(len(values) - most, None)
    vectors = np.ascontiguousarray(vectors[:, kept][:, ::-1])
    values = values[kept][::-1]
    # Here the means may still be n eps off.
    floor = rank_cut(np.sqrt(np.abs(values[:1])), centred.shape, n * float(np.linalg.norm(offset)))
    varying = most
    if (values > np.maximum(RESOLVED * values[:1], floor**2)).all():
        if dual:
            basis = vectors / np.sqrt(values)
            between = (vectors.T @ membership) * np.sqrt(values)[:, None]
        else:
            basis, between = vectors, vectors.T @ (centred.T @ membership)
    else:
        dual = False
        # The rounding of a mean far from 0 may exceed that of its differences.
        centred -= centred.mean(axis=0)
        left, singular, basis = thin_svd(centred, offset)
        values, between = singular**2, singular[:, None] * (left.T @ membership)
        if len(values) < most:
            varying = equilibrated_rank(centred, offset, len(values))
    return ScatterRange(
        mean=mean,
        basis=basis,
        dual=dual,
        total=values / n,
        between=np.ascontiguousarray(between),
        class_counts=counts.astype(np.int64),
        varying=varying,
    )


def fisher_directions(
    reduced: ScatterRange, size: int, shrinkage: float
) -> tuple[FloatArray, FloatArray]:
    """Solve S_b v = ratio S_t v by eigenvectors of H' D^-1 H, with S_t = D + shrinkage H H'.

    Returns `V` (r, size), `ratios` (size,).
    """
    diagonal = (1 - shrinkage) * reduced.total + shrinkage * reduced.within_trace / reduced.rank
    weighted = reduced.between / diagonal[:, None]
    values, vectors = scipy.linalg.eigh(reduced.between.T @ weighted, check_finite=False)
    values = np.maximum(values[: -size - 1 : -1], np.finfo(np.float64).tiny)
    within = values * np.maximum(1 - (1 - shrinkage) * values, SMALLEST_WITHIN)
    return weighted @ (vectors[:, : -size - 1 : -1] / np.sqrt(within)), values / (
        1 + shrinkage * values
    )


@dataclass(frozen=True)
class Scatters:
    """The two matrices of one trace ratio: B = H H' and T = diag(total) + overlap H H'."""

    #: H, one column a class; shape (r, c).
    between: FloatArray
    #: Positive diagonal of T without its multiple of B; shape (r,).
    total: FloatArray
    overlap: float = 0.0

    @property
    def trace(self) -> float:
        """Trace of T."""
        return float(self.total.sum() + self.overlap * (self.between**2).sum())

    def difference(self, ratio: float) -> FloatArray:
        """B - ratio T, shape (r, r)."""
        matrix = (1.0 - ratio * self.overlap) * (self.between @ self.between.T)
        matrix.flat[:: len(matrix) + 1] -= ratio * self.total
        return matrix

    def leading(self, ratio: float, size: int) -> FloatArray:
        """Eigenvectors (r, size) of the largest eigenvalues of B - ratio T, largest first."""
        diagonal = self.total + self.overlap * (self.between**2).sum(axis=1)
        if diagonal.min() < RESOLVED * diagonal.max():
            return self._graded(ratio)[:, :size]
        r = len(self.total)
        if r >= LARGE and 16 * size <= r and (V := self._leading_few(ratio, size)) is not None:
            return V
        matrix = self.difference(ratio)
        if 4 * size > r:  # divide and conquer for all is then the faster
            _, vectors = scipy.linalg.eigh(
                matrix, driver="evd", check_finite=False, overwrite_a=True
            )
        else:
            few = (r - size, r - 1)
            _, vectors = scipy.linalg.eigh(
                matrix, subset_by_index=few, check_finite=False, overwrite_a=True
            )
        return np.ascontiguousarray(vectors[:, : -size - 1 : -1])

    def _leading_few(self, ratio: float, size: int) -> FloatArray | None:
        """``leading`` by Lanczos iterations on (shift I - B + ratio T)^-1; None if they fail.

        With E = shift I + ratio diag(total) and H H' = B (1 - ratio overlap) the inverse of the
        difference E - H H' is E^-1 + E^-1 H (I - H'E^-1 H)^-1 H'E^-1 (Woodbury): a product costs
        O(rc). The largest eigenvalue is below the shift where no eigenvalue of H'E^-1 H exceeds 1.
        """
        H, diagonal = np.sqrt(1.0 - ratio * self.overlap) * self.between, ratio * self.total

        def inner(shift: float) -> FloatArray:
            return H.T @ (H / (shift + diagonal)[:, None])

        def exceeding(shift: float) -> int:
            """Count the eigenvalues of B - ratio T above the shift (Sylvester)."""
            values = scipy.linalg.eigvalsh(inner(shift), check_finite=False)
            return int(np.count_nonzero(diagonal < -shift) + np.count_nonzero(values > 1))

        low = -diagonal.min()
        high = low + scipy.linalg.norm(H, 2) ** 2  # bounds of the largest eigenvalue (Weyl)
        for _ in range(8):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeding(middle) else (low, middle)
        # Not so close that rounding errors of the largest eigenvalue hide the others.
        shift = 2 * high - low
        weighted = H / (shift + diagonal)[:, None]
        factor = scipy.linalg.cho_factor(np.eye(H.shape[1]) - inner(shift), check_finite=False)

        def solve(v: FloatArray) -> FloatArray:
            v = v.ravel()
            part = scipy.linalg.cho_solve(factor, weighted.T @ v, check_finite=False)
            return v / (shift + diagonal) + weighted @ part

        inverse = LinearOperator((len(H), len(H)), matvec=solve, dtype=np.float64)
        start = np.random.RandomState(0).uniform(-1, 1, len(H))
        try:
            values, V = eigsh(
                inverse, size, which="LA", v0=start, ncv=max(2 * size + 1, 30), maxiter=_RESTARTS
            )
        except ArpackNoConvergence:
            return None
        farthest = 1 / values[0]  # the distance of the smallest of the eigenvalues to the shift
        if exceeding(shift - farthest * (1 - RESOLVED)) >= size:
            return None  # of equal eigenvalues Lanczos iterations may find one only
        return np.ascontiguousarray(
            scipy.linalg.qr(V[:, ::-1], mode="economic", check_finite=False)[0]
        )

    def _graded(self, ratio: float) -> FloatArray:
        """All eigenvectors of B - ratio T where some directions have next to no scatter."""
        # Rounding errors of the size of the largest eigenvalues hide the small ones, but leave
        # their common eigenspace exact: the problem is solved again within it, with smaller
        # rounding errors, until every eigenvalue is resolved.
        V, start, stop = np.eye(len(self.total)), 0, len(self.total)
        while True:
            values, turn = self._within(V[:, start:stop], ratio)
            V[:, start:stop] = V[:, start:stop] @ turn
            size = np.abs(values)
            blurred = np.flatnonzero(size <= RESOLVED * size.max())
            if len(blurred) in {0, len(size)}:
                return V
            start, stop = start + blurred[0], start + blurred[-1] + 1

    def _within(self, V: FloatArray, ratio: float) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of V'(B - ratio T)V, largest first."""
        projected = self.between.T @ V
        inner = (1.0 - ratio * self.overlap) * projected.T @ projected - ratio * (
            V.T * self.total
        ) @ V
        values, vectors = scipy.linalg.eigh(
            inner, driver="evd", check_finite=False, overwrite_a=True
        )
        return values[::-1], vectors[:, ::-1]

    def separating(self, size: int) -> FloatArray | None:
        """Directions (r, size) of the largest B where B = T, the limit of ``leading`` at 1.

        Bv = Tv means v = T^-1 H e with e = H'v, an eigenvector of H'T^-1 H for the eigenvalue 1.
        None if there are fewer such directions than ``size``.
        """
        if self.overlap:
            return None
        weighted = self.between / self.total[:, None]
        values, vectors = scipy.linalg.eigh(self.between.T @ weighted, check_finite=False)
        attained = values > SEPARATED
        if np.count_nonzero(attained) < size:
            return None
        V = scipy.linalg.qr(weighted @ vectors[:, attained], mode="economic", check_finite=False)[0]
        return (
            V
            @ scipy.linalg.svd(self.between.T @ V, full_matrices=False, check_finite=False)[2][
                :size
            ].T
        )

    def principal(self, V: FloatArray, ratio: float) -> FloatArray:
        """Rotate V within its span to the eigenvectors of V'(B - ratio T)V, largest first."""
        return V @ self._within(V, ratio)[1]

    def traces(self, V: FloatArray) -> tuple[float, float]:
        """The two traces of the ratio: tr(V'BV) and tr(V'TV)."""
        between = float(((self.between.T @ V) ** 2).sum())
        return between, float(self.total @ (V**2).sum(axis=1)) + self.overlap * between

    def column_ratios(self, V: FloatArray) -> FloatArray:
        """Ratio v'Bv / v'Tv of each column v of V, shape (n_columns,)."""
        between = ((self.between.T @ V) ** 2).sum(axis=0)
        return between / (self.total @ V**2 + self.overlap * between)


def shrunken(between: FloatArray, total: FloatArray, shrinkage: float = 0.0) -> Scatters:
    """Shrink the within-class scatter: B = S_b, T = S_b + (1 - s) S_w + s tr(S_w)/r I.

    Here S_b = H H' and S_w = diag(total) - S_b.

    `between` is (r, c), `total` (r,).
    """
    mean = total.mean()  # S_w is at least what rounding may leave of 0
    ridge = shrinkage * float(max(EPS * mean, mean - (between**2).sum() / len(total)))
    return Scatters(between, (1 - shrinkage) * total + ridge, overlap=shrinkage)


def shared_ratio(
    problems: Sequence[Scatters], bases: Sequence[FloatArray], weights: FloatArray
) -> float:
    """Common ratio of several problems: ``sum_i w_i tr(V_i'B_iV_i) / sum_i w_i tr(V_i'T_iV_i)``.

    Each of `bases` is (r_i, d_i), `weights` is (len(problems),).
    """
    between, total = weights @ np.array(
        [problem.traces(V) for problem, V in zip(problems, bases, strict=True)]
    )
    return float(between / total)


def maximize_trace_ratio(
    problems: Sequence[Scatters], sizes: Sequence[int], weights: FloatArray
) -> Iterator[tuple[float, list[FloatArray]]]:
    """Maximise the common ratio by Newton's method from x = 0.

    The ratio never falls, and converges quadratically.

    Where every problem has enough directions with B = T the ratio is 1, and one step attains it.
    The iterator has no end: the caller stops.

    `weights` is (len(problems),); yields `bases` each (r_i, d_i).
    """
    pairs = list(zip(problems, sizes, strict=True))
    separating = [problem.separating(size) for problem, size in pairs]
    bases = [V for V in separating if V is not None]
    while len(bases) == len(pairs):
        yield shared_ratio(problems, bases, weights), bases
    ratio = 0.0
    while True:
        bases = [problem.leading(min(ratio, LARGEST_RATIO), size) for problem, size in pairs]
        ratio = shared_ratio(problems, bases, weights)
        yield ratio, bases
