"""The solver of sparse multimodal learning: ADMM, and the barrier method where ADMM turns out to be slow."""

from __future__ import annotations

from collections.abc import Iterator

from raysel.solvers.smml.admm import UPDATES, ConsensusADMM
from raysel.solvers.smml.barrier import DualBarrier
from raysel.solvers.smml.certificate import Certificate
from raysel.solvers.smml.problem import MultimodalProblem

#: Most coefficients for which the barrier method's matrix, their number squared, is formed.
_COEFFICIENTS = 5000
#: Typical number of Newton steps of the barrier method.
_STEPS = 50
#: Fewest and most rounds of ADMM before the barrier method takes over.
_FEWEST, _MOST = 30, 1000


def solving_rounds(problem: MultimodalProblem) -> Iterator[Certificate]:
    """Solve a problem; yield the certificate after each round, without end.

    A round is ``UPDATES`` updates of ADMM. Once these have cost about as much as the barrier method would, that method
    takes over, one Newton step a round, until rounding errors end it; then ADMM continues. The cost is thus at most
    about twice that of the faster method.
    """
    admm = ConsensusADMM(problem)
    switch = _switch(problem)
    for count, certificate in enumerate(admm.rounds(), 1):
        yield certificate
        if count == switch:
            yield from DualBarrier(problem, certificate).rounds()


def _switch(problem: MultimodalProblem) -> int | None:
    """Number of ADMM rounds that cost as much as the barrier method; None where its matrix is too large."""
    n, d = problem.prepared.X.shape
    c = len(problem.prepared.signs)
    if c * d > _COEFFICIENTS:
        return None
    newton = n * d**2 * c + (d * c) ** 3 / 3
    update = (2 * n * d + min(n, d) ** 2) * c
    return int(min(max(_STEPS * newton / ((UPDATES + 3) * update), _FEWEST), _MOST))
