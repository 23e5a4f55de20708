"""A dual barrier method for sparse multimodal learning with few coefficients.

It follows the maxima of

    sum alpha + mu [sum log alpha + sum log (1 - alpha) + sum_jk log (gamma1^2 - ||U_j^k||^2)
                    + sum_r log (gamma2^2 - ||V^r||^2)],    sum_i alpha_ij Y_ij = 0,  U = X'(alpha *
                    Y) - V

as mu falls to 0, by Newton's method (Boyd & Vandenberghe, Convex Optimization, 2004, 11.3). All
points on the way are feasible, so each is a lower bound; W is mu times the gradient of the barrier
of U. The number of steps depends little on the data and the gammas; one takes n d^2 c + (d c)^3 / 3
multiplications.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from raysel.core.arrays import BoolArray, FloatArray
from raysel.numerics.block_norms import BlockNorm
from raysel.numerics.hinge import balanced
from raysel.solvers.smml.problem import Certificate, MultimodalProblem

#: mu falls by this factor wherever the squared Newton decrement is below _CENTRED.
_DECREASE, _CENTRED = 0.03, 0.3
#: Share of the way to the boundary that a step may go, and the decrease that a step must bring
#: (Armijo).
_INSIDE, _ARMIJO = 0.98, 0.05
#: Share of the gap that exact zeros may cost.
_SPARSE = 0.2
#: mu at which rounding outweighs progress, relative to where it began.
_LAST_MU = 1e-16


class DualBarrier:
    """Solver of one problem by a barrier method; a round is a Newton step."""

    def __init__(self, problem: MultimodalProblem, certificate: Certificate) -> None:
        self.problem, self.certificate = problem, certificate
        signs = problem.prepared.signs
        # A label that all samples have, or none, has w = 0 and alpha = 0.
        self._active: BoolArray = np.abs(signs.sum(axis=1)) < signs.shape[1]
        self._signs = signs[self._active]
        self._penalties: list[BlockNorm] = list(problem.penalties)
        self._start()

    def rounds(self) -> Iterator[Certificate]:
        """Yield the certificate after each Newton step, until rounding errors outweigh progress."""
        last = _LAST_MU * self._mu
        while self._mu > last:
            try:
                centred = self._newton()
            except np.linalg.LinAlgError:
                return
            if centred:
                self._mu *= _DECREASE
            yield self.certificate

    def _start(self) -> None:
        """Set the first point, well within both balls: alpha equal on each side."""
        X = self.problem.prepared.X
        alpha = balanced(np.full_like(self._signs, 0.5), self._signs)
        total = (alpha * self._signs) @ X
        ratio = max(float(penalty.ratios(total).max()) for penalty in self._penalties)
        scale = 1.0 / max(1.0, 2.0 * ratio)
        self._alpha, self._total = scale * alpha, scale * total
        self._V = np.zeros_like(total) if len(self._penalties) == 1 else 0.5 * self._total
        barriers = 2 * self._alpha.size + 2 * sum(
            penalty.ratios(total).size for penalty in self._penalties
        )
        # From the gap of W = 0, not of the certificate: with a mu too small for this start it takes
        # longer.
        null = Certificate(self.problem)
        self._mu = max(null.objective - null.bound, 1e-300) / barriers

    def _parts(self) -> list[FloatArray]:
        """Dual variables of each norm: U and V, or the one there is."""
        return [self._total - self._V, self._V][: len(self._penalties)]

    def _newton(self) -> bool:
        """Take one damped Newton step; return whether the centre is reached."""
        X, signs, alpha = self.problem.prepared.X, self._signs, self._alpha
        c, d = self._total.shape
        parts = self._parts()
        rooms = [
            _rooms(penalty, part) for penalty, part in zip(self._penalties, parts, strict=True)
        ]
        slopes = [
            2.0 * p / g.spread(room)
            for g, p, room in zip(self._penalties, parts, rooms, strict=True)
        ]
        gradient = 1.0 / (1.0 - alpha) - 1.0 / alpha - 1.0 / self._mu + signs * (slopes[0] @ X.T)
        weights = 1.0 / (alpha**-2 + (1.0 - alpha) ** -2)
        sums = weights.sum(axis=1, keepdims=True)
        means = weights @ X / sums
        pulled = weights * signs * gradient
        shift = pulled.sum(axis=1, keepdims=True)
        right = means * shift - pulled @ X
        matrix = np.zeros((c, d, c, d))
        for j in range(c):
            centred = X - means[j]
            matrix[j, :, j, :] = (centred * weights[j, :, None]).T @ centred
        for penalty, part, room in zip(self._penalties, parts, rooms, strict=True):
            _add_inverse(matrix, penalty, part, room)
        if len(parts) == 2:
            of_V = slopes[1] - slopes[0]
            right += _apply_inverse(self._penalties[1], parts[1], rooms[1], of_V)
        factor = scipy.linalg.cho_factor(matrix.reshape(c * d, c * d), lower=True, overwrite_a=True)
        p = scipy.linalg.cho_solve(factor, right.reshape(-1)).reshape(c, d)
        bias = -shift / sums - (means * p).sum(axis=1, keepdims=True)
        step = -weights * (gradient + signs * (p @ X.T + bias))
        step_V = np.zeros_like(self._V)
        decrement = -float((gradient * step).sum())
        if len(parts) == 2:
            step_V = _apply_inverse(self._penalties[1], parts[1], rooms[1], p - of_V)
            decrement -= float((of_V * step_V).sum())
        self._offer(self._mu * (slopes[0] + p), parts, rooms)
        return not self._move(step, step_V, decrement) or decrement < _CENTRED

    def _move(self, step: FloatArray, step_V: FloatArray, decrement: float) -> bool:
        """Search along the step by halving (Armijo); return whether it lowers enough."""
        X, signs, alpha = self.problem.prepared.X, self._signs, self._alpha
        step_total = (step * signs) @ X
        down, up = (-step / alpha).max(), (step / (1.0 - alpha)).max()
        size = min(1.0, _INSIDE / max(down, up, 1e-300))
        before, steps = self._parts(), [step_total - step_V, step_V]
        rooms = [
            _rooms(penalty, part) for penalty, part in zip(self._penalties, before, strict=True)
        ]
        while size > 1e-6:
            change = -size * float(step.sum()) / self._mu
            change -= float(
                np.log1p(size * step / alpha).sum() + np.log1p(-size * step / (1.0 - alpha)).sum()
            )
            for penalty, part, room, towards in zip(
                self._penalties, before, rooms, steps, strict=False
            ):
                ratios = _rooms(penalty, part + size * towards) / room
                change = change - float(np.log(ratios).sum()) if ratios.min() > 0.0 else np.inf
            if change <= -_ARMIJO * size * decrement:
                self._alpha = alpha + size * step
                self._total = (self._alpha * signs) @ X
                self._V = self._V + size * step_V
                return True
            size *= 0.5
        return False

    def _offer(self, W: FloatArray, parts: list[FloatArray], rooms: list[FloatArray]) -> None:
        """Pass the certificate the dual point, and W without the blocks that go to zero with mu."""
        problem = self.problem
        kept = np.ones(W.shape, dtype=bool)
        for penalty, room in zip(self._penalties, rooms, strict=True):
            norms = penalty.norms(W) * penalty.weights
            kept &= penalty.spread(norms * penalty.weights**2 > room * max(norms.max(), 1e-300))
        full, sparse, V = (np.zeros_like(problem.prepared.gradient) for _ in range(3))
        alpha = np.zeros_like(problem.prepared.signs)
        full[self._active], sparse[self._active] = W, np.where(kept, W, 0.0)
        alpha[self._active], V[self._active] = self._alpha, parts[-1]
        self.certificate.offer_dual(problem.dual_point(alpha, V))
        self.certificate.offer(problem.solution(sparse))
        whole = problem.solution(full)
        best = whole.objective(problem.gamma1, problem.gamma2)
        # Too early to tell which blocks are zero: setting them to zero would cost much of the
        # remaining gap.
        if self.certificate.objective - best > _SPARSE * (best - self.certificate.bound):
            self.certificate.offer(whole)


def _rooms(penalty: BlockNorm, part: FloatArray) -> FloatArray:
    """Slack of each block's norm constraint, weight^2 - norm^2: positive inside the ball."""
    norms = penalty.norms(part)
    return (penalty.weights - norms) * (penalty.weights + norms)


def _apply_inverse(
    penalty: BlockNorm, part: FloatArray, room: FloatArray, right: FloatArray
) -> FloatArray:
    """Multiply blocks by the inverse Hessian of -sum log(slack)."""
    overlaps = penalty.sums(part * right) / (penalty.weights**2 + penalty.norms(part) ** 2)
    return 0.5 * penalty.spread(room) * right - penalty.spread(room * overlaps) * part


def _add_inverse(
    matrix: FloatArray, penalty: BlockNorm, part: FloatArray, room: FloatArray
) -> None:
    """Add the inverse Hessian of -sum log(slack) to a matrix of shape (c, d, c, d)."""
    factors = penalty.spread(room / (penalty.weights**2 + penalty.norms(part) ** 2))
    half = np.broadcast_to(0.5 * penalty.spread(room), part.shape)
    for members in penalty.members(part.shape):
        v, f = part[members], np.broadcast_to(factors, part.shape)[members]
        block = np.diag(half[members]) - np.outer(v * f, v)
        rows, columns = members
        matrix[rows[:, None], columns[:, None], rows, columns] += block
