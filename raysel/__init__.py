"""raysel: which features matter, and how far to trust the answer."""

from importlib import import_module
from typing import Any

from raysel.core import __version__

# Loaded when first used: a worker that needs a solver does not pay for figures and model files.
_HOME = {
    "AlignedMTDA": "raysel.solvers.mtda.aligned_mtda",
    "BilinearMTDA": "raysel.solvers.mtda.bilinear_mtda",
    "MTDA": "raysel.solvers.mtda.mtda",
    "SemiSupervisedMTDA": "raysel.solvers.mtda.semisupervised_mtda",
    "SMML": "raysel.solvers.smml.smml",
    "SMR": "raysel.solvers.smr.smr",
    "SMRRegressor": "raysel.solvers.smr.smr",
    "Dataset": "raysel.data.dataset",
    "ModalityScaler": "raysel.data.scaling",
    "MaskedVolume": "raysel.data.layouts",
    "Matrix": "raysel.data.layouts",
    "Modalities": "raysel.data.layouts",
    "Tasks": "raysel.data.layouts",
    "Tensor": "raysel.data.layouts",
    "join_tasks": "raysel.data.dataset",
    "load_dataset": "raysel.data.loading",
    "save_dataset": "raysel.data.loading",
    "smml_path": "raysel.solvers.smml.smml",
    "init_study": "raysel.study.draft.draft",
    "open_comparison": "raysel.run.api",
    "open_study": "raysel.run.api",
    "resume_study": "raysel.run.api",
    "run_study": "raysel.run.api",
    "resume_comparison": "raysel.run.api",
    "run_comparison": "raysel.run.api",
    "claim_features": "raysel.run.claims",
    "permutation_test": "raysel.run.permutation",
    "stability_selection": "raysel.run.stability",
    "StabilitySelection": "raysel.run.stability_selector",
    "NestedSearch": "raysel.run.estimator",
    "audit": "raysel.run.audit",
    "FeatureRanking": "raysel.evaluation.feature_ranking",
    "GroupRanking": "raysel.evaluation.group_ranking",
    "FeatureSelector": "raysel.results.feature_selector",
    "PermutationImportance": "raysel.base.importance",
    "load_model": "raysel.base.models",
}

__all__ = [
    "MTDA",
    "SMML",
    "SMR",
    "AlignedMTDA",
    "BilinearMTDA",
    "Dataset",
    "FeatureRanking",
    "FeatureSelector",
    "GroupRanking",
    "MaskedVolume",
    "Matrix",
    "Modalities",
    "ModalityScaler",
    "NestedSearch",
    "PermutationImportance",
    "SMRRegressor",
    "SemiSupervisedMTDA",
    "StabilitySelection",
    "Tasks",
    "Tensor",
    "__version__",
    "audit",
    "claim_features",
    "init_study",
    "join_tasks",
    "load_dataset",
    "load_model",
    "open_comparison",
    "open_study",
    "permutation_test",
    "resume_comparison",
    "resume_study",
    "run_comparison",
    "run_study",
    "save_dataset",
    "smml_path",
    "stability_selection",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'raysel' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "raysel":
            raise
        raise ModuleNotFoundError(
            f"raysel.{name} needs the module {error.name}, which is not installed; install raysel"
            " with its dependencies: pip install raysel.",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
