"""Executor on Ray; the only package that imports Ray, after the settings that it reads then."""

import os

from raysel.core.credentials import changed_variables

# Loggers, output, snapshots and copies of files can take longer than a fit.
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
# Keep the workers that prepared the folds for the refits: a new worker needs seconds for its
# imports.
os.environ.setdefault("RAY_num_workers_soft_limit", str(2 * len(os.sched_getaffinity(0))))
# Errors of Ray's core and events of the cluster go to the terminal although no logs are asked for:
# the study tells them in its own words.
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".?")
# A process that cannot reach the cluster's control service is ended by Ray after this time;
# `HeadWatch` comes before.
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Ray joins the driver's runtime_env with that of the job it runs in, where both name modules.
os.environ.setdefault("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")

#: By this a Ray that this process starts listens on the loopback interface only, as it does on
#: macOS and Windows; a process that joins a cluster may do so all the same. Others do not get it.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
with changed_variables(LOOPBACK):
    import ray  # noqa: F401
