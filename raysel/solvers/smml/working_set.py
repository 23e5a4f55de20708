"""ADMM on a working set of features, for solutions that use few of them; certified on all.

A feature r outside the set has w^r = 0. Its dual variables U_r = 0 and V^r = X_r'(alpha * Y) are
feasible while
||V^r|| <= gamma2; where they are not it joins the set, with those that nearly are not. So the set's
solution and a dual
point of all features become the optimum of the whole problem, which the duality gap, taken on all
features, proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg

from raysel.core.arrays import BoolArray
from raysel.numerics.hinge import balanced
from raysel.numerics.linear_algebra import gram
from raysel.solvers.smml.admm import ConsensusADMM
from raysel.solvers.smml.problem import Certificate, MultimodalProblem

#: Share of the features that are the first set: those of the largest gradient at W = 0.
_FIRST = 0.1
#: When a feature joins, those join whose ||V^r|| is above this share of gamma2.
_NEAR = 0.95
#: Share of the features above which the set becomes all of them.
_MOST = 0.5

# What `saves_time` goes by, measured (experiments/benchmarks/smml-speed): the gammas' fractions f1,
# f2 and the median m over features of ||G^r|| in units of its maximum. Where features are
# uncorrelated, ||V^r|| of those that do not matter stays what it is at W = 0, so that most of it
# has to be below gamma2; where few directions have most of the variance it falls with that of the
# few features that do matter.
_SPREAD, _SPREAD_CORRELATED = 2.0, 0.15
#: Largest m, and largest effective rank in units of that of independent features, that count as
#: correlated.
_MEDIAN, _RANK = 0.2, 0.25
#: The modality norm keeps features together: f1 / f2 is at most the lower of these, the first times
#: f2 / m.
_SLOPE, _RATIO = 0.4, 0.5
#: Fewest n d c: below, calls cost more than what they compute.
_SIZE = 1_000_000


def saves_time(problem: MultimodalProblem) -> bool:
    """Return whether so few features are expected that a working set saves time."""
    prepared, (f1, f2) = problem.prepared, problem.fractions
    n, d = prepared.X.shape
    if n * d * len(prepared.signs) < _SIZE or not 0.0 < f2 < 1.0:
        return False
    median = float(np.median(problem.feature_norm.ratios(prepared.gradient))) / prepared.gamma2_max
    values = prepared.eigenvalues
    rank = values.sum() ** 2 / (values @ values) * (1 / n + 1 / d)
    correlated = median <= _MEDIAN and rank <= _RANK
    spread = _SPREAD
    if correlated:
        spread = _SPREAD_CORRELATED
    return bool(f2 >= spread * median and f1 * median <= _SLOPE * f2**2 and f1 <= _RATIO * f2)


class WorkingSetADMM:
    """Solver of one problem by ADMM on a growing set of features, a round at a time."""

    def __init__(self, problem: MultimodalProblem) -> None:
        self.problem, self.certificate = problem, Certificate(problem)
        ratios = problem.feature_norm.ratios(problem.prepared.gradient)
        self.kept: BoolArray = np.zeros(len(ratios), dtype=bool)
        self.kept[np.argsort(-ratios, kind="stable")[: int(np.ceil(_FIRST * len(ratios)))]] = True
        self._admm = ConsensusADMM(restricted(problem, self.kept))

    def rounds(self) -> Iterator[Certificate]:
        """Yield the certificate of the whole problem after each round, without end."""
        if self.certificate.gap == 0.0:
            yield self.certificate
        while True:
            for _ in self._admm.rounds():
                grown = self._grow()
                yield self.certificate
                if grown:
                    break

    def _grow(self) -> bool:
        """Certify the last round, and let features join; return whether any did."""
        problem, kept = self.problem, self.kept
        inner = self._admm.certificate.solution
        W = np.zeros_like(problem.prepared.gradient)
        W[:, kept] = inner.W
        self.certificate.offer(replace(inner, W=W))
        alpha, V_kept = self._admm.dual_variables
        alpha = balanced(alpha, problem.prepared.signs)
        total = (alpha * problem.prepared.signs) @ problem.prepared.X
        V = total.copy()
        V[:, kept] = V_kept
        self.certificate.offer_dual(problem.split(alpha.sum(axis=1), total, V))
        ratios = problem.feature_norm.ratios(total) / problem.gamma2
        # At the optimum ||V^r + U_r|| <= gamma2 + sqrt(c) gamma1 inside; early on all are larger by
        # a common factor.
        common = max(
            1.0, ratios[kept].max() / (1.0 + np.sqrt(len(W)) * problem.gamma1 / problem.gamma2)
        )
        if kept.all() or ratios[~kept].max() <= common:
            return False
        larger = kept | (ratios > _NEAR * common)
        if larger.mean() > _MOST:
            larger[:] = True
        V = (total / np.maximum(ratios, 1.0))[:, larger]
        self._admm = self._admm.enlarged(restricted(problem, larger), kept[larger], V)
        self.kept = larger
        return True


def restricted(problem: MultimodalProblem, kept: BoolArray) -> MultimodalProblem:
    """The problem of the kept features alone, in the same units; `kept` is (d,)."""
    if kept.all():
        return problem
    prepared = problem.prepared
    modality = np.repeat(np.arange(len(prepared.widths)), prepared.widths)
    used, widths = np.unique(modality[kept], return_counts=True)
    X = np.ascontiguousarray(prepared.X[:, kept])
    eigenvalues, eigenvectors = scipy.linalg.eigh(
        gram(X, of_rows=len(X) < X.shape[1]), driver="evd", overwrite_a=True, check_finite=False
    )
    part = replace(
        prepared,
        X=X,
        mean=prepared.mean[kept],
        units=prepared.units[used],
        widths=widths,
        eigenvalues=np.maximum(eigenvalues, 0.0),
        eigenvectors=np.ascontiguousarray(eigenvectors),
        gradient=prepared.gradient[:, kept],
    )
    return replace(problem, prepared=part)
