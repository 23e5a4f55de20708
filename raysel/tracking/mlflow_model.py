"""The final model as MLflow's model: in skops format, with signature and input example, registered on request."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysel.base.models import other_classes
from raysel.core.errors import DataError
from raysel.core.trust import check_trust
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.mlflow_client import Client
from raysel.tracking.mlflow_experiment import logged_param, with_allowed_keys
from raysel.tracking.mlflow_model_files import write_model_folder
from raysel.tracking.records import StudyRecord

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
    """Log the final model of a study as output of a run; a model that is already there is not logged again.

    The file is a copy of the study's ``model.skops`` with its hash. A DataError says why one is not logged: it is not
    trusted, or holds a class whose code a server of MLflow lacks.
    """
    file = directory.ranking / "model.skops"
    check_trust(file, content := file.read_bytes(), directory.path)
    if others := other_classes(content):
        raise DataError(
            f"it holds {', '.join(sorted(others))}, whose code a server lacks; register the class under the entry point "
            "raysel.estimators, or use the study's model.skops"
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


def register_model(
    study: StudyRecord, name: str, model_id: str, run_id: str, description: str
) -> tuple[str, str]:
    """Register a logged model as a new version of a registered model; the same model is registered once."""
    from mlflow import MlflowException  # noqa: PLC0415 - MLflow takes seconds to import
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

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
            model.artifact_location,  # MLflow would look for models:/... in the store of the environment
            run_id,
            tags={"raysel.study": study.id, "raysel.model_id": model_id},
            description=description,
            model_id=model_id,
        )
        known = json.loads(model.tags.get(_VERSIONS, "[]"))
        versions = [*known, {"name": name, "version": int(made.version)}]
        client.set_logged_model_tags(model_id, {_VERSIONS: json.dumps(versions)})
    except MlflowException as error:
        return "", (
            f"the model is logged but not registered as {name} ({str(error).strip().partition(chr(10))[0]}): "
            f"tracking.register needs a server with a model registry, e.g. one that keeps its runs in a database. "
            "Upload the study again to try once more, or leave tracking.register out."
        )
    return _registered(made), ""


def _registered(made: Any) -> str:
    return f"the model is version {made.version} of the registered model {made.name}"
