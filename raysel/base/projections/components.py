"""How many directions each task has, and how many of them it is projected on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

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


def warn_of_lost_directions(named: str, rank: int, varying: int) -> None:
    """Warn where directions that vary are left out, as those of features on a far smaller scale than others.

    Features that are constant, repeat or depend linearly on others cost no direction, nor do few samples.

    Parameters
    ----------
    named : str
        What the message calls the data.
    rank : int
        Directions that are kept.
    varying : int
        Directions that there would be were all features of one scale.
    """
    if rank < varying:
        warnings.warn(
            f"{named}: rank {rank} of {varying} directions that vary: those left out vary by less than the rounding of"
            " the largest. Bring the features to one scale (e.g. z-scores).",
            LinAlgWarning,
            stacklevel=2,
        )
