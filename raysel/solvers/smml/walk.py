"""The models at many pairs of gammas, most of them certified without a solve of their own.

A solve is by ADMM, on few features where the solution has few, and by the barrier method where ADMM
turns out to be slow. Three proofs save solves. W = 0 is optimal where the gammas' fractions of
their maxima sum to 1 or more. A model without any hinge loss that is optimal at (gamma1, gamma2) is
optimal at t (gamma1, gamma2), t <= 1: on each ray such a model is searched at fixed levels. And a
solution with gamma1 = 0 (or gamma2 = 0) is optimal within ``tol`` where that term is negligible.
Other points are solved as `SMML.fit` does. So the model at a point depends, to the last bit, only
on the training set, its own gammas, ``tol`` and ``max_iter``, and not on the other points; only the
time does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, takewhile
from typing import Literal, NamedTuple

import numpy as np

from raysel.numerics.optimality import relative_gap
from raysel.solvers.smml.admm import UPDATES, ConsensusADMM
from raysel.solvers.smml.barrier import DualBarrier
from raysel.solvers.smml.problem import (
    Certificate,
    DualPoint,
    MultimodalProblem,
    PreparedModalities,
    Solution,
)
from raysel.solvers.smml.working_set import WorkingSetADMM, saves_time

#: Most coefficients for which the barrier method's matrix, their number squared, is formed.
_COEFFICIENTS = 5000
#: Typical number of Newton steps of the barrier method.
_STEPS = 50
#: Fewest and most rounds of ADMM before the barrier method takes over.
_FEWEST, _MOST = 30, 1000


def solving_rounds(problem: MultimodalProblem) -> Iterator[Certificate]:
    """Solve a problem; yield the certificate after each round, without end.

    A round is ``UPDATES`` updates of ADMM, on a working set of features where `saves_time` says so.
    Once these have cost about as much as the barrier method would, that method takes over, one
    Newton step a round, until rounding errors end it; then ADMM continues. The cost is thus at most
    about twice that of the faster method.
    """
    admm = (WorkingSetADMM if saves_time(problem) else ConsensusADMM)(problem)
    switch = _switch(problem)
    for count, certificate in enumerate(admm.rounds(), 1):
        yield certificate
        if count == switch:
            yield from DualBarrier(problem, certificate).rounds()


def _switch(problem: MultimodalProblem) -> int | None:
    """Number of ADMM rounds that cost as much as the barrier method; None if it cannot run."""
    n, d = problem.prepared.X.shape
    c = len(problem.prepared.signs)
    if c * d > _COEFFICIENTS:
        return None
    newton = n * d**2 * c + (d * c) ** 3 / 3
    update = (2 * n * d + min(n, d) ** 2) * c
    return int(min(max(_STEPS * newton / ((UPDATES + 3) * update), _FEWEST), _MOST))


#: A term is tried as negligible where its gamma's fraction is below so many ``tol`` of the other's:
#: at the other term's optimum it is 0.9 to 2.6 times that share of the objective (measured).
_NEGLIGIBLE = 1.0
#: Share of ``tol`` to which models for other points are solved: a negligible term takes part of the
#: rest.
_STRICT = 0.25
#: Sums of the gammas' fractions at which a ray is searched for a model without hinge loss, from the
#: largest on.
_LEVELS = [2.0**-k for k in range(5, 64, 2)]
#: Share of the hinge loss in the objective above which lower levels are not searched.
_HINGE = 0.5

Source = Literal["solved", "zero", "diagonal", "negligible"]


class ProvedSolution(NamedTuple):
    """A solution and a dual point that proves it near enough to the optimum."""

    solution: Solution
    dual: DualPoint


class Walk:
    """Finder of models at pairs of gammas; what it keeps saves time and changes no result."""

    def __init__(self, prepared: PreparedModalities, tol: float, max_iter: int) -> None:
        self.n_solves = self.n_rounds = 0
        self._prepared, self._tol, self._max_iter = prepared, tol, max_iter
        self._limits: dict[tuple[float, float], list[ProvedSolution]] = {}
        self._levels: dict[tuple[float, float], tuple[ProvedSolution | None, bool]] = {}

    def find(self, problem: MultimodalProblem) -> tuple[Certificate, Source]:
        """Find the model at a pair of gammas: proved zero, of another point, or solved."""
        if problem.is_zero_solution:
            return Certificate(problem), "zero"
        first, second = problem.fractions
        if 0 < min(first, second) < _NEGLIGIBLE * self._tol * max(first, second):
            limit = replace(problem, gamma2=0.0)
            if first < second:
                limit = replace(problem, gamma1=0.0)
            certificate = _certificate(problem, self._lossless(limit) or self._limit(limit)[1])
            if certificate.gap <= self._tol:
                return certificate, "negligible"
        proved = self._lossless(problem)
        if proved is not None:
            certificate = _certificate(problem, proved)
            if certificate.gap <= self._tol:
                return certificate, "diagonal"
        if min(first, second) == 0:
            solutions = self._limit(problem)
        else:
            solutions = self._solve(problem, self._tol)
        return _certificate(problem, solutions[0]), "solved"

    def _lossless(self, problem: MultimodalProblem) -> ProvedSolution | None:
        """Find a model without hinge loss on the problem's ray, at its point or above."""
        fractions = problem.fractions
        # Points of one diagonal are not quite so in floating point: twelve digits name the ray.
        shares = np.array([float(f"{share:.12g}") for share in fractions / fractions.max()])
        shares /= shares.sum()
        for level in takewhile(lambda level: level >= fractions.sum(), _LEVELS):
            proved, hopeless = self._at_level(*(level * shares).tolist())
            if proved is not None or hopeless:
                return proved
        return None

    def _at_level(self, first: float, second: float) -> tuple[ProvedSolution | None, bool]:
        """Model without hinge loss at these fractions, and whether lower ones are hopeless."""
        if (first, second) not in self._levels:
            prepared, proved = self._prepared, None
            problem = MultimodalProblem(
                prepared, first * prepared.gamma1_max, second * prepared.gamma2_max
            )
            for certificate in self._rounds(problem, 0.5 * _STRICT * self._tol):
                if certificate.gap <= self._tol:
                    proved = _without_hinge(certificate, _STRICT * self._tol)
                if proved is not None:
                    break
            hopeless = certificate.solution.hinge > _HINGE * certificate.objective
            self._levels[first, second] = proved, hopeless
        return self._levels[first, second]

    def _limit(self, problem: MultimodalProblem) -> list[ProvedSolution]:
        """Solutions of a problem with one term, within ``tol`` and within a stricter gap."""
        key = problem.gamma1, problem.gamma2
        if key not in self._limits:
            self._limits[key] = self._solve(problem, self._tol, _STRICT * self._tol)
        return self._limits[key]

    def _solve(self, problem: MultimodalProblem, *gaps: float) -> list[ProvedSolution]:
        """First solution within each of the falling gaps; else the last one."""
        solutions: list[ProvedSolution] = []
        for certificate in self._rounds(problem, gaps[-1]):
            within = [gap for gap in gaps[len(solutions) :] if certificate.gap <= gap]
            solutions += [ProvedSolution(certificate.solution, certificate.dual)] * len(within)
        return solutions + [ProvedSolution(certificate.solution, certificate.dual)] * (
            len(gaps) - len(solutions)
        )

    def _rounds(self, problem: MultimodalProblem, gap: float) -> Iterator[Certificate]:
        """Yield the rounds of `SMML.fit` until the gap is reached, at most ``max_iter``."""
        self.n_solves += 1
        for certificate in islice(solving_rounds(problem), self._max_iter):
            self.n_rounds += 1
            yield certificate
            if certificate.gap <= gap:
                return


def _certificate(problem: MultimodalProblem, proved: ProvedSolution) -> Certificate:
    """Certificate of a problem by a solution and a dual point found for it or for another."""
    certificate = Certificate(problem)
    certificate.offer(proved.solution)
    certificate.offer_dual(proved.dual)
    return certificate


def _without_hinge(certificate: Certificate, gap: float) -> ProvedSolution | None:
    """Enlarge a solution until no sample violates its margin; None where classes overlap."""
    # Only a solution without any hinge loss is optimal all the way down its ray, and a solver
    # leaves a small rest of it.
    problem, W = certificate.problem, certificate.solution.W
    signs = problem.prepared.signs
    scores = W @ problem.prepared.X.T
    lowest = np.where(signs > 0, scores, np.inf).min(axis=1)  # of the positives
    highest = np.where(signs < 0, scores, -np.inf).max(axis=1)
    margins = 0.5 * (lowest - highest)
    if not (margins > 0).all():
        return None
    factors = np.where(np.isfinite(margins), 1.0 / np.minimum(margins, 1.0), 1.0)
    solution = problem.solution(W * factors[:, None] * (1.0 + 1e-14))
    objective = solution.objective(problem.gamma1, problem.gamma2)
    if relative_gap(objective, certificate.bound) <= gap:
        return ProvedSolution(solution, certificate.dual)
    return None
