"""Algorithm 1 of the paper over two SVM solvers: the rivals that SMML's ADMM is measured
against.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.svm import LinearSVC

from raysel.core.arrays import FloatArray
from raysel.solvers.smml.problem import MultimodalProblem
from raysel.solvers.smml.reweighted import ReweightedSVM


def over_libsvm(problem: MultimodalProblem) -> ReweightedSVM:
    """scikit-learn's SVC on the precomputed Gram matrix; its default tolerance, 1e-3, would
    stall above 1e-4.
    """
    return ReweightedSVM(problem, svm_tol=1e-5)


class OverLiblinear(ReweightedSVM):
    """scikit-learn's LinearSVC on the scaled features; its penalised bias is made cheap by
    intercept_scaling.
    """

    def _solve_machines(self) -> tuple[FloatArray, FloatArray]:
        X, signs = self.problem.prepared.X, self.problem.prepared.signs
        of_blocks, of_rows = self._weights()
        roots = np.sqrt(1.0 / (of_blocks + of_rows))
        W = np.zeros_like(roots)
        alpha = np.zeros_like(signs)
        for j, (sign, root) in enumerate(zip(signs, roots, strict=True)):
            machine = LinearSVC(
                loss="hinge", tol=1e-4, intercept_scaling=100.0, max_iter=1000, random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                machine.fit(X * root, sign)
            W[j] = root * machine.coef_[0]
            self.n_subproblems += 1
        return alpha, W  # liblinear keeps its dual to itself: no certificate, only the objective
