"""Validation of decision trees in a model file; an invalid tree would access memory outside its arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

from raysel.errors import DataError


def check_trees(model: Any, what: str) -> None:
    """Check that the child nodes of all trees of a model come after their parent, and that all features exist.

    Parameters
    ----------
    model : estimator
        Model that may contain decision trees.
    what : str
        Name of the model in the message, e.g. the path of its file.

    Raises
    ------
    DataError
        If a tree is invalid.
    """
    if not all(_is_valid(tree) for tree in _trees(model, set())):
        raise DataError(f"{what} holds a decision tree with invalid nodes: it is damaged; export the model again.")


def _is_valid(tree: Tree) -> bool:
    if not 0 < tree.node_count <= tree.capacity:
        return False
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    leaf = left == -1
    node = np.arange(tree.node_count)
    valid_children = (left > node) & (right > node) & (left < tree.node_count) & (right < tree.node_count)
    valid_feature = (feature >= 0) & (feature < tree.n_features)
    return bool(np.where(leaf, True, valid_children & valid_feature).all())


def _trees(value: Any, seen: set[int]) -> Iterator[Tree]:
    """Iterate over all distinct trees contained in a value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Tree):
        yield value
        return
    if isinstance(value, dict):
        parts: Any = value.values()
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        parts = value if not isinstance(value, np.ndarray) else value.ravel()
    else:
        parts = vars(value).values() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    for part in parts:
        yield from _trees(part, seen)
