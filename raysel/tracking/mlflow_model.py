"""The final model as MLflow's model: in skops format, with signature and input example, registered on request."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlflow import MlflowException
from mlflow.entities import LoggedModelOutput, LoggedModelStatus
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from raysel.base.models import load_model, trusted_types
from raysel.core.errors import DataError
from raysel.tracking.directory import StudyDirectory, read_floats
from raysel.tracking.mlflow_experiment import logged_param, with_allowed_keys
from raysel.tracking.records import StudyRecord

#: Largest number of features whose names and types the signature lists; that of more is one tensor.
_MOST_COLUMNS = 1000
#: Tag of a logged model with the versions that are registered of it, which MLflow's page shows.
_VERSIONS = "mlflow.modelVersions"


def log_model(
    client: MlflowClient, run_id: str, study: StudyRecord, directory: StudyDirectory, params: Mapping[str, Any]
) -> str:
    """Log the final model of a study as output of a run; a model that is already there is not logged again.

    The file is a copy of the study's ``model.skops``, which is read without unpickling.
    """
    file = directory.ranking / "model.skops"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    run = client.get_run(run_id)
    tags = {"raysel.study": study.id, "raysel.model": digest}
    wanted = " AND ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
    experiment = run.info.experiment_id
    models = list(client.search_logged_models([experiment], wanted))
    if models:
        model = models[0]
    else:
        named = {key: logged_param(value) for key, value in with_allowed_keys(params).items()}
        model = client.create_logged_model(experiment, study.name, run_id, tags, named)
    if model.status != LoggedModelStatus.READY:
        with tempfile.TemporaryDirectory(prefix="raysel-model-") as folder:
            _write_model(Path(folder, "model"), file, directory.model_example, study)
            client.log_model_artifacts(model.model_id, str(Path(folder, "model")))
        client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
    outputs = run.outputs.model_outputs if run.outputs else []
    if model.model_id not in [output.model_id for output in outputs]:
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])
    return str(model.model_id)


def _write_model(folder: Path, file: Path, example: Path, study: StudyRecord) -> None:
    """Write MLflow's folder of a model: its file, ``MLmodel``, the requirements and the input example."""
    import mlflow.sklearn  # noqa: PLC0415 - takes a second, and most runs have no model
    import skops.io  # noqa: PLC0415

    model = load_model(file)
    types = sorted(set(skops.io.get_untrusted_types(file=file)) & trusted_types())
    samples, signature = _example(model, example, study)
    mlflow.sklearn.save_model(
        model,
        folder,
        serialization_format="skops",
        skops_trusted_types=types,
        signature=signature,
        input_example=samples,
        # Otherwise MLflow loads the model in another process to find them, which takes seconds.
        pip_requirements=[f"{name}=={version(name)}" for name in ("raysel", "scikit-learn", "numpy", "skops")],
        metadata={"raysel_study": study.id, "data_hash": study.data_hash},
    )
    shutil.copyfile(file, folder / "model.skops")


def _example(model: Any, path: Path, study: StudyRecord) -> tuple[Any, Any]:
    """Return the input example and the signature; None for both if there is no example."""
    from mlflow.models import infer_signature  # noqa: PLC0415

    if not path.exists():  # a study of an earlier version
        return None, None
    try:
        samples: Any = read_floats(path, (None, len(study.feature_names)))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if samples.shape[1] <= _MOST_COLUMNS and hasattr(model, "feature_names_in_"):
        import pandas as pd  # noqa: PLC0415

        samples = pd.DataFrame(samples, columns=list(study.feature_names))
    return samples, infer_signature(samples)  # without outputs: the model may be a stranger's, and is not run


def register_model(
    client: MlflowClient, name: str, model_id: str, run_id: str, study: StudyRecord, description: str
) -> tuple[str, str]:
    """Register a logged model as a new version of a registered model; the same model is registered once."""
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


def _registered(made: ModelVersion) -> str:
    return f"the model is version {made.version} of the registered model {made.name}"
