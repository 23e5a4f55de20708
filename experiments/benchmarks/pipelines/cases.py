"""Searches of estimators of scikit-learn: samples, labels, what is searched and over which values.

Each case is a function of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.feature_selection import RFE, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

Grid = Mapping[str, Sequence[Any]]
#: Two numbers of features and two values of C.
_GRID: Grid = {"select__k": [10, 100], "svm__C": [0.01, 0.1]}


@dataclass(frozen=True)
class Case:
    """A nested search, as both sides get it."""

    X: Any
    y: np.ndarray
    estimator: BaseEstimator
    grid: Grid
    n_folds: int = 5
    metric: str = "accuracy"
    #: Whether raysel gets a file of the samples alone, and drafts what it searches.
    is_drafted: bool = False

    @property
    def splitters(self) -> tuple[Any, Any]:
        """Splitters of the outer and of the inner folds."""
        kind = KFold if self.y.dtype.kind == "f" else StratifiedKFold
        outer, inner = (kind(self.n_folds, shuffle=True, random_state=seed) for seed in (0, 1))
        return outer, inner


@dataclass(frozen=True)
class Size:
    """Samples, columns and configurations of a case."""

    n_samples: int
    n_columns: int
    n_configurations: int


def _draw(size: Size, *, gaps: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of which ten columns tell the class, and the classes; a share of cells is empty."""
    rng = np.random.default_rng(0)
    y = np.arange(size.n_samples) % 2
    X = rng.standard_normal((size.n_samples, size.n_columns))
    X[:, :10] += 0.5 * y[:, None]
    if gaps:
        X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def _name(X: np.ndarray) -> pd.DataFrame:
    """The samples with a name for each column."""
    return pd.DataFrame(X, columns=[f"g{number}" for number in range(X.shape[1])])


def _values(size: Size) -> list[float]:
    """As many values of a penalty as configurations, from weak to strong."""
    return np.geomspace(1e-3, 1, size.n_configurations).tolist()


def _filter(first: BaseEstimator | str = "passthrough") -> Pipeline:
    """Columns as a step prepares them, scaled, the best of them, and a linear SVM."""
    rest = [("scale", StandardScaler()), ("select", SelectKBest()), ("svm", LinearSVC())]
    return Pipeline([("columns", first), *rest]).set_params(svm__random_state=0)


def wide(size: Size) -> Case:
    """A filter of a wide table: 3 values of C, the others are numbers of features."""
    ks = np.geomspace(10, size.n_columns / 20, size.n_configurations // 3)
    grid = {"select__k": ks.astype(int).tolist(), "svm__C": [0.003, 0.01, 0.03]}
    return Case(*_draw(size), _filter(), grid)


def drafted(size: Size) -> Case:
    """A wide table of which raysel drafts a study; scikit-learn searches 5 values of C."""
    ks = np.geomspace(1, min(1000, size.n_columns), size.n_configurations // 5)
    grid = {"select__k": ks.astype(int).tolist(), "svm__C": [0.001, 0.01, 0.1, 1.0, 10.0]}
    return Case(*_draw(size), _filter(), grid, is_drafted=True)


def tall(size: Size) -> Case:
    """Many samples of few columns, by ROC AUC."""
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": _values(size)}
    return Case(*_draw(size), estimator, grid, metric="roc_auc")


def boosting(size: Size) -> Case:
    """Gradient boosting, of which nothing can be shared."""
    estimator = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    return Case(*_draw(size), estimator, {"learning_rate": _values(size)})


def ridge(size: Size) -> Case:
    """Regression by ridge."""
    X, y = _draw(size)
    noisy = y + 0.1 * np.random.default_rng(1).standard_normal(len(y))
    grid = {"ridge__alpha": (100 * np.array(_values(size))).tolist()}
    return Case(X, noisy, make_pipeline(StandardScaler(), Ridge()), grid, metric="r2")


def rfe(size: Size) -> Case:
    """Recursive elimination, then a linear SVM whose C is searched."""
    steps = [
        ("scale", StandardScaler()),
        ("select", RFE(LinearSVC(C=0.01, random_state=0), n_features_to_select=10, step=0.1)),
        ("svm", LinearSVC(random_state=0)),
    ]
    return Case(*_draw(size), Pipeline(steps), {"svm__C": _values(size)})


def stacking(size: Size) -> Case:
    """A stack of models, of which nothing can be shared."""
    models = [
        ("logistic", LogisticRegression()),
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ]
    estimator = StackingClassifier(models, final_estimator=LogisticRegression(), cv=3)
    return Case(*_draw(size), estimator, {"final_estimator__C": _values(size)})


def by_name(size: Size) -> Case:
    """A frame of numbers, of which the pipeline takes the columns by name.

    A list of names takes scikit-learn a time that grows with its square, a slice does not.
    """
    X, y = _draw(size)
    step = ColumnTransformer([("numbers", StandardScaler(), slice("g0", f"g{size.n_columns - 1}"))])
    return Case(_name(X), y, _filter(step), _GRID, n_folds=3)


def _with_text(size: Size, *, gaps: float = 0.0) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """A frame in which one column of a hundred is text, the classes, and the names of the texts."""
    X, y = _draw(size, gaps=gaps)
    shape = (size.n_samples, max(1, size.n_columns // 100))
    texts = np.random.default_rng(1).choice(list("abcd"), shape)
    named = pd.DataFrame(texts, columns=[f"t{number}" for number in range(shape[1])])
    return pd.concat([_name(X), named], axis=1), y, list(named.columns)


def _split_columns(size: Size, numbers: BaseEstimator, texts: list[str]) -> ColumnTransformer:
    """A step for the numbers, and one column for each word of the texts."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    whole = slice("g0", f"g{size.n_columns - 1}")
    return ColumnTransformer([("numbers", numbers, whole), ("texts", encoder, texts)])


def text(size: Size) -> Case:
    """Numbers and texts, of which a filter selects together."""
    frame, y, texts = _with_text(size)
    return Case(frame, y, _filter(_split_columns(size, StandardScaler(), texts)), _GRID, n_folds=3)


def within(size: Size) -> Case:
    """Numbers with empty cells and texts; the filter is within the step of the numbers."""
    frame, y, texts = _with_text(size, gaps=0.01)
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest())
    columns = _split_columns(size, numbers, texts)
    estimator = Pipeline([("columns", columns), ("svm", LinearSVC(random_state=0))])
    grid = {"columns__numbers__selectkbest__k": [10, 100], "svm__C": [0.01, 0.1]}
    return Case(frame, y, estimator, grid, n_folds=3)


def frame_gaps(size: Size) -> Case:
    """A frame of which a hundredth of the cells is empty."""
    X, y = _draw(size, gaps=0.01)
    return Case(_name(X), y, _filter(SimpleImputer()), _GRID, n_folds=3)


def array_gaps(size: Size) -> Case:
    """An array of which a hundredth of the cells is empty."""
    X, y = _draw(size, gaps=0.01)
    return Case(X, y, _filter(SimpleImputer()), _GRID, n_folds=3)


#: Each case with the size that it is measured at.
CASES: Mapping[str, tuple[Callable[[Size], Case], Size]] = {
    "wide": (wide, Size(300, 20_000, 18)),
    "drafted": (drafted, Size(160, 8000, 30)),
    "tall": (tall, Size(20_000, 40, 5)),
    "boosting": (boosting, Size(2000, 20, 4)),
    "ridge": (ridge, Size(400, 2000, 8)),
    "rfe": (rfe, Size(200, 500, 6)),
    "stacking": (stacking, Size(500, 30, 4)),
    "by-name": (by_name, Size(160, 8000, 4)),
    "text": (text, Size(160, 8000, 4)),
    "within": (within, Size(160, 8000, 4)),
    "frame-gaps": (frame_gaps, Size(160, 8000, 4)),
    "array-gaps": (array_gaps, Size(160, 8000, 4)),
}
