"""LPBoost: SVMs of each modality, weighted by a linear program on out-of-fold scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from raysel.base.classifiers import SignedTarget
from raysel.base.estimator import POSITIVE, OneShotEstimator
from raysel.baselines.kernel_classifiers import (
    KernelClassifier,
    PreparedKernels,
    fit_machine,
    kernel_matrix,
)
from raysel.baselines.recent import RecentResults
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, StrOptions
from raysel.core.errors import DataError, RayselError

#: Difference of the bounds of the margin, relative to the largest score, at which cutting planes
#: stop.
_GAP = 1e-8
#: Number of cutting planes after which the whole program is solved instead.
_MOST_CUTS = 500
#: HiGHS's tolerances.
_ACCURATE = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def shared_weights(scores: FloatArray, codes: IntArray, nu: float) -> tuple[FloatArray, float]:
    """Find one weight for each classifier (LPBoost-beta) by cutting planes.

    The linear program of `solve_program` is equivalent to maximising, over weights of sum 1, the
    mean of the margins

        m_i = min_{j != y_i} sum_k beta_k (f_{k, y_i}(x_i) - f_{k, j}(x_i))

    of the nu n samples for which they are smallest (of a fractional number the last one counts in
    part; of less than one sample, the smallest margin). That mean is concave and piecewise linear
    in beta. Each step adds the linear piece at the current weights to a program in n_classifiers +
    1 variables, whose value bounds the maximum.

    `scores` is (n_classifiers, n_classes, n_samples), `codes` (n_samples,); returns `weights`
    (n_classifiers,).
    """
    n_classifiers, _, n = scores.shape
    samples, size = np.arange(n), max(nu * n, 1.0)
    shares = np.clip(size - samples, 0.0, 1.0) / size
    of_class, scale = (
        scores[:, codes, samples],
        max(float(np.abs(scores).max()), np.finfo(np.float64).tiny),
    )
    weights = np.full(n_classifiers, 1.0 / n_classifiers)
    best, best_margin, cuts = weights, -np.inf, []
    for n_cuts in count(1):
        total = np.tensordot(weights, scores, 1)
        total[codes, samples] = -np.inf
        differences = of_class - scores[:, total.argmax(axis=0), samples]
        order = np.argsort(weights @ differences, kind="stable")
        cut = differences[:, order] @ shares
        if weights @ cut > best_margin:
            best, best_margin = weights, float(weights @ cut)
        cuts.append(cut / scale)
        highest, bound, _ = highest_point(np.array(cuts))
        weights = 0.5 * (best + highest)
        if bound * scale - best_margin <= _GAP * scale:
            break
        if n_cuts >= _MOST_CUTS:
            best, value = solve_program(scores, codes, nu, shared=True)
            return best[:, 0], -value
    return best, best_margin


def highest_point(cuts: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Maximise the minimum of linear functions over weights of sum 1, none negative.

    `cuts` is (n_functions, n_weights); returns `weights` (n_weights,), `shares` (n_functions,).
    """
    n_cuts, n_weights = cuts.shape
    result = _solve(
        np.append(np.zeros(n_weights), -1.0),
        A_ub=np.column_stack([-cuts, np.ones(n_cuts)]),
        b_ub=np.zeros(n_cuts),
        A_eq=np.append(np.ones(n_weights), 0.0)[None],
        b_eq=np.ones(1),
        bounds=[(0.0, None)] * n_weights + [(None, None)],
    )
    weights, shares = np.maximum(result.x[:-1], 0.0), np.maximum(-result.ineqlin.marginals, 0.0)
    return weights / weights.sum(), -float(result.fun), shares / shares.sum()


def _solve(cost: FloatArray, method: str = "highs", **constraints: Any) -> Any:
    """Solve a linear program by HiGHS; return SciPy's result."""
    arguments: dict[str, Any] = {"method": method, "options": _ACCURATE, **constraints}
    result = linprog(cost, **arguments)
    if result.x is None:
        raise RayselError(
            f"HiGHS did not solve the linear program in the weights: {result.message}"
        )
    return result


def solve_program(
    scores: FloatArray, codes: IntArray, nu: float, *, shared: bool = False
) -> tuple[FloatArray, float]:
    """Solve the whole linear program of LPBoost by HiGHS, with weights by class or shared.

        min_{B, rho, xi >= 0}  -rho + 1/(nu n) sum_i xi_i
        subject to  sum_k (B_{k, y_i} f_{k, y_i}(x_i) - B_{k, j} f_{k, j}(x_i)) + xi_i >= rho   for
        all j != y_i

    with B >= 0 and columns of sum 1 (Gehler & Nowozin 2009). It has n_samples (n_classes - 1)
    constraints.

    `scores` is (n_classifiers, n_classes, n_samples), `codes` (n_samples,); returns `weights`
    (n_classifiers, n_classes) or (n_classifiers, 1).
    """
    n_classifiers, n_classes, n = scores.shape
    sample, rival = np.nonzero(np.arange(n_classes) != codes[:, None])
    n_columns, of_class, of_rival, method = n_classes, codes[sample], rival, "highs-ipm"
    if shared:
        n_columns, of_class, of_rival, method = 1, np.zeros(1, int), np.zeros(1, int), "highs"
    n_rows, n_weights = len(sample), n_classifiers * n_columns
    rows = np.arange(n_rows)
    first = n_columns * np.arange(n_classifiers)[:, None]
    # Entries of one place are summed, as those of both classes are for shared weights.
    values = [
        -scores[:, codes[sample], sample],
        scores[:, rival, sample],
        np.ones((1, n_rows)),
        -np.ones((1, n_rows)),
    ]
    places = [
        np.broadcast_to(first + of_class, values[0].shape),
        np.broadcast_to(first + of_rival, values[1].shape),
        np.full((1, n_rows), n_weights),
        n_weights + 1 + sample[None],
    ]
    entries, columns = np.concatenate(values), np.concatenate(places)
    constraints = coo_array(
        (entries.ravel(), (np.tile(rows, len(entries)), columns.ravel())),
        shape=(n_rows, n_weights + 1 + n),
    ).tocsr()
    sums = coo_array(
        (np.ones(n_weights), (np.tile(np.arange(n_columns), n_classifiers), np.arange(n_weights))),
        shape=(n_columns, n_weights + 1 + n),
    ).tocsr()
    result = _solve(
        np.concatenate([np.zeros(n_weights), [-1.0], np.full(n, 1.0 / (nu * n))]),
        method=method,
        A_ub=constraints,
        b_ub=np.zeros(n_rows),
        A_eq=sums,
        b_eq=np.ones(n_columns),
        bounds=[(0.0, None)] * n_weights + [(None, None)] + [(0.0, None)] * n,
    )
    weights = np.maximum(result.x[:n_weights].reshape(n_classifiers, n_columns), 0.0)
    return weights / weights.sum(axis=0), float(result.fun)


#: The authors' values of C, from which it is chosen if it is not given.
C_GRID = (0.1, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0)
#: Largest number of inner folds of the out-of-fold scores.
_FOLDS = 5

#: Training and held-out samples of each inner fold.
_Folds = Sequence[tuple[IntArray, IntArray]]


class _Machines(NamedTuple):
    """SVMs of all modalities: C of each, their held-out scores, and their duals."""

    C: FloatArray
    scores: FloatArray
    dual: FloatArray
    intercept: FloatArray


#: Latest machines, which configurations share that differ in ``nu`` or ``weights`` only; 128 MiB at
#: most.
_recent: RecentResults[_Machines] = RecentResults(2**24)


class LPBoost(OneShotEstimator, KernelClassifier):
    """LPBoost of kernel SVMs of each modality, with shared weights or weights by class.

    For each modality k an SVM f_kj is fitted for each class j (one against the rest). The weights
    maximise a soft margin of their scores on the training samples,

        min_{B, rho, xi >= 0}  -rho + 1/(nu n) sum_i xi_i
        subject to  sum_k (B_{k, y_i} f_{k, y_i}(x_i) - B_{k, j} f_{k, j}(x_i)) + xi_i >= rho   for
        all j != y_i

    with B >= 0 and columns of sum 1. The scores are out-of-fold: each sample is scored by SVMs that
    were fitted without it, in 5 stratified inner folds of the training samples (fewer, but at least
    2, if the smallest class has fewer samples). Prediction uses SVMs of all training samples: the
    class of largest sum_k B_kj f_kj(x).

    The authors define the method for one label a sample only. Two classes, and each label of a
    multi-label target, are treated as two classes with the scores f and -f, for which shared
    weights and those of each class are the same; every label has its own folds and weights.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, by its name, in column order. None: all columns are one
        modality.
    weights : {"shared", "per_class"}, default="shared"
        "shared": one weight for each modality, solved by cutting planes. "per_class": a weight for
        each modality and class, solved as one sparse program; slower.
    nu : float, default=0.5
        Upper bound of the share of samples with a margin below rho, above 0 and at most 1. Below 1
        / n_samples the smallest margin is maximised.
    C : float, default=None
        Weight of the SVMs' loss, above 0, for all modalities. None: chosen for each modality from
        0.1, 1, 10, 50, 100, 500 and 1000 by the accuracy of its out-of-fold scores (for a
        multi-label target averaged over labels); of equal ones the smallest.
    gamma : float, default=1.0
        Factor of the squared distances, above 0, in the unit ``gamma_scale``, common to all
        modalities.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": 1 / mean squared distance of two training samples in the
        modality. "absolute": 1.
    tol : float, default=1e-3
        Tolerance of SVC.
    random_state : int, RandomState instance or None, default=None
        Seed of the inner folds. None: NumPy's global generator.

    Attributes
    ----------
    modality_scores_ : ndarray of shape (n_modalities,), or (n_modalities, n_classes)
        Weights of the modalities: of each class with ``weights="per_class"`` and more than two
        classes, of each label for a multi-label target. 0 for a label that all or no samples have.
    loss_weights_ : ndarray of shape (n_modalities,)
        C of each modality.
    objective_path_ : ndarray of shape (1,)
        Optimal value of the linear program; summed over labels for a multi-label target.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    modality_names_, kernel_gammas_, support_, support_vectors_, dual_coef_, intercept_
        See `KernelClassifier`; each modality has its own dual coefficients.

    Notes
    -----
    A label that all or no training samples have is scored by its sign. Kernel widths and
    out-of-fold scores come from the training samples only. The method does not scale the features:
    that is ``dataset.scaling`` of a study.

    References
    ----------
    Gehler, Nowozin, "On feature combination for multiclass object classification", ICCV 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> boost = LPBoost({"chemistry": 9, "optics": 4}, C=1.0, random_state=0).fit(scale(X), y)
    >>> boost.modality_scores_.shape, boost.score(scale(X), y) > 0.95
    ((2,), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "weights": [StrOptions({"shared", "per_class"})],
        "nu": [Interval(Real, 0, 1, closed="right")],
        "C": [POSITIVE, None],
        "tol": [POSITIVE],
    }

    loss_weights_: FloatArray

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        weights: Literal["shared", "per_class"] = "shared",
        nu: float = 0.5,
        C: float | None = None,
        gamma: float = 1.0,
        gamma_scale: Literal["mean_distance", "absolute"] = "mean_distance",
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.modalities = modalities
        self.weights = weights
        self.nu = nu
        self.C = C
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.tol = tol
        self.random_state = random_state

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key of shared weights, larger nu, smaller C, smaller gamma."""
        C = float(max(self._grid))
        return (float(self.weights == "per_class"), -float(self.nu), C, float(self.gamma))

    @property
    def _grid(self) -> tuple[float, ...]:
        """Values of C, from which the best is chosen."""
        if self.C is None:
            return C_GRID
        return (float(self.C),)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedKernels) -> Iterator[float]:
        target = prepared.target
        folds = _inner_folds(target, check_random_state(self.random_state))
        splits = chain.from_iterable(chain.from_iterable(folds))
        arrays = (prepared.distances, self._gammas(prepared), target.signs, *splits)
        machines = _recent.get(
            f"{self.C} {self.tol}", arrays, lambda: self._machines(prepared, folds)
        )
        weights, objective = self._weigh(machines.scores, target)
        self._keep(X, prepared, machines.dual, (machines.intercept * weights).sum(axis=0))
        varied = (target.signs != target.signs[:, :1]).any(axis=1)
        self.intercept_ = np.where(varied, self.intercept_, target.signs[:, 0])
        by_class = target.multilabel or self.weights == "per_class"
        self.modality_scores_ = weights
        if not by_class or weights.shape[1] == 1:
            self.modality_scores_ = weights[:, 0]
        self.loss_weights_ = machines.C.copy()
        yield objective

    def _machines(self, prepared: PreparedKernels, folds: Sequence[_Folds]) -> _Machines:
        """Fit the SVMs of each modality, with the best C of the grid if none is given."""
        target, grid = prepared.target, self._grid
        chosen, held_out, duals, intercepts = [], [], [], []
        for row in self._kernel_pairs(prepared):
            kernel = kernel_matrix(row)
            scores = [
                _out_of_fold(kernel, target.signs, folds=folds, C=C, tol=self.tol) for C in grid
            ]
            best = int(np.argmax([_accuracy(candidate, target) for candidate in scores]))
            fitted = [fit_machine(kernel, sign, grid[best], self.tol) for sign in target.signs]
            chosen.append(grid[best])
            held_out.append(scores[best])
            duals.append(np.stack([dual for dual, _ in fitted]))
            intercepts.append(np.array([intercept for _, intercept in fitted]))
        return _Machines(
            np.array(chosen), np.stack(held_out), np.stack(duals), np.stack(intercepts)
        )

    def _weigh(self, scores: FloatArray, target: SignedTarget) -> tuple[FloatArray, float]:
        """Weights (n_modalities, n_problems), and the value of the program."""
        n_problems = scores.shape[1]
        if n_problems > 1 and not target.multilabel:
            codes = target.signs.argmax(axis=0)
            if self.weights == "per_class":
                return solve_program(scores, codes, self.nu)
            shared, margin = shared_weights(scores, codes, self.nu)
            return np.repeat(shared[:, None], n_problems, axis=1), -margin
        weights, objective = np.zeros(scores.shape[:2]), 0.0
        for j, sign in enumerate(target.signs):
            if (sign != sign[0]).any():
                both = np.stack([-scores[:, j], scores[:, j]], axis=1)
                weights[:, j], margin = shared_weights(both, (sign > 0).astype(np.int64), self.nu)
                objective -= margin
        return weights, objective


def _inner_folds(target: SignedTarget, generator: np.random.RandomState) -> list[_Folds]:
    """Stratified folds of the samples: the same for all classes, others for each label."""
    if target.multilabel:
        return [_stratified(sign > 0, generator) for sign in target.signs]
    codes: LabelArray = target.signs[0] > 0
    if len(target.signs) > 1:
        codes = target.signs.argmax(axis=0)
    return [_stratified(codes, generator)] * len(target.signs)


def _stratified(codes: LabelArray, generator: np.random.RandomState) -> _Folds:
    counts = np.unique(codes, return_counts=True)[1]
    if len(counts) < 2:
        return []
    if counts.max() < 2:
        raise DataError(
            f"each of the {len(counts)} classes has one training sample only: give two or more, as"
            " LPBoost scores each by SVMs of the others."
        )
    splitter = StratifiedKFold(
        int(np.clip(counts.min(), 2, _FOLDS)), shuffle=True, random_state=generator
    )
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="The least populated class"
        )  # a class of one sample
        return list(splitter.split(codes, codes))


def _out_of_fold(
    kernel: FloatArray, signs: FloatArray, folds: Sequence[_Folds], C: float, tol: float
) -> FloatArray:
    """Scores (n_problems, n_samples) of each sample by SVMs fitted without it."""
    scores = np.zeros(signs.shape)
    for row, sign, splits in zip(scores, signs, folds, strict=True):
        for train, held_out in splits:
            dual, intercept = fit_machine(kernel[np.ix_(train, train)], sign[train], C, tol)
            row[held_out] = kernel[np.ix_(held_out, train)] @ dual + intercept
    return scores


def _accuracy(scores: FloatArray, target: SignedTarget) -> float:
    """Share of correct predictions, for a multi-label target averaged over labels."""
    if len(scores) > 1 and not target.multilabel:
        return float((scores.argmax(axis=0) == target.signs.argmax(axis=0)).mean())
    return float(((scores > 0) == (target.signs > 0)).mean())
