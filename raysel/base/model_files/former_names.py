"""Conversion of model files of earlier versions, whose classes have moved to other modules."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

#: Module and name of each class in model files of version 0.1, and its present module.
_MOVED = {
    ("raysel.solvers.smr", "SMR"): "raysel.solvers.smr.smr",
    ("raysel.solvers.smml", "SMML"): "raysel.solvers.smml.smml",
    ("raysel.solvers.mtda", "MTDA"): "raysel.solvers.mtda.mtda",
    ("raysel.baselines.pca", "PCA"): "raysel.baselines.projections.pca",
    ("raysel.baselines.lda", "LDA"): "raysel.baselines.projections.lda",
    ("raysel.baselines.aggregate", "Aggregate"): "raysel.baselines.projections.aggregate",
    ("raysel.baselines.trace_ratio_lda", "TraceRatioLDA"): "raysel.baselines.projections.trace_ratio_lda",
    ("raysel.baselines.linear_svm", "LinearSVM"): "raysel.baselines.classifiers.linear_svm",
}
_SCHEMA = "schema.json"


def with_present_names(content: bytes) -> bytes:
    """Replace the modules of moved classes in a model file by their present modules."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            schema = json.loads(file.read(_SCHEMA))
            if not _rename(schema):
                return content
            renamed = io.BytesIO()
            with zipfile.ZipFile(renamed, "w") as copy:
                for item in file.infolist():
                    data = json.dumps(schema).encode() if item.filename == _SCHEMA else file.read(item)
                    copy.writestr(item.filename, data)
    except Exception:  # skops reports the error when it reads the file  # noqa: BLE001
        return content
    return renamed.getvalue()


def _rename(node: Any) -> int:
    """Replace the modules of moved classes in a schema in place; return the number of replacements."""
    if isinstance(node, list):
        return sum(_rename(item) for item in node)
    if not isinstance(node, dict):
        return 0
    count = sum(_rename(value) for value in node.values())
    name = node.get("__module__"), node.get("__class__")
    if all(isinstance(part, str) for part in name) and name in _MOVED:
        node["__module__"] = _MOVED[name]
        count += 1
    return count
