"""False selections where decoys choose the threshold, beside the threshold that bounds them.

python experiments/claims/error-control/decoys.py
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from raysel import StabilitySelection
from raysel.base.registry import solver_class

N_SAMPLES, N_FEATURES, N_TELLING, MODULE = 200, 200, 15, 10
RUNS, HALVES, TOP = 30, 40, 30
DESIGNS = ("independent", "modules", "labels without meaning")
THRESHOLDS = ("decoys", None)


def draw(design: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw samples, a quantity, and the mask of the features that it depends on or follows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    telling, dependent = np.arange(N_TELLING), np.arange(N_FEATURES) < N_TELLING
    if design == "modules":
        factors = rng.standard_normal((N_SAMPLES, N_FEATURES // MODULE))
        X = np.sqrt(0.6) * np.repeat(factors, MODULE, axis=1) + np.sqrt(0.4) * X
        telling, dependent = telling * MODULE, np.arange(N_FEATURES) < N_TELLING * MODULE
    noise = rng.standard_normal(N_SAMPLES)
    if design == "labels without meaning":
        return X, noise, np.zeros(N_FEATURES, dtype=bool)
    return X, X[:, telling] @ rng.choice([-0.5, 0.5], N_TELLING) + noise, dependent


def methods(quantity: np.ndarray) -> dict[str, tuple[Any, np.ndarray]]:
    """Return each method with the labels that it is fitted to."""
    classes = (quantity > 0).astype(int)
    return {
        "lasso, quantity": (Lasso(0.1), quantity),
        "Fisher score, two classes": (solver_class("fisher_score")(), classes),
        "l1 SVM, two classes": (LinearSVC(penalty="l1", dual=False, C=0.1), classes),
    }


def judge(design: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what each method selects of one draw, by each rule for the threshold."""
    X, quantity, dependent = draw(design, seed)
    for method, (estimator, y) in methods(quantity).items():
        for rule in THRESHOLDS:
            selector = StabilitySelection(estimator, n_halves=HALVES, top=TOP, threshold=rule)
            chosen = selector.fit(X, y).get_support()
            n, n_false = int(chosen.sum()), int((chosen & ~dependent).sum())
            yield {
                "design": design,
                "method": method,
                "threshold": rule or "bound",
                "selected": n,
                "false": n_false,
                "false_share": n_false / max(n, 1),
                "estimated_share": getattr(selector, "false_share_", np.nan),
                "value": selector.threshold_,
            }


def main() -> None:
    """Write the means of all runs."""
    folder = Path(__file__).parent
    rows = [row for design in DESIGNS for seed in range(RUNS) for row in judge(design, seed)]
    cells = sorted({(r["design"], r["method"], r["threshold"]) for r in rows})
    figures = ("selected", "false", "false_share", "estimated_share", "value")
    head = ["design", "method", "threshold", "runs", *figures, "false_share_se"]
    with (folder / "decoys.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for cell in cells:
            of_cell = [r for r in rows if (r["design"], r["method"], r["threshold"]) == cell]
            means = [f"{np.mean([r[name] for r in of_cell]):.3f}" for name in figures]
            error = np.std([r["false_share"] for r in of_cell], ddof=1) / np.sqrt(len(of_cell))
            writer.writerow([*cell, len(of_cell), *means, f"{error:.3f}"])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
