"""Algorithm 1 of Wang et al., CVPR 2013: multimodal learning as a sequence of SVMs.

Both norms are replaced by quadratic upper bounds that are tangent at the present W: one SVM a class
in the metric eta_jr = a r / (gamma1 r + gamma2 a), a = ||w_j^k|| and r = ||w^r||:  min_w sum hinge
+ 1/2 sum_r w_r^2 / eta_jr. Norms are smoothed to sqrt(norm^2 + eps^2); eps falls from 0.1 to 1e-7
of the largest norm. The iteration lowers the smoothed objective, which thereby tends to the
objective itself, whatever the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from raysel.core.arrays import FloatArray
from raysel.numerics.hinge import best_bias, hinge_loss
from raysel.solvers.smml.problem import Certificate, MultimodalProblem

#: eps of iteration t is max(1e-7, 0.1 * 0.3^t) times the largest norm.
_FIRST_EPS, _EPS_DECAY, _LAST_EPS = 0.1, 0.3, 1e-7
#: LIBSVM's stopping tolerance; with its default, 1e-3, the iteration rises and stalls.
_SVM_TOL = 1e-8
#: LIBSVM's limit of steps: on a kernel reduced to few features the last digits would take far more.
_SVM_STEPS = 100_000


class ReweightedSVM:
    """Solver of one problem by Algorithm 1; a round is one SVM a class and one reweighting."""

    def __init__(self, problem: MultimodalProblem, svm_tol: float = _SVM_TOL) -> None:
        self.problem, self.certificate = problem, Certificate(problem)
        self.n_subproblems = 0
        self.smoothed_objective = np.inf
        self._svm_tol = svm_tol
        self._modality_norm, self._feature_norm = problem.modality_norm, problem.feature_norm
        self._eps = np.array([np.inf, np.inf])
        # Equal norms everywhere: the metric in which only the units and the gammas tell features
        # apart.
        shape = problem.prepared.gradient.shape
        self._norms = np.ones((shape[0], len(problem.prepared.units))), np.ones(shape[1])

    def rounds(self) -> Iterator[Certificate]:
        """Yield the certificate after each round, without end."""
        count = 0
        while True:
            alpha, W = self._solve_machines()
            self._certify(alpha, W)
            self._reweigh(W, max(_LAST_EPS, _FIRST_EPS * _EPS_DECAY**count))
            count += 1
            yield self.certificate

    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Both terms of 1 / eta = gamma1 / a + gamma2 / r, of shapes (c, d) and (d,)."""
        modality_norms, feature_norms = self._norms
        of_modalities = self.problem.gamma1 * self._modality_norm.weights**2 / modality_norms
        of_features = self.problem.gamma2 * self._feature_norm.weights**2 / feature_norms
        return self._modality_norm.spread(of_modalities), of_features

    def _original_norms(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Norms of W's blocks in the original units: (c, n_modalities) and (d,)."""
        penalties = self._modality_norm, self._feature_norm
        modality_norms, feature_norms = (
            penalty.norms(W) * penalty.weights for penalty in penalties
        )
        return modality_norms, feature_norms

    def _solve_machines(self) -> tuple[FloatArray, FloatArray]:
        """Solve one SVM a class; return the dual variables (c, n) and W (c, d)."""
        X, signs = self.problem.prepared.X, self.problem.prepared.signs
        of_modalities, of_features = self._weights()
        metric = 1.0 / (of_modalities + of_features)
        alpha = np.zeros_like(signs)
        for dual, sign, eta in zip(alpha, signs, metric, strict=True):
            if np.all(sign == sign[0]):
                continue  # a label without positives or negatives: w = 0, no machine to train
            kernel = (X * eta) @ X.T
            machine = SVC(
                kernel="precomputed", tol=self._svm_tol, cache_size=1000, max_iter=_SVM_STEPS
            )
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", ConvergenceWarning
                )  # the duality gap shows the error
                machine.fit(kernel, sign)
            dual[machine.support_] = np.abs(machine.dual_coef_[0])
            self.n_subproblems += 1
        return alpha, (alpha * signs) @ X * metric

    def _certify(self, alpha: FloatArray, W: FloatArray) -> None:
        """Pass the certificate W, also without blocks of rounding size, and alpha."""
        _, of_features = self._weights()
        modality_floor, feature_floor = 10.0 * np.where(np.isfinite(self._eps), self._eps, 0.0)
        modality_norms, feature_norms = self._original_norms(W)
        kept = self._modality_norm.spread(modality_norms > modality_floor) & (
            feature_norms > feature_floor
        )
        self.certificate.offer(self.problem.solution(np.where(kept, W, 0.0)))
        self.certificate.offer(self.problem.solution(W))
        self.certificate.offer_dual(self.problem.dual_point(alpha, of_features * W))

    def _reweigh(self, W: FloatArray, eps: float) -> None:
        """Set the norms of W, smoothed by eps times the largest, which never grows."""
        problem = self.problem
        norms = self._original_norms(W)
        largest = np.array([part.max() for part in norms])
        if not largest.all():
            largest[:] = np.finfo(float).eps
        self._eps = np.minimum(self._eps, eps * largest)
        self._norms = np.hypot(norms[0], self._eps[0]), np.hypot(norms[1], self._eps[1])
        scores = W @ problem.prepared.X.T
        scores += best_bias(scores, problem.prepared.signs)[:, None]
        hinge = float(hinge_loss(scores, problem.prepared.signs).sum())
        smoothed = problem.gamma1 * self._norms[0].sum() + problem.gamma2 * self._norms[1].sum()
        self.smoothed_objective = hinge + float(smoothed)
