"""The final model as MLflow's model: in skops format, with signature and input example."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow.sklearn
import pandas as pd
from mlflow import MlflowException
from mlflow.models import infer_signature
from mlflow.tracking import MlflowClient

from raysel.base.model_types import trusted_types
from raysel.base.models import load_model, other_classes, types_within
from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError
from raysel.core.trust import check_trust, copy_signed
from raysel.tracking.directory import StudyDirectory, read_floats
from raysel.tracking.mlflow_client import Client
from raysel.tracking.mlflow_experiment import logged_param, with_allowed_keys
from raysel.tracking.records import StudyRecord

#: Largest number of features whose names and types the signature lists; that of more is one tensor.
_MOST_COLUMNS = 1000
#: Packages that some types of models need, by the name under which they are imported.
_OTHER_PACKAGES = {"imblearn": "imbalanced-learn", "lightgbm": "lightgbm", "xgboost": "xgboost"}
#: Tag of a logged model with the versions that are registered of it, which MLflow's page shows.
_VERSIONS = "mlflow.modelVersions"


def log_model(
    client: Client,
    run_id: str,
    experiment: str,
    study: StudyRecord,
    directory: StudyDirectory,
    params: Mapping[str, Any],
) -> str:
    """Log the final model of a study as output of a run, once.

    The file is a copy of the study's ``model.skops`` with its hash. A DataError says why one is not
    logged: it is not trusted, or holds a class whose code a server of MLflow lacks.
    """
    file = directory.ranking / "model.skops"
    check_trust(file, content := file.read_bytes(), directory.path)
    if others := other_classes(content):
        raise DataError(
            f"it holds {', '.join(sorted(others))}, whose code a server lacks; register the class"
            " under the entry point raysel.estimators, or use the study's model.skops"
        )
    tags = {"raysel.study": study.id, "raysel.model": hashlib.sha256(content).hexdigest()}
    model, complete = client.find_model(experiment, tags) or ("", False)
    if not model:
        named = {key: logged_param(value) for key, value in with_allowed_keys(params).items()}
        model = client.create_model(experiment, study.name, run_id, tags, named)
    if not complete:
        with tempfile.TemporaryDirectory(prefix="raysel-model-") as folder:
            write_model_folder(Path(folder, "model"), file, directory.model_example, study)
            client.complete_model(model, Path(folder, "model"))
    client.link_model(run_id, model)
    return model


def write_model_folder(folder: Path, file: Path, example: Path, study: StudyRecord) -> None:
    """Write the folder of a model by MLflow, with the study's own file and its hash.

    The model is read, but not run; so the signature has no outputs.
    """
    model, types = load_model(file), types_within(file)
    samples = _example(example, study, has_names=hasattr(model, "feature_names_in_"))
    described = {} if samples is None else {"signature": infer_signature(samples)}
    mlflow.sklearn.save_model(
        model,
        folder,
        serialization_format="skops",
        skops_trusted_types=sorted(types & trusted_types()),
        input_example=samples,
        pip_requirements=_requirements(types),
        metadata={"raysel_study": study.id, "data_hash": study.data_hash},
        **described,
    )
    copy_signed(file, folder / file.name)


def _example(
    path: Path, study: StudyRecord, *, has_names: bool
) -> pd.DataFrame | FloatArray | None:
    """Return the stored example of the model's input, as a table if it is narrow; or None."""
    if not path.exists():  # a study of an earlier version
        return None
    names = list(study.feature_names)
    try:
        samples = read_floats(path, (None, len(names)))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not has_names or len(names) > _MOST_COLUMNS:
        return samples
    return pd.DataFrame(samples, columns=names)


def _requirements(types: Collection[str]) -> list[str]:
    """Return what is to be installed where a model of these types is served."""
    tops = {name.partition(".")[0] for name in types}
    others = [package for top, package in _OTHER_PACKAGES.items() if top in tops]
    names = ("mlflow", "raysel", "scikit-learn", "numpy", "skops", *others)
    return [f"{name}=={version(name)}" for name in names]


def register_model(
    study: StudyRecord, name: str, model_id: str, run_id: str, description: str
) -> tuple[str, str]:
    """Register a logged model as a new version of a registered model, once."""
    client = MlflowClient(study.uri)
    try:
        before = client.search_model_versions(f"name = '{name}'")
        if same := [made for made in before if made.tags.get("raysel.model_id") == model_id]:
            return _registered(same[0]), ""
        if not client.search_registered_models(f"name = '{name}'"):
            client.create_registered_model(name)
        model = client.get_logged_model(model_id)
        made = client.create_model_version(
            name,
            # MLflow would look for models:/... in the store of the environment
            model.artifact_location,
            run_id,
            tags={"raysel.study": study.id, "raysel.model_id": model_id},
            description=description,
            model_id=model_id,
        )
        known = json.loads(model.tags.get(_VERSIONS, "[]"))
        versions = [*known, {"name": name, "version": int(made.version)}]
        client.set_logged_model_tags(model_id, {_VERSIONS: json.dumps(versions)})
    except MlflowException as error:
        return (
            "",
            (
                f"the model is logged but not registered as {name}"
                f" ({str(error).strip().partition(chr(10))[0]}): tracking.register needs a server"
                " with a model registry, e.g. one with a database. Upload the study again, or leave"
                " tracking.register out."
            ),
        )
    return _registered(made), ""


def _registered(made: Any) -> str:
    return f"the model is version {made.version} of the registered model {made.name}"
