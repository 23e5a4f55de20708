"""The study that init drafts beside three scripts of scikit-learn, on the same outer folds.

RAYSEL_DATA=<folder> OPENBLAS_NUM_THREADS=1 python experiments/claims/defaults/run.py [--half
looked-at|held-back] [--data NAME ...] [--methods NAME ...] [--anew]

Each pair of data set and method is a row of results.csv beside this file, of which table.md is
written after each. A row that is there is kept, unless it was computed from something else (another
draft, other folds or another metric), so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data_sets import DATA_SETS, HELD_BACK, LOOKED_AT, Samples, facts, write
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from table import write_table

import raysel
from raysel.core.files import atomic_write
from raysel.execution.serial import SerialExecutor
from raysel.run.in_memory import run_in_memory
from raysel.study.definition import Study

HERE = Path(__file__).parent
COLUMNS = [
    "data",
    "half",
    "samples",
    "columns",
    "classes",
    "telling",
    "metric",
    "ratio",
    "method",
    "scores",
]
COLUMNS += ["recovered", "cpu_seconds", "details", "of"]
#: Inner folds of the scripts.
INNER = 3


class Found(NamedTuple):
    """What a method found: test score on each outer fold, best columns on all samples, and what
    it chose.
    """

    scores: list[float]
    best: list[int]
    details: str = ""


def script(steps: list[tuple[str, Any]], space: dict[str, list[Any]], metric: str) -> BaseEstimator:
    """Median imputation, z-scores and a model, tuned by cross-validation: fifteen lines of
    scikit-learn.
    """
    pipeline = Pipeline(
        [("impute", SimpleImputer(strategy="median")), ("scale", StandardScaler()), *steps]
    )
    folds = StratifiedKFold(INNER, shuffle=True, random_state=0)
    return GridSearchCV(pipeline, space, cv=folds, scoring=metric)


def filtered_svm(n_columns: int, metric: str) -> BaseEstimator:
    """F-test and linear SVM, both tuned."""
    numbers = [k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500) if k < n_columns]
    steps = [("select", SelectKBest(f_classif)), ("model", LinearSVC(random_state=0))]
    return script(steps, {"select__k": [*numbers, "all"], "model__C": [0.01, 0.1, 1.0]}, metric)


def sparse_logistic(_: int, metric: str) -> BaseEstimator:
    """Logistic regression with an l1 penalty, one class against the rest."""
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)
    return script(
        [("model", OneVsRestClassifier(model))],
        {"model__estimator__C": [0.03, 0.1, 0.3, 1.0, 10.0]},
        metric,
    )


def forest(_: int, metric: str) -> BaseEstimator:
    """Random forest of 300 trees."""
    return script(
        [("model", RandomForestClassifier(300, random_state=0))],
        {"model__max_features": ["sqrt"]},
        metric,
    )


SCRIPTS: dict[str, Callable[[int, str], BaseEstimator]] = {
    "filter-svm": filtered_svm,
    "l1-logistic": sparse_logistic,
    "forest": forest,
}


def importances(pipeline: Pipeline) -> np.ndarray:
    """Importance of each column in a fitted script."""
    model, selector = pipeline[-1], pipeline.named_steps.get("select")
    if selector is not None:
        return np.nan_to_num(selector.scores_)
    if hasattr(model, "feature_importances_"):
        return model.feature_importances_
    return np.linalg.norm([one.coef_[0] for one in model.estimators_], axis=0)


def scripted(name: str, samples: Samples, folds: list[Any], metric: str) -> Found:
    """Score a script on the outer folds, and fit it to all samples for its best columns."""
    search, scorer = SCRIPTS[name](samples.X.shape[1], metric), get_scorer(metric)
    if len(search.param_grid) == 1 and len(next(iter(search.param_grid.values()))) == 1:
        search = search.estimator  # nothing to tune
    X, y = samples.X, samples.y
    scores = [
        float(scorer(search.fit(X[fold.train], y[fold.train]), X[fold.test], y[fold.test]))
        for fold in folds
    ]
    if not samples.telling:
        return Found(scores, [])
    search.fit(X, y)
    values = importances(getattr(search, "best_estimator_", search))
    return Found(scores, np.argsort(-values, kind="stable")[: len(samples.telling)].tolist(), "")


def drafted(samples: Samples, study: Study) -> Found:
    """Run a drafted study unedited, in this process and in memory."""
    result = run_in_memory(study, SerialExecutor(study))
    best = ranked(result, samples)
    chosen = [f"{refit.n_features} ({refit.name})" for refit in result.outer]
    return Found(result.test_scores, best, "; ".join(chosen))


def ranked(result: Any, samples: Samples) -> list[int]:
    """Best columns of the final model, as many as tell the classes."""
    if not samples.telling:
        return []
    frame = result.ranking().to_frame()
    frame = (
        frame[frame["score"] > 0].sort_values("rank")["feature"].tolist()[: len(samples.telling)]
    )
    place = {
        name: i
        for i, name in enumerate(samples.names or [f"x{i}" for i in range(samples.X.shape[1])])
    }
    return [place.get(name, -1) for name in frame]


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def cpu_seconds() -> float:
    """CPU seconds of this process and those that it started."""
    return sum(os.times()[:4])


def identity(method: str, samples: Samples, study: Study) -> str:
    """Short hash of what a row is computed from: samples, outer folds and metric, and the draft
    itself.
    """
    digest = hashlib.sha256(
        json.dumps([str(label) for label in samples.y]).encode() + samples.X.tobytes()
    )
    for fold in study.plan.outer:
        digest.update(fold.train.tobytes() + fold.test.tobytes())
    digest.update(
        (study.config.evaluation.metric if method in SCRIPTS else study.config.hash).encode()
    )
    return digest.hexdigest()[:12]


def measure(
    data: str, methods: list[str], known: Mapping[tuple[str, str], Any]
) -> Iterator[dict[str, Any]]:
    """Measure methods on a data set, unless a known row is of the same."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of columns that are constant in a fold, and of LinearSVC's iterations
        samples = write(data, Path(folder))
        started = cpu_seconds()
        draft = raysel.init_study(samples.source)
        study = Study.prepare(draft.config)
        folds, metric = list(study.plan.outer), draft.config.evaluation.metric
        drafting = cpu_seconds() - started
        ratio = float(np.mean([len(fold.test) / len(fold.train) for fold in folds]))
        common = {
            "data": data,
            "half": "looked at" if DATA_SETS[data].looked_at else "held back",
            **facts(samples),
        }
        common |= {
            "telling": len(samples.telling) or "",
            "metric": metric,
            "ratio": round(ratio, 4),
        }
        for method in methods:
            of, started = identity(method, samples, study), cpu_seconds()
            if known.get((data, method), {}).get("of") == of:
                continue
            if method in SCRIPTS:
                found, spent = scripted(method, samples, folds, metric), 0.0
            else:
                found, spent = drafted(samples, study), drafting
            spent += cpu_seconds() - started
            recovered = len(set(found.best) & samples.telling) if samples.telling else ""
            yield common | {
                "method": method,
                "scores": " ".join(f"{score:.4f}" for score in found.scores),
                "recovered": recovered,
                "cpu_seconds": round(spent, 1),
                "details": found.details,
                "of": of,
            }


def read_rows(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows that were measured before, by data set and method."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(row["data"], row["method"]): row for row in csv.DictReader(file)}


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Write the rows in the order of the data sets and methods, and their table."""
    methods = ["draft", *SCRIPTS]
    rows.sort(key=lambda row: (list(DATA_SETS).index(row["data"]), methods.index(row["method"])))
    with (
        atomic_write(HERE / "results.csv") as file,
        file.open("w", newline="", encoding="utf-8") as lines,
    ):
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_table(rows, HERE / "table.md")


def main() -> None:
    """Measure what is asked for, write the rows and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--half",
        choices=("looked-at", "held-back"),
        help="one half of the data sets (default: both)",
    )
    parser.add_argument("--data", nargs="+", choices=DATA_SETS, metavar="NAME", help="data sets")
    parser.add_argument(
        "--methods", nargs="+", choices=("draft", *SCRIPTS), default=["draft", *SCRIPTS]
    )
    parser.add_argument("--anew", action="store_true", help="measure again what is there")
    arguments = parser.parse_args()
    halves = {"looked-at": LOOKED_AT, "held-back": HELD_BACK, None: DATA_SETS}
    rows = read_rows(HERE / "results.csv")
    for data in arguments.data or halves[arguments.half]:
        for row in measure(data, arguments.methods, {} if arguments.anew else rows):
            rows[data, row["method"]] = row
            print(
                data,
                row["method"],
                row["scores"],
                row["recovered"],
                row["cpu_seconds"],
                row["details"],
                flush=True,
            )
            write_rows(list(rows.values()))


if __name__ == "__main__":
    main()
