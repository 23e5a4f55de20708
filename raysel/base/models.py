"""Models as files, read back without running anything that the file brings along."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from raysel.base.former_names import with_present_names
from raysel.base.registry import GROUP, OWN
from raysel.base.trees import check_trees
from raysel.errors import DataError
from raysel.files import write_result
from raysel.plugins import plugin_targets

#: raysel's own besides the registered methods.
_PARTS = (
    "raysel.base.adapter.ScikitLearnMethod",
    "raysel.data.scaling.UnitScaler",
    "raysel.data.modality_scaler.ModalityScaler",
    "raysel.data.task_scaler.TaskScaler",
)
#: Parts of scikit-learn's classifiers and selectors that skops leaves to its callers: numbers, functions without state,
#: and trees, which `check_trees` looks at.
_SKLEARN_PARTS = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)


def trusted_types() -> frozenset[str]:
    """The types that a model file may name besides what skops trusts by itself; none is imported for it.

    They are raysel's registered methods and scalers, the classes that other packages register under the entry point
    ``raysel.estimators``, and some parts of scikit-learn's estimators. skops itself trusts scikit-learn's estimators,
    arrays, numbers and strings.

    Returns
    -------
    frozenset of str
        Dotted names.

    Examples
    --------
    >>> "raysel.data.scaling.UnitScaler" in trusted_types()
    True
    """
    own = (target.replace(":", ".") for target in OWN.values())
    return frozenset([*own, *plugin_targets(GROUP), *_PARTS, *_SKLEARN_PARTS])


def untrusted_types(model: BaseEstimator) -> list[str]:
    """The types in a model for which `save_model` and `load_model` would refuse it.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    list of str
        Dotted names, sorted; empty where the model can be saved.

    Examples
    --------
    >>> from raysel.data.scaling import UnitScaler
    >>> untrusted_types(UnitScaler())
    []
    """
    import skops.io  # noqa: PLC0415 - takes a second, and most commands need it late or never

    return _strangers(skops.io.dumps(_without_callbacks(model)), "the model")


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model in skops' format, without its callbacks.

    Parameters
    ----------
    model : estimator
        One of raysel's, or a scikit-learn pipeline of such; left as it is.
    path : str or Path
        E.g. ``model.skops``.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        If `load_model` would refuse the file.
    StudyError
        If the file cannot be written.
    """
    import skops.io  # noqa: PLC0415

    content = skops.io.dumps(_without_callbacks(model))
    _refuse_strangers(content, "the model")
    return write_result(path, content)


def load_model(path: str | Path) -> Any:
    """Read a model that `save_model` wrote; nothing is unpickled.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    DataError
        If there is no such file, it is cut short or no model at all, or it names a type that is
        none of `trusted_types` nor one that skops trusts.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.scaling import UnitScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(UnitScaler().fit([[0], [4]]), Path(folder, "scaler.skops"))).range_
    4.0
    """
    try:
        content = with_present_names(Path(path).read_bytes())
    except OSError as error:
        raise DataError(f"the model {path} cannot be read: {error.strerror}.") from error
    _refuse_strangers(content, str(path))
    import skops.io  # noqa: PLC0415

    try:
        model = skops.io.loads(content, trusted=sorted(trusted_types()))
    except Exception as error:  # a damaged array may raise anything
        raise DataError(_damaged(str(path), error)) from error
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{path} holds a {type(model).__name__}, not a model.")
    check_trees(model, str(path))
    return model


def _strangers(content: bytes, what: str) -> list[str]:
    import skops.io  # noqa: PLC0415

    try:
        named = skops.io.get_untrusted_types(data=content)
    except Exception as error:  # what is no skops file may raise anything
        raise DataError(_damaged(what, error)) from error
    return sorted(set(named) - trusted_types())


def _refuse_strangers(content: bytes, what: str) -> None:
    if strangers := _strangers(content, what):
        raise DataError(
            f"{what} names {', '.join(strangers)}: neither raysel's or registered under {GROUP}, nor what skops trusts,"
            " so it may run code of its own. Only models of raysel's, scikit-learn's and registered classes are read."
        )


def _damaged(what: str, error: Exception) -> str:
    return f"{what} is no skops file, or it is cut short or damaged ({type(error).__name__}); export the model again."


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """A copy of a model and of the estimators within it, without scikit-learn's callbacks."""
    attached = [vars(part)["_skl_callbacks"] for part in _parts(model) if "_skl_callbacks" in vars(part)]
    # What stands in the memo is taken for the copy: callbacks hold locks and handles that cannot be copied.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in _parts(copied):
        vars(part).pop("_skl_callbacks", None)
    return copied


def _parts(model: BaseEstimator) -> list[BaseEstimator]:
    return [model, *(value for value in model.get_params().values() if isinstance(value, BaseEstimator))]
