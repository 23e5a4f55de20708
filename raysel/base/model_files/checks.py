"""Kinds of nodes that the schema of a model file may hold: arrays, plain containers, and named classes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVC

from raysel.base.model_files.classes import FUNCTIONS
from raysel.core.errors import DataError
from raysel.core.limits import check_data_bytes
from raysel.data.formats.numpy_files import check_archive, check_array

_SCHEMA = "schema.json"
#: Names that a node of each kind may have; None: any, because skops makes the same of all. ObjectNode is not listed.
_KINDS: dict[str, frozenset[str] | None] = {
    "DictNode": frozenset({"builtins.dict"}),
    "FunctionNode": FUNCTIONS,
    "JsonNode": None,
    "ListNode": frozenset({"builtins.list"}),
    "NdArrayNode": frozenset(
        f"numpy.{name}" for name in ("ndarray", "bool", "bool_", "float32", "float64", "int32", "int64", "str_")
    ),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SetNode": frozenset({"builtins.set"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset({"builtins.bool", "builtins.float", "builtins.int", "builtins.str", "numpy.int64"}),
}


def foreign_nodes(content: bytes, classes: Collection[str]) -> set[str]:
    """Return the names of the nodes of a model file that are of another kind, or objects of other classes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        left: list[Any] = [json.loads(archive.read(_SCHEMA))]
    found = set()
    while left:
        node = left.pop()
        if isinstance(node, dict):
            left.extend(node.values())
            kind = node.get("__loader__")
            name = f"{node.get('__module__')}.{node.get('__class__')}"
            allowed = classes if kind == "ObjectNode" else _KINDS.get(str(kind), ())
            if "__loader__" in node and allowed is not None and name not in allowed:
                found.add(name)
        elif isinstance(node, list):
            left.extend(node)
    return found


_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_METRICS = ("euclidean", "sqeuclidean", "manhattan", "cityblock", "l1", "l2", "chebyshev", "cosine", "minkowski")


def check_compiled(part: Any, what: str) -> None:
    """Raise a DataError if a support vector machine or a nearest-neighbour classifier would leave its arrays."""
    known = {SVC: _machine, NuSVC: _machine, KNeighborsClassifier: _neighbours}.get(type(part))
    if known is not None and "classes_" in vars(part) and not known(vars(part)):
        raise DataError(
            f"{what} holds a {type(part).__name__} that raysel does not read: it is damaged or forged, or its kernel or"
            " metric is no plain one."
        )


def _machine(state: dict[str, Any]) -> bool:
    """Return whether the numbers of support vectors of the classes sum to their number."""
    counts = state["_n_support"]
    return bool(
        state["kernel"] in _KERNELS
        and "_impl" not in state
        and state["_sparse"] is False
        and (counts >= 0).all()
        and counts.sum(dtype=object) == len(state["support_vectors_"])
        and len(state["support_"]) == len(state["_dual_coef_"].T) == len(state["support_vectors_"])
        and len(state["_probA"]) == len(state["_probB"])
        and len(state["_intercept_"]) == len(counts) * (len(counts) - 1) // 2
    )


def _neighbours(state: dict[str, Any]) -> bool:
    """Return whether the neighbours are found by plain distances, and the codes of their classes exist."""
    codes, classes = state["_y"], state["classes_"]
    n_classes = [len(own) for own in (classes if isinstance(classes, list) else [classes])]
    return bool(
        state["_fit_method"] == "brute"
        and state["_tree"] is None
        and state["effective_metric_"] in _METRICS
        and all(key == "p" and isinstance(p, Real) for key, p in state["effective_metric_params_"].items())
        and state["n_samples_fit_"] == len(state["_fit_X"]) == len(codes)
        and state["outputs_2d_"] is isinstance(classes, list)
        and codes.dtype.kind == "i"
        and (codes >= 0).all()
        and (codes.reshape(len(codes), -1) < np.array(n_classes)).all()
    )


_SCHEMA_CHECKS, _ARRAY = "schema.json", ".npy"
#: Levels of the schema: ten times those of the deepest of raysel's models.
_MOST_LEVELS = 400
#: Parts of a model with each reference written out: what displays a model follows all of them.
_MOST_PARTS = 10**7
#: Bytes of memory for each byte of the schema as Python objects: 64 of an empty list, which has three.
_OBJECTS = 32


def check_model_file(content: bytes, path: object) -> None:
    """Check a model file before skops reads it, without building anything of it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {}
        for info in check_archive(archive, path):
            sizes[info.filename] = info.file_size
            if info.filename.endswith(_ARRAY):
                with archive.open(info) as file:
                    check_array(file, info.file_size, path, f"the array {info.filename}")
            elif info.filename != _SCHEMA_CHECKS:
                raise DataError(f"{path}: its member {info.filename} is no array, which no model file of raysel has.")
        check_data_bytes(path, _OBJECTS * sizes.get(_SCHEMA_CHECKS, 0), "its schema")
        read = _bytes_read(json.loads(archive.read(_SCHEMA_CHECKS)), sizes)
        check_data_bytes(path, read, "its arrays, as often as its schema names them,")


def _bytes_read(schema: Any, sizes: Mapping[str, int]) -> int:
    """Bytes of the members that the nodes of a schema read, each time that one names them."""
    parts: dict[Any, int] = {}

    def visit(node: Any, level: int) -> tuple[int, int]:
        """Number of parts of a node with each reference written out, and bytes of members."""
        if level > _MOST_LEVELS:
            raise ValueError(f"a schema of more than {_MOST_LEVELS} levels")
        if isinstance(node, str):
            return 1, sizes.get(node, 0)
        number = node.get("__id__") if isinstance(node, dict) else None
        number = number if isinstance(number, int | float | str) else None
        if number in parts:  # skops takes the part of this number, whatever else the node says
            if not parts[number]:
                raise ValueError("a part of the model that contains itself")
            return parts[number], 0
        if number is not None:
            parts[number] = 0
        n_parts, n_bytes = 1, 0
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            found = visit(child, level + 1)
            n_parts, n_bytes = n_parts + found[0], n_bytes + found[1]
        if n_parts > _MOST_PARTS:
            raise ValueError(f"a schema of more than {_MOST_PARTS} parts")
        if number is not None:
            parts[number] = n_parts
        return n_parts, n_bytes

    return visit(schema, 0)[1]
