"""Saving and loading of fitted models, without executing code from the file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from raysel.base.model_files.checks import check_model_file
from raysel.base.model_files.former_names import with_present_names
from raysel.base.model_files.nodes import foreign_nodes
from raysel.base.model_files.shapes import check_shapes
from raysel.base.model_files.sklearn_classes import FUNCTIONS, SKLEARN
from raysel.base.registry import GROUP, OWN
from raysel.errors import DataError
from raysel.files import write_result
from raysel.limits import check_data_bytes
from raysel.plugins import plugin_targets

#: raysel's own classes in model files besides the registered methods.
_PARTS = (
    "raysel.base.adapter.ScikitLearnMethod",
    "raysel.cv.model.nearest.NearestNeighborsClassifier",
    "raysel.cv.model.pipeline.FeaturePipeline",
    "raysel.cv.model.selector.RankedClassifier",
    "raysel.cv.model.selector.RankedSelector",
    "raysel.data.scaling.UnitScaler",
    "raysel.data.modality_scaler.ModalityScaler",
    "raysel.data.task_scaler.TaskScaler",
    "raysel.results.feature_selector.FeatureSelector",
)


def trusted_types() -> frozenset[str]:
    """List the classes that a model file may contain.

    They are raysel's registered methods and scalers, the classes that other packages register under the entry point
    ``raysel.estimators``, and those of scikit-learn whose fitted attributes `load_model` can check; none is imported.

    Returns
    -------
    frozenset of str
        Dotted names of the classes.

    Examples
    --------
    >>> "raysel.data.scaling.UnitScaler" in trusted_types()
    True
    """
    own = (target.replace(":", ".") for target in OWN.values())
    return frozenset([*own, *plugin_targets(GROUP), *_PARTS, *SKLEARN, *FUNCTIONS, "sklearn.tree._tree.Tree"])


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

    return _untrusted(skops.io.dumps(_without_callbacks(model)), "the model")


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model in skops' format, without its callbacks.

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
    return write_result(path, content)


def load_model(path: str | Path) -> Any:
    """Read a model that `save_model` wrote, without unpickling.

    Parameters
    ----------
    path : str or Path
        Path of the file.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    DataError
        If the file does not exist, is damaged or does not hold a model, would take too much memory, contains anything
        but arrays, plain containers and the classes of `trusted_types`, or the shapes of an estimator's fitted
        attributes do not agree.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.scaling import UnitScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(UnitScaler().fit([[0], [4]]), Path(folder, "scaler.skops"))).range_
    4.0
    """
    try:
        check_data_bytes(path, Path(path).stat().st_size)
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"the model {path} cannot be read: {error.strerror}.") from error
    try:
        check_model_file(content, path)
    except DataError:
        raise
    except Exception as error:  # as below
        raise DataError(_damaged(str(path), error)) from error
    content = with_present_names(content)
    _check_types(content, str(path))
    import skops.io  # noqa: PLC0415

    try:
        model = skops.io.loads(content, trusted=sorted(trusted_types()))
    except Exception as error:  # a damaged array may raise any exception
        raise DataError(_damaged(str(path), error)) from error
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{path} holds a {type(model).__name__}, not a model.")
    try:
        _check_parts(model, str(path))
    except DataError:
        raise
    except Exception as error:  # an attribute is missing, or of another kind
        raise DataError(_damaged(str(path), error)) from error
    return model


def _check_parts(model: BaseEstimator, what: str) -> None:
    """Check what a model holds: the fitted attributes of each class, trees, and what compiled code follows."""
    # Loads scikit-learn's trees, ensembles and neighbours.
    from raysel.base.model_files.compiled import check_compiled  # noqa: PLC0415
    from raysel.base.trees import check_trees, parts_within  # noqa: PLC0415

    for part in parts_within(model):
        check_shapes(part, what)
        check_compiled(part, what)
    check_trees(model, what)


def _untrusted(content: bytes, what: str) -> list[str]:
    import skops.io  # noqa: PLC0415

    try:
        types = skops.io.get_untrusted_types(data=content)
    except Exception as error:  # a file of another format may raise any exception
        raise DataError(_damaged(what, error)) from error
    trusted = trusted_types()
    return sorted(set(types) - trusted | foreign_nodes(content, trusted))


def _check_types(content: bytes, what: str) -> None:
    if untrusted := _untrusted(content, what):
        raise DataError(
            f"{what} contains {', '.join(untrusted)}, which raysel does not read from a file: it may execute code, or"
            f" cannot be checked. Use estimators of raysel, those of scikit-learn in raysel's list, or classes that a"
            f" package registers under {GROUP}."
        )


def _damaged(what: str, error: Exception) -> str:
    return f"{what} is not a skops file, truncated or damaged ({type(error).__name__}); export the model again."


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """Copy a model and its nested estimators without scikit-learn's callbacks."""
    attached = [vars(part)["_skl_callbacks"] for part in _parts(model) if "_skl_callbacks" in vars(part)]
    # Callbacks hold locks and handles that cannot be copied; deepcopy replaces objects by their entry in the memo.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in _parts(copied):
        vars(part).pop("_skl_callbacks", None)
    return copied


def _parts(model: BaseEstimator) -> list[BaseEstimator]:
    """List a model and its nested estimators: parameters, and fitted ones such as ``estimator_``."""
    found: list[BaseEstimator] = []
    left = [model]
    while left:
        part = left.pop()
        if any(part is known for known in found):
            continue
        found.append(part)
        steps = [step for _, step in part.steps] if isinstance(part, Pipeline) else []
        left += [value for value in [*vars(part).values(), *steps] if isinstance(value, BaseEstimator)]
    return found
