"""Kinds of nodes that the schema of a model file may hold: arrays, plain containers, and named classes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection
from typing import Any

from raysel.base.model_files.sklearn_classes import FUNCTIONS

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
