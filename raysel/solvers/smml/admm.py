"""Consensus ADMM for sparse multimodal learning: three proximal steps and one ridge step an update.

The problem is split into Z1 = X W + b (hinge), Z2 = W (modality norm) and Z3 = W (feature norm).
One update, in Douglas and Rachford's form, takes s = (s1, s2, s3) to s + 1.7 (projection(2 z - s) -
z) with z = prox(s). The projection on {(X W + b, W, W)} is a ridge regression whose matrix depends
on neither class nor gamma, so that one eigendecomposition a training set serves all. The dual
variables are rho (s1 - z1), rho tau (s2 - z2) and rho tau (s3 - z3). Anderson acceleration
extrapolates s; rho and tau are balanced by the residuals of their own splits (Boyd et al., Found.
Trends Mach. Learn. 2011, 3.4.1, with relative residuals).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray
from raysel.numerics.hinge import hinge_step
from raysel.numerics.reweighting import AndersonAccelerator
from raysel.solvers.smml.problem import Certificate, MultimodalProblem

#: Updates between two evaluations of the certificate, each of which costs as much as one update.
UPDATES = 10
_RELAXATION = 1.7
_TAU = 2.0
#: Ratio of relative residuals, primal to dual and square root, that each split is balanced to: a
#: single feature that violates the dual constraints lowers the whole bound, so the dual residual of
#: the norms gets more weight.
_HINGE_BALANCE, _PENALTY_BALANCE = 1.0, 2.0


class ConsensusADMM:
    """Solver of one problem by ADMM; a round is ``UPDATES`` updates and their certificate."""

    def __init__(self, problem: MultimodalProblem) -> None:
        self.problem, self.certificate = problem, Certificate(problem)
        self._penalties = problem.penalties
        X, signs = problem.prepared.X, problem.prepared.signs
        self._shapes = [signs.shape] + [(len(signs), X.shape[1])] * len(self._penalties)
        self._stops = np.cumsum([c * width for c, width in self._shapes])
        self._s, self._z, self._reflected, self._projected = (
            np.zeros(self._stops[-1]) for _ in range(4)
        )
        self._anderson = AndersonAccelerator(len(self._s))
        # Measured: rho ends near this, and tau between 1 and 10, in the units that X was given.
        self.rho = float(np.clip(4.0 * problem.fractions.sum(), 1e-6, 0.5))
        self.tau = _TAU
        self._factor()
        #: alpha (c, n) and V (c, d) of the better of a round's two dual points, before they are
        #: made feasible.
        self.dual_variables = np.zeros_like(signs), np.zeros((len(signs), X.shape[1]))

    def enlarged(self, problem: MultimodalProblem, old: BoolArray, V: FloatArray) -> ConsensusADMM:
        """Continue with more features, of which ``old`` (d,) are known and ``V`` begins others."""
        larger = ConsensusADMM(problem)
        larger.rho, larger.tau = self.rho, self.tau
        larger._factor()
        (of_scores, *known), (new_of_scores, *parts) = (
            self._parts(self._s),
            larger._parts(larger._s),
        )
        new_of_scores[:] = of_scores
        for part, values in zip(parts, known, strict=True):
            part[:, old] = values
        parts[-1][:, ~old] = V[:, ~old] / (self.rho * self.tau)
        return larger

    def rounds(self) -> Iterator[Certificate]:
        """Yield the certificate after each round, without end."""
        count = 0
        if self.certificate.gap == 0.0:
            yield self.certificate
        while True:
            count += 1
            for _ in range(UPDATES):
                self._update()
            ahead = np.empty_like(self._z)
            self._proximal(self._s, ahead)
            self._certify(ahead)
            if (
                count & (count - 1) == 0
            ):  # rounds 1, 2, 4, 8, ...: ever rarer, so that it still converges
                self._balance(ahead)
            yield self.certificate

    def _parts(self, flat: FloatArray) -> list[FloatArray]:
        """Views of a flat vector as Z1 (c, n), Z2 and Z3 (c, d)."""
        starts = [0, *self._stops[:-1]]
        return [
            flat[a:b].reshape(s) for a, b, s in zip(starts, self._stops, self._shapes, strict=True)
        ]

    def _factor(self) -> None:
        """Form (X'X + k tau I)^-1 or (XX' + k tau I)^-1 from the shared eigendecomposition."""
        prepared = self.problem.prepared
        scaled = prepared.eigenvectors / (prepared.eigenvalues + len(self._penalties) * self.tau)
        self._inverse = scaled @ prepared.eigenvectors.T

    def _update(self) -> None:
        self._proximal(self._s, self._z)
        np.multiply(self._z, 2.0, out=self._reflected)
        self._reflected -= self._s
        self._project()
        step = self._projected - self._z
        step *= _RELAXATION
        self._s = self._anderson.next(self._s, step)

    def _proximal(self, s: FloatArray, out: FloatArray) -> None:
        s_parts, z_parts = self._parts(s), self._parts(out)
        hinge_step(s_parts[0], self.problem.prepared.signs, 1.0 / self.rho, out=z_parts[0])
        for penalty, part, z in zip(self._penalties, s_parts[1:], z_parts[1:], strict=True):
            penalty.shrink(part, 1.0 / (self.rho * self.tau), out=z)

    def _project(self) -> None:
        """Project the reflected point on the (X W + b, W, W), with weight tau on both W."""
        X = self.problem.prepared.X
        n, d = X.shape
        target, *copies = self._parts(self._reflected)
        scores, W, *others = self._parts(self._projected)
        bias = target.mean(axis=1, keepdims=True)
        if n < d:  # W = B + X'(XX' + k tau I)^-1 (A - b - X B), and X W comes along
            B = copies[0] if len(copies) == 1 else 0.5 * (copies[0] + copies[1])
            centred = target - bias
            S = (centred - B @ X.T) @ self._inverse
            np.matmul(S, X, out=W)
            W += B
            S *= len(copies) * self.tau
            np.subtract(centred, S, out=scores)
        else:
            right = target @ X
            for copy in copies:
                right += self.tau * copy
            np.matmul(right, self._inverse, out=W)
            np.matmul(W, X.T, out=scores)
        scores += bias
        for other in others:
            other[:] = W

    def _balance(self, ahead: FloatArray) -> None:
        """Change rho and tau so that the primal and dual residuals become alike."""
        dual = self._s - ahead
        factors = []
        hinge, penalties = slice(0, self._stops[0]), slice(self._stops[0], None)
        for cut, target in ((hinge, _HINGE_BALANCE), (penalties, _PENALTY_BALANCE)):
            projected, old, new, u = self._projected[cut], self._z[cut], ahead[cut], dual[cut]
            primal = _norm(projected - old) * _norm(u)
            change = _norm(new - old) * max(_norm(projected), _norm(old))
            ratio = np.sqrt(primal / change) / target if primal > 0 < change else 1.0
            factors.append(float(np.clip(ratio, 0.1, 10.0)))
        hinge_factor, penalty_factor = factors
        if max(abs(np.log(factors))) < np.log(2.0):
            return
        dual[hinge] /= hinge_factor
        dual[penalties] /= penalty_factor
        self._s = ahead + dual
        self.rho *= hinge_factor
        self.tau *= penalty_factor / hinge_factor
        self._factor()
        self._anderson.restart()

    def _certify(self, ahead: FloatArray) -> None:
        """Pass the sparse W and two dual points to the certificate."""
        # After a proximal step the multipliers are within their bounds but X'(alpha * Y) = U + V
        # does not hold; after a projection it is the other way round. Which of them gives the
        # higher bound, once feasible, varies.
        problem, signs = self.problem, self.problem.prepared.signs
        z = self._parts(ahead)
        W = z[-1] if len(self._penalties) == 1 else np.where(z[1] != 0.0, z[2], 0.0)
        self.certificate.offer(problem.solution(W.copy()))
        highest = -np.inf
        for multipliers in (self._s - ahead, self._projected - self._reflected):
            of_scores, *_, of_last = self._parts(multipliers)
            alpha, V = -self.rho * of_scores * signs, self.rho * self.tau * of_last
            dual = problem.dual_point(alpha, V)
            self.certificate.offer_dual(dual)
            if (bound := dual.bound(problem.gamma1, problem.gamma2)) > highest:
                highest, self.dual_variables = bound, (alpha, V)


def _norm(x: FloatArray) -> float:
    return float(np.sqrt(x @ x))
