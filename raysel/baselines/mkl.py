"""Multiple kernel learning: closed-form weights of kernels with a certified gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from raysel.base.estimator import POSITIVE, IterativeEstimator
from raysel.baselines.kernel_classifiers import (
    KernelClassifier,
    PreparedKernels,
    fit_machine,
    kernel_matrix,
    take_pairs,
)
from raysel.baselines.lp_boost import highest_point
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.numerics.optimality import relative_gap

#: LIBSVM's first tolerance as a share of the relative duality gap that is asked for, and its
#: smallest one.
_FIRST_ACCURACY, _LAST_ACCURACY = 1e-2, 1e-9
#: Smallest share of the identity's weight in the largest one, so that the sum of kernels has a
#: Cholesky factor.
_LEAST_IDENTITY = 1e-10


@dataclass(frozen=True)
class WeightedKernels:
    """Solution for given weights of the kernels."""

    #: Weights of the kernels, for the squared loss followed by that of the identity matrix; shape
    #: (n_weights,).
    weights: FloatArray
    #: Dual coefficients; shape (n_problems, n_samples).
    dual: FloatArray
    #: Intercepts; shape (n_problems,).
    intercept: FloatArray
    objective: float


def _conjugate(q: float) -> float:
    """Return p with 1 / p + 1 / q = 1, for q from 1 to infinity."""
    if q == 1:
        return np.inf
    if np.isinf(q):
        return 1.0
    return q / (q - 1)


class KernelWeights:
    """Search for the weights of kernels that some binary problems share.

        min_t>=0, ||t||_p <= 1   sum_j  min_f,b  1/2 sum_k ||f_k||^2 / t_k + C sum_i (1 - y_ij
        (sum_k f_k(x_i) + b))_+

    with 1/p + 1/q = 1, q the norm of the dual (Yu et al. 2010)

        max_a   sum_ij y_ij a_ij  -  1/2 || (S_1, ..., S_K) ||_q,    S_k = sum_j a_j' K_k a_j,

    subject to 0 <= y_ij a_ij <= C and sum_i a_ij = 0. For the squared loss a has no bounds, and the
    identity matrix is one more kernel, whose weight is 1 / lambda, lambda being the weight of the
    penalty.

    Given the weights, `step` solves the binary problems, then sets t_k proportional to (t_k^2
    S_k)^(1/(p+1)), which is optimal for the functions f_k found (Kloft et al. 2009). For q =
    infinity that converges slowly. There the dual solutions a so far give lower bounds of the
    optimum for any weights that are linear in t (Sonnenburg et al. 2006), and the next weights are
    halfway between the best ones so far and those of the smallest maximum of these bounds.

    The primal objective of any f, b and the dual objective of any feasible a, also of a mean of
    several ones, enclose the optimum, so that `lower` <= optimum <= ``best.objective`` holds
    whatever the accuracy of the solver.

    `pairs` is (n_kernels, n_samples * (n_samples - 1) / 2), `signs` (n_problems, n_samples).
    """

    def __init__(
        self, pairs: FloatArray, signs: FloatArray, q: float, C: float | None, tol: float
    ) -> None:
        self._pairs, self._signs, self._q, self._C, self._tol = pairs, signs, q, C, tol
        self._accuracy = max(_FIRST_ACCURACY * tol, _LAST_ACCURACY)
        self._p = _conjugate(q)
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
            # A constant in the kernel does not matter, as the dual coefficients sum to 0. Without
            # it LIBSVM, which stores single precision, tells apart kernel values that are all next
            # to 1.
            kernel -= kernel.mean()
            machines = [fit_machine(kernel, sign, self._C, self._accuracy) for sign in self._signs]
            dual, intercept = np.stack([a for a, _ in machines]), np.array([b for _, b in machines])
        values = dual @ kernel
        norms, margins = (dual * values).sum(axis=1), self._signs * (values + intercept[:, None])
        if self._C is None:
            scales = np.ones(len(dual))
            objectives = 0.5 * norms + 0.5 * ((1.0 - margins) ** 2).sum(axis=1) / weights[-1]
        else:
            scaled = [
                _scale_machine(norm, m, self._C) for norm, m in zip(norms, margins, strict=True)
            ]
            scales, objectives = np.array(scaled).T
        objective = float(objectives.sum())
        if self.best is None or objective < self.best.objective:
            self.best = WeightedKernels(
                weights, scales[:, None] * dual, scales * intercept, objective
            )
        self._update(self.best, weights, dual, objective)
        return self.best

    @property
    def gap(self) -> float:
        """Upper bound of (P - P*) / P*, P the objective of the best solution and P* the optimum."""
        if self.best is None:
            return np.inf
        return relative_gap(self.best.objective, self.lower)

    def _update(
        self, best: WeightedKernels, weights: FloatArray, dual: FloatArray, objective: float
    ) -> None:
        """Raise the lower bound, and set the next weights and LIBSVM's tolerance."""
        squares = float((dual**2).sum())
        sums = np.maximum(0.0, 2.0 * (self._pairs @ take_pairs(dual.T @ dual)) + squares)
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
        # A feasible a stays feasible if it is shortened, and for the squared loss also if it is
        # lengthened.
        share = 1.0
        if quadratic > 0:
            share = linear / quadratic
        if self._C is not None:
            share = min(1.0, share)
        self.lower = max(self.lower, share * linear - 0.5 * share**2 * quadratic)

    def _scaled(self, weights: FloatArray) -> FloatArray:
        """Weights of p-norm 1."""
        if self._C is None:
            weights[-1] = max(weights[-1], _LEAST_IDENTITY * weights.max())
        return weights / np.linalg.norm(weights, self._p)


def _scale_machine(norm: float, margins: FloatArray, C: float) -> tuple[float, float]:
    """Scale an approximate SVM so that its objective falls; return both."""
    # LIBSVM leaves margins slightly below 1, which cost as much as all else if C is large. The
    # objective s^2 norm / 2 + C sum_i (1 - s m_i)_+ is compared for s = 1 and every s that brings a
    # margin to 1.
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


def _least_squares(
    kernel: FloatArray, signs: FloatArray, identity: float
) -> tuple[FloatArray, FloatArray]:
    """Solve [0 1'; 1 K + identity I] [b; a] = [0; y] for all targets by one Cholesky."""
    matrix = kernel.copy()
    matrix.flat[:: len(matrix) + 1] += identity
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.column_stack([np.ones(len(matrix)), signs.T]), check_finite=False)
    ones, targets = solved[:, 0], solved[:, 1:]
    intercept: FloatArray = targets.sum(axis=0) / ones.sum()
    dual = targets - np.outer(ones, intercept)
    return np.ascontiguousarray(dual.T), intercept


#: Default of C, the only value that the squared loss accepts because it does not use C.
_DEFAULT_C = 1.0
#: A weight below this share of the largest one is set to 0 in the fitted model.
_NEGLIGIBLE = 1e-4


class MKL(IterativeEstimator, KernelClassifier):
    """Multiple kernel learning with a Gaussian kernel for each modality, to a duality gap.

        min_w,f,b  sum_j [ 1/2 sum_k ||f_jk||^2 / w_k + C sum_i loss(y_ij, sum_k f_jk(x_i) + b_j) ],
        w >= 0

    for one binary problem j for each class (one against the rest) or label. The classes of a
    single-label target share one weight for each kernel, as in the authors' code; every label of a
    multi-label target has weights of its own, as in SMML's experiments. ``norm`` is the q of the
    dual

        max_a  sum_ij y_ij a_ij - 1/2 ||(S_1, ..., S_K)||_q,    S_k = sum_j a_j' K_k a_j,    sum_i
        a_ij = 0

    of Yu et al. (2010), and the weights satisfy ||w||_p = 1 with 1/p + 1/q = 1. An iteration solves
    the binary problems for the current weights, then updates these: in closed form (Kloft et al.
    2009), or by cutting planes (Sonnenburg et al. 2006) for ``norm="inf"``.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, by its name, in column order. None: all columns are one
        modality.
    loss : {"hinge", "squared"}, default="hinge"
        Loss. "hinge": SVMs, with 0 <= y_ij a_ij <= C in the dual. "squared": least-squares SVMs (Ye
        et al. 2008); the identity matrix is one more kernel, whose weight 1 / lambda is learnt as
        well, or is 1 for ``norm=1``.
    norm : {"inf", 1, 2}, default="inf"
        Norm of the **dual**. "inf": sparse weights of sum 1; a weight of 0 is reached only up to
        ``tol``, with 1e-3 to about 0.01. 2: weights of Euclidean norm 1. 1: all weights are 1, the
        plain sum of the kernels.
    C : float, default=1.0
        Weight of the hinge loss, above 0. The squared loss has none: only the default is accepted
        with it.
    gamma : float, default=1.0
        Factor of the squared distances, above 0, in the unit ``gamma_scale``, common to all
        modalities.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": 1 / mean squared distance of two training samples in the
        modality. "absolute": 1.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=500
        Largest number of iterations.

    Attributes
    ----------
    modality_scores_ : ndarray of shape (n_modalities,), of labels (n_modalities, n_labels)
        Weights of the kernels; those below 1e-4 of the largest are 0. 0 for a label that all or no
        samples have.
    regularization_ : ndarray of shape (), or (n_labels,) for a multi-label target
        lambda of the squared loss, NaN for a label that all or no samples have; only for the
        squared loss.
    dual_gap_ : float
        Upper bound of (P - P*) / P*, with P the objective of the returned model and P* the smallest
        one; for a multi-label target the largest one of the labels.
    objective_path_ : ndarray of shape (n_iter_,)
        P of the best model so far after each iteration, before small weights are set to 0; never
        below P*. For a multi-label target the sum over the labels.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    modality_names_, kernel_gammas_, support_, support_vectors_, dual_coef_, intercept_
        See `KernelClassifier`.

    Notes
    -----
    A label that all or no training samples have is scored by its sign. With two equal kernels only
    the sum of their weights is determined. With ``loss="squared"`` and ``norm="inf"`` the identity
    matrix can take all the weight, if samples are few and kernels wide: the weights of the kernels
    are then 0 up to ``tol``, and all samples get nearly the same scores; try a larger ``gamma``.
    The method does not scale the features: that is ``dataset.scaling`` of a study.

    References
    ----------
    Kloft, Brefeld, Sonnenburg, Laskov, Mueller, Zien, "Efficient and accurate lp-norm multiple
    kernel learning", NIPS 2009. Sonnenburg, Raetsch, Schaefer, Schoelkopf, "Large scale multiple
    kernel learning", JMLR 2006. Ye, Ji, Chen, "Multi-class discriminant kernel learning via convex
    programming", JMLR 2008. Yu, Falck, Daemen, Tranchevent, Suykens, De Moor, Moreau, "L2-norm
    multiple kernel learning and its application to biomedical data fusion", BMC Bioinformatics
    2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> mkl = MKL({"chemistry": 9, "optics": 4}, norm=2).fit(scale(X), y)
    >>> mkl.modality_scores_.shape, bool(mkl.dual_gap_ <= 1e-3 and mkl.score(scale(X), y) > 0.95)
    ((2,), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"hinge", "squared"})],
        "norm": [StrOptions({"inf"}), Interval(Real, 1, None, closed="both")],
        "C": [POSITIVE],
    }

    regularization_: FloatArray

    simpler_first = ("C", "gamma")

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        loss: Literal["hinge", "squared"] = "hinge",
        norm: Literal["inf"] | float = "inf",
        C: float = _DEFAULT_C,
        gamma: float = 1.0,
        gamma_scale: Literal["mean_distance", "absolute"] = "mean_distance",
        tol: float = 1e-3,
        max_iter: int = 500,
    ) -> None:
        self.modalities = modalities
        self.loss = loss
        self.norm = norm
        self.C = C
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.tol = tol
        self.max_iter = max_iter

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or C is set for the squared loss, which does not use it; the
            message names the parameter, its value and the valid values.
        """
        super().check(n_features)
        if float(self.norm) not in (1.0, 2.0, np.inf):
            raise ConfigError(
                f"norm={self.norm} is not supported: use inf, 1 or 2, the norm of the dual."
            )
        if self.loss == "squared" and self.C != _DEFAULT_C:
            raise ConfigError(
                f"C={self.C:g} has no effect with loss='squared', whose models for all C are equal:"
                " leave C out, or use loss='hinge'."
            )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedKernels) -> Iterator[float]:
        signs, pairs = prepared.target.signs, self._kernel_pairs(prepared)
        varied = np.flatnonzero((signs != signs[:, :1]).any(axis=1))
        groups = [varied]
        if prepared.target.multilabel:
            groups = [varied[j : j + 1] for j in range(len(varied))]
        C = float(self.C) if self.loss == "hinge" else None
        searches = [
            KernelWeights(pairs=pairs, signs=signs[group], q=float(self.norm), C=C, tol=self.tol)
            for group in groups
        ]
        while True:
            for search in searches:
                if search.gap > self.tol:
                    search.step()
            yield self._keep_best(X, prepared, groups, searches)

    def _keep_best(
        self,
        X: FloatArray,
        prepared: PreparedKernels,
        groups: list[IntArray],
        searches: list[KernelWeights],
    ) -> float:
        """Set the fitted attributes to the best solutions; return the objective."""
        signs, n_kernels = prepared.target.signs, len(prepared.distances)
        dual, intercept = np.zeros(signs.shape), signs[:, 0].copy()
        weights, identity = np.zeros((n_kernels, len(signs))), np.full(len(signs), np.nan)
        objective = 0.0
        for group, search in zip(groups, searches, strict=True):
            best = search.best or search.step()
            dual[group], intercept[group] = best.dual, best.intercept
            weights[:, group], identity[group] = best.weights[:n_kernels, None], best.weights[-1]
            objective += best.objective
        weights[weights < _NEGLIGIBLE * weights.max(axis=0)] = 0.0
        self._keep(X, prepared, dual, intercept)
        self.modality_scores_ = weights if prepared.target.multilabel else weights[:, 0]
        if self.loss == "squared":
            self.regularization_ = 1.0 / (identity if prepared.target.multilabel else identity[0])
        self.dual_gap_ = max((search.gap for search in searches), default=0.0)
        return objective
