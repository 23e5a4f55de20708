"""Traps of batches: what a step that is to take a batch out leaves of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from trap import Data, StudyTrap, says


def _shifted(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Noise of 1000 columns, 100 of them shifted by two batches, which are 70 % of one class
    each.
    """
    y = rng.permutation(np.arange(120) % 2)
    batch = np.where(rng.random(120) < 0.7, y, 1 - y)
    X = rng.standard_normal((120, 1000))
    X[:, :100] += 2 * batch[:, None] * rng.standard_normal(100)
    frame = pd.DataFrame(X, columns=[f"gene{i}" for i in range(1000)])
    return frame.assign(batch=np.array(["one", "other"])[batch]), y


def harmonised(rng: np.random.Generator) -> Data:
    """The batches by ComBat."""
    return *_shifted(rng), {"dataset": {"prepare": [{"harmonise": "batch"}]}}


def centred(rng: np.random.Generator) -> Data:
    """The batches by exact centring."""
    return *_shifted(rng), {"dataset": {"prepare": ["residualise"], "confounds": ["batch"]}}


TRAPS = {
    "harmonised batch": StudyTrap(
        harmonised, "the columns still tell the batch", says("still tells batch")
    ),
    "centred batch": StudyTrap(
        centred, "the columns do not tell the batch", says("does not clearly tell batch")
    ),
}
