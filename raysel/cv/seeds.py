"""Seeds of everything in a study that draws random numbers, each derived from the study's one seed."""

from __future__ import annotations

from typing import Literal

import numpy as np

Purpose = Literal["outer split", "inner split", "refit", "inner fit", "sampler", "trial order"]

_PURPOSES: tuple[Purpose, ...] = ("outer split", "inner split", "refit", "inner fit", "sampler", "trial order")


def derived_seed(seed: int, purpose: Purpose, *indices: int) -> int:
    """A seed for one purpose and place, independent of those for all others.

    Purpose and indices are the spawn key of NumPy's ``SeedSequence``. As entropy they would collide, because entropy is
    padded with zeros: ``[s, r]`` and ``[s, r, 0]`` give the same state.

    Parameters
    ----------
    seed : int
        The study's.
    purpose : str
    *indices : int
        E.g. repeat, outer fold and inner fold.

    Returns
    -------
    int
        32 bits.

    Examples
    --------
    >>> derived_seed(0, "outer split", 0) == derived_seed(0, "inner split", 0, 0)
    False
    """
    key = (_PURPOSES.index(purpose), *indices)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
