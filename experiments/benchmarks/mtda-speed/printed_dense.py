"""Table 1 of Zhang & Yeung (AAAI 2011) as printed: every matrix D_i x D_i, every step an
eigendecomposition of one.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from dense import dense_scatters


def run(tasks, size, iterations, seed=0):
    """``iterations`` sweeps; d' halfway between d and the smallest D_i."""
    rng = np.random.default_rng(seed)
    scatters = [dense_scatters(X, y) for X, y in tasks]
    width = (size + min(len(T) for _, T in scatters)) // 2
    maps = [np.linalg.qr(rng.standard_normal((len(T), width)))[0] for _, T in scatters]
    common = np.linalg.qr(rng.standard_normal((width, size)))[0]

    def ratio():
        bases = [W @ common for W in maps]
        between = sum(((B @ U) * U).sum() for U, (B, _) in zip(bases, scatters, strict=True))
        return between / sum(((T @ U) * U).sum() for U, (_, T) in zip(bases, scatters, strict=True))

    for _ in range(iterations):
        alpha = ratio()
        turn = scipy.linalg.eigh(common @ common.T)[1][:, ::-1]
        for i, (B, T) in enumerate(scatters):
            W = scipy.linalg.eigh(B - alpha * T)[1][:, : -width - 1 : -1] @ turn.T
            span = W @ W.T
            maps[i] = scipy.linalg.eigh(span @ T @ span)[1][:, : -width - 1 : -1]
        alpha = ratio()
        inner = sum(W.T @ (B - alpha * T) @ W for W, (B, T) in zip(maps, scatters, strict=True))
        common = scipy.linalg.eigh(inner)[1][:, : -size - 1 : -1]
    return ratio()
