"""The folder of a model in MLflow's format, written without MLflow, whose own code for it takes a second or more."""

from __future__ import annotations

import json
import math
import platform
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import skops.io  # noqa: F401 - so that `load_model` need not import it when the study waits for the end of its upload

from raysel.base.model_types import trusted_types
from raysel.base.models import load_model, types_within
from raysel.config.plain_data import dump_yaml
from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError
from raysel.core.trust import copy_signed
from raysel.tracking.directory import read_floats
from raysel.tracking.records import StudyRecord

#: Largest number of features whose names and types the signature lists; that of more is one tensor.
_MOST_COLUMNS = 1000
_MODEL, _EXAMPLE, _REQUEST = "model.skops", "input_example.json", "serving_input_example.json"
#: Packages that some types of models need, by the name under which they are imported.
_OTHER_PACKAGES = {"imblearn": "imbalanced-learn", "lightgbm": "lightgbm", "xgboost": "xgboost"}
_CONDA, _PYTHON, _REQUIREMENTS = "conda.yaml", "python_env.yaml", "requirements.txt"


def write_model_folder(folder: Path, file: Path, example: Path, study: StudyRecord) -> None:
    """Write MLflow's folder of a model: its file, ``MLmodel``, the environment and the input example.

    The model is read, but not run; so the signature has no outputs.
    """
    model = load_model(file)
    folder.mkdir(parents=True)
    copy_signed(file, folder / _MODEL)
    described = _write_example(folder, model, example, study)
    size = sum(path.stat().st_size for path in folder.iterdir())
    types = types_within(file)
    _write_environment(folder, types)
    flavors: dict[str, Any] = {}
    if hasattr(model, "predict"):
        flavors["python_function"] = {
            "env": {"conda": _CONDA, "virtualenv": _PYTHON},
            "loader_module": "mlflow.sklearn",
            "model_path": _MODEL,
            "predict_fn": "predict",
            "python_version": platform.python_version(),
        }
    flavors["sklearn"] = {
        "code": None,
        "pickled_model": _MODEL,
        "serialization_format": "skops",
        "sklearn_version": version("scikit-learn"),
        "skops_trusted_types": sorted(types & trusted_types()),
    }
    content = {
        "flavors": flavors,
        "metadata": {"raysel_study": study.id, "data_hash": study.data_hash},
        "mlflow_version": version("mlflow"),
        "model_size_bytes": size,
        "model_uuid": uuid.uuid4().hex,
        **described,
        "utc_time_created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }
    (folder / "MLmodel").write_text(dump_yaml(content), encoding="utf-8")


def _write_example(folder: Path, model: Any, path: Path, study: StudyRecord) -> dict[str, Any]:
    """Write the input example and return the keys of ``MLmodel`` on it; none if there is no example."""
    if not path.exists():  # a study of an earlier version
        return {}
    try:
        samples = read_floats(path, (None, len(study.feature_names)))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if samples.shape[1] <= _MOST_COLUMNS and hasattr(model, "feature_names_in_"):
        names = list(study.feature_names)
        stored: Any = {"columns": names, "data": _plain(samples)}
        request: Mapping[str, Any] = {"dataframe_split": stored}
        inputs: Sequence[Any] = [
            {"type": "double", "name": name, "required": True} for name in names
        ]
        kind = {"pandas_orient": "split", "type": "dataframe"}
    else:
        stored = _plain(samples)
        request = {"inputs": stored}
        inputs = [
            {"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, samples.shape[1]]}}
        ]
        kind = {"type": "ndarray"}
    (folder / _EXAMPLE).write_text(json.dumps(stored), encoding="utf-8")
    (folder / _REQUEST).write_text(json.dumps(request, indent=2), encoding="utf-8")
    return {
        "saved_input_example_info": {
            "artifact_path": _EXAMPLE,
            **kind,
            "serving_input_path": _REQUEST,
        },
        "signature": {"inputs": json.dumps(inputs), "outputs": None, "params": None},
    }


def _plain(samples: FloatArray) -> list[list[float | None]]:
    """Samples as JSON has them: a missing value as null."""
    return [[None if math.isnan(value) else value for value in row] for row in samples.tolist()]


def _write_environment(folder: Path, types: Collection[str]) -> None:
    """Write what is to be installed where a model of these types is served."""
    tops = {name.partition(".")[0] for name in types}
    others = [package for top, package in _OTHER_PACKAGES.items() if top in tops]
    packages = [
        f"{name}=={version(name)}"
        for name in ("mlflow", "raysel", "scikit-learn", "numpy", "skops", *others)
    ]
    python, pip = platform.python_version(), _version("pip")
    conda = {
        "channels": ["conda-forge"],
        "dependencies": [f"python={python}", f"pip<={pip}" if pip else "pip", {"pip": packages}],
        "name": "mlflow-env",
    }
    tools = [
        f"{name}=={found}" if (found := _version(name)) else name
        for name in ("pip", "setuptools", "wheel")
    ]
    virtual = {
        "python": python,
        "build_dependencies": tools,
        "dependencies": [f"-r {_REQUIREMENTS}"],
    }
    (folder / _CONDA).write_text(dump_yaml(conda), encoding="utf-8")
    (folder / _PYTHON).write_text(dump_yaml(virtual), encoding="utf-8")
    (folder / _REQUIREMENTS).write_text("\n".join(packages), encoding="utf-8")


def _version(package: str) -> str:
    """Version of a package; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
