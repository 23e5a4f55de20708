"""Sentences on how far fits went: whether they met their tolerance, and what another start finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raysel.cv.convergence import Convergence
from raysel.cv.plan import FINAL
from raysel.cv.records import RefitRecord


def convergence_in_words(refits: Sequence[RefitRecord]) -> str:
    """Say how many winners converged, and to what; empty if it was not recorded."""
    found = Convergence.of(refits)
    if not found.n_fits:  # version 0.1
        return ""
    of = "outer folds and final model" if any(refit.fold == FINAL for refit in refits) else "outer folds"
    if any(refit.local_optimum for refit in refits):
        return f"{found.n_converged} of {found.n_fits} winners ({of}) converged to a local optimum"
    if found.gap is not None:
        return f"{found.n_converged} of {found.n_fits} winners ({of}) are proved to be within tol of the optimum"
    return f"{found.n_converged} of {found.n_fits} winners ({of}) converged"


def other_start_sentence(found: Mapping[str, float]) -> str:
    """Say what a fit of the final model from another start found, see `raysel.cv.convergence.other_start`."""
    n, shared, excess = int(found["n"]), int(found["shared"]), found["excess"]
    end = (
        f"{abs(excess):.1%} {'above' if excess > 0 else 'below'} the model's" if abs(excess) >= 5e-4 else "the model's"
    )
    return (
        f"The final model is a local optimum: from another start the objective ends at {end}, and {shared} of the "
        f"{n} best features are the same (a second fit of {found['n_iter']} iterations)."
    )
