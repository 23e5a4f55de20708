"""How many telling features stand first in the final model and in orders made of the outer folds,
simulated.

Run: python experiments/claims/consensus/run.py; it writes mixed.csv, simulated.csv and
expression.csv beside itself.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rules import RULES, Rankings, Rule, order
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from tables import DRAWS, Table, modules

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.execution.serial import SerialExecutor
from raysel.numerics.rankings import selection_ranks
from raysel.results.result import StudyResult
from raysel.run.api import prepare_study
from raysel.run.in_memory import run_in_memory

SAMPLES, FEATURES = 120, 300
WIDTH, WIDE = 8000, ("5 modules of 5 features tell, and a batch", "20 independent features tell")
#: The Markov chain has a row and a column a feature.
WIDE_RULES = {name: rule for name, rule in RULES.items() if "Markov" not in name}
FINAL, FINAL_FIRST = "final model", "folds that select, rank in the final model"
BOTH = "median of folds and final model"
C = [0.003, 0.0095, 0.03, 0.095, 0.3]
#: The space that `init` drafts, its halves, whose winners are all sparse or all dense, and a
#: filter.
METHODS: dict[str, dict[str, Any]] = {
    "SVM, l1 or l2": {"name": "linear_svm", "space": {"C": C, "penalty": ["l1", "l2"]}},
    "SVM, l1": {"name": "linear_svm", "params": {"penalty": "l1"}, "space": {"C": C}},
    "SVM, l2": {"name": "linear_svm", "params": {"penalty": "l2"}, "space": {"C": C}},
    "Fisher score": {"name": "fisher_score"},
}
#: Methods and numbers of outer folds of the simulated studies.
STUDIES = [
    *(("SVM, l1 or l2", folds) for folds in (3, 5, 10)),
    *((name, 5) for name in ("SVM, l1", "SVM, l2", "Fisher score")),
]


def study(table: Table, solver: Mapping[str, Any], folds: int, seed: int) -> StudyResult:
    """Run a study in memory."""
    config = {
        "name": "consensus",
        "seed": seed,
        "dataset": {"scaling": "zscore"},
        "solver": solver,
        "evaluation": {
            "estimator": "linear_svm",
            "C": [0.01],
            "n_features": [5, 20, 80],
            "choose_n": "best",
            "references": False,
        },
        "cv": {"outer": folds, "inner": 3},
    }
    prepared = prepare_study(config, X=table[0], y=table[1])
    return run_in_memory(prepared, SerialExecutor(prepared))


def orders_of(result: StudyResult) -> dict[str, IntArray]:
    """Return the features of a study in the order of each rule."""
    scores = np.array([refit.feature_scores for refit in result.outer])
    return orders(scores, np.array(result.final.feature_scores), result.default_top)


def orders(
    scores: FloatArray, final_scores: FloatArray, n: int, rules: Mapping[str, Rule] = RULES
) -> dict[str, IntArray]:
    """Return the features in the order of each rule, the best first."""
    ranks = np.array([selection_ranks(row) for row in scores])
    folds = Rankings(scores, ranks, n)
    final = selection_ranks(final_scores)
    median, mean = np.median(ranks, axis=0), ranks.mean(axis=0)
    found = {FINAL: np.lexsort((mean, median, final))}
    found |= {name: order(rule, folds) for name, rule in rules.items()}
    found[FINAL_FIRST] = np.lexsort((mean, median, final, -folds.selected))
    found[BOTH] = np.lexsort((mean, np.median(np.vstack([ranks, final]), axis=0)))
    return found


def shares(found: Mapping[str, IntArray], telling: BoolArray) -> dict[str, float]:
    """Return the share of telling features among as many first ones of each order as tell."""
    n = int(telling.sum())
    return {name: float(telling[order[:n]].mean()) for name, order in found.items()}


def simulated(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each study: the share of telling features among as many first ones as
    tell.
    """
    for seed in range(seeds):
        for what, draw in DRAWS.items():
            table = draw(np.random.default_rng(seed), SAMPLES, FEATURES)
            for method, folds in STUDIES:
                result = study(table, METHODS[method], folds, seed)
                sparse = int((result.recorded.fold_ranks.n_scored < FEATURES).sum())
                row = {"seed": seed, "table": what, "method": method, "folds": folds}
                row |= {"sparse winners": sparse, "N": result.default_top}
                yield row | shares(orders_of(result), table[2])


def mixed(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each mixture of sparse and dense winners on a wide table, and each N."""
    for seed in range(seeds):
        for what in WIDE:
            table = DRAWS[what](np.random.default_rng(seed), SAMPLES, WIDTH)
            for folds in (3, 5, 10):
                mixtures = sorted({0, 1, folds // 2, folds})
                for row in mixture(table, folds, mixtures, seed):
                    yield {"seed": seed, "table": what} | row


def expression(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each mixture on a table of 160 x 8000: the number of the 25 telling ones
    among the first 25.
    """
    for seed in range(seeds):
        table = modules(1.0)(np.random.default_rng(seed), 160, WIDTH)
        for row in mixture(table, 5, [0, 1, 2], seed, sizes=[20]):
            numbers = {k: round(25 * v) if isinstance(v, float) else v for k, v in row.items()}
            yield {"seed": seed} | numbers


def mixture(
    table: Table, folds: int, mixtures: Sequence[int], seed: int, sizes: Sequence[int] = (5, 20, 80)
) -> Iterator[dict[str, Any]]:
    """Yield a row for each number of sparse winners, and each N.

    Every fold has an l1 and an l2 winner of fixed C, and so has the final model. The first folds
    take the sparse one. The share of the final model is the expected one, where it is sparse as
    often as a fold is.
    """
    X, y, telling = table
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)
    trains = [train for train, _ in splits]
    dense = np.array([svm_scores(X[own], y[own], "l2", 0.003) for own in trains])
    sparse = np.array([svm_scores(X[own], y[own], "l1", 0.1) for own in trains])
    on_all = {"l2": svm_scores(X, y, "l2", 0.003), "l1": svm_scores(X, y, "l1", 0.1)}
    firsts = {name: np.argsort(-row, kind="stable") for name, row in on_all.items()}
    models = shares(firsts, telling)
    for n_sparse in mixtures:
        scores = np.vstack([sparse[:n_sparse], dense[n_sparse:]])
        ranks = np.array([selection_ranks(row) for row in scores])
        weight = n_sparse / folds
        final = weight * models["l1"] + (1 - weight) * models["l2"]
        for n in sizes:
            row = {"folds": folds, "sparse winners": n_sparse, "N": n, FINAL: final}
            rankings = Rankings(scores, ranks, n)
            found = {name: order(rule, rankings) for name, rule in WIDE_RULES.items()}
            yield row | shares(found, telling)


def svm_scores(X: FloatArray, y: LabelArray, penalty: str, C: float) -> FloatArray:
    """Scores of the features by one linear SVM on z-scores."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    svm = LinearSVC(penalty=penalty, C=C, dual=penalty == "l2", random_state=0)
    return np.abs(svm.fit(X, y).coef_[0])


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """Write rows as they come."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table: csv.DictWriter[str] | None = None
        for row in rows:
            if table is None:
                table = csv.DictWriter(file, list(row), lineterminator="\n")
                table.writeheader()
            table.writerow({k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()})
            file.flush()


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--wide", type=int, default=3, help="seeds of the tables of 8000 features")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    write(arguments.output / "mixed.csv", mixed(arguments.wide))
    write(arguments.output / "simulated.csv", simulated(arguments.seeds))
    write(arguments.output / "expression.csv", expression(arguments.wide))


if __name__ == "__main__":
    main()
