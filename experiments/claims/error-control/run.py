"""False selections of stability selection on data without signal against their bounds, and power
on planted data.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from raysel.config import config_from_dict
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Modalities
from raysel.data.synthetic import make_matrix_classification, make_multimodal_classification
from raysel.evaluation.plan import NestedPlan
from raysel.results.stability import StabilitySelectionResult
from raysel.run.pieces import Pieces
from raysel.run.stability import count_selections, rank_on_half
from raysel.study.definition import Study

#: Number of halves, as by default, and thresholds besides the default one.
HALVES, THRESHOLDS = 100, (None, 0.6, 0.75, 0.9)
Draw = Callable[[int], tuple[Dataset, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """Data that are drawn anew for each run, and a method.

    ``exchangeable`` says that no feature differs from another one, so that each has the selection
    probability q / p.
    """

    name: str
    draw: Draw
    solver: str
    params: Mapping[str, Any]
    scaling: str
    top: int
    runs: int
    exchangeable: bool = False


def noise(layout: Any, n_samples: int = 120) -> Draw:
    """Independent normal features and three classes that say nothing."""

    def draw(run: int) -> tuple[Dataset, np.ndarray]:
        X = np.random.default_rng(run).standard_normal((n_samples, layout.n_features))
        return Dataset(X, np.arange(n_samples) % 3, layout), np.zeros(layout.n_features, dtype=bool)

    return draw


def permuted_digits(run: int) -> tuple[Dataset, np.ndarray]:
    """200 of scikit-learn's digits with permuted labels: correlated pixels of unequal variance."""
    rng = np.random.default_rng(run)
    X, y = load_digits(return_X_y=True)
    chosen = rng.choice(len(y), 200, replace=False)
    return Dataset(X[chosen], rng.permutation(np.arange(200) % 4), Matrix(8, 8)), np.zeros(
        64, dtype=bool
    )


def planted_matrix(run: int) -> tuple[Dataset, np.ndarray]:
    """Matrices whose classes differ in a block of 3 x 3 cells."""
    return make_matrix_classification(120, (8, 8), 3, 9, 3.0, run)


def planted_modalities(run: int) -> tuple[Dataset, np.ndarray]:
    """Modalities of which two inform."""
    sizes, informative = {"a": 60, "b": 60, "c": 80}, {"a": 6, "b": 4}
    return make_multimodal_classification(sizes, informative, 120, 3, 2.5, random_state=run)


PARTS = Modalities({"a": 20, "b": 20, "c": 20})
SMR, SMML = {"alpha": 0.1}, {"gamma1": 0.05, "gamma2": 0.05}
NULL = (
    Case("matrix 8 x 8, SMR", noise(Matrix(8, 8)), "smr", SMR, "none", 8, 100, exchangeable=True),
    Case(
        "3 modalities of 20, SMML", noise(PARTS), "smml", SMML, "zscore", 6, 50, exchangeable=True
    ),
    Case(
        "3 modalities, 200 features, Fisher score",
        noise(Modalities({"a": 60, "b": 60, "c": 80})),
        "fisher_score",
        {},
        "zscore",
        20,
        200,
        exchangeable=True,
    ),
    Case(
        "64 features, random ranking",
        noise(Matrix(8, 8)),
        "random_ranking",
        {},
        "none",
        8,
        200,
        exchangeable=True,
    ),
    Case(
        "digits, permuted labels, Fisher score", permuted_digits, "fisher_score", {}, "none", 8, 200
    ),
    Case("digits, permuted labels, SMR", permuted_digits, "smr", SMR, "none", 8, 40),
)
PLANTED = (
    Case("matrix 8 x 8, 9 of 64 inform, SMR", planted_matrix, "smr", SMR, "none", 9, 100),
    Case(
        "3 modalities, 10 of 200 inform, Fisher score",
        planted_modalities,
        "fisher_score",
        {},
        "zscore",
        10,
        100,
    ),
)


def select(case: Case, run: int) -> tuple[StabilitySelectionResult, np.ndarray]:
    """Run stability selection once and return it with the mask of the informative features."""
    dataset, informative = case.draw(run)
    raw = {
        "name": "null",
        "seed": run,
        "dataset": {"path": "none", "scaling": case.scaling},
        "solver": {"name": case.solver},
        "evaluation": {"estimator": "knn", "n_features": [case.top]},
    }
    plan = NestedPlan.make(dataset.y, outer=2, inner=2, repeats=1, groups=None, seed=run)
    study = Study(config_from_dict(raw), dataset, plan, ())
    values = {
        number: rank_on_half(case.params, dataset.n_features, study, number)
        for number in range(HALVES)
    }
    return count_selections(Pieces(values, {}), case.top, HALVES, dataset.constant, {}), informative


def mean(values: list[float]) -> list[str]:
    """Mean and its standard error."""
    return [f"{np.mean(values):.3f}", f"{np.std(values, ddof=1) / len(values) ** 0.5:.3f}"]


def null(case: Case) -> list[list[object]]:
    """Number of false selections at each threshold; a feature counts unless half of the samples
    select it oftener.
    """
    found = [select(case, run)[0] for run in range(case.runs)]
    q, p = max(one.q for one in found), min(one.p for one in found)
    often = np.mean([one.probability for one in found], axis=0) > q / p
    counted = np.ones_like(often) if case.exchangeable else ~often
    rows = []
    for threshold in THRESHOLDS:
        chosen = [one.at(threshold) for one in found]
        false = [float((one.selected & counted).sum()) for one in chosen]
        first = chosen[0]
        unimodal = "" if first.unimodal_bound is None else f"{first.unimodal_bound:.3f}"
        at = f"{first.threshold:.2f}{' (default)' if threshold is None else ''}"
        bounds = [unimodal, f"{first.simple_bound:.3f}"]
        size, n_often = (
            f"{np.mean([one.selected.sum() for one in chosen]):.3f}",
            int((~counted).sum()),
        )
        rows.append([case.name, case.runs, f"{q}/{p}", at, *mean(false), *bounds, size, n_often])
    return rows


def power(case: Case) -> list[list[object]]:
    """Informative and other features in the set at the default threshold, and in the top of a
    single half.
    """
    rows: dict[str, list[float]] = {
        name: [] for name in ("size", "informative", "others", "others in a half")
    }
    for run in range(case.runs):
        found, informative = select(case, run)
        found = found.at(None)
        rows["size"].append(float(found.selected.sum()))
        rows["informative"].append(float((found.selected & informative).sum()))
        rows["others"].append(float((found.selected & ~informative).sum()))
        rows["others in a half"].append(float(found.probability[~informative].sum()))
    first = [
        case.name,
        case.runs,
        f"{found.q}/{found.p}",
        f"{found.threshold:.2f}",
        f"{found.unimodal_bound:.3f}",
    ]
    return [
        [
            *first,
            int(informative.sum()),
            *(cell for values in rows.values() for cell in mean(values)),
        ]
    ]


FALSE_COLUMNS = [
    "case",
    "runs",
    "q/p",
    "threshold",
    "false selections: mean",
    "SE",
    "unimodal bound",
    "simple bound",
]
FALSE_COLUMNS += ["size of the set: mean", "features selected oftener than q/p"]
POWER_COLUMNS = ["case", "runs", "q/p", "threshold", "unimodal bound", "informative features"]
POWER_COLUMNS += [
    "size of the set: mean",
    "SE",
    "informative in the set: mean",
    "SE",
    "others in the set: mean",
    "SE",
]
POWER_COLUMNS += ["others in the top of a half: mean", "SE"]
TABLES = {
    "false_selections.csv": (NULL, null, FALSE_COLUMNS),
    "power.csv": (PLANTED, power, POWER_COLUMNS),
}


def main() -> None:
    """Write the tables."""
    for name, (cases, compute, columns) in TABLES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with Path(__file__).with_name(name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for case in cases:
                for row in compute(case):
                    writer.writerow(row)
                    print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
