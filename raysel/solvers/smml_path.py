"""A whole grid of gammas on one training set: warm starts, and certificates in place of most solves.

What is found at one point of the grid is offered to all others. Its value there is known at once, for the objective
is linear in the gammas, and its dual point, scaled, still bounds the optimum. So W = 0 is passed on beyond the
collapse, a solution without any hinge loss down its diagonal t (gamma1, gamma2), t <= 1, and a solution with
gamma1 = 0 (or gamma2 = 0) to where that term is negligible: near there, that limit is solved in place of the point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.errors import ConfigError
from raysel.solvers.smml import SMML
from raysel.solvers.smml_admm import UPDATES, ConsensusADMM, WarmStart
from raysel.solvers.smml_certificate import Certificate
from raysel.solvers.smml_problem import DualPoint, MultimodalProblem, PreparedModalities, Solution

#: A term is tried as negligible where its gamma's fraction is below so many ``tol`` of the other's.
_NEGLIGIBLE = 30.0

Source = Literal["solved", "zero", "diagonal", "negligible"]


@dataclass(frozen=True)
class PathPoint:
    """The model at one pair of gammas.

    Attributes
    ----------
    gamma1, gamma2 : float
        Absolute.
    coef : ndarray of shape (n_classes, n_features)
        The same array at all points that share a solution.
    intercept : ndarray of shape (n_classes,)
    objective : float
    dual_gap : float
        Relative, never below the true gap.
    source : {"solved", "zero", "diagonal", "negligible"}
        Solved here, or proved within ``tol`` to be zero, the solution of a point on the same diagonal, or the
        solution of a point that differs in a negligible term.
    """

    gamma1: float
    gamma2: float
    coef: FloatArray
    intercept: FloatArray
    objective: float
    dual_gap: float
    source: Source


@dataclass(frozen=True)
class SMMLPath:
    """All points of a grid.

    Attributes
    ----------
    points : list of list of PathPoint
        ``points[i][j]`` is at the i-th gamma1 and the j-th gamma2.
    n_solves : int
        Problems that were really solved, the limits included.
    n_updates : int
        ADMM updates in all.
    """

    points: list[list[PathPoint]]
    n_solves: int
    n_updates: int


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

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
    gammas1, gammas2 : sequence of float
        Not negative; the pair (0, 0) is refused.
    modalities, gamma_scale, tol, max_iter
        As for `SMML`; ``max_iter`` is a solve's.
    prepared : PreparedModalities, default=None
        What ``SMML.prepare(X, y)`` returned. With it, X and y are not looked at.

    Returns
    -------
    SMMLPath

    Raises
    ------
    ConfigError
        If a gamma or another parameter cannot be.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> path = smml_path(scale(X), y, [0.1, 1.0], [0.1, 1.0], tol=1e-3)
    >>> path.points[1][0].source, path.n_solves
    ('zero', 1)
    """
    models = {
        (i, j): SMML(modalities, gamma1, gamma2, gamma_scale, tol=tol, max_iter=max_iter)
        for i, gamma1 in enumerate(gammas1)
        for j, gamma2 in enumerate(gammas2)
    }
    if prepared is None:
        model = SMML(modalities)
        X, y = model._validate_data(X, y)  # noqa: SLF001 - the same checks as the estimator's own
        model.check(X.shape[1])
        prepared = model.prepare(X, y)
    for model in models.values():
        model.check(prepared.X.shape[1])
    problems = {cell: model.problem(prepared) for cell, model in models.items()}
    walk = _Walk(prepared, tol, max_iter)
    descending = sorted(problems, key=lambda cell: -float(problems[cell].fractions.sum()))
    found = {cell: walk.point(problems[cell]) for cell in descending}
    points = [[found[i, j] for j in range(len(gammas2))] for i in range(len(gammas1))]
    return SMMLPath(points, walk.n_solves, walk.n_updates)


def fit_smml_path(models: Sequence[SMML], X: FloatArray, prepared: PreparedModalities) -> Iterator[tuple[int, Source]]:
    """Fit models that differ in their gammas, each with what the others found.

    Parameters
    ----------
    models : sequence of SMML
        With equal ``tol`` and ``max_iter``; fitted here.
    X : ndarray of shape (n_samples, n_features)
    prepared : PreparedModalities
        Of X and its labels.

    Yields
    ------
    position : int
        Of the model that has just been fitted, in the order of falling gammas.
    source : {"solved", "zero", "diagonal", "negligible"}

    Raises
    ------
    ConfigError
        If `check_smml_path` refuses them.
    """
    check_smml_path(models)
    walk = _Walk(prepared, models[0].tol, models[0].max_iter)
    problems = [model.problem(prepared) for model in models]
    for position in sorted(range(len(models)), key=lambda i: (-float(problems[i].fractions.sum()), i)):
        certificate, source = walk.find(problems[position])
        models[position].keep(X, certificate)
        yield position, source


def check_smml_path(models: Sequence[SMML]) -> None:
    """Refuse models that cannot share a path.

    Parameters
    ----------
    models : sequence of SMML

    Raises
    ------
    ConfigError
        If they differ in ``tol`` or ``max_iter``, or use ``method="reweighted"``.
    """
    if len({(model.tol, model.max_iter) for model in models}) > 1:
        raise ConfigError("search.method path: tol and max_iter cannot vary along a path; use grid.")
    if any(model.method != "admm" for model in models):
        raise ConfigError("search.method path: method=reweighted has no path, for it solves each point anew; use grid.")


class _Walk:
    """Goes from point to point and keeps all that it has found."""

    def __init__(self, prepared: PreparedModalities, tol: float, max_iter: int) -> None:
        self.n_solves = self.n_updates = 0
        self._prepared, self._tol, self._max_iter = prepared, tol, max_iter
        self._solutions: list[tuple[MultimodalProblem, Solution]] = []
        self._duals: list[DualPoint] = []
        self._starts: list[tuple[FloatArray, WarmStart]] = []
        self._coefficients: dict[int, tuple[FloatArray, FloatArray]] = {}

    def find(self, problem: MultimodalProblem) -> tuple[Certificate, Source]:
        """The model at a point: by what is known, by a limit, or solved."""
        certificate = self._known(problem)
        first, second = problem.fractions
        if certificate.gap > self._tol and 0 < min(first, second) < _NEGLIGIBLE * self._tol * max(first, second):
            limit = replace(problem, gamma1=0.0) if first < second else replace(problem, gamma2=0.0)
            if self._known(limit).gap > self._tol:
                self._solve(limit)
            certificate = self._known(problem)
        solved = certificate.gap > self._tol
        if solved:
            self._solve(problem)
            certificate = self._known(problem)
        return certificate, "solved" if solved else self._source(certificate)

    def point(self, problem: MultimodalProblem) -> PathPoint:
        """What `find` finds, as a point of the path."""
        return self._point(*self.find(problem))

    def _known(self, problem: MultimodalProblem) -> Certificate:
        """The best that all solutions and dual points so far say of a problem."""
        certificate = Certificate(problem)
        for _, solution in self._solutions:
            certificate.offer(solution)
        for dual in self._duals:
            certificate.offer_dual(dual)
        return certificate

    def _solve(self, problem: MultimodalProblem) -> None:
        """Solve from the nearest point; half of ``tol``, for other points take their share of the rest."""
        self.n_solves += 1
        solver = ConsensusADMM(problem, self._nearest(problem), self._known(problem))
        for _, certificate in zip(range(self._max_iter), solver.rounds(), strict=False):
            self.n_updates += UPDATES
            if certificate.gap <= 0.5 * self._tol:
                break
        self._starts.append((problem.fractions, solver.state()))
        self._solutions.append((problem, certificate.solution))
        self._solutions += [(problem, whole) for whole in without_hinge(problem, certificate.solution)]
        self._duals.append(certificate.dual)

    def _nearest(self, problem: MultimodalProblem) -> WarmStart | None:
        here = problem.fractions
        distances = [float(np.abs(np.sqrt(here) - np.sqrt(there)).sum()) for there, _ in self._starts]
        return self._starts[int(np.argmin(distances))][1] if distances else None

    def _source(self, certificate: Certificate) -> Source:
        if not certificate.solution.W.any():
            return "zero"
        here = certificate.problem
        origin = next(problem for problem, solution in self._solutions if solution is certificate.solution)
        same = np.isclose(origin.gamma1 * here.gamma2, origin.gamma2 * here.gamma1, rtol=1e-9, atol=0.0)
        return "diagonal" if same else "negligible"

    def _point(self, certificate: Certificate, source: Source) -> PathPoint:
        problem, solution = certificate.problem, certificate.solution
        if id(solution.W) not in self._coefficients:
            self._coefficients[id(solution.W)] = self._prepared.coefficients(solution.W, solution.bias)
            self._solutions.append((problem, solution))  # kept, so that its id stays its own
        coef, intercept = self._coefficients[id(solution.W)]
        return PathPoint(
            problem.gamma1, problem.gamma2, coef, intercept, certificate.objective, certificate.gap, source
        )


def without_hinge(problem: MultimodalProblem, solution: Solution) -> list[Solution]:
    """A solution enlarged, class by class, until no sample violates its margin: none where the classes overlap.

    Only without any hinge loss is a solution optimal all the way down its diagonal; a solver leaves a trace of it.
    """
    signs = problem.prepared.signs
    scores = solution.W @ problem.prepared.X.T
    lowest = np.where(signs > 0, scores, np.inf).min(axis=1)  # of the positives
    highest = np.where(signs < 0, scores, -np.inf).max(axis=1)
    margins = 0.5 * (lowest - highest)
    if not (margins > 0).all():
        return []
    factors = np.where(np.isfinite(margins), 1.0 / np.minimum(margins, 1.0), 1.0)
    return [problem.solution(solution.W * factors[:, None] * (1.0 + 1e-14))]
