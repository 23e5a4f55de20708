"""Start of Ray with the settings that a study needs, without its output and dashboard."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Set before ray is imported: its loggers, output, snapshots and file copies can take longer than a fit.
os.environ.update(
    {
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",
        "TUNE_MAX_PENDING_TRIALS_PG": "1000000",  # the searcher proposes no more than can run
        "TUNE_GLOBAL_CHECKPOINT_S": "1000000",  # state is restored from the journal
        "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # errors are recorded in the journal
        "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    }
)
os.environ.setdefault("RAY_worker_niceness", "0")
# Keep the workers that prepared the folds for the refits: a new worker needs seconds for its imports.
os.environ.setdefault("RAY_num_workers_soft_limit", str(2 * len(os.sched_getaffinity(0))))
# Errors of Ray's core go to the terminal although no logs are asked for: the study tells them in its own words.
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
# A process that cannot reach the cluster's control service is ended by Ray after this time; `HeadWatch` comes before.
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
import ray.air.integrations

from raysel.errors import StudyError
from raysel.execution.signals import sigterm_handler_restored


@contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Connect to the Ray cluster at an address, or start Ray on this machine; disconnect or stop it at the end.

    A session of Ray that is already running in this process is used and left running.

    Parameters
    ----------
    address : str or None
        Address of a Ray cluster; None starts Ray on this machine.

    Raises
    ------
    StudyError
        If Ray cannot be reached or started.
    """
    if ray.is_initialized():
        yield
        return
    try:
        with sigterm_handler_restored():
            if address:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            else:
                ray.init(
                    address="local",  # ignore RAY_ADDRESS and clusters that run on this machine
                    num_cpus=len(os.sched_getaffinity(0)),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StudyError(
            f"the Ray cluster at {address} cannot be reached: {error}"
            if address
            else f"Ray cannot be started on this machine: {error}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def mlflow_hidden_from_tune() -> Iterator[None]:
    """Keep Tune from importing MLflow, which takes seconds, when it counts its callbacks at the start of a search.

    Inside the context, Tune's integration of MLflow works as if MLflow were not installed; afterwards it can be
    imported as usual. Nothing happens if MLflow or the integration is already imported.
    """
    name = "ray.air.integrations.mlflow"
    if "mlflow" in sys.modules or name in sys.modules:
        yield
        return
    try:
        sys.modules["mlflow"] = None  # type: ignore[assignment]
        try:
            importlib.import_module(name)
        finally:
            del sys.modules["mlflow"]
        yield
    finally:
        sys.modules.pop(name, None)
        vars(ray.air.integrations).pop("mlflow", None)
