"""References of sparse multimodal learning: the conic solver, the conditions of optimality,
random problems.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from hypothesis import reject

from raysel.solvers.smml.problem import MultimodalProblem, prepare_modalities


def indicator(y):
    """Labels or an indicator to {-1, 1}, one column a problem; two classes are one problem."""
    y = np.asarray(y)
    if y.ndim == 2:
        return np.where(y > 0, 1.0, -1.0)
    classes = np.unique(y)
    return np.where(y[:, None] == (classes[1:] if len(classes) == 2 else classes), 1.0, -1.0)


def objective(X, y, widths, gamma1, gamma2, coef, intercept):
    """P(W, b), term by term."""
    Y = indicator(y)
    total = np.maximum(0.0, 1.0 - Y * (X @ coef.T + intercept)).sum()
    total += gamma2 * sum(np.linalg.norm(coef[:, r]) for r in range(X.shape[1]))
    start = 0
    for width in widths:
        total += gamma1 * sum(
            np.linalg.norm(coef[j, start : start + width]) for j in range(len(coef))
        )
        start += width
    return total


def conic_optimum(X, y, widths, gamma1, gamma2):
    """The optimal value and W (c, d) by Clarabel."""
    Y = indicator(y)
    X = X - X.mean(axis=0)  # the bias is free, so the optimum is the same
    W, b = cp.Variable((X.shape[1], Y.shape[1])), cp.Variable(Y.shape[1])
    scores = X @ W + np.ones((len(X), 1)) @ cp.reshape(b, (1, Y.shape[1]), order="C")
    terms = [cp.sum(cp.pos(1 - cp.multiply(Y, scores)))]
    if gamma2:
        terms.append(gamma2 * cp.sum(cp.norm(W, 2, axis=1)))
    if gamma1:
        starts = np.cumsum(widths) - widths
        terms += [
            gamma1 * cp.sum(cp.norm(W[s : s + w, :], 2, axis=0))
            for s, w in zip(starts, widths, strict=True)
        ]
    problem = cp.Problem(cp.Minimize(sum(terms)))
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    except cp.SolverError:
        reject()  # this reference gave up: the drawn example tells nothing
    return problem.value, W.value.T


def optimality_residual(X, y, widths, smml, tolerance=1e-3):
    """Distance of X'(alpha * Y) - U - V from 0 over all multipliers that the returned W and b
    allow, and a scale.

    alpha is 1 below the margin and 0 above it; U and V are the gradients of the norms of the groups
    that are not zero, and anything within the balls for those that are.
    """
    Y, coef, columns = indicator(y).T, smml.coef_, X - X.mean(axis=0)
    slack = 1 - Y * (X @ coef.T + smml.intercept_).T
    alpha, U, V = cp.Variable(Y.shape), cp.Variable(coef.shape), cp.Variable(coef.shape)
    conditions = [alpha >= (slack > tolerance), alpha <= (slack >= -tolerance)]
    conditions.append(cp.sum(cp.multiply(alpha, Y), axis=1) == 0)
    largest = max(np.abs(coef).max(), 1e-12)

    def gradient(variable, group, gamma):
        norm = np.linalg.norm(group)
        return (
            variable == gamma * group / norm
            if norm > 1e-3 * largest
            else cp.norm(variable) <= gamma
        )

    starts = np.cumsum(widths) - widths
    for j in range(len(coef)):
        for s, w in zip(starts, widths, strict=True):
            conditions.append(gradient(U[j, s : s + w], coef[j, s : s + w], smml.gamma1_))
    conditions += [gradient(V[:, r], coef[:, r], smml.gamma2_) for r in range(coef.shape[1])]
    residual = cp.norm(cp.multiply(alpha, Y) @ columns - U - V, "fro")
    problem = cp.Problem(cp.Minimize(residual), conditions)
    problem.solve(solver=cp.CLARABEL)
    return problem.value, smml.gamma1_ + smml.gamma2_


AWKWARD = ["plain", "duplicated", "constant", "shifted", "scaled", "correlated", "discrete"]


def random_problem(seed, smallest=1e-5, largest=1.0):
    """X, y, modalities, and two fractions of the gammas' maxima, one of which may be 0."""
    rng = np.random.default_rng(seed)
    n, d, labels = int(rng.integers(10, 61)), int(rng.integers(1, 21)), int(rng.integers(1, 5))
    d = 1 if seed % 7 == 0 else d
    X = rng.standard_normal((n, d))
    match AWKWARD[seed % len(AWKWARD)] if d > 1 else rng.choice(AWKWARD[:2]):
        case "duplicated":
            X[n // 2 :] = X[: n - n // 2]
        case "constant":
            X[:, 0] = 3.3
        case "shifted":
            X += 30.0
        case "scaled":
            X[:, 0] *= 1000.0
        case "correlated":
            X = X @ rng.standard_normal((d, d))
        case "discrete":
            X = np.round(X)
    signal = (
        (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) @ rng.standard_normal((d, labels))
    )
    noise = rng.choice([0.0, 0.3, 1.0, 10.0])
    scores = signal / np.maximum(signal.std(axis=0), 1e-9) + noise * rng.standard_normal(
        (n, labels)
    )
    positive = scores > np.quantile(scores, rng.choice([0.5, 0.8, 0.95]), axis=0)
    if labels == 1:
        y = positive[:, 0].astype(int)
    elif labels == 2 or rng.random() < 0.5:
        y = positive.astype(int)
        y[:, 0] *= rng.random() > 0.2
    else:
        y = scores.argmax(axis=1)
        y[:labels] = np.arange(labels)
    cuts = (
        np.sort(rng.choice(np.arange(1, d), min(d, int(rng.integers(1, 4))) - 1, replace=False))
        if d > 1
        else []
    )
    widths = np.diff([0, *cuts, d]).astype(int).tolist()
    gammas = smallest * (largest / smallest) ** rng.random(2)
    gammas[rng.choice(2)] *= rng.random() > 0.3
    return X, y, {f"m{k}": width for k, width in enumerate(widths)}, *gammas.tolist()


def posed_problem(
    seed, gamma1=0.1, gamma2=0.1, *, n=30, widths=(6, 1, 5), classes=3, multilabel=False
):
    """X, y and the problem that fractions of the gammas' maxima pose on them."""
    rng = np.random.default_rng(seed)
    X = (
        rng.standard_normal((n, sum(widths)))
        * np.repeat(rng.uniform(0.3, 3.0, len(widths)), widths)
        + 2.0
    )
    truth = rng.standard_normal((X.shape[1], classes)) * (rng.random((X.shape[1], 1)) < 0.5)
    scores = (X - 2.0) @ truth + 0.5 * rng.standard_normal((n, classes))
    if multilabel:
        y = (scores > 0.3).astype(int)
    else:
        y = scores.argmax(axis=1)
        y[:classes] = np.arange(classes)
    return X, y, posed(X, y, widths, gamma1, gamma2)


def posed(X, y, widths, gamma1, gamma2):
    """The problem that fractions of the gammas' maxima pose on X and y."""
    signs = np.ascontiguousarray(indicator(y).T)
    prepared = prepare_modalities(
        X, signs, np.array(widths), np.arange(len(signs)), np.ndim(y) == 2
    )
    return MultimodalProblem(prepared, gamma1 * prepared.gamma1_max, gamma2 * prepared.gamma2_max)
