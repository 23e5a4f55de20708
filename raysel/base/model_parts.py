"""Check of a model that skops has read: what compiled code follows without looking whether it stays in its arrays.

scikit-learn follows the nodes of a tree without bounds checks. The number of features of a tree is also read from the
file, so it is compared with that of the estimator that checks the samples: the decision tree itself, or an ensemble
that evaluates its trees directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from raysel.core.errors import DataError

#: Ensembles that check the samples themselves and evaluate their trees without a further check. Others, e.g. bagging
#: on subsets of the features or a pipeline with a projection, call the public ``predict`` of their parts.
_DIRECT = (BaseForest, BaseGradientBoosting, IsolationForest)


_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_METRICS = (
    "euclidean",
    "sqeuclidean",
    "manhattan",
    "cityblock",
    "l1",
    "l2",
    "chebyshev",
    "cosine",
    "minkowski",
)


def check_model(model: Any, what: str) -> None:
    """Raise a DataError if compiled code could leave the arrays of a model."""
    for part in parts_within(model):
        if isinstance(part, np.ndarray):
            plain = part.dtype.kind in "biufU" or all(
                isinstance(item, str | Real | None) for item in part.ravel()
            )
            if type(part) is not np.ndarray or not plain:
                raise DataError(
                    f"{what} holds an array of {part.dtype}: only numbers and texts are read."
                )
        elif isinstance(part, np.random.RandomState):
            state: Any = part.get_state(legacy=False)
            if not 0 <= state["state"]["pos"] <= len(state["state"]["key"]):
                raise DataError(
                    f"{what} holds an invalid state of a random number generator; export the model again."
                )
        elif isinstance(part, BaseEstimator):
            _check_estimator(part, what)
    check_trees(model, what)


def _check_estimator(estimator: BaseEstimator, what: str) -> None:
    cls, state = type(estimator), vars(estimator)
    for name in state.keys() - estimator.get_params(deep=False).keys():
        if callable(getattr(cls, name, None)) or isinstance(getattr(cls, name, None), property):
            raise DataError(
                f"{what}: `{name}` of {cls.__name__} hides a method: the file is damaged or forged."
            )
    holds = {SVC: _machine, NuSVC: _machine, KNeighborsClassifier: _neighbours}.get(cls)
    if holds is not None and "classes_" in state and not holds(state):
        raise DataError(
            f"{what} holds a {cls.__name__} that raysel does not read: it is damaged or forged, or its kernel or metric"
            " is no plain one."
        )


def _machine(state: dict[str, Any]) -> bool:
    """Return whether the arrays of a support vector machine have the shapes that its numbers of vectors say."""
    counts, n, n_features = (
        state["_n_support"],
        len(state["support_vectors_"]),
        state["n_features_in_"],
    )
    n_classes = len(counts)
    n_pairs = n_classes * (n_classes - 1) // 2
    shapes = {
        "support_": (n,),
        "support_vectors_": (n, n_features),
        "_dual_coef_": (n_classes - 1, n),
        "_intercept_": (n_pairs,),
        "_probB": np.shape(state["_probA"]),
    }
    return bool(
        state["kernel"] in _KERNELS
        and "_impl" not in state
        and state["_sparse"] is False
        and (counts >= 0).all()
        and counts.sum(dtype=object) == n
        and all(np.shape(state[name]) == shape for name, shape in shapes.items())
        and np.shape(state["_probA"]) in ((0,), (n_pairs,))
    )


def _neighbours(state: dict[str, Any]) -> bool:
    """Return whether the neighbours are found by plain distances, and the codes of their classes exist."""
    codes, classes = state["_y"], state["classes_"]
    n_classes = [len(known) for known in (classes if isinstance(classes, list) else [classes])]
    return bool(
        state["_fit_method"] == "brute"
        and state["_tree"] is None
        and state["effective_metric_"] in _METRICS
        and all(
            key == "p" and isinstance(p, Real)
            for key, p in state["effective_metric_params_"].items()
        )
        and state["n_samples_fit_"] == len(state["_fit_X"]) == len(codes)
        and state["outputs_2d_"] is isinstance(classes, list)
        and codes.dtype.kind == "i"
        and (codes >= 0).all()
        and (codes.reshape(len(codes), -1) < np.array(n_classes)).all()
    )


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
        raise DataError(
            f"{what} holds a decision tree with invalid nodes: it is damaged; export the model again."
        )
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
    valid_children = (
        (left > node) & (right > node) & (left < tree.node_count) & (right < tree.node_count)
    )
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
    n_classes = (
        np.atleast_1d(vars(owner).get("n_classes_", 0))
        if is_classifier(owner)
        else np.ones(n_outputs)
    )
    return np.array_equal(tree.n_classes, n_classes)


def _agrees(ensemble: Any) -> bool:
    """Return whether all trees of an ensemble have its number of features."""
    owners = [
        value
        for value in parts_within(ensemble)
        if isinstance(value, BaseDecisionTree) and "tree_" in vars(value)
    ]
    n_features = _integer(ensemble, "n_features_in_")
    if any(_integer(owner, "n_features_in_") != n_features for owner in owners):
        return False
    if owners and isinstance(
        ensemble, BaseGradientBoosting
    ):  # writes one column for each tree of an iteration
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
