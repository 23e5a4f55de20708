"""Alternating updates of each task's map W_i and the common P for MTDA, corrected and as printed in the paper.

    maximise  sum_i w_i tr(P'W_i' B_i W_i P) / sum_i w_i tr(P'W_i' T_i W_i P),   W_i'W_i = I_{d'},  P'P = I_d

Zhang & Yeung, "Multi-task learning in heterogeneous feature spaces", AAAI 2011, Table 1. Task i uses the first d_i
columns of P.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.linalg

from raysel.arrays import FloatArray
from raysel.errors import ConfigError
from raysel.linalg.trace_ratio import LARGEST_RATIO, Scatters, shared_ratio


def common_width(wanted: int | None, sizes: Sequence[int], problems: Sequence[Scatters], names: Sequence[str]) -> int:
    """Return the dimension d' of the space that every W_i maps into."""
    rank, narrowest = min((len(problem.total), name) for problem, name in zip(problems, names, strict=True))
    width = wanted or (max(sizes) + rank + 1) // 2
    if not max(sizes) <= width <= rank:
        raise ConfigError(
            f"intermediate_dim={width} must lie between n_components ({max(sizes)}) and the rank {rank} of {narrowest},"
            " because the alternating methods map all tasks into one space."
        )
    return width


def alternate(
    problems: Sequence[Scatters],
    sizes: Sequence[int],
    weights: FloatArray,
    width: int,
    rng: np.random.RandomState,
    printed: bool = False,
) -> Iterator[tuple[float, list[FloatArray]]]:
    """Update every W_i, then P, from a random start; endless.

    Each update maximises sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P) at the ratio x attained before it, so that the ratio
    never decreases; if all d_i are equal, only the global optimum is a fixed point. Table 1 of the paper also rotates
    every W_i after its update (steps 2.3 and 2.4) although the ratio depends on the position of W_i relative to P;
    with these steps the ratio may decrease.

    `weights` is (len(problems),); yields `bases` each (r_i, d_i).
    """
    maps = [_random_orthonormal(len(problem.total), width, rng) for problem in problems]
    common = _random_orthonormal(width, max(sizes), rng)
    while True:
        ratio = shared_ratio(problems, _bases(maps, common, sizes), weights)
        maps = [update_map(problem, ratio, common[:, :d]) for problem, d in zip(problems, sizes, strict=True)]
        if printed:
            maps = [turn_to_total(problem, W) for problem, W in zip(problems, maps, strict=True)]
        ratio = shared_ratio(problems, _bases(maps, common, sizes), weights)
        common = update_common(problems, ratio, maps, common, sizes, weights)
        bases = _bases(maps, common, sizes)
        yield shared_ratio(problems, bases, weights), bases


def update_map(problem: Scatters, ratio: float, common: FloatArray) -> FloatArray:
    """Maximise tr(P'W'(B - x T)W P) over W: W = E [P, P_perp]', E the leading eigenvectors of B - x T.

    `common` is (d', d); returns (r, d').
    """
    width, size = common.shape
    complement = scipy.linalg.qr(common, check_finite=False)[0][:, size:]
    leading = problem.leading(min(ratio, LARGEST_RATIO), width)
    return leading @ np.concatenate([common, complement], axis=1).T


def turn_to_total(problem: Scatters, W: FloatArray) -> FloatArray:
    """Rotate W to the leading eigenvectors of W W' T W W', steps 2.3 and 2.4 of Table 1.

    `W` is (r, d'); returns (r, d').
    """
    inner = W.T @ (problem.total[:, None] * W)
    projected = problem.between.T @ W
    _, vectors = scipy.linalg.eigh(inner + problem.overlap * projected.T @ projected, check_finite=False)
    return W @ vectors[:, ::-1]


def update_common(
    problems: Sequence[Scatters],
    ratio: float,
    maps: Sequence[FloatArray],
    common: FloatArray,
    sizes: Sequence[int],
    weights: FloatArray,
) -> FloatArray:
    """Maximise sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P) over P, given all W_i.

    Task i uses the first d_i columns of P. Columns used by the same tasks form a block, which is maximised exactly in
    the complement of the other blocks; if all d_i are equal, there is one block, and the result is the maximum.

    Each of `maps` is (r_i, d'), `common` is (d', max d_i), `weights` (len(problems),); returns
    (d', max d_i).
    """
    ratio = min(ratio, LARGEST_RATIO)
    inner = [
        weight * W.T @ problem.difference(ratio) @ W for weight, problem, W in zip(weights, problems, maps, strict=True)
    ]
    common = np.array(common)
    stops = sorted(set(sizes))
    for start, stop in zip([0, *stops], stops, strict=False):
        block = slice(start, stop)
        others = np.delete(common, block, axis=1)
        free = (
            scipy.linalg.qr(others, check_finite=False)[0][:, others.shape[1] :] if others.size else np.eye(len(common))
        )
        matrix = sum(A for A, size in zip(inner, sizes, strict=True) if size >= stop)
        _, vectors = scipy.linalg.eigh(free.T @ matrix @ free, check_finite=False)
        common[:, block] = free @ vectors[:, ::-1][:, : stop - start]
    return common


def _bases(maps: Sequence[FloatArray], common: FloatArray, sizes: Sequence[int]) -> list[FloatArray]:
    return [W @ common[:, :size] for W, size in zip(maps, sizes, strict=True)]


def _random_orthonormal(rows: int, columns: int, rng: np.random.RandomState) -> FloatArray:
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]
