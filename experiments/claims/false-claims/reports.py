"""What public bug reports are of: copies among columns, times of events, single test samples,
large integers, failures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from trap import Data, Outcome, StudyTrap, Trap, says, verdict, words_of_study

import raysel
from raysel.core.errors import RayselError


def copies(rng: np.random.Generator) -> Data:
    """A feature that tells the class, five copies of it in other units, and ten that tell
    nothing.
    """
    X, y = rng.standard_normal((120, 11)), np.arange(120) % 2
    X[:, 0] += 2 * y
    units = np.outer(X[:, 0], [1.8, -1.0, 1e-3, 5.0, 100.0])
    solver = {"name": "sklearn.linear_model.LogisticRegression", "importance": "permutation"}
    keys = {"cv": {"outer": 2, "inner": 2}, "evaluation": {"n_features": [2, 5]}}
    return np.hstack([X, units]), y, {**keys, "solver": solver}


def one_left_out(rng: np.random.Generator) -> Data:
    """30 balanced samples that no feature tells, one in each test set."""
    X, y = rng.standard_normal((30, 20)), rng.permutation(np.arange(30) % 2)
    return X, y, {"cv": {"outer": "n_samples", "inner": 2}}


def r2_of_one(rng: np.random.Generator) -> Data:
    """A quantity that no feature tells and R2, which one sample does not have."""
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    return (
        X,
        y,
        {
            "solver": {"name": "f_test"},
            "evaluation": {"estimator": "ridge", "metric": "r2", "n_features": [2, 5]},
            "cv": {"outer": "n_samples", "inner": 3},
        },
    )


def large_numbers(rng: np.random.Generator) -> Data:
    """A column of integers near 2**63, and classes that are two of them."""
    ids = 2**63 - 1 - rng.permutation(10**6)[:120]
    frame = pd.DataFrame(rng.standard_normal((120, 12))).add_prefix("gene").assign(count=ids)
    return frame, 2**62 + np.arange(120) % 2, {}


def _refused(make: Callable[[np.random.Generator], Data], *words: str) -> Trap:
    """A study that is refused by a sentence with these words."""

    def attempt(seed: int, folder: Path) -> Outcome:
        try:
            StudyTrap(make, "", lambda _: True).study(seed, folder)
        except RayselError as error:
            return Outcome(all(word in str(error) for word in words), {"said": str(error)})
        return Outcome(False, {})

    return Trap("refused, with a metric that serves", attempt)


#: Columns of a time and its event, as they are called.
_PAIRS = (
    ("time", "event"),
    ("OS_time", "OS_event"),
    ("days_to_death", "censored"),
    ("PFS_months", "PFS_status"),
    ("survival_time", "died"),
)


def time_and_event(seed: int, folder: Path) -> Outcome:
    """A table of the time of an event and whether it was seen, beside five genes; each seed has
    other names.
    """
    rng, (time, event) = np.random.default_rng(seed), _PAIRS[seed % len(_PAIRS)]
    genes = {f"gene{i}": rng.standard_normal(80) for i in range(5)}
    columns = {**genes, time: rng.exponential(900, 80).round(), event: rng.integers(2, size=80)}
    path = folder / "table.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    try:
        raysel.init_study(path)
    except RayselError as error:
        expected = f"{time} is the time to an event, and {event} says"
        return Outcome(str(error).startswith(expected), {"said": str(error)})
    return Outcome(False, {})


def failing_number(rng: np.random.Generator, numbers: tuple[int, ...]) -> Data:
    """Three classes that two of ten features tell, by a discriminant of two components, which
    one feature has not.
    """
    X, y = rng.standard_normal((90, 10)), np.arange(90) % 3
    X[:, :2] += 1.5 * np.eye(3, 2)[y]
    name = "sklearn.discriminant_analysis.LinearDiscriminantAnalysis"
    scoring = {"name": name, "params": {"n_components": 2}}
    evaluation = {"estimator": scoring, "n_features": list(numbers)}
    return X, y, {"evaluation": evaluation, "cv": {"outer": 3, "inner": 2, "final": False}}


def one_number_fails(seed: int, folder: Path) -> Outcome:
    """The study with a number of features with which the estimator fails, and the one without
    it.
    """
    fails, works = (
        StudyTrap(partial(failing_number, numbers=numbers), "", lambda _: True).study(
            seed, folder / str(len(numbers))
        )
        for numbers in ((1, 2, 5), (2, 5))
    )
    pairs = zip(fails.outer, works.outer, strict=True)
    scores = [(with_it.test_scores, without.test_scores) for with_it, without in pairs]
    alike = all(with_it == [None, *without] for with_it, without in scores)
    named = says("the estimator fails with 1 feature: ValueError")(fails)
    same = fails.test_scores == works.test_scores
    return Outcome(alike and named and same, words_of_study(fails))


TRAPS: dict[str, Trap | StudyTrap] = {
    "copies, permuted": StudyTrap(
        copies,
        "a remark on copies whose permutation importance is too low",
        says("6 columns are 1 group of copies"),
    ),
    "leave one out": StudyTrap(
        one_left_out, "not better than chance", lambda result: verdict(result) != "better"
    ),
    "leave one out, R2": _refused(r2_of_one, "r2", "neg_mae"),
    "integers near 2**63": StudyTrap(
        large_numbers,
        "two classes, and a remark on the column",
        lambda result: len(result.classes) == 2 and says("'count' holds whole numbers")(result),
    ),
    "a number that fails": Trap(
        "names the number and why, and scores the others as without it", one_number_fails
    ),
    "time and event": Trap("refused: both are named, and what to do", time_and_event),
}
