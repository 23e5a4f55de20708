"""Nested search of wide tables by scikit-learn and by raysel: CPU seconds and peak memory.

python experiments/benchmarks/search-overhead/tables.py --columns 3000 8000 20000 50000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from raysel import NestedSearch

N_SAMPLES = 160
GRID = {"select__k": [10, 100], "svm__C": [0.01, 0.1]}
OUTER, INNER = (StratifiedKFold(3, shuffle=True, random_state=seed) for seed in (0, 1))


def model(first: BaseEstimator) -> Pipeline:
    """What is searched: columns as a step prepares them, scaled, the best of them, and a linear
    SVM.
    """
    rest = [("scale", StandardScaler()), ("select", SelectKBest()), ("svm", LinearSVC())]
    return Pipeline([("columns", first), *rest]).set_params(svm__random_state=0)


def numbers(n_columns: int, *, gaps: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of which ten columns tell the class, and the classes; a share of the cells is
    empty.
    """
    rng = np.random.default_rng(0)
    y = np.arange(N_SAMPLES) % 2
    X = rng.standard_normal((N_SAMPLES, n_columns))
    X[:, :10] += 0.5 * y[:, None]
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def frame(X: np.ndarray) -> pd.DataFrame:
    """The samples with a name for each column."""
    return pd.DataFrame(X, columns=[f"g{number}" for number in range(X.shape[1])])


def by_name(n_columns: int) -> tuple[Any, Any, Pipeline]:
    """A frame of numbers, of which the pipeline takes the columns by name.

    A list of names takes scikit-learn a time that grows with its square, a slice does not.
    """
    X, y = numbers(n_columns)
    step = ColumnTransformer([("numbers", StandardScaler(), slice("g0", f"g{n_columns - 1}"))])
    return frame(X), y, model(step)


def with_text(n_columns: int) -> tuple[Any, Any, Pipeline]:
    """A frame in which one column of a hundred is text."""
    X, y = numbers(n_columns)
    table = frame(X)
    texts = np.random.default_rng(1).choice(list("abcd"), (N_SAMPLES, max(1, n_columns // 100)))
    named = pd.DataFrame(texts, columns=[f"t{number}" for number in range(texts.shape[1])])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [
        ("numbers", StandardScaler(), slice("g0", f"g{n_columns - 1}")),
        ("texts", encoder, list(named.columns)),
    ]
    return pd.concat([table, named], axis=1), y, model(ColumnTransformer(parts))


def gaps_in_frame(n_columns: int) -> tuple[Any, Any, Pipeline]:
    """A frame of which a hundredth of the cells is empty."""
    X, y = numbers(n_columns, gaps=0.01)
    return frame(X), y, model(SimpleImputer())


def gaps_in_array(n_columns: int) -> tuple[Any, Any, Pipeline]:
    """An array of which a hundredth of the cells is empty."""
    X, y = numbers(n_columns, gaps=0.01)
    return X, y, model(SimpleImputer())


CASES: dict[str, Callable[[int], tuple[Any, Any, Pipeline]]] = {
    "by-name": by_name,
    "text": with_text,
    "frame-gaps": gaps_in_frame,
    "array-gaps": gaps_in_array,
}


def by_scikit_learn(X: Any, y: Any, estimator: Pipeline) -> list[float]:
    """Test scores of ``cross_val_score``, and the search on all samples, which gives the model."""
    search = GridSearchCV(estimator, GRID, cv=INNER)
    scores: list[float] = cross_val_score(search, X, y, cv=OUTER).tolist()
    search.fit(X, y)
    return scores


def by_raysel(X: Any, y: Any, estimator: Pipeline) -> list[float]:
    """Test scores of a nested search, which ends with the model, too."""
    search = NestedSearch(estimator, GRID, outer=OUTER, inner=INNER).fit(X, y)
    scores: list[float] = search.scores_.tolist()
    return scores


WAYS = {"scikit-learn": by_scikit_learn, "raysel": by_raysel}


def measure(way: str, case: str, n_columns: int) -> None:
    """Print scores, CPU seconds of the search, and peak memory of this process in MiB."""
    X, y, estimator = CASES[case](n_columns)
    warnings.simplefilter("ignore")
    begun = time.process_time()
    scores = WAYS[way](X, y, estimator)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([scores, seconds, peak]))


def run(way: str, case: str, n_columns: int) -> tuple[list[float], float, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", way, case, str(n_columns)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    scores, seconds, peak = json.loads(done.stdout)
    return scores, seconds, peak


def main() -> None:
    """Print a table of the cases, medians of the repeats; stops unless both ways find the same
    scores.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, nargs="+", default=[3000, 8000, 20_000, 50_000])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        way, case, n_columns = arguments.measure
        measure(way, case, int(n_columns))
        return
    print("| case | columns | scikit-learn | raysel | CPU ratio | memory ratio |")
    print("|---|---|---|---|---|---|")
    for case in arguments.cases:
        for n_columns in arguments.columns:
            spent: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
            found = set()
            for _ in range(arguments.repeats):
                for way, figures in spent.items():
                    scores, *figure = run(way, case, n_columns)
                    found.add(json.dumps(scores))
                    figures.append((figure[0], figure[1]))
            if len(found) > 1:
                raise SystemExit(f"{case}: the ways found different scores: {found}")
            theirs, ours = (
                [median(column) for column in zip(*figures, strict=True)]
                for figures in spent.values()
            )
            told = [f"{seconds:.1f} s, {peak:.0f} MiB" for seconds, peak in (theirs, ours)]
            ratios = [f"{our / their:.2f}" for their, our in zip(theirs, ours, strict=True)]
            print(f"| {case} | {n_columns} | {' | '.join(told + ratios)} |", flush=True)


if __name__ == "__main__":
    main()
