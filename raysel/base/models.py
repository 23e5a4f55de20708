"""Validation of decision trees in a model file; an invalid tree would access memory outside its arrays.

scikit-learn follows the nodes of a tree without bounds checks. The number of features of a tree is also read from the
file, so it is compared with that of the estimator that checks the samples: the decision tree itself, or an ensemble
that evaluates its trees directly.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from raysel.base.model_files.checks import check_model_file, foreign_nodes
from raysel.base.model_files.classes import FUNCTIONS, SKLEARN, with_present_names
from raysel.base.model_files.shapes import check_shapes
from raysel.base.registry import GROUP, OWN
from raysel.core.errors import DataError
from raysel.core.files import write_result
from raysel.core.limits import check_data_bytes
from raysel.core.plugins import plugin_targets

#: Ensembles that check the samples themselves and evaluate their trees without a further check. Others, e.g. bagging
#: on subsets of the features or a pipeline with a projection, call the public ``predict`` of their parts.
_DIRECT = (BaseForest, BaseGradientBoosting, IsolationForest)


def check_trees(model: Any, what: str) -> None:
    """Check the decision trees of a model.

    Child nodes must come after their parent and at most ``max_depth`` below the root, and all features must exist. A
    tree must belong to an estimator and agree with it in the numbers of features, outputs and classes; so must the
    estimator and an ensemble that evaluates its tree directly.
    """
    values = list(parts_within(model))
    owners = [value for value in values if isinstance(value, BaseDecisionTree)]
    owned = {id(vars(owner).get("tree_")) for owner in owners}
    trees = [value for value in values if isinstance(value, Tree)]
    if not all(_is_valid(tree) for tree in trees):
        raise DataError(f"{what} holds a decision tree with invalid nodes: it is damaged; export the model again.")
    fitted = [owner for owner in owners if "tree_" in vars(owner)]
    ensembles = [value for value in values if isinstance(value, _DIRECT)]
    if not (
        all(id(tree) in owned for tree in trees)
        and all(_fits(owner, owner.tree_) for owner in fitted)
        and all(_agrees(ensemble) for ensemble in ensembles)
    ):
        raise DataError(
            f"{what} holds a decision tree that does not fit its estimator: it is damaged; export the model again."
        )


def _is_valid(tree: Tree) -> bool:
    if not 0 < tree.node_count <= tree.capacity:
        return False
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    leaf = left == -1
    node = np.arange(tree.node_count)
    valid_children = (left > node) & (right > node) & (left < tree.node_count) & (right < tree.node_count)
    valid_feature = (feature >= 0) & (feature < tree.n_features)
    if not np.where(leaf, True, valid_children & valid_feature).all():
        return False
    level, depth = np.zeros(1, dtype=np.intp), 0
    while len(level := level[~leaf[level]]) and depth <= tree.max_depth:
        level, depth = np.unique([left[level], right[level]]), depth + 1
    return bool(depth <= tree.max_depth)  # decision_path allocates max_depth + 1 entries a sample


def _fits(owner: BaseDecisionTree, tree: Any) -> bool:
    """Return whether a tree has the numbers of features, outputs and classes of its estimator."""
    n_features, n_outputs = _integer(owner, "n_features_in_"), _integer(owner, "n_outputs_")
    if not isinstance(tree, Tree) or (tree.n_features, tree.n_outputs) != (n_features, n_outputs):
        return False
    n_classes = np.atleast_1d(vars(owner).get("n_classes_", 0)) if is_classifier(owner) else np.ones(n_outputs)
    return np.array_equal(tree.n_classes, n_classes)


def _agrees(ensemble: Any) -> bool:
    """Return whether all trees of an ensemble have its number of features."""
    owners = [
        value for value in parts_within(ensemble) if isinstance(value, BaseDecisionTree) and "tree_" in vars(value)
    ]
    n_features = _integer(ensemble, "n_features_in_")
    if any(_integer(owner, "n_features_in_") != n_features for owner in owners):
        return False
    if owners and isinstance(ensemble, BaseGradientBoosting):  # writes one column for each tree of an iteration
        width = _integer(ensemble, "n_trees_per_iteration_")
        return np.shape(ensemble.estimators_)[1:] == (width,)
    return True


def _integer(estimator: Any, name: str) -> int:
    """Return an attribute of an instance; -1 if it is missing or no integer."""
    value = vars(estimator).get(name)
    return int(value) if isinstance(value, Integral) else -1


def parts_within(value: Any) -> Iterator[Any]:
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
    from raysel.base.model_files.checks import check_compiled  # noqa: PLC0415

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
