"""SMML models at all pairs of gammas of a grid on one training set, most of them without a solve of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.solvers.smml.problem import PreparedModalities
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smml.walk import Source, Walk


@dataclass(frozen=True)
class PathPoint:
    """The model at one pair of gammas."""

    #: Weights of the two norms, absolute.
    gamma1: float
    gamma2: float
    #: Coefficients of the features; the same array at all points that share a solution; shape (n_classes, n_features).
    coef: FloatArray
    #: Intercept of each class; shape (n_classes,).
    intercept: FloatArray
    #: Objective P of the model at these gammas.
    objective: float
    #: Relative duality gap, never below (P - P*) / P*.
    dual_gap: float
    #: Solved here; zero by `SMML.is_zero_solution`; or proved within ``tol`` to be a model without hinge loss of larger
    #: gammas in the same ratio, or the solution without a term that is negligible.
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

    Every point is what it would be alone. Points "solved" and "zero" are also what ``SMML.fit`` gives, to the last
    bit; elsewhere both are within ``tol`` of the optimum, and may be different models.

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
    walk = Walk(prepared, tol, max_iter)
    descending = sorted(problems, key=lambda cell: -float(problems[cell].fractions.sum()))
    found, coefficients = {}, {}
    for cell in descending:
        certificate, source = walk.find(problems[cell])
        solution = certificate.solution
        if id(solution) not in coefficients:  # kept with it, so that its id stays its own
            coefficients[id(solution)] = (solution, *prepared.coefficients(solution.W, solution.bias))
        _, coef, intercept = coefficients[id(solution)]
        gammas = problems[cell].gamma1, problems[cell].gamma2
        found[cell] = PathPoint(*gammas, coef, intercept, certificate.objective, certificate.gap, source)
    points = [[found[i, j] for j in range(len(gammas2))] for i in range(len(gammas1))]
    return SMMLPath(points, walk.n_solves, walk.n_rounds)
