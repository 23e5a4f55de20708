"""Small random problems of sparse multimodal learning, with all that makes them awkward."""

from __future__ import annotations

import numpy as np
from smml_reference import indicator

from raysel.solvers.smml.problem import MultimodalProblem, prepare_modalities

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
    signal = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) @ rng.standard_normal((d, labels))
    noise = rng.choice([0.0, 0.3, 1.0, 10.0])
    scores = signal / np.maximum(signal.std(axis=0), 1e-9) + noise * rng.standard_normal((n, labels))
    positive = scores > np.quantile(scores, rng.choice([0.5, 0.8, 0.95]), axis=0)
    if labels == 1:
        y = positive[:, 0].astype(int)
    elif labels == 2 or rng.random() < 0.5:
        y = positive.astype(int)
        y[:, 0] *= rng.random() > 0.2
    else:
        y = scores.argmax(axis=1)
        y[:labels] = np.arange(labels)
    cuts = np.sort(rng.choice(np.arange(1, d), min(d, int(rng.integers(1, 4))) - 1, replace=False)) if d > 1 else []
    widths = np.diff([0, *cuts, d]).astype(int).tolist()
    gammas = smallest * (largest / smallest) ** rng.random(2)
    gammas[rng.choice(2)] *= rng.random() > 0.3
    return X, y, {f"m{k}": width for k, width in enumerate(widths)}, *gammas.tolist()


def posed_problem(seed, gamma1=0.1, gamma2=0.1, *, n=30, widths=(6, 1, 5), classes=3, multilabel=False):
    """X, y and the problem that fractions of the gammas' maxima pose on them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, sum(widths))) * np.repeat(rng.uniform(0.3, 3.0, len(widths)), widths) + 2.0
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
    prepared = prepare_modalities(X, signs, np.array(widths), np.arange(len(signs)), np.ndim(y) == 2)
    return MultimodalProblem(prepared, gamma1 * prepared.gamma1_max, gamma2 * prepared.gamma2_max)
