r"""Tests of columns given all others, by what models tell of held-out samples with them.

A model `f` of the training samples predicts each held-out sample with its own value of the tested
columns, and with B redrawn ones: a ridge regression of the other columns, fitted to the training
samples, plus the residuals of held-out samples in a random order. With the mean :math:`\bar f` and
the variance :math:`s^2` of the predictions of redrawn values,

.. math:: h = f - \bar f, \quad r = y - \bar f, \quad v = h r - s^2 / B

and v has the mean 0 if the columns tell nothing of `y` beside the others and are redrawn as they
vary. It is half the increase of the squared error, the conditional importance of Chamma, Engemann
& Thirion (2023, NeurIPS 36), less what the draws alone decide. What a ridge regression of the other
columns still tells of h and of r, over all held-out samples, is taken from both. So an error is
left only where both are wrong, as in the projected covariance measure (Lundborg, Kim, Shah &
Samworth 2024, Annals of Statistics 52(6), 2851-2878).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from sklearn.linear_model import RidgeCV

from raysel.core.arrays import FloatArray, IntArray

#: Draws of a group of columns for each held-out sample.
N_DRAWS = 20
#: Orders of the held-out values by which a model shows that it uses the columns.
_N_LOOKS = 3
#: Penalties that a ridge regression chooses among by leaving single samples out, for each sample.
_PENALTIES = np.geomspace(0.005, 20, 8)
#: Cells of redrawn samples that a model predicts at once.
_MOST_CELLS = 2**23

Predict = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Redrawn:
    """Predictions of held-out samples against those with redrawn columns."""

    #: Prediction less the mean over the draws; shape (n, k).
    effect: FloatArray
    #: Label less that mean; shape (n, k).
    left: FloatArray
    #: Mean of the products of both that the draws alone give; shape (n,).
    noise: FloatArray
    #: Squared error with redrawn columns, mean over the draws; shape (n,).
    loss: FloatArray


def redraw_columns(
    X_train: FloatArray, X: FloatArray, columns: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Draw values of some columns of held-out samples given all other columns.

    `X_train` is (m, d), `X` (n, d); returns (N_DRAWS, n, n_columns).
    """
    expected = np.broadcast_to(X_train[:, columns].mean(axis=0), (len(X), len(columns)))
    if len(columns) < X.shape[1]:
        others_train, others = (np.delete(rows, columns, axis=1) for rows in (X_train, X))
        ridge = _ridge(len(X_train)).fit(others_train, X_train[:, columns])
        expected = ridge.predict(others).reshape(len(X), len(columns))
    left = X[:, columns] - expected
    orders = rng.permuted(np.tile(np.arange(len(X)), (N_DRAWS, 1)), axis=1)
    drawn: FloatArray = expected + left[orders]
    return drawn


def compare_redrawn(
    predict: Predict, y: FloatArray, X: FloatArray, columns: IntArray, drawn: FloatArray
) -> Redrawn:
    """Compare a model's predictions of held-out samples with those of redrawn columns.

    `predict` takes (n, d) and returns (n, k); `y` is (n, k), `X` (n, d), `drawn` (n_draws, n,
    n_columns).
    """
    others = np.stack(_predictions(predict, X, columns, drawn))
    mean, variance = others.mean(axis=0), others.var(axis=0, ddof=1)
    return Redrawn(
        effect=predict(X) - mean,
        left=y - mean,
        noise=variance.sum(axis=1) / len(drawn),
        loss=((y - others) ** 2).sum(axis=2).mean(axis=0),
    )


def products_beside(
    others: FloatArray, effect: FloatArray, left: FloatArray, noise: FloatArray
) -> FloatArray:
    """Return the products whose mean is above 0 if the columns tell; shape (n,).

    `others` (n, d) are the other columns of all held-out samples, `effect` and `left` (n, k) and
    `noise` (n,) as of `Redrawn`.
    """
    k = effect.shape[1]
    both = np.concatenate([effect, left], axis=1)
    if others.shape[1]:
        both = both - _ridge(len(both)).fit(others, both).predict(others)
    products: FloatArray = (both[:, :k] * both[:, k:]).sum(axis=1) - noise
    return products


def uses_columns(predict: Predict, X: FloatArray, columns: IntArray) -> bool:
    """Return whether predictions change where samples exchange their values of some columns."""
    own, rows = predict(X), np.arange(len(X))
    moved = np.stack([X[np.roll(rows, step)][:, columns] for step in range(1, _N_LOOKS + 1)])
    return any(np.any(found != own) for found in _predictions(predict, X, columns, moved))


def mean_is_positive(sums: FloatArray) -> float:
    """Return the p value of the one-sided t test that independent sums have the mean 0."""
    if not np.ptp(sums):
        return 1.0
    return float(stats.ttest_1samp(sums, 0.0, alternative="greater").pvalue)


def _ridge(n: int) -> RidgeCV:
    """Return a ridge regression of n samples, whose penalties leaving one sample out chooses."""
    return RidgeCV(alphas=_PENALTIES * n, alpha_per_target=True)


def _predictions(
    predict: Predict, X: FloatArray, columns: IntArray, values: FloatArray
) -> list[FloatArray]:
    """Predict the samples with other values of some columns, several sets of them at once."""
    at_once = max(1, _MOST_CELLS // X.size)
    found: list[FloatArray] = []
    for start in range(0, len(values), at_once):
        part = values[start : start + at_once]
        changed = np.repeat(X[None], len(part), axis=0)
        changed[:, :, columns] = part
        predicted = predict(changed.reshape(-1, X.shape[1]))
        found += [*predicted.reshape(len(part), len(X), -1)]
    return found
