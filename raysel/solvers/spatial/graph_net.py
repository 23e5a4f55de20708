"""Graph net: sparse weights with small squared differences between neighbouring cells."""

from __future__ import annotations

from raysel.solvers.spatial.neighbour_model import NeighbourClassifier, NeighbourRegressor
from raysel.solvers.spatial.penalties import DifferencePenalty, SquaredDifferences


def _squared_differences(weight: float, scale: float) -> DifferencePenalty:
    return SquaredDifferences(weight / scale**2)


class GraphNet(NeighbourClassifier):
    """Graph net: ranks cells of arrays by sparse smooth weights, and classifies.

        min_W,b  sum_r [ mean_i log(1 + exp(-y_ir (x_i'w_r + b_r)))
                         + alpha (l1_ratio ||w_r||_1 + (1 - l1_ratio) / 2 ||D w_r||^2) ]

    with y_ir = 1 where sample i is of class r and -1 elsewhere, one problem for each class or label
    against the rest, and one for two classes [1]_. D w has the difference between each cell and
    the next one along each axis. Cells that are constant in the training set have weight 0 and, as
    cells outside a mask, no neighbours. nilearn's SpaceNet sums the loss over the samples: its
    alpha is n_samples times this one, and it counts differences to the cells outside a mask, whose
    weight is 0.

    The problem is convex and solved by splitting (ADMM; see `raysel.solvers.spatial.splitting`),
    until a dual point proves the objective to be close to the optimum.

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples whose cells, in C order, are the columns of X. None or one side: the
        columns lie in a row, as wavelengths or times do.
    alpha : float, default=0.1
        Strength of both penalties, above 0; see ``alpha_scale``.
    l1_ratio : float, default=0.5
        Share of the l1 penalty, above 0 and at most 1; with 1 neighbours do not matter.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, the smallest alpha of which the
        solution is zero, ``max_jr |sum_i x_ij (p_r - t_ir)| / (n_samples l1_ratio)`` with the share
        p_r of class r and t_ir = 1 for its samples, 0 for others. "absolute": alpha is used as
        given.
    max_iter : int, default=500
        Maximum number of iterations, of ten steps each.
    tol : float, default=1e-4
        Stop when the objective is proved, by a dual point, to be at most this share above the
        optimum.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    mask : array of bool, default=None
        The cells of a volume or another array that are the columns of X, in C order, in place of
        ``shape``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Weights w_r; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts b_r; one entry for two classes.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each cell's weights over the classes; many are 0.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best.
    objective_path_ : ndarray of shape (n_iter_,)
        Lowest objective so far, after each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the objective is proved to be within ``tol`` of the optimum.
    dual_gap_ : float
        Upper bound of how far the objective is above the optimum, relative to it.

    Raises
    ------
    ConfigError
        From ``fit``: a parameter out of range, or a shape or mask that does not have the number of
        features.

    References
    ----------
    .. [1] Grosenick, Klingenberg, Katovich, Knutson, Taylor, "Interpretable whole-brain prediction
       analysis with GraphNet", NeuroImage 72, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(size=(40, 12, 12))
    >>> X[:, 3:8, 4:9] += y[:, None, None]
    >>> flat = X.reshape(40, -1)
    >>> nets = [GraphNet((12, 12), l1_ratio=share).fit(flat, y) for share in (1, 0.2)]
    >>> best = [(net.ranking_ <= 25).reshape(12, 12) for net in nets]
    >>> [int(cells[3:8, 4:9].sum()) for cells in best]  # of 25 cells that tell
    [13, 25]
    """

    _penalty = staticmethod(_squared_differences)


class GraphNetRegressor(NeighbourRegressor):
    """Graph net for quantities: ranks cells of arrays by sparse smooth weights, and predicts.

        min_W,b  sum_r [ mean_i (y_ir - x_i'w_r - b_r)^2 / 2
                         + alpha (l1_ratio ||w_r||_1 + (1 - l1_ratio) / 2 ||D w_r||^2) ]

    with each standardised quantity y_r; all else as in `GraphNet`.

    Parameters
    ----------
    shape, alpha, l1_ratio : default as in `GraphNet`
        See `GraphNet`.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, the smallest alpha of which the
        solution is zero, ``max_jr |sum_i x_ij y_ir| / (n_samples l1_ratio)`` for the centred
        features. "absolute": alpha is used as given, for the standardised quantities.
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
    >>> net = GraphNetRegressor(l1_ratio=0.1).fit(X, y)
    >>> np.sort(net.scores_.argsort()[-5:])
    array([10, 11, 12, 13, 14])
    """

    _penalty = staticmethod(_squared_differences)
