"""A quantity in disguise among the columns, subjects measured in turn, and values that are too
small.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from trap import Data, Outcome, StudyTrap, Trap, says

from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError

Disguise = Callable[[FloatArray, np.random.Generator], FloatArray]


def _disguised(disguise: Disguise) -> Callable[[np.random.Generator], Data]:
    """Twenty features that tell nothing of a quantity, and it in disguise."""

    def make(rng: np.random.Generator) -> Data:
        X, y = rng.standard_normal((200, 20)), rng.standard_normal(200)
        X[:, 0] = disguise(y, rng)
        keys = {
            "solver": {"name": "f_test"},
            "evaluation": {"estimator": "ridge", "metric": "r2", "n_features": [2, 5, 10]},
        }
        return X, y, keys

    return make


def _copied(share: float) -> Disguise:
    return lambda y, rng: np.where(rng.random(len(y)) < share, y, rng.permutation(y))


def subjects_in_turn(rng: np.random.Generator) -> Data:
    """30 subjects measured in turn, eight times each, with a random one of three labels each."""
    own = np.tile(rng.standard_normal((30, 20)), (8, 1))
    X = own + rng.standard_normal((240, 20))
    return X, np.tile(rng.permutation(np.arange(30) % 3), 8), {}


def tiny(rng: np.random.Generator) -> Data:
    """A feature that tells the class, and others, in a unit of 1e170."""
    X, y = rng.standard_normal((200, 20)), np.arange(200) % 2
    X[:, 0] += 3 * y
    return 1e-170 * X, y, {}


def _refused(seed: int, folder: Path) -> Outcome:
    try:
        StudyTrap(tiny, "", lambda _: True).study(seed, folder)
    except DataError as error:
        return Outcome("squares vanish" in str(error), {"said": str(error)})
    return Outcome(False, {})


_DISGUISES: dict[str, Disguise] = {
    "its square": lambda y, _: y**2,
    "its quintiles": lambda y, _: np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8])),
    "above its median": lambda y, _: (y > np.median(y)).astype(float),
    "its copy, 5 % wrong": _copied(0.95),
    "its copy in 30 % of the rows": _copied(0.3),
}

TRAPS: dict[str, Trap | StudyTrap] = {
    **{
        f"a quantity: {name}": StudyTrap(
            _disguised(disguise), "a remark that names the column", says("Column 'x0'")
        )
        for name, disguise in _DISGUISES.items()
    },
    "subjects in turn": StudyTrap(
        subjects_in_turn, "a remark on samples 30 rows apart", says("30 rows apart")
    ),
    "values below 1e-162": Trap("refused", _refused),
}
