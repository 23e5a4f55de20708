"""Changes each fitted attribute of fitted models, and predicts by what `load_model` takes of it.

It is run as a script, ``python fuzzing.py MODEL ... MOST``, which draws at most so many changes of each attribute. It
ends with a signal if a model leaves its arrays. The last line of its output is then what was changed; else it is the
number of files that were refused and of those taken.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse
import skops.io._persist
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import chi2
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree._tree import Tree

from raysel.base.adapter import ScikitLearnMethod
from raysel.base.importance import PermutationImportance
from raysel.base.model_parts import parts_within
from raysel.base.models import SKLEARN, load_model, save_model
from raysel.base.registry import OWN, build_solver, solver_class
from raysel.core.errors import DataError
from raysel.data.layouts import Matrix
from raysel.data.scaling import ModalityScaler, TaskScaler, UnitScaler
from raysel.evaluation.neighbours import NearestNeighborsClassifier
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.selectors import RankedClassifier, RankedSelector
from raysel.results.feature_selector import FeatureSelector

Change = tuple[int, str, str, Callable[[Any], Any]]

_LARGE = 2**62
_TYPES = ("f4", "i4", "i8", ">f8", "c16", "U3", "u1", "m8[s]", "O")
_STRINGS = ("precomputed", "kd_tree", "mahalanobis", "x" * 1000)
#: Memory that the process may take beyond what it has: a size that is read from the file must not be allocated.
_MORE = 2**33
#: Parameters of scikit-learn's classes; the others have their defaults.
PARAMETERS: dict[str, dict[str, Any]] = {
    "AdaBoostClassifier": {"n_estimators": 2},
    "AdaBoostRegressor": {"n_estimators": 2},
    "BaggingClassifier": {"n_estimators": 2, "max_features": 2},
    "BaggingRegressor": {"n_estimators": 2, "max_features": 2},
    "CalibratedClassifierCV": {"estimator": LinearSVC(), "cv": 2},
    "ColumnTransformer": {
        "transformers": [("scaled", StandardScaler(), [0, 1]), ("rest", "passthrough", [3])]
    },
    "DecisionTreeClassifier": {"max_depth": 2},
    "DecisionTreeRegressor": {"max_depth": 2},
    "ExtraTreesClassifier": {"n_estimators": 2, "max_depth": 2},
    "ExtraTreesRegressor": {"n_estimators": 2, "max_depth": 2},
    "KNeighborsClassifier": {"algorithm": "brute"},
    "KNeighborsRegressor": {"algorithm": "brute"},
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    "MLPClassifier": {"hidden_layer_sizes": (3,), "max_iter": 2},
    "MLPRegressor": {"hidden_layer_sizes": (3,), "max_iter": 2},
    "MultiOutputRegressor": {"estimator": Ridge()},
    "OneVsOneClassifier": {"estimator": LinearSVC()},
    "OneVsRestClassifier": {"estimator": SVC()},
    "PCA": {"n_components": 2},
    "Pipeline": {"steps": [("scaler", StandardScaler()), ("svm", NuSVC(probability=True))]},
    "RFE": {"estimator": LinearSVC()},
    "RandomForestClassifier": {"n_estimators": 2, "max_depth": 2},
    "RandomForestRegressor": {"n_estimators": 2, "max_depth": 2},
    "SelectFromModel": {"estimator": ExtraTreesClassifier(2, max_depth=2)},
    "SelectKBest": {"k": 2},
    "SelectPercentile": {"score_func": chi2},
}


def method(name: str) -> Any:
    few = {"max_iter": 3} if "max_iter" in solver_class(name)().get_params() else {}
    return build_solver(name, Matrix(2, 2), few, random_state=0)


def models() -> Iterator[Any]:
    """Estimators of every class that a model file may hold, besides the methods."""
    for path in sorted(SKLEARN):
        module, _, name = path.rpartition(".")
        kind = getattr(importlib.import_module(module), name)
        if (
            issubclass(kind, BaseEstimator)
            and not name.startswith("_")
            and kind is not LabelBinarizer
        ):
            yield kind(**PARAMETERS.get(name, {}))
    selector, nearest = RankedSelector(method("variance"), 2), NearestNeighborsClassifier(3)
    yield FeaturePipeline(
        [("scaler", UnitScaler()), ("selector", selector), ("classifier", nearest)]
    )
    yield FeatureSelector([3.0, 2.0, 0.0, 1.0], 2, ["a", "b", "c", "d"])
    yield ModalityScaler({"a": 1, "b": 3}, "zscore")
    yield PermutationImportance(GaussianNB(), n_folds=2, n_repeats=1)
    yield RankedClassifier(method("smml"), 2)
    yield ScikitLearnMethod(ExtraTreesClassifier(2, max_depth=2, random_state=0))
    yield TaskScaler({"a": 2, "b": 2})


MODELS: dict[str, Any] = {name: method(name) for name in OWN} | {
    type(model).__name__: model for model in models()
}


def samples() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X[::5], y[::5]


def fitted(name: str) -> Any:
    X, y = samples()
    if name == "TaskScaler":
        X = X.copy()
        X[::2, :2], X[1::2, 2:] = np.nan, np.nan
    if name.startswith(("MultiTask", "MultiOutput")):
        y = np.stack([y, X[:, 0]], axis=1)
    return copy.deepcopy(MODELS[name]).fit(X, y)


#: Other arrays in place of one.
OTHER_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "sparse": lambda value: forged_sparse(value.shape),
    "empty": lambda value: value[:0],
    "doubled": lambda value: np.concatenate([value, value]),
    "flat": np.ravel,
    "turned": lambda value: np.ascontiguousarray(value.T),
    "Fortran": np.asfortranarray,
    "deeper": lambda value: value[..., None],
    "scalar": lambda _: np.array(0.5),
    "shorter": lambda value: value[:-1],
    "narrower": lambda value: np.ascontiguousarray(value[..., :-1]),
    **{
        dtype: lambda value, dtype=dtype: value.astype(dtype)
        for dtype in ["f4", "i4", "i8", ">f8", "c16", "U3", "u1", "m8[s]", "O"]
    },
}


def of_array(value: Any) -> Iterator[tuple[str, Any]]:
    """Other arrays in place of one."""
    for name, change in OTHER_ARRAYS.items():
        if (name in ("NaN", "infinite") and value.dtype.kind != "f") or (
            name in ("shorter", "narrower") and not value.size
        ):
            continue
        try:
            yield name, change(value)
        except (TypeError, ValueError, IndexError):  # not for its shape or type
            continue
    if value.dtype.kind in "biuf":
        for name, number in {
            "negative": -1,
            "large": _LARGE,
            "larger": 2**31 - 1,
            "many": 10**5,
        }.items():
            clipped = np.clip(number, *limits(value.dtype))
            yield name, np.full_like(value, clipped)
            if value.size:
                one = value.copy()
                one.flat[-1] = clipped
                yield f"one {name}", one
    if value.dtype.kind == "f":
        yield "NaN", np.full_like(value, np.nan)
        yield "infinite", np.full_like(value, np.inf)


def limits(dtype: Any) -> tuple[float, float]:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return info.min, info.max


def forged_sparse(shape: tuple[int, ...]) -> Any:
    """A sparse matrix whose indices lie far outside of its shape."""
    rows, columns = (*shape, 1, 1)[:2]
    made = scipy.sparse.csr_matrix((rows, columns))
    made.data, made.indices = np.ones(3), np.array([-(10**9), 10**9, 10**6], dtype=np.int32)
    made.indptr = np.linspace(0, 3, rows + 1).astype(np.int32)
    return made


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values in place of one."""
    yield "none", None
    match value:
        case np.ndarray():
            yield from of_array(value)
        case bool():
            yield "not", not value
        case int() | float() | np.generic():
            for number in (
                -1,
                0,
                1,
                7,
                2**31 - 1,
                _LARGE,
                -_LARGE,
                0.5,
                np.nan,
                True,
                "3",
                np.arange(3),
            ):
                yield repr(number), number
        case str():
            for text in _STRINGS:
                yield text, text
        case dict():
            yield "emptied", {}
            yield "metric", {"V": np.eye(9), "VI": np.eye(9), "w": np.ones(1), "p": _LARGE}
        case list() | tuple():
            yield "emptied", type(value)()
            yield "doubled", value + value
            for i in {0, len(value) - 1} & set(range(len(value))):
                for name, item in changed(value[i]):
                    yield f"{i} {name}", type(value)((*value[:i], item, *value[i + 1 :]))
        case Tree():
            yield from of_tree(value)


def of_tree(tree: Tree) -> Iterator[tuple[str, Any]]:
    """Other trees, made as `load_model` makes them."""
    state, arguments = tree.__getstate__(), tree.__reduce__()[1]
    for name in state["nodes"].dtype.names:
        for kind, column in of_array(state["nodes"][name]):
            if np.shape(column) == state["nodes"].shape and not scipy.sparse.issparse(column):
                nodes = state["nodes"].copy()
                with warnings.catch_warnings(action="ignore"):
                    nodes[name] = (
                        column.real.astype(nodes[name].dtype) if column.dtype.kind in "biufc" else 0
                    )
                yield from made(f"{name} {kind}", arguments, state | {"nodes": nodes})
    for name in ("max_depth", "node_count"):
        for number in (-1, 0, 1, 10**6, 2**31 - 1):
            yield from made(f"{name} {number}", arguments, state | {name: number})
    for i, number in (
        (0, 10**9),
        (2, 2),
        (2, 10**9),
        (2, -1),
        (0, -1),
        (1, np.array([10**6])),
        (1, np.array([-1])),
    ):
        yield from made(
            f"argument {i} {number}", (*arguments[:i], number, *arguments[i + 1 :]), state
        )


def made(name: str, arguments: Any, state: Any) -> Iterator[tuple[str, Any]]:
    try:
        tree = Tree(*arguments)
        tree.__setstate__(state)
    except (ValueError, TypeError, IndexError, MemoryError, OverflowError):
        return
    yield name, tree


def changes(model: Any, most: int, random: np.random.Generator) -> list[list[Change]]:
    """Changes of each attribute of a model and of the estimators within it, and pairs of changes."""
    drawn: list[list[Change]] = []
    # Of parts alike, as the trees of a forest, the last.
    alike = {
        (type(part), *vars(part)): (position, part)
        for position, part in enumerate(estimators(model))
    }
    for position, part in alike.values():
        for attribute, value in {**vars(part), "predict": "text", "_impl": "c_svc"}.items():
            every = [(position, attribute, name, other) for name, other in changed(value)]
            drawn += [[every[i]] for i in random.permutation(len(every))[:most]]
    pairs = random.integers(len(drawn), size=(len(drawn) // 8, 2))
    return drawn + [drawn[i] + drawn[j] for i, j in pairs]


def estimators(model: Any) -> list[Any]:
    return [part for part in parts_within(model) if isinstance(part, BaseEstimator)]


def tried(model: Any, chosen: list[Change], path: Path, X: Any) -> bool:
    """Write a model with changes, load it and predict; return whether it was taken."""
    model = copy.deepcopy(model)
    parts = estimators(model)
    for position, attribute, _, value in chosen:
        vars(parts[position])[attribute] = value
    try:
        path.write_bytes(skops.io.dumps(model))
    except Exception:  # noqa: BLE001 - such a file cannot be written
        return False
    try:
        taken = load_model(path)
    except DataError:
        return False
    for method in ("predict", "decision_function", "predict_proba", "transform", "get_support"):
        try:
            getattr(taken, method)(*([] if method == "get_support" else [X]))
        except Exception:  # noqa: BLE001 - only a crash is a find
            continue
    return True


def main(names: list[str], most: int) -> None:
    """Try the changes of models."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MORE, used + _MORE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    # Written without indentation, which json makes in Python and which takes as long as all else of a file.
    skops.io._persist.json = SimpleNamespace(
        **{**vars(json), "dumps": lambda value, **_: json.dumps(value)}
    )
    counts = [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model, X = fitted(name), samples()[0]
            load_model(save_model(model, Path(folder, "model.skops")))
            for chosen in changes(model, most, np.random.default_rng(0)):
                what = "; ".join(
                    f"{name} {position} {attribute} {kind}"
                    for position, attribute, kind, _ in chosen
                )
                os.write(1, f"{what[:300]}\n".encode())
                counts[tried(model, chosen, Path(folder, "model.skops"), X)] += 1
    sys.stdout.write(f"{counts[0]} {counts[1]}\n")


if __name__ == "__main__":
    main(sys.argv[1:-1], int(sys.argv[-1]))
