"""A trap: data that tell nothing, or less than they seem to, and what raysel must say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.execution.serial import SerialExecutor
from raysel.results import texts
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.run.api import prepare_study

#: Features of the samples, their labels, and what the configuration has besides the common keys.
Data = tuple[FloatArray, Any, Mapping[str, Any]]

#: What is written of the first seed of a trap; a trap without a study has its words in ``said``.
COLUMNS = (
    "score",
    "chance",
    "verdict",
    "against the F-test",
    "stability",
    "remark on the data",
    "said",
)


class Outcome(NamedTuple):
    """Whether raysel says what it must, and what it says, by column of `COLUMNS`."""

    holds: bool
    said: Mapping[str, str]


@dataclass(frozen=True)
class Trap:
    """What raysel must say, and one attempt with a seed and an empty folder."""

    expected: str
    attempt: Callable[[int, Path], Outcome]


@dataclass(frozen=True)
class StudyTrap:
    """Data of a study, what raysel must say of it, and the test of that."""

    make: Callable[[np.random.Generator], Data]
    expected: str
    holds: Callable[[StudyResult], bool]
    #: Further words of the result that the table shows.
    said: Callable[[StudyResult], str] = field(default=lambda _: "")

    def attempt(self, seed: int, folder: Path) -> Outcome:
        """Run the study of a seed."""
        result = self.study(seed, folder)
        return Outcome(self.holds(result), {**words_of_study(result), "said": self.said(result)})

    def study(self, seed: int, folder: Path) -> StudyResult:
        """Run the study of a seed, and return its result."""
        X, y, keys = self.make(np.random.default_rng(seed))
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
        study = prepare_study(config, X=X, y=y)
        executor = SerialExecutor(study)
        return course.run(study, folder / "study", executor, start_upload=None)


def words_of_study(result: StudyResult) -> dict[str, str]:
    """Return the score, the references and the remarks of a study."""
    chance = result.references["chance"]
    words = {
        "score": f"{result.test_mean:.3f}",
        "chance": f"{chance.mean:.3f} ({chance.recorded})",
        "verdict": chance.verdict,
        "stability": texts.noise_level(result.facts).rpartition(": ")[2],
        "remark on the data": " ".join(result.stored.study.data_remarks),
    }
    f_test = result.references.get("f_test")
    if f_test is not None:
        words["against the F-test"] = f"{f_test.mean:.3f} ({f_test.verdict})"
    return words


def verdict(result: StudyResult) -> str:
    """Return the verdict against chance."""
    return result.references["chance"].verdict


def says(word: str) -> Callable[[StudyResult], bool]:
    """Return whether a remark of the result, or what was checked of its data, has a word."""
    return lambda result: any(
        word in told for told in (*result.remarks(), *result.stored.study.data_notes)
    )
