"""Types of arrays, blocks of their columns, and scikit-learn's validation of samples.

scikit-learn's private modules and experimental API are imported here only, as a new version may
move or rename them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

#: Names of scikit-learn that other modules import from here.
__all__ = ["CallbackSupportMixin", "Interval", "StrOptions", "fit_context", "with_callbacks"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
LabelArray: TypeAlias = NDArray[Any]
#: Largest number of columns of a block.
_WIDTH = 2**12


@runtime_checkable
class RowBlocks(Protocol):
    """Samples of which a bounded number is in memory at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""

    def row_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Read the samples: positions among them, (n_block,), and values, (n_block, n_features)."""


def column_blocks(X: FloatArray) -> Iterator[FloatArray]:
    """Yield the columns of an array in blocks, so that no copy of all is held.

    What is computed of each column is the same to the last bit: no block has one column alone, over
    which NumPy adds in another order.
    """
    n_blocks = -(-X.shape[1] // _WIDTH)
    bounds = [X.shape[1] * i // max(1, n_blocks) for i in range(n_blocks + 1)]
    yield from (X[:, start:stop] for start, stop in pairwise(bounds))


def validate_samples(estimator: Any, *arrays: Any, **checks: Any) -> Any:
    """Validate the input of an estimator by scikit-learn's ``validate_data``."""
    try:
        return validate_data(estimator, *arrays, **checks)
    except ValueError as error:
        sides = getattr(arrays[0], "shape", ())[1:]
        if len(sides) < 2 or "Found array with dim" not in str(error):
            raise
        shape = ""
        if hasattr(estimator, "shape") and len(sides) == 2:
            shape = f", and set shape={sides}"
        raise ValueError(
            f"{error} Samples of shape {sides} are passed as rows, by X.reshape(len(X), -1){shape}."
        ) from error


def validate_params(estimator: Any) -> None:
    """Validate the parameters of a scikit-learn estimator against its own constraints."""
    if hasattr(estimator, "_parameter_constraints") and hasattr(estimator, "_validate_params"):
        estimator._validate_params()  # noqa: SLF001 - scikit-learn has no public name for it
