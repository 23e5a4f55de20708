"""Seeds of all random draws of a study, each derived from the study's seed."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

Purpose = Literal[
    "outer split",
    "inner split",
    "refit",
    "inner fit",
    "sampler",
    "trial order",
    "halves",
    "half fit",
    "permutation",
    "noise",
]

_PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


def derived_seed(seed: int, purpose: Purpose, *indices: int) -> int:
    """Derive a seed for one purpose, independent of the seeds for all others.

    Purpose and indices are the spawn key of NumPy's ``SeedSequence``. They are not passed as entropy, because it is
    padded with zeros: ``[s, r]`` and ``[s, r, 0]`` would give the same state.
    """
    key = (_PURPOSES.index(purpose), *indices)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
