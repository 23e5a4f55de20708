"""Linear programs in the weights of kernels: the soft margins of LPBoost, and the cutting planes of other methods."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import RayselError

#: Difference of the bounds of the margin, relative to the largest score, at which cutting planes stop.
_GAP = 1e-8
#: Number of cutting planes after which the whole program is solved instead.
_MOST_CUTS = 500
#: HiGHS's tolerances.
_ACCURATE = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def shared_weights(scores: FloatArray, codes: IntArray, nu: float) -> tuple[FloatArray, float]:
    """Find one weight for each classifier (LPBoost-beta) by cutting planes.

    The linear program of `solve_program` is equivalent to maximising, over weights of sum 1, the mean of the margins

        m_i = min_{j != y_i} sum_k beta_k (f_{k, y_i}(x_i) - f_{k, j}(x_i))

    of the nu n samples for which they are smallest (of a fractional number the last one counts in part; of less than
    one sample, the smallest margin). That mean is concave and piecewise linear in beta. Each step adds the linear piece
    at the current weights to a program in n_classifiers + 1 variables, whose value bounds the maximum.

    `scores` is (n_classifiers, n_classes, n_samples), `codes` (n_samples,); returns `weights`
    (n_classifiers,).
    """
    n_classifiers, _, n = scores.shape
    samples, size = np.arange(n), max(nu * n, 1.0)
    shares = np.clip(size - samples, 0.0, 1.0) / size
    of_class, scale = scores[:, codes, samples], max(float(np.abs(scores).max()), np.finfo(np.float64).tiny)
    weights = np.full(n_classifiers, 1.0 / n_classifiers)
    best, best_margin, cuts = weights, -np.inf, []
    for n_cuts in count(1):
        total = np.tensordot(weights, scores, 1)
        total[codes, samples] = -np.inf
        differences = of_class - scores[:, total.argmax(axis=0), samples]
        order = np.argsort(weights @ differences, kind="stable")
        cut = differences[:, order] @ shares
        if weights @ cut > best_margin:
            best, best_margin = weights, float(weights @ cut)
        cuts.append(cut / scale)
        highest, bound, _ = highest_point(np.array(cuts))
        weights = 0.5 * (best + highest)
        if bound * scale - best_margin <= _GAP * scale:
            break
        if n_cuts >= _MOST_CUTS:
            best, value = solve_program(scores, codes, nu, shared=True)
            return best[:, 0], -value
    return best, best_margin


def highest_point(cuts: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Maximise the minimum of linear functions over weights that are not negative and have the sum 1.

    `cuts` is (n_functions, n_weights); returns `weights` (n_weights,), `shares` (n_functions,).
    """
    n_cuts, n_weights = cuts.shape
    result = _solve(
        np.append(np.zeros(n_weights), -1.0),
        A_ub=np.column_stack([-cuts, np.ones(n_cuts)]),
        b_ub=np.zeros(n_cuts),
        A_eq=np.append(np.ones(n_weights), 0.0)[None],
        b_eq=np.ones(1),
        bounds=[(0.0, None)] * n_weights + [(None, None)],
    )
    weights, shares = np.maximum(result.x[:-1], 0.0), np.maximum(-result.ineqlin.marginals, 0.0)
    return weights / weights.sum(), -float(result.fun), shares / shares.sum()


def _solve(cost: FloatArray, method: str = "highs", **constraints: Any) -> Any:
    """Solve a linear program by HiGHS; return SciPy's result."""
    arguments: dict[str, Any] = {"method": method, "options": _ACCURATE, **constraints}
    result = linprog(cost, **arguments)
    if result.x is None:
        raise RayselError(f"HiGHS did not solve the linear program in the weights: {result.message}")
    return result


def solve_program(scores: FloatArray, codes: IntArray, nu: float, *, shared: bool = False) -> tuple[FloatArray, float]:
    """Solve the whole linear program of LPBoost by HiGHS, with weights of each class (LPBoost-B) or shared ones.

        min_{B, rho, xi >= 0}  -rho + 1/(nu n) sum_i xi_i
        subject to  sum_k (B_{k, y_i} f_{k, y_i}(x_i) - B_{k, j} f_{k, j}(x_i)) + xi_i >= rho   for all j != y_i

    with B >= 0 and columns of sum 1 (Gehler & Nowozin 2009). It has n_samples (n_classes - 1) constraints.

    `scores` is (n_classifiers, n_classes, n_samples), `codes` (n_samples,); returns `weights`
    (n_classifiers, n_classes) or (n_classifiers, 1).
    """
    n_classifiers, n_classes, n = scores.shape
    n_columns = 1 if shared else n_classes
    sample, rival = np.nonzero(np.arange(n_classes) != codes[:, None])
    n_rows, n_weights = len(sample), n_classifiers * n_columns
    rows = np.arange(n_rows)
    first = n_columns * np.arange(n_classifiers)[:, None]
    of_class, other = first + (0 if shared else codes[sample]), first + (0 if shared else rival)
    # Entries of one place are summed, as those of both classes are for shared weights.
    values = [-scores[:, codes[sample], sample], scores[:, rival, sample], np.ones((1, n_rows)), -np.ones((1, n_rows))]
    places = [np.broadcast_to(of_class, values[0].shape), np.broadcast_to(other, values[1].shape)]
    places += [np.full((1, n_rows), n_weights), n_weights + 1 + sample[None]]
    entries, columns = np.concatenate(values), np.concatenate(places)
    constraints = coo_array(
        (entries.ravel(), (np.tile(rows, len(entries)), columns.ravel())), shape=(n_rows, n_weights + 1 + n)
    ).tocsr()
    sums = coo_array(
        (np.ones(n_weights), (np.tile(np.arange(n_columns), n_classifiers), np.arange(n_weights))),
        shape=(n_columns, n_weights + 1 + n),
    ).tocsr()
    result = _solve(
        np.concatenate([np.zeros(n_weights), [-1.0], np.full(n, 1.0 / (nu * n))]),
        method="highs" if shared else "highs-ipm",
        A_ub=constraints,
        b_ub=np.zeros(n_rows),
        A_eq=sums,
        b_eq=np.ones(n_columns),
        bounds=[(0.0, None)] * n_weights + [(None, None)] + [(0.0, None)] * n,
    )
    weights = np.maximum(result.x[:n_weights].reshape(n_classifiers, n_columns), 0.0)
    return weights / weights.sum(axis=0), float(result.fun)
