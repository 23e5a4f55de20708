"""Anderson acceleration of a fixed-point iteration, safeguarded.

From the last m steps x -> x + f(x) the next point is extrapolated: the affine combination whose residual f is smallest
in the least squares sense (type II: Walker & Ni, SIAM J. Numer. Anal. 49, 2011). An extrapolation that enlarges the
residual is undone (as in SCS: Zhang, O'Donoghue & Boyd, SIAM J. Optim. 30, 2020), so an averaged iteration still
converges.
"""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray

#: Ridge of the small least-squares problem, relative to the trace of its matrix.
_RIDGE = 1e-10
#: An extrapolated point is kept unless it enlarges the residual by more than this.
_GROWTH = 2.0


class AndersonAccelerator:
    """Extrapolates a fixed-point iteration on vectors."""

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
        """Next point of the iteration: extrapolated, plain, or the plain one that replaces a failed extrapolation.

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
