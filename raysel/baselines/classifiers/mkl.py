"""Multiple kernel learning: one Gaussian kernel for each modality, with weights learnt by the classifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.iterative import IterativeEstimator
from raysel.baselines.classifiers.kernel_classifier import WIDTH_CONSTRAINTS, KernelClassifier, PreparedKernels
from raysel.baselines.classifiers.kernel_weights import KernelWeights
from raysel.errors import ConfigError
from raysel.validation import Interval, StrOptions

#: Default of C, the only value that the squared loss accepts because it does not use C.
_DEFAULT_C = 1.0
#: A weight below this share of the largest one is set to 0 in the fitted model.
_NEGLIGIBLE = 1e-4


class MKL(IterativeEstimator, KernelClassifier):
    """Multiple kernel learning with one Gaussian kernel for each modality, solved to a given duality gap.

        min_w,f,b  sum_j [ 1/2 sum_k ||f_jk||^2 / w_k + C sum_i loss(y_ij, sum_k f_jk(x_i) + b_j) ],   w >= 0

    for one binary problem j for each class (one against the rest) or label. The classes of a single-label target share
    one weight for each kernel, as in the authors' code; every label of a multi-label target has weights of its own, as
    in SMML's experiments. ``norm`` is the q of the dual

        max_a  sum_ij y_ij a_ij - 1/2 ||(S_1, ..., S_K)||_q,    S_k = sum_j a_j' K_k a_j,    sum_i a_ij = 0

    of Yu et al. (2010), and the weights satisfy ||w||_p = 1 with 1/p + 1/q = 1. An iteration solves the binary problems
    for the current weights, then updates these: in closed form (Kloft et al. 2009), or by cutting planes (Sonnenburg et
    al. 2006) for ``norm="inf"``.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, by its name, in column order. None: all columns are one modality.
    loss : {"hinge", "squared"}, default="hinge"
        Loss. "hinge": SVMs, with 0 <= y_ij a_ij <= C in the dual. "squared": least-squares SVMs (Ye et al. 2008); the
        identity matrix is one more kernel, whose weight 1 / lambda is learnt as well, or is 1 for ``norm=1``.
    norm : {"inf", 1, 2}, default="inf"
        Norm of the **dual**. "inf": sparse weights of sum 1; a weight of 0 is reached only up to ``tol``, with 1e-3 to
        about 0.01. 2: weights of Euclidean norm 1. 1: all weights are 1, the plain sum of the kernels.
    C : float, default=1.0
        Weight of the hinge loss, above 0. The squared loss has none: only the default is accepted with it.
    gamma : float, default=1.0
        Factor of the squared distances, above 0, in the unit ``gamma_scale``, common to all modalities.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": 1 / mean squared distance of two training samples in the modality.
        "absolute": 1.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=500
        Largest number of iterations.

    Attributes
    ----------
    modality_scores_ : ndarray of shape (n_modalities,), or (n_modalities, n_labels) for a multi-label target
        Weights of the kernels; those below 1e-4 of the largest are 0. 0 for a label that all or no samples have.
    regularization_ : ndarray of shape (), or (n_labels,) for a multi-label target
        lambda of the squared loss, NaN for a label that all or no samples have; only for the squared loss.
    dual_gap_ : float
        Upper bound of (P - P*) / P*, with P the objective of the returned model and P* the smallest one; for a
        multi-label target the largest one of the labels.
    objective_path_ : ndarray of shape (n_iter_,)
        P of the best model so far after each iteration, before small weights are set to 0; never below P*. For a
        multi-label target the sum over the labels.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    modality_names_, kernel_gammas_, support_, support_vectors_, dual_coef_, intercept_
        See `KernelClassifier`.

    Notes
    -----
    A label that all or no training samples have is scored by its sign. With two equal kernels only the sum of their
    weights is determined. With ``loss="squared"`` and ``norm="inf"`` the identity matrix can take all the weight, if
    samples are few and kernels wide: the weights of the kernels are then 0 up to ``tol``, and all samples get nearly
    the same scores; try a larger ``gamma``. The method does not scale the features: that is ``dataset.scaling`` of a
    study.

    References
    ----------
    Kloft, Brefeld, Sonnenburg, Laskov, Mueller, Zien, "Efficient and accurate lp-norm multiple kernel learning",
    NIPS 2009. Sonnenburg, Raetsch, Schaefer, Schoelkopf, "Large scale multiple kernel learning", JMLR 2006. Ye, Ji,
    Chen, "Multi-class discriminant kernel learning via convex programming", JMLR 2008. Yu, Falck, Daemen, Tranchevent,
    Suykens, De Moor, Moreau, "L2-norm multiple kernel learning and its application to biomedical data fusion", BMC
    Bioinformatics 2010.

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
        **WIDTH_CONSTRAINTS,
        "modalities": [dict, None],
        "loss": [StrOptions({"hinge", "squared"})],
        "norm": [StrOptions({"inf"}), Interval(Real, 1, None, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    fitted_shapes: ClassVar[dict[str, str]] = {"regularization_": "scalar | n_problems"}

    regularization_: FloatArray

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
            If a parameter is invalid, or C is set for the squared loss, which does not use it; the message names the
            parameter, its value and the valid values.
        """
        super().check(n_features)
        if float(self.norm) not in (1.0, 2.0, np.inf):
            raise ConfigError(f"norm={self.norm} is not supported: use inf, 1 or 2, the norm of the dual.")
        if self.loss == "squared" and self.C != _DEFAULT_C:
            raise ConfigError(
                f"C={self.C:g} has no effect with loss='squared', whose models for all C are equal: leave C out, or use"
                " loss='hinge'."
            )

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which a smaller C, then a smaller gamma, comes first.

        Returns
        -------
        tuple of float
            Smaller for simpler models.
        """
        return (float(self.C), float(self.gamma))

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedKernels) -> Iterator[float]:
        signs, pairs = prepared.target.signs, self._kernel_pairs(prepared)
        varied = np.flatnonzero((signs != signs[:, :1]).any(axis=1))
        groups = [varied[j : j + 1] for j in range(len(varied))] if prepared.target.multilabel else [varied]
        C = float(self.C) if self.loss == "hinge" else None
        searches = [KernelWeights(pairs, signs[group], float(self.norm), C, self.tol) for group in groups]
        while True:
            for search in searches:
                if search.gap > self.tol:
                    search.step()
            yield self._keep_best(X, prepared, groups, searches)

    def _keep_best(
        self, X: FloatArray, prepared: PreparedKernels, groups: list[IntArray], searches: list[KernelWeights]
    ) -> float:
        """Set the fitted attributes to the best solution of each group of problems; return the objective."""
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
