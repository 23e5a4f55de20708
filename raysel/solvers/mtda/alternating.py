"""MTDA's alternation between each task's map W_i and the common P, mended and as printed.

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
    """d', the dimension of the space that every W_i maps into: as wanted, by default halfway.

    Parameters
    ----------
    wanted : int or None
    sizes : sequence of int
        d_i.
    problems : sequence of Scatters
    names : sequence of str
        What messages call the tasks.

    Returns
    -------
    int

    Raises
    ------
    ConfigError
        If it is below a d_i or above the rank of a task, which is named.
    """
    rank, narrowest = min((len(problem.total), name) for problem, name in zip(problems, names, strict=True))
    width = wanted or (max(sizes) + rank + 1) // 2
    if not max(sizes) <= width <= rank:
        raise ConfigError(
            f"the alternating methods map all tasks into one space: its intermediate_dim={width} must lie between"
            f" n_components ({max(sizes)}) and the rank {rank} of {narrowest}."
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

    Each update maximises sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P) at the ratio x attained before it, so the ratio
    never falls; where all d_i are equal it rests only at the global optimum. As printed, Table 1 turns every W_i after
    its update (steps 2.3 and 2.4), as if the ratio did not depend on where W_i lies relative to P: it then falls at
    times.

    Parameters
    ----------
    problems : sequence of Scatters
    sizes : sequence of int
        d_i.
    weights : ndarray of shape (len(problems),)
    width : int
        d', at least every d_i and at most every r_i.
    rng : RandomState
    printed : bool, default=False
        With steps 2.3 and 2.4.

    Yields
    ------
    ratio : float
    bases : list of ndarray of shape (r_i, d_i)
        W_i P, orthonormal columns.
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
    """The W that maximises tr(P'W'(B - x T)W P): W = E [P, P_perp]', E the leading eigenvectors of B - x T.

    Parameters
    ----------
    problem : Scatters
    ratio : float
    common : ndarray of shape (d', d)
        P.

    Returns
    -------
    ndarray of shape (r, d')
    """
    width, size = common.shape
    complement = scipy.linalg.qr(common, check_finite=False)[0][:, size:]
    leading = problem.leading(min(ratio, LARGEST_RATIO), width)
    return leading @ np.concatenate([common, complement], axis=1).T


def turn_to_total(problem: Scatters, W: FloatArray) -> FloatArray:
    """Steps 2.3 and 2.4 of Table 1: the leading eigenvectors of W W' T W W'.

    Parameters
    ----------
    problem : Scatters
    W : ndarray of shape (r, d')

    Returns
    -------
    ndarray of shape (r, d')
        Orthonormal columns that span the same space.
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
    """The P that maximises sum_i w_i tr(P'W_i'(B_i - x T_i)W_i P), given all W_i.

    Columns used by the same tasks form a block, which is solved exactly in the complement of the other blocks;
    where all d_i are equal that is one block, and the maximum.

    Parameters
    ----------
    problems : sequence of Scatters
    ratio : float
    maps : sequence of ndarray of shape (r_i, d')
    common : ndarray of shape (d', max d_i)
        P before the update.
    sizes : sequence of int
    weights : ndarray of shape (len(problems),)

    Returns
    -------
    ndarray of shape (d', max d_i)
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
