"""Models in skops' format, written and read without pickle."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from raysel.base.model_files import FUNCTIONS, SKLEARN, check_model_file, foreign_nodes, with_present_names
from raysel.base.registry import GROUP, OWN
from raysel.core.errors import DataError
from raysel.core.files import write_result
from raysel.core.machine import check_data_bytes
from raysel.core.plugins import plugin_targets

#: raysel's own classes in model files besides the registered methods.
_PARTS = (
    "raysel.base.adapter.ScikitLearnMethod",
    "raysel.evaluation.neighbours.NearestNeighborsClassifier",
    "raysel.evaluation.pipeline.FeaturePipeline",
    "raysel.evaluation.selectors.RankedClassifier",
    "raysel.evaluation.selectors.RankedSelector",
    "raysel.data.scaling.UnitScaler",
    "raysel.data.scaling.ModalityScaler",
    "raysel.data.scaling.TaskScaler",
    "raysel.results.feature_selector.FeatureSelector",
)


def trusted_types() -> frozenset[str]:
    """List the classes that a model file may contain.

    They are raysel's registered methods and scalers, the classes that other packages register under the entry point
    ``raysel.estimators``, and those of scikit-learn that `load_model` can check; none is imported.

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

    return _untrusted(skops.io.dumps(_without_callbacks(model)))


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
        but arrays, plain containers and the classes of `trusted_types`, or its compiled code
        would leave its arrays.

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
        content = with_present_names(content)
        _check_types(content, str(path))
        model = _loaded(content, str(path))
    except DataError:
        raise
    except Exception as error:  # a damaged file may raise any exception, as a part that is missing or of another kind
        raise DataError(
            f"{path} is not a skops file, truncated or damaged ({type(error).__name__}); export the model again."
        ) from error
    return model


def _loaded(content: bytes, what: str) -> BaseEstimator:
    import skops.io  # noqa: PLC0415

    # Loads scikit-learn's trees, ensembles and neighbours.
    from raysel.base.model_parts import check_model  # noqa: PLC0415

    model = skops.io.loads(content, trusted=sorted(trusted_types()))
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{what} holds a {type(model).__name__}, not a model.")
    check_model(model, what)
    return model


def _untrusted(content: bytes) -> list[str]:
    import skops.io  # noqa: PLC0415

    trusted = trusted_types()
    return sorted(set(skops.io.get_untrusted_types(data=content)) - trusted | foreign_nodes(content, trusted))


def _check_types(content: bytes, what: str) -> None:
    if untrusted := _untrusted(content):
        raise DataError(
            f"{what} contains {', '.join(untrusted)}, which raysel does not read from a file: it may execute code, or"
            f" cannot be checked. Use estimators of raysel, those of scikit-learn in raysel's list, or classes that a"
            f" package registers under {GROUP}."
        )


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """Copy a model and its nested estimators without scikit-learn's callbacks."""
    from raysel.base.model_parts import parts_within  # noqa: PLC0415

    parts = [part for part in parts_within(model) if isinstance(part, BaseEstimator)]
    attached = [vars(part)["_skl_callbacks"] for part in parts if "_skl_callbacks" in vars(part)]
    # Callbacks hold locks and handles that cannot be copied; deepcopy replaces objects by their entry in the memo.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in parts_within(copied):
        if isinstance(part, BaseEstimator):
            vars(part).pop("_skl_callbacks", None)
    return copied
