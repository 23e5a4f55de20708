"""Checks of a model file before skops reads it: its archive, what its arrays claim, and how its schema is nested."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from raysel.data.formats.numpy_files import check_archive, check_array
from raysel.errors import DataError
from raysel.limits import check_data_bytes

_SCHEMA, _ARRAY = "schema.json", ".npy"
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
            elif info.filename != _SCHEMA:
                raise DataError(f"{path}: its member {info.filename} is no array, which no model file of raysel has.")
        check_data_bytes(path, _OBJECTS * sizes.get(_SCHEMA, 0), "its schema")
        read = _bytes_read(json.loads(archive.read(_SCHEMA)), sizes)
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
