"""A session of Ray: on this machine alone, or joined to a cluster."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from ipaddress import ip_address
from pathlib import Path

import ray
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

#: Whether Ray has been started in this process with a token: it then demands one from every
#: cluster, to its end.
_started_with_token = False

#: Whether the session of Ray in this process is one of `ray_session`, and not one that the caller
#: has begun.
_is_own = False

#: Check of the nodes of the cluster that this process has joined; None on this machine alone.
_check: NodeCheck | None = None


def node_check() -> NodeCheck | None:
    """Return the check of the nodes of the cluster that was joined; None without one."""
    return _check


def cluster_nodes() -> list[Mapping[str, float]]:
    """Return the resources of the cluster's nodes, by Ray's names."""
    return [node["Resources"] for node in computing_nodes()]


@contextmanager
def ray_session(
    address: str | None, studies: Sequence[Study] = (), *, allow_mixed_versions: bool = False
) -> Iterator[None]:
    """Join the Ray cluster at an address, or start Ray on this machine, until the end.

    A cluster's workers get raysel's code, that of the studies' own methods and the environment of
    threads from this process, and its nodes are compared with this process. A session of Ray that
    is already running in this process is used and left running.
    """
    global _check, _is_own  # noqa: PLW0603 - Ray's own session is global too
    modules: tuple[str, ...] = ()
    with ExitStack() as stack:
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
        if modules:
            _check = NodeCheck(modules, allow_mixed_versions)
            stack.callback(_forget_check)
            _check.compare()
        yield


@contextmanager
def without_note_on_logs() -> Iterator[None]:
    """Print what goes to stderr at the end, without Ray's line on RAY_BACKEND_LOG_LEVEL."""
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
    """Return why workers end: the caller's cluster takes no token, and this process does."""
    if _is_own or not (_started_with_token or demands_token()):
        return None
    return _find_refusal(ray.get_runtime_context().gcs_address)


@cache
def _find_refusal(address: str) -> StudyError | None:
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


def _start(attempts: int = 2) -> None:
    """Start Ray on this machine, without its dashboard; again if it fails, as on a busy machine."""
    _check_interface()
    try:
        with (
            sigterm_handler_restored(),
            hidden_variables(),  # Ray's processes compute, and need no credentials of MLflow
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


def _check_interface() -> None:
    """Check that a Ray started here listens on the loopback interface only."""
    if not ip_address(ray.util.get_node_ip_address()).is_loopback:
        raise ConfigError(
            "this program imported Ray before raysel did, so that Ray would listen on all network"
            " interfaces. Set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 before `import ray`, or call"
            " ray.init before the study."
        )
