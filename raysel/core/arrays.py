"""Type aliases of NumPy arrays for raysel's signatures, and blocks of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
LabelArray: TypeAlias = NDArray[Any]

#: Largest number of columns of a block.
_WIDTH = 2**12


def column_blocks(X: FloatArray) -> Iterator[FloatArray]:
    """Yield the columns of an array in blocks, so that copies of all of them are never held at once.

    What is computed of each column is the same to the last bit: no block has one column alone, over which NumPy adds
    in another order.
    """
    n_blocks = -(-X.shape[1] // _WIDTH)
    bounds = [X.shape[1] * i // max(1, n_blocks) for i in range(n_blocks + 1)]
    yield from (X[:, start:stop] for start, stop in pairwise(bounds))
