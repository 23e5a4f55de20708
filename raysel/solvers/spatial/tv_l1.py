"""TV-l1: sparse weights that are constant over regions of neighbouring cells."""

from __future__ import annotations

from raysel.solvers.spatial.neighbour_model import NeighbourClassifier, NeighbourRegressor
from raysel.solvers.spatial.penalties import DifferencePenalty, TotalVariation


def _total_variation(weight: float, scale: float) -> DifferencePenalty:
    return TotalVariation(weight / scale)


class TVL1(NeighbourClassifier):
    """TV-l1: ranks cells of arrays by sparse weights constant over regions, and classifies.

        min_W,b  sum_r [ mean_i log(1 + exp(-y_ir (x_i'w_r + b_r)))
                         + alpha (l1_ratio ||w_r||_1 + (1 - l1_ratio) sum_j ||(D w_r)_j||) ]

    with y_ir = 1 where sample i is of class r and -1 elsewhere, one problem for each class or label
    against the rest, and one for two classes [1]_ [2]_. (D w)_j has the differences between cell j
    and the next one along each axis: isotropic total variation, of which a mirrored image can have
    another value. Along one axis it is the fused lasso [3]_. Cells that are constant in the
    training set, cells outside a mask, the relation to nilearn's SpaceNet and the solver are as in
    `GraphNet`.

    Parameters
    ----------
    shape, alpha, l1_ratio : default as in `GraphNet`
        See `GraphNet`.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": that of `GraphNet`, from which on the solution is zero; it can be zero
        below. "absolute": alpha is used as given.
    max_iter, tol, n_features_to_select, mask : default as in `GraphNet`
        See `GraphNet`.

    Attributes
    ----------
    coef_, intercept_, classes_, class_count_, multilabel_
        See `GraphNet`.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each cell's weights over the classes; many are 0, and neighbours nearly
        equal.
    ranking_, objective_path_, n_iter_, converged_, dual_gap_
        See `GraphNet`.

    References
    ----------
    .. [1] Michel, Gramfort, Varoquaux, Eger, Thirion, "Total variation regularization for
       fMRI-based prediction of behavior", IEEE Transactions on Medical Imaging 30(7), 2011.
    .. [2] Baldassarre, Mourao-Miranda, Pontil, "Structured sparsity models for brain decoding from
       fMRI data", International Workshop on Pattern Recognition in NeuroImaging, 2012.
    .. [3] Tibshirani, Saunders, Rosset, Zhu, Knight, "Sparsity and smoothness via the fused lasso",
       Journal of the Royal Statistical Society B 67(1), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(size=(40, 12, 12))
    >>> X[:, 3:8, 4:9] += y[:, None, None]
    >>> flat = X.reshape(40, -1)
    >>> models = [TVL1((12, 12), l1_ratio=share).fit(flat, y) for share in (1, 0.5)]
    >>> best = [(model.ranking_ <= 25).reshape(12, 12) for model in models]
    >>> [int(cells[3:8, 4:9].sum()) for cells in best]  # of 25 cells that tell
    [13, 25]
    """

    _penalty = staticmethod(_total_variation)


class TVL1Regressor(NeighbourRegressor):
    """TV-l1 for quantities: ranks cells of arrays by sparse weights constant over regions.

        min_W,b  sum_r [ mean_i (y_ir - x_i'w_r - b_r)^2 / 2
                         + alpha (l1_ratio ||w_r||_1 + (1 - l1_ratio) sum_j ||(D w_r)_j||) ]

    with each standardised quantity y_r; all else as in `TVL1`.

    Parameters
    ----------
    shape, alpha, l1_ratio, alpha_scale : default as in `TVL1`
        See `TVL1`, and `GraphNetRegressor` for the unit of alpha.
    max_iter, tol, n_features_to_select, mask : default as in `GraphNet`
        See `GraphNet`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each cell's weights over the standardised quantities.
    ranking_, objective_path_, n_iter_, converged_, dual_gap_
        See `GraphNet`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 30)), rng.normal(size=40)
    >>> X[:, 10:15] += 0.5 * y[:, None]
    >>> model = TVL1Regressor(l1_ratio=0.1).fit(X, y)
    >>> np.sort(model.scores_.argsort()[-5:])
    array([10, 11, 12, 13, 14])
    """

    _penalty = staticmethod(_total_variation)
