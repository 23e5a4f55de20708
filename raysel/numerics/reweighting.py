"""The smoothed l2,p penalty on blocks of coefficients, and iterations that touch it.

The penalty ``sum_b (s_b + zeta)^(p/2)``, with ``s_b`` a block's energy (sum of squares), is concave
in ``s`` for ``0 < p <= 2``; its tangent at the present ``s`` is a ridge penalty with the weights
``(p/2) (s_b + zeta)^(p/2 - 1)``. Minimising the loss plus this tangent never raises the objective
(Nie et al., *Efficient and robust feature selection via joint l2,1-norms minimization*, NIPS 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from raysel.core.arrays import FloatArray
from raysel.numerics.optimality import relative_gap

#: Ridge of the small least-squares problem, relative to the trace of its matrix.
_RIDGE = 1e-10
#: An extrapolated point is kept unless it enlarges the residual by more than this.
_GROWTH = 2.0
#: Number of values from which on the weighted samples of a ridge regression are not held at once,
#: and of a block then.
_LARGE, _BLOCK = 2**22, 2**19


class AndersonAccelerator:
    """Anderson acceleration of a fixed-point iteration x -> x + f(x) on vectors, safeguarded.

    From the last `memory` steps the next point is extrapolated: the affine combination whose
    residual f is smallest in the least squares sense (type II: Walker & Ni, SIAM J. Numer. Anal.
    49, 2011). An extrapolation that enlarges the residual is undone (as in SCS: Zhang, O'Donoghue &
    Boyd, SIAM J. Optim. 30, 2020), so an averaged iteration still converges.
    """

    def __init__(self, size: int, memory: int = 10) -> None:
        self._residual_changes = np.empty((memory, size))
        self._image_changes = np.empty((memory, size))
        self._products = np.empty((memory, memory))
        self._memory = memory
        self.restart()

    def restart(self) -> None:
        """Forget all steps; needed where the function that is iterated has changed."""
        self._count = 0
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._fallback: tuple[float, FloatArray] | None = None

    def next(self, point: FloatArray, residual: FloatArray) -> FloatArray:
        """Return the next point: extrapolated, plain, or the plain one after a failure.

        `point` and `residual` are (size,); returns (size,).
        """
        norm = float(np.sqrt(residual @ residual))
        if self._fallback is not None and norm > _GROWTH * self._fallback[0]:
            plain = self._fallback[1]
            self.restart()
            return plain
        image = point + residual
        known = self._remember(residual, image)
        self._last = (residual, image)
        if known < 2:
            self._fallback = None
            return image
        products = self._products[:known, :known].copy()
        products.flat[:: known + 1] += _RIDGE * products.trace() + np.finfo(float).tiny
        mixture = np.linalg.solve(products, self._residual_changes[:known] @ residual)
        self._fallback = (norm, image)
        return image - mixture @ self._image_changes[:known]

    def _remember(self, residual: FloatArray, image: FloatArray) -> int:
        """Store the change since the last step and return the number of changes stored."""
        if self._last is not None:
            slot = self._count % self._memory
            np.subtract(residual, self._last[0], out=self._residual_changes[slot])
            np.subtract(image, self._last[1], out=self._image_changes[slot])
            self._count += 1
            known = min(self._count, self._memory)
            products = self._residual_changes[:known] @ self._residual_changes[slot]
            self._products[slot, :known] = self._products[:known, slot] = products
        return min(self._count, self._memory)


# Power of the factor by which over-relaxation changes the norms.
_RELAXATION = 0.9
# No norm is below this, so that what it is divided by is known of every block.
_LEAST_NORM = 1e-150


class Penalty(NamedTuple):
    """Parameters of the smoothed l2,p penalty ``alpha sum_b (s_b + zeta)^(p/2)``."""

    alpha: float
    p: float
    zeta: float


def l2p_penalty(energy: FloatArray, p: float, zeta: float) -> float:
    """Smoothed penalty ``sum_b (energy_b + zeta)^(p/2)``."""
    return float(((energy + zeta) ** (p / 2)).sum())


def l2p_weights(energy: FloatArray, p: float, zeta: float) -> FloatArray:
    """Weights ``(p/2) (energy + zeta)^(p/2 - 1)`` of the ridge penalty that is tangent to it."""
    return (p / 2) * (energy + zeta) ** (p / 2 - 1)


def weighted_ridge(X: FloatArray, Y: FloatArray, weights: FloatArray, alpha: float) -> FloatArray:
    """Solve ``argmin_W ||W X - Y||^2 + alpha sum_f weights_f ||W[:, f]||^2``.

    Solved in the dual, one n_samples x n_samples system for all targets, so the weights may span
    many orders of magnitude: they enter inverted, and the coefficients of a feature with a huge
    weight become 0.

    `X` is (n_features, n_samples), `Y` (n_targets, n_samples), `weights` (n_features,); returns `W`
    (n_targets, n_features).
    """
    return weighted_ridge_with_dual(X, Y, weights, alpha)[0]


def weighted_ridge_with_dual(
    X: FloatArray, Y: FloatArray, weights: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Weighted ridge regression like `weighted_ridge`, with the residuals at no further cost.

    Returns `W` (n_targets, n_features), `dual` (n_samples, n_targets).
    """
    scale = 1.0 / np.sqrt(weights)
    width = len(X) if X.size <= _LARGE else max(1, _BLOCK // X.shape[1])
    first = X[:width] * scale[:width, None]
    kernel = first.T @ first
    for block in _blocks(width, len(X)):
        scaled = X[block] * scale[block, None]
        # The triangle that is read below.
        blas.dsyrk(1.0, scaled.T, beta=1.0, c=kernel.T, lower=1, overwrite_c=1)
    kernel.flat[:: len(kernel) + 1] += alpha
    _, dual, info = lapack.dposv(kernel.T, Y.T, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(
            "The penalty's weights span more than double precision: raise zeta, p or alpha."
        )
    W = np.empty((len(Y), len(X)))
    W[:, :width] = (dual.T @ first.T) * scale[:width]
    for block in _blocks(width, len(X)):
        W[:, block] = (dual.T @ (X[block] * scale[block, None]).T) * scale[block]
    return W, dual


def _blocks(width: int, n_features: int) -> Iterator[slice]:
    """Yield the blocks of features after the first, whose copies are held one at a time."""
    yield from (slice(start, start + width) for start in range(width, n_features, width))


class BoundedStep(NamedTuple):
    """Coefficients after an iteration, with a lower bound of the optimum."""

    W: FloatArray
    #: The norms in the objective that quadratic functions replace; shape (n_norms,).
    norms: FloatArray
    J: float
    lower: float
    b: FloatArray = np.zeros(0)

    @property
    def gap(self) -> float:
        """Upper bound of how far J is above the optimum, relative to it."""
        return relative_gap(self.J, self.lower)


def reweighted_steps(
    minimise: Callable[[FloatArray], BoundedStep], norms: FloatArray
) -> Iterator[BoundedStep]:
    """Minimise a convex sum of norms by quadratic functions that touch them, from ``norms`` on.

    The roots of the norms are over-relaxed and extrapolated (Anderson), which reaches a gap of 1e-4
    in a tenth of the iterations. Where J would rise the quadratic functions touch at the present
    norms, from which it cannot.

    `norms` is (n_norms,).
    """
    accelerator = AndersonAccelerator(len(norms))
    step = minimise(norms)
    while True:
        yield step
        relaxed = np.sqrt(step.norms * (step.norms / norms) ** _RELAXATION)
        root = np.sqrt(norms)
        trial = np.clip(accelerator.next(root, relaxed - root), 0.1 * relaxed, 3.0 * relaxed) ** 2
        following = minimise(np.maximum(trial, _LEAST_NORM))
        if not following.J <= step.J:
            accelerator.restart()
            trial = step.norms
            following = minimise(np.maximum(trial, _LEAST_NORM))
        norms = np.maximum(trial, _LEAST_NORM)
        step = following._replace(lower=max(step.lower, following.lower))
