"""Scatter matrices of MTDA with unlabelled samples.

    S_b from the labelled samples,   T = S_t(labelled) + eta S_t(all) + mu X' L X / n^2

with L the Laplacian of a nearest-neighbour graph over all samples. The term S_t(labelled) keeps the ratio in [0, 1],
because S_b <= S_t(labelled). The extension is mentioned by Zhang & Yeung (AAAI 2011); this denominator is raysel's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import kneighbors_graph

from raysel.arrays import FloatArray
from raysel.base.projections.components import warn_of_lost_directions
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import DataError
from raysel.linalg.scatter import ScatterRange, scatter_range


@dataclass(frozen=True)
class PartlyLabelled:
    """One task in the range of the total scatter of all its samples, of dimension r."""

    reduced: ScatterRange
    #: Total scatter of the labelled samples, S_t(labelled); shape (r, r).
    labelled: FloatArray
    #: All samples, centred; shape (n, r).
    samples: FloatArray

    def denominator(self, eta: float, mu: float, n_neighbors: int) -> tuple[FloatArray, FloatArray]:
        """Compute the eigendecomposition of T. Returns `values` (r,), `vectors` (r, r)."""
        T = self.labelled.copy()
        if mu:
            n = len(self.samples)
            neighbours = kneighbors_graph(self.samples, min(n_neighbors, n - 1))
            smoothed = np.asarray(laplacian((neighbours + neighbours.T) / 2) @ self.samples, dtype=np.float64)
            T += mu * self.samples.T @ smoothed / n**2
        T.flat[:: len(T) + 1] += eta * self.reduced.total
        # T = S M S with S^2 = diag(total) and M >= eta I. The singular values of M^1/2 S are accurate to rounding for
        # directions of small scatter too, whereas rounding loses small eigenvalues of T.
        scale = np.sqrt(self.reduced.total)
        values, vectors = scipy.linalg.eigh(T / np.outer(scale, scale), driver="evd", check_finite=False)
        root = np.sqrt(np.maximum(values, eta))[:, None] * vectors.T * scale
        _, singular, turn = scipy.linalg.svd(root, check_finite=False, overwrite_a=True)
        return singular**2, np.ascontiguousarray(turn.T)


def partly_labelled(task: TaskSamples) -> PartlyLabelled:
    """Compute the scatter matrices of a task with unlabelled samples, whose code is -1."""
    one_class = np.zeros(len(task.y), dtype=np.int64)
    reduced = scatter_range(task.X, one_class, 1)
    if reduced.rank == 0:
        raise DataError(f"{task}: all features are constant; give at least one feature that varies.")
    warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
    Z = reduced.embed(task.X - reduced.mean, np.eye(reduced.rank))
    labelled = task.codes >= 0
    centred = Z[labelled] - Z[labelled].mean(axis=0)
    membership = task.one_hot / np.sqrt(task.counts * len(centred))
    return PartlyLabelled(
        replace(reduced, between=centred.T @ membership, class_counts=task.counts),
        centred.T @ centred / len(centred),
        Z,
    )
