"""P values of the permutation test of studies on null data, of several kinds, and its power on
planted data.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from raysel.config import config_from_dict
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Tensor
from raysel.data.loading import save_dataset
from raysel.data.synthetic import make_matrix_classification, make_multimodal_classification
from raysel.evaluation.plan import derived_seed
from raysel.numerics.permutation import feature_p_values
from raysel.run import permutation as parts
from raysel.study.definition import Study

PERMUTATIONS, LEVEL, FIRST_SEED = 19, 0.05, 1000
SMR = {"name": "smr", "params": {"max_iter": 5}, "space": {"alpha": [0.01, 0.1, 0.3]}}
SVM = {"name": "linear_svm", "params": {"penalty": "l1"}, "space": {"C": [0.1, 1.0]}}
SMML = {
    "name": "smml",
    "params": {"tol": 1e-2},
    "space": {"gamma1": [0.1, 0.3], "gamma2": [0.0, 0.1]},
}


def matrices(seed: int) -> tuple[Dataset, np.ndarray]:
    """40 matrices of 4 x 4 cells of noise in two classes."""
    dataset, mask = make_matrix_classification(40, (4, 4), 2, 4, random_state=seed)
    return replace(
        dataset, X=np.random.default_rng(seed).normal(size=dataset.X.shape)
    ), np.zeros_like(mask)


def planted(seed: int) -> tuple[Dataset, np.ndarray]:
    """80 matrices of 6 x 6 cells in two classes, which differ in four cells."""
    return make_matrix_classification(80, (6, 6), 2, 4, random_state=seed)


def modalities(seed: int) -> tuple[Dataset, np.ndarray]:
    """45 samples of two modalities in three classes, without information; noise is shared within
    a modality.
    """
    return make_multimodal_classification(
        {"image": 12, "sound": 8}, {}, 45, shared=0.5, random_state=seed
    )


def groups(seed: int) -> tuple[Dataset, np.ndarray]:
    """12 groups of 3 to 5 samples that are like each other; all samples of a group have one of
    two labels.
    """
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(12), rng.integers(3, 6, 12))
    X = 2.0 * rng.normal(size=(12, 16))[owner] + rng.normal(size=(len(owner), 16))
    y = rng.permutation(np.arange(12) % 2)[owner]
    return Dataset(X, y, Matrix(4, 4), groups=owner), np.zeros(16, dtype=bool)


def unbalanced(seed: int) -> tuple[Dataset, np.ndarray]:
    """40 samples of 12 features of noise, 26 of them in the first of two classes."""
    X = np.random.default_rng([seed, 1]).normal(size=(40, 12))
    return Dataset(X, np.repeat([0, 1], [26, 14]), Tensor((12,))), np.zeros(12, dtype=bool)


def eight_classes(seed: int) -> tuple[Dataset, np.ndarray]:
    """320 samples of 24 features in eight classes, whose means differ in four features."""
    rng, y = np.random.default_rng([seed, 2]), np.arange(320) % 8
    X = rng.normal(size=(320, 24))
    X[:, :4] += rng.normal(size=(8, 4))[y]
    return Dataset(X, y, Tensor((24,))), np.arange(24) < 4


def rare_class(seed: int) -> tuple[Dataset, np.ndarray]:
    """300 samples of 21 features, on four of which depends which 30 are in the second class."""
    rng = np.random.default_rng([seed, 3])
    X = rng.normal(size=(300, 21))
    signal = X[:, :4].sum(axis=1) + rng.logistic(size=300)
    return Dataset(X, (signal > np.sort(signal)[-31]).astype(int), Tensor((21,))), np.arange(21) < 4


def folds_stay(study: Study, number: int, seed: int) -> Study:
    """The study with labels permuted while the folds stay at the samples: what `permuted_study`
    does not do.
    """
    rng = np.random.default_rng(derived_seed(seed, "permutation", number))
    y = study.dataset.y if number == 0 else rng.permutation(study.dataset.y)
    return replace(study, dataset=replace(study.dataset, y=y))


@dataclass(frozen=True)
class Case:
    """Studies of one kind."""

    make: Callable[[int], tuple[Dataset, np.ndarray]]
    solver: dict[str, Any]
    runs: int
    classifier: str = "knn"
    retune: bool = False
    permuted: Callable[[Study, int, int], Study] = parts.permuted_study


CASES = {
    "matrix": Case(matrices, SMR, 120),
    "modalities": Case(modalities, SMML, 100),
    "groups, labels constant within": Case(groups, SMR, 100),
    "matrix, searched again": Case(matrices, SMR, 30, retune=True),
    "unbalanced table, searched again": Case(unbalanced, SVM, 400, retune=True),
    "matrix, folds stay at the samples": Case(matrices, SMR, 100, permuted=folds_stay),
    "majority class, folds move": Case(
        matrices, {"name": "smr", "params": {"alpha": 9.0, "max_iter": 3}}, 60
    ),
    "majority class, folds stay": Case(
        matrices, {"name": "smr", "params": {"alpha": 9.0, "max_iter": 3}}, 60, permuted=folds_stay
    ),
    "filter": Case(matrices, {"name": "fisher_score"}, 100),
    "planted matrix, filter": Case(planted, {"name": "fisher_score"}, 20),
    "planted matrix, linear SVM": Case(planted, {"name": "linear_svm", "params": {"C": 0.01}}, 20),
    "planted matrix": Case(planted, SMR, 20),
    "eight classes, filter": Case(eight_classes, {"name": "fisher_score"}, 60),
    "eight classes, linear SVM of C 0.01": Case(
        eight_classes, {"name": "linear_svm", "params": {"C": 0.01}}, 60
    ),
    "eight classes, linear SVM of C 1": Case(
        eight_classes, {"name": "linear_svm", "params": {"C": 1.0}}, 60
    ),
    "rare class, filter": Case(rare_class, {"name": "fisher_score"}, 60),
    "rare class, linear SVM": Case(
        rare_class, {"name": "linear_svm", "params": {"C": 0.3, "penalty": "l1"}}, 60
    ),
}


def study_of(dataset: Dataset, case: Case, folder: Path, seed: int) -> Study:
    """A study of a data set, prepared."""
    path = folder / "data.parquet"
    save_dataset(dataset, path)
    raw = {
        "name": "null",
        "seed": seed,
        "dataset": {"path": str(path)},
        "solver": case.solver,
        "evaluation": {"classifier": case.classifier, "n_features": [2, 4, 8]},
        "cv": {
            "outer": 3,
            "inner": 2,
            **({"groups": "groups"} if dataset.groups is not None else {}),
        },
        "search": {"executor": "serial"},
    }
    return Study.prepare(config_from_dict(raw))


def one_run(
    case: Case, seed: int, folder: Path
) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray]:
    """Permutations above and equal to the honest score; p values of the features; mask of
    planted ones.
    """
    dataset, mask = case.make(seed)
    study = study_of(dataset, case, folder, seed)
    parts.permuted_study = case.permuted
    chosen = parts._search(study)  # noqa: SLF001
    means, scores = [], []
    for number in range(PERMUTATIONS + 1):
        held = None if case.retune and number else chosen
        found = parts.permuted_scores(study, number, seed=seed, chosen=held, ranks=True)
        means.append(np.mean(list(found["scores"].values())))
        scores.append(parts.unpacked(found["feature_scores"]))
    p = feature_p_values(scores[0], scores[1:], by_share=case.solver["name"] != "fisher_score")
    true, permuted = means[0], np.round(means[1:], 10)
    true = round(true, 10)
    return (
        int((permuted > true).sum()),
        int((permuted == true).sum()),
        p.p_value,
        p.single_step,
        mask,
    )


def main(wanted: str = "") -> None:
    """Run the cases whose name contains a word and write a line of the table for each."""
    warnings.simplefilter("ignore")
    for name, case in CASES.items():
        if wanted and name.split(",")[0] != wanted:
            continue
        started, rng = time.process_time(), np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as folder:
            runs = [one_run(case, FIRST_SEED + seed, Path(folder)) for seed in range(case.runs)]
        above, equal = np.array([run[:2] for run in runs]).T
        reported = (1 + above + equal) / (1 + PERMUTATIONS)
        # With ties broken at random, p is uniform if the test is exact.
        broken = (above + rng.random(len(runs)) * (1 + equal)) / (1 + PERMUTATIONS)
        noise = [run[2][~run[4]] for run in runs]
        false_alarm = np.mean([(run[3][~run[4]] <= LEVEL + 1e-9).any() for run in runs])
        found = [(run[3][run[4]] <= LEVEL + 1e-9).mean() for run in runs if run[4].any()]
        row = [
            name,
            len(runs),
            f"{(reported <= LEVEL + 1e-9).mean():.3f}",
            f"{(reported <= 0.2 + 1e-9).mean():.3f}",
            f"{broken.mean():.3f}",
            f"{stats.kstest(broken, 'uniform').pvalue:.2g}",
            f"{np.mean(np.concatenate(noise) <= LEVEL + 1e-9):.3f}",
            f"{false_alarm:.3f}",
            f"{np.mean(found):.3f}" if found else "",
            f"{time.process_time() - started:.0f}",
        ]
        print(row, flush=True)
        with Path(__file__).with_suffix(".csv").open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow([name, FIRST_SEED, *row[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
