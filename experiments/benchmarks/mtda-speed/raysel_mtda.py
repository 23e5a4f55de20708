"""raysel.solvers.mtda.mtda.MTDA, fit included in full: scatter, projections, embeddings and
feature scores.
"""

from __future__ import annotations

from raysel.solvers.mtda.mtda import MTDA


def run(tasks, size, _iterations):
    """To convergence (a relative change of 1e-12)."""
    return MTDA(n_components=size).fit_tasks(tasks).objective_path_[-1]
