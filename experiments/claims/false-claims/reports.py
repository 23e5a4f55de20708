"""What public bug reports are of: copies among columns, times of events, single test samples, integers beyond floats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from trap import Data, Outcome, StudyTrap, Trap, says, verdict

import raysel
from raysel.core.errors import RayselError


def copies(rng: np.random.Generator) -> Data:
    """A feature that tells the class, five copies of it in other units, and ten that tell nothing."""
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
    """A table of the time of an event and whether it was seen, beside five genes; each seed has other names."""
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
    "time and event": Trap("refused: both are named, and what to do", time_and_event),
}
