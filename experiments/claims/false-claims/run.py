"""What raysel says of data that tell nothing, or less than they seem to: one line for each trap.

Run: python experiments/claims/false-claims/run.py; it writes claims.csv beside itself (45 s of CPU time).
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from raysel.core.arrays import FloatArray, IntArray
from raysel.execution.serial import SerialExecutor
from raysel.results import texts
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.run.api import prepare_study

#: Features of the samples, their labels, and what the study's configuration has besides the common keys.
Data = tuple[FloatArray, IntArray, Mapping[str, Any]]


#: Number of studies of each trap.
SEEDS = 5


class Trap(NamedTuple):
    """Data, what raysel must say of them, and the test of it."""

    make: Callable[[np.random.Generator], Data]
    expected: str
    holds: Callable[[StudyResult], bool]


class NoUpload:
    """Stands in for the process that uploads to MLflow."""

    def __init__(self, *_: object) -> None:
        pass

    def finish(self, patience: float = 0.0) -> None:
        """Nothing to wait for."""


def verdict(result: StudyResult) -> str:
    """Return the verdict against chance."""
    return result.references["chance"].verdict


def says(word: str) -> Callable[[StudyResult], bool]:
    """Return whether a remark of the result has a word."""
    return lambda result: any(word in remark for remark in result.remarks())


def noise(rng: np.random.Generator) -> Data:
    """Balanced labels that no feature tells."""
    return rng.standard_normal((200, 40)), rng.permutation(np.arange(200) % 2), {}


def imbalance(rng: np.random.Generator) -> Data:
    """170 samples of one class and 30 of the other, that no feature tells."""
    return rng.standard_normal((200, 40)), rng.permutation(np.repeat([0, 1], [170, 30])), {}


def time_series(rng: np.random.Generator) -> Data:
    """Rows of a random walk, with labels in blocks of 30 rows."""
    return rng.standard_normal((240, 20)).cumsum(axis=0), np.repeat(np.arange(8) % 2, 30), {}


def subjects(rng: np.random.Generator) -> Data:
    """40 subjects of 6 adjacent rows each, without a column that names them, and a random label for each subject."""
    X = np.repeat(rng.standard_normal((40, 20)), 6, axis=0) + 0.3 * rng.standard_normal((240, 20))
    return X, np.repeat(rng.permutation(np.arange(40) % 2), 6), {}


def twins(rng: np.random.Generator) -> Data:
    """Every subject measured twice, far apart in the file, and a random label for each subject."""
    X, y = rng.standard_normal((100, 20)), rng.permutation(np.arange(100) % 2)
    order = rng.permutation(200)
    return (
        (np.vstack([X, X]) + 0.05 * rng.standard_normal((200, 20)))[order],
        np.tile(y, 2)[order],
        {},
    )


def draws(_: np.random.Generator) -> Data:
    """Digits, ten draws of 4 training samples a class: far above chance."""
    X, y = load_digits(return_X_y=True)
    return (
        X[:600],
        y[:600],
        {"cv": {"train_per_class": 4, "repeats": 10, "inner": 2, "final": False}},
    )


def units(_: np.random.Generator) -> Data:
    """Breast cancer, whose columns differ in unit."""
    X, y = load_breast_cancer(return_X_y=True)
    return (
        X,
        y,
        {"solver": {"name": "smr", "params": {"max_iter": 20}, "space": {"alpha": [0.01, 0.1]}}},
    )


def one_range(rng: np.random.Generator) -> Data:
    """Breast cancer with one range for all columns, as the user asks."""
    X, y, keys = units(rng)
    return X, y, {**keys, "dataset": {"scaling": "unit"}}


def random_ranking(rng: np.random.Generator) -> Data:
    """Four of 200 features tell the class, and the features are ranked at random."""
    X, y = rng.standard_normal((200, 200)), np.arange(200) % 2
    X[:, :4] += y[:, None]
    return X, y, {"solver": {"name": "random_ranking"}}


def time_in_blocks(rng: np.random.Generator) -> Data:
    """The random walk, whose blocks of 30 rows are kept together."""
    X, y, _ = time_series(rng)
    return X, y, {"cv": {"outer": 4, "inner": 2, "blocks": {"size": 30}}}


def _beaten(result: StudyResult) -> bool:
    return result.references["f_test"].verdict == "worse"


def _within_bounds(result: StudyResult) -> bool:
    lower, upper = result.interval.lower, result.interval.upper
    return (
        verdict(result) == "better"
        and lower is not None
        and upper is not None
        and 0.2 < lower < upper <= 1.0
    )


TRAPS = {
    "noise": Trap(noise, "not better than chance", lambda r: verdict(r) != "better"),
    "imbalance": Trap(
        imbalance, "not better than the most frequent class", lambda r: verdict(r) != "better"
    ),
    "noise, stability": Trap(
        noise,
        "agreement at the level of permuted labels",
        lambda r: "it is not above that" in texts.noise_level(r.facts),
    ),
    "time": Trap(time_series, "a remark on rows like their neighbours", says("row")),
    "time, in blocks": Trap(
        time_in_blocks, "not better than chance", lambda r: verdict(r) != "better"
    ),
    "subjects": Trap(subjects, "a remark on rows like their neighbours", says("row")),
    "twins": Trap(twins, "a remark on nearly equal samples", says("equal")),
    "draws": Trap(draws, "better than chance, by an interval within 0 to 1", _within_bounds),
    "units": Trap(units, "zscore by default", lambda r: r.config["dataset"]["scaling"] == "zscore"),
    "one range": Trap(
        one_range, "a remark on columns of different scales", says("standard deviations differ")
    ),
    "random ranking": Trap(random_ranking, "worse than the F-test", _beaten),
}


def study_of(trap: Trap, folder: Path, seed: int) -> StudyResult:
    """Run the study of a trap in a folder."""
    X, y, keys = trap.make(np.random.default_rng(seed))
    config = {
        "name": "trap",
        "seed": seed,
        "solver": {"name": "fisher_score"},
        "evaluation": {"classifier": "knn", "n_neighbors": 5, "n_features": [2, 5, 10]},
        "cv": {"outer": 5, "inner": 3},
        "search": {"executor": "serial"},
        "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
        "pictures": [],
        **keys,
    }
    folder.mkdir()
    study = prepare_study(config, X=X, y=y)
    return course.run(study, folder / "study", SerialExecutor(study), start_upload=NoUpload)


def claims(seeds: int = SEEDS) -> Iterator[dict[str, Any]]:
    """Yield a row for each trap: what is expected, in how many studies it holds, and what raysel says in the first."""
    for name, trap in TRAPS.items():
        with tempfile.TemporaryDirectory() as folder:
            results = [study_of(trap, Path(folder, str(seed)), seed) for seed in range(seeds)]
            n_held = sum(map(trap.holds, results))
            result = results[0]
            chance, f_test = result.references["chance"], result.references["f_test"]
            yield {
                "trap": name,
                "expected": trap.expected,
                "holds": f"{n_held} of {seeds}",
                "score": f"{result.test_mean:.3f}",
                "chance": f"{chance.mean:.3f} ({chance.recorded})",
                "verdict": chance.verdict,
                "against the F-test": f"{f_test.mean:.3f} ({f_test.verdict})",
                "stability": texts.noise_level(result.facts).rpartition(": ")[2],
                "remark on the data": " ".join(result.stored.study.data_remarks),
            }


if __name__ == "__main__":
    with Path(__file__).with_name("claims.csv").open("w", newline="", encoding="utf-8") as file:
        for number, row in enumerate(claims()):
            for target in (file, sys.stdout):
                table = csv.DictWriter(target, list(row), lineterminator="\n")
                if not number:
                    table.writeheader()
                table.writerow(row)
