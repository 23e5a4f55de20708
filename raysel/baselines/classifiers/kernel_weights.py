"""Weights of kernels by multiple kernel learning: closed-form updates with a certified duality gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from raysel.arrays import FloatArray
from raysel.baselines.classifiers.kernel_classifier import fit_machine, kernel_matrix, pairs_of
from raysel.baselines.classifiers.margin_programs import highest_point

#: LIBSVM's first tolerance as a share of the relative duality gap that is asked for, and its smallest one.
_FIRST_ACCURACY, _LAST_ACCURACY = 1e-2, 1e-9
#: Smallest share of the identity's weight in the largest one, so that the sum of kernels has a Cholesky factor.
_LEAST_IDENTITY = 1e-10


@dataclass(frozen=True)
class WeightedKernels:
    """Solution for given weights of the kernels."""

    #: Weights of the kernels, for the squared loss followed by that of the identity matrix; shape (n_weights,).
    weights: FloatArray
    #: Dual coefficients; shape (n_problems, n_samples).
    dual: FloatArray
    #: Intercepts; shape (n_problems,).
    intercept: FloatArray
    objective: float


class KernelWeights:
    """Search for the weights of kernels that some binary problems share.

        min_t>=0, ||t||_p <= 1   sum_j  min_f,b  1/2 sum_k ||f_k||^2 / t_k + C sum_i (1 - y_ij (sum_k f_k(x_i) + b))_+

    with 1/p + 1/q = 1, q the norm of the dual (Yu et al. 2010)

        max_a   sum_ij y_ij a_ij  -  1/2 || (S_1, ..., S_K) ||_q,    S_k = sum_j a_j' K_k a_j,

    subject to 0 <= y_ij a_ij <= C and sum_i a_ij = 0. For the squared loss a has no bounds, and the identity matrix
    is one more kernel, whose weight is 1 / lambda, lambda being the weight of the penalty.

    Given the weights, `step` solves the binary problems, then sets t_k proportional to (t_k^2 S_k)^(1/(p+1)), which is
    optimal for the functions f_k found (Kloft et al. 2009). For q = infinity that converges slowly. There the dual
    solutions a so far give lower bounds of the optimum for any weights that are linear in t (Sonnenburg et al. 2006),
    and the next weights are halfway between the best ones so far and those of the smallest maximum of these bounds.

    The primal objective of any f, b and the dual objective of any feasible a, also of a mean of several ones, enclose
    the optimum, so that `lower` <= optimum <= ``best.objective`` holds whatever the accuracy of the solver.

    `pairs` is (n_kernels, n_samples * (n_samples - 1) / 2), `signs` (n_problems, n_samples).
    """

    def __init__(self, pairs: FloatArray, signs: FloatArray, q: float, C: float | None, tol: float) -> None:
        self._pairs, self._signs, self._q, self._C, self._tol = pairs, signs, q, C, tol
        self._accuracy = max(_FIRST_ACCURACY * tol, _LAST_ACCURACY)
        self._p = np.inf if q == 1 else 1.0 if np.isinf(q) else q / (q - 1)
        self._next = self._scaled(np.ones(len(pairs) + (C is None)))
        self._linear: list[float] = []
        self._sums: list[FloatArray] = []
        self.best: WeightedKernels | None = None
        self.lower = 0.0

    def step(self) -> WeightedKernels:
        """Solve for the current weights, update the bounds and the weights."""
        weights, n_kernels = self._next, len(self._pairs)
        kernel = kernel_matrix(weights[:n_kernels] @ self._pairs, float(weights[:n_kernels].sum()))
        if self._C is None:
            dual, intercept = _least_squares(kernel, self._signs, float(weights[-1]))
        else:
            # A constant in the kernel does not matter, as the dual coefficients sum to 0. Without it LIBSVM, which
            # stores single precision, tells apart kernel values that are all next to 1.
            kernel -= kernel.mean()
            machines = [fit_machine(kernel, sign, self._C, self._accuracy) for sign in self._signs]
            dual, intercept = np.stack([a for a, _ in machines]), np.array([b for _, b in machines])
        values = dual @ kernel
        norms, margins = (dual * values).sum(axis=1), self._signs * (values + intercept[:, None])
        if self._C is None:
            scales = np.ones(len(dual))
            objectives = 0.5 * norms + 0.5 * ((1.0 - margins) ** 2).sum(axis=1) / weights[-1]
        else:
            scaled = [_scale_machine(norm, m, self._C) for norm, m in zip(norms, margins, strict=True)]
            scales, objectives = np.array(scaled).T
        objective = float(objectives.sum())
        if self.best is None or objective < self.best.objective:
            self.best = WeightedKernels(weights, scales[:, None] * dual, scales * intercept, objective)
        self._update(self.best, weights, dual, objective)
        return self.best

    @property
    def gap(self) -> float:
        """Upper bound of (P - P*) / P*, P the objective of the best solution and P* the optimum."""
        if self.best is None or self.best.objective <= self.lower:
            return np.inf if self.best is None else 0.0
        return (self.best.objective - self.lower) / self.lower if self.lower > 0 else np.inf

    def _update(self, best: WeightedKernels, weights: FloatArray, dual: FloatArray, objective: float) -> None:
        """Raise the lower bound, and set the next weights and LIBSVM's tolerance."""
        squares = float((dual**2).sum())
        sums = np.maximum(0.0, 2.0 * (self._pairs @ pairs_of(dual.T @ dual)) + squares)
        if self._C is None:
            sums = np.append(sums, squares)
        linear = float((dual * self._signs).sum())
        self._raise_lower(linear, float(np.linalg.norm(sums, self._q)))
        if objective - (linear - 0.5 * float(weights @ sums)) > 0.25 * self._tol * self.lower:
            self._accuracy = max(0.1 * self._accuracy, _LAST_ACCURACY)
        if np.isinf(self._q):
            self._linear.append(linear)
            self._sums.append(sums)
            all_linear, all_sums = np.array(self._linear), np.array(self._sums)
            cuts = 0.5 * all_sums - all_linear[:, None]
            highest, _, shares = highest_point(cuts / np.abs(cuts).max())
            self._raise_lower(float(shares @ all_linear), float((shares @ all_sums).max()))
            self._next = self._scaled(0.5 * (best.weights + highest))
        elif sums.any() and not np.isinf(self._p):
            self._next = self._scaled((weights**2 * sums) ** (1.0 / (self._p + 1.0)))

    def _raise_lower(self, linear: float, quadratic: float) -> None:
        """Raise the lower bound to the dual objective of a feasible a, given its two terms."""
        # A feasible a stays feasible if it is shortened, and for the squared loss also if it is lengthened.
        best = linear / quadratic if quadratic > 0 else 1.0
        share = best if self._C is None else min(1.0, best)
        self.lower = max(self.lower, share * linear - 0.5 * share**2 * quadratic)

    def _scaled(self, weights: FloatArray) -> FloatArray:
        """Weights of p-norm 1."""
        if self._C is None:
            weights[-1] = max(weights[-1], _LEAST_IDENTITY * weights.max())
        scaled: FloatArray = weights / np.linalg.norm(weights, self._p)
        return scaled


def _scale_machine(norm: float, margins: FloatArray, C: float) -> tuple[float, float]:
    """Scale an approximate SVM such that its objective falls; return the scale and the objective."""
    # LIBSVM leaves margins slightly below 1, which cost as much as all else if C is large. The objective s^2 norm / 2 +
    # C sum_i (1 - s m_i)_+ is compared for s = 1 and every s that brings a margin to 1.
    ordered = np.sort(margins)
    n_below = np.searchsorted(ordered, np.append(1.0, ordered[ordered > 0]))
    scales = 1.0 / np.append(1.0, ordered[ordered > 0])
    sums = np.append(0.0, np.cumsum(ordered))
    objectives = 0.5 * scales**2 * norm + C * (n_below - scales * sums[n_below])
    best = int(objectives.argmin())
    # The sums above lose digits where all margins are next to 1.
    return float(scales[best]), float(
        0.5 * scales[best] ** 2 * norm + C * np.maximum(0.0, 1.0 - scales[best] * margins).sum()
    )


def _least_squares(kernel: FloatArray, signs: FloatArray, identity: float) -> tuple[FloatArray, FloatArray]:
    """Solve [0 1'; 1 K + identity I] [b; a] = [0; y] for all targets by one Cholesky factorization."""
    matrix = kernel.copy()
    matrix.flat[:: len(matrix) + 1] += identity
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.column_stack([np.ones(len(matrix)), signs.T]), check_finite=False)
    ones, targets = solved[:, 0], solved[:, 1:]
    intercept: FloatArray = targets.sum(axis=0) / ones.sum()
    dual = targets - np.outer(ones, intercept)
    return np.ascontiguousarray(dual.T), intercept
