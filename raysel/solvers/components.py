"""How many directions each task is projected on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raysel.errors import ConfigError


def component_numbers(wanted: Any, limits: Sequence[tuple[str, int]]) -> list[int]:
    """One number of directions a task, from a number for all or one for each.

    Parameters
    ----------
    wanted : int or sequence of int
    limits : sequence of (str, int)
        What messages say of each task, and the most directions it can have.

    Returns
    -------
    list of int

    Raises
    ------
    ConfigError
        If an entry is no positive whole number, there is not one a task, or one exceeds its limit.

    Examples
    --------
    >>> component_numbers(3, [("task 'faces'", 39), ("task 'digits'", 9)])
    [3, 3]
    """
    sizes = [wanted] * len(limits) if isinstance(wanted, int | np.integer) else list(wanted)
    for size in sizes:
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise ConfigError(f"n_components={wanted!r}: {size!r} is no positive whole number.")
    if len(sizes) != len(limits):
        raise ConfigError(f"n_components={sizes} has {len(sizes)} entries for {len(limits)} tasks.")
    for size, (task, largest) in zip(sizes, limits, strict=True):
        if size > largest:
            raise ConfigError(f"n_components={size} does not fit {task}: the largest possible there is {largest}.")
    return [int(size) for size in sizes]
