"""Starting Ray as a study needs it: quietly, without what nobody asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Before ray is imported: its own loggers, output, snapshots and file shuffling cost a trial more than a fit.
os.environ.update(
    {
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",
        "TUNE_GLOBAL_CHECKPOINT_S": "1000000",  # the journal is the truth
        "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # a worker that dies is started again; the journal keeps what fails
        "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    }
)
os.environ.setdefault("RAY_worker_niceness", "0")
# The workers that prepared the folds stay for the refits: a new one imports for seconds first.
os.environ.setdefault("RAY_num_workers_soft_limit", str(2 * len(os.sched_getaffinity(0))))
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

if "mlflow" not in sys.modules:
    # Tune counts its own integrations' callbacks, and for that imports them and MLflow, for seconds: let it find none.
    sys.modules["mlflow"] = None  # type: ignore[assignment]
    import ray.air.integrations.mlflow

    del sys.modules["mlflow"]

import ray

from raysel.errors import StudyError


@contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Join the Ray cluster at an address, or start Ray on this machine; leave it as it was.

    Parameters
    ----------
    address : str or None

    Raises
    ------
    StudyError
        If there is no cluster at that address.
    """
    if ray.is_initialized():
        yield
        return
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        else:
            ray.init(
                address="local",  # whatever RAY_ADDRESS or a cluster on this machine says
                num_cpus=len(os.sched_getaffinity(0)),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StudyError(f"Ray cannot be reached at {address or 'this machine'}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()
