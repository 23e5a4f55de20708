"""The convex problem of sparse multimodal learning, its solutions and lower bounds.

    P(W, b) = sum_ij (1 - Y_ij (x_i'w_j + b_j))_+  +  gamma1 sum_jk ||w_j^k||  +  gamma2 sum_r
    ||w^r||

with Y in {-1, 1}, class j, modality k, feature r (Wang et al., CVPR 2013, eq. 8). Its dual
maximises sum alpha over 0 <= alpha <= 1 with sum_i alpha_ij Y_ij = 0 and X'(alpha * Y) = U + V,
||U_j^k|| <= gamma1, ||V^r|| <= gamma2. W is stored with one row a class, (c, d); X is centred, and
each modality divided by a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.numerics.block_norms import FeatureNorm, ModalityNorm
from raysel.numerics.hinge import balanced, best_bias, hinge_loss
from raysel.numerics.linear_algebra import gram, product
from raysel.numerics.optimality import relative_gap


@dataclass(frozen=True)
class PreparedModalities:
    """A training set prepared for all gammas; read-only, shared by all configurations."""

    #: Centred, each modality divided by its unit; shape (n_samples, n_features).
    X: FloatArray
    #: Mean of each feature, as given; shape (n_features,).
    mean: FloatArray
    #: Root mean square of a modality's centred features, times a factor common to all; shape
    #: (n_modalities,).
    units: FloatArray
    #: Number of columns of each modality, in column order; shape (n_modalities,).
    widths: IntArray
    #: Eigenvalues of X'X or, where there are fewer samples than features, of XX'; shape (r,).
    eigenvalues: FloatArray
    #: Eigenvectors of the same matrix, in the columns; shape (r, r).
    eigenvectors: FloatArray
    #: Y': 1 for the class or label, -1 for the rest; one row for two classes; shape (n_problems,
    #: n_samples).
    signs: FloatArray
    #: The classes, or 0, 1, ... for labels; shape (n_classes,).
    classes: LabelArray
    multilabel: bool
    #: G = X'(alpha * Y) where alpha is 1 on the smaller side of each problem and constant on the
    #: other; shape (n_problems, n_features).
    gradient: FloatArray
    gamma1_max: float
    gamma2_max: float

    @property
    def column_units(self) -> FloatArray:
        """Unit of each feature, that of its modality, shape (n_features,)."""
        return np.repeat(self.units, self.widths)

    def coefficients(self, W: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Convert W and b to coefficients and intercepts of samples as given."""
        coef = W / self.column_units
        return coef, bias - coef @ self.mean


def prepare_modalities(
    X: FloatArray, signs: FloatArray, widths: IntArray, classes: LabelArray, multilabel: bool
) -> PreparedModalities:
    """Centre a training set, divide each modality by its unit and decompose it.

    `X` is (n_samples, n_features), `signs` (n_problems, n_samples), `widths` (n_modalities,),
    `classes` (n_classes,).
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    centred = X - mean
    # A feature that is constant but for rounding is constant.
    energy = np.einsum("ir,ir->r", centred, centred)
    centred[:, energy <= n * (4 * np.finfo(float).eps * np.abs(mean)) ** 2] = 0.0
    starts = np.cumsum(widths) - widths
    squares = np.add.reduceat(np.einsum("ir,ir->r", centred, centred), starts)
    units = np.sqrt(squares / (n * widths))
    units[units == 0.0] = 1.0
    # The mean eigenvalue becomes 10/3, so that the solver's two penalties weigh alike where they
    # start.
    varying = float(((squares > 0) * widths).sum())
    units *= np.sqrt(0.3 * max(varying, 1.0) * n / min(n, d))
    centred /= np.repeat(units, widths)
    eigenvalues, eigenvectors = scipy.linalg.eigh(
        gram(centred, of_rows=n < d), driver="evd", overwrite_a=True, check_finite=False
    )
    gradient = product(balanced(np.ones_like(signs), signs) * signs, centred)
    return PreparedModalities(
        X=centred,
        mean=mean,
        units=units,
        widths=widths,
        eigenvalues=np.maximum(eigenvalues, 0.0),
        eigenvectors=np.ascontiguousarray(eigenvectors),
        signs=signs,
        classes=classes,
        multilabel=multilabel,
        gradient=gradient,
        gamma1_max=float(ModalityNorm(1.0 / units, widths).ratios(gradient).max()),
        gamma2_max=float(FeatureNorm(1.0 / np.repeat(units, widths)).ratios(gradient).max()),
    )


@dataclass(frozen=True)
class Solution:
    """A primal point and the three parts of its objective, which do not depend on the gammas."""

    #: Coefficients of the prepared X; shape (c, d).
    W: FloatArray
    #: Best bias of each class; shape (c,).
    bias: FloatArray
    hinge: float
    modality_norm: float
    feature_norm: float

    def objective(self, gamma1: float, gamma2: float) -> float:
        """Objective P at these gammas."""
        return self.hinge + gamma1 * self.modality_norm + gamma2 * self.feature_norm


@dataclass(frozen=True)
class DualPoint:
    """The norms of a dual point that give its lower bound at any gammas."""

    #: ``sum_i alpha_ij`` of each class; shape (c,).
    sums: FloatArray
    #: ``max_k ||U_j^k||`` of each class, in the original units of X; shape (c,).
    modality_ratios: FloatArray
    feature_ratio: float

    def bound(self, gamma1: float, gamma2: float) -> float:
        """Lower bound of P at these gammas, after scaling each class's part into the feasible set.

        Scaling class j by s_j scales a column of V by at most max s_j.
        """
        common = 1.0
        if self.feature_ratio > 0:
            common = min(1.0, gamma2 / self.feature_ratio)
        scales = np.full(len(self.sums), common)
        np.divide(
            gamma1, self.modality_ratios, out=scales, where=self.modality_ratios * common > gamma1
        )
        return float(scales @ self.sums)


@dataclass(frozen=True)
class MultimodalProblem:
    """The problem for one pair of gammas."""

    prepared: PreparedModalities
    gamma1: float
    gamma2: float

    @cached_property
    def modality_penalty(self) -> ModalityNorm | None:
        """The modality norm of coefficients of the prepared X, times gamma1; None if that is 0."""
        if self.gamma1 > 0:
            return ModalityNorm(self.gamma1 / self.prepared.units, self.prepared.widths)
        return None

    @cached_property
    def feature_penalty(self) -> FeatureNorm | None:
        """The feature norm of coefficients of the prepared X, times gamma2; None if that is 0."""
        if self.gamma2 > 0:
            return FeatureNorm(self.gamma2 / self.prepared.column_units)
        return None

    @property
    def penalties(self) -> list[ModalityNorm | FeatureNorm]:
        """The terms whose gamma is positive, the modality norm first."""
        return [norm for norm in (self.modality_penalty, self.feature_penalty) if norm is not None]

    @property
    def fractions(self) -> FloatArray:
        """The gammas over their maxima, (2,); infinite where no feature varies with y."""
        if self.prepared.gamma1_max == 0.0:
            return np.array([np.inf, np.inf])
        return np.array(
            [self.gamma1 / self.prepared.gamma1_max, self.gamma2 / self.prepared.gamma2_max]
        )

    @property
    def is_zero_solution(self) -> bool:
        """Whether W = 0 is proved optimal: gamma1 / g1max + gamma2 / g2max >= 1."""
        return bool(self.fractions.sum() >= 1.0)

    def solution(self, W: FloatArray) -> Solution:
        """Solution of given W: its best bias and the parts of its objective."""
        scores = W @ self.prepared.X.T
        bias = best_bias(scores, self.prepared.signs)
        hinge = float(hinge_loss(scores + bias[:, None], self.prepared.signs).sum())
        norms = (self.modality_norm.value(W), self.feature_norm.value(W))
        return Solution(W, bias, hinge, *norms)

    @cached_property
    def modality_norm(self) -> ModalityNorm:
        """The modality norm ``sum_jk ||w_j^k||`` in the original units of X."""
        return ModalityNorm(1.0 / self.prepared.units, self.prepared.widths)

    @cached_property
    def feature_norm(self) -> FeatureNorm:
        """The feature norm ``sum_r ||w^r||`` in the original units of X."""
        return FeatureNorm(1.0 / self.prepared.column_units)

    def dual_point(
        self, alpha: FloatArray, V: FloatArray | None = None, rounds: int = 2
    ) -> DualPoint:
        """Make any alpha feasible for the bias and split X'(alpha * Y) into U + V.

        `alpha` is (c, n), `V` (c, d).
        """
        alpha = balanced(alpha, self.prepared.signs)
        total = (alpha * self.prepared.signs) @ self.prepared.X
        return self.split(alpha.sum(axis=1), total, V, rounds)

    def split(
        self, sums: FloatArray, total: FloatArray, V: FloatArray | None = None, rounds: int = 2
    ) -> DualPoint:
        """Dual point of sums of alpha (c,) and ``total`` (c, d), split beginning at V."""
        if self.feature_penalty is None:
            V = np.zeros_like(total)
        elif self.modality_penalty is None:
            V = total
        else:
            if V is None:
                V = total
            V = self.feature_penalty.cap(V)
            for _ in range(rounds):
                V = self.feature_penalty.cap(total - self.modality_penalty.cap(total - V))
        modality_ratios = self.modality_norm.ratios(total - V).max(axis=1)
        return DualPoint(sums, modality_ratios, float(self.feature_norm.ratios(V).max()))

    def null_dual_point(self) -> DualPoint:
        """Dual point of W = 0, which proves it where ``is_zero_solution``."""
        prepared = self.prepared
        sums = balanced(np.ones_like(prepared.signs), prepared.signs).sum(axis=1)
        if prepared.gamma1_max == 0.0:
            return DualPoint(sums, np.zeros(len(sums)), 0.0)
        share = self.fractions[0] / self.fractions.sum()
        modality_ratios = share * self.modality_norm.ratios(prepared.gradient).max(axis=1)
        return DualPoint(sums, modality_ratios, (1.0 - share) * prepared.gamma2_max)


class Certificate:
    """The best solution and the best lower bound of a problem so far.

    Both are kept in parts that do not depend on the gammas, so that those of one pair of gammas may
    certify another: the same W along a diagonal, or the solution without a term that is negligible.
    """

    def __init__(self, problem: MultimodalProblem) -> None:
        self.problem = problem
        self.solution = problem.solution(np.zeros_like(problem.prepared.gradient))
        self.dual = problem.null_dual_point()

    @property
    def objective(self) -> float:
        """Objective P of the best solution."""
        return self.solution.objective(self.problem.gamma1, self.problem.gamma2)

    @property
    def bound(self) -> float:
        """Best lower bound of P."""
        return self.dual.bound(self.problem.gamma1, self.problem.gamma2)

    @property
    def gap(self) -> float:
        """Relative duality gap, an upper bound of (P - P*) / P*."""
        return relative_gap(self.objective, self.bound)

    def offer(self, solution: Solution) -> None:
        """Keep the solution if its objective is lower."""
        if solution.objective(self.problem.gamma1, self.problem.gamma2) < self.objective:
            self.solution = solution

    def offer_dual(self, dual: DualPoint) -> None:
        """Keep the dual point if its bound is higher."""
        if dual.bound(self.problem.gamma1, self.problem.gamma2) > self.bound:
            self.dual = dual
