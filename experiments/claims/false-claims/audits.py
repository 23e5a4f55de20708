"""Audits of a method that selects by all samples, and of one that learns nothing from the test
samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline as resampling_pipeline
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from trap import Outcome, Trap

import raysel
from raysel.results.audit import Audit


def _outcome(found: Audit, expected: bool) -> Outcome:
    said = {
        "score": f"{found.careless:.3f} careless, {found.honest.mean:.3f} honest",
        "chance": "" if found.chance is None else f"{found.chance:.3f}",
        "said": found.verdict(),
    }
    return Outcome(found.harms is expected, said)


def weak(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """60 samples, 500 features, three of which tell the class a little."""
    X, y = rng.standard_normal((60, 500)), np.arange(60) % 2
    X[:, :3] += 1.2 * y[:, None]
    return X, y


def selected_by_all(seed: int, _: Path) -> Outcome:
    """The ten best features by all samples, whose careless score lies within the honest one's
    interval.
    """
    X, y = weak(np.random.default_rng(seed))
    pipeline = make_pipeline(SelectKBest(k=10), KNeighborsClassifier(5))
    return _outcome(raysel.audit(pipeline, X, y, inner=2, random_state=seed), True)


def nothing_selected(seed: int, _: Path) -> Outcome:
    """A linear discriminant of the first five features."""
    X, y = weak(np.random.default_rng(seed))
    found = raysel.audit(LinearDiscriminantAnalysis(), X[:, :5], y, inner=2, random_state=seed)
    return _outcome(found, False)


def resampled(seed: int, _: Path) -> Outcome:
    """Samples of noise, of which synthetic ones of the rare class are made before the nearest
    neighbours' folds.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((100, 6)), (np.arange(100) % 4 == 0).astype(int)
    pipeline = resampling_pipeline(SMOTE(random_state=seed), KNeighborsClassifier(5))
    return _outcome(
        raysel.audit(pipeline, X, y, metric="balanced_accuracy", inner=2, random_state=seed), True
    )


TRAPS = {
    "audit of a careless selection": Trap("careless use does harm", selected_by_all),
    "audit of SMOTE": Trap("careless use does harm", resampled),
    "audit of a model alone": Trap("no harm is shown", nothing_selected),
}
