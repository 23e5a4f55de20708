"""Number of components of each task, and a warning of directions lost by rounding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

from raysel.errors import ConfigError


def component_numbers(wanted: Any, limits: Sequence[tuple[str, int]]) -> list[int]:
    """Return the number of components of each task."""
    sizes = [wanted] * len(limits) if isinstance(wanted, int | np.integer) else list(wanted)
    for size in sizes:
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise ConfigError(f"n_components={wanted!r}: {size!r} is not a positive whole number.")
    if len(sizes) != len(limits):
        raise ConfigError(
            f"n_components={sizes} has {len(sizes)} entries for {len(limits)} tasks; give one entry for each task."
        )
    for size, (task, largest) in zip(sizes, limits, strict=True):
        if size > largest:
            raise ConfigError(f"n_components={size} does not fit {task}: give at most {largest}.")
    return [int(size) for size in sizes]


def warn_of_lost_directions(named: str, rank: int, varying: int) -> None:
    """Warn if directions are lost by rounding, because some features have a much smaller scale than others.

    Constant, repeated or linearly dependent features and a small number of samples cause no warning.
    """
    if rank < varying:
        warnings.warn(
            f"{named}: rank {rank} of {varying} directions that vary: the others vary by less than the rounding error"
            " of the largest. Scale the features (e.g. to z-scores).",
            LinAlgWarning,
            stacklevel=2,
        )
