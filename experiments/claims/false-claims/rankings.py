"""Rankings: features that only the number of their columns puts first, and p values of single
features.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from trap import Outcome, Trap, words_of_study

from raysel.core.arrays import FloatArray
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.permutation import permutation_test
from raysel.run.stability import stability_selection

#: Number of columns of numbers.
_NUMBERS = 20


def table(seed: int, folder: Path, shares: FloatArray, share_told: float) -> Path:
    """Write 200 rows of noise with a text drawn with these shares, which tells in some of the
    rows.
    """
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(shares), 200, p=shares)
    y = np.where(rng.random(200) < share_told, codes % 2, rng.integers(0, 2, 200))
    columns = {f"x{i}": rng.standard_normal(200) for i in range(_NUMBERS)}
    frame = pd.DataFrame({**columns, "clinic": [f"clinic {code}" for code in codes], "label": y})
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return path


def attempt(
    seed: int, folder: Path, solver: str, *, shares: FloatArray, share_told: float
) -> Outcome:
    """Run the study that `raysel init` drafts, and count where the text column is first and in
    the stable set.
    """
    config = {
        "name": "trap",
        "seed": seed,
        "dataset": {
            "path": str(table(seed, folder, shares, share_told)),
            "label": "label",
            "prepare": ["encode"],
            "scaling": "zscore",
        },
        "solver": {"name": solver},
        "evaluation": {"classifier": "linear_svm", "n_features": [1, 3, 5]},
        "cv": {"outer": 5, "inner": 3},
        "search": {"executor": "serial"},
        "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
        "pictures": [],
    }
    study = prepare_study(config)
    result = course.run(study, folder / "study", SerialExecutor(study), start_upload=None)
    place, ranking = result.feature_names.index("clinic"), result.ranking()
    first = int((ranking.fold_ranks[:, place] == 1).sum())
    found = stability_selection(result.path, progress=False, executor="serial")
    names = [result.feature_names[i] for i in np.flatnonzero(found.selected)]
    words = f"first on {first} of 5 outer folds; stability set: {', '.join(names) or 'none'}"
    wins = "clinic" in names and first >= 3 if share_told else "clinic" in names or first > 2
    return Outcome(wins if share_told else not wins, {**words_of_study(result), "said": words})


def _trap(expected: str, solver: str, shares: FloatArray, share_told: float = 0.0) -> Trap:
    return Trap(
        expected,
        lambda seed, folder: attempt(seed, folder, solver, shares=shares, share_told=share_told),
    )


def p_values(seed: int, folder: Path, solver: str, words: str) -> Outcome:
    """Test the features of a filter by permuted labels, where 5 of 30 tell a rare class."""
    rng = np.random.default_rng(seed)
    y = (np.arange(120) < 15).astype(int)
    X = rng.standard_normal((120, 30))
    X[y == 1, :5] += 1.5
    study = prepare_study(
        {
            "name": "trap",
            "seed": seed,
            "solver": {"name": solver},
            "evaluation": {"classifier": "knn", "n_features": [5]},
            "cv": {"outer": 3, "inner": 2},
            "search": {"executor": "serial"},
            "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
            "pictures": [],
        },
        X=X,
        y=y,
    )
    result = course.run(study, folder / "study", SerialExecutor(study), start_upload=None)
    found = permutation_test(result.path, permutations=19, progress=False, executor="serial")
    said = [sentence for sentence in found.sentences() if words in sentence]
    return Outcome(bool(said), {**words_of_study(result), "said": " ".join(said)})


_TEN, _THIRTY = np.full(10, 0.1), np.full(30, 1 / 30)
_RARE = np.r_[0.5, 0.3, np.full(10, 0.02)]
_NOT = "not in the stability set, and first on at most 2 of 5 outer folds"
_FIRST = "in the stability set, and first on 3 of 5 outer folds"

TRAPS = {
    "text of 10 values, linear SVM": _trap(_NOT, "linear_svm", _TEN),
    "text of 30 values, linear SVM": _trap(_NOT, "linear_svm", _THIRTY),
    "text with rare values, linear SVM": _trap(_NOT, "linear_svm", _RARE),
    "text of 10 values, filter": _trap(_NOT, "fisher_score", _TEN),
    "text of 10 values, rfs": _trap(_NOT, "rfs", _TEN),
    "text of 10 values, glspfs": _trap(_NOT, "glspfs", _TEN),
    "text of 10 values, mrmr": _trap(_NOT, "mrmr", _TEN),
    "text of 10 values that tells": _trap(_FIRST, "linear_svm", _TEN, 0.9),
    "text of 30 values that tells, rfs": _trap(_FIRST, "rfs", _THIRTY, 0.9),
    "p values of relieff": Trap(
        "that they hold only if no feature tells",
        lambda seed, folder: p_values(seed, folder, "relieff", "hold only if no feature tells"),
    ),
    "p values of mrmr": Trap(
        "that the features have none",
        lambda seed, folder: p_values(seed, folder, "mrmr", "no p values"),
    ),
}
