"""The solver of sparse multimodal learning: ADMM, and the barrier method where ADMM turns out to be slow."""

from __future__ import annotations

from collections.abc import Iterator

from raysel.solvers.smml.admm import UPDATES, ConsensusADMM
from raysel.solvers.smml.barrier import DualBarrier
from raysel.solvers.smml.certificate import Certificate
from raysel.solvers.smml.problem import MultimodalProblem

#: Beyond so many coefficients the barrier method's matrix, their number squared, is not formed.
_COEFFICIENTS = 5000
#: Newton steps that the barrier method takes, about.
_STEPS = 50
#: ADMM keeps at least so many rounds, and no more than that where the barrier method can take over.
_FEWEST, _MOST = 30, 1000


def solving_rounds(problem: MultimodalProblem) -> Iterator[Certificate]:
    """Improve a certificate without end.

    A round is ``UPDATES`` updates of ADMM. Once these have cost about what the barrier method would, it is that
    method's turn, a Newton step a round, until rounding ends it; so twice the cost of the better of both is not
    exceeded by much.

    Parameters
    ----------
    problem : MultimodalProblem

    Yields
    ------
    Certificate
        The same object, better than or as good as before.
    """
    admm = ConsensusADMM(problem)
    switch = _switch(problem)
    for count, certificate in enumerate(admm.rounds(), 1):
        yield certificate
        if count == switch:
            yield from DualBarrier(problem, certificate).rounds()


def _switch(problem: MultimodalProblem) -> int | None:
    """The number of ADMM rounds that cost as much as the barrier method; None where that cannot be afforded."""
    n, d = problem.prepared.X.shape
    c = len(problem.prepared.signs)
    if c * d > _COEFFICIENTS:
        return None
    newton = n * d**2 * c + (d * c) ** 3 / 3
    update = (2 * n * d + min(n, d) ** 2) * c
    return int(min(max(_STEPS * newton / ((UPDATES + 3) * update), _FEWEST), _MOST))
