"""SMR of order 2 on samples of any order: the cells of a sample as a matrix whose rows run along
one axis.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from raysel import SMR
from raysel.base.estimator import COUNT, Capabilities
from raysel.core.arrays import FloatArray, IntArray, LabelArray


class UnfoldedSMR(SMR):
    """SMR of the matrices that unfold samples along one axis, with the parameters of SMR."""

    capabilities: ClassVar[Capabilities] = replace(
        SMR.capabilities, prepare_parameters=frozenset({"axis"})
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = SMR._parameter_constraints | {  # noqa: SLF001
        "axis": [COUNT]
    }

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        alpha: float = 0.1,
        rank: int = 1,
        p: float = 1.0,
        zeta: float = 1e-10,
        init: str = "multistart",
        alpha_scale: str = "max",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        axis: int = 1,
    ) -> None:
        super().__init__(
            shape,
            alpha,
            rank,
            p,
            zeta,
            init,
            alpha_scale,
            max_iter,
            tol,
            n_features_to_select,
            random_state,
        )
        #: The axis of the rows, 1 for the first.
        self.axis = axis

    def prepare(self, X: FloatArray, y: LabelArray) -> Any:
        """Prepare the unfolded training set."""
        return super().prepare(np.ascontiguousarray(X[:, self._order()]), y)

    def _order(self) -> IntArray:
        """Columns of X in the order of the cells of the matrix."""
        cells = np.arange(math.prod(self.shape)).reshape(self.shape)
        return np.moveaxis(cells, self.axis - 1, 0).ravel()

    def _sides(self, n_features: int) -> tuple[int, ...]:
        side = self.shape[self.axis - 1]
        return side, n_features // side

    def _keep(self, P: FloatArray, prepared: Any) -> None:
        super()._keep(P, prepared)
        back = np.argsort(self._order())
        self.scores_, self.coef_ = self.scores_[back], self.coef_[:, back]
