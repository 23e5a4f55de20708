"""Feature selectors with fixed parameters reach the accuracies and redundancies that other
programs gave.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from raysel.base.registry import build_solver
from raysel.data.loading import load_dataset

ROOT = Path(__file__).parents[2]

#: Standard deviation of accuracy and of redundancy over draws of the training set, for all methods
#: together.
SPREAD = {"ORL": (0.03, 0.03), "USPS": (0.04, 0.03)}
#: Methods that take more than a tenth of a second on ORL.
SLOW = {"mRMR MID", "mRMR MIQ", "RFS .1", "RFS 1", "GLSPFS .1, .001", "DFS .1", "DFS 1", "GBR .01"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ORL", "USPS"])
def test_selectors_are_as_good_as_other_programs_for_the_same_formulas(name, real_data):
    """Accuracy of the nearest neighbour on the best pixels; the known figures are of other
    draws.
    """
    experiment = runpy.run_path(str(ROOT / "experiments" / "claims" / "rivals-accuracy" / "run.py"))
    per_class, draws, sizes, _ = experiment["PROTOCOLS"][name]
    data = load_dataset(real_data(f"{name}.npz"))
    X, y = (data.X - data.X.min()) / np.ptp(data.X), data.y
    rng = np.random.default_rng(0)
    methods = {
        label: build_solver(solver["name"], data.layout, solver.get("params", {}))
        for label, solver in experiment["FIXED"].items()
        if label in experiment["KNOWN"][name] and not (name == "ORL" and label in SLOW)
    }
    found = {label: np.zeros(len(sizes) + 1) for label in methods}
    for _ in range(draws):
        order = rng.permutation(len(y))
        train = np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])
        test = np.setdiff1d(order, train)
        for label, method in methods.items():
            if label == "random":
                method.set_params(random_state=int(rng.integers(1000)))
            best = np.argsort(-method.fit(X[train], y[train]).scores_, kind="stable")
            for i, n in enumerate(sizes):
                A, B = X[np.ix_(train, best[:n])], X[np.ix_(test, best[:n])]
                nearest = ((A**2).sum(axis=1) - 2 * B @ A.T).argmin(axis=1)
                found[label][i] += np.mean(y[train][nearest] == y[test]) / draws
            pairs = np.corrcoef(X[:, best[: sizes[0]]], rowvar=False)[np.triu_indices(sizes[0], 1)]
            found[label][-1] += np.abs(pairs).mean() / draws
    # Three standard deviations of a difference of two means, and half of the last digit of a known
    # figure.
    accuracy, red = 3 * np.array(SPREAD[name]) * np.sqrt(2 / draws) + np.array([0.0005, 0.005])
    for label, values in found.items():
        known, known_red = experiment["KNOWN"][name][label]
        assert np.abs(values[:-1] - known).max() < accuracy, (label, values, known)
        assert abs(values[-1] - known_red) < red, (label, values, known_red)
