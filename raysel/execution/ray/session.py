"""A session of Ray: on this machine alone, with no more processes than a study uses, or joined
to a cluster.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ray
import ray._private.node
import ray._private.ray_constants
import ray._private.utils
from ray.exceptions import RayError

from raysel.core.credentials import hidden_variables
from raysel.core.errors import ConfigError, RayStartError, StudyError
from raysel.execution.ray.head import (
    MODE,
    check_cluster,
    check_takes_token,
    demands_token,
    protect_token,
)
from raysel.execution.ray.shipping import ShippedCode, runtime_env, shipped_code
from raysel.execution.ray.versions import NodeCheck, computing_nodes
from raysel.execution.signals import sigterm_handler_restored
from raysel.study.definition import Study


@contextmanager
def without_note_on_logs() -> Iterator[None]:
    """Leave out the line that Ray's core prints where RAY_BACKEND_LOG_LEVEL is set; the rest is
    printed at the end.
    """
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            for line in file:
                if b"RAY_BACKEND_LOG_LEVEL" not in line:
                    os.write(2, line)


# Set before ray is imported: its loggers, output, snapshots and file copies can take longer than a
# fit.
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
# Errors of Ray's core go to the terminal although no logs are asked for: the study tells them in
# its own words.
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
# A process that cannot reach the cluster's control service is ended by Ray after this time;
# `HeadWatch` comes before.
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Ray joins the driver's runtime_env with that of the job it runs in, where both name modules.
os.environ.setdefault("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")

#: Whether Ray has been started in this process with a token: it then demands one from every
#: cluster, to its end.
_started_with_token = False

#: Whether the session of Ray in this process is one of `ray_session`, and not one that the caller
#: has begun.
_is_own = False

#: Check of the nodes of the cluster that this process has joined; None on this machine alone.
_check: NodeCheck | None = None


def node_check() -> NodeCheck | None:
    """Return the check of the nodes of the cluster that `ray_session` has joined; None on this
    machine alone.
    """
    return _check


def cluster_nodes() -> list[Mapping[str, float]]:
    """Return the resources of the nodes of the cluster that this process has joined, by Ray's
    names.
    """
    return [node["Resources"] for node in computing_nodes()]


@contextmanager
def ray_session(
    address: str | None, studies: Sequence[Study] = (), *, allow_mixed_versions: bool = False
) -> Iterator[None]:
    """Connect to the Ray cluster at an address, or start Ray on this machine; disconnect or stop it
    at the end.

    A cluster's workers get raysel's code, that of the studies' own methods and the environment of
    threads from this process, and its nodes are compared with this process. A session of Ray that
    is already running in this process is used and left running.
    """
    global _check, _is_own  # noqa: PLW0603 - Ray's own session is global too
    modules: tuple[str, ...] = ()
    with ExitStack() as stack:
        stack.enter_context(keys_kept_here())
        if ray.is_initialized():
            if _check is None and len(computing_nodes()) > 1:  # a cluster that the caller joined
                modules = ("raysel",)
        elif address:
            stack.enter_context(token_mode_taken_back())
            protect_token(make=False)
            code = shipped_code(studies)
            modules = tuple(code.modules)
            _join(address, code, studies)
            _is_own = True
            stack.callback(_end_session)
        else:
            protect_token(make=True)
            stack.enter_context(token_mode_taken_back())
            _start()
            _is_own = True
            stack.callback(_end_session)
            stack.enter_context(waiting_workers_used())
        if modules:
            _check = NodeCheck(modules, allow_mixed_versions)
            stack.callback(_forget_check)
            _check.compare()
        yield


@contextmanager
def token_mode_taken_back() -> Iterator[None]:
    """Take back the mode that a session of Ray sets, so that processes begun later have the user's.

    What Ray has read of it in this process stays, and `_started_with_token` says so.
    """
    global _started_with_token  # noqa: PLW0603 - Ray's own mode is global too
    before = os.environ.get(MODE)
    try:
        yield
    finally:
        _started_with_token |= demands_token()
        if before is None:
            os.environ.pop(MODE, None)


def token_refusal() -> StudyError | None:
    """Return the error to raise if workers end because the caller's cluster takes no token, and
    this process does.
    """
    if _is_own or not (_started_with_token or demands_token()):
        return None
    return _refusal_of(ray.get_runtime_context().gcs_address)


@cache
def _refusal_of(address: str) -> StudyError | None:
    try:
        check_takes_token(address)
    except ConfigError as error:
        return StudyError(str(error))
    return None


def _end_session() -> None:
    global _is_own  # noqa: PLW0603
    _is_own = False
    ray.shutdown()


def _forget_check() -> None:
    global _check  # noqa: PLW0603
    _check = None


def _join(address: str, code: ShippedCode, studies: Sequence[Study]) -> None:
    """Join a cluster and ship the code to its workers."""
    in_token_mode = _started_with_token or demands_token()
    check_cluster(address, in_token_mode=in_token_mode)
    if in_token_mode:
        os.environ[MODE] = (
            "token"  # Ray reads it anew; half of the process would call without a token
        )
    with tempfile.TemporaryDirectory(prefix="raysel-code-") as folder:
        shipped = runtime_env(code, Path(folder), studies)
        try:
            with sigterm_handler_restored(), without_note_on_logs():
                ray.init(
                    address=address, runtime_env=shipped, log_to_driver=False, logging_level="ERROR"
                )
        except (ConnectionError, ValueError, RuntimeError, RayError) as error:
            raise StudyError(f"the Ray cluster at {address} cannot be joined: {error}") from error


#: Servers that a study on this machine does not use, by the methods of Ray's node that start them.
UNUSED_SERVERS = ("start_api_server", "start_monitor", "start_log_monitor")


@contextmanager
def without_unused_servers() -> Iterator[None]:
    """Start Ray without API server, autoscaler and log monitor, and its agents without the
    dashboard's modules.

    They take a second of each core, and Ray's start waits for the first. Ray has no public setting
    for it; a version that names them otherwise starts them.
    """
    with ExitStack() as stack:
        for name in UNUSED_SERVERS:
            if hasattr(ray._private.node.Node, name):  # noqa: SLF001
                stack.enter_context(patch.object(ray._private.node.Node, name))  # noqa: SLF001
        if hasattr(ray._private.utils, "get_dashboard_dependency_error"):  # noqa: SLF001
            left_out = ImportError("the dashboard is left out")
            stack.enter_context(
                patch.object(
                    ray._private.utils,  # noqa: SLF001
                    "get_dashboard_dependency_error",
                    return_value=left_out,
                )
            )
        yield


@contextmanager
def waiting_workers_used() -> Iterator[None]:
    """Let Tune's actors run in the workers that Ray has started: they need no environment of their
    own here.

    Tune gives each actor a `runtime_env` of variables, which no waiting worker has, so that Ray
    starts another. On this machine the workers have the variables of this process. A version of
    Tune that keeps its actors elsewhere starts others.
    """
    from ray.tune.execution import class_cache  # noqa: PLC0415 - after the variables above

    actors: dict[type, Any] = {}

    def get(_: Any, trainable: type) -> Any:
        if trainable not in actors:
            actors[trainable] = ray.remote(trainable)
        return actors[trainable]

    with ExitStack() as stack:
        if hasattr(class_cache, "_ActorClassCache"):
            stack.enter_context(patch.object(class_cache._ActorClassCache, "get", get))  # noqa: SLF001
        yield


@contextmanager
def keys_kept_here() -> Iterator[None]:
    """Let Tune copy no key of AWS from this process into its actors' `runtime_env`, which Ray's
    dashboard shows.
    """
    from ray.tune.execution import class_cache  # noqa: PLC0415 - after the variables above

    with ExitStack() as stack:
        if hasattr(class_cache, "ENV_VARS_TO_PROPAGATE"):
            others = {
                name for name in class_cache.ENV_VARS_TO_PROPAGATE if not name.startswith("AWS_")
            }
            stack.enter_context(patch.object(class_cache, "ENV_VARS_TO_PROPAGATE", others))
        yield


def _start(attempts: int = 2) -> None:
    """Start Ray on this machine, without its dashboard; again if it fails, as on a busy machine."""
    try:
        with (
            sigterm_handler_restored(),
            hidden_variables(),  # Ray's processes compute, and need no credentials of MLflow
            # Ray listens on all interfaces, also if it is given 127.0.0.1 as its address, which it
            # replaces by that of the machine; on the loopback interface only where no other node
            # can join it, as on macOS and Windows.
            patch.object(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False),  # noqa: SLF001 - no public setting
            without_unused_servers(),
            without_note_on_logs(),
        ):
            ray.init(
                address="local",  # ignore RAY_ADDRESS and clusters that run on this machine
                num_cpus=len(os.sched_getaffinity(0)),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
    except Exception as error:  # Ray raises a bare one where its servers take too long to start
        ray.shutdown()
        if attempts > 1:
            return _start(attempts - 1)
        raise RayStartError(f"Ray cannot be started on this machine: {error}") from error
