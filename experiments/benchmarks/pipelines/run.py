"""The same nested search by scikit-learn and by raysel: CPU seconds and peak memory.

python -m experiments.benchmarks.pipelines.run --repeats 5
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn.model_selection import GridSearchCV, cross_val_score

from experiments.benchmarks.pipelines.cases import CASES, Case, Size
from experiments.timing import peak_mib
from raysel import NestedSearch, init_study, run_study

#: Scores, CPU seconds, and MiB of memory at most.
Figures = tuple[list[float], float, float]


def by_scikit_learn(case: Case) -> list[float]:
    """Test scores of ``cross_val_score``, and the search on all samples, which gives the model."""
    outer, inner = case.splitters
    search = GridSearchCV(case.estimator, case.grid, cv=inner, scoring=case.metric)
    scores = cross_val_score(search, case.X, case.y, cv=outer, scoring=case.metric)
    search.fit(case.X, case.y)
    return list(scores.tolist())


def by_raysel(case: Case) -> list[float]:
    """Test scores of a nested search, which ends with the model, too."""
    if case.is_drafted:
        return by_draft(case)
    outer, inner = case.splitters
    search = NestedSearch(
        case.estimator, case.grid, outer=outer, inner=inner, metric=case.metric
    ).fit(case.X, case.y)
    return list(search.scores_.tolist())


def by_draft(case: Case) -> list[float]:
    """Test scores of the study that `init_study` drafts for a file of the samples, with report."""
    with TemporaryDirectory() as folder:
        path, study = Path(folder, "table.parquet"), Path(folder, "study.yaml")
        columns = {f"g{number}": values for number, values in enumerate(case.X.T)}
        pa.parquet.write_table(pa.table(columns | {"y": case.y}), path)
        init_study(path, output=study)
        changes = {"output": f"{folder}/study", "search.executor": "serial"}
        result = run_study(study, changes | {"tracking.mlflow": False})
        return list(result.test_scores)


WAYS = {"scikit-learn": by_scikit_learn, "raysel": by_raysel}


def measure(way: str, name: str, numbers: Iterable[str]) -> None:
    """Print the figures of a search in this process; its seconds are without imports."""
    make, _ = CASES[name]
    case = make(Size(*map(int, numbers)))
    warnings.simplefilter("ignore")
    begun = time.process_time()
    scores = WAYS[way](case)
    seconds = time.process_time() - begun
    print(json.dumps([scores, seconds, peak_mib()]))


def run(way: str, name: str, size: Size) -> Figures:
    """Measure in a process of its own."""
    numbers = [str(getattr(size, field.name)) for field in fields(size)]
    module = "experiments.benchmarks.pipelines.run"
    command = [sys.executable, "-m", module, "--measure", way, name, *numbers]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    scores, seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return scores, seconds, peak


def compare(name: str, size: Size, repeats: int) -> dict[str, tuple[float, float]]:
    """Return median seconds and memory of both ways, by turns; stop unless they score the same."""
    runs: dict[str, list[Figures]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way, figures in runs.items():
            figures.append(run(way, name, size))
    theirs, ours = (figures[0][0] for figures in runs.values())
    if name != "drafted" and not all(map(math.isclose, theirs, ours)):
        raise SystemExit(f"{name}: the ways have different scores: {theirs}, {ours}")
    return {
        way: (median(seconds for _, seconds, _ in figures), median(peak for *_, peak in figures))
        for way, figures in runs.items()
    }


def print_row(name: str, size: Size, repeats: int) -> tuple[float, float]:
    """Print the row of a case; return the CPU seconds of both ways."""
    found = compare(name, size, repeats)
    (their_seconds, their_peak), (our_seconds, our_peak) = found.values()
    told = [f"{seconds:.1f} s, {peak:.0f} MiB" for seconds, peak in found.values()]
    ratios = [f"{our_seconds / their_seconds:.2f}", f"{our_peak / their_peak:.2f}"]
    shape = f"{size.n_samples} x {size.n_columns}, {size.n_configurations}"
    print(f"| {name} | {shape} | {' | '.join(told + ratios)} |", flush=True)
    return their_seconds, our_seconds


def print_growth(name: str, repeats: int) -> None:
    """Print how the seconds grow from a quarter of each part of the case's size to all of it."""
    _, size = CASES[name]
    of_all = print_row(name, size, repeats)
    for field in fields(size):
        most = getattr(size, field.name)
        numbers = [max(1, most // 4), max(1, most // 2)]
        sizes = [replace(size, **{field.name: number}) for number in numbers]
        seconds = [*(print_row(name, smaller, repeats) for smaller in sizes), of_all]
        powers, _ = np.polyfit(np.log([*numbers, most]), np.log(seconds), 1)
        told = ", ".join(f"{way} {power:.2f}" for way, power in zip(WAYS, powers, strict=True))
        print(f"exponents of {field.name}: {told}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row a case, or how cases grow."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--columns", type=int, nargs="+", help="other numbers of columns")
    parser.add_argument("--growth", action="store_true", help="with parts of the size")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        way, name, *numbers = chosen.measure
        measure(way, name, numbers)
        return
    print("| case | samples x columns, configurations | scikit-learn | raysel | CPU | memory |")
    print("|---|---|---|---|---|---|")
    for name in chosen.cases:
        _, size = CASES[name]
        if chosen.growth:
            print_growth(name, chosen.repeats)
            continue
        for n_columns in chosen.columns or [size.n_columns]:
            print_row(name, replace(size, n_columns=n_columns), chosen.repeats)


if __name__ == "__main__":
    main()
