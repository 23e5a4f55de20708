"""The problem of sparse multimodal learning as its paper writes it, solved by a conic solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from hypothesis import reject


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
        total += gamma1 * sum(np.linalg.norm(coef[j, start : start + width]) for j in range(len(coef)))
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
        terms += [gamma1 * cp.sum(cp.norm(W[s : s + w, :], 2, axis=0)) for s, w in zip(starts, widths, strict=True)]
    problem = cp.Problem(cp.Minimize(sum(terms)))
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    except cp.SolverError:
        reject()  # this reference gave up: the drawn example tells nothing
    return problem.value, W.value.T


def optimality_residual(X, y, widths, smml, tolerance=1e-3):
    """Distance of X'(alpha * Y) - U - V from 0 over all multipliers that the returned W and b allow, and a scale.

    alpha is 1 below the margin and 0 above it; U and V are the gradients of the norms of the groups that are not
    zero, and anything within the balls for those that are.
    """
    Y, coef, columns = indicator(y).T, smml.coef_, X - X.mean(axis=0)
    slack = 1 - Y * (X @ coef.T + smml.intercept_).T
    alpha, U, V = cp.Variable(Y.shape), cp.Variable(coef.shape), cp.Variable(coef.shape)
    conditions = [alpha >= (slack > tolerance), alpha <= (slack >= -tolerance)]
    conditions.append(cp.sum(cp.multiply(alpha, Y), axis=1) == 0)
    largest = max(np.abs(coef).max(), 1e-12)

    def gradient(variable, group, gamma):
        norm = np.linalg.norm(group)
        return variable == gamma * group / norm if norm > 1e-3 * largest else cp.norm(variable) <= gamma

    starts = np.cumsum(widths) - widths
    for j in range(len(coef)):
        for s, w in zip(starts, widths, strict=True):
            conditions.append(gradient(U[j, s : s + w], coef[j, s : s + w], smml.gamma1_))
    conditions += [gradient(V[:, r], coef[:, r], smml.gamma2_) for r in range(coef.shape[1])]
    residual = cp.norm(cp.multiply(alpha, Y) @ columns - U - V, "fro")
    problem = cp.Problem(cp.Minimize(residual), conditions)
    problem.solve(solver=cp.CLARABEL)
    return problem.value, smml.gamma1_ + smml.gamma2_
