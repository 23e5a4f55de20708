"""MTDA's scatter matrices where some samples have no label.

    S_b from the labelled samples,   T = S_t(labelled) + eta S_t(all) + mu X' L X / n^2

with L the Laplacian of a nearest-neighbour graph over all samples. S_b <= S_t(labelled) keeps the ratio in [0, 1],
which S_t(all) in its place would not. Zhang & Yeung (AAAI 2011) name the extension; the denominator is ours.
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
    """One task in the range of the total scatter of all its samples.

    Attributes
    ----------
    reduced : ScatterRange
        Its ``total`` is that of all samples, its ``between`` that of the labelled ones.
    labelled : ndarray of shape (r, r)
        S_t(labelled).
    samples : ndarray of shape (n, r)
        All of them, centred.
    """

    reduced: ScatterRange
    labelled: FloatArray
    samples: FloatArray

    def denominator(self, eta: float, mu: float, n_neighbors: int) -> tuple[FloatArray, FloatArray]:
        """The eigenvalues of T, descending, shape (r,), and its eigenvectors, shape (r, r).

        Parameters
        ----------
        eta, mu : float
        n_neighbors : int
            Of the graph; at most all other samples.
        """
        T = self.labelled.copy()
        if mu:
            n = len(self.samples)
            near = kneighbors_graph(self.samples, min(n_neighbors, n - 1))
            smoothed = np.asarray(laplacian((near + near.T) / 2) @ self.samples, dtype=np.float64)
            T += mu * self.samples.T @ smoothed / n**2
        T.flat[:: len(T) + 1] += eta * self.reduced.total
        # T = S M S with S^2 = diag(total) and M >= eta I: M keeps the digits of directions of small scatter, and
        # the singular values of M^1/2 S are found to rounding level where the eigenvalues of T are lost.
        scale = np.sqrt(self.reduced.total)
        values, vectors = scipy.linalg.eigh(T / np.outer(scale, scale), driver="evd", check_finite=False)
        root = np.sqrt(np.maximum(values, eta))[:, None] * vectors.T * scale
        _, singular, turn = scipy.linalg.svd(root, check_finite=False, overwrite_a=True)
        return singular**2, np.ascontiguousarray(turn.T)


def partly_labelled(task: TaskSamples) -> PartlyLabelled:
    """Reduce a task with unlabelled samples, those of code -1.

    Parameters
    ----------
    task : TaskSamples

    Returns
    -------
    PartlyLabelled

    Raises
    ------
    DataError
        If no feature varies.
    """
    everyone = np.zeros(len(task.y), dtype=np.int64)
    reduced = scatter_range(task.X, everyone, 1)
    if reduced.rank == 0:
        raise DataError(f"{task}: no feature varies; there is nothing to project on.")
    warn_of_lost_directions(str(task), reduced.rank, reduced.varying)
    Z = reduced.embed(task.X - reduced.mean, np.eye(reduced.rank))
    known = task.codes >= 0
    own = Z[known] - Z[known].mean(axis=0)
    membership = task.one_hot / np.sqrt(task.counts * len(own))
    return PartlyLabelled(
        replace(reduced, between=own.T @ membership, class_counts=task.counts),
        own.T @ own / len(own),
        Z,
    )
