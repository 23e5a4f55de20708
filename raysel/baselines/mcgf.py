"""MCGF: multi-label correlated Green's function on the graph of all samples (reconstructed)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from raysel.base.classifiers import OneAgainstRestClassifier, SignedTarget, signed_target
from raysel.base.estimator import COUNT, NOT_NEGATIVE, POSITIVE, Capabilities, OneShotEstimator
from raysel.baselines.recent import RecentResults
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError

#: Largest number of samples: the dense matrices grow with its square, the time with its cube.
MOST_SAMPLES = 6000

#: Rounding error of a squared distance, as a share of the squared norms of its two samples.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


class GraphSpectrum(NamedTuple):
    """Eigenvalues and eigenvectors of a graph's Laplacian D - W."""

    #: Eigenvalues, ascending; the smallest is 0; shape (n,).
    values: FloatArray
    #: Eigenvectors, one a column; shape (n, n).
    vectors: FloatArray


#: Latest spectra, which configurations on one fold share; one of the largest graph fits.
_recent: RecentResults[GraphSpectrum] = RecentResults(MOST_SAMPLES * (MOST_SAMPLES + 1))


def graph_spectrum(X: FloatArray, n_neighbors: int) -> GraphSpectrum:
    """Decompose the Laplacian of the nearest-neighbour graph of some samples.

    Samples a and b are joined if one is among the ``n_neighbors`` nearest others of the other, with
    the weight exp(-||x_a - x_b||^2 / g); g is the mean of the squared distances of all pairs of
    different samples. All samples at the distance of the last neighbour count as neighbours, so
    that the order of the samples does not matter.

    `X` is (n, d).
    """

    def decompose() -> GraphSpectrum:
        # Transposed, i.e. in LAPACK's order, the matrix is overwritten and not copied.
        L = laplacian(X, n_neighbors).T
        return GraphSpectrum(*scipy.linalg.eigh(L, overwrite_a=True, check_finite=False))

    return _recent.get(f"{n_neighbors}", (X,), decompose)


def laplacian(X: FloatArray, n_neighbors: int) -> FloatArray:
    """Laplacian D - W of the nearest-neighbour graph of `graph_spectrum`.

    `X` is (n, d); returns (n, n).
    """
    n = len(X)
    centred = X - X.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squared = centred @ centred.T
    squared *= -2.0
    squared += norms[:, None]
    squared += norms
    np.maximum(squared, 0.0, out=squared)
    squared[np.diag_indices(n)] = np.inf
    # The sum over all pairs is n times that of the squared distances to the mean.
    width = 2.0 * float(norms.sum()) / (n - 1) or 1.0
    k = min(n_neighbors, n - 1)
    joined = np.empty((n, n), dtype=bool)
    for row, norm, near in zip(squared, norms, joined, strict=True):
        # Distances that differ by less than their rounding errors count as equal.
        np.less_equal(row, np.partition(row, k - 1)[k - 1] + ROUNDING * (norm + norms), out=near)
    joined |= joined.T
    joined[np.diag_indices(n)] = False
    squared /= -width
    W = np.exp(squared, out=squared)
    W[~joined] = 0.0
    np.negative(W, out=W)
    W[np.diag_indices(n)] = -W.sum(axis=1)
    return W


#: Rows of eigenvectors that are squared at a time.
_BLOCK = 512


class MCGF(OneShotEstimator, OneAgainstRestClassifier):
    """Multi-label correlated Green's function: labels spread over a graph of all samples.

        min_F  beta ||F - Y||^2  +  tr(F' L F)  -  alpha tr(F C F')

    where L is the Laplacian of the graph, Y holds 1 for the labels of the training samples and 0
    elsewhere, and C the cosines between the columns of Y. With L = U diag(lam) U' and C = V
    diag(sg) V' the solution is

        F = U [beta (U'YV)_ij / (beta + lam_i - alpha sg_j)] V'

    Reconstructed, the authors' code was not found: the published equations are given by this
    objective, and the graph and the boundary below are choices. The graph joins each sample to its
    nearest neighbours, with weights exp(-||x_a - x_b||^2 / g) and g the mean squared distance. A
    label is predicted where F exceeds the label's boundary, the quantile of the training samples'
    scores above which lies the share of samples that have the label in the training set; of each
    training score the contribution of the sample's own labels is subtracted. With one label a
    sample Y is one-hot, and the class of largest F is predicted, without boundaries.

    The method is transductive: ``predict`` builds the graph of the training samples and all given
    ones, whose features (never labels) influence each other's predictions. Its time grows with the
    cube of the number of samples, its memory with the square: for 6000 samples, which is the most,
    about 0.6 GB. The latest decompositions, up to 0.3 GB, are kept and shared by configurations.
    Several modalities are concatenated.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of the given labels, as a multiple of the median eigenvalue of L; above 0.
    alpha : float, default=0.5
        Weight of the correlations of labels, as a fraction of beta / max_j sg_j; at least 0 and
        below 1, where the objective is no longer convex.
    n_neighbors : int, default=10
        Number of neighbours in the graph.

    Attributes
    ----------
    samples_ : ndarray of shape (n_samples, n_features)
        Training samples.
    labelled_ : ndarray of bool, shape (n_samples, n_classes)
        Whether each training sample has each class or label.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    objective_path_ : ndarray of shape (1,)
        0, because the objective is minimised by ``predict``.

    References
    ----------
    Wang, Huang & Ding, "Image annotation using multi-label correlated Green's function", ICCV 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=0)
    >>> model = MCGF().fit(X[:150], Y[:150])
    >>> bool((model.predict(X[150:]) == Y[150:]).mean() > 0.7)
    True
    """

    capabilities: ClassVar[Capabilities] = replace(
        OneAgainstRestClassifier.capabilities, transductive=True, reconstructed=True
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "beta": [POSITIVE],
        "alpha": [NOT_NEGATIVE],
        "n_neighbors": [COUNT],
    }

    samples_: FloatArray

    simpler_first = ("alpha", "beta", "-n_neighbors")

    def __init__(self, beta: float = 1.0, alpha: float = 0.5, n_neighbors: int = 10) -> None:
        self.beta = beta
        self.alpha = alpha
        self.n_neighbors = n_neighbors

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid, and the objective convex.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or ``alpha`` is 1 or larger.
        """
        super().check(n_features)
        if self.alpha >= 1:
            raise ConfigError(
                f"alpha={self.alpha:g} makes the objective of MCGF not convex: give at least 0 and"
                " below 1. It is a fraction of beta divided by the largest eigenvalue of the label"
                " correlations."
            )

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that the graph is not too large.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels of the training set; a study also gives those of a training set and its test set
            together, because ``predict`` makes one graph of both.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; not used.

        Raises
        ------
        ConfigError
            If there are more than 6000 samples.
        """
        _check_size(len(y), f"{len(y)} samples")

    def prepare(self, X: FloatArray, y: LabelArray) -> SignedTarget:
        """Encode the labels."""
        return signed_target(y)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: SignedTarget) -> Iterator[float]:
        self.check_training(y)
        self._keep_target(prepared)
        labelled = prepared.signs.T > 0
        if labelled.shape[1] == 1:
            labelled = np.hstack([~labelled, labelled])
        self.samples_, self.labelled_ = X, np.ascontiguousarray(labelled)
        yield 0.0

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes or labels, which depend on all given samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            For a multi-label target F minus the boundary of each label; a label that all or no
            training sample has gets 1 or -1. Otherwise F of each class, for two classes that of the
            second one minus that of the first.

        Raises
        ------
        ConfigError
            If there are more than 6000 training and given samples.
        """
        features = self._checked(X)
        n = len(self.samples_)
        total = n + len(features)
        _check_size(total, f"{n} training samples and {len(features)} samples to predict")
        spectrum = graph_spectrum(np.concatenate([self.samples_, features]), self.n_neighbors)
        scores, contributions = correlated_scores(
            spectrum, self.labelled_.astype(np.float64), self.beta, self.alpha
        )
        values = scores[n:]
        if not self.multilabel_:
            if len(self.classes_) > 2:
                return values
            return values[:, 1] - values[:, 0]
        shares = self.labelled_.mean(axis=0)
        for label, share in enumerate(shares):
            if share in {0.0, 1.0}:
                values[:, label] = 2 * share - 1
            else:
                values[:, label] -= np.quantile(
                    scores[:n, label] - contributions[:, label], 1 - share
                )
        return values


def correlated_scores(
    spectrum: GraphSpectrum, labelled: FloatArray, beta: float, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Minimise the objective of `MCGF`. `labelled` is (n, c); returns `F` (N, c), `own` (n, c)."""
    lam, U = np.maximum(spectrum.values, 0.0), spectrum.vectors
    n = len(labelled)
    norms = np.linalg.norm(labelled, axis=0)
    cosines = labelled / np.where(norms > 0, norms, 1.0)
    sg, V = scipy.linalg.eigh(cosines.T @ cosines, check_finite=False)
    # The median is 0 only if the graph falls into many parts; the mean is positive.
    weight = beta * float(np.median(lam) if np.median(lam) > 1e-12 * lam[-1] else lam.mean())
    # sg[-1] is 0 if no training sample has a label.
    response = weight / (weight + lam[:, None] - alpha * weight * sg / (sg[-1] or 1.0))
    rotated = labelled @ V
    F = U @ (response * (U[:n].T @ rotated)) @ V.T
    contributions = np.empty_like(labelled)
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        contributions[rows] = ((U[rows] ** 2 @ response) * rotated[rows]) @ V.T
    return F, contributions


def _check_size(n: int, what: str) -> None:
    if n > MOST_SAMPLES:
        raise ConfigError(
            f"{what} are too many for MCGF: use at most {MOST_SAMPLES} in total. Its graph of all"
            f" of them would take {17e-9 * n**2:.1f} GB, and a time that grows with the cube of"
            " their number."
        )
