"""The nearest neighbour and a linear SVM as what scores a ranking by the F-test, on the same folds
of each data set.

Run: RAYSEL_DATA=<folder> OPENBLAS_NUM_THREADS=1 python experiments/claims/defaults/estimators.py;
it adds to estimators.csv.
"""

from __future__ import annotations

import contextlib
import csv
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from data_sets import DATA_SETS

from raysel.config import load_config
from raysel.execution.serial import SerialExecutor
from raysel.run.in_memory import run_in_memory
from raysel.study.definition import Study
from raysel.study.draft.choices import feature_numbers

#: What is compared, each with its own defaults: one neighbour, and C of 0.01 to 10.
ESTIMATORS = ("knn", "linear_svm")
#: Data sets in the order of their cost; others have more columns, or are prepared first.
NAMES = (
    *("iris", "wine", "5 of 200", "20 of 200, correlated", "100 of 200, 4 to 1"),
    *("breast_cancer", "mfeat, Fourier", "digits, 30 a digit", "100 of 2000, correlated"),
    *("20 of 2000, correlated, 4 to 1", "USPS, 30 a digit", "MSRC-v1, GIST", "UMIST, 10 persons"),
    *("ORL, 10 persons", "mfeat, 6 modalities", "MSRC-v1, 6 modalities"),
)


def rows(names: Iterable[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each data set: its layout, and the mean accuracy over five outer folds by
    each estimator.
    """
    for name in names:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            samples = DATA_SETS[name].write(Path(folder))
            n_columns = samples.X.shape[1]
            place = "path" if Path(samples.source).suffix else "source"
            scores = {}
            for estimator in ESTIMATORS:
                config = {
                    "name": "estimators",
                    "dataset": {place: samples.source},
                    "solver": {"name": "fisher_score"},
                    "evaluation": {
                        "estimator": estimator,
                        "n_features": feature_numbers(n_columns),
                        "choose_n": "best",
                        "references": False,
                    },
                    "cv": {"outer": 5, "inner": 3, "final": False},
                    "search": {"executor": "serial"},
                }
                study = Study.prepare(load_config(config))
                result = run_in_memory(study, SerialExecutor(study))
                scores[estimator] = result.test_scores
            means = {estimator: float(np.mean(values)) for estimator, values in scores.items()}
            yield {
                "data": name,
                "layout": study.dataset.layout.noun,
                "samples": len(samples.y),
                "columns": n_columns,
                **{estimator: f"{mean:.3f}" for estimator, mean in means.items()},
                "linear_svm minus knn": f"{means['linear_svm'] - means['knn']:+.3f}",
                "folds in which linear_svm is ahead": int(
                    np.sum(np.greater(scores["linear_svm"], scores["knn"]))
                ),
            }


def main() -> None:
    """Add the row of each data set that estimators.csv lacks, as soon as it is known."""
    path = Path(__file__).with_name("estimators.csv").absolute()
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    done = [row["data"] for row in csv.DictReader(known.splitlines())]
    for row in rows([name for name in NAMES if name not in done]):
        with path.open("a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(row), lineterminator="\n")
            if not path.stat().st_size:
                table.writeheader()
            table.writerow(row)


if __name__ == "__main__":
    main()
