"""The convex problem of sparse multimodal learning on one training set, and the duality gap that certifies a solution.

    P(W, b) = sum_ij (1 - Y_ij (x_i'w_j + b_j))_+  +  gamma1 sum_jk ||w_j^k||  +  gamma2 sum_r ||w^r||

with Y in {-1, 1}, class j, modality k, feature r (Wang et al., CVPR 2013, eq. 8). Its dual maximises sum alpha over
0 <= alpha <= 1 with sum_i alpha_ij Y_ij = 0 and X'(alpha * Y) = U + V, ||U_j^k|| <= gamma1, ||V^r|| <= gamma2.
W is stored with one row a class, (c, d); X is centred, and each modality divided by a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.linalg.blocks import FeatureNorm, ModalityNorm
from raysel.linalg.hinge import balanced, best_bias, hinge_loss


@dataclass(frozen=True)
class PreparedModalities:
    """What a training set tells, whatever the gammas: read-only, shared by all configurations.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), C-contiguous
        Centred, each modality divided by its unit.
    mean : ndarray of shape (n_features,)
    units : ndarray of shape (n_modalities,)
        Root mean square of a modality's features, times a factor common to all.
    widths : ndarray of int64, shape (n_modalities,)
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (r, r)
        Of X'X or, where there are fewer samples than features, of XX'.
    signs : ndarray of shape (n_problems, n_samples)
        Y': 1 for the class or label, -1 for the rest; one row for two classes.
    classes : ndarray of shape (n_classes,)
        The classes, or 0, 1, ... for labels.
    multilabel : bool
    gradient : ndarray of shape (n_problems, n_features)
        G = X'(alpha * Y) where alpha is 1 on the smaller side of each problem and constant on the other.
    gamma1_max, gamma2_max : float
        Largest block and largest row norm of G, X in its original units.
    """

    X: FloatArray
    mean: FloatArray
    units: FloatArray
    widths: IntArray
    eigenvalues: FloatArray
    eigenvectors: FloatArray
    signs: FloatArray
    classes: LabelArray
    multilabel: bool
    gradient: FloatArray
    gamma1_max: float
    gamma2_max: float

    @property
    def column_units(self) -> FloatArray:
        """The unit of each feature."""
        return np.repeat(self.units, self.widths)

    def coefficients(self, W: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """W and b for samples as they came: neither centred nor divided."""
        coef = W / self.column_units
        return coef, bias - coef @ self.mean


def prepare_modalities(
    X: FloatArray, signs: FloatArray, widths: IntArray, classes: LabelArray, multilabel: bool
) -> PreparedModalities:
    """Centre, divide, decompose: once a training set.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    signs : ndarray of shape (n_problems, n_samples)
    widths : ndarray of int64, shape (n_modalities,)
    classes : ndarray
    multilabel : bool

    Returns
    -------
    PreparedModalities
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
    # The mean eigenvalue becomes 10/3, so that the solver's two penalties weigh alike where they start.
    varying = float(((squares > 0) * widths).sum())
    units *= np.sqrt(0.3 * max(varying, 1.0) * n / min(n, d))
    centred /= np.repeat(units, widths)
    product = centred @ centred.T if n < d else centred.T @ centred
    eigenvalues, eigenvectors = scipy.linalg.eigh(product, driver="evd", overwrite_a=True, check_finite=False)
    gradient = balanced(np.ones_like(signs), signs) * signs @ centred
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
    """A primal point and the three parts of its objective, whatever the gammas.

    Attributes
    ----------
    W : ndarray of shape (c, d)
    bias : ndarray of shape (c,)
    hinge : float
    modality_norm, feature_norm : float
        sum_jk ||w_j^k|| and sum_r ||w^r||, original units.
    """

    W: FloatArray
    bias: FloatArray
    hinge: float
    modality_norm: float
    feature_norm: float

    def objective(self, gamma1: float, gamma2: float) -> float:
        """P at these gammas."""
        return self.hinge + gamma1 * self.modality_norm + gamma2 * self.feature_norm


@dataclass(frozen=True)
class DualPoint:
    """What a dual point is worth at any gammas, after scaling each class's part into the feasible set.

    Attributes
    ----------
    sums : ndarray of shape (c,)
        sum_i alpha_ij.
    modality_ratios : ndarray of shape (c,)
        max_k ||U_j^k||.
    feature_ratio : float
        max_r ||V^r||.
    """

    sums: FloatArray
    modality_ratios: FloatArray
    feature_ratio: float

    def bound(self, gamma1: float, gamma2: float) -> float:
        """A lower bound of P at these gammas: scaling class j by s_j never enlarges a row of V beyond max s_j."""
        common = min(1.0, gamma2 / self.feature_ratio) if self.feature_ratio > 0 else 1.0
        scales = np.full(len(self.sums), common)
        np.divide(gamma1, self.modality_ratios, out=scales, where=self.modality_ratios * common > gamma1)
        return float(scales @ self.sums)


@dataclass(frozen=True)
class MultimodalProblem:
    """The problem for one pair of gammas, in the units of the prepared X.

    Attributes
    ----------
    prepared : PreparedModalities
    gamma1, gamma2 : float
        Absolute; a term whose gamma is 0 is left out.
    """

    prepared: PreparedModalities
    gamma1: float
    gamma2: float

    @cached_property
    def modality_penalty(self) -> ModalityNorm | None:
        """gamma1 times the group-l1 norm."""
        return ModalityNorm(self.gamma1 / self.prepared.units, self.prepared.widths) if self.gamma1 > 0 else None

    @cached_property
    def feature_penalty(self) -> FeatureNorm | None:
        """gamma2 times the l2,1 norm."""
        return FeatureNorm(self.gamma2 / self.prepared.column_units) if self.gamma2 > 0 else None

    @property
    def penalties(self) -> list[ModalityNorm | FeatureNorm]:
        """The terms there are."""
        return [norm for norm in (self.modality_penalty, self.feature_penalty) if norm is not None]

    @property
    def fractions(self) -> FloatArray:
        """The gammas over their maxima; infinite where nothing varies with the labels."""
        if self.prepared.gamma1_max == 0.0:
            return np.array([np.inf, np.inf])
        return np.array([self.gamma1 / self.prepared.gamma1_max, self.gamma2 / self.prepared.gamma2_max])

    @property
    def is_zero_solution(self) -> bool:
        """Whether W = 0 is proved optimal: gamma1 / g1max + gamma2 / g2max >= 1."""
        return bool(self.fractions.sum() >= 1.0)

    def solution(self, W: FloatArray) -> Solution:
        """W with its best bias, and what they cost."""
        scores = W @ self.prepared.X.T
        bias = best_bias(scores, self.prepared.signs)
        hinge = float(hinge_loss(scores + bias[:, None], self.prepared.signs).sum())
        norms = (self.modality_norm.value(W), self.feature_norm.value(W))
        return Solution(W, bias, hinge, *norms)

    @cached_property
    def modality_norm(self) -> ModalityNorm:
        """The group-l1 norm in the original units."""
        return ModalityNorm(1.0 / self.prepared.units, self.prepared.widths)

    @cached_property
    def feature_norm(self) -> FeatureNorm:
        """The l2,1 norm in the original units."""
        return FeatureNorm(1.0 / self.prepared.column_units)

    def dual_point(self, alpha: FloatArray, V: FloatArray | None = None, rounds: int = 2) -> DualPoint:
        """Any alpha, made feasible for the bias and split into U + V.

        Parameters
        ----------
        alpha : ndarray of shape (c, n)
        V : ndarray of shape (c, d), optional
            A first guess of the l2,1 term's part, e.g. a solver's.
        rounds : int, default=2
            Alternating projections that improve the guess.
        """
        prepared = self.prepared
        alpha = balanced(alpha, prepared.signs)
        total = (alpha * prepared.signs) @ prepared.X
        if self.feature_penalty is None:
            V = np.zeros_like(total)
        elif self.modality_penalty is None:
            V = total
        else:
            V = self.feature_penalty.cap(total if V is None else V)
            for _ in range(rounds):
                V = self.feature_penalty.cap(total - self.modality_penalty.cap(total - V))
        modality_ratios = self.modality_norm.ratios(total - V).max(axis=1)
        return DualPoint(alpha.sum(axis=1), modality_ratios, float(self.feature_norm.ratios(V).max()))

    def null_dual_point(self) -> DualPoint:
        """The dual point of W = 0: G split in the proportion of the gammas' fractions of their maxima."""
        prepared = self.prepared
        sums = balanced(np.ones_like(prepared.signs), prepared.signs).sum(axis=1)
        if prepared.gamma1_max == 0.0:
            return DualPoint(sums, np.zeros(len(sums)), 0.0)
        share = self.fractions[0] / self.fractions.sum()
        modality_ratios = share * self.modality_norm.ratios(prepared.gradient).max(axis=1)
        return DualPoint(sums, modality_ratios, (1.0 - share) * prepared.gamma2_max)
