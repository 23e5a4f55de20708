"""Models in skops' format, signed when they are written, read without pickle once the signature and the names are checked."""

from __future__ import annotations

import copy
import io
import json
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from raysel.base.registry import GROUP, OWN
from raysel.core.errors import DataError
from raysel.core.machine import check_data_bytes
from raysel.core.plugins import plugin_targets
from raysel.core.trust import check_trust, write_signed

_SCHEMA = "schema.json"
#: Classes of scikit-learn that a model file may hold, by module.
_CLASSES = {
    "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "compose._column_transformer": "ColumnTransformer",
    "decomposition._pca": "PCA",
    "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "dummy": "DummyClassifier DummyRegressor",
    "ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "ensemble._forest": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor",
    "ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
    "feature_selection._from_model": "SelectFromModel",
    "feature_selection._rfe": "RFE",
    "feature_selection._univariate_selection": "SelectFdr SelectFpr SelectFwe SelectKBest SelectPercentile",
    "feature_selection._variance_threshold": "VarianceThreshold",
    "gaussian_process._gpc": "GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace",
    "gaussian_process.kernels": "ConstantKernel Product RBF",
    "impute._base": "MissingIndicator SimpleImputer",
    "impute._knn": "KNNImputer",
    "linear_model._base": "LinearRegression",
    "linear_model._coordinate_descent": "ElasticNet ElasticNetCV Lasso LassoCV MultiTaskElasticNet "
    "MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV",
    "linear_model._huber": "HuberRegressor",
    "linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "multioutput": "MultiOutputRegressor",
    "multiclass": "OneVsOneClassifier OneVsRestClassifier _ConstantPredictor",
    "naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
    "neighbors._classification": "KNeighborsClassifier",
    "neighbors._nearest_centroid": "NearestCentroid",
    "neighbors._regression": "KNeighborsRegressor",
    "neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "pipeline": "Pipeline",
    "preprocessing._function_transformer": "FunctionTransformer",
    "preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler PowerTransformer QuantileTransformer RobustScaler "
    "StandardScaler",
    "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "preprocessing._label": "LabelBinarizer",
    "svm._classes": "LinearSVC LinearSVR NuSVC NuSVR SVC SVR",
    "tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
}
SKLEARN = frozenset(
    f"sklearn.{module}.{name}" for module, names in _CLASSES.items() for name in names.split()
)
#: Functions of scikit-learn that a model file may name.
FUNCTIONS = frozenset(
    {
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
    }
)

#: Names that a node of each kind may have; None: any, because skops makes the same of all. ObjectNode is not listed.
_KINDS: dict[str, frozenset[str] | None] = {
    "DictNode": frozenset({"builtins.dict"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "FunctionNode": FUNCTIONS,
    "JsonNode": None,
    "ListNode": frozenset({"builtins.list"}),
    "NdArrayNode": frozenset(
        f"numpy.{name}"
        for name in ("ndarray", "bool", "bool_", "float32", "float64", "int32", "int64", "str_")
    ),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset(
        {
            "builtins.bool",
            "builtins.float",
            "builtins.int",
            "builtins.str",
            "numpy.float64",
            "numpy.int64",
        }
    ),
}


def types_within(path: Path) -> set[str]:
    """Return the names of the classes and functions in a model file, of which nothing is imported."""
    with zipfile.ZipFile(path) as archive:
        schema = json.loads(archive.read(_SCHEMA))
    return {
        f"{node.get('__module__')}.{node.get('__class__')}"
        for node in _mappings(schema)
        if "__loader__" in node
    }


def foreign_nodes(content: bytes, classes: Collection[str]) -> set[str]:
    """Return the names of the nodes of a model file that are of another kind, or objects of other classes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
    foreign = set()
    for node in _mappings(schema):
        kind = node.get("__loader__")
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        allowed = classes if kind == "ObjectNode" else _KINDS.get(str(kind), ())
        if "__loader__" in node and allowed is not None and name not in allowed:
            foreign.add(name)
    return foreign


def _mappings(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings within plain data."""
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def with_present_names(content: bytes) -> bytes:
    """Replace the modules of raysel's classes in a model file by the present modules of classes of these names."""
    present = (name.rpartition(".") for name in trusted_types() if name.startswith("raysel."))
    modules = {name: module for module, _, name in present}
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        schema = json.loads(file.read(_SCHEMA))
        moved = [
            node for node in _mappings(schema) if _module(node, modules) != node.get("__module__")
        ]
        if not moved:
            return content
        members = {item.filename: file.read(item) for item in file.infolist()}
    for node in moved:
        node["__module__"] = _module(node, modules)
    renamed = io.BytesIO()
    with zipfile.ZipFile(renamed, "w") as copy:
        for name, data in (members | {_SCHEMA: json.dumps(schema).encode()}).items():
            copy.writestr(name, data)
    return renamed.getvalue()


def _module(node: dict[str, Any], modules: Mapping[str, str]) -> Any:
    """Module that a node names, or the one that one of raysel's classes is in now."""
    module = node.get("__module__")
    ours = isinstance(module, str) and module.startswith("raysel.")
    return modules.get(str(node.get("__class__")), module) if ours else module


#: raysel's own classes in model files besides the registered methods.
_PARTS = (
    "raysel.base.adapter.ScikitLearnMethod",
    "raysel.base.importance.PermutationImportance",
    "raysel.base.label_codes.CodedClassifier",
    "raysel.evaluation.neighbours.NearestNeighborsClassifier",
    "raysel.evaluation.pipeline.FeaturePipeline",
    "raysel.evaluation.selectors.RankedClassifier",
    "raysel.evaluation.selectors.RankedSelector",
    "raysel.data.preparation.combat.SiteHarmoniser",
    "raysel.data.preparation.preparation.Preparation",
    "raysel.data.preparation.tasks.TaskPreparation",
    "raysel.data.preparation.steps.JointScaler",
    "raysel.data.preparation.steps.Log1p",
    "raysel.data.preparation.steps.NearConstantFilter",
    "raysel.data.preparation.steps.QuantileClipper",
    "raysel.data.preparation.steps.Residualiser",
    "raysel.data.scaling.UnitScaler",
    "raysel.data.scaling.ModalityScaler",
    "raysel.data.scaling.TaskScaler",
    "raysel.results.feature_selector.FeatureSelector",
)


def trusted_types() -> frozenset[str]:
    """List the classes that a model file may contain.

    They are raysel's registered methods and scalers, the classes that other packages register under the entry point
    ``raysel.estimators``, and some of scikit-learn; none is imported.

    Returns
    -------
    frozenset of str
        Dotted names of the classes.

    Examples
    --------
    >>> "raysel.data.scaling.UnitScaler" in trusted_types()
    True
    """
    methods = (target.replace(":", ".") for target in OWN.values())
    others = ("sklearn.tree._tree.Tree", "numpy.dtype")
    return frozenset([*methods, *plugin_targets(GROUP), *_PARTS, *SKLEARN, *FUNCTIONS, *others])


def untrusted_types(model: BaseEstimator) -> list[str]:
    """List the types in a model that `save_model` and `load_model` do not accept.

    Parameters
    ----------
    model : estimator
        Model to examine; it need not be fitted.

    Returns
    -------
    list of str
        Dotted names of the types, sorted; empty if the model can be saved.

    Examples
    --------
    >>> from raysel.data.scaling import UnitScaler
    >>> untrusted_types(UnitScaler())
    []
    """
    import skops.io  # noqa: PLC0415 - importing takes a second, and most commands do not need it

    return _untrusted(skops.io.dumps(_without_callbacks(model)))


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model in skops' format, without its callbacks, and beside it its hash by the key of this account.

    Where the key can be neither read nor made there is no hash, and `load_model` needs ``trust=True``.

    Parameters
    ----------
    model : estimator
        One of raysel's estimators, or a scikit-learn pipeline of such. It is not modified.
    path : str or Path
        Path of the file, e.g. ``model.skops``.

    Returns
    -------
    Path
        Path of the written file.

    Raises
    ------
    DataError
        If the model contains types that `load_model` does not accept.
    StudyError
        If the file cannot be written.
    """
    import skops.io  # noqa: PLC0415

    content = skops.io.dumps(_without_callbacks(model))
    _check_types(content, "the model")
    return write_signed(Path(path), content)


def load_model(path: str | Path, *, trust: bool = False) -> Any:
    """Read a model that this account has written, without unpickling.

    A keyed hash beside the file (HMAC-SHA256, key in ``~/.config/raysel``) tells whether this account wrote it, and is
    checked before the file is opened. No code of a file runs, but the model of a stranger may crash or read the process
    that predicts with it.

    Parameters
    ----------
    path : str or Path
        Path of the file, or the directory of a finished study, whose ``model.skops`` is read.
    trust : bool, default=False
        Whether to read a model without the hash of this account; ``raysel trust DIR`` adds it to those of a study.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    DataError
        If there is no such file, it is not trusted, is damaged or does not hold a model, or contains anything but
        arrays, plain containers and the classes of `trusted_types`.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.scaling import UnitScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(UnitScaler().fit([[0], [4]]), Path(folder, "scaler.skops"))).range_
    4.0
    """
    folder = os.path.isdir(path)  # noqa: PTH112 - Path's raises an error of a name that is too long
    return read_model(_model_of_study(Path(path)) if folder else Path(path), path, trust=trust)


def read_model(file: Path, place: str | Path, *, trust: bool) -> Any:
    """Read a model file; if it is not trusted, an error says how ``place`` is."""
    try:
        check_data_bytes(file, file.stat().st_size)
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"the model {file} cannot be read: {error.strerror}.") from error
    if not trust:
        check_trust(file, content, place)
    try:
        content = with_present_names(content)
        _check_types(content, str(file))
        return _loaded(content, str(file))
    except DataError:
        raise
    except Exception as error:  # a damaged file may raise any exception, as a part that is missing or of another kind
        raise DataError(
            f"{file} is not a skops file, truncated or damaged ({type(error).__name__}); export the model again."
        ) from error


def _model_of_study(folder: Path) -> Path:
    """Return the path of the final model in the directory of a study."""
    if not (folder / "model.skops").exists():
        raise DataError(
            f"{folder} has no model.skops; give the directory of a finished study with a final model, or a model's file."
        )
    return folder / "model.skops"


def _loaded(content: bytes, what: str) -> BaseEstimator:
    import skops.io  # noqa: PLC0415

    model = skops.io.loads(content, trusted=sorted(trusted_types()))
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{what} holds a {type(model).__name__}, not a model.")
    return model


def _untrusted(content: bytes) -> list[str]:
    import skops.io  # noqa: PLC0415

    trusted = trusted_types()
    return sorted(
        set(skops.io.get_untrusted_types(data=content)) - trusted | foreign_nodes(content, trusted)
    )


def _check_types(content: bytes, what: str) -> None:
    if untrusted := _untrusted(content):
        raise DataError(
            f"{what} contains {', '.join(untrusted)}, which raysel does not read from a file: it may execute code."
            f" Use estimators of raysel, those of scikit-learn in raysel's list, or classes that a"
            f" package registers under {GROUP}."
        )


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """Copy a model and its nested estimators without scikit-learn's callbacks."""
    parts = [part for part in _parts_within(model) if isinstance(part, BaseEstimator)]
    attached = [vars(part)["_skl_callbacks"] for part in parts if "_skl_callbacks" in vars(part)]
    # Callbacks hold locks and handles that cannot be copied; deepcopy replaces objects by their entry in the memo.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in _parts_within(copied):
        if isinstance(part, BaseEstimator):
            vars(part).pop("_skl_callbacks", None)
    return copied


def _parts_within(value: Any) -> Iterator[Any]:
    """Yield a value and all distinct values within it."""
    seen: dict[int, Any] = {}  # holds the values, so that no id is used again
    left = [value]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            left.extend(value)
        elif isinstance(value, np.ndarray) and value.dtype == object:
            left.extend(value.ravel())
        if hasattr(value, "__dict__") and not isinstance(value, type):
            left.extend(vars(value).values())
