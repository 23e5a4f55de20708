"""Sparse multimodal learning (SMML): a linear classifier sparse in modalities and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from raysel.base.classifiers import OneAgainstRest, SignedTarget, signed_target
from raysel.base.estimator import NOT_NEGATIVE, Capabilities, IterativeEstimator
from raysel.base.search_drafts import DataSize, SearchDraft
from raysel.core.arrays import FloatArray, LabelArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout
from raysel.data.scaling import modality_layout
from raysel.solvers.smml.problem import (
    Certificate,
    MultimodalProblem,
    PreparedModalities,
    prepare_modalities,
)
from raysel.solvers.smml.reweighted import ReweightedSVM
from raysel.solvers.smml.walk import Source, Walk, solving_rounds

#: Most iterations of a draft, by which the longest time of a study is estimated; on MSRC-v1,
#: MSRC-v2, Scene and mfeat fits to the duality gap of a draft took 54 at most.
_DRAFTED_ITERATIONS = 200


class SMML(IterativeEstimator, OneAgainstRest):
    """Sparse multimodal learning: a linear classifier that ranks modalities and features.

    One linear two-class problem a class (one against the rest) or a label, all coupled by two
    norms:

        min_W,b  sum_ij (1 - Y_ij (x_i'w_j + b_j))_+  +  gamma1 sum_jk ||w_j^k||  +  gamma2 sum_r
        ||w^r||

    with Y in {-1, 1}, w_j^k the coefficients of class j on modality k, and w^r those of feature r
    on all classes. The first norm drops whole modalities for a class, the second drops features for
    all classes; ``gamma2=0`` and ``gamma1=0`` are the two variants with one norm. b is not
    penalised. The data are centred by ``fit`` but not scaled: see `ModalityScaler`. This is eq. 8
    of the paper; its eq. 3 at (g1, g2) is this problem at (2 g1, 2 g2).

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, by its name, in column order. None: all of X is one
        modality.
    gamma1, gamma2 : float, default=0.1
        Weights of the two norms, not negative, not both 0; see ``gamma_scale``.
    gamma_scale : {"max", "absolute"}, default="max"
        Unit of the gammas. "max": fractions of g1max and g2max, found on the training set, for
        which W = 0 wherever gamma1 + gamma2 >= 1. "absolute": as they are.
    method : {"admm", "reweighted"}, default="admm"
        The solver; all reach the same optimum. "admm": consensus ADMM, an iteration is 10 updates,
        on a growing set of features where few are expected in the solution; where that is slow and
        there are at most 5000 coefficients, a barrier method takes over, an iteration is a Newton
        step. "reweighted": Algorithm 1 of the paper, an iteration is one SVM (LIBSVM) a class;
        slower.
    tol : float, default=1e-4
        Relative duality gap at which to stop.
    max_iter : int, default=2000
        Largest number of iterations.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` keeps. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), one row for two classes
        Coefficients of the features, with exact zeros.
    intercept_ : ndarray of shape (n_classes,), one entry for two classes
        Intercept of each class.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels; for a multi-label target 0, 1, ..., one a label.
    class_count_ : ndarray of int64, shape (n_classes,), or (n_labels, 2) for a multi-label target
        Training samples of each class; without and with each label. Decides between classes of
        equal scores.
    multilabel_ : bool
        Whether the target was an indicator of labels.
    scores_ : ndarray of shape (n_features,)
        Norm ||w^r|| of each feature's coefficients.
    modality_scores_ : ndarray of shape (n_modalities, n_classes), one column for two classes
        Norm ||w_j^k|| of each class's coefficients in each modality, divided by the square root of
        its width. With ``gamma1`` above 0 a wide modality of noise still has the largest, as the
        norm of a narrow one has the same weight: of 5, 20 and 80 features the widest in 77 to 100 %
        of data sets that tell nothing (0.1 to 0.5, ``gamma2=0.1``).
    modality_names_ : list of str
        Name of each modality, in column order; "all" without ``modalities``.
    gamma1_, gamma2_ : float
        Absolute weights of the two norms.
    dual_gap_ : float
        An upper bound of (P - P*) / P*, P the objective of the returned model and P* the smallest
        there is.
    objective_path_ : ndarray of shape (n_iter_,)
        P of the best model so far after each iteration. For "reweighted" the objective of the last
        W with norms smoothed by eps, which Algorithm 1 lowers; eps falls to 1e-7 of the largest
        norm.
    n_subproblems_ : int
        Number of SVMs solved, 0 for "admm".

    References
    ----------
    Wang, Nie, Huang, Ding, "Heterogeneous visual features fusion via sparse multimodal machine",
    CVPR 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> smml = SMML(modalities={"chemistry": 9, "optics": 4}, gamma1=0.1, gamma2=0.1)
    >>> smml = smml.fit(scale(X), y)
    >>> smml.modality_scores_.shape
    (2, 3)
    >>> bool(smml.dual_gap_ <= 1e-4 and smml.score(scale(X), y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "modalities": [dict, None],
        "gamma1": [NOT_NEGATIVE],
        "gamma2": [NOT_NEGATIVE],
        "gamma_scale": [StrOptions({"max", "absolute"})],
        "method": [StrOptions({"admm", "reweighted"})],
    }

    capabilities: ClassVar[Capabilities] = replace(OneAgainstRest.capabilities, path=True)
    layout_parameters: ClassVar[frozenset[str]] = frozenset({"modalities"})

    modality_scores_: FloatArray
    modality_names_: list[str]
    gamma1_: float
    gamma2_: float
    n_subproblems_: int

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        gamma1: float = 0.1,
        gamma2: float = 0.1,
        gamma_scale: Literal["max", "absolute"] = "max",
        method: Literal["admm", "reweighted"] = "admm",
        tol: float = 1e-4,
        max_iter: int = 2000,
        n_features_to_select: int | None = None,
    ) -> None:
        self.modalities = modalities
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.gamma_scale = gamma_scale
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.n_features_to_select = n_features_to_select

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the weight without which modalities do not count."""
        return {"gamma1": 0}

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft:
        """Return a search of both weights, which one pass over each training set solves."""
        steps = size.by_effort([0.01, 0.03, 0.1, 0.3], [0.01, 0.1], [0.01, 0.1])
        return SearchDraft(
            why="sparse multimodal learning of one label a sample or several: weighs whole"
            " modalities and single features",
            space={"gamma1": [0, *steps], "gamma2": [0.001, *steps]},
            of_space="what is searched: gamma1 weighs modalities, gamma2 features; fractions of the"
            " value from which on nothing is selected",
            params={"max_iter": _DRAFTED_ITERATIONS, "tol": 0.001},
            of_params="iterations at most, and the duality gap at which a fit ends",
        )

    def check(self, n_features: int) -> None:
        """Check the parameters, alone and against the number of features."""
        super().check(n_features)
        if self.gamma1 == 0 and self.gamma2 == 0:
            raise ConfigError(
                "gamma1=0 and gamma2=0 leave nothing to select by: set at least one of them"
                " above 0."
            )
        modality_layout(self.modalities, n_features)

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key of larger gamma1 + gamma2 first, then larger gamma1."""
        return (-float(self.gamma1 + self.gamma2), -float(self.gamma1))

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedModalities:
        """Centre the training set and decompose it, once for all gammas."""
        X = np.asarray(X, dtype=np.float64)
        widths = [X.shape[1]]
        if self.modalities is not None:
            widths = list(self.modalities.values())
        target = signed_target(y)
        return prepare_modalities(
            X,
            target.signs,
            widths=np.array(widths, dtype=np.int64),
            classes=target.classes,
            multilabel=target.multilabel,
        )

    def problem(self, prepared: PreparedModalities) -> MultimodalProblem:
        """Problem of this model's gammas on a prepared training set."""
        gamma1, gamma2 = float(self.gamma1), float(self.gamma2)
        if self.gamma_scale == "max":
            gamma1, gamma2 = gamma1 * prepared.gamma1_max, gamma2 * prepared.gamma2_max
        return MultimodalProblem(prepared, gamma1, gamma2)

    def is_zero_solution(self, prepared: PreparedModalities) -> bool:
        """Return whether gamma1 / g1max + gamma2 / g2max >= 1, so that W = 0 is optimal."""
        return self.problem(prepared).is_zero_solution

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedModalities) -> None:
        """Set the fitted attributes to W = 0 and its best intercept, without solving."""
        self.keep(X, Certificate(self.problem(prepared)))

    @classmethod
    def check_path(cls, models: Sequence[Self]) -> None:
        """Check that models can be fitted together along a path.

        Parameters
        ----------
        models : sequence of SMML
            Unfitted models.

        Raises
        ------
        ConfigError
            If they differ in ``tol`` or ``max_iter``, or use ``method="reweighted"``.
        """
        if len({(model.tol, model.max_iter) for model in models}) > 1:
            raise ConfigError(
                "search.method path: tol and max_iter cannot vary along a path; use grid."
            )
        if any(model.method != "admm" for model in models):
            raise ConfigError(
                "search.method path: method=reweighted has no path, for it solves each point anew;"
                " use grid."
            )

    @classmethod
    def fit_path(
        cls, models: Sequence[Self], X: FloatArray, prepared: PreparedModalities
    ) -> Iterator[tuple[int, Source]]:
        """Fit models that differ in their gammas; see `smml_path`.

        Parameters
        ----------
        models : sequence of SMML
            Unfitted models with equal ``tol`` and ``max_iter``.
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        prepared : PreparedModalities
            Result of ``prepare`` for X and its labels.

        Yields
        ------
        position : int
            Position in ``models`` of the model that has just been fitted; the largest gammas come
            first.
        source : {"solved", "zero", "diagonal", "negligible"}
            How the solution was obtained, see `PathPoint`.

        Raises
        ------
        ConfigError
            If `check_path` refuses them.
        """
        cls.check_path(models)
        walk = Walk(prepared, models[0].tol, models[0].max_iter)
        problems = [model.problem(prepared) for model in models]
        for position in sorted(
            range(len(models)), key=lambda i: (-float(problems[i].fractions.sum()), i)
        ):
            certificate, source = walk.find(problems[position])
            models[position].keep(X, certificate)
            yield position, source

    def _updates(
        self, X: FloatArray, y: LabelArray, prepared: PreparedModalities
    ) -> Iterator[float]:
        problem = self.problem(prepared)
        if self.method == "admm":
            for certificate in solving_rounds(problem):
                self._keep(certificate, 0)
                yield certificate.objective
        else:
            machines = ReweightedSVM(problem)
            for certificate in machines.rounds():
                self._keep(certificate, machines.n_subproblems)
                yield machines.smoothed_objective

    def _keep(self, certificate: Certificate, n_subproblems: int) -> None:
        """Set the fitted attributes to the best model so far."""
        problem, prepared, solution = (
            certificate.problem,
            certificate.problem.prepared,
            certificate.solution,
        )
        self.coef_, self.intercept_ = prepared.coefficients(solution.W, solution.bias)
        self._keep_target(SignedTarget(prepared.signs, prepared.classes, prepared.multilabel))
        self.gamma1_, self.gamma2_ = problem.gamma1, problem.gamma2
        # Where W = 0 is proved, the certificate knows it but for rounding.
        self.dual_gap_ = 0.0 if problem.is_zero_solution else certificate.gap
        self.n_subproblems_ = n_subproblems
        self.scores_ = np.linalg.norm(self.coef_, axis=0)
        layout = modality_layout(self.modalities, self.coef_.shape[1])
        self.modality_names_ = list(layout.modalities)
        blocks = [self.coef_[:, columns] for columns in layout.slices().values()]
        self.modality_scores_ = np.array([np.sqrt(np.mean(block**2, axis=1)) for block in blocks])

    def keep(self, X: FloatArray, certificate: Certificate) -> None:
        """Set the fitted attributes to a solution of another solve, as after one iteration."""
        self.n_features_in_ = X.shape[1]
        self._keep(certificate, 0)
        self.objective_path_, self.n_iter_ = np.array([certificate.objective]), 1
        self.converged_ = self._has_converged(self.objective_path_)


@dataclass(frozen=True)
class PathPoint:
    """The model at one pair of gammas."""

    #: Weights of the two norms, absolute.
    gamma1: float
    gamma2: float
    #: Coefficients of the features; the same array at all points that share a solution; shape
    #: (n_classes, n_features).
    coef: FloatArray
    #: Intercept of each class; shape (n_classes,).
    intercept: FloatArray
    #: Objective P of the model at these gammas.
    objective: float
    #: Relative duality gap, never below (P - P*) / P*.
    dual_gap: float
    #: Solved here; zero by `SMML.is_zero_solution`; or proved within ``tol`` to be a model without
    #: hinge loss of larger gammas in the same ratio, or the solution without a term that is
    #: negligible.
    source: Source


@dataclass(frozen=True)
class SMMLPath:
    """The models at all points of a grid."""

    #: ``points[i][j]`` is at the i-th gamma1 and the j-th gamma2.
    points: list[list[PathPoint]]
    #: Number of problems solved, including those at no point of the grid.
    n_solves: int
    #: Number of the solver's iterations, all solves together.
    n_rounds: int


def smml_path(
    X: ArrayLike,
    y: ArrayLike,
    gammas1: Sequence[float],
    gammas2: Sequence[float],
    *,
    modalities: Mapping[str, int] | None = None,
    gamma_scale: Literal["max", "absolute"] = "max",
    tol: float = 1e-4,
    max_iter: int = 2000,
    prepared: PreparedModalities | None = None,
) -> SMMLPath:
    """Solve `SMML` at every pair of gammas.

    Every point is what it would be alone. Points "solved" and "zero" are also what ``SMML.fit``
    gives, to the last bit; elsewhere both are within ``tol`` of the optimum, and may be different
    models.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Their class labels, or an indicator of 0/1 or -1/1.
    gammas1, gammas2 : sequence of float
        Values of gamma1 and gamma2, not negative; the pair (0, 0) is refused.
    modalities, gamma_scale, tol : default as in `SMML`
        Parameters of `SMML`.
    max_iter : int, default=2000
        Largest number of iterations of one solve.
    prepared : PreparedModalities, default=None
        Result of ``SMML.prepare(X, y)``, to save preparing again; X and y are then ignored.

    Returns
    -------
    SMMLPath
        The models.

    Raises
    ------
    ConfigError
        If a gamma or another parameter is not allowed.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> path = smml_path(scale(X), y, [0.1, 1.0], [0.1, 1.0], tol=1e-3)
    >>> path.points[1][0].source, path.n_solves
    ('zero', 1)
    """
    cells = product(range(len(gammas1)), range(len(gammas2)))
    models = {
        (i, j): SMML(modalities, gammas1[i], gammas2[j], gamma_scale, tol=tol, max_iter=max_iter)
        for i, j in cells
    }
    if prepared is None:
        model = SMML(modalities)
        X, y = model._validate_data(X, y)  # noqa: SLF001 - the same checks as the estimator's own
        model.check(X.shape[1])
        prepared = model.prepare(X, y)
    for model in models.values():
        model.check(prepared.X.shape[1])
    problems = {cell: model.problem(prepared) for cell, model in models.items()}
    walk = Walk(prepared, tol, max_iter)
    descending = sorted(problems, key=lambda cell: -float(problems[cell].fractions.sum()))
    by_cell, coefficients = {}, {}
    for cell in descending:
        certificate, source = walk.find(problems[cell])
        solution = certificate.solution
        if id(solution) not in coefficients:  # kept with it, so that its id stays its own
            coefficients[id(solution)] = (
                solution,
                *prepared.coefficients(solution.W, solution.bias),
            )
        _, coef, intercept = coefficients[id(solution)]
        gammas = problems[cell].gamma1, problems[cell].gamma2
        by_cell[cell] = PathPoint(
            *gammas, coef, intercept, certificate.objective, certificate.gap, source
        )
    points = [[by_cell[i, j] for j in range(len(gammas2))] for i in range(len(gammas1))]
    return SMMLPath(points, walk.n_solves, walk.n_rounds)
