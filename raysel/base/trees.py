"""Decision trees of a model file: a damaged or forged one would read memory that is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

from raysel.errors import DataError


def check_trees(model: Any, what: str) -> None:
    """Refuse a model that holds a tree whose nodes point outside of it or back, or ask for features there are not.

    Parameters
    ----------
    model : estimator
    what : str
        For the message.

    Raises
    ------
    DataError
    """
    if not all(_is_sound(tree) for tree in _trees(model, set())):
        raise DataError(f"{what} holds a decision tree whose nodes do not fit together: damaged; export it again.")


def _is_sound(tree: Tree) -> bool:
    if not 0 < tree.node_count <= tree.capacity:
        return False
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    leaf = left == -1
    here = np.arange(tree.node_count)
    forward = (left > here) & (right > here) & (left < tree.node_count) & (right < tree.node_count)
    known = (feature >= 0) & (feature < tree.n_features)
    return bool(np.where(leaf, True, forward & known).all())


def _trees(value: Any, seen: set[int]) -> Iterator[Tree]:
    """All trees within a value, each once."""
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
