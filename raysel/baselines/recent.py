"""Latest results of a computation, which configurations on the same training set share."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result", bound=tuple[NDArray[np.float64], ...])


def _count_numbers(arrays: tuple[NDArray[np.float64], ...]) -> int:
    return sum(array.size for array in arrays)


class RecentResults(Generic[Result]):
    """Results of a computation by a digest of what they depend on; several threads may use it.

    Preparations are shared by all configurations on a training set; this shares among
    configurations of one process what depends on their parameters, too, and is small beside the
    time that it takes.
    """

    def __init__(self, most_numbers: int) -> None:
        self._most_numbers = most_numbers
        self._latest: OrderedDict[bytes, Result] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, settings: str, arrays: tuple[NDArray[np.generic], ...], compute: Callable[[], Result]
    ) -> Result:
        """Return the result for settings and arrays, computed unless it is among the latest."""
        digest = hashlib.blake2b(settings.encode())
        for array in arrays:
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).data)
        key = digest.digest()
        with self._lock:
            if key in self._latest:
                self._latest.move_to_end(key)
                return self._latest[key]
        result = compute()
        for array in result:
            array.flags.writeable = False
        with self._lock:
            self._latest[key] = result
            while sum(map(_count_numbers, self._latest.values())) > self._most_numbers:
                self._latest.popitem(last=False)
        return result
